/* A night for people. */
#include "fleet/steps.h"

static void put_answer(const bz_fleet_report *r, bz_buf *out)
{
    int records = 0, wanted = 0, slower = 0;
    for (int i = 0; i < r->night->n_systems; i++) {
        records += r->result[i].records;
        wanted += r->result[i].wanted;
    }
    for (int i = 0; i < r->n_changes; i++)
        slower += r->change[i].model && bz_change_regressed(&r->change[i], r->tolerance);
    bz_buf_printf(out, "night %s: ", r->night->id);
    if (r->regressions)
        bz_buf_printf(out, "%d REGRESSION%s (%d of models); ", r->regressions, r->regressions == 1 ? "" : "S", slower);
    if (r->left)
        bz_buf_printf(out, "INCOMPLETE, %d of %d families are still missing; ", r->left, wanted);
    if (!wanted)
        bz_buf_puts(out, "nothing was to be done\n");
    else
        bz_buf_printf(out, "%d records%s\n", records,
                      r->regressions || r->left ? "" : ", all that was wanted, and nothing became slower");
}

bz_table *fleet_systems_table(const bz_fleet_report *r, bz_arena *arena)
{
    bz_table *t = bz_table_of(arena, "kind|system|>wanted|>left|>shards|>done|>died|>records");
    bz_table_columns(t, ">failed|>estimate|>took|>faster|>slower|>same|against");
    for (int i = 0; i < r->night->n_systems; i++) {
        const bz_night_result *x = &r->result[i];
        bz_table_cell(t, x->planned->name, NULL);
        bz_table_style(t, x->left ? BZ_STYLE_BAD : BZ_STYLE_NONE);
        BZ_ROW(t, BZ_SHOW(x->system), BZ_SHOW_INT(x->wanted), BZ_SHOW_INT(x->left), BZ_SHOW_INT(x->shards),
               BZ_SHOW_INT(x->done), BZ_SHOW_INT(x->died + x->failed), BZ_SHOW_INT(x->records),
               BZ_SHOW_INT(x->bad_records), BZ_SHOW_TIME(x->estimate), BZ_SHOW_TIME(x->seconds), BZ_SHOW_INT(x->faster),
               BZ_SHOW_INT(x->slower), BZ_SHOW_INT(x->same), BZ_SHOW(x->before));
    }
    return t;
}

static void put_changes(const bz_fleet_report *r, int rows, bz_arena *arena, bz_buf *out)
{
    bz_table *t = bz_table_of(arena, "verdict|kind|>before|>after|>ratio|what");
    int shown = 0, all = 0;
    for (int i = 0; i < r->n_changes; i++) {
        const bz_change_row *c = &r->change[i];
        if (!bz_change_regressed(c, r->tolerance) && !bz_change_improved(c, r->tolerance))
            continue;
        if (all++ >= rows)
            continue;
        shown++;
        BZ_ROW(t, BZ_SHOW(bz_verdict_name(c->verdict)), BZ_SHOW(c->kind), BZ_SHOW_TIME(c->before.seconds),
               BZ_SHOW_TIME(c->after.seconds),
               BZ_SHOW(bz_arena_printf(arena, "%.3f", c->after.seconds / c->before.seconds)),
               BZ_SHOW(c->model
                           ? bz_arena_printf(arena, "bound of %s (%d of %d layers)", c->model, c->layers, c->of)
                           : bz_arena_printf(arena, "%s; %s -> %s", c->what, c->variant_before, c->variant_after)));
    }
    if (!shown)
        return;
    bz_buf_printf(out, "\nChanges beyond %.3g %%:\n", 100 * r->tolerance);
    bz_table_print(t, out);
    if (all > shown)
        bz_buf_printf(out, "and %d more: --top %d\n", all - shown, all);
}

void fleet_troubles_text(const bz_fleet_report *r, bz_buf *out)
{
    for (int i = 0; i < r->n_deviations; i++) {
        const bz_deviation *d = &r->deviation[i];
        bz_unit_text a, b;
        bz_buf_puts(out, i ? "" : "\nNodes that deviate from their peers:\n");
        bz_buf_say(out, "  %s %s", d->kind, d->node);
        if (d->throttled)
            bz_buf_printf(out, ": throttled in %d of %d records\n", d->throttled, d->records);
        else
            bz_buf_printf(out, ": %s where its peers take %s (%.2f times), %s\n", bz_units_time(a, d->seconds),
                          bz_units_time(b, d->peers), d->seconds / d->peers, d->what);
    }
    for (int i = 0; i < r->n_failures; i++) {
        bz_buf_puts(out, i ? "" : "\nWhat failed:\n");
        bz_buf_say(out, "  %s %s: %s\n", r->failure[i].kind, r->failure[i].what, r->failure[i].reason);
    }
    if (r->more_failures)
        bz_buf_printf(out, "  and %d more: 'benanza db show --failed'\n", r->more_failures);
    for (int i = 0; i < r->warning.n; i++) {
        bz_buf_puts(out, i ? "" : "\nTo be looked at:\n");
        bz_buf_say(out, "  %s\n", r->warning.item[i]);
    }
}

void bz_fleet_report_text(const bz_fleet_report *r, int rows, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    put_answer(r, out);
    bz_buf_putc(out, '\n');
    bz_table_print(fleet_systems_table(r, &arena), out);
    put_changes(r, rows, &arena, out);
    fleet_troubles_text(r, out);
}

void bz_fleet_status_text(const bz_fleet_report *r, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "kind|system|>shards|>done|>running|>waiting|>died|>failed|>records");
    int shards = 0, done = 0;
    for (int i = 0; i < r->night->n_systems; i++) {
        const bz_night_result *x = &r->result[i];
        shards += x->shards;
        done += x->done;
        BZ_ROW(t, BZ_SHOW(x->planned->name), BZ_SHOW(x->system), BZ_SHOW_INT(x->shards), BZ_SHOW_INT(x->done),
               BZ_SHOW_INT(x->running), BZ_SHOW_INT(x->waiting), BZ_SHOW_INT(x->died), BZ_SHOW_INT(x->failed),
               BZ_SHOW_INT(x->records));
    }
    bz_buf_printf(out, "night %s: %d of %d shards are done\n\n", r->night->id, done, shards);
    bz_table_print(t, out);
    for (int i = 0; i < r->warning.n; i++)
        bz_buf_say(out, "%s\n", r->warning.item[i]);
}

void bz_merged_text(const bz_merged *m, const char *night, bz_buf *out)
{
    bz_buf_printf(out, "night %s: %lld result files, %lld records added, %lld known already", night,
                  (long long)m->files, (long long)m->added, (long long)m->known);
    if (m->bad)
        bz_buf_printf(out, ", %lld lines left out", (long long)m->bad);
    bz_buf_putc(out, '\n');
    for (int i = 0; i < m->note.n; i++)
        bz_buf_say(out, "  %s\n", m->note.item[i]);
}
