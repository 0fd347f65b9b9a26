/* What is made of CUPTI's records: with a stand-in for CUPTI, of a variant whose kernels we know. */
#include "runtime/cuda/cuda.h"
#include "tests/standin/cupti.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

/* Call i runs `per_call` kernels; the first takes 1000 + 10·(i % 3) ns, number k of them k µs more. */
static int per_call, calls, uneven, broken, sets;

static int execute(bz_variant *v, int copy)
{
    static const char *const NAMES[] = {"gemm", "splitk_reduce"};
    (void)v, (void)copy;
    assert_true(standin_cupti_traces());
    int n = per_call + (uneven && calls == 5);
    for (int k = 0; k < n; k++)
        standin_kernel(NAMES[k > 0], (uint64_t)(1000 + 10 * (calls % 3) + 1000 * k), 7, 128);
    for (int k = 0; k < sets; k++)
        standin_set(500);
    calls++;
    return broken;
}

static int wait_for_all(bz_variant *v)
{
    (void)v;
    return 0;
}

static const bz_backend backend = {.name = "known", .execute = execute, .wait = wait_for_all};

static int trace(int kernels, bz_trace *out, bz_error *err)
{
    bz_variant v = {.backend = &backend};
    per_call = kernels;
    calls = 0;
    return bz_cuda_trace(&v, out, err);
}

static long ns(double seconds)
{
    return lround(1e9 * seconds);
}

static void sums_up(void **state)
{
    bz_trace t;
    bz_error err = {0};
    (void)state;
    for (int room = 0; room < 4; room += 3) { /* all in one buffer, and over several */
        standin_cupti_room(room);
        assert_int_equal(trace(2, &t, &err), 0);
        assert_int_equal(t.n_kernels, 2);
        assert_true(t.calls > 0 && t.calls < calls); /* some warmed up */
        assert_string_equal(t.kernel[0].name, "gemm");
        assert_string_equal(t.kernel[1].name, "splitk_reduce");
        assert_int_equal(ns(t.kernel[0].seconds), 1010); /* the median */
        assert_int_equal(ns(t.kernel[1].seconds), 2010);
        assert_int_equal(ns(t.seconds), 3020);
        assert_int_equal(t.kernel[0].grid[0] * 100 + t.kernel[0].grid[1] * 10 + t.kernel[0].grid[2], 723);
        assert_int_equal(t.kernel[0].block[0], 128);
        assert_int_equal(t.kernel[0].registers, 40);
        assert_int_equal(t.kernel[0].shared, 2560);
        assert_false(standin_cupti_traces());
    }
}

static void keeps_the_first_of_many(void **state)
{
    bz_trace t;
    bz_error err = {0};
    (void)state;
    assert_int_equal(trace(12, &t, &err), 0);
    assert_int_equal(t.n_kernels, 12);
    assert_int_equal(ns(t.kernel[BZ_MAX_KERNELS - 1].seconds), 1000 * BZ_MAX_KERNELS + 10);
    assert_int_equal(ns(t.seconds), 12 * 1010 + 66000);
}

/* Kernels of a few lengths, each a while before or behind the end of the one before it, as branches of a CUDA graph and
 * launches that need not wait have it: the device is busy for the nanoseconds in which any of them runs. */
enum { KERNELS = 6, LONGEST = 400, SPAN = 2 * KERNELS * LONGEST };
static int64_t length[KERNELS], pause[KERNELS];

static int execute_overlapping(bz_variant *v, int copy)
{
    (void)v, (void)copy;
    for (int k = 0; k < KERNELS; k++) {
        standin_cupti_pause(pause[k]);
        standin_kernel("any", (uint64_t)length[k], 1, 32);
    }
    standin_cupti_pause(100);
    standin_kernel("last", SPAN, 1, 32); /* calls are apart */
    return 0;
}

static void is_busy_while_any_kernel_runs(void **state)
{
    const bz_backend overlapping = {.name = "overlapping", .execute = execute_overlapping, .wait = wait_for_all};
    bz_variant v = {.backend = &overlapping};
    bz_trace t;
    bz_error err = {0};
    bool overlaps = false;
    (void)state;
    srand(19);
    for (int n = 0; n < 50; n++) {
        bool runs[2 * SPAN] = {false};
        int64_t at = 0, busy = 0, sum = SPAN, end = 0;
        for (int k = 0; k < KERNELS; k++) {
            length[k] = 1 + rand() % LONGEST;
            pause[k] = rand() % LONGEST - length[k] * (rand() % 2);
            for (int64_t i = at; i < at + length[k]; i++)
                runs[i] = true;
            sum += length[k];
            end = at + length[k] > end ? at + length[k] : end;
            at += length[k] + pause[k];
        }
        for (int64_t i = at; i < at + SPAN; i++)
            runs[i] = true;
        for (int64_t i = 0; i < 2 * SPAN; i++)
            busy += runs[i];
        assert_int_equal(bz_cuda_trace(&v, &t, &err), 0);
        assert_int_equal(ns(t.seconds), busy);
        assert_true(busy <= sum && busy <= (at + SPAN > end ? at + SPAN : end)); /* what events would say */
        overlaps |= busy < sum;
    }
    assert_true(overlaps);
}

/* The device is busy with it: a time without it is too short. */
static void counts_what_is_done_to_memory(void **state)
{
    bz_trace t;
    bz_error err = {0};
    (void)state;
    sets = 1;
    assert_int_equal(trace(1, &t, &err), 0);
    sets = 0;
    assert_int_equal(t.n_kernels, 2);
    assert_string_equal(t.kernel[1].name, "memset");
    assert_int_equal(ns(t.seconds), 1510);
}

/* A profiler that sees nothing, or has no times of what it sees, must not make calls that take no time. */
static void takes_no_call_without_times(void **state)
{
    bz_trace t;
    bz_error err = {0};
    (void)state;
    assert_int_equal(trace(0, &t, &err), -1);
    assert_string_equal(err.text, "CUPTI saw 0 kernels in 10 calls, 0 of them without a time");
    assert_true(!t.calls && t.seconds == 0);
    for (int backwards = 0; backwards < 2; backwards++) {
        standin_cupti_untimed(1, backwards);
        assert_int_equal(trace(2, &t, &err), -1);
        assert_string_equal(err.text, "CUPTI saw 20 kernels in 10 calls, 20 of them without a time");
        assert_int_equal(t.calls, 0);
    }
    standin_cupti_untimed(0, 0);
    assert_int_equal(trace(1, &t, &err), 0);
}

static void refuses_what_says_nothing(void **state)
{
    bz_trace t;
    bz_error err = {0};
    (void)state;
    uneven = 1;
    assert_int_equal(trace(1, &t, &err), -1);
    assert_non_null(strstr(err.text, "10 calls ran 11 kernels"));
    uneven = 0;
    broken = 1;
    assert_int_equal(trace(1, &t, &err), -1);
    assert_false(standin_cupti_traces());
    assert_int_equal(t.calls, 0);
    broken = 0;
    assert_int_equal(trace(1, &t, &err), 0);
}

/* What is lost once is lost for one variant. */
static void recovers_from_a_lost_buffer(void **state)
{
    bz_trace t;
    bz_error err = {0};
    (void)state;
    standin_cupti_lose();
    assert_int_equal(trace(1, &t, &err), -1);
    assert_int_equal(trace(1, &t, &err), 0);
    assert_int_equal(t.n_kernels, 1);
}

static void says_what_to_do_without_permission(void **state)
{
    bz_trace t;
    bz_error err = {0};
    (void)state;
    setenv("STANDIN_CUPTI", "refuse", 1);
    assert_int_equal(trace(1, &t, &err), -1);
    assert_non_null(strstr(err.text, "NVreg_RestrictProfilingToAdminUsers=0"));
    setenv("STANDIN_CUPTI", "broken", 1);
    assert_int_equal(trace(1, &t, &err), -1);
    assert_string_equal(err.text, "CUPTI does not trace: CUPTI_ERROR_NOT_INITIALIZED");
    assert_int_equal(calls, 0);
    unsetenv("STANDIN_CUPTI");
}

static bool is_place(const char *runtime, const char *home, const char *wanted)
{
    char path[512];
    bool found = false;
    for (size_t i = 0; bz_cupti_place(i, runtime, home, path, sizeof path); i++)
        found |= !strncmp(path, wanted, strlen(wanted)) && strstr(path, "libcupti.so.") == path + strlen(wanted);
    return found;
}

static void looks_beside_the_runtime(void **state)
{
    const char *const wheel = "/v/nvidia/cuda_runtime/lib/", *const toolkit = "/opt/cuda/targets/x86_64-linux/lib/";
    (void)state;
    assert_true(is_place("", NULL, "") && is_place("", NULL, "/usr/local/cuda/extras/CUPTI/lib64/"));
    assert_true(is_place(wheel, NULL, "/v/nvidia/cuda_runtime/lib/../../cuda_cupti/lib/"));
    assert_true(is_place("/v/nvidia/cu13/lib/", NULL, "/v/nvidia/cu13/lib/"));
    assert_true(is_place(toolkit, NULL, "/opt/cuda/targets/x86_64-linux/lib/../../../extras/CUPTI/lib64/"));
    assert_true(is_place("", "/home/cuda", "/home/cuda/extras/CUPTI/lib64/"));
    assert_false(is_place("", NULL, "../extras/CUPTI/lib64/"));
}

/* CUPTI schedules counters with a library that it looks for on the loader's path, where it need not be. */
static void opens_what_lies_beside(void **state)
{
    bz_trace t;
    bz_error err = {0};
    (void)state;
    assert_int_equal(trace(1, &t, &err), 0);
    assert_non_null(dlopen("libnvperf_host.so", RTLD_NOW | RTLD_NOLOAD));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_up),
        cmocka_unit_test(keeps_the_first_of_many),
        cmocka_unit_test(is_busy_while_any_kernel_runs),
        cmocka_unit_test(counts_what_is_done_to_memory),
        cmocka_unit_test(takes_no_call_without_times),
        cmocka_unit_test(refuses_what_says_nothing),
        cmocka_unit_test(recovers_from_a_lost_buffer),
        cmocka_unit_test(says_what_to_do_without_permission),
        cmocka_unit_test(looks_beside_the_runtime),
        cmocka_unit_test(opens_what_lies_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
