/* What the latency is above the bound by, and the advice for each part of that; where there is none, a sentence says so. */
#include "advice/constants.h"
#include "advice/rules.h"
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bz_rung_kind step_of_cause(const bz_cause *c)
{
    return c->kind == BZ_CAUSE_LAYERS_OUTSIDE ? BZ_RUNG_OUTSIDE : c->busy ? BZ_RUNG_EXTRA : BZ_RUNG_BETWEEN;
}

/* Why no advice is known. What the program does already comes before that. */
static const char *const NONE[BZ_RUNGS] = {
    [BZ_RUNG_BETWEEN] = "the recording does not show what the program does in this time",
    [BZ_RUNG_EXTRA] = "the recording does not show why the program does this work",
    [BZ_RUNG_ALGORITHMS] = "the library chooses the implementation, and the framework has no setting for it",
    [BZ_RUNG_FAR] = "no cache keeps the weights of all layers until the next iteration",
    [BZ_RUNG_SLOWER] = "the recording does not show why the same calls took longer in the program than alone",
    [BZ_RUNG_OUTSIDE] = "no step of the framework is known that gives these layers to the library",
    [BZ_RUNG_FUSION] = "no step of the framework is known that fuses these layers",
    [BZ_RUNG_PRECISION] = "no step of the framework is known that computes so on this system",
    [BZ_RUNG_PARALLEL] = "no step of the framework is known that runs independent layers at the same time here",
};

/* What the cause adds to its step. The bound has the framework's own layers, too: only what they took above it counts. */
static double above_bound(const bz_alignment *a, const bz_cause *c)
{
    return c->kind == BZ_CAUSE_LAYERS_OUTSIDE ? fmax(c->seconds - bz_alignment_missing(a), 0) : c->seconds;
}

void advice_items(advice_making *m)
{
    const bz_waterfall *w = m->l->waterfall;
    const bz_alignment *a = m->l->alignment && m->l->alignment->timeline ? m->l->alignment : NULL;
    m->item = BZ_NEW(m->arena, advice_item, (w ? w->n : 0) + (a ? a->n_causes : 0));
    for (int i = 0; a && i < a->n_causes; i++) {
        bz_rung_kind step = step_of_cause(&a->cause[i]);
        if (step == BZ_RUNG_BETWEEN ||
            m->b->layers->n) /* without a model nothing says which work belongs to no layer */
            m->item[m->n_items++] = (advice_item){.name = a->cause[i].name,
                                                  .cause = &a->cause[i],
                                                  .step = step,
                                                  .seconds = a->cause[i].seconds,
                                                  .above = above_bound(a, &a->cause[i])};
    }
    for (int i = 0; w && i < w->n; i++)
        m->item[m->n_items++] =
            (advice_item){.name = w->step[i].name, .step = w->step[i].kind, .seconds = w->step[i].seconds};
}

static bool is_large(const advice_making *m, const advice_item *item)
{
    return item->seconds > ANSWERED_LEAST * m->l->latency;
}

/* What is left of a step without those of its causes that are items of their own. */
static advice_item without_causes(const advice_making *m, const advice_item *step)
{
    advice_item rest = *step;
    for (int i = 0; i < m->n_items && !step->cause; i++) {
        const advice_item *part = &m->item[i];
        if (!part->cause || part->step != step->step || !is_large(m, part))
            continue;
        rest.seconds -= part->above;
        rest.name = bz_arena_printf(m->arena, "%s, the rest", step->name);
    }
    return rest;
}

/* The step that the item is, or is a part of; NULL where no step is above the bound. */
static const char *step_name(const advice_making *m, const advice_item *item)
{
    for (int i = 0; i < m->n_items; i++)
        if (!m->item[i].cause && m->item[i].step == item->step)
            return m->item[i].name;
    return NULL;
}

static const char *why_none(const advice_making *m, const advice_item *item)
{
    return item->why ? bz_arena_printf(m->arena, "no further advice is known: %s", item->why)
                     : bz_arena_printf(m->arena, "no advice is known: %s", NONE[item->step]);
}

static bool is_given(const bz_advice *list, int n, const char *id)
{
    for (int i = 0; id && i < n; i++)
        if (!strcmp(list[i].id, id))
            return true;
    return false;
}

BZ_SORTS(more_time, bz_answer, BZ_THEN(BZ_ORDER(q->seconds, p->seconds), strcmp(p->item, q->item)));

int advice_answers(const advice_making *m, const bz_advice *list, int n, const bz_answer **out)
{
    bz_answer *answer = BZ_NEW(m->arena, bz_answer, m->n_items);
    int kept = 0;
    for (int i = 0; i < m->n_items; i++) {
        advice_item item = without_causes(m, &m->item[i]);
        bool given = is_given(list, n, item.id);
        if (is_large(m, &item))
            answer[kept++] = (bz_answer){.item = item.name,
                                         .step = step_name(m, &item),
                                         .seconds = item.seconds,
                                         .advice = given ? item.id : NULL,
                                         .why = given ? NULL : why_none(m, &item)};
    }
    BZ_QSORT(answer, kept, more_time);
    *out = answer;
    return kept;
}
