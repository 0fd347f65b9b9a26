/* Any model through inference and lowering, in the data type that the first byte chooses. Promised: a layer
 * has alternatives, is free, or says why not; every problem has a text that reads back as the same problem,
 * moves bytes, and is written as C; nothing that multiplies is priced by its bytes alone. */
#include "generator/generator.h"

#include "fuzz.h"

#include <string.h>

const size_t fuzz_header_size = 1;

static void check_problem(const bz_problem *p, const char *text)
{
    bz_problem again;
    bz_error err;
    bz_buf printed = {0};
    PROMISE(!bz_problem_parse(text, &again, &err));
    bz_problem_print(&again, &printed);
    PROMISE(!strcmp(bz_buf_text(&printed), text));
    PROMISE(bz_problem_bytes(p) > 0 && bz_problem_flops(p) >= 0);
    bz_problem_print_c(p, 0, &printed);
    bz_buf_free(&printed);
}

/* A copy stands for products where that many rows meet weights: reading these is all of the time. */
static bool has_few_rows(const bz_layer *l)
{
    const bz_type *x = &l->in[0];
    return l->n_in && x->rank > 0 && x->dims[x->rank - 1] > 0 && bz_type_elements(x) / x->dims[x->rank - 1] <= 4;
}

static void check_layers(const bz_layer *layer, int n, bz_dtype dtype)
{
    for (int i = 0; i < n; i++) {
        bz_arena arena = {0};
        bz_lowering low;
        bz_lower(&layer[i], dtype, &arena, &low);
        PROMISE(low.free ? !low.n : low.n || (low.why && *low.why));
        for (int a = 0; a < low.n; a++) {
            PROMISE(low.alternative[a].n > 0);
            PROMISE(!low.alternative[a].modelled || !layer[i].macs || has_few_rows(&layer[i]));
            for (int k = 0; k < low.alternative[a].n; k++) {
                check_problem(&low.alternative[a].problem[k], low.alternative[a].text[k]);
                SAW(low.alternative[a].text[k], strlen(low.alternative[a].text[k]));
            }
        }
        bz_arena_free(&arena);
        for (int b = 0; b < layer[i].n_bodies; b++)
            check_layers(layer[i].bodies[b].layers, layer[i].bodies[b].n, dtype);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const bz_dtype TYPES[] = {BZ_UNDEFINED, BZ_F32, BZ_BF16, BZ_I8};
    bz_model *m;
    bz_layers *l;
    bz_error err = {0};
    if (size < fuzz_header_size || bz_model_parse(data + 1, size - 1, "fuzz", &m, &err))
        return 0;
    if (!bz_layers_infer(m, &(bz_infer_options){.batch = data[0] & 4 ? 3 : 0}, &l, &err)) {
        check_layers(l->layer, l->n, TYPES[data[0] & 3]);
        bz_layers_free(l);
    }
    bz_model_free(m);
    return 0;
}
