/* Steps and layers of library calls, told apart by the addresses that they read. */
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { CALLS = 5 }; /* of a layer */

typedef struct {
    bz_trace *t;
    uint32_t lane;
    int64_t now;
    uint32_t seed;
} program;

static uint32_t chance(program *p, uint32_t below)
{
    p->seed = p->seed * 1664525 + 1013904223;
    return (p->seed >> 16) % below;
}

static void call(program *p, int number, uint64_t weights, uint64_t input, uint64_t output)
{
    char detail[80], operands[80];
    snprintf(detail, sizeof detail, "transa=T transb=N m=%d n=64 k=128 ldc=16", 128 * (1 + number));
    snprintf(operands, sizeof operands, "a=0x%llx b=0x%llx c=0x%llx", (unsigned long long)weights,
             (unsigned long long)input, (unsigned long long)output);
    size_t i = bz_trace_add(p->t, BZ_EVENT_CALL, p->now, p->now + 1000, bz_trace_text(p->t, "sgemm"), p->lane);
    bz_events *e = &p->t->event[BZ_EVENT_CALL];
    e->library[i] = BZ_LIBRARY_BLAS;
    e->flags[i] = BZ_CALL_EXECUTES;
    e->detail[i] = bz_trace_text(p->t, detail);
    e->operands[i] = bz_trace_text(p->t, operands);
    p->now += 1100;
}

/* Equal layers, with weights of their own or the same ones; inputs lie where the allocator puts them. Returns how many were found. */
static uint32_t found(int layers, int steps, bool same_weights, uint32_t seed)
{
    bz_error err;
    program p = {.t = bz_trace_new(), .now = 1000000, .seed = seed};
    uint32_t source = bz_trace_source(p.t, "a", "capture");
    uint32_t buffers = 2 + chance(&p, 5), turns = chance(&p, 3);
    p.t->source[source].events = 1;
    p.lane = bz_trace_thread(p.t, source, 1, 1);
    for (int s = 0, k = 0; s < steps; s++)
        for (int l = 0; l < layers; l++)
            for (int c = 0; c < CALLS; c++, k++) {
                uint32_t buffer = turns == 2   ? chance(&p, buffers)   /* any */
                                  : turns == 1 ? (uint32_t)k % buffers /* one after the other */
                                               : (uint32_t)(l * CALLS + c) % buffers;
                uint64_t weights = 0x7f0000000000u + (uint64_t)((same_weights ? 0 : l * CALLS) + c) * 65536;
                call(&p, c, weights, 0x560000000000u + (uint64_t)buffer * 4096,
                     0x560000000000u + (uint64_t)((buffer + 1) % buffers) * 4096);
            }
    assert_int_equal(bz_trace_finish(p.t, NULL, &err), 0);
    uint32_t n = p.t->n_iterations;
    bz_trace_free(p.t);
    return n;
}

static void weights_tell_steps_from_layers(void **state)
{
    (void)state;
    int wrong = 0, tried = 0;
    for (int layers = 2; layers <= 24; layers += 1 + layers / 4)
        for (int steps = 1; steps <= 40; steps += 1 + steps / 3, tried++)
            if (found(layers, steps, false, (uint32_t)(100 * layers + steps)) != (uint32_t)steps &&
                !(steps == 1 && layers < 3)) {
                print_message("%d layers, %d steps: %u\n", layers, steps,
                              found(layers, steps, false, (uint32_t)(100 * layers + steps)));
                wrong++;
            }
    assert_true(tried > 80);
    assert_int_equal(wrong, 0);
}

static void layers_of_the_same_weights_are_not_told(void **state)
{
    (void)state;
    assert_int_equal(found(6, 5, true, 3), 30);
}

/* Tracing reads its inputs where the allocator puts them, and what is optimized reads weights that a call has written before: few calls
 * read another place each time, and those tell nothing of how often the layers ran. */
static void inputs_elsewhere_are_no_layers(void **state)
{
    enum { TRACED = 5, RUNS = 6, LAYERS = 3 };
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        bz_error err;
        program p = {.t = bz_trace_new(), .now = 1000000, .seed = seed};
        uint32_t source = bz_trace_source(p.t, "a", "capture");
        uint64_t fresh = 0x560000000000u, ordered = 0x570000000000u, input = 0x7e0000000000u,
                 elsewhere = 0x590000000000u;
        p.t->source[source].events = 1;
        p.lane = bz_trace_thread(p.t, source, 1, 1);
        for (int s = 0; s < TRACED; s++)
            for (int l = 0; l < LAYERS; l++) {
                fresh += 4096 * (1 + chance(&p, 9));
                call(&p, 2 * l, 0x7f0000000000u + (uint64_t)l * 65536, 0, fresh);
                call(&p, 2 * l + 1, fresh, elsewhere += 65536, fresh);
            }
        for (int l = 0; l < LAYERS; l++)
            call(&p, 2 * l, 0x7f0000000000u + (uint64_t)l * 65536, 0, ordered + (uint64_t)l * 65536);
        for (int s = 0; s < RUNS; s++)
            for (int l = 0; l < LAYERS; l++)
                call(&p, 20 + l, ordered + (uint64_t)l * 65536, l ? 0x580000000000u : input, 0x580000000000u);
        assert_int_equal(bz_trace_finish(p.t, NULL, &err), 0);
        uint32_t steady = 0;
        for (uint32_t i = 0; i < p.t->n_iterations; i++)
            steady += !p.t->iteration[i].warm_up;
        assert_in_range(steady, RUNS - 2, RUNS);
        bz_trace_free(p.t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_tell_steps_from_layers),
        cmocka_unit_test(layers_of_the_same_weights_are_not_told),
        cmocka_unit_test(inputs_elsewhere_are_no_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
