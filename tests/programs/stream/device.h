/* An asynchronous device made of a processor core. A host thread launches work into streams; each stream is a thread that
 * runs its work in order. The calls have the names, the order and the cost of CUDA's runtime, and all of them can be
 * recorded as PyTorch's profiler records them: what runs here is what a recording of a GPU looks like, with a truth that a
 * machine without one can measure.
 *
 *     device_open(&options);
 *     int s = device_stream(1, false);
 *     device_launch(s, "conv", run, argument);   returns at once
 *     device_synchronize();                       waits
 *
 * Only the threads that launch may call; all functions end the program where the machine refuses. */
#ifndef STREAM_DEVICE_H
#define STREAM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct device_options {
    int64_t launch; /* ns that each launch keeps the host busy */
    int64_t spin;   /* ns for which who waits does so without sleeping */
    double link;    /* bytes per second between host and device */
    bool record;    /* from device_record(true) on */
} device_options;

enum { DEVICE_CALLS = 1 << 16, DEVICE_QUEUE = 8192, DEVICE_STREAMS = 8, DEVICE_EVENTS = 4096 };

typedef void device_kernel(void *argument);
typedef enum { COPY_TO_DEVICE = 1, COPY_TO_HOST = 2 } device_direction; /* CUPTI's numbers */

int64_t now(void);            /* ns */
void busy_until(int64_t end); /* keeps the processor */
void pin(int core);           /* the calling thread; without effect where there is no such core */

void device_open(const device_options *options);
void device_close(void);
int device_stream(int core, bool sleeps); /* its number; sleeps: it waits for the link without keeping its core busy */

void device_launch(int stream, const char *name, device_kernel *run, void *argument);
/* A kernel that takes so long without keeping a core busy, as one on a device of its own does. */
void device_pretend(int stream, const char *name, int64_t ns);
void device_fill(int stream, void *at, size_t bytes);
void device_copy(int stream, device_direction direction, void *to, const void *from, size_t bytes);
void device_copy_and_wait(int stream, device_direction direction, void *to, const void *from, size_t bytes);

/* Order between streams, and between a stream and a thread of the host's. An event is done when the work before the latest
 * device_mark has run, or when the host said so. */
void device_mark(int stream, int event);
void device_follow(int stream, int event);
int64_t device_asked(int event); /* the ticket of the latest mark */
bool device_is_done(int event, int64_t ticket);
int64_t device_expect(int event); /* a host thread will call device_done with what this returned */
void device_done(int event, int64_t ticket);

/* Between begin and end launches are collected; a graph is launched by one call. */
void graph_begin(void);
int graph_end(void); /* its number */
void graph_launch(int stream, int graph);

void device_wait(int stream);
void device_synchronize(void);

/* Recording. Names are not copied. */
void device_record(bool on);
void range_begin(const char *name);
void layer_begin(const char *name); /* a range that the framework made: an operator */
void range_end(void);
/* Something that another thread did, as a range of its own; any thread, one at a time. */
void range_add(const char *name, int thread, int64_t start, int64_t end);
int device_save(const char *path); /* 0, or -1 */

#endif
