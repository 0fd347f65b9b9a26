/* Inside of the captured program: where records go. All functions may be called by any thread. */
#ifndef BZ_INJECT_RECORD_H
#define BZ_INJECT_RECORD_H

#include "profile/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t bzi_now(void);
bool bzi_recording(void); /* false: call straight through */

/* Number of a string that is known by the hash of what it was made from, 0 where it is new. Making texts
 * costs more than recording a call, so each is made once. */
uint32_t bzi_known(uint64_t hash);
uint32_t bzi_string(uint64_t hash, const char *text, size_t n);
uint64_t bzi_hash(uint64_t seed, const void *data, size_t n);

typedef struct bzi_call {
    int64_t start;
    uint32_t library, flags, name, detail, variant;
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

#endif
