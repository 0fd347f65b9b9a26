/* A reader turns one file format into events. To add a format: one file that defines a bz_reader, one
 * row in the table of reader.c. */
#ifndef BZ_PROFILE_READER_H
#define BZ_PROFILE_READER_H

#include "profile/trace.h"
#include "stream/stream.h"

typedef struct bz_reader {
    const char *format;                          /* as people call it: "cuDNN log" */
    bool log;                                    /* order and parameters, no timeline */
    bool (*matches)(const char *head, size_t n); /* looks at up to 1 MiB from the front of the file */
    /* Adds what the stream holds; -1 only where nothing can be made of it. What is cut off, missing or
     * contradictory goes to the coverage. */
    int (*read)(bz_trace *t, uint32_t source, bz_stream *in, bz_error *err);
} bz_reader;

extern const bz_reader bz_reader_sqlite, bz_reader_chrome, bz_reader_cudnn, bz_reader_cublas, bz_reader_onednn,
    bz_reader_spool;

/* As bz_profile_read, from a stream; NULL reader: by content. */
int bz_profile_read_stream(bz_trace *t, bz_stream *in, const bz_reader *reader, bz_error *err);

/* Fails: says what a file is that no reader matches, and what to give instead. */
int bz_foreign_fail(const char *path, const char *head, size_t n, bz_error *err);

/* Says how many events were left out because no start was told, and how many end before they start; of none, nothing. */
void bz_cover_times(bz_trace *t, uint32_t source, int64_t unnamed, int64_t negative);

/* Text helpers shared by the log readers. */
bool bz_log_line(bz_stream *in, const char **line, size_t *n); /* from "I! ", "i!" and the like on, where it has that */
bool bz_text_has(const char *head, size_t n, const char *needle);
int64_t bz_text_int(const char *s, size_t n);                          /* leading decimal digits, saturating */
int64_t bz_text_nanoseconds(const char *s, size_t n, int64_t unit_ns); /* "12.345" in units of unit_ns, exact */
int64_t bz_text_date(const char *s, size_t n); /* "2019-09-29T01:25:39.390622" as ns since 1970, taken as UTC */

#endif
