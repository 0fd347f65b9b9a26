/* The library that CUDA and NVTX load into the captured program: CUDA_INJECTION64_PATH, NVTX_INJECTION64_PATH. It writes
 * through the capture library, profile/inject/record.h. */
#ifndef BZ_CUDA_CUDA_H
#define BZ_CUDA_CUDA_H

#include <cupti.h>

/* CUPTI as it is on this machine, found when the program runs: linking to it would keep the program from starting where
 * it is missing. All are there, or none: cupti.c. */
typedef struct bzc_cupti {
    CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*register_clock)(CUpti_TimestampCallbackFunc);
    CUptiResult (*enable)(CUpti_ActivityKind);
    CUptiResult (*disable)(CUpti_ActivityKind);
    CUptiResult (*flush)(uint32_t);
    CUptiResult (*next)(uint8_t *, size_t, CUpti_Activity **);
    CUptiResult (*dropped)(CUcontext, uint32_t, size_t *);
    CUptiResult (*callback_name)(CUpti_CallbackDomain, uint32_t, const char **);
    CUptiResult (*thread_ids)(CUpti_ActivityThreadIdType);
    CUptiResult (*version)(uint32_t *);
    CUptiResult (*result_text)(CUptiResult, const char **);
} bzc_cupti;

/* What is asked of CUPTI, and how each record of it becomes one of ours: activity.c. */
void bzc_activities_enable(const bzc_cupti *of); /* what CUPTI refuses is noted; must outlive its records */
void bzc_activities_disable(void);
void bzc_activity(const CUpti_Activity *record);

#endif
