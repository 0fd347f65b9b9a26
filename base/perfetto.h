/* Chrome traces, as Perfetto and PyTorch's profiler show them, event by event into a file that is whole or not there.
 *
 *   bz_perfetto_slice(&p, "sgemm", "kernel", 0, 3, start, length);
 *   bz_perfetto_args(&p);
 *   bz_perfetto_int(&p, "bytes", 4096);
 *   bz_perfetto_end(&p);
 */
#ifndef BZ_PERFETTO_H
#define BZ_PERFETTO_H

#include "base/whole.h"

typedef struct bz_perfetto {
    bz_whole file;
    bz_buf text; /* what is not written yet */
    int why;     /* errno of the first write that failed */
    bool some, args, first_arg;
} bz_perfetto;

int bz_perfetto_open(bz_perfetto *p, const char *path, bz_error *err);
int bz_perfetto_close(bz_perfetto *p, bz_error *err);

/* Begins an event; its other members follow as text. */
void bz_perfetto_begin(bz_perfetto *p, const char *name);
/* Begins a slice of a track. */
void bz_perfetto_slice(bz_perfetto *p, const char *name, const char *category, long long process, uint32_t track,
                       int64_t start, int64_t length);
void bz_perfetto_track(bz_perfetto *p, long long process, uint32_t track);
/* Microseconds, with nanoseconds behind the point. */
void bz_perfetto_time(bz_perfetto *p, const char *key, int64_t ns);
/* Begins the event's arguments. */
void bz_perfetto_args(bz_perfetto *p);
void bz_perfetto_str(bz_perfetto *p, const char *key, const char *value);
void bz_perfetto_int(bz_perfetto *p, const char *key, int64_t value);
void bz_perfetto_end(bz_perfetto *p);

/* `what`: "process_name" or "thread_name". */
void bz_perfetto_name(bz_perfetto *p, const char *what, long long process, uint32_t track, const char *name);

#endif
