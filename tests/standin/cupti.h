/* What tests ask of the stand-in for CUPTI. */
#ifndef BZ_STANDIN_CUPTI_H
#define BZ_STANDIN_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

/* The device runs a kernel of so many ns; CUPTI sees it where kernels are traced. */
void standin_kernel(const char *name, uint64_t ns, int32_t grid, int32_t block);
/* It sets memory for so many ns. */
void standin_set(uint64_t ns);
/* How long behind the end of one the next begins, ns; 100. Below 0: before it. */
void standin_cupti_pause(int64_t ns);
/* From the next kernel on CUPTI has no times of them: it writes 0, or an end before the start. */
void standin_cupti_untimed(bool untimed, bool backwards);
/* From the next kernel on buffers have room for so few records; 0: as many as fit. */
void standin_cupti_room(int records);
/* The next buffer comes back as one that there was no memory for. */
void standin_cupti_lose(void);
/* Whether kernels are traced now. */
int standin_cupti_traces(void);

/* From now on each call to the range profiler is told, a line of text; what was before is forgotten. */
void standin_counters_listen(void (*tell)(const char *line));

#endif
