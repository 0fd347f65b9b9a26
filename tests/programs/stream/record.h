/* What the device's calls and streams did, kept in memory while it runs, and written as PyTorch's profiler writes it. */
#ifndef STREAM_RECORD_H
#define STREAM_RECORD_H

#include <stdint.h>

typedef enum { RECORD_RANGE, RECORD_OP, RECORD_API, RECORD_KERNEL, RECORD_COPY, RECORD_FILL } record_kind;

void record_open(void);
/* By one thread for each lane: the host's lane is for ranges and calls, those of streams for the rest. */
void record_add(record_kind kind, int lane, const char *name, int64_t start, int64_t end, uint32_t correlation,
                int64_t bytes);

#endif
