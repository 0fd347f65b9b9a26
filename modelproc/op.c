/* The register of operator families. */
#include "modelproc/op.h"

#include <string.h>

static const op_table *const FAMILIES[] = {
    &ops_elementwise,
    &ops_shape,
    &ops_constant,
    &ops_index,
    &ops_reduce,
    &ops_matmul,
    &ops_conv,
    &ops_norm,
    &ops_rnn,
    &ops_quant,
    &ops_vision,
    &ops_signal,
    &ops_sequence,
    &ops_control,
    &ops_random,
    &ops_loss,
    &ops_text,
    &ops_ml,
    &ops_microsoft,
    &ops_microsoft_block,
    &ops_microsoft_cache,
    &ops_microsoft_nchwc,
    &ops_microsoft_ordered,
    &ops_state,
    &ops_training,
    &ops_gradient,
    &ops_removed,
};
enum { N_FAMILIES = sizeof FAMILIES / sizeof *FAMILIES };

static bool names(const op *o, const char *domain, const char *name)
{
    return o->name[0] == name[0] && !strcmp(o->name, name) && !strcmp(o->domain ? o->domain : "", domain);
}

static const op *search(const char *domain, const char *name)
{
    for (int f = 0; f < N_FAMILIES; f++)
        for (int i = 0; i < FAMILIES[f]->n; i++)
            if (names(&FAMILIES[f]->rows[i], domain, name))
                return &FAMILIES[f]->rows[i];
    return NULL;
}

/* Other names of a domain. Tools that do not look at domains (MIGraphX) leave out Microsoft's. */
static const struct {
    const char *domain, *is;
} OTHERWISE[] = {{"", "com.microsoft"}, {"onnx.brevitas", QONNX}, {"finn.custom_op.general", QONNX}};

static const op *search_all(const char *domain, const char *name)
{
    const op *o = search(domain, name);
    for (size_t i = 0; !o && i < sizeof OTHERWISE / sizeof *OTHERWISE; i++)
        o = strcmp(domain, OTHERWISE[i].domain) ? NULL : search(OTHERWISE[i].is, name);
    return o;
}

/* A model uses a handful of operators: mostly it was met before. */
const op *op_find(op_memo *memo, const char *domain, const char *name)
{
    size_t n = strlen(name);
    unsigned mixed = n ? (unsigned char)name[0] * 5u + (unsigned char)name[n - 1] * 3u + (unsigned)n : 0;
    op_memo_entry *e = &memo->entry[mixed % MEMO];
    if (!e->name || strcmp(e->name, name) != 0 || (e->domain != domain && strcmp(e->domain, domain) != 0))
        *e = (op_memo_entry){name, domain, search_all(domain, name)};
    return e->op;
}

int op_count(const char *domain)
{
    int n = 0;
    op_memo memo = {0};
    for (int f = 0; f < N_FAMILIES; f++)
        for (int i = 0; i < FAMILIES[f]->n; i++) {
            const op *o = &FAMILIES[f]->rows[i];
            n += !strcmp(o->domain ? o->domain : "", domain) && op_find(&memo, domain, o->name) == o;
        }
    return n;
}
