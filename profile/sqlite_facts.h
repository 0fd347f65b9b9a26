/* What a SQLite recording tells about the program and the system, apart from events. */
#ifndef BZ_PROFILE_SQLITE_FACTS_H
#define BZ_PROFILE_SQLITE_FACTS_H

#include "profile/profile.h"
#include "profile/scan.h"

/* Adds facts, and to the coverage what Nsight Systems itself complained about. The name of the host that the recording was
 * made on is left out of both. */
void bz_facts_read(bz_trace *t, uint32_t source, const bz_database *db);

#endif
