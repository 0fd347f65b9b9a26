/* The runtime's side of conformance_replayed: its headers and those of the other rooms have names in common. */
#ifndef BZ_REPLAYED_RUN_H
#define BZ_REPLAYED_RUN_H

#include "runtime/replay.h"

bz_replay *replayed_open(const bz_replay_model *model, const char *weights, bz_error *err);
size_t replayed_size(const bz_replay *r, int value);
int replayed_set(bz_replay *r, int value, const void *bytes);
int replayed_run(bz_replay *r);
int replayed_get(bz_replay *r, int value, void *bytes);
double replayed_number(bz_dtype t, const void *bytes, int64_t i); /* element i */
void replayed_close(bz_replay *r);

#endif
