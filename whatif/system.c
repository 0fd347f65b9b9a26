/* The same program on another system, or with another version of its libraries: calls by records of both, where one has none by
 * what the room predict says of both; other kernels by the rates of both devices. The host stays what it was. */
#include "whatif/records.h"

#include "predict/predict.h"
#include "transfer/transfer.h"
#include "whatif/constants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A system by its records, its rates, or both. */
typedef struct {
    const bz_system *system; /* NULL: the database has none such */
    bz_machine machine;
    bool rates; /* `machine` is known */
    bz_aim *aim;
} side;

typedef struct {
    bz_whatif_asked *asked;
    side from, to;
    bz_samples samples;
    bz_predictor *predictor;
    bool tried;    /* to predict */
    double spread; /* of logarithms of what was predicted, the sum of their squares */
    int priced, predicted;
    int64_t guessed;
    bz_call_factors calls;
} move;

static void find_rates(move *m, side *s)
{
    bz_error err;
    const bz_system_facts *facts;
    s->rates = !bz_transfers_facts(m->asked->records->db, s->system, m->asked->arena, &facts, &err) &&
               !bz_machine_of(facts, s->system->name, &m->asked->records->setting, &s->machine, &err);
}

/* Of the database, or a GPU of the data sheets. */
static int find_sides(move *m)
{
    bz_error *err = m->asked->err;
    const bz_whatif_records *r = m->asked->records;
    m->from.system = r->system;
    m->from.rates = true;
    if (r->system)
        find_rates(m, &m->from);
    else if (bz_machine_named(r->device, m->asked->arena, &m->from.machine, err))
        return -1;
    if (bz_perfdb_system(r->db, m->asked->text, &m->to.system, err))
        return -1;
    if (!m->to.system) {
        m->to.rates = true;
        return bz_machine_named(m->asked->text, m->asked->arena, &m->to.machine, err);
    }
    find_rates(m, &m->to);
    return 0;
}

static bz_aim *aim_at(const move *m, const side *s)
{
    int own = s->system ? bz_samples_machine(&m->samples, s->system->name) : -1;
    return bz_predictor_aim(m->predictor, &s->machine, &m->samples, own, NULL);
}

/* Once, where some call has no record: reading all records takes longer than all the rest. */
static int start_predicting(move *m)
{
    const bz_whatif_records *r = m->asked->records;
    if (m->tried || !m->from.rates || !m->to.rates || m->from.machine.gpu != m->to.machine.gpu)
        return 0;
    m->tried = true;
    if (bz_samples_load(r->db, &r->setting, NULL, &m->samples, m->asked->err))
        return -1;
    m->predictor = bz_predictor_best(&m->samples, m->to.machine.gpu);
    if (m->predictor) {
        m->from.aim = aim_at(m, &m->from);
        m->to.aim = aim_at(m, &m->to);
    }
    return 0;
}

/* Where nine of ten are: that far off by the spread of the logarithm, on this side. */
static double side_of(const move *m, double spread)
{
    return exp(BZ_NINE_OF_TEN * spread * (m->asked->side - 1));
}

static int predict_factor(move *m, const bz_priced_call *call, double *factor)
{
    const bz_problem *p = call->problem;
    bz_shape shape;
    if (start_predicting(m))
        return -1;
    if (!m->from.aim || !m->to.aim)
        return 0;
    bz_shape_of(p, &shape);
    if (!bz_predictor_met(m->predictor, &shape))
        return 0;
    const char *text = bz_problem_text(p, m->asked->arena);
    bz_predicted_time a = bz_predict(m->from.aim, text, &shape), b = bz_predict(m->to.aim, text, &shape);
    if (a.seconds > 0 && b.seconds > 0) {
        *factor = b.seconds / a.seconds * side_of(m, sqrt(a.spread * a.spread + b.spread * b.spread));
        m->predicted++;
        m->guessed = bz_flow_sum(m->guessed, call->time);
    }
    return 0;
}

/* Best by best: what the program lost by its choice of variants it loses there, too. */
static int find_factor(void *user, const bz_priced_call *call, double *factor)
{
    move *m = user;
    double from = NAN, to = NAN;
    if ((m->from.system && bz_whatif_price(m->asked, call->problem, NULL, NULL, &from)) ||
        (m->to.system && bz_whatif_price_on(m->asked, m->to.system, call->problem, NULL, NULL, &to)))
        return -1;
    if (isfinite(from) && isfinite(to) && from > 0) {
        *factor = to / from;
        m->priced++;
        return 0;
    }
    return predict_factor(m, call, factor);
}

static double computing(const move *m)
{
    const bz_machine *a = &m->from.machine, *b = &m->to.machine;
    double margin = bz_kinships[0].margin;
    return a->f32 * bz_machine_held(a, margin) / (b->f32 * bz_machine_held(b, margin));
}

/* Between like devices rooflines are less far off. */
static double guess(const move *m, double ratio)
{
    return ratio * exp(ROOFLINE_OFF * fmin(1, fabs(log(ratio))) * (m->asked->side - 1));
}

/* Kernels of no known problem, by the rates of both: arithmetic or memory, above what the shortest kernel takes. */
static int scale_others(move *m, bz_flow *flow)
{
    int64_t shortest[BZ_TASK_KINDS];
    size_t calls = m->asked->trace->event[BZ_EVENT_CALL].n;
    double compute = computing(m), memory = m->from.machine.bandwidth / m->to.machine.bandwidth;
    int n = 0;
    bz_whatif_shortest(flow, shortest);
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (t->removed || t->kind != BZ_TASK_KERNEL || (t->call < calls && m->calls.factor[t->call] > 0))
            continue;
        bool computes = bz_kernel_limit_of(bz_whatif_does(m->asked, t)) == BZ_LIMIT_COMPUTE;
        bz_whatif_grow(flow, i, guess(m, computes ? compute : memory),
                       bz_whatif_number(m->asked, "floor") * (double)shortest[t->kind]);
        n++;
    }
    return n;
}

static void tell(move *m, int others)
{
    bz_whatif_asked *asked = m->asked;
    const char *name = m->to.system ? m->to.system->name : m->to.machine.name;
    if (m->priced)
        bz_whatif_assume(asked, BZ_ASSUMED_MEASURED,
                         bz_arena_printf(asked->arena, "%s and of %s", asked->records->name, name),
                         "%d of %d calls have records of both systems", m->priced, m->calls.calls);
    if (m->predicted)
        bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "predicted from records of other problems and machines",
                         "%d calls, %s of the recording, lack a record on one of both systems", m->predicted,
                         BZ_SAY_NS(m->guessed));
    if (m->priced + m->predicted)
        bz_whatif_assume(asked, m->predicted ? BZ_ASSUMED_MODELLED : BZ_ASSUMED_MEASURED, "the ratios of both",
                         "%s of calls become %s", BZ_SAY_TALLY(m->calls.scaled));
    if (others)
        bz_whatif_assume_parameter(asked, "floor",
                                   "%d kernels of no known problem: what they take above %.3g times the shortest, by "
                                   "the ratio of the peaks under load (%.3g) or of the bandwidths (%.3g)",
                                   others, bz_whatif_number(asked, "floor"), computing(m),
                                   m->from.machine.bandwidth / m->to.machine.bandwidth);
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the recording",
                     "the host, its launches and copies take what they took; so does what no record tells of");
}

static void end(move *m)
{
    bz_aim_free(m->from.aim);
    bz_aim_free(m->to.aim);
    bz_predictor_free(m->predictor);
    bz_samples_free(&m->samples);
}

int bz_whatif_system(bz_flow *flow, bz_whatif_asked *asked)
{
    move m = {.asked = asked};
    int others = 0;
    if (!asked->text)
        return bz_whatif_because(asked, "it needs a system: %s=NAME", asked->row->name);
    if (!asked->records)
        return bz_whatif_because(asked, "name the system that the recording is of with --system");
    int failed = find_sides(&m) || bz_whatif_factors(flow, asked, find_factor, &m, &m.calls);
    if (!failed) {
        bz_whatif_scale_calls(flow, asked, m.calls.factor);
        if (m.from.rates && m.to.rates && m.from.machine.gpu && m.to.machine.gpu)
            others = scale_others(&m, flow);
    }
    end(&m);
    if (failed)
        return -1;
    if (!m.priced && !m.predicted && !others)
        return bz_whatif_because(
            asked,
            "of %d calls whose problem is known none has a record on both systems, and nothing is known to predict by",
            m.calls.calls);
    tell(&m, others);
    return m.priced + m.predicted + others;
}
