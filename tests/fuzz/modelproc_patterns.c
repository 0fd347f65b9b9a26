/* A user's table of fusion patterns: one that is refused says why, alone and behind the built-in ones. */
#include "modelproc/modelproc.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* A chain of most things that patterns are of: a convolution that is normalized and activated, an addition to what was before it, gelu, silu, a
 * product. Operand names: x the input, w f e weights, r o scalars, digits and letters from 0 on the nodes' results. */
static bz_layers *make_layers(void)
{
    static const struct {
        const char *op, *in; /* a letter each */
    } NODES[] = {{"Conv", "xw"},   {"BatchNormalization", "0eeee"},
                 {"Relu", "1"},    {"Conv", "2we"},
                 {"Add", "32"},    {"LeakyRelu", "4"},
                 {"Div", "5r"},    {"Erf", "6"},
                 {"Add", "7o"},    {"Mul", "58"},
                 {"Mul", "9r"},    {"Conv", ":we"},
                 {"Sigmoid", ";"}, {"Mul", ";<"},
                 {"MatMul", "=f"}, {"Add", ">e"},
                 {"Tanh", "?"},    {"Softmax", "@"}};
    static const int64_t X[] = {1, 4, 4, 4}, W[] = {4, 4, 1, 1}, MATRIX[] = {4, 4};
    static const float ZEROS[16];
    static bz_buf file;
    bz_draft d = {0};
    bz_error err;
    bz_model *m;
    bz_layers *l;
    bz_draft_input(&d, "x", BZ_F32, 4, X);
    bz_draft_tensor(&d, "w", BZ_F32, 4, W, ZEROS, sizeof ZEROS);
    bz_draft_tensor(&d, "f", BZ_F32, 2, MATRIX, ZEROS, sizeof ZEROS);
    bz_draft_tensor(&d, "e", BZ_F32, 1, X + 1, ZEROS, 4 * sizeof *ZEROS);
    bz_draft_tensor(&d, "r", BZ_F32, 0, X, &(float){1.4142135F}, sizeof *ZEROS);
    bz_draft_tensor(&d, "o", BZ_F32, 0, X, &(float){1}, sizeof *ZEROS);
    for (int i = 0; i < (int)(sizeof NODES / sizeof *NODES); i++) {
        char name[6][2] = {{(char)('0' + i)}};
        const char *out = name[0], *in[5];
        int n = (int)strlen(NODES[i].in);
        for (int k = 0; k < n; k++)
            name[k + 1][0] = NODES[i].in[k], in[k] = name[k + 1];
        bz_draft_node(&d, NODES[i].op, "", "", in, n, &out, 1);
    }
    bz_draft_output(&d, "A", BZ_F32, 4, X);
    bz_draft_opset(&d, "", 20);
    bz_draft_end(&d, 9, "chain", &file);
    PROMISE(!bz_model_parse(file.data, file.len, "chain", &m, &err) &&
            !bz_layers_infer(m, &(bz_infer_options){0}, &l, &err));
    return l;
}

static void say_places(const bz_patterns *patterns)
{
    static bz_layers *layers; /* made once */
    const bz_match *match;
    layers = layers ? layers : make_layers();
    int n = bz_patterns_find(patterns, layers, NULL, &match);
    for (int i = 0; i < n; i++) {
        SAW(match[i].pattern, strlen(match[i].pattern));
        SAW(match[i].layer, (size_t)match[i].n * sizeof *match[i].layer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_patterns *alone = NULL, *behind = NULL;
    bz_error err = {0};
    bz_arena arena = {0};
    const char *text = bz_arena_strn(&arena, (const char *)data, size);
    PROMISE(!bz_patterns_parse(bz_patterns_text, "built in", &behind, &err));
    if (bz_patterns_parse(text, "fuzz", &behind, &err))
        PROMISE(!behind && *err.text);
    err = (bz_error){0};
    if (bz_patterns_parse(text, "fuzz", &alone, &err))
        PROMISE(!alone && *err.text);
    else
        say_places(alone);
    SAW(&err.code, sizeof err.code);
    bz_patterns_free(alone);
    bz_patterns_free(behind);
    bz_arena_free(&arena);
    return 0;
}
