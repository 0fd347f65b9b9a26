/* Inside of the captured program: where records go. All functions may be called by any thread. Those that are
 * BZI_SHARED also serve the libraries that CUDA loads, so that a process has one file and one clock. */
#ifndef BZ_INJECT_RECORD_H
#define BZ_INJECT_RECORD_H

#include "profile/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BZI_SHARED __attribute__((visibility("default")))

BZI_SHARED int64_t bzi_now(void);    /* CLOCK_MONOTONIC, ns: the clock of all records */
BZI_SHARED bool bzi_recording(void); /* false: call straight through */
BZI_SHARED bool bzi_marking(void);   /* the program's own marks are wanted */
BZI_SHARED uint32_t bzi_thread(void);

/* A record: room for it, NULL where the file is full; filled in by the caller; then it counts. */
BZI_SHARED void *bzi_claim(size_t size);
BZI_SHARED void bzi_commit(void *record, bz_spool_type type, uint32_t flags, size_t size);

/* Number of a string that is known by the hash of what it was made from, 0 where it is new. Making texts
 * costs more than recording a call, so each is made once. */
uint32_t bzi_known(uint64_t hash);
uint32_t bzi_string(uint64_t hash, const char *text, size_t n);
BZI_SHARED uint64_t bzi_hash(uint64_t seed, const void *data, size_t n);
BZI_SHARED uint32_t bzi_text(const char *text); /* the string's number by its text; NULL is 0 */

typedef struct bzi_call {
    int64_t start;
    uint32_t library, flags, name, detail, variant;
    const void *read[2], *written; /* weights are read from the same place in every iteration, and never written */
} bzi_call;
void bzi_call_end(const bzi_call *call); /* takes the time, records */
void bzi_mark(bool end);

/* The function that the program would have called without us; NULL where no loaded library has it. `hint`: part of
 * the library's file name that is looked at first. */
void *bzi_resolve(const char *symbol, const char *hint);

/* Back-trace of this thread as a stack record, 0 where none was asked for. */
uint32_t bzi_stack(void);
/* Python frames around this call, innermost first, one text each; returns how many. python.c */
int bzi_python_frames(char text[][160], int max);

void bzi_note_onednn(const char *version);
/* A sentence for the coverage. The levels are bz_coverage_level of profile.h, which is not for the captured process. */
enum { BZI_NOTE, BZI_MISSING, BZI_BROKEN };
BZI_SHARED void bzi_note(uint32_t level, const char *text);
BZI_SHARED void bzi_fact(const char *key, const char *text);
BZI_SHARED void bzi_device_dropped(uint64_t n);

/* CUPTI for ourselves, until the program wants it: then `leave` is called once, by the program's thread, before the program
 * gets it. False where the program has it already: it is not to be touched. cupti.c */
BZI_SHARED bool bzi_cupti_take(void (*leave)(void));

#endif
