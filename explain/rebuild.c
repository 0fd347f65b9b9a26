/* Layers without a model: each library call of a profile that is a problem was one. */
#include "explain/align.h"

#include <string.h>

static const char *kind_of(const bz_problem *p)
{
    return p->kind == BZ_PROBLEM_ACTIVATION ? bz_fn_name(p->activation.fn)
           : p->kind == BZ_PROBLEM_BINARY   ? bz_fn_name(p->binary.fn)
                                            : bz_problem_kind_name(p->kind);
}

static bz_type type_of(const bz_operand *o, bz_arena *arena)
{
    bz_dim *dims = BZ_NEW(arena, bz_dim, o->rank);
    for (int i = 0; i < o->rank; i++)
        dims[i] = o->dim[i];
    return (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = o->dtype, .rank = o->rank, .dims = dims};
}

/* What the roofline looks at. */
static void set_params(bz_layer *layer, const bz_problem *p, bz_arena *arena)
{
    if (p->kind != BZ_PROBLEM_CONV)
        return;
    int n = bz_extent_rank(p->conv.x) - 2;
    bz_param *params = BZ_NEW(arena, bz_param, 2);
    params[0] = (bz_param){"stride", NULL, bz_arena_dup(arena, p->conv.stride, sizeof p->conv.stride), n};
    params[1] = (bz_param){"dilation", NULL, bz_arena_dup(arena, p->conv.dilation, sizeof p->conv.dilation), n};
    layer->params = params;
    layer->n_params = 2;
}

static void make_layer(bz_layer *layer, int index, const bz_problem *p, bz_arena *arena)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    BZ_SCOPED(bz_buf) key = {0};
    int n = bz_problem_operands(p, list);
    bz_type *types = BZ_NEW(arena, bz_type, n);
    bool *constant = BZ_NEW(arena, bool, n);
    const char *kind = kind_of(p);
    bz_problem_print(p, &key);
    *layer = (bz_layer){.index = index,
                        .kind = kind,
                        .class = BZ_COMPUTE,
                        .name = bz_arena_printf(arena, "%s_%d", kind, index),
                        .n_in = n - 1,
                        .n_out = 1,
                        .in = types,
                        .out = types + n - 1,
                        .in_constant = constant,
                        .key = bz_arena_str(arena, bz_buf_text(&key)),
                        .hash = bz_hash_bytes(key.data, key.len),
                        .flops = (int64_t)bz_problem_flops(p),
                        .bytes = (int64_t)bz_problem_bytes(p),
                        .priced = true};
    for (int i = 0; i < n; i++) {
        types[i] = type_of(&list[i], arena);
        constant[i] = list[i].constant;
        layer->params_count += list[i].constant ? list[i].count : 0;
    }
    if (bz_problem_has(p, BZ_TRAIT_PRODUCT)) {
        bz_problem core = *p;
        core.post[0].fn = BZ_FN_NONE;
        layer->macs = (int64_t)(bz_problem_flops(&core) / 2);
    }
    set_params(layer, p, arena);
}

/* "40 reorder, 1 cudnnRNNForward", by first occurrence. */
static const char *name_others(const bz_align_steps *s, bz_arena *arena)
{
    enum { NAMES = 8 };
    const char *name[NAMES];
    int count[NAMES], n = 0, more = 0;
    bz_buf text = {0};
    for (int i = 0; i < s->n; i++) {
        int k = 0;
        if (s->step[i].kind != BZ_ALIGN_CALL || (s->step[i].problem && !s->step[i].cause))
            continue;
        while (k < n && strcmp(name[k], s->step[i].name) != 0)
            k++;
        if (k == NAMES) {
            more++;
            continue;
        }
        if (k == n)
            name[n] = s->step[i].name, count[n++] = 0;
        count[k]++;
    }
    for (int k = 0; k < n; k++)
        bz_buf_printf(&text, "%s%d %s", k ? ", " : "", count[k], name[k]);
    if (more)
        bz_buf_printf(&text, ", and %d others", more);
    return bz_buf_keep(&text, arena);
}

/* A kernel padded its input right before: the layer then has that padding. */
static bool padded(const bz_align_steps *s, int i)
{
    return i && s->step[i - 1].cause == BZ_CAUSE_INPUT_PADDED;
}

void bz_rebuild(const bz_trace *trace, bz_arena *arena, bz_rebuilt *out)
{
    bz_align_words words;
    bz_align_steps steps;
    int n = 0;
    bz_align_words_begin(&words, arena);
    bz_align_steps_take(&steps, trace, NULL, &words, arena);
    bz_layer *layer = BZ_NEW(arena, bz_layer, steps.n);
    const bz_problem **problem = BZ_NEW(arena, const bz_problem *, steps.n);
    for (int i = 0; i < steps.n; i++)
        if (steps.step[i].kind == BZ_ALIGN_CALL && steps.step[i].problem && !steps.step[i].cause) {
            bz_problem inside;
            bool unpad = padded(&steps, i) && bz_call_unpad(steps.step[i].problem, &inside);
            problem[n] = unpad ? bz_arena_dup(arena, &inside, sizeof inside) : steps.step[i].problem;
            make_layer(&layer[n], n, problem[n], arena);
            n++;
        }
    bool image = n && (problem[0]->kind == BZ_PROBLEM_CONV || problem[0]->kind == BZ_PROBLEM_POOL);
    bz_layers *layers = BZ_NEW(arena, bz_layers, 1);
    *layers = (bz_layers){.layer = layer, .n = n, .batch = image ? problem[0]->conv.x[0] : 0};
    if (image && problem[0]->kind == BZ_PROBLEM_POOL)
        layers->batch = problem[0]->pool.x[0];
    *out = (bz_rebuilt){
        .of = "library calls", .layers = n ? layers : NULL, .problem = problem, .left_out = name_others(&steps, arena)};
    bz_align_steps_free(&steps);
    bz_align_words_end(&words);
    if (!n)
        bz_rebuild_operators(trace, arena, out);
}
