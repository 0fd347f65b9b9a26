/* The runs of bz_profile_levels in a trace's file: BENANZA_LEVELS and BENANZA_LEVEL_ITERATIONS. */
#ifndef BZ_PROFILE_SQLITE_LEVELS_H
#define BZ_PROFILE_SQLITE_LEVELS_H

#include "profile/profile.h"
#include "profile/scan.h"

/* A trace that has levels already, from another file, keeps those, and the coverage says so. */
void bz_levels_read(bz_trace *t, uint32_t source, bz_database *db);

#endif
