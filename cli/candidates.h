/* Models that a recording may be of: those named, those that come with benanza, and those that were analysed before. Private to
 * cli/. */
#ifndef BZ_CLI_CANDIDATES_H
#define BZ_CLI_CANDIDATES_H

#include "cli/model.h"
#include "report/report.h"

/* Returns how many; what cannot be read is left out, with a warning where it was named. `models`, empty before, holds them until
 * models_free. `db` is what --db says, or NULL. */
int candidates_load(const bz_list *given, const char *db, loaded_models *models, bz_arena *arena,
                    const bz_candidate **out);

/* Notes the models beside the database, for candidates_load. Where that cannot be written nothing is noted. */
void candidates_remember(const bz_list *paths, const char *db);

#endif
