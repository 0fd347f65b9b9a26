/* What could be gained, for programs: docs/formats.md tells what the members mean. */
#include "base/member.h"
#include "report/parts.h"

static const bz_member PATTERN[] = {
    BZ_FIELDS(bz_fusion_row, pattern, places, covered, modelled, missing, refused, failed, why),
    BZ_MEMBER_IF_KNOWN(bz_fusion_row, fused),
    BZ_FIELDS(bz_fusion_row, written, together, gain, alone, alone_parallel),
};

static const bz_member FUSION[] = {
    BZ_FIELDS(bz_fusion, sequential, parallel),
    BZ_MEMBER_EACH(bz_fusion, row, n, "patterns", PATTERN),
};

static const bz_member WAY[] = {
    BZ_FIELDS(bz_unit_way, name, layout, calibrated, sequential, parallel, fused, fused_parallel, gain, layers, unknown,
              conversions, converted, modelled, open),
};

static const bz_member UNIT[] = {BZ_FIELDS(bz_unit_row, used, could, evidence, why, seconds, best, best_way)};

static const bz_member UNITS[] = {BZ_FIELDS(bz_units, unit, used, could)};

static void put_units(const bz_bound *b, const bz_units *u, bool ways, bz_json *j)
{
    bz_json_key_object(j, "units");
    bz_members_json(BZ_MEMBERS(UNITS), u, j);
    BZ_JSON_EACH (j, "rows", i, u->n) {
        const bz_unit_row *r = &u->row[i];
        bz_json_key_str(j, "layer", r->layer < 0 ? NULL : b->layer[r->layer].layer->name);
        if (r->call)
            bz_json_key_str(j, "call", r->call);
        bz_members_json(BZ_MEMBERS(UNIT), r, j);
    }
    if (ways)
        bz_members_rows("ways", BZ_MEMBERS(WAY), u->way, sizeof *u->way, u->n_ways, j);
    bz_json_object_end(j);
}

void report_gains_json(const bz_analysis *a, bz_json *j)
{
    static const bz_member GAINS[] = {BZ_MEMBER_AT(bz_analysis, fusion, "fusion", FUSION)};
    bz_members_json(BZ_MEMBERS(GAINS), a, j);
    if (a->units)
        put_units(&a->bound, a->units, true, j);
}

static bool contradicts(const void *step)
{
    return ((const bz_step *)step)->seconds < 0;
}

static const bz_member CONTRADICTION[] = {BZ_MEMBER_HOLDS("contradiction", contradicts)};
static const bz_member STEP[] = {BZ_FIELDS(bz_step, name, seconds), BZ_MEMBERS_WHERE(contradicts, CONTRADICTION)};

static void put_waterfall(const bz_waterfall *w, bz_json *j)
{
    static const char *const NAMES[BZ_WAYS] = {"framework", "algorithms", "fusion", "precision", "parallel"};
    bz_json_key_object(j, "waterfall");
    BZ_JSON(j, BZ_TELL("from", w->from), BZ_TELL("to", w->to));
    bz_members_rows("steps", BZ_MEMBERS(STEP), w->step, sizeof *w->step, w->n, j);
    BZ_JSON_EACH (j, "joint", ways, 1 << BZ_WAYS) {
        BZ_JSON_EACH_VALUE (j, "ways", k, BZ_WAYS)
            if (ways >> k & 1)
                bz_json_str(j, NAMES[k]);
        bz_json_key_num(j, "seconds", w->joint[ways]);
    }
    bz_json_object_end(j);
}

/* Null where nothing tells. */
static void put_holds(const void *state, bz_json *j)
{
    const bz_state *s = state;
    if (s->known)
        bz_json_bool(j, s->holds);
    else
        bz_json_null(j);
}

/* What the program does already. */
static const bz_member STATE[] = {BZ_FIELDS(bz_state, id, what), BZ_MEMBER_WRITTEN("holds", put_holds),
                                  BZ_MEMBER(bz_state, evidence)};

static const bz_member ANSWER[] = {BZ_FIELDS(bz_answer, item, step, seconds, advice, why)};

static const bz_member ADVICE[] = {
    BZ_FIELDS(bz_advice, id, what, evidence, step, gain, low, high, unsure, by, predicted),
};

void report_advice_json(const bz_ladder *l, bz_json *j)
{
    static const bz_member LISTS[] = {
        BZ_MEMBER_EACH(bz_ladder, advice, n_advices, "advice", ADVICE),
        BZ_MEMBER_EACH(bz_ladder, answer, n_answers, "answers", ANSWER),
        BZ_MEMBER_EACH(bz_ladder, state, n_states, "states", STATE),
    };
    bz_members_json(BZ_MEMBERS(LISTS), l, j);
}

void report_steps_json(const bz_bound *b, const bz_ladder *l, bz_json *j)
{
    bz_json_key_str(j, "framework", l->framework);
    if (l->units)
        put_units(b, l->units, false, j);
    if (l->waterfall)
        put_waterfall(l->waterfall, j);
    report_advice_json(l, j);
}
