/* Sides of a comparison that are files, and no records. Private to cli/. */
#ifndef BZ_CLI_COMPARE_H
#define BZ_CLI_COMPARE_H

#include "cli/cli.h"
#include "report/report.h"

typedef enum { SIDE_RECORDS, SIDE_PROFILE, SIDE_REPORT } side_kind;

/* What a side is, told by its content: a profile, a report of analyze --json, or (also where it is no
 * file) something that has records. A profile comes read, but not finished; free it with bz_trace_free. */
side_kind side_kind_of(const char *name, bz_trace **trace);

/* Both sides are profiles; or both are reports. */
int compare_profiles(bz_trace *const trace[2], const char *iterations, bz_arena *arena, bz_compare_set *out,
                     bz_error *err);
int compare_reports(const char *const path[2], bz_arena *arena, bz_compare_set *out, bz_error *err);

#endif
