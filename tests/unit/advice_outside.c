/* What some of a framework's own layers took: stretches between calls, made by hand. */
#include "advice/predict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { LAYERS = 9, CALLS = 7, ROWS = LAYERS + CALLS };

typedef struct program {
    bz_layer layer[LAYERS];
    bz_bound_layer of[LAYERS];
    bz_bound bound;
    bz_aligned row[ROWS];
    bz_alignment alignment;
    bz_trace *trace;
} program;

static const int NUMBER[LAYERS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
/* How many of them are done before each call; 3 is a reorder, in the stretch that ends with 4. */
static const int64_t BYTES[LAYERS] = {1000, 4000, 2000, 9000, 1000, 3000, 5000, 7000, 2500};
static const int DONE[CALLS] = {0, 1, 3, 0, 6, 8, 9};

/* A stretch takes per_layer and per_byte nanoseconds; the reorder cuts its stretch in two, and is not counted. */
static void make(program *p, double per_layer, double per_byte)
{
    int64_t at = 0;
    bz_error err = {0};
    uint32_t source, host;
    *p = (program){0};
    p->trace = bz_trace_new();
    source = bz_trace_source(p->trace, "made up", "test");
    host = bz_trace_thread(p->trace, source, 1, 1);
    for (int i = 0; i < LAYERS; i++) {
        p->layer[i] = (bz_layer){.kind = "relu", .bytes = BYTES[i]};
        p->of[i].layer = &p->layer[i];
    }
    p->bound = (bz_bound){.layer = p->of, .n = LAYERS};
    for (int k = 0, done = 0; k < CALLS; k++) {
        double gap = k == 3 ? 100 : k == 4 ? -100 : 0;
        for (; done < DONE[k]; done++) {
            gap += per_layer + per_byte * (double)BYTES[done];
            p->row[p->alignment.n++] =
                (bz_aligned){.kind = BZ_ALIGNED_MISSING, .layer = &NUMBER[done], .n_layers = 1, .at = SIZE_MAX};
        }
        at += (int64_t)gap;
        size_t e = bz_trace_add(p->trace, BZ_EVENT_CALL, at, at + 50, bz_trace_text(p->trace, "convolution"), host);
        p->row[p->alignment.n++] = (bz_aligned){
            .kind = k == 3 ? BZ_ALIGNED_EXTRA : BZ_ALIGNED_SAME, .layer = NUMBER, .n_layers = k == 3 ? 0 : 1, .at = e};
        at += 50;
    }
    if (bz_trace_finish(p->trace, NULL, &err))
        fail_msg("%s", err.text);
    p->alignment.row = p->row;
}

/* What layer 5 took, by the stretches that do not have it: nanoseconds. */
static double left(double per_layer, double per_byte)
{
    static const bool LEFT[LAYERS] = {[5] = true};
    program p;
    bz_arena arena = {0};
    make(&p, per_layer, per_byte);
    double found = predict_left(&p.bound, &p.alignment, p.trace, LEFT, &arena);
    bz_trace_free(p.trace);
    bz_arena_free(&arena);
    return found * 1e9;
}

static void is(double found, double wanted)
{
    if (fabs(found - wanted) > 1)
        fail_msg("%g, not %g", found, wanted);
}

static void test_left(void **unused)
{
    (void)unused;
    is(left(2000, 1), 2000 + 3000);
    is(left(0, 3), 9000);
    is(left(5000, 0), 5000);
}

/* Eight stretches of two layers, their results 1 to 8 times as large: the third, 3 times, takes by so many nanoseconds longer than its
 * bytes ask for, and so does `also`, from 0. `kind` is that of the third's last layer. What halving the bytes spares. */
static double fresh(int64_t longer, int also, const char *kind)
{
    enum { STRETCHES = 8, EVENTS = STRETCHES + 1 };
    bz_dim dims[STRETCHES];
    bz_type type[STRETCHES];
    bz_layer layer[2 * STRETCHES];
    bz_bound_layer of[2 * STRETCHES];
    int number[2 * STRETCHES];
    bz_aligned row[STRETCHES + EVENTS];
    bz_bound bound = {.layer = of, .n = 2 * STRETCHES};
    bz_alignment alignment = {.row = row};
    bz_trace *t = bz_trace_new();
    bz_arena arena = {0};
    bz_error err = {0};
    uint32_t host = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    int64_t at = 0;
    for (int k = 0; k < EVENTS; k++) {
        size_t e = bz_trace_add(t, BZ_EVENT_CALL, at, at + 50, bz_trace_text(t, "convolution"), host);
        row[alignment.n++] = (bz_aligned){.kind = BZ_ALIGNED_SAME, .layer = number, .n_layers = 1, .at = e};
        at += 50;
        if (k == STRETCHES)
            break;
        int first = 2 * k, last = first + 1;
        dims[k] = 1000 * (k + 1);
        type[k] = (bz_type){.kind = BZ_TYPE_TENSOR, .dtype = BZ_F32, .rank = 1, .dims = &dims[k]};
        layer[first] = (bz_layer){.kind = "batchnorm", .bytes = 1000 * (k + 1), .n_out = 1, .out = &type[k]};
        layer[last] = (bz_layer){.kind = k == 2 ? kind : "relu", .bytes = 1000 * (k + 1)};
        for (int i = first; i <= last; i++) {
            number[i] = i;
            of[i] = (bz_bound_layer){.layer = &layer[i]};
        }
        row[alignment.n++] =
            (bz_aligned){.kind = BZ_ALIGNED_MISSING, .layer = &number[first], .n_layers = 2, .at = SIZE_MAX};
        at += 2000 * (k + 1) + (k == 2 || k == also ? longer : 0);
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    double found = predict_fresh(&bound, &alignment, t, 0.5, &arena);
    bz_trace_free(t);
    bz_arena_free(&arena);
    return found * 1e9;
}

/* What takes more than twice as long as others of its kinds do by their bytes; a kind that is alone has nothing to be held against.
 * Half of 3 is less than 2, which is the least that had it; half of 7 is more than 3: that may be spared half or all of it. */
static void test_fresh(void **unused)
{
    (void)unused;
    is(fresh(0, 2, "relu"), 0);
    is(fresh(5000, 2, "relu"), 0);
    is(fresh(7000, 2, "relu"), 7000);
    is(fresh(7000, 2, "maxpool"), 0);
    is(fresh(7000, 1, "relu"), 14000);
    is(fresh(16000, 6, "relu"), 16000 + 12000);
}

/* Where no other stretch tells, it is all of its own; none is nothing. */
static void test_nothing_tells(void **unused)
{
    static const bool ALL[LAYERS] = {true, true, true, true, true, true, true, true, true}, NONE[LAYERS] = {false};
    program p;
    bz_arena arena = {0};
    (void)unused;
    make(&p, 2000, 1);
    is(1e9 * predict_left(&p.bound, &p.alignment, p.trace, ALL, &arena), 9 * 2000 + 34500);
    assert_true(predict_left(&p.bound, &p.alignment, p.trace, NONE, &arena) == 0);
    for (int i = 0; i < ROWS; i++)
        if (p.row[i].at != SIZE_MAX)
            p.row[i].at = 1000; /* operators have times of their own */
    assert_true(predict_left(&p.bound, &p.alignment, p.trace, ALL, &arena) == 0);
    bz_trace_free(p.trace);
    bz_arena_free(&arena);
}

/* Through points that fit, whatever single ones do; nothing is below zero. */
static void test_fit(void **unused)
{
    predict_point p[80];
    double x, y;
    (void)unused;
    for (int i = 0; i < 80; i++)
        p[i] = (predict_point){1 + i % 7, 10 + i % 11, 3. * (1 + i % 7) + 0.5 * (10 + i % 11), 1};
    for (int i = 0; i < 10; i++)
        p[8 * i].seconds *= 5;
    predict_fit(p, 80, &x, &y);
    assert_true(fabs(x - 3) < 1e-9 && fabs(y - 0.5) < 1e-9);
    for (int i = 0; i < 3; i++)
        p[i] = (predict_point){1 + i, 10 + i * i, 2. * (1 + i) - 0.1 * (10 + i * i), 1};
    predict_fit(p, 3, &x, &y);
    assert_true(x > 0 && y == 0);
    predict_fit(p, 0, &x, &y);
    assert_true(x == 0 && y == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_left), cmocka_unit_test(test_fresh),
                                       cmocka_unit_test(test_nothing_tells), cmocka_unit_test(test_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
