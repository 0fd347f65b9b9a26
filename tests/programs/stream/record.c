/* The recording, in the form of PyTorch's profiler (Kineto). */
#include "record.h"
#include "device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct row {
    record_kind kind;
    int lane;
    const char *name;
    int64_t start, end, bytes;
    uint32_t correlation;
} row;

enum { ROWS = 1 << 18, DEPTH = 16, OTHERS = DEVICE_STREAMS + 1, LANES = OTHERS + 1 };

/* Lane 0 is the host's, then come the streams', then that of other threads. */
static struct {
    atomic_bool on;
    row *row[LANES];
    int n[LANES];
    row open[DEPTH];
    int depth;
} recording;

void record_open(void)
{
    for (int i = 0; i < LANES; i++)
        if (!(recording.row[i] = malloc(ROWS * sizeof(row)))) /* touched only where rows come */
            abort();
}

void device_record(bool on)
{
    recording.on = on;
}

static void add(int at, const row *r)
{
    if (recording.on && recording.n[at] < ROWS)
        recording.row[at][recording.n[at]++] = *r;
}

void record_add(record_kind kind, int lane, const char *name, int64_t start, int64_t end, uint32_t correlation,
                int64_t bytes)
{
    add(kind >= RECORD_KERNEL ? 1 + lane : 0, &(row){kind, lane, name, start, end, bytes, correlation});
}

static void begin(record_kind kind, const char *name)
{
    if (recording.depth == DEPTH)
        abort();
    recording.open[recording.depth++] = (row){.kind = kind, .name = name, .start = now()};
}

void range_begin(const char *name)
{
    begin(RECORD_RANGE, name);
}

void layer_begin(const char *name)
{
    begin(RECORD_OP, name);
}

void range_end(void)
{
    row *r = &recording.open[--recording.depth];
    r->end = now();
    add(0, r);
}

void range_add(const char *name, int thread, int64_t start, int64_t end)
{
    add(OTHERS, &(row){.kind = RECORD_RANGE, .lane = thread, .name = name, .start = start, .end = end});
}

static void write_row(FILE *f, const row *r)
{
    static const char *const CATEGORIES[] = {"user_annotation", "cpu_op",     "cuda_runtime",
                                             "kernel",          "gpu_memcpy", "gpu_memset"};
    fprintf(f, "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", ", CATEGORIES[r->kind], r->name);
    fprintf(f, "\"ts\": %lld.%03lld, \"dur\": %lld.%03lld, ", (long long)(r->start / 1000),
            (long long)(r->start % 1000), (long long)((r->end - r->start) / 1000),
            (long long)((r->end - r->start) % 1000));
    if (r->kind <= RECORD_API) {
        fprintf(f, "\"pid\": 1, \"tid\": %d, \"args\": {", 1 + r->lane);
        if (r->kind == RECORD_API)
            fprintf(f, "\"correlation\": %u", r->correlation);
    } else {
        fprintf(
            f, "\"pid\": 0, \"tid\": %d, \"args\": {\"device\": 0, \"context\": 1, \"stream\": %d, \"correlation\": %u",
            7 + r->lane, 7 + r->lane, r->correlation);
        if (r->kind == RECORD_KERNEL)
            fprintf(f, ", \"grid\": [1, 1, 1], \"block\": [1, 1, 1]");
        else
            fprintf(f, ", \"bytes\": %lld", (long long)r->bytes);
    }
    fprintf(f, "}}");
}

int device_save(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    fprintf(f,
            "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"a processor core as a device\"}],\n"
            "\"traceEvents\": [\n");
    const char *separator = "";
    for (int i = 0; i < LANES; i++)
        for (int k = 0; k < recording.n[i]; k++) {
            fputs(separator, f);
            write_row(f, &recording.row[i][k]);
            separator = ",\n";
        }
    fprintf(f, "\n]}\n");
    return fclose(f) ? -1 : 0;
}
