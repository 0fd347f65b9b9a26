/* Stand-ins for the CUDA runtime and for cuDNN: they compute nothing, but for
 * plain products of matrices. Each call becomes a line of text with
 * all that the caller said, so that a test can compare the sequence and every field with what is expected.
 * Memory is real, in the host; descriptors and pointers are named in the order in which they appear. */
#ifndef BZ_STANDIN_RECORD_H
#define BZ_STANDIN_RECORD_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern bz_buf standin_text; /* the calls so far */
extern int standin_silent;  /* above 0: calls are not recorded */

extern bool standin_raw;        /* nothing compiles the kernels that are loaded as text */
extern bool standin_stuck;      /* the device gives up waiting for the host, each time */
extern bool standin_full;       /* the device has no memory for more than 2000 bytes at once */
extern bool standin_ill;        /* calls that run something fail, as after an error in a kernel */
extern bool standin_slow_plans; /* plans take long to build, and can be written as text, as compiled ones do */
extern int standin_no_plans;    /* so many of the next plans cannot be made */
extern int
    standin_sticky; /* what every wait for the device says, as after an error that the process cannot leave behind */
extern int standin_refuses; /* what opening the device says; 0: it opens */
extern void (*standin_launched)(
    void); /* called for each kernel that is started; and what that adds to the time of events */
extern float standin_launch_ms;
extern int standin_driver;    /* the newest CUDA that the driver runs; 0: there is no driver; -1: what is built for */
extern int standin_devices;   /* 1 where nothing else is said */
extern bool standin_mute;     /* cuDNN's heuristics propose nothing */
extern bool standin_computed; /* the last call computed what it should: the result can be checked */

void standin_reset(void); /* forgets text and names */
void standin_record(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A new object of a sort: what is returned is what a handle holds. */
void *standin_new(const char *sort);
/* "tensor3", "null", "d2", "d2+64", "stream1": valid until the 8th next call. */
const char *standin_name(const void *object);
/* Memory of the device, named; and given back. */
void *standin_memory(size_t size);
void standin_memory_free(void *data);
/* "1,2,3" */
const char *standin_ints(int n, const int *v);
const char *standin_longs(int64_t n, const int64_t *v);

#endif
