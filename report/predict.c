/* Predictions, and how far off they are. */
#include "base/open.h"
#include "base/sort.h"
#include "report/parts.h"
#include "runtime/gpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double bz_price_of(const bz_price_list *p, const char *machine)
{
    size_t len = strcspn(machine, "@");
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->price[i].machine, machine) ||
            (strlen(p->price[i].machine) == len && !strncmp(p->price[i].machine, machine, len)))
            return p->price[i].dollars;
    return NAN;
}

int bz_price_list_read(const char *path, bz_arena *arena, bz_price_list *out, bz_error *err)
{
    FILE *f = bz_open_input_file(path, err);
    enum { MOST = 64 };
    char line[256];
    int rc = f ? 0 : -1;
    *out = (bz_price_list){0};
    for (int number = 1; f && !rc && fgets(line, sizeof line, f); number++) {
        char word[64], *end;
        int at = 0;
        line[strcspn(line, "#\r\n")] = 0;
        if (sscanf(line, "%63s %n", word, &at) != 1)
            continue;
        double v = strtod(line + at, &end);
        bz_gpu gpu;
        if (end == line + at || strspn(end, " \t") != strlen(end) || !(v >= 0 && v < 1e6) || out->n == MOST)
            rc = bz_fail(err, BZ_BAD_INPUT,
                         "%s:%d: '%s' is no line such as 't4 0.35', a system and the price of an hour", path, number,
                         line);
        else
            BZ_ARENA_ADD(arena, out->price, out->n) =
                (bz_price){bz_arena_str(arena, bz_gpu_slug(word, &gpu) ? gpu.slug : word), v};
    }
    if (f)
        fclose(f);
    return rc;
}

/* Dollars for a million inferences. */
static double cost(const bz_forecast *f, const bz_price_list *p)
{
    int64_t batch = f->batch > 0 ? f->batch : 1;
    return f->sequential * bz_price_of(p, f->machine->name) / 3600 / (double)batch * 1e6;
}

/* What a sentence below the table tells of systems. */
typedef enum note { NOTE_NEWER = 1, NOTE_OLDER = 2, NOTE_NO_UNIT = 4, NOTE_NO_ROOM = 8 } note;

/* What is told of one model on one system. */
typedef struct ranked {
    const bz_forecast *f;
    const char *model, *system;
    int64_t batch;
    double sequential, low, high, parallel, fused, throughput, cost; /* NAN: not known, no price */
    double time;                                                     /* that it is ranked by; NAN: it is not */
    double rank, rank_by_cost;                                       /* 1 is the best; NAN: none */
    bool fits;      /* the largest call's operands into the system's memory; true where nobody told that */
    unsigned notes; /* a `note` each */
} ranked;

/* A total of what is priced is no time of the model, and what does not fit does not run. */
static bool comes_in(const ranked *r)
{
    return r->f->enough && r->fits;
}

static ranked tell(const bz_forecast *f, const bz_price_list *prices)
{
    bool nothing = f->unpriced == f->layers && f->layers; /* has a price */
    double s = nothing ? NAN : f->sequential, memory = f->machine->memory;
    bool predicted = f->by[BZ_PREDICTED_RECORD] < 1;
    ranked r = {.f = f,
                .model = f->model,
                .system = f->machine->name,
                .batch = f->batch,
                .sequential = s,
                .low = s * f->low,
                .high = s * f->high,
                .parallel = nothing ? NAN : f->parallel,
                .fused = nothing ? NAN : f->fused,
                .throughput = NAN,
                .cost = NAN,
                .fits = !(memory > 0) || f->needed <= memory};
    r.time = comes_in(&r) ? s : NAN;
    r.notes = (predicted && f->beyond > 0 ? NOTE_NEWER : 0) | (predicted && f->beyond < 0 ? NOTE_OLDER : 0) |
              (f->no_unit > 0 ? NOTE_NO_UNIT : 0) | (r.fits ? 0 : NOTE_NO_ROOM);
    if (comes_in(&r) && s > 0) {
        r.throughput = (double)(f->batch > 0 ? f->batch : 1) / s;
        r.cost = cost(f, prices);
    }
    return r;
}

static int by_case(const ranked *a, const ranked *b)
{
    return BZ_THEN(BZ_ORDER(a->batch, b->batch), strcmp(a->model, b->model));
}

static double *number_at(ranked *r, size_t offset)
{
    return (double *)(void *)((char *)r + offset);
}

/* What has no such number comes last in its case. */
static int by_number(const void *a, const void *b, void *offset)
{
    ranked *p = *(ranked *const *)a, *q = *(ranked *const *)b;
    double x = *number_at(p, *(size_t *)offset), y = *number_at(q, *(size_t *)offset);
    return BZ_THEN(by_case(p, q), BZ_THEN(isnan(x) - isnan(y), BZ_ORDER(x, y)));
}

/* Those that are equal have the same rank, and what has no number has none. Returns how many cases there are. */
static int rank_by(size_t number, size_t rank, ranked **order, int n)
{
    int cases = 0, first = 0;
    qsort_r(order, (size_t)n, sizeof *order, by_number, &number);
    for (int i = 0; i < n; i++) {
        bool begins = !i || by_case(order[i - 1], order[i]),
             same = !begins && !by_number(&order[i - 1], &order[i], &number);
        first = begins ? i : first;
        cases += begins;
        *number_at(order[i], rank) = isnan(*number_at(order[i], number)) ? NAN
                                     : same                              ? *number_at(order[i - 1], rank)
                                                                         : i - first + 1;
    }
    return cases;
}

static int rank(const bz_forecast *f, int n, const bz_price_list *prices, ranked *out)
{
    BZ_FREED ranked **order = bz_alloc((size_t)n + 1, sizeof *order);
    for (int i = 0; i < n; i++)
        out[i] = tell(&f[i], prices), order[i] = &out[i];
    rank_by(offsetof(ranked, cost), offsetof(ranked, rank_by_cost), order, n);
    return rank_by(offsetof(ranked, time), offsetof(ranked, rank), order, n);
}

static void put_case(const bz_forecast *f, bz_buf *out)
{
    bz_buf_clean(out, bz_file_name(f->model));
    if (f->batch > 0)
        bz_buf_printf(out, " at batch %lld", (long long)f->batch);
}

/* The answer first: which system is fastest, and which cheapest. Of several models and batches, how often which one is. */
static void forecast_answer(const ranked *r, int n, int cases, bz_buf *out)
{
    const ranked *best = r, *cheap = NULL;
    int wins = 0;
    for (int i = 0; i < n; i++) {
        best = !by_case(&r[i], r) && r[i].rank == 1 ? &r[i] : best;
        cheap = !by_case(&r[i], r) && r[i].rank_by_cost == 1 ? &r[i] : cheap;
    }
    for (int i = 0; i < n; i++)
        wins += r[i].rank == 1 && !strcmp(r[i].f->machine->name, best->f->machine->name);
    const bz_forecast *f = best->f;
    put_case(f, out);
    if (!comes_in(best)) {
        bz_buf_puts(out, f->enough ? " fits into the memory of none of them.\n\n"
                                   : ": too little of it has a price for a time.\n\n");
        return;
    }
    bz_buf_printf(out, n > cases ? " would run fastest on " : " would run on ");
    bz_buf_say(out, "%s: %s (%s to %s)", f->machine->name, BZ_SAY_TIME(f->sequential),
               BZ_SAY_TIME(f->sequential * f->low), BZ_SAY_TIME(f->sequential * f->high));
    if (cheap)
        bz_buf_say(out, "; cheapest on %s: $%.4g a million", cheap->f->machine->name, cheap->cost);
    bz_buf_puts(out, ".");
    if (cases > 1 && n > cases)
        bz_buf_printf(out, " Of %d cases it is fastest in %d.", cases, wins);
    bz_buf_puts(out, "\n\n");
}

static bz_table *forecast_table(const ranked *r, int n, bool priced, bz_arena *arena)
{
    bz_table *t = bz_table_of(arena, "model|>batch|system|>sequential|>from|>to|>parallel|>fused|>a second|>rank");
    if (priced)
        bz_table_columns(t, ">$ a million|>rank by cost");
    bz_table_column(t, "predicted", BZ_RIGHT);
    for (const ranked *end = r + n; r < end; r++) {
        bz_table_cell(t, bz_file_name(r->model), r->model);
        BZ_ROW(t, BZ_SHOW_INT(r->batch), BZ_SHOW(r->system), BZ_SHOW_TIME(r->sequential), BZ_SHOW_TIME(r->low),
               BZ_SHOW_TIME(r->high), BZ_SHOW_TIME(r->parallel), BZ_SHOW_TIME(r->fused), BZ_SHOW_LARGE(r->throughput),
               BZ_SHOW_FIXED(0, r->rank));
        if (priced)
            BZ_ROW(t, BZ_SHOW_DIGITS(4, r->cost), BZ_SHOW_FIXED(0, r->rank_by_cost));
        BZ_ROW(t, BZ_SHOW_SHARE(1 - r->f->by[BZ_PREDICTED_RECORD]));
    }
    return t;
}

static void put_by(const void *of, bz_json *j)
{
    bz_json_object(j);
    for (int i = 0; i < BZ_PREDICTED_N; i++)
        bz_json_key_num(j, bz_predicted_names[i], ((const bz_forecast *)of)->by[i]);
    bz_json_object_end(j);
}

static const bz_member FORECAST[] = {BZ_FIELDS(bz_forecast, layers, predicted, unpriced, loops_open, branches, enough,
                                               needed, beyond, other_type, no_unit),
                                     BZ_MEMBER_WRITTEN("by", put_by)};
static const bz_member RANKED[] = {
    BZ_FIELDS(ranked, model, batch, system, sequential, low, high, parallel, fused, throughput, rank, cost,
              rank_by_cost, fits),
    BZ_MEMBERS_AT(ranked, f, FORECAST),
};

/* The systems of which this holds: each once, at most a few by name, and a colon. Returns the first row; NULL: none. */
static const ranked *put_systems(const ranked *r, int n, note holds, bz_buf *out)
{
    enum { NAMED = 4 };
    const ranked *which = NULL;
    int found = 0;
    for (int i = 0; i < n; i++) {
        bool first = r[i].notes & holds;
        for (int k = 0; k < i && first; k++)
            first = !(r[k].notes & holds) || strcmp(r[k].system, r[i].system) != 0;
        if (first && found++ < NAMED)
            bz_buf_say(out, "%s%s", found > 1 ? ", " : "", r[i].system);
        which = first && !which ? &r[i] : which;
    }
    if (found > NAMED)
        bz_buf_printf(out, " and %d more", found - NAMED);
    bz_buf_puts(out, found ? ": " : "");
    return which;
}

static void forecast_notes(const ranked *r, int n, bz_buf *out)
{
    int unpriced = 0, loops = 0, branches = 0;
    bool lacking = false;
    double by[BZ_PREDICTED_N] = {0}, other_type = 0;
    for (int i = 0; i < n; i++) {
        other_type = fmax(other_type, r[i].f->other_type);
        unpriced = r[i].f->unpriced > unpriced ? r[i].f->unpriced : unpriced;
        lacking |= !r[i].f->enough;
        loops = r[i].f->loops_open > loops ? r[i].f->loops_open : loops;
        branches = r[i].f->branches > branches ? r[i].f->branches : branches;
        for (int k = 0; k < BZ_PREDICTED_N; k++)
            by[k] += r[i].f->by[k] / n;
    }
    bz_buf_puts(out, "Of the time:");
    for (int k = 0, told = 0; k < BZ_PREDICTED_N; k++)
        if (by[k] >= 0.0005)
            bz_buf_printf(out, "%s %.1f %% by %s", told++ ? "," : "", 100 * by[k],
                          k == BZ_PREDICTED_RECORD       ? "records of the system itself"
                          : k == BZ_PREDICTED_NEIGHBOURS ? "the same problem on others"
                          : k == BZ_PREDICTED_BATCHES    ? "the same on others at other batches"
                          : k == BZ_PREDICTED_SCALED     ? "a scaling from one other"
                          : k == BZ_PREDICTED_LEARNED    ? "problems like it"
                                                         : "the roofline alone");
    bz_buf_puts(out, ".\nNine of ten such intervals, from - to, held the measured sum where a system was left out.\n");
    static const char BEYOND[] =
        " than all systems whose records tell of this. Such intervals were never held against a measurement.\n";
    if (put_systems(r, n, NOTE_NEWER, out))
        bz_buf_printf(out, "newer%s", BEYOND);
    if (put_systems(r, n, NOTE_OLDER, out))
        bz_buf_printf(out, "older%s", BEYOND);
    if (put_systems(r, n, NOTE_NO_UNIT, out))
        bz_buf_puts(out, "no unit for bf16, so it is told at the rate of f32; libraries may refuse it there.\n");
    const ranked *tight = put_systems(r, n, NOTE_NO_ROOM, out);
    if (tight) {
        bz_buf_puts(out, "too little memory. ");
        put_case(tight->f, out);
        bz_buf_printf(out, " has a layer with %s of operands, %s has %s: such a case has no rank.\n",
                      BZ_SAY_BYTES(tight->f->needed), tight->system, BZ_SAY_BYTES(tight->f->machine->memory));
    }
    if (other_type >= 0.005) /* as much as is printed */
        bz_buf_printf(out,
                      "Up to %.0f %% of the time is in a data type of which no system has a record: the ratio of rates "
                      "alone tells it from others.\n",
                      100 * other_type);
    if (unpriced)
        bz_buf_printf(out, "Up to %d layers have no price: the totals are lower ends%s.\n", unpriced,
                      lacking ? ", and where they lack much, there is no rank" : "");
    report_guesses(loops, branches, out);
}

void bz_report_forecasts(const bz_forecast *f, int n, const bz_price_list *prices, bz_form form, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    ranked *r = BZ_NEW(&arena, ranked, n);
    int cases = rank(f, n, prices, r);
    if (form == BZ_FORM_JSON) {
        bz_json j = bz_json_document_to(out, 3, "predict", 1);
        bz_members_rows("rows", BZ_MEMBERS(RANKED), r, sizeof *r, n, &j);
        bz_json_document_end(&j);
    } else if (form == BZ_FORM_CSV) {
        bz_table_csv(forecast_table(r, n, prices->n > 0, &arena), out);
    } else {
        forecast_answer(r, n, cases, out);
        bz_table_print(forecast_table(r, n, prices->n > 0, &arena), out);
        forecast_notes(r, n, out);
    }
}

/* The network of dense layers stands beside the others where it was trained. */
static int rules_of(const bz_error_sum *all)
{
    return isnan(all->total[BZ_RULE_DENSE]) ? BZ_RULE_DENSE : BZ_RULES;
}

static void error_row(bz_table *t, const bz_error_sum *e, const char *what, int rules)
{
    bool kind = what[0] == 'k', network = what[0] == 'n';
    BZ_ROW(t, BZ_SHOW(what), BZ_SHOW(e->name), BZ_SHOW_INT(e->n), BZ_SHOW_SHARE(kind ? NAN : e->total[0]),
           BZ_SHOW_SHARE(kind ? NAN : e->bias), BZ_SHOW_SHARE(network ? NAN : e->layers),
           BZ_SHOW_SHARE(network ? NAN : e->median), BZ_SHOW_SHARE(kind || network ? NAN : e->inside));
    for (int i = 1; i < rules; i++)
        BZ_ROW(t, BZ_SHOW_SHARE(e->total[i]));
}

static bz_table *judgement_table(const bz_judgement *g, bz_arena *arena)
{
    bz_table *t = bz_table_of(arena, "of|name|>n|>error|>bias|>of calls|>median|>inside");
    int scalings = g->leave != BZ_LEAVE_NETWORK && g->leave != BZ_LEAVE_BATCH ? rules_of(&g->all) : 0;
    for (int i = 1; i < scalings; i++)
        bz_table_column(t, bz_rule_names[i], BZ_RIGHT);
    error_row(t, &g->all, "all", scalings);
    for (int i = 0; i < g->machines; i++)
        error_row(t, &g->machine[i], "system", scalings);
    for (int i = 0; i < g->networks; i++)
        error_row(t, &g->network[i], "network", scalings);
    for (int i = 0; i < g->kinds; i++)
        error_row(t, &g->kind[i], "kind", scalings);
    return t;
}

static void put_rules(const double by[BZ_RULES], bz_json *j)
{
    for (int k = 0; k < BZ_RULES; k++)
        bz_json_key_num(j, bz_rule_names[k], by[k]);
}

static const bz_member ERRORS[] = {BZ_FIELDS(bz_error_sum, name, n, bias), BZ_MEMBER_AS(bz_error_sum, layers, "calls"),
                                   BZ_FIELDS(bz_error_sum, median, inside)};

static void errors_json(const char *key, const bz_error_sum *e, int n, bz_json *j)
{
    BZ_JSON_EACH (j, key, i, n) {
        bz_members_json(BZ_MEMBERS(ERRORS), &e[i], j);
        put_rules(e[i].total, j);
    }
}

static void pairs_json(const bz_judgement *g, bz_json *j)
{
    BZ_JSON_EACH (j, "pairs", i, g->pairs) {
        BZ_JSON(j, BZ_TELL("from", g->samples->machine[g->pair[i].from].name),
                BZ_TELL("to", g->samples->machine[g->pair[i].to].name), BZ_TELL("n", g->pair[i].n));
        put_rules(g->pair[i].error, j);
    }
}

/* One system is known, as a line, and another is predicted, as a column. */
static void pairs_text(const bz_judgement *g, bz_arena *arena, bz_buf *out)
{
    const bz_samples *s = g->samples;
    bz_table *t = bz_table_new(arena);
    double sum[BZ_RULES] = {0};
    bz_table_column(t, "from", BZ_LEFT);
    for (int d = 0; d < s->machines; d++)
        bz_table_column(t, bz_arena_printf(arena, "to %s", s->machine[d].name), BZ_RIGHT);
    for (int o = 0; o < s->machines; o++) {
        bz_table_cell(t, s->machine[o].name, NULL);
        for (int d = 0; d < s->machines; d++) {
            double is = NAN;
            for (int i = 0; i < g->pairs; i++)
                is = g->pair[i].from == o && g->pair[i].to == d ? g->pair[i].error[0] : is;
            BZ_ROW(t, BZ_SHOW_SHARE(is));
        }
    }
    for (int i = 0; i < g->pairs; i++)
        for (int k = 0; k < BZ_RULES; k++)
            sum[k] += g->pair[i].error[k] / g->pairs;
    bz_buf_printf(out,
                  "\nFrom one system to another, by the calls that both have: %d pairs, off by %.1f %% on average (",
                  g->pairs, 100 * sum[0]);
    for (int k = 1; k < rules_of(&g->all); k++)
        bz_buf_printf(out, "%s%s %.1f %%", k > 1 ? ", " : "", bz_rule_names[k], 100 * sum[k]);
    bz_buf_puts(out, ")\n");
    bz_table_print(t, out);
}

static void choices_text(const bz_judgement *g, bz_buf *out)
{
    int others = 0;
    for (int i = 0; i < g->choices; i++)
        others += strcmp(g->choice[i].way, bz_way_name(0)) != 0;
    bz_buf_printf(out,
                  "\nEach kind of problem on a system that is left out goes by the rule, unless another way was surely "
                  "nearer on the other systems: it is the rule in %d cases of %d",
                  g->choices - others, g->choices);
    for (int i = 0, told = 0; i < g->choices; i++)
        if (strcmp(g->choice[i].way, bz_way_name(0)) != 0)
            bz_buf_say(out, "%s%s of %s by %s", told++ ? ", " : "; ", g->choice[i].kind, g->choice[i].system,
                       g->choice[i].way);
    bz_buf_puts(out, ".\n");
}

static const bz_member CHOICE[] = {BZ_FIELDS(bz_choice_made, system, kind, way)};

static const bz_member JUDGEMENT[] = {
    BZ_MEMBER(bz_judgement, left_out),
    BZ_MEMBER_AS(bz_judgement, few.share, "few"),
    BZ_MEMBER_AS(bz_judgement, few.seconds, "budget"),
    BZ_FIELDS(bz_judgement, spent, ranked, quantile, printed),
};

static void judgement_json(const bz_judgement *g, bz_json *j)
{
    bz_json_object(j);
    bz_members_json(BZ_MEMBERS(JUDGEMENT), g, j);
    errors_json("all", &g->all, 1, j);
    errors_json("systems", g->machine, g->machines, j);
    errors_json("networks", g->network, g->networks, j);
    errors_json("kinds", g->kind, g->kinds, j);
    pairs_json(g, j);
    bz_members_rows("choices", BZ_MEMBERS(CHOICE), g->choice, sizeof *g->choice, g->choices, j);
    BZ_JSON_EACH_ARRAY (j, "points", i, g->points) {
        const bz_judged *p = &g->point[i];
        const double seconds[] = {p->measured, p->predicted, p->low, p->high};
        for (int k = 0; k < 4; k++)
            bz_json_num(j, seconds[k]);
        bz_json_int(j, p->machine);
        bz_json_int(j, p->network);
        bz_json_int(j, p->batch);
    }
    bz_json_object_end(j);
}

static void judgement_text(const bz_judgement *g, bz_arena *arena, bz_buf *out)
{
    if (g->missing) {
        bz_buf_printf(out, "No %s was left out: %s.\n", g->left_out, g->missing);
        return;
    }
    bz_buf_printf(out, "One %s left out after the other", g->left_out);
    if (g->few.share > 0)
        bz_buf_printf(out, ", but for %.0f %% of its problems", 100 * g->few.share);
    if (g->few.seconds > 0)
        bz_buf_printf(out, ", but for what %.0f s measure", g->few.seconds);
    if (!isnan(g->spent))
        bz_buf_printf(out, " (which took %.0f s)", g->spent);
    bz_buf_printf(out, ": a network's time is off by %.1f %% on average (%d sums; %.1f %% of calls, median %.1f %%)",
                  100 * g->all.total[0], g->all.n, 100 * g->all.layers, 100 * g->all.median);
    if (!isnan(g->ranked) && g->machines > 1)
        bz_buf_printf(out, "; %.1f %% of pairs of systems in the right order", 100 * g->ranked);
    bz_buf_printf(out, ".\nIntervals: %.1f %% of the sums inside; nine of ten are within %.2f spreads.\n",
                  100 * g->all.inside, g->quantile);
    if (g->few.seconds > 0 || (g->few.share > 0 && g->few.share != 0.05)) /* a point of a curve */
        return;
    bz_buf_putc(out, '\n');
    bz_table_print(judgement_table(g, arena), out);
    if (g->pairs)
        pairs_text(g, arena, out);
    if (g->choices)
        choices_text(g, out);
}

static void judgements_json(const bz_judgement *g, int n, bz_buf *out)
{
    bz_json j = bz_json_to(out, true);
    int made = 0;
    j.flat = 5;
    bz_json_document(&j, "predict-errors", 1);
    bz_json_key_array(&j, "rounds");
    for (; made < n && !g[made].missing; made++)
        judgement_json(&g[made], &j);
    bz_json_array_end(&j);
    g += made;
    BZ_JSON_EACH (&j, "not_made", i, n - made)
        BZ_PUT(&j, bz_judgement, &g[i], left_out, missing);
    bz_json_document_end(&j);
}

static void judgements(const bz_judgement *g, int n, bz_form form, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    if (form == BZ_FORM_JSON)
        judgements_json(g, n, out);
    for (int i = 0; i < n && form != BZ_FORM_JSON; i++) {
        if (form == BZ_FORM_TEXT)
            judgement_text(&g[i], &arena, out);
        else if (!g[i].missing)
            bz_table_csv(judgement_table(&g[i], &arena), out);
        if (form == BZ_FORM_TEXT && i + 1 < n && !g[i].missing) /* those that are missing stand together */
            bz_buf_putc(out, '\n');
    }
}

void bz_report_predictions(const bz_predictions *p, bz_form form, bz_buf *out)
{
    if (p->round)
        judgements(p->round, p->n, form, out);
    else
        bz_report_forecasts(p->forecast, p->n, p->prices, form, out);
}

void bz_report_predictions_page(const bz_predictions *p, bz_buf *out)
{
    BZ_SCOPED(bz_buf) text = {0}, json = {0};
    bz_report_predictions(p, BZ_FORM_TEXT, &text);
    bz_report_predictions(p, BZ_FORM_JSON, &json);
    bz_report_document_page(p->round ? "How far off predictions are" : "Predictions", bz_buf_text(&json),
                            bz_buf_text(&text), out);
}
