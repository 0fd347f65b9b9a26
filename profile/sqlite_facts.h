/* What a SQLite recording tells about the program and the system, apart from events. */
#ifndef BZ_PROFILE_SQLITE_FACTS_H
#define BZ_PROFILE_SQLITE_FACTS_H

#include "profile/profile.h"
#include "profile/scan.h"

/* Adds facts, and to the coverage what Nsight Systems itself complained about. The name of the host that the recording was
 * made on is left out of both. */
void bz_facts_read(bz_trace *t, uint32_t source, bz_database *db);

/* Says where reading a table stopped, if it did not reach its end: `why`, or what the statement's last step gave. */
void bz_table_damaged(bz_trace *t, uint32_t source, const char *table, const char *why);
void bz_table_end(bz_trace *t, uint32_t source, const char *table, sqlite3_stmt *s, int rc);

#endif
