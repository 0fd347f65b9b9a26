/* What of a framework's own layers goes with their bytes: stretches between calls, made by hand. */
#include "analyzer/predict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { LAYERS = 6, CALLS = 5, ROWS = LAYERS + CALLS };

typedef struct program {
    bz_layer layer[LAYERS];
    bz_bound_layer of[LAYERS];
    bz_bound bound;
    bz_aligned row[ROWS];
    bz_alignment alignment;
    bz_trace *trace;
} program;

static const int NUMBER[LAYERS] = {0, 1, 2, 3, 4, 5};
/* Behind the calls 0 to 2 one, two and three of them are done; 3 is a reorder, in a stretch with 4 of its own. */
static const int64_t BYTES[LAYERS] = {1000, 4000, 2000, 9000, 1000, 3000};
static const int DONE[CALLS] = {0, 1, 3, 0, 6};

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

static double share(double per_layer, double per_byte)
{
    program p;
    make(&p, per_layer, per_byte);
    double found = predict_by_byte(&p.bound, &p.alignment, p.trace);
    bz_trace_free(p.trace);
    return found;
}

static void test_shares(void **unused)
{
    (void)unused;
    assert_float_equal(share(2000, 1), 20000.0 / (20000 + 6 * 2000), 1e-3);
    assert_float_equal(share(0, 3), 1, 1e-3);
    assert_float_equal(share(5000, 0), 0, 1e-3);
}

/* Of one size, or in one stretch, nothing tells the two apart; nor do steps that are no calls. */
static void test_nothing_tells(void **unused)
{
    (void)unused;
    program p;
    make(&p, 2000, 1);
    for (int i = 0; i < LAYERS; i++)
        p.layer[i].bytes = 1000;
    assert_true(isnan(predict_by_byte(&p.bound, &p.alignment, p.trace)));
    p.alignment.n = 3;
    assert_true(isnan(predict_by_byte(&p.bound, &p.alignment, p.trace)));
    p.alignment.n = ROWS;
    p.row[0].at = 1000;
    assert_true(isnan(predict_by_byte(&p.bound, &p.alignment, p.trace)));
    bz_trace_free(p.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares), cmocka_unit_test(test_nothing_tells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
