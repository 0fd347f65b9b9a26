/* What was planned and what was run. */
#include "base/member.h"
#include "report/report.h"

#include <math.h>

/* Whether a backend of the plan has the calls of one of the group's ways. */
static bool has_calls(const bz_plan *plan, const bz_plan_layer *group)
{
    const bz_plan_problem *problem;
    bz_plan_problems(plan, &problem);
    for (int a = 0; a < group->lowering.n; a++) {
        const bz_alternative *way = &group->lowering.alternative[a];
        int i = 0;
        while (i < way->n && problem[way->number[i]].n_families)
            i++;
        if (i == way->n)
            return true;
    }
    return false;
}

/* How many groups of layers the plan has, and why others are none; nothing without patterns. */
static void put_groups(const bz_plan *plan, bz_buf *out)
{
    const bz_plan_layer *item;
    int n = bz_plan_layers(plan, &item), groups = 0;
    int64_t places = 0;
    for (int i = 0; i < n; i++)
        if (item[i].pattern && has_calls(plan, &item[i]))
            groups++, places += item[i].count;
    if (places)
        bz_buf_printf(out, "  fused: %d unique group%s of layers in %lld place%s\n", groups, BZ_PLURAL(groups),
                      (long long)places, BZ_PLURAL(places));
    for (int i = 0; i < n; i++)
        if (item[i].pattern && !item[i].lowering.n)
            bz_buf_say(out, "  not fused: %s in %lld place%s: %s\n", item[i].pattern, (long long)item[i].count,
                       BZ_PLURAL(item[i].count), item[i].lowering.why);
}

typedef struct told_gen {
    const char *folder;
    int problems, written, families;
    double seconds, saved;
} told_gen;

static bool has_budget(const void *gen)
{
    return isfinite(((const told_gen *)gen)->seconds);
}

static const bz_member BUDGET[] = {BZ_MEMBER(told_gen, seconds)};
static const bz_member GEN[] = {BZ_FIELDS(told_gen, folder, problems, written, families),
                                BZ_MEMBERS_WHERE(has_budget, BUDGET), BZ_MEMBER(told_gen, saved)};

void bz_report_gen(const bz_plan *plan, const bz_gen_report *g, bool json, bz_buf *out)
{
    int n = bz_plan_measurable(plan), families, wanted = bz_plan_wanted(plan, &families);
    const told_gen told = {g->folder, n, wanted, families, g->seconds, n ? (double)(n - wanted) / n : 0};
    if (json) {
        bz_members_document("gen", 1, BZ_MEMBERS(GEN), &told, -1, out);
        return;
    }
    bz_buf_say(out, "%s: %d problem%s in %d families", g->folder, wanted, BZ_PLURAL(wanted), families);
    if (g->chosen)
        bz_buf_printf(out, ", those that tell most of %d", n);
    else if (n > wanted)
        bz_buf_printf(out, "; %d of %d problems are in the database (%.0f %% saved)", n - wanted, n,
                      100.0 * (n - wanted) / n);
    bz_buf_putc(out, '\n');
    if (isfinite(g->seconds))
        bz_buf_printf(out, "  measuring them should take %s\n", BZ_SAY_TIME(g->seconds));
    put_groups(plan, out);
    if (wanted)
        bz_buf_say(out, "  next: benanza run %s\n", g->folder);
}

static const bz_member SYSTEM[] = {BZ_MEMBER_AS(bz_system, name, "system")};
static const bz_member RUN[] = {BZ_MEMBERS_AT(bz_bench, system, SYSTEM), BZ_MEMBER_AS(bz_bench, wanted, "problems"),
                                BZ_FIELDS(bz_bench, records, failed, busy), BZ_MEMBER_AS(bz_bench, bad, "unreadable")};

void bz_report_run(const bz_bench *r, bool json, bz_buf *out)
{
    if (json) {
        bz_members_document("run", 1, BZ_MEMBERS(RUN), r, -1, out);
        return;
    }
    if (!r->wanted) {
        bz_buf_puts(out, "nothing to run: the database has all of it (--all runs it again)\n");
        return;
    }
    bz_buf_say(out, "%d problem%s run, %d records stored for %s", r->wanted, BZ_PLURAL(r->wanted), r->records,
               r->system->name);
    if (r->failed)
        bz_buf_printf(out, "; %d of them failed: 'benanza db show --failed' has the reasons", r->failed);
    if (r->busy && r->again && r->again->marked)
        bz_buf_printf(out,
                      "; %d of them are marked busy again: this machine's speed varies, or others always use it, and "
                      "measuring once more does not change that",
                      r->busy);
    else if (r->busy)
        bz_buf_printf(out,
                      "; %d of them are marked busy, other programs used the machine: 'benanza run --remeasure noisy' "
                      "measures them again",
                      r->busy);
    bz_buf_putc(out, '\n');
}
