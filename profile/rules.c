/* What names mean: library functions and CUDA API functions; kernels.c has the kernels. Rules are rows; the first that
 * matches counts. */
#include "profile/trace.h"

#include <string.h>

typedef struct {
    const char *pattern;
    int meaning;
} rule;

/* The parts between stars, one behind the other. */
static bool parts_match(const char *pattern, const char *end, const char *name, bool start, bool at_end)
{
    for (;;) {
        const char *star = memchr(pattern, '*', (size_t)(end - pattern)), *stop = star ? star : end;
        size_t n = (size_t)(stop - pattern), m = strlen(name);
        if (n > m)
            return false;
        if (start && memcmp(name, pattern, n) != 0)
            return false;
        if (!star && at_end)
            return (!start || m == n) && !memcmp(name + m - n, pattern, n);
        const char *found = start ? name : memmem(name, m, pattern, n);
        if (!star || !found)
            return found != NULL;
        name = found + n;
        pattern = star + 1;
        start = false;
    }
}

static bool pattern_matches(const char *pattern, size_t n, const char *name)
{
    bool start = n && *pattern == '^';
    pattern += start;
    n -= start;
    bool end = n && pattern[n - 1] == '$';
    return parts_match(pattern, pattern + n - end, name, start, end);
}

bool bz_name_matches(const char *pattern, const char *name)
{
    return pattern_matches(pattern, strlen(pattern), name);
}

bool bz_name_matches_any(const char *patterns, const char *name)
{
    for (size_t n; *(patterns += strspn(patterns, " \n")); patterns += n) {
        n = strcspn(patterns, " \n");
        if (pattern_matches(patterns, n, name))
            return true;
    }
    return false;
}

static unsigned pair_at(const char *p)
{
    return ((unsigned char)p[0] * 32u ^ (unsigned char)p[1]) % BZ_NAME_PAIRS;
}

bz_paired_name bz_name_paired(const char *name)
{
    bz_paired_name paired = {.name = name};
    for (; *name && name[1]; name++)
        paired.pairs[pair_at(name) / 64] |= UINT64_C(1) << pair_at(name) % 64;
    return paired;
}

/* The first two letters of a pattern stand somewhere in a name that it matches: mostly they do not. */
static bool may_match(const char *pattern, size_t n, const bz_paired_name *name)
{
    pattern += *pattern == '^';
    if (n < 4 || pattern[0] == '*' || pattern[1] == '*') /* short ones may be an end's mark and a letter */
        return true;
    unsigned pair = pair_at(pattern);
    return name->pairs[pair / 64] >> pair % 64 & 1;
}

bool bz_paired_name_matches_any(const char *patterns, const bz_paired_name *name)
{
    for (size_t n; *patterns; patterns += n + (patterns[n] != 0)) {
        for (n = 0; patterns[n] && patterns[n] != ' ';)
            n++;
        if (n && may_match(patterns, n, name) && pattern_matches(patterns, n, name->name))
            return true;
    }
    return false;
}

int bz_name_answer(bz_name_answers *a, const char *name)
{
    enum { PLACES = sizeof a->known / sizeof *a->known, NEAR = 8 };
    const uint64_t spread = UINT64_C(0x9e3779b97f4a7c15); /* Fibonacci hashing */
    size_t first = (uint64_t)(uintptr_t)name * spread >> 32, at = first % PLACES;
    for (size_t i = first; i < first + NEAR; i++) {
        if (a->known[i % PLACES].name == name)
            return a->known[i % PLACES].answer;
        if (!a->known[i % PLACES].name) {
            at = i % PLACES;
            break;
        }
    }
    a->known[at].name = name;
    a->known[at].answer = a->ask(name);
    return a->known[at].answer;
}

static int lookup(const rule *rules, size_t n, const char *name, int otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (bz_name_matches_any(rules[i].pattern, name))
            return rules[i].meaning;
    return otherwise;
}
#define LOOKUP(rules, name, otherwise) lookup(rules, sizeof(rules) / sizeof *(rules), name, otherwise)

/* cuDNN and cuBLAS functions that enqueue work. Everything about descriptors, handles, heuristics and
 * sizes does not; cudnnFind…Algorithm and cudnnGet… run or ask for trials, not for the layer. */
static const rule EXECUTES[] = {
    {"^cudnnCreate ^cudnnDestroy ^cudnnSet ^cudnnGet ^cudnnFind ^cudnnQuery ^cudnnDerive ^cudnnInit "
     "^cudnnCopyAlgorithm ^cudnnSave ^cudnnRestore",
     0},
    {"^cudnnBackendExecute", 1},
    {"^cudnnBackend ^cudnnDropoutGet ^cudnnBuild ^cudnnMake ^cudnnGraph", 0},
    {"^cudnnTransform ^cudnnReorder ^cudnnAddTensor ^cudnnScaleTensor ^cudnnOpTensor ^cudnnReduceTensor "
     "^cudnnFusedOpsExecute ^cudnnNormalization ^cudnnIm2Col ^cudnnCTCLoss ^cudnnSpatialTf "
     "^cudnnMultiHeadAttn ^cudnnRNN",
     1},
    {"^cudnn", -1}, /* Forward, Backward: below */
    {"^cublasLtMatmulAlgo ^cublasLtMatmulDesc ^cublasLtMatmulPreference", 0},
    {"^cublasLtMatmul", 1},
    {"^cublasLtMatrixTransform", -2},
    {"^cublasLt ^cublasCreate ^cublasDestroy ^cublasGet ^cublasSet ^cublasLogger", 0},
    {"^cublasXt ^cublas", 1},
};

bool bz_call_executes(const char *function)
{
    int meaning = LOOKUP(EXECUTES, function, 0);
    if (meaning == -1)
        return (strstr(function, "Forward") || strstr(function, "Backward")) && !strstr(function, "Size") &&
               !strstr(function, "Descriptor");
    if (meaning == -2)
        return !strstr(function, "Desc");
    return meaning > 0;
}

/* cuDNN functions that may launch a product of matrices. */
static const rule MULTIPLIES[] = {
    {"Convolution RNN Attn ^cudnnBackend ^cudnnFusedOps ^cudnnFind", 1},
};

bool bz_call_multiplies(const char *function)
{
    return LOOKUP(MULTIPLIES, function, 0) > 0;
}

static const rule LIBRARIES[] = {
    {"^cudnn", BZ_LIBRARY_CUDNN},
    {"^cublasLt", BZ_LIBRARY_CUBLASLT},
    {"^cublas", BZ_LIBRARY_CUBLAS},
};

bz_library bz_library_of(const char *function)
{
    return (bz_library)LOOKUP(LIBRARIES, function, BZ_LIBRARY_OTHER);
}

/* nsys appends a version to names: cudaLaunchKernel_v7000. Of other devices: HIP's are named alike, SYCL's urEnqueueKernelLaunch, MTIA's job_prep_and_submit_for_execution, Ascend's Node@launch. */
static const rule APIS[] = {
    {"LaunchKernel LaunchCooperative LaunchHostFunc GraphLaunch EnqueueKernelLaunch EnqueueCommandBuffer "
     "CommandBufferEnqueue Node@launch job_prep_and_submit "
     "^cudaLaunch "
     "^cuLaunch",
     BZ_API_LAUNCHES},
    {"DeviceSynchronize StreamSynchronize EventSynchronize CtxSynchronize ThreadSynchronize QueueSynchronize "
     "HostSynchronize SynchronizeStream SynchronizeDevice SynchronizeEvent QueueFinish ^urEventWait ^piEventsWait",
     BZ_API_WAITS},
};

/* As CUPTI numbers them, by names such as "Memcpy HtoD (Pageable -> Device)" and rocprofv3's MEMORY_COPY_HOST_TO_DEVICE. */
static const rule COPIES[] = {
    {"HostToDevice HtoD H2D HOST_TO_DEVICE", 1},
    {"DeviceToHost DtoH D2H DEVICE_TO_HOST", 2},
    {"DeviceToDevice DtoD D2D DEVICE_TO_DEVICE", 8},
    {"HtoH HOST_TO_HOST", 9},
    {"PtoP P2P", 10},
};
static const rule WAITS[] = {{"Wait", 2}, {"Event", 1}, {"Stream", 3}, {"Context", 4}};

uint32_t bz_copy_named(const char *name)
{
    return (uint32_t)LOOKUP(COPIES, name, 0);
}

uint32_t bz_wait_named(const char *name)
{
    return (uint32_t)LOOKUP(WAITS, name, 0);
}

static int api_named(const char *function)
{
    return LOOKUP(APIS, function, BZ_API_OTHER);
}

bz_api bz_api_named(const bz_trace *t, uint32_t name)
{
    struct bz_trace_private *p = t->private;
    p->apis.ask = api_named;
    p->last_api_does = (bz_api)bz_name_answer(&p->apis, bz_string(t, name));
    p->last_api = name;
    return p->last_api_does;
}
