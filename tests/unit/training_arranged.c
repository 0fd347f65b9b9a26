/* Layers that put elsewhere what a trained weight may keep there, in iterations of small models. */
#include "model_lines.h"
#include "training/training.h"

typedef struct {
    const char *values, *nodes, *arranged; /* "a slice, a/SliceGrad …": in the order of the iteration */
} example;

static void check(const example *e)
{
    subject s = infer(e->values, e->nodes);
    bz_training *t;
    bz_spares found;
    bz_error err = {0};
    bz_buf out = {0};
    if (bz_training_derive(s.layers, &(bz_training_options){.optimizer = BZ_MOMENTUM}, &t, &err))
        fail_msg("%s: %s", e->nodes, err.text);
    bz_spares_find(t->layers, &found);
    for (int k = 0; k < found.n; k++)
        if (found.match[k].spare == BZ_ARRANGED)
            bz_buf_printf(&out, "%s%s", out.len ? " " : "", t->layers->layer[found.match[k].layer[0]].name);
    if (strcmp(bz_buf_text(&out), e->arranged) != 0)
        fail_msg("%s\ngives    %s\nexpected %s", e->nodes, bz_buf_text(&out), e->arranged);
    bz_buf_free(&out);
    bz_training_free(t);
    end(&s);
}

#define CUT(from, to, name)                                                                                            \
    "Slice w," from "," to ",zero,"                                                                                    \
    "one " name "; "
#define CUTS "one=1, zero=0, two=2, four=4, "

static void weights_lie_as_their_readers_want_them(void **state)
{
    (void)state;
    static const example ROWS[] = {
        /* halves that change places, and go back */
        {CUTS "X=3x5 w=4x5",
         CUT("zero", "two", "a") CUT("two", "four", "b") "Concat{axis=0} b,a c; Gemm{transB=1} X,c y",
         "a b c c/Split a/Concat"},
        /* one half is wanted twice: it would have to lie at two places */
        {CUTS "X=3x5 w=4x5",
         CUT("zero", "two", "a") CUT("one", "four", "b") "Concat{axis=0} b,a c; Gemm{transB=1} X,c y", ""},
        /* so it is where a product reads the weight as it was, too; the gradients are a sum then */
        {CUTS "X=3x5 w=4x5",
         CUT("zero", "two", "a")
             CUT("two", "four", "b") "Concat{axis=0} b,a c; Gemm{transB=1} X,c d; Gemm{transB=1} X,w e; "
                                     "Mul d,e y",
         ""},
        /* of data nothing is kept */
        {CUTS "X=4x5 w=4x5",
         "Slice X,zero,two,zero,one a; Slice X,two,four,zero,one b; Concat{axis=0} b,a c; Gemm{transB=1} c,w y", ""},
        /* a part that nothing else of the weight follows */
        {CUTS "X=3x5 w=4x5", CUT("one", "four", "a") "Gemm{transB=1} X,a y", "a a/SliceGrad"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        check(&ROWS[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(weights_lie_as_their_readers_want_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
