/* A device as the runtime describes it, in the words that it writes: it has its hardware bound and its matrix units. */
#include "explain/explain.h"
#include "runtime/gpus.h"
#include "tests/unit/device_lines.h"
#include "tests/unit/explain_trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_device(void **state)
{
    static const struct { /* what counts: the device's own, else its data sheet's */
        double cache, clock;
        const char *unit;
    } EXPECTED[N_DEVICE_LINES] = {
        {6 << 20, 1530e6, "Tensor Cores"}, {62914560, 2e9, "Tensor Cores"}, {128 << 20, 1531e6, NULL}};
    (void)state;
    for (size_t i = 0; i < N_DEVICE_LINES; i++) {
        bz_arena arena = {0};
        bz_trace *trace = bz_trace_new();
        bz_line line;
        bz_error err;
        bz_gpu sheet;
        bz_peaks peaks;
        bz_units units;
        bool memory;
        bz_layer layer = {.kind = "gemm", .flops = 2000000000, .bytes = 1000, .priced = true};
        const char *text = DEVICE_LINES[i].line, *unit = EXPECTED[i].unit;
        assert_int_equal(bz_line_parse(text, strlen(text) - 1, &arena, &line, &err), 0);
        const bz_system_facts *facts = bz_system_facts_read(line.details, &arena);
        assert_true(facts->gpu && bz_gpu_find(facts->name, &sheet));
        assert_string_equal(facts->name, DEVICE_LINES[i].name);
        bz_peaks_read(facts, &(bz_setting){1, BZ_CACHE_HOT, ""}, &arena, &peaks);
        assert_null(peaks.why);
        assert_true(peaks.bandwidth[1].bytes == EXPECTED[i].cache && peaks.bandwidth[1].rate == sheet.bandwidth);
        double rate = sheet.rate[1] * EXPECTED[i].clock / sheet.clock;
        assert_true(fabs(bz_peaks_roofline(&peaks, &layer, BZ_UNDEFINED, &memory) * rate / 2e9 - 1) < 1e-6);
        bz_units_look(&(bz_bound){.facts = facts}, trace, NULL, NULL, &arena, &units);
        assert_true(units.unit ? unit && !strcmp(units.unit, unit) : !unit);
        bz_trace_free(trace);
        bz_arena_free(&arena);
    }
}

/* Two virtual machines are an "AMD EPYC" both. The bound of one is no defect because the other one took less. */
static void test_another_processor(void **state)
{
    static const event EVENTS[] = {{BZ_EVENT_CALL, "convolution", 10, 400}};
    static const struct {
        const char *isa, *variant, *ran_on;
    } CASES[] = {{"SSE41 AVX AVX2", "jit:avx512_core", "another processor, with AVX-512"},
                 {"SSE41 AVX AVX2", "jit:avx2", NULL},
                 {"AVX2 AVX512_CORE", "brgconv:avx512_core", NULL},
                 {"AVX2 AVX512_CORE", "brgconv:avx512_core_amx", "another processor, with AMX"},
                 {"", "jit:avx512_core", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_trace *t = trace_of(EVENTS, 1);
        bz_arena arena = {0};
        bz_dag dag = {.n = 1};
        bz_layers layers = {0};
        bz_system_facts facts = bz_system_unknown;
        facts.isa = CASES[i].isa;
        const bz_bound bound = {.system = "here",
                                .facts = &facts,
                                .layers = &layers,
                                .dag = &dag,
                                .sequential = 2e-3,
                                .path.seconds = 2e-3};
        bz_ladder l;
        for (size_t k = 0; k < t->event[BZ_EVENT_CALL].n; k++) {
            t->event[BZ_EVENT_CALL].library[k] = BZ_LIBRARY_ONEDNN;
            t->event[BZ_EVENT_CALL].variant[k] = bz_trace_text(t, CASES[i].variant);
        }
        bz_ladder_make(&bound, t, "made up", &arena, &l);
        assert_int_equal(!l.ran_on, !CASES[i].ran_on);
        assert_true(!l.ran_on || !strcmp(l.ran_on, CASES[i].ran_on));
        assert_int_equal(!l.defect, !!l.ran_on); /* 1 ms was measured, the bound is 2 ms */
        bz_trace_free(t);
        bz_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_processor),
        cmocka_unit_test(test_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
