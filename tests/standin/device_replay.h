/* The stand-in for a device, as replays use it. Private to tests/standin/device*.c. */
#ifndef BZ_STANDIN_DEVICE_H
#define BZ_STANDIN_DEVICE_H

#include "runtime/backend.h"

bool standin_lies(const char *how);

typedef struct standin_stream standin_stream;

/* What a task of a stream does when its turn comes. */
typedef void standin_task(void *context, void *to, void *from, size_t size);

/* Queues a task up; `seconds` pass on the stream while it runs. */
void standin_queue(standin_stream *s, standin_task *run, void *context, void *to, void *from, size_t size,
                   double seconds);

extern const bz_device_ops standin_ops;

#endif
