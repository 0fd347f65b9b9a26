/* Fusion by pattern: a product and what follows on its result (bias, folded normalization, residual, function) become one call, where
 * the records know such a call. */
#include "whatif/records.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

enum { FOLLOWERS = 4 }; /* bias or normalization, residual, function */

/* Tasks that do one thing: those of one library call, or one kernel or operator without such. */
typedef struct {
    uint32_t first, last;
    bz_post post; /* BIAS too for a normalization that is folded into the weights */
    bool folded;
} follower;

typedef struct {
    bz_whatif_asked *asked;
    bz_flow *flow;
    bool training;
    int places, refused, unknown;
    bz_tally stay, removed; /* tasks */
} fusion;

/* "aten::relu_" -> "relu" */
static void plain_name(const char *name, char out[32])
{
    const char *colon = strrchr(name, ':');
    snprintf(out, 32, "%s", colon ? colon + 1 : name);
    for (char *c = out; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    size_t n = strlen(out);
    if (n && out[n - 1] == '_')
        out[n - 1] = 0;
}

static bool by_name(const char *name, follower *f)
{
    f->folded = !strcmp(name, "batchnorm") || !strcmp(name, "batch_norm");
    f->post.fn = f->folded || !strcmp(name, "bias") ? BZ_FN_BIAS : bz_fn_find(name, strlen(name));
    bool known = f->post.fn == BZ_FN_BIAS || f->post.fn == BZ_FN_ADD ||
                 (bz_fn_is_activation(f->post.fn) && bz_fn_parameters(f->post.fn) == 0);
    return known && bz_fn_is_post(f->post.fn);
}

static bool by_problem(const bz_problem *p, follower *f)
{
    f->folded = p->kind == BZ_PROBLEM_BATCHNORM;
    if (f->folded)
        f->post.fn = BZ_FN_BIAS;
    else if (p->kind == BZ_PROBLEM_ACTIVATION)
        f->post = (bz_post){p->activation.fn, p->activation.alpha, p->activation.beta};
    else if (p->kind == BZ_PROBLEM_BINARY && p->binary.fn == BZ_FN_ADD)
        f->post.fn = memcmp(p->binary.a, p->binary.b, sizeof p->binary.a) ? BZ_FN_BIAS : BZ_FN_ADD;
    return f->post.fn != BZ_FN_NONE && bz_fn_is_post(f->post.fn);
}

/* What the tasks from `first` on do to the result before them; false where they do something else. */
static bool read_follower(const fusion *u, uint32_t first, follower *f)
{
    const bz_trace *t = u->asked->trace;
    const bz_task *task = &u->flow->task[first];
    const bz_kernel *k = task->kind == BZ_TASK_KERNEL ? bz_whatif_kernel(u->asked, task) : NULL;
    char name[32];
    bool known = false;
    *f = (follower){.first = first, .last = first};
    if (task->kind != BZ_TASK_KERNEL && task->kind != BZ_TASK_CALL)
        return false;
    if (task->call < t->event[BZ_EVENT_CALL].n) {
        while (u->flow->task[f->last].next != BZ_NONE && u->flow->task[u->flow->task[f->last].next].call == task->call)
            f->last = u->flow->task[f->last].next;
        const bz_call *c = bz_call_of(t, task->call);
        known = c->problem && by_problem(c->problem, f);
    } else if (k) {
        known = k->layer && by_name(k->layer, f);
    } else if (task->event_kind == BZ_EVENT_OP) {
        plain_name(task->name, name);
        known = by_name(name, f);
    }
    return known && !(f->folded && u->training);
}

/* A bias stands first, and once. */
static bool joins(const follower *f, bz_post *post, int n)
{
    if (f->post.fn != BZ_FN_BIAS) {
        post[n] = f->post;
        return true;
    }
    if (n == 1 && post[0].fn == BZ_FN_BIAS)
        return true;
    if (n)
        return false;
    post[0] = f->post;
    return true;
}

static int count_posts(const bz_post *post)
{
    int n = 0;
    while (post[n].fn)
        n++;
    return n;
}

/* The longest run of followers for which there is a record that makes all of it shorter. */
static int try_place(fusion *u, uint32_t last, const bz_problem *product, int64_t time, double *factor, uint32_t *end)
{
    bz_problem fused = *product;
    int64_t sum = time;
    double alone;
    *end = BZ_NONE;
    if (count_posts(product->post))
        return 0;
    if (bz_whatif_price(u->asked, product, NULL, NULL, &alone))
        return -1;
    uint32_t at = u->flow->task[last].next;
    for (int k = 0; k < FOLLOWERS && at != BZ_NONE && isfinite(alone) && alone > 0; k++) {
        follower f;
        double together;
        if (!read_follower(u, at, &f) || !joins(&f, fused.post, count_posts(fused.post)))
            break;
        for (uint32_t i = f.first;; i = u->flow->task[i].next) {
            sum = bz_flow_sum(sum, u->flow->task[i].duration);
            if (i == f.last)
                break;
        }
        if (bz_whatif_price(u->asked, &fused, NULL, NULL, &together))
            return -1;
        if (isfinite(together) && (double)time * together / alone < (double)sum) {
            *factor = together / alone;
            *end = f.last;
        } else if (isfinite(together)) {
            u->refused++;
        } else {
            u->unknown++;
        }
        at = u->flow->task[f.last].next;
    }
    return 0;
}

/* The product is done with all that follows up to `end`. */
static void fuse(fusion *u, uint32_t first, uint32_t last, double factor, uint32_t end)
{
    bz_flow *f = u->flow;
    for (uint32_t i = first;; i = f->task[i].next) {
        int64_t was = f->task[i].duration;
        bz_flow_scale(f, i, factor);
        bz_tally_add(&u->stay, was, f->task[i].duration);
        if (i == last)
            break;
    }
    for (uint32_t i = f->task[last].next, next;; i = next) {
        next = f->task[i].next;
        bz_tally_add(&u->removed, f->task[i].duration, 0);
        bz_flow_remove_launched(f, i, false);
        if (i == end)
            break;
    }
    u->places++;
}

static int fuse_lane(fusion *u, uint32_t lane)
{
    const bz_trace *t = u->asked->trace;
    for (uint32_t i = u->flow->lane[lane].first, last; i != BZ_NONE; i = u->flow->task[last].next) {
        const bz_task *task = &u->flow->task[i];
        int64_t time = task->duration;
        last = i;
        if (!bz_whatif_works(u->flow, i) || task->call >= t->event[BZ_EVENT_CALL].n ||
            task->phase == BZ_PHASE_BACKWARD || task->phase == BZ_PHASE_UPDATE)
            continue;
        for (uint32_t next; (next = u->flow->task[last].next) != BZ_NONE && u->flow->task[next].call == task->call;) {
            last = next;
            time = bz_flow_sum(time, u->flow->task[last].duration);
        }
        const bz_call *c = bz_call_of(t, task->call);
        bz_problem inside;
        double factor = 1;
        uint32_t end = BZ_NONE;
        if (!c->problem || !bz_problem_has(c->problem, BZ_TRAIT_PRODUCT) || !bz_problem_has(c->problem, BZ_TRAIT_POST))
            continue;
        if (try_place(u, last, c->problem, time, &factor, &end) ||
            (end == BZ_NONE && bz_call_unpad(c->problem, &inside) && try_place(u, last, &inside, time, &factor, &end)))
            return -1;
        if (end != BZ_NONE)
            fuse(u, i, last, factor, end);
    }
    return 0;
}

int bz_whatif_fusion(bz_flow *flow, bz_whatif_asked *asked)
{
    fusion u = {.asked = asked, .flow = flow};
    if (!asked->records)
        return bz_whatif_without_records(asked);
    u.training = bz_flow_trains(flow) != NULL;
    for (uint32_t l = 0; l < flow->n_lanes; l++)
        if (!flow->lane[l].channel && fuse_lane(&u, l))
            return -1;
    if (!u.places)
        return bz_whatif_because(
            asked, u.unknown   ? "no fused call that could stand for a product and what follows it has a record"
                   : u.refused ? "by the records no fused call is faster than its parts"
                               : "no product is followed by a bias, a sum or a function that is known");
    bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, asked->records->name,
                     "%d products take what follows them along, %d tasks go: %s become %s, as the best record of the "
                     "fused call stands to that of the product",
                     u.places, u.removed.n, BZ_SAY_NS(bz_flow_sum(u.stay.before, u.removed.before)),
                     BZ_SAY_NS(u.stay.after));
    bz_whatif_assume(asked, BZ_ASSUMED_MODELLED, "the order of the recording",
                     "what runs behind a product reads its result, and nothing else does");
    return u.places + u.removed.n;
}
