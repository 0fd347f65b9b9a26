/* The recordings of tests/cases that are small, and each with another number, or a byte one more or one less, in places all over it: the trace, the layers that it is
 * rebuilt as, its iterations as graphs, and what all transformations would make of them. whatif_neighbours.txt has a hash for each (seen.h). */
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "near_recordings.h"

enum { NUMBERS = 14, BYTES = 8, ITERATIONS = 2 };

static void say_calls(const bz_trace *t, bz_buf *out)
{
    for (size_t i = 0; i < t->event[BZ_EVENT_CALL].n; i++) {
        const bz_call *c = bz_call_of(t, i);
        bz_buf_printf(out, "%s %d %lld\n", c->text ? c->text : "", (int)c->dtype, (long long)c->elements);
    }
}

static void say_layers(const bz_trace *t, bz_buf *out)
{
    bz_arena arena = {0};
    bz_rebuilt r;
    bz_rebuild(t, &arena, &r);
    for (int i = 0; r.layers && i < r.layers->n; i++)
        bz_buf_printf(out, "%s %lld %lld\n", r.layers->layer[i].key, (long long)r.layers->layer[i].macs,
                      (long long)r.layers->layer[i].bytes);
    bz_arena_free(&arena);
}

static void say_flow(const bz_trace *t, uint32_t iteration, bz_buf *out)
{
    bz_arena arena = {0};
    bz_flow f;
    bz_whatif w;
    bz_error err;
    if (!bz_flow_make(t, iteration, &f, &err)) {
        bz_buf_printf(out, "%u: %u tasks, %u edges, %u lanes, %lld %lld %lld %d, %lld %lld %lld %lld\n", iteration, f.n,
                      f.n_edges, f.n_lanes, (long long)f.measured, (long long)f.offset, (long long)f.period, f.overlaps,
                      (long long)f.launch_cost, (long long)f.launch_gap, (long long)f.launch_lag,
                      (long long)f.stream_gap);
        if (!bz_whatif_begin(&f, &arena, &w, &err) && !bz_whatif_try_all(&arena, &w, &err)) {
            bz_buf_printf(out, "%lld: %lld %lld %lld %lld, %.6g %.6g %u\n", (long long)w.simulated,
                          (long long)w.split.host, (long long)w.split.device, (long long)w.split.both,
                          (long long)w.split.neither, w.spread, w.noise, w.steady);
            for (int i = 0; i < w.n; i++)
                bz_buf_printf(out, "%s %d: %lld %lld %lld\n", w.prediction[i].name, w.prediction[i].changed,
                              (long long)w.prediction[i].time, (long long)w.prediction[i].low,
                              (long long)w.prediction[i].high);
        }
        bz_flow_free(&f);
    }
    bz_arena_free(&arena);
}

static void say(bz_trace *t, seen *s, void *user)
{
    (void)user;
    bz_trace_json(t, 5, &s->text);
    say_calls(t, &s->text);
    say_layers(t, &s->text);
    for (uint32_t i = 0; i < t->n_iterations && i < ITERATIONS; i++)
        say_flow(t, i, &s->text);
}

static void say_recording(const char *name, seen *s)
{
    near_recordings(name, NUMBERS, BYTES, s, say, NULL);
}

int main(int argc, char **argv)
{
    static const char *const NAMES[] = {
        "whatif/steps.json",
        "whatif-unrecorded/slowed.json",
        "whatif-operators/trace.json",
        "whatif-one/one.json",
        "analyze-written-out-kernels/trace.json",
        "analyze-recording/run.json",
        "analyze-cut/run.json",
        "analyze-tf32/run.json",
        "analyze-allocates/run.json",
        "analyze-written-out-operators/trace.json",
        "analyze-operators/trace.json",
        "analyze-optimizer-step/trace.json",
        "analyze-group-norm/trace.json",
        "analyze-alone/run.json",
        "analyze-wait-for-all/run.json",
        "profile-tables/run.json",
        "profile-tables-memory/run.json",
        "profile-marks-as-operators/trace.json",
        "profile-tokens/tokens.log",
        "analyze-log-alone/heads.log",
        "analyze-log-alone/activations.log",
        "analyze-unlogged/unet.log",
        "analyze-equal-layers/steps.log",
        "analyze-rebuilt-gpu/run.log",
        "analyze-profile/fast.log",
        "analyze-written-out/once.log",
        "analyze-iterations-rest/gelu.log",
        "program-2",
        "program-5",
        "program-8",
        "program-11",
        "program-14",
        "program-17",
        "program-20",
        "program-23",
        "program-26",
        "program-29",
    };
    return seen_main(argc, argv, NAMES, sizeof NAMES / sizeof *NAMES, say_recording,
                     BENANZA_SOURCE "/tests/unit/whatif_neighbours.txt");
}
