/* Calls that were faster than the records of their layers: which, by how much, and why. */
#include "explain/align.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double US = 1e-6;

/* Layers of a chain, each of 10 µs, by its record's interval of 9 µs at the least. */
enum { CONV, NORM, ADD, RELU, LAYERS };
enum { ROWS = 8, PLACES = 8 };
typedef struct program {
    bz_bound_layer layer[LAYERS];
    bz_bound_place place[PLACES];
    bz_dag dag;
    bz_bound b;
    bz_aligned row[ROWS];
    bz_alignment out;
    bz_arena arena;
} program;

static const bz_alternative SOME = {.n = 1};
static const int ALL[] = {CONV, NORM, ADD, RELU};

static int make(void **state)
{
    program *p = calloc(1, sizeof *p);
    for (int i = 0; i < LAYERS; i++)
        p->layer[i] = (bz_bound_layer){.node = i,
                                       .times = 1,
                                       .variant = "onednn jit:avx512_core any",
                                       .price = {.seconds = 10 * US, .low = 9 * US, .alternative = &SOME}};
    p->dag.n = LAYERS;
    p->b = (bz_bound){.layer = p->layer, .n = LAYERS, .dag = &p->dag, .fused = {.place = p->place}};
    p->out.row = p->row;
    *state = p;
    return 0;
}

static int drop(void **state)
{
    program *p = *state;
    bz_arena_free(&p->arena);
    free(p);
    return 0;
}

static bz_aligned *did(program *p, bz_aligned_kind kind, const int *layer, int n, double us)
{
    assert_true(p->out.n < ROWS);
    p->row[p->out.n] = (bz_aligned){.kind = kind, .layer = layer, .n_layers = n, .call = "sgemm", .seconds = us * US};
    return &p->row[p->out.n++];
}

static void place(program *p, const int *layer, int n, double us)
{
    assert_true(p->b.fused.n_places < PLACES);
    p->place[p->b.fused.n_places++] = (bz_bound_place){
        .layer = layer, .n = n, .price = {.seconds = us * US + US, .low = us * US, .alternative = &SOME}};
}

static void look(program *p)
{
    p->out.n_faster = 0;
    bz_align_faster(&p->b, &p->arena, &p->out);
}

/* The one row that there is took next to nothing: what do its records allow? NAN: nothing is known to be faster. */
static double least(program *p)
{
    look(p);
    return p->out.n_faster ? p->out.faster[0].lowest / US : NAN;
}

static void is_us(double us, double expected)
{
    if (fabs(us - expected) > 1e-9)
        fail_msg("%g µs, not %g", us, expected);
}

/* Below what the interval allows, and not at it; most first, equals as the program had them. */
static void test_which(void **state)
{
    program *p = *state;
    did(p, BZ_ALIGNED_SAME, &ALL[CONV], 1, 9);
    did(p, BZ_ALIGNED_SAME, &ALL[NORM], 1, 8);
    did(p, BZ_ALIGNED_SAME, &ALL[ADD], 1, 9.5);
    did(p, BZ_ALIGNED_CHANGED, &ALL[RELU], 1, 4);
    did(p, BZ_ALIGNED_SAME, &ALL[CONV], 1, 8);
    look(p);
    assert_int_equal(p->out.n_faster, 3);
    assert_ptr_equal(p->out.faster[0].row, &p->row[3]);
    assert_ptr_equal(p->out.faster[1].row, &p->row[1]);
    assert_ptr_equal(p->out.faster[2].row, &p->row[4]);
    is_us(p->out.faster[0].lowest / US, 9);
}

/* One of several calls for a layer is no faster than the layer; what no call did, or no layer asks for, neither. */
static void test_which_not(void **state)
{
    program *p = *state;
    did(p, BZ_ALIGNED_SPLIT, &ALL[CONV], 1, 1);
    did(p, BZ_ALIGNED_MISSING, &ALL[NORM], 1, NAN);
    did(p, BZ_ALIGNED_EXTRA, NULL, 0, 1);
    did(p, BZ_ALIGNED_SAME, &ALL[ADD], 1, 0);
    p->layer[RELU].price = (bz_layer_price){.seconds = NAN}; /* unpriced */
    did(p, BZ_ALIGNED_SAME, &ALL[RELU], 1, 1);
    look(p);
    assert_int_equal(p->out.n_faster, 0);
}

/* Layers of a group: by themselves, or by the cheapest of the places that have no other layers, or both. */
static void test_together(void **state)
{
    static const int OTHERS[] = {ADD, RELU}, NOT_ALL[] = {CONV, NORM, RELU};
    program *p = *state;
    did(p, BZ_ALIGNED_FUSED, ALL, 3, 0.1);
    p->b.dag = NULL; /* layers that a profile shows have no graph */
    is_us(least(p), 27);
    p->b.dag = &p->dag;
    place(p, OTHERS, 2, 1); /* does a layer that the call did not do */
    place(p, ALL, 4, 1);
    place(p, NOT_ALL, 3, 1);
    is_us(least(p), 27);
    place(p, ALL, 2, 12); /* the addition by itself */
    is_us(least(p), 21);
    place(p, ALL, 3, 20);
    is_us(least(p), 20);
    place(p, ALL, 3, 15); /* another pattern, the same layers */
    is_us(least(p), 15);
    place(p, &ALL[NORM], 2, 4);
    is_us(least(p), 13);
    place(p, ALL, 2, 1); /* both have the normalization: one of them */
    is_us(least(p), 10);
    p->place[4].price.alternative = NULL; /* nobody has a record of it */
    p->place[5].price.alternative = NULL;
    p->place[6].price.alternative = NULL;
    p->place[7].price.alternative = NULL;
    is_us(least(p), 21);
    p->row[0].seconds = 22 * US;
    assert_true(isnan(least(p)));
}

/* A free layer adds nothing; one that only a group has a price for has that. */
static void test_unpriced(void **state)
{
    program *p = *state;
    did(p, BZ_ALIGNED_FUSED, ALL, 2, 0.1);
    p->layer[NORM].price = (bz_layer_price){.seconds = 0};
    is_us(least(p), 9);
    p->layer[NORM].price.seconds = NAN;
    assert_true(isnan(least(p)));
    place(p, ALL, 2, 30);
    is_us(least(p), 30);
}

static void because(program *p, const char *expected)
{
    look(p);
    assert_int_equal(p->out.n_faster, 1);
    assert_string_equal(p->out.faster[0].why, expected);
}

static void test_why(void **state)
{
    static const bz_change CALL = {"call", "conv", "gemm"}, PAD = {"pad", "1x1x1x1", "0x0x0x0"};
    program *p = *state;
    bz_bound_layer *l = &p->layer[CONV];
    bz_aligned *row = did(p, BZ_ALIGNED_SAME, &ALL[CONV], 1, 1);
    because(p, "sgemm did it, the best record is of onednn jit:avx512_core any");
    row->variant = "jit:avx512_core";
    because(p, "the same jit:avx512_core as its record: placement, clock or noise");
    l->price.noisy = true;
    because(p, "the same jit:avx512_core as its record, which is marked noisy or busy: placement, clock or noise");
    row->variant = "jit:avx512"; /* is not its beginning */
    because(p, "jit:avx512 did it, the best record is of onednn jit:avx512_core any, marked noisy or busy");
    l->price.noisy = false;
    l->variant = "onednn_gemm"; /* algorithms that begin with the library's name have it once */
    row->variant = "onednn_gemm";
    because(p, "the same onednn_gemm as its record: placement, clock or noise");
    row->change = &CALL;
    row->n_changes = 1;
    because(p, "the same onednn_gemm as its record: placement, clock or noise");
    row->change = &PAD;
    because(p, "it is other work: pad is 0x0x0x0, the layer's 1x1x1x1");
    l->floor = true;
    because(p, "its record was timed by events, which carry a floor");
    l->price.provenance = BZ_PROVENANCE_MODELLED;
    because(p, "the library has no call for it: its price is that of a copy of as many bytes");
}

/* What did a group is not the variant that did its first layer; any of the layers may be modelled, or carry a floor. */
static void test_why_together(void **state)
{
    program *p = *state;
    bz_aligned *row = did(p, BZ_ALIGNED_FUSED, ALL, 3, 1);
    row->variant = "jit:avx512_core";
    because(p, "jit:avx512_core did it with 2 more layers, the best record is of onednn jit:avx512_core any");
    p->layer[NORM].floor = true;
    because(p, "its record was timed by events, which carry a floor");
    p->layer[ADD].price.provenance = BZ_PROVENANCE_MODELLED;
    because(p, "the library has no call for it: its price is that of a copy of as many bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_which, make, drop),
        cmocka_unit_test_setup_teardown(test_which_not, make, drop),
        cmocka_unit_test_setup_teardown(test_together, make, drop),
        cmocka_unit_test_setup_teardown(test_unpriced, make, drop),
        cmocka_unit_test_setup_teardown(test_why, make, drop),
        cmocka_unit_test_setup_teardown(test_why_together, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
