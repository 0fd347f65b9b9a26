/* What cuDNN itself writes into its log, without a device: every field of every block must be read. Where the library is not
 * installed the test is skipped. */
#include "profile/profile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static void *library;

static void *open_library(void)
{
    static const char *const NAMES[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9", "libcudnn.so.8"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !library; i++)
        library = dlopen(NAMES[i], RTLD_NOW);
    return library;
}

/* Calls a function of the library, whose headers need not be here; it returns a status, which does not matter: without a
 * device most of what executes fails, and is logged all the same. */
#define CALL(function, types, ...)                                                                                     \
    do {                                                                                                               \
        int(*f) types = NULL;                                                                                          \
        void *address = dlsym(library, #function);                                                                     \
        memcpy(&f, &address, sizeof f);                                                                                \
        if (f)                                                                                                         \
            f(__VA_ARGS__);                                                                                            \
    } while (0)

static void *descriptors_in_a_thread(void *ignored)
{
    void *x = NULL;
    CALL(cudnnCreateTensorDescriptor, (void **), &x);
    for (int i = 1; i < 20; i++)
        CALL(cudnnSetTensor4dDescriptor, (void *, int, int, int, int, int, int), x, 1, 2, i, 2, 3, 4);
    CALL(cudnnDestroyTensorDescriptor, (void *), x);
    return ignored;
}

/* The enumerations' numbers are cuDNN's: 0 float, 1 NHWC, 1 cross-correlation, 6 Winograd. */
static void classic_api(void)
{
    void *x = NULL, *w = NULL, *conv = NULL, *pool = NULL, *relu = NULL, *lrn = NULL;
    const int dim[] = {2, 3, 17, 19, 23}, stride[] = {22287, 7429, 437, 23, 1}, filter[] = {8, 3, 3, 3, 3};
    const int pad[] = {1, 2, 3}, step[] = {1, 2, 1}, dilation[] = {1, 1, 2};
    int out[5];
    CALL(cudnnCreateTensorDescriptor, (void **), &x);
    CALL(cudnnCreateFilterDescriptor, (void **), &w);
    CALL(cudnnCreateConvolutionDescriptor, (void **), &conv);
    CALL(cudnnCreatePoolingDescriptor, (void **), &pool);
    CALL(cudnnCreateActivationDescriptor, (void **), &relu);
    CALL(cudnnCreateLRNDescriptor, (void **), &lrn);
    CALL(cudnnSetTensorNdDescriptor, (void *, int, int, const int *, const int *), x, 0, 5, dim, stride);
    CALL(cudnnSetFilterNdDescriptor, (void *, int, int, int, const int *), w, 0, 1, 5, filter);
    CALL(cudnnSetConvolutionNdDescriptor, (void *, int, const int *, const int *, const int *, int, int), conv, 3, pad,
         step, dilation, 1, 0);
    CALL(cudnnSetConvolutionMathType, (void *, int), conv, 1);
    CALL(cudnnGetConvolutionNdForwardOutputDim, (void *, void *, void *, int, int *), conv, x, w, 5, out);
    CALL(cudnnSetPooling2dDescriptor, (void *, int, int, int, int, int, int, int, int), pool, 0, 1, 3, 3, 1, 1, 2, 2);
    CALL(cudnnSetActivationDescriptor, (void *, int, int, double), relu, 4, 0, 6.0);
    CALL(cudnnSetLRNDescriptor, (void *, unsigned, double, double, double), lrn, 5, 1e-4, 0.75, 2.0);
    CALL(cudnnConvolutionForward,
         (void *, const void *, void *, const void *, void *, const void *, void *, int, void *, size_t, const void *,
          void *, void *),
         NULL, NULL, x, NULL, w, NULL, conv, 6, NULL, 0, NULL, x, NULL);
}

/* Descriptors, attributes and types have numbers, as in cudnn_graph.h. */
static void graph_api(void)
{
    enum { TENSOR = 17, TYPE = 1, INT64 = 3, ALIGNMENT = 900, DATA_TYPE, DIMENSIONS, STRIDES, UNIQUE = 906 };
    void *tensor = NULL;
    int64_t dim[] = {1, 64, 56, 56}, stride[] = {200704, 3136, 56, 1}, id = 'x', alignment = 16;
    int f32 = 0;
    CALL(cudnnBackendCreateDescriptor, (int, void **), TENSOR, &tensor);
    CALL(cudnnBackendSetAttribute, (void *, int, int, int64_t, const void *), tensor, DATA_TYPE, TYPE, 1, &f32);
    CALL(cudnnBackendSetAttribute, (void *, int, int, int64_t, const void *), tensor, DIMENSIONS, INT64, 4, dim);
    CALL(cudnnBackendSetAttribute, (void *, int, int, int64_t, const void *), tensor, STRIDES, INT64, 4, stride);
    CALL(cudnnBackendSetAttribute, (void *, int, int, int64_t, const void *), tensor, UNIQUE, INT64, 1, &id);
    CALL(cudnnBackendSetAttribute, (void *, int, int, int64_t, const void *), tensor, ALIGNMENT, INT64, 1, &alignment);
    CALL(cudnnBackendFinalize, (void *), tensor);
    CALL(cudnnBackendExecute, (void *, void *, void *), NULL, tensor, tensor);
}

static void program(const char *log)
{
    /* each version has its own name for it */
    setenv("CUDNN_LOGINFO_DBG", "1", 1);
    setenv("CUDNN_LOGLEVEL_DBG", "3", 1);
    setenv("CUDNN_LOGDEST_DBG", log, 1);
    if (!open_library())
        _exit(77);
    pthread_t other[2];
    classic_api();
    for (int i = 0; i < 2; i++)
        pthread_create(&other[i], NULL, descriptors_in_a_thread, NULL);
    graph_api();
    for (int i = 0; i < 2; i++)
        pthread_join(other[i], NULL);
    _exit(0);
}

typedef struct {
    char name[16][64]; /* by depth */
    int fields, calls;
} walk;

/* One line of a block, against the call that it belongs to: "i!     name: type=T; val=V (0);" */
static void compare_line(const bz_trace *t, walk *w, const char *line)
{
    int indent = (int)strspn(line + 2, " "), depth = (indent - 5) / 4;
    const char *name = line + 2 + indent, *colon = strchr(name, ':'), *val = strstr(line, "; val=");
    if (!colon || indent < 5 || depth > 15)
        return;
    snprintf(w->name[depth], sizeof w->name[depth], "%.*s", (int)(colon - name), name);
    if (!val)
        return;
    char expected[256], found[256], path[1024] = "";
    snprintf(expected, sizeof expected, "%s", val + 6);
    expected[strcspn(expected, ";\n")] = 0;
    if (expected[0] >= 'A' && strchr(expected, ' '))
        *strchr(expected, ' ') = 0;
    for (int d = 0; d <= depth; d++) {
        strcat(path, d ? "." : "");
        strcat(path, w->name[d]);
    }
    if (!bz_call_parameter(t, (size_t)w->calls - 1, path, found, sizeof found) || strcmp(found, expected) != 0)
        fail_msg("call %d, %s: %s=%s is not in %s", w->calls, bz_string(t, t->event[BZ_EVENT_CALL].name[w->calls - 1]),
                 path, expected, bz_string(t, t->event[BZ_EVENT_CALL].detail[w->calls - 1]));
    w->fields++;
}

/* Blocks that tell but a status are returns; W! and E! are messages. */
static walk compare(const bz_trace *t, const char *path)
{
    walk w = {0};
    char line[4096], next[4096] = "", function[128];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    bool inside = false;
    while (*next || fgets(next, sizeof next, f)) {
        memcpy(line, next, sizeof line);
        next[0] = 0;
        if (line[1] != '!')
            continue;
        if (line[0] == 'I') {
            if (!fgets(next, sizeof next, f))
                break;
            inside = strncmp(next, "i!     status:", 14) != 0;
            if (!inside)
                continue;
            assert_int_equal(sscanf(strstr(line, "function "), "function %127[^(]", function), 1);
            assert_in_range(w.calls, 0, t->event[BZ_EVENT_CALL].n - 1);
            assert_string_equal(bz_string(t, t->event[BZ_EVENT_CALL].name[w.calls++]), function);
        } else if (line[0] != 'i') {
            inside = false;
        } else if (inside) {
            compare_line(t, &w, line);
        }
    }
    fclose(f);
    return w;
}

static void every_field(void **state)
{
    (void)state;
    char log[] = "/tmp/benanza-cudnn-XXXXXX";
    close(mkstemp(log));
    pid_t child = fork();
    if (!child)
        program(log);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        unlink(log);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 77);
        print_message("skipped: cuDNN is not installed\n");
        skip();
    }
    bz_error err;
    bz_trace *t = bz_trace_new();
    if (bz_profile_read(t, log, &err))
        fail_msg("%s", err.text);
    assert_string_equal(bz_string(t, t->source[0].format), "cuDNN log");
    walk w = compare(t, log);
    assert_int_equal(w.calls, t->event[BZ_EVENT_CALL].n);
    assert_true(w.calls > 50 && w.fields > 200);
    const bz_events *call = &t->event[BZ_EVENT_CALL];
    int convolutions = 0, setters = 0, threads = 0;
    for (size_t i = 0; i < call->n; i++) {
        convolutions += !strcmp(bz_string(t, call->name[i]), "cudnnConvolutionForward") &&
                        call->flags[i] & BZ_CALL_EXECUTES &&
                        !strcmp(bz_string(t, call->variant[i]), "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD");
        setters += !strcmp(bz_string(t, call->name[i]), "cudnnSetTensor4dDescriptor");
        assert_false(!strncmp(bz_string(t, call->name[i]), "cudnnSet", 8) && call->flags[i] & BZ_CALL_EXECUTES);
    }
    for (uint32_t i = 0; i < t->n_lanes; i++)
        threads += t->lane[i].thread > 0;
    assert_int_equal(convolutions, 1);
    assert_int_equal(setters, 2 * 19); /* of two threads, whose blocks take turns */
    assert_int_equal(threads, 3);
    bz_trace_free(t);
    unlink(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_field)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
