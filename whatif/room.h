/* How much room a kernel leaves on its device; private to the room whatif. */
#ifndef BZ_WHATIF_ROOM_H
#define BZ_WHATIF_ROOM_H

#include "predict/predict.h"
#include "whatif/whatif.h"

/* The device of a recording, by the name that it tells and the data sheet of that. */
typedef struct bz_whatif_room {
    bool known;
    bz_machine machine;
    bz_occupancy_limits limits;
} bz_whatif_room;

void bz_whatif_room_make(const bz_trace *t, bz_arena *arena, bz_whatif_room *out);
/* Blocks of a kernel by those that the device runs at once; NAN where the recording does not tell both. */
double bz_whatif_filled(const bz_whatif_room *room, const bz_trace *t, const bz_task *task);

#endif
