/* What is missing or stale on each kind of machine, and how long it takes to measure. */
#include "fleet/steps.h"

#include "base/member.h"

static int wanted_of(const bz_want *w)
{
    int n = 0;
    for (int k = BZ_WANT_NOT + 1; k < BZ_WANTS; k++)
        n += w->count[k];
    return n;
}

static const char *name_of(const bz_fleet_job *j, int kind)
{
    const bz_fleet_stack *stack = bz_fleet_stacks_find(&j->stacks, j->fleet.system[kind].name);
    const bz_system *system = j->want[kind].system;
    return stack && *stack->system ? stack->system : system ? system->name : "";
}

void bz_fleet_plan_json(const bz_fleet_job *j, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_json w = bz_json_document_to(out, 3, "fleet-plan", 1);
    bz_json_key_int(&w, "models", j->models.n);
    BZ_JSON_EACH (&w, "systems", i, j->fleet.n_systems) {
        const bz_want *x = &j->want[i];
        bz_shards shards = bz_fleet_shards(j, i, &arena);
        BZ_JSON(&w, BZ_TELL("name", j->fleet.system[i].name), BZ_TELL("system", name_of(j, i)),
                BZ_TELL("note", j->note[i] ? j->note[i] : ""), BZ_TELL("problems", x->n),
                BZ_TELL("problems_wanted", x->problems));
        for (int k = 0; k < BZ_WANTS; k++)
            bz_json_key_int(&w, bz_want_id((bz_want_why)k), x->count[k]);
        BZ_JSON(&w, BZ_TELL("seconds", x->total), BZ_TELL("guessed", x->guessed));
        BZ_JSON_LIST(&w, "shards", num, k, shards.n, shards.shard[k].seconds);
    }
    bz_json_document_end(&w);
}

static void print_table(const bz_fleet_job *j, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_of(arena, "kind|system");
    for (int k = 0; k < BZ_WANTS; k++)
        bz_table_column(t, bz_want_name((bz_want_why)k), BZ_RIGHT);
    bz_table_columns(t, ">device time|>shards");
    for (int i = 0; i < j->fleet.n_systems; i++) {
        const bz_want *x = &j->want[i];
        const char *name = name_of(j, i);
        BZ_ROW(t, BZ_SHOW(j->fleet.system[i].name), BZ_SHOW(*name ? name : "(never seen)"));
        for (int k = 0; k < BZ_WANTS; k++)
            bz_table_int(t, x->count[k]);
        BZ_ROW(t, BZ_SHOW_TIME(x->total), BZ_SHOW_INT(bz_fleet_shards(j, i, arena).n));
    }
    bz_table_print(t, out);
}

void bz_fleet_plan_text(const bz_fleet_job *j, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_unit_text text;
    int wanted = 0, guessed = 0;
    double total = 0;
    for (int i = 0; i < j->fleet.n_systems; i++) {
        wanted += wanted_of(&j->want[i]);
        guessed += j->note[i] ? 0 : j->want[i].guessed;
        total += j->want[i].total;
    }
    if (!wanted)
        bz_buf_puts(out, "nothing to do: the database has all of it, and fresh\n\n");
    else
        bz_buf_printf(out, "%s of device time: %d %s of variants on %d kind%s of machines\n\n",
                      bz_units_time(text, total), wanted, wanted == 1 ? "family" : "families", j->fleet.n_systems,
                      j->fleet.n_systems == 1 ? "" : "s");
    print_table(j, &arena, out);
    for (int i = 0; i < j->fleet.n_systems; i++)
        if (j->note[i])
            bz_buf_printf(out, "%s: %s\n", j->fleet.system[i].name, j->note[i]);
    if (guessed)
        bz_buf_printf(out, "%d families were measured nowhere yet: their time is guessed\n", guessed);
}
