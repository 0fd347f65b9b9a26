/* Which other ways to compute models the database knows. Private to cli/. */
#ifndef BZ_CLI_UNIT_WAYS_H
#define BZ_CLI_UNIT_WAYS_H

#include "cli/planning.h"
#include "report/report.h"

enum { UNIT_WAYS = 16, UNIT_PLANS = 4 };

/* A plan and its prices: another data type, layout or math mode. */
typedef struct unit_source {
    const char *name;
    const bz_plan *plan;
    const bz_prices *prices;
    bz_dtype dtype, data; /* of the plan; between layers. BZ_UNDEFINED: as asked */
    const char *layout;
    bool calibrated;
} unit_source;

typedef struct unit_ways {
    unit_source way[UNIT_WAYS];
    int n;
    bz_plan *plan[UNIT_PLANS];
    int n_plans;
} unit_ways;

/* The prices of the plan as asked, and from the same look-up those of its layouts and math modes. */
int unit_ways_prices(unit_ways *w, const bz_plan *plan, bz_perfdb *db, const bz_system *system,
                     const bz_setting *setting, bz_arena *arena, bz_prices **out, bz_error *err);
/* Adds the data types. */
int unit_ways_find(unit_ways *w, const planning *p, const bz_list *paths, const loaded_models *m, const bz_plan *plan,
                   bz_perfdb *db, const bz_system *system, const bz_setting *setting, bz_arena *arena, bz_error *err);
/* Holds a model's bound against all of them. `in` is what that was made from. */
int unit_ways_units(const unit_ways *w, const bz_bound_input *in, const bz_bound *bound, bz_perfdb *db,
                    const bz_system *system, bz_arena *arena, bz_units *out, bz_error *err);
void unit_ways_free(unit_ways *w);

#endif
