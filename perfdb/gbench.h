/* gbench: reads what the original tool published. Private to perfdb. */
#ifndef BZ_PERFDB_GBENCH_H
#define BZ_PERFDB_GBENCH_H

#include "perfdb/import.h"
#include "perfdb/stream.h"

/* Whether a file that begins like this is Google Benchmark's JSON. */
bool bz_gbench_is(const char *head, size_t n);

int bz_gbench_import(bz_import *in, bz_stream *source, bz_error *err);

/* One benchmark's name as a problem, a variant, and flops (NAN where not known); everything lives
 * in the arena. */
int bz_gbench_name(const char *name, bz_arena *arena, bz_record *r, bz_error *err);

#endif
