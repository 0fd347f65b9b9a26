/* What could be gained, for people: waterfall, advice, fusion, matrix units. */
#include "report/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_waterfall(const bz_ladder *l, bz_buf *out)
{
    const bz_waterfall *w = l->waterfall;
    BZ_SCOPED(bz_arena) arena = {0};
    if (!w || !isfinite(w->from) || !w->n || !bz_ladder_holds(l))
        return;
    bz_buf_say(out, "\n%s: from %s to %s, step by step\n", l->profile, BZ_SAY_TIME(w->from), BZ_SAY_TIME(w->to));
    bz_table *t = bz_table_of(&arena, "step|>saves|>of measured|>leaves");
    double rest = w->from;
    for (int i = 0; i < w->n; i++) {
        bool saves = w->step[i].seconds > 0;
        rest -= w->step[i].seconds;
        BZ_ROW(t, BZ_SHOW(saves ? w->step[i].name : bz_arena_printf(&arena, "contradiction: %s", w->step[i].name)),
               BZ_SHOW_TIME(saves ? w->step[i].seconds : NAN),
               BZ_SHOW_SHARE(saves ? w->step[i].seconds / w->from : NAN), BZ_SHOW_TIME(rest));
    }
    bz_table_print(t, out);
}

/* Further lines of a step stand under its first. */
static void put_step(const char *step, bz_buf *out)
{
    for (bool first = true; *step; first = false) {
        size_t n = strcspn(step, "\n");
        char line[512];
        snprintf(line, sizeof line, "%.*s", (int)(n < 500 ? n : 500), step);
        bz_buf_say(out, "%s%s\n", first ? "   do:  " : "        ", line);
        step += n + (step[n] == '\n');
    }
}

/* From `from` on the first part of the time whose answer is that there is no advice, for this reason. */
static int find_answer(const bz_ladder *l, int from, const char *why)
{
    while (from < l->n_answers && (l->answer[from].advice || strcmp(l->answer[from].why, why) != 0))
        from++;
    return from;
}

/* What has one reason has it said once. */
static void put_answers(const bz_ladder *l, bz_buf *out)
{
    for (int i = 0; i < l->n_answers; i++) {
        const char *why = l->answer[i].why, *before = "-  ";
        if (l->answer[i].advice || find_answer(l, 0, why) < i)
            continue;
        for (int k = i; k < l->n_answers; k = find_answer(l, k + 1, why)) {
            const bz_answer *a = &l->answer[k];
            bz_buf_say(out, "%s%s, %s (%s)", before, a->item, BZ_SAY_TIME(a->seconds),
                       BZ_SAY_SHARE(a->seconds / l->latency));
            before = "; ";
        }
        bz_buf_say(out, ": %s\n", why);
    }
}

static bool has_unanswered(const bz_ladder *l)
{
    for (int i = 0; i < l->n_answers; i++)
        if (!l->answer[i].advice)
            return true;
    return false;
}

static bool gains(const bz_advice *a)
{
    return isfinite(a->gain) && !a->unsure;
}

static void put_gain(const bz_advice *a, bz_buf *out)
{
    if (!isfinite(a->gain)) {
        bz_buf_puts(out, "not known");
        return;
    }
    const char *low = BZ_SAY_TIME(fabs(a->low)), *high = BZ_SAY_TIME(a->high);
    if (a->unsure) {
        bz_buf_printf(out, "not known, between a loss of %s and a gain of %s: %s", low, high, a->unsure);
        return;
    }
    bz_buf_printf(out, "%s, between %s and %s", BZ_SAY_TIME(a->gain), low, high);
    if (isfinite(a->of))
        bz_buf_printf(out, " (%s)", BZ_SAY_SHARE(a->gain / a->of));
    bz_buf_printf(out, ", %s", !strcmp(a->by, "estimate") ? "an estimate" : "by simulation");
}

static void put_advice(const bz_ladder *l, bz_buf *out)
{
    if (!l->n_advices && !has_unanswered(l))
        return;
    bz_buf_say(out, "\nadvice for %s (%s)%s\n", l->profile, l->framework ? l->framework : "framework not known",
               !l->n_advices      ? ": none"
               : gains(l->advice) ? ", greatest gain first; the gains do not add up"
                                  : ": none whose gain is known");
    for (int i = 0; i < l->n_advices; i++) {
        const bz_advice *a = &l->advice[i];
        if (!gains(a) && (!i || gains(a - 1)))
            bz_buf_puts(out, "whether these gain anything is not known:\n");
        bz_buf_printf(out, "%d. %s\n   gain: ", i + 1, a->what);
        put_gain(a, out);
        bz_buf_say(out, "\n   why: %s\n", a->evidence);
        put_step(a->step, out);
    }
    put_answers(l, out);
}

void report_steps_text(const bz_analysis *a, bz_buf *out)
{
    for (int i = 0; i < a->n_ladders; i++)
        put_waterfall(&a->ladder[i], out);
}

void report_advice_text(const bz_analysis *a, bz_buf *out)
{
    for (int i = 0; i < a->n_ladders; i++)
        put_advice(&a->ladder[i], out);
}

/* What no library supports is missing from no bound. What failed is: the call may be faster than its layers. */
static void put_not_fused(const bz_fusion_row *row, bz_buf *out)
{
    bool one = row->tried == 1;
    bz_buf_printf(out, "  not fused: %s in %d place%s, because ", row->pattern, row->tried, one ? "" : "s");
    if (row->failed)
        bz_buf_printf(out, "%s benchmarks failed: ", one ? "its" : "their");
    else
        bz_buf_puts(out, "no library supports it: ");
    bz_buf_clean(out, row->why);
    bz_buf_puts(out, row->failed ? "; the fused bound may be too high\n"
                                 : "; the prices of the single layers count there, and nothing is missing\n");
}

static void put_fusion(const bz_analysis *a, bz_buf *out)
{
    const bz_fusion *f = a->fusion;
    BZ_SCOPED(bz_arena) arena = {0};
    int modelled = 0, missing = 0;
    bool recorded = false; /* a recording tells what its program fuses */
    if (!f) {
        bz_buf_puts(out, "\nfusion: --fuse tells what it would save\n");
        return;
    }
    if (isfinite(f->sequential))
        bz_buf_printf(out, "\nfusion would save %s of %s, and %s%s where independent layers run at the same time\n",
                      BZ_SAY_TIME(f->sequential), BZ_SAY_TIME(a->bound.sequential), f->parallel < 0 ? "-" : "",
                      BZ_SAY_TIME(fabs(f->parallel)));
    else
        bz_buf_puts(out, "\nfusion: too little is priced to tell what it would save\n");
    for (int i = 0; i < f->n; i++) {
        recorded |= f->row[i].fused >= 0;
        modelled += f->row[i].modelled;
        missing += f->row[i].missing;
    }
    if (modelled)
        bz_buf_printf(out, "  %d place%s only a modelled price: no gain is counted there\n", modelled,
                      modelled == 1 ? " has" : "s have");
    if (missing) {
        bz_buf_printf(out, "  %d place%s no record: ", missing, missing == 1 ? " has" : "s have");
        if (a->bound.measures)
            bz_buf_printf(out, "'%s' measures %s\n", a->bound.measures, missing == 1 ? "it" : "them");
        else
            bz_buf_puts(out, "their benchmarks ended without one; the warnings above say why\n");
    }
    for (int i = 0; i < f->n; i++)
        if (f->row[i].tried)
            put_not_fused(&f->row[i], out);
    bz_table *t = bz_table_of(&arena, "pattern|>places|>in the cover|>as written|>fused|>gain|>alone|>alone, parallel");
    if (recorded)
        bz_table_columns(t, ">fused already");
    for (int i = 0; i < f->n && i < 12; i++) {
        const bz_fusion_row *r = &f->row[i];
        if (!(r->gain > 0) && !(r->alone > 0) && r->fused <= 0)
            continue;
        BZ_ROW(t, BZ_SHOW(r->pattern), BZ_SHOW_INT(r->places), BZ_SHOW_INT(r->covered), BZ_SHOW_TIME(r->written),
               BZ_SHOW_TIME(r->together), BZ_SHOW_TIME(r->gain), BZ_SHOW_TIME(r->alone),
               BZ_SHOW_TIME(r->alone_parallel));
        if (recorded)
            BZ_ROW(t, BZ_SHOW(r->fused < 0 ? "?" : bz_arena_printf(&arena, "%d", r->fused)));
    }
    if (bz_table_rows(t))
        bz_table_print(t, out);
}

/* Why products could use units and did not, by reason. */
static void put_reasons(const bz_units *u, bz_buf *out)
{
    report_groups g = {.most = 6};
    for (int i = 0; i < u->n; i++)
        if (u->row[i].why)
            report_group(&g, u->row[i].why, NULL);
    for (int k = 0; k < g.n; k++)
        bz_buf_say(out, "  %d could: %s\n", g.group[k].count, g.group[k].text);
    if (g.left)
        bz_buf_printf(out, "  and %d more could: --json has the reasons\n", g.left);
}

static void put_use(const char *of, const bz_units *u, bz_buf *out)
{
    const char *evidence = NULL;
    if (!u || !u->n || (!u->unit && !u->used))
        return;
    for (int i = 0; i < u->n && !evidence; i++)
        evidence = u->row[i].evidence;
    bz_buf_say(out, "\n%s in %s: %d of %d product%s used them", u->unit ? u->unit : "matrix units", of, u->used, u->n,
               BZ_PLURAL(u->n));
    if (evidence)
        bz_buf_say(out, ", as %s", evidence);
    bz_buf_putc(out, '\n');
    put_reasons(u, out);
}

static void put_ways(const bz_analysis *a, bz_buf *out)
{
    const bz_units *u = a->units;
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(
        &arena, "another way|>sequential|>parallel|>fused|>gain|>layers|>conversions|>take|>without a record");
    bool other = false;
    for (int i = 0; u && i < u->n_ways; i++) {
        const bz_unit_way *w = &u->way[i];
        other |= !w->layout && isfinite(w->gain);
        BZ_ROW(t, BZ_SHOW(bz_arena_printf(&arena, "%s%s", w->name, w->calibrated ? " (scales are to be chosen)" : "")),
               BZ_SHOW_TIME(w->sequential), BZ_SHOW_TIME(w->parallel), BZ_SHOW_TIME(w->fused), BZ_SHOW_TIME(w->gain),
               BZ_SHOW_INT(w->layers),
               BZ_SHOW(bz_arena_printf(&arena, w->modelled ? "%d, %d modelled" : "%d", w->converted, w->modelled)),
               BZ_SHOW(bz_arena_printf(&arena, "%s%s", w->open ? "≥ " : "", BZ_SAY_TIME(w->conversions))),
               BZ_SHOW_INT(w->unknown));
    }
    if (other) {
        bz_buf_putc(out, '\n');
        bz_table_print(t, out);
    }
}

void report_gains_text(const bz_analysis *a, bz_buf *out)
{
    put_fusion(a, out);
    if (!a->n_ladders && bz_bound_goal(&a->bound).enough)
        put_use("the fastest variants", a->units, out);
    for (int i = 0; i < a->n_ladders; i++)
        put_use(a->ladder[i].profile, a->ladder[i].units, out);
    put_ways(a, out);
}
