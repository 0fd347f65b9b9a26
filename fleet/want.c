/* What is missing or doubtful in a database, and how long it will take to measure. */
#include "fleet/constants.h"
#include "fleet/fleet.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *id, *name;
} WHY[BZ_WANTS] = {
    [BZ_WANT_NOT] = {"known", "known"},
    [BZ_WANT_NEW] = {"new", "never measured"},
    [BZ_WANT_STACK] = {"stack", "other stack"},
    [BZ_WANT_PART] = {"part", "measured in part"},
    [BZ_WANT_OLD] = {"old", "too old"},
    [BZ_WANT_NOISY] = {"noisy", "noisy"},
    [BZ_WANT_PASSING] = {"passing", "failed in passing"},
};

const char *bz_want_name(bz_want_why why)
{
    return WHY[why].name;
}

const char *bz_want_id(bz_want_why why)
{
    return WHY[why].id;
}

typedef struct wanting {
    bz_perfdb *db;
    const bz_want_options *o;
    const bz_system *system;
    const bz_system **others; /* stacks that tell how long things take: of the same slug first, newest first */
    int n_others, n_same;     /* n_same: of the same slug */
    bz_arena *scratch;
    bz_error *err;
} wanting;

static bool doubtful(const bz_record *r)
{
    return bz_record_marked(r) || bz_record_cause_of(r) != BZ_CAUSE_LASTING;
}

/* Whether the newest measurements of this identity were all doubtful, as many as are allowed. */
static int tried_enough(const wanting *w, const bz_record *r, bool *enough)
{
    bz_record *list;
    size_t n, k = 0;
    *enough = w->o->retries == 0;
    if (*enough)
        return 0;
    if (bz_perfdb_history(w->db, w->system, r->problem, &r->variant, &r->setting, w->scratch, &list, &n, w->err))
        return -1;
    while (k < n && doubtful(&list[k]))
        k++;
    *enough = k > (size_t)w->o->retries;
    return 0;
}

/* As bz_records_complete, by the records that are not older than allowed. */
static bool fresh(const wanting *w, const bz_record *records, size_t n, const bz_variant *family)
{
    if (!w->o->max_age)
        return true;
    bz_record *young = bz_arena_take(w->scratch, n * sizeof *young + 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (records[i].date >= w->o->now - w->o->max_age)
            young[k++] = records[i];
    return bz_records_complete(young, k, family, &w->o->setting);
}

static int judge(const wanting *w, const bz_record *records, size_t n, const bz_variant *family, bz_want_why *why)
{
    bool any = false;
    *why = BZ_WANT_NOT;
    for (size_t i = 0; i < n; i++)
        any |= bz_record_in_family(&records[i], family, &w->o->setting);
    if (!bz_records_complete(records, n, family, &w->o->setting)) {
        *why = any ? BZ_WANT_PART : BZ_WANT_NEW;
        return 0;
    }
    if (!fresh(w, records, n, family)) {
        *why = BZ_WANT_OLD;
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        bool enough;
        if (!doubtful(&records[i]) || !bz_record_in_family(&records[i], family, &w->o->setting))
            continue;
        if (tried_enough(w, &records[i], &enough))
            return -1;
        if (!enough)
            *why = bz_record_cause_of(&records[i]) != BZ_CAUSE_LASTING ? BZ_WANT_PASSING : BZ_WANT_NOISY;
    }
    return 0;
}

/* How long measuring took that made this record: its calls, and as much again to get there. */
static double cost(const wanting *w, const bz_record *r)
{
    double limit = w->o->time_limit > 0 ? w->o->time_limit : TIME_LIMIT;
    if (r->status == BZ_RECORD_TIMEOUT)
        return SECONDS_PER_HANG;
    if (!(r->median > 0) || r->status == BZ_RECORD_FAILED || r->status == BZ_RECORD_UNSUPPORTED)
        return SECONDS_PER_REFUSAL;
    double calls = r->median * (double)r->iterations, most = fmax(MOST_LIMITS * limit, LEAST_ROUNDS * r->median);
    return SECONDS_PER_VARIANT + LEAST_ROUNDS * r->median + fmin(calls, most);
}

static bool family_seconds(const wanting *w, const bz_record *records, size_t n, const bz_variant *family,
                           double *seconds)
{
    bool any = false;
    *seconds = 0;
    for (size_t i = 0; i < n; i++)
        if (bz_record_in_family(&records[i], family, &w->o->setting)) {
            *seconds += cost(w, &records[i]);
            any = true;
        }
    return any;
}

/* A problem whose families are estimated, and its records on one of the other stacks. */
typedef struct elsewhere {
    const char *problem;
    float *cached; /* of its families, or NULL */
    bz_record *records;
    size_t n;
    int at; /* stack that they are of; -1: none read yet */
} elsewhere;

/* By the first stack of a range that knows the family; 0 s where none does. */
static int look_elsewhere(const wanting *w, elsewhere *e, int first, int end, const bz_variant *family, double *seconds)
{
    *seconds = 0;
    for (int i = first; i < end; i++) {
        if (e->at != i && bz_perfdb_variants(w->db, w->others[i], e->problem, w->scratch, &e->records, &e->n, w->err))
            return -1;
        e->at = i;
        if (family_seconds(w, e->records, e->n, family, seconds))
            return 0;
    }
    return 0;
}

/* By this stack, else by others of its slug, else by any. */
static int estimate(const wanting *w, const bz_record *own, size_t n_own, elsewhere *e, int f, const bz_variant *family,
                    bz_want_why *why, double *seconds, int *guessed)
{
    if (family_seconds(w, own, n_own, family, seconds) && *why != BZ_WANT_PART)
        return 0;
    if (look_elsewhere(w, e, 0, w->n_same, family, seconds))
        return -1;
    if (*seconds > 0) {
        *why = *why == BZ_WANT_NEW ? BZ_WANT_STACK : *why;
        return 0;
    }
    if (e->cached && e->cached[f] != 0)
        *seconds = e->cached[f] > 0 ? e->cached[f] : 0;
    else if (look_elsewhere(w, e, w->n_same, w->n_others, family, seconds))
        return -1;
    if (e->cached)
        e->cached[f] = *seconds > 0 ? (float)*seconds : -1;
    if (*seconds > 0)
        return 0;
    ++*guessed;
    *seconds = UNKNOWN_VARIANTS * (SECONDS_PER_VARIANT + (w->o->time_limit > 0 ? w->o->time_limit : TIME_LIMIT));
    return 0;
}

static int want_problem(const wanting *w, const bz_plan_problem *p, int number, bz_want *out)
{
    bz_record *own = NULL;
    size_t n = 0;
    elsewhere e = {.problem = p->text, .at = -1};
    e.cached = w->o->elsewhere ? w->o->elsewhere + (size_t)number * BZ_PLAN_FAMILIES : NULL;
    double all = 0;
    if (w->system && bz_perfdb_variants(w->db, w->system, p->text, w->scratch, &own, &n, w->err))
        return -1;
    bool any = false;
    for (int f = 0; f < p->n_families; f++) {
        const bz_variant family = {p->family[f].backend, "", p->family[f].layout, p->family[f].math};
        bz_want_why why = BZ_WANT_NEW;
        double seconds = 0;
        if (w->system && judge(w, own, n, &family, &why))
            return -1;
        if (why && estimate(w, own, n, &e, f, &family, &why, &seconds, &out->guessed))
            return -1;
        out->why[(size_t)number * BZ_PLAN_FAMILIES + (size_t)f] = (unsigned char)why;
        out->count[why]++;
        all += seconds;
        any |= why != BZ_WANT_NOT;
    }
    double pace = w->o->pace > 0 ? w->o->pace : 1;
    out->seconds[number] = all * pace;
    out->total += all * pace;
    out->problems += any;
    return 0;
}

static bool has_slug(const char *name, const char *slug)
{
    size_t n = strlen(slug);
    return !strncmp(name, slug, n) && (!name[n] || name[n] == '@');
}

static int find_others(wanting *w, const char *slug, bz_arena *arena)
{
    const bz_system **list;
    size_t n;
    if (bz_perfdb_systems(w->db, arena, &list, &n, w->err))
        return -1;
    w->others = BZ_NEW(arena, const bz_system *, OTHER_STACKS);
    for (size_t i = n; i-- > 0 && slug && w->n_others < OTHER_STACKS;)
        if (list[i] != w->system && has_slug(list[i]->name, slug))
            w->others[w->n_others++] = list[i];
    w->n_same = w->n_others;
    for (size_t i = n; i-- > 0 && w->n_others < OTHER_STACKS;)
        if (list[i] != w->system && !(slug && has_slug(list[i]->name, slug)))
            w->others[w->n_others++] = list[i];
    return 0;
}

int bz_want_make(const bz_plan *plan, bz_perfdb *db, const bz_system *system, const char *slug,
                 const bz_want_options *options, bz_arena *arena, bz_want *out, bz_error *err)
{
    const bz_plan_problem *problem;
    BZ_SCOPED(bz_arena) scratch = {0};
    int n = bz_plan_problems(plan, &problem);
    wanting w = {.db = db, .o = options, .system = system, .scratch = &scratch, .err = err};
    *out = (bz_want){.system = system,
                     .n = n,
                     .why = BZ_NEW(arena, unsigned char, (size_t)n *BZ_PLAN_FAMILIES),
                     .seconds = BZ_NEW(arena, double, n)};
    int rc = find_others(&w, slug, arena);
    for (int i = 0; i < n && !rc; i++) {
        rc = want_problem(&w, &problem[i], i, out);
        if (scratch.used > 1 << 20)
            bz_arena_free(&scratch);
    }
    return rc;
}
