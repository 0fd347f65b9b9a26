/* Time of other programs in a processor's recording: of operators one behind the other, of which some took longer in some iterations. */
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { US = 1000, OPS = 3, TOOK = 50, BETWEEN = 10, APART = 100 };

/* `late` µs more in operator or pause `where` of iteration i, i % every == 0; an operator lies in each. */
static bz_trace *record(int iterations, int every, int64_t late, int where, bool pause)
{
    static const char *const NAMES[OPS] = {"aten::conv2d", "aten::relu", "aten::linear"};
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t source = bz_trace_source(t, "made up", "test"), host = bz_trace_thread(t, source, 1, 1);
    int64_t at = 0;
    for (int i = 0; i < iterations; i++) {
        int64_t begin = at;
        for (int k = 0; k < OPS; k++) {
            int64_t more = i % every == 0 && k == where ? late : 0, own = (TOOK + (pause ? 0 : more)) * US;
            bz_trace_add(t, BZ_EVENT_OP, at, at + own, bz_trace_text(t, NAMES[k]), host);
            bz_trace_add(t, BZ_EVENT_OP, at + US, at + 2 * US, bz_trace_text(t, "aten::empty"), host);
            at += own + (BETWEEN + (pause ? more : 0)) * US;
        }
        bz_trace_add(t, BZ_EVENT_RANGE, begin, at, bz_trace_text(t, "benanza_iteration"), host);
        at += APART * US;
    }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

static void check_order(const bz_trace *t)
{
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        for (size_t i = 0; i < t->event[k].n; i++) {
            assert_true(t->event[k].end[i] >= t->event[k].start[i]);
            assert_true(!i || t->event[k].start[i] >= t->event[k].start[i - 1]);
        }
}

/* One in three iterations was disturbed, in an operator or between two: all take what the others took. */
static void left_out(void **state)
{
    (void)state;
    for (int where = 0; where < OPS; where++)
        for (int pause = 0; pause < 2; pause++) {
            bz_trace *t = record(9, 3, 4000, where, pause);
            assert_true(bz_trace_leave_disturbed(t));
            for (uint32_t i = 0; i < t->n_iterations; i++)
                if (bz_iteration_is_steady(t, i))
                    assert_int_equal(bz_iteration_latency(t, i), OPS * (TOOK + BETWEEN) * US);
            const bz_events *op = &t->event[BZ_EVENT_OP];
            for (size_t i = 0; i < op->n; i++)
                if (bz_event_is_steady(t, BZ_EVENT_OP, i))
                    assert_in_range(op->end[i] - op->start[i], US, TOOK * US);
            check_order(t);
            const char *told = bz_trace_lacks(t, BZ_LACKS_UNDISTURBED);
            assert_non_null(strstr(told, "in 2 of 8 iterations")); /* the first one is warm-up */
            assert_non_null(strstr(told, where == 0   ? "aten::conv2d: 4.06 ms instead of 60.0 µs"
                                         : where == 1 ? "aten::relu: 4.06 ms"
                                                      : "aten::linear: 4.06 ms"));
            assert_false(bz_trace_leave_disturbed(t)); /* nothing is left */
            bz_trace_free(t);
        }
}

/* What takes longer by little, or in most iterations, is the program's own; of few iterations nobody knows what is usual. */
static void stays(void **state)
{
    (void)state;
    static const struct {
        int iterations, every;
        int64_t late;
    } ROWS[] = {{9, 3, 90}, {9, 1, 4000}, {5, 3, 4000}, {9, 3, 0}};
    for (size_t r = 0; r < sizeof ROWS / sizeof *ROWS; r++) {
        bz_trace *t = record(ROWS[r].iterations, ROWS[r].every, ROWS[r].late, 1, false);
        int64_t before = bz_iteration_latency(t, bz_typical_iteration(t));
        assert_false(bz_trace_leave_disturbed(t));
        assert_int_equal(bz_iteration_latency(t, bz_typical_iteration(t)), before);
        assert_null(bz_trace_lacks(t, BZ_LACKS_UNDISTURBED));
        bz_trace_free(t);
    }
}

/* A view lies now within the operator before it, now behind it, as clocks are read. It is left out of what iterations are looked for in, also where
 * one of them was disturbed and took longer than all the others together. */
static void views_stay_views(void **state)
{
    (void)state;
    static const char *const NAMES[OPS] = {"aten::conv2d", "aten::relu", "aten::linear"};
    static const unsigned WITHIN[] = {5, 0, 3, 6, 1, 7, 2, 4}; /* bits: views within their operators */
    enum { ITERATIONS = sizeof WITHIN / sizeof *WITHIN };
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t host = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    int64_t at = 0;
    for (int i = 0; i < ITERATIONS; i++)
        for (int k = 0; k < OPS; k++) {
            int64_t own = (TOOK + 10 * k) * US, view = WITHIN[i] >> k & 1 ? at + own - US : at + own + 2 * US,
                    length = i == 4 && k == 1 ? 900 * US : US;
            bz_trace_add(t, BZ_EVENT_OP, at, at + own, bz_trace_text(t, NAMES[k]), host);
            bz_trace_add(t, BZ_EVENT_OP, view, view + length, bz_trace_text(t, "aten::view"), host);
            at = (view + length > at + own ? view + length : at + own) + BETWEEN * US;
        }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t->n_iterations, ITERATIONS);
    bz_trace_free(t);
}

/* Layers that are one operator each, and an output layer of 3 µs behind them: it tells where a pass ends, with 1 to 6 layers. Views of a microsecond,
 * which lie now within a layer and now behind it, tell nothing. */
static void short_output_layers(void **state)
{
    (void)state;
    enum { PASSES = 7 };
    for (int layers = 1; layers <= 6; layers++) {
        bz_error err = {0};
        bz_trace *t = bz_trace_new();
        uint32_t host = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
        int64_t at = 0;
        for (int i = 0; i < PASSES; i++) {
            for (int k = 0; k < layers; k++, at += (TOOK + BETWEEN) * US) {
                int64_t end = at + TOOK * US, view = (5 * i + 3 * k * k) & 2 ? end - US : end + US;
                bz_trace_add(t, BZ_EVENT_OP, at, end, bz_trace_text(t, "aten::_transformer_encoder_layer_fwd"), host);
                bz_trace_add(t, BZ_EVENT_OP, view, view + US, bz_trace_text(t, "aten::view"), host);
            }
            bz_trace_add(t, BZ_EVENT_OP, at, at + 3 * US, bz_trace_text(t, "aten::linear"), host);
            at += BETWEEN * US;
        }
        if (bz_trace_finish(t, NULL, &err))
            fail_msg("%s", err.text);
        assert_int_equal(t->n_iterations, PASSES);
        bz_trace_free(t);
    }
}

typedef struct layer {
    const char *name, *shapes;
    int64_t took;
} layer;

static void check_passes(const layer *layers, int n, uint32_t passes, uint32_t found)
{
    bz_error err = {0};
    bz_trace *t = bz_trace_new();
    uint32_t host = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    int64_t at = 0;
    for (uint32_t i = 0; i < passes; i++)
        for (int k = 0; k < n; k++, at += BETWEEN * US) {
            size_t op =
                bz_trace_add(t, BZ_EVENT_OP, at, at + layers[k].took * US, bz_trace_text(t, layers[k].name), host);
            t->event[BZ_EVENT_OP].detail[op] = bz_trace_text(t, layers[k].shapes);
            at += layers[k].took * US;
        }
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t->n_iterations, found);
    bz_trace_free(t);
}

/* Layers of one sort that follow each other, all of them an operator of one name: their sizes tell a pass from the next, where they are on record. */
static void layers_of_sizes(void **state)
{
    (void)state;
    const layer LAYERS[] = {{"aten::linear", "inputs=[[8,64],[32,64]]", 20},
                            {"aten::linear", "inputs=[[8,32],[32,32]]", 20},
                            {"aten::linear", "inputs=[[8,32],[32,32]]", 20},
                            {"aten::linear", "inputs=[[8,32],[9,32]]", 20}};
    check_passes(LAYERS, 4, 9, 9);
    check_passes(LAYERS + 1, 3, 9, 9);
    check_passes(LAYERS, 3, 9, 9);
    check_passes(LAYERS + 1, 2, 9, 18); /* nothing tells these apart */
}

/* Equal layers: the host rests longer behind a pass. One short rest among these makes no pass of two. */
static void one_short_rest(void **state)
{
    (void)state;
    enum { LAYERS = 4, PASSES = 40 };
    for (int odd = 0; odd < 2; odd++) {
        bz_error err = {0};
        bz_trace *t = bz_trace_new();
        uint32_t host = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
        int64_t at = 0;
        for (int i = 0; i < PASSES; i++)
            for (int k = 0; k < LAYERS; k++) {
                bz_trace_add(t, BZ_EVENT_OP, at, at + TOOK * US, bz_trace_text(t, "aten::conv2d"), host);
                int64_t usual = k == LAYERS - 1 ? 14 : 10, rest = odd && i == 20 && k == LAYERS - 1 ? 8 : usual;
                at += (TOOK + rest + (i * i * i / 7 + k * 5) % 3) * US;
            }
        if (bz_trace_finish(t, NULL, &err))
            fail_msg("%s", err.text);
        assert_int_equal(t->n_iterations, PASSES);
        bz_trace_free(t);
    }
}

/* The last layer lacks the function that is behind the others. */
static void functions_between_layers(void **state)
{
    (void)state;
    layer layers[] = {{"aten::linear", "", 20}, {"aten::gelu", "", 3}, {"aten::linear", "", 20}, {"aten::gelu", "", 3},
                      {"aten::linear", "", 20}, {"aten::gelu", "", 3}, {"aten::linear", "", 20}};
    for (int n = 3; n <= 7; n += 2)
        check_passes(layers, n, 10, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(left_out),         cmocka_unit_test(stays),
                                       cmocka_unit_test(views_stay_views), cmocka_unit_test(short_output_layers),
                                       cmocka_unit_test(layers_of_sizes),  cmocka_unit_test(functions_between_layers),
                                       cmocka_unit_test(one_short_rest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
