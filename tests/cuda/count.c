/* Counters through CUPTI's range profiler: the exact sequence of calls, what becomes of the values, and each refusal, with
 * stand-ins for CUPTI and the CUDA runtime. */
#include "runtime/cuda/cuda.h"
#include "runtime/gpus.h"
#include "tests/standin/cupti.h"
#include "tests/standin/record.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cupti_result.h>

static int broken; /* the call that fails, from 1 on */
static int calls;

static int execute(bz_variant *v, int copy)
{
    (void)v, (void)copy;
    standin_record("call");
    return ++calls == broken ? -1 : 0;
}

static int wait_for_all(bz_variant *v)
{
    (void)v;
    standin_record("wait");
    return 0;
}

static const bz_backend backend = {.name = "known", .execute = execute, .wait = wait_for_all};

static void keep(const char *line)
{
    standin_record("%s", line);
}

static int count(const char *list, bool cold, bz_counted *out, bz_error *err)
{
    static char flush[64];
    bz_variant v = {.backend = &backend};
    bz_cuda c = {.cold = cold, .flush = flush, .flush_size = sizeof flush};
    standin_reset();
    standin_counters_listen(keep);
    calls = 0;
    return bz_cuda_count(&c, &v, list, out, err);
}

static double value(const bz_counted *c, const char *what)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->item[i].what, what))
            return c->item[i].value;
    return -1;
}

#define PASS(last)                                                                                                     \
    "RangeProfilerStart\nRangeProfilerPushRange call\ncall\nwait\nRangeProfilerPopRange\n"                             \
    "RangeProfilerStop all=" last "\n"
#define CONFIGURE                                                                                                      \
    "RangeProfilerEnable\nRangeProfilerGetCounterDataSize ranges=1\nRangeProfilerCounterDataImageInitialize\n"         \
    "RangeProfilerSetConfig range=user replay=user ranges=1 levels=1 from=1 target=1 pass=0\n"
#define ROUND                                                                                                          \
    CONFIGURE PASS("0") PASS("1") "RangeProfilerDecodeData\nHostEvaluateToGpuValues range=0\nRangeProfilerDisable\n"
#define BEGIN                                                                                                          \
    "ProfilerInitialize\nDeviceGetChipName device=0\nProfilerGetCounterAvailability size\n"                            \
    "ProfilerGetCounterAvailability image\nHostInitialize chip=GH100\n"
#define END "HostDeinitialize\nProfilerDeInitialize\n"

static void calls_in_order(void **state)
{
    bz_counted c;
    bz_error err = {0};
    (void)state;
    assert_int_equal(count("kernels,dram,occupancy", false, &c, &err), 0);
    assert_string_equal(bz_buf_text(&standin_text),
                        BEGIN "HostConfigAddMetrics dram__bytes_read.sum dram__bytes_write.sum "
                              "sm__warps_active.avg.pct_of_peak_sustained_active\n"
                              "HostGetConfigImage\ncall\ncall\ncall\nwait\n" ROUND ROUND ROUND END);
    assert_int_equal(c.calls, 3);
    assert_int_equal(c.passes, 2);
    assert_int_equal(c.n, 3);
    assert_true(fabs(value(&c, "dram_read") - 1) < 1e-9); /* the median of the rounds */
    assert_true(fabs(value(&c, "dram_write") - 2) < 1e-9);
    assert_true(fabs(value(&c, "occupancy") - 0.03) < 1e-9);
}

/* Nine of threads with weights 1 1 2 three times, then the tensor cores': fp16, bf16, tf32, fp64, int8, fp8. */
static void sums_with_weights(void **state)
{
    bz_counted c;
    bz_error err = {0};
    (void)state;
    assert_int_equal(count("flops", false, &c, &err), 0);
    assert_int_equal(c.n, 2);
    double tensor = 10 + 11 + 12 + 13 + 14 + 15, threads = 1 + 2 + 2 * 3 + 4 + 5 + 2 * 6 + 7 + 8 + 2 * 9;
    assert_true(fabs(value(&c, "tensor_flops") - tensor) < 1e-9);
    assert_true(fabs(value(&c, "flops") - tensor - threads) < 1e-9);
}

static void takes_names(void **state)
{
    bz_counted c;
    bz_error err = {0};
    (void)state;
    assert_int_equal(count("lts__t_bytes.sum,dram,dram__bytes_read.sum", false, &c, &err), 0);
    assert_int_equal(c.n, 4);
    assert_true(fabs(value(&c, "lts__t_bytes.sum") - 1) < 1e-9);
    assert_true(fabs(value(&c, "dram_read") - 2) < 1e-9);
    assert_true(fabs(value(&c, "dram__bytes_read.sum") - 2) < 1e-9); /* counted once, said twice */
    assert_int_equal(count("lts__nonsense.sum", false, &c, &err), -1);
    assert_string_equal(err.text, "the chip GH100 has no counter 'lts__nonsense.sum'");
    assert_int_equal(c.calls + c.n, 0);
}

static void flushes_when_cold(void **state)
{
    bz_counted c;
    bz_error err = {0};
    (void)state;
    assert_int_equal(count("dram", true, &c, &err), 0);
    const char *flush = strstr(bz_buf_text(&standin_text), "cudaMemsetAsync"),
               *start = strstr(bz_buf_text(&standin_text), "RangeProfilerStart"),
               *config = strstr(bz_buf_text(&standin_text), "RangeProfilerSetConfig");
    assert_true(flush && config < flush && flush < start); /* not among what is counted */
    int n = 0;
    for (const char *at = flush; at; at = strstr(at + 1, "cudaMemsetAsync"))
        n++;
    assert_int_equal(n, 6); /* each pass of each round */
}

static void chips_differ(void **state)
{
    bz_counted c;
    bz_error err = {0};
    (void)state;
    setenv("STANDIN_CHIP", "GB202", 1);
    assert_int_equal(count("dram", false, &c, &err), 0);
    assert_non_null(
        strstr(bz_buf_text(&standin_text), "AddMetrics dram__bytes_op_read.sum dram__bytes_op_write.sum\n"));
    setenv("STANDIN_CHIP", "GB10B", 1);
    assert_int_equal(count("dram", false, &c, &err), -1);
    assert_string_equal(err.text, "no counters of the chip GB10B are known for 'dram': name counters themselves");
    setenv("STANDIN_CHIP", "XY100", 1); /* of the future */
    assert_int_equal(count("flops", false, &c, &err), -1);
    assert_non_null(strstr(err.text, "XY100"));
    unsetenv("STANDIN_CHIP");
}

/* Whichever function refuses: a sentence, and all that was begun is ended. */
static void ends_what_it_began(void **state)
{
    static const char *const FUNCTIONS[] = {
        "cuptiProfilerInitialize",
        "cuptiDeviceGetChipName",
        "cuptiProfilerGetCounterAvailability",
        "cuptiProfilerHostInitialize",
        "cuptiProfilerHostGetMetricProperties",
        "cuptiProfilerHostConfigAddMetrics",
        "cuptiProfilerHostGetConfigImageSize",
        "cuptiProfilerHostGetConfigImage",
        "cuptiProfilerHostGetNumOfPasses",
        "cuptiRangeProfilerEnable",
        "cuptiRangeProfilerGetCounterDataSize",
        "cuptiRangeProfilerCounterDataImageInitialize",
        "cuptiRangeProfilerSetConfig",
        "cuptiRangeProfilerStart",
        "cuptiRangeProfilerPushRange",
        "cuptiRangeProfilerPopRange",
        "cuptiRangeProfilerStop",
        "cuptiRangeProfilerDecodeData",
        "cuptiRangeProfilerGetCounterDataInfo",
        "cuptiProfilerHostEvaluateToGpuValues",
    };
    bz_counted c;
    char what[96], text[160];
    (void)state;
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
        bz_error err = {0};
        snprintf(what, sizeof what, "%s:%d", FUNCTIONS[i], CUPTI_ERROR_NOT_INITIALIZED);
        setenv("STANDIN_CUPTI_FAIL", what, 1);
        assert_int_equal(count("dram", false, &c, &err), -1);
        snprintf(text, sizeof text, "CUPTI does not count (%s): CUPTI_ERROR_NOT_INITIALIZED", FUNCTIONS[i]);
        assert_string_equal(err.text, text);
        assert_int_equal(c.calls + c.n, 0);
        const char *did = bz_buf_text(&standin_text);
        assert_int_equal(!strstr(did, "RangeProfilerEnable"), !strstr(did, "RangeProfilerDisable"));
        assert_int_equal(!strstr(did, "HostInitialize"), !strstr(did, "HostDeinitialize"));
        assert_int_equal(!strstr(did, "ProfilerInitialize"), !strstr(did, "ProfilerDeInitialize"));
    }
    unsetenv("STANDIN_CUPTI_FAIL");
}

static void says_what_to_do(void **state)
{
    static const struct {
        int status;
        const char *text;
    } CASES[] = {
        {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "NVreg_RestrictProfilingToAdminUsers=0"},
        {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, "hypervisor"},
        {CUPTI_ERROR_HARDWARE_BUSY, "dcgmi profile --pause"},
        {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "another profiler"},
    };
    bz_counted c;
    char what[96];
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_error err = {0};
        snprintf(what, sizeof what, "cuptiRangeProfilerEnable:%d", CASES[i].status);
        setenv("STANDIN_CUPTI_FAIL", what, 1);
        assert_int_equal(count("dram", false, &c, &err), -1);
        assert_non_null(strstr(err.text, CASES[i].text));
        unsetenv("STANDIN_CUPTI_FAIL");
    }
}

static void refuses_what_says_nothing(void **state)
{
    bz_counted c;
    bz_error err = {0};
    (void)state;
    setenv("STANDIN_RANGES", "0", 1);
    assert_int_equal(count("dram", false, &c, &err), -1);
    assert_string_equal(err.text, "CUPTI counted 0 ranges instead of one");
    unsetenv("STANDIN_RANGES");
    setenv("STANDIN_ENDLESS", "1", 1);
    assert_int_equal(count("dram", false, &c, &err), -1);
    assert_string_equal(err.text, "CUPTI wants more than the 2 passes that it announced");
    unsetenv("STANDIN_ENDLESS");
    setenv("STANDIN_DROPS", "1", 1);
    assert_int_equal(count("dram", false, &c, &err), -1);
    assert_string_equal(err.text, "CUPTI dropped 1 of the ranges that it counted");
    unsetenv("STANDIN_DROPS");
    for (broken = 1; broken <= 9; broken += 4) { /* while it warms up; in the first round; in the third */
        assert_int_equal(count("dram", false, &c, &err), -1);
        assert_non_null(strstr(err.text, broken == 1 ? "failed before it was counted" : "failed while it was counted"));
    }
    broken = 0;
    assert_int_equal(count("dram", false, &c, &err), 0);
}

/* The stand-in has 1 GiB, and every pair of events is 1 ms apart. */
static void measures_a_copy(void **state)
{
    bz_cuda c = {.flush_size = (size_t)2 << 20};
    (void)state;
    standin_reset();
    assert_true(fabs(bz_cuda_copy_bandwidth(&c) * 1e-3 - 2 * (double)(128 << 20)) < 1);
    int copies = 0;
    for (const char *at = bz_buf_text(&standin_text); (at = strstr(at, "device-device")); at++)
        copies++;
    assert_int_equal(copies, 8);
    assert_non_null(strstr(bz_buf_text(&standin_text), "cudaFree"));
    c.flush_size = (size_t)128 << 20; /* the cache could hold half of it */
    assert_true(isnan(bz_cuda_copy_bandwidth(&c)));
}

static void run_kernel(void)
{
    standin_kernel("bz_empty", 1200, 1, 1);
}

/* From one kernel to the next 2 µs pass, of which CUPTI sees 1.2 in the kernel. The pair of events has 1 ms of its own. */
static void measures_the_gap_between_kernels(void **state)
{
    bz_run_setting setting = {.threads = 1};
    bz_cuda c;
    bz_error err = {0};
    (void)state;
    standin_reset();
    assert_int_equal(bz_cuda_open(&c, &setting, &err), 0);
    assert_true(isnan(bz_cuda_gap(&c))); /* CUPTI sees no kernel: what it takes itself is not known */
    standin_launched = run_kernel;
    standin_launch_ms = 0.002f;
    assert_int_equal(lround(bz_cuda_gap(&c) * 1e9), 800);
    standin_launched = NULL;
    standin_launch_ms = 0;
    bz_cuda_close(&c);
    c = (bz_cuda){0};
    assert_true(isnan(bz_cuda_gap(&c))); /* there is no empty kernel */
}

/* A person has to know which of the two to change. */
static void says_which_driver_is_too_old(void **state)
{
    bz_run_setting setting = {.threads = 1};
    bz_cuda c;
    bz_error err = {0};
    char text[200];
    (void)state;
    standin_reset();
    standin_driver = 12080;
    assert_int_equal(bz_cuda_open(&c, &setting, &err), -1);
    snprintf(text, sizeof text, "the NVIDIA driver runs CUDA 12.8, this is CUDA %d: install", CUDART_VERSION / 1000);
    assert_non_null(strstr(err.text, text));
    standin_driver = 0;
    assert_int_equal(bz_cuda_open(&c, &setting, &err), -1);
    assert_string_equal(err.text, "no GPU can be used: the NVIDIA driver is missing");
    standin_reset();
}

/* A device that others hold, or a driver that is half there, is a sentence with advice, never the end of the process: what the driver
 * says first it says again. */
static void says_why_it_cannot_be_opened(void **state)
{
    static const struct {
        cudaError_t status;
        const char *words;
    } CASES[] = {
        {cudaErrorMemoryAllocation, "its memory is full"},
        {cudaErrorDevicesUnavailable, "EXCLUSIVE_PROCESS"},
        {cudaErrorSystemNotReady, "nvidia-fabricmanager"},
        {cudaErrorSystemDriverMismatch, "of another driver"},
        {cudaErrorCompatNotSupportedOnDevice, "cuda-compat"},
        {cudaErrorStubLibrary, "the toolkit's stub"},
        {cudaErrorUnknown, "nvidia_uvm"},
        {cudaErrorInvalidValue, "no GPU can be used: "},
    };
    bz_run_setting setting = {.threads = 1};
    bz_cuda c;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_error err = {0};
        standin_reset();
        standin_refuses = standin_sticky = (int)CASES[i].status;
        assert_int_equal(bz_cuda_open(&c, &setting, &err), -1);
        assert_int_equal(err.code, BZ_FAILED);
        assert_non_null(strstr(err.text, CASES[i].words));
        assert_ptr_equal(strstr(err.text, "no GPU can be used: "), err.text);
    }
    bz_error err = {0};
    standin_reset();
    standin_devices = 0;
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    assert_int_equal(bz_cuda_open(&c, &setting, &err), -1);
    assert_non_null(strstr(err.text, "CUDA_VISIBLE_DEVICES is '7'"));
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(bz_gpu_choose("7", &err), 0);
    assert_int_equal(bz_cuda_open(&c, &setting, &err), -1);
    assert_non_null(strstr(err.text, "there is no GPU 7 (--device)"));
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("BENANZA_DEVICE");
    assert_int_equal(bz_cuda_open(&c, &setting, &err), -1);
    assert_non_null(strstr(err.text, "this machine has no GPU"));
    standin_reset();
}

/* What others hold is there again when they have ended: such a record is measured again. What the device does not have, or the person does
 * not allow, stays so. */
static void tells_a_full_device_from_a_small_one(void **state)
{
    bz_cuda c = {.memory = 1000, .workspace_limit = 100};
    bz_error err = {0};
    (void)state;
    standin_reset();
    assert_int_equal(bz_cuda_workspace(&c, 900, &err), -1);
    assert_int_equal(err.code, BZ_FAILED);
    assert_non_null(strstr(err.text, "out of device memory"));
    assert_int_equal(bz_cuda_workspace(&c, 901, &err), -1);
    assert_int_equal(err.code, BZ_INCOMPLETE);
    c.limited = true;
    assert_int_equal(bz_cuda_workspace(&c, 900, &err), -1);
    assert_int_equal(err.code, BZ_INCOMPLETE);
}

/* How a process ends that the error is reported in: by a signal, where the device is lost to it. */
static int signal_of(cudaError_t status, int sticky)
{
    int how = 0;
    pid_t child = fork();
    if (!child) {
        bz_error err = {0};
        standin_sticky = sticky;
        close(STDERR_FILENO);
        _exit(bz_cuda_failed(&err, "running", status) == -1 && err.code == BZ_FAILED ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &how, 0) == child);
    return WIFSIGNALED(how) ? WTERMSIG(how) : -WEXITSTATUS(how);
}

static void ends_where_an_error_stays(void **state)
{
    (void)state;
    assert_int_equal(signal_of(cudaErrorInvalidValue, 0), 0);
    assert_int_equal(signal_of(cudaErrorIllegalAddress, 0), SIGABRT);         /* known to stay */
    assert_int_equal(signal_of(cudaErrorInvalidValue, 700), SIGABRT);         /* something before it did */
    assert_int_equal(signal_of(cudaErrorUnknown, cudaErrorUnknown), SIGABRT); /* nobody knows, but it stays */
    assert_int_equal(signal_of(cudaErrorInvalidValue, cudaErrorStreamCaptureUnsupported), 0);
}

static int refused(void *context)
{
    (void)context;
    return -1;
}

/* A call that the library refuses may have broken the device with what it did before: the device is asked at once, so that the next
 * variant is not blamed for it. */
static void asks_the_device_behind_a_call_that_failed(void **state)
{
    static const int STICKY[] = {0, cudaErrorIllegalAddress};
    (void)state;
    for (size_t i = 0; i < sizeof STICKY / sizeof *STICKY; i++) {
        int how = 0;
        pid_t child = fork();
        if (!child) {
            bz_cuda c = {0};
            bz_cuda_run r = {.cuda = &c, .call = refused};
            standin_sticky = STICKY[i];
            close(STDERR_FILENO);
            _exit(bz_cuda_run_execute(&(bz_variant){.state = &r}, 0) == -1 ? 0 : 1);
        }
        assert_true(child > 0 && waitpid(child, &how, 0) == child);
        assert_int_equal(how, STICKY[i] ? SIGABRT : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_in_order),
        cmocka_unit_test(sums_with_weights),
        cmocka_unit_test(takes_names),
        cmocka_unit_test(flushes_when_cold),
        cmocka_unit_test(chips_differ),
        cmocka_unit_test(ends_what_it_began),
        cmocka_unit_test(says_what_to_do),
        cmocka_unit_test(refuses_what_says_nothing),
        cmocka_unit_test(measures_a_copy),
        cmocka_unit_test(says_which_driver_is_too_old),
        cmocka_unit_test(says_why_it_cannot_be_opened),
        cmocka_unit_test(tells_a_full_device_from_a_small_one),
        cmocka_unit_test(ends_where_an_error_stays),
        cmocka_unit_test(asks_the_device_behind_a_call_that_failed),
        cmocka_unit_test(measures_the_gap_between_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
