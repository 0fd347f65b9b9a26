/* Actions on several streams: who waits for whom, and how long memory stays taken.
 *
 * Streams run side by side, so one action comes behind another only on the same stream or by way of waiting. For every
 * action it is known how far each of the other streams has certainly come when it begins (a vector clock): it waits for
 * what made its operands where that is not behind it yet, and for nothing else; and a piece of memory is free for an
 * action once all that touch it are behind it. */
#include "runtime/replay_open.h"

#include "base/arena.h"

#include <stdlib.h>

typedef struct clock_row {
    int done[BZ_REPLAY_STREAMS]; /* last action of each stream that is over; -1 none */
} clock_row;

typedef struct order {
    bz_replay *r;
    clock_row *before; /* [n_actions] when the action begins */
    clock_row *now;    /* [n_streams] when the next one of the stream begins */
    clock_row *made;   /* [n_slots] last action of each stream that writes into it */
    clock_row *used;   /* [n_slots] that touches it */
} order;

/* The slots that an action touches; the one that it writes comes last. */
static int slots_of(const bz_action *a, int slot[BZ_PROBLEM_OPERANDS])
{
    const replay_call *c = a->state;
    const replay_loop *l = a->state;
    const replay_convert *v = a->state;
    bool call = a->kind == BZ_ACTION_CALL, loop = a->kind == BZ_ACTION_LOOP;
    int all = call ? c->n : loop ? l->n : 2, n = 0;
    for (int i = 0; i < all; i++) {
        int k = call ? c->slot[i] : loop ? l->slot[i] : i ? v->to : v->from;
        if (k >= 0)
            slot[n++] = k;
    }
    return n;
}

/* The last action that made one of these slots and is not known to be over; -1 where there is none. */
static int latest_unknown(const order *o, const clock_row *now, const int *slot, int n)
{
    int latest = -1;
    for (int k = 0; k < n; k++)
        for (int t = 0; t < o->r->n_streams; t++) {
            int made = o->made[slot[k]].done[t];
            latest = made > now->done[t] && made > latest ? made : latest;
        }
    return latest;
}

/* Whoever is waited for last brings along what it waited for: so the latest first, and fewer are waited for. */
static void order_action(order *o, int i)
{
    bz_action *a = &o->r->action[i];
    clock_row *now = &o->now[a->stream];
    int slot[BZ_PROBLEM_OPERANDS], n = slots_of(a, slot), w;
    while ((w = latest_unknown(o, now, slot, n)) >= 0) {
        bz_action *other = &o->r->action[w];
        a->after[a->n_after++] = w;
        other->marked = true;
        for (int t = 0; t < BZ_REPLAY_STREAMS; t++)
            now->done[t] = o->before[w].done[t] > now->done[t] ? o->before[w].done[t] : now->done[t];
        now->done[other->stream] = w;
    }
    o->before[i] = *now;
    now->done[a->stream] = i;
    for (int k = 0; k < n; k++)
        o->used[slot[k]].done[a->stream] = i;
    if (n)
        o->made[slot[n - 1]].done[a->stream] = i;
}

/* Taken until the last action that may run before all are over that touch it. */
static void extend(const order *o, int s)
{
    bz_lifetime *l = &o->r->slot[s];
    for (int j = o->r->n_actions - 1; j > l->last; j--)
        for (int t = 0; t < o->r->n_streams; t++)
            if (o->used[s].done[t] > o->before[j].done[t]) {
                l->last = j;
                return;
            }
}

static clock_row *rows(int n)
{
    clock_row *row = bz_alloc((size_t)n + 1, sizeof *row);
    for (int i = 0; i <= n; i++)
        for (int t = 0; t < BZ_REPLAY_STREAMS; t++)
            row[i].done[t] = -1;
    return row;
}

void replay_order(bz_replay *r)
{
    if (r->n_streams < 2)
        return;
    order o = {r, rows(r->n_actions), rows(r->n_streams), rows(r->n_slots), rows(r->n_slots)};
    for (int i = 0; i < r->n_actions; i++)
        order_action(&o, i);
    for (int s = 0; s < r->n_slots; s++)
        extend(&o, s);
    free(o.before);
    free(o.now);
    free(o.made);
    free(o.used);
}

/* Marks: one for each action, one behind them for the fork, and one for the end of each stream. */

int replay_fork(bz_replay *r)
{
    const bz_device_ops *ops = r->ops;
    if (r->n_streams < 2)
        return 0;
    int bad = ops->mark(r->device, 0, r->n_actions);
    for (int s = 1; s < r->n_streams; s++)
        bad |= ops->follow(r->device, s, r->n_actions);
    return bad ? -1 : 0;
}

int replay_join(bz_replay *r)
{
    const bz_device_ops *ops = r->ops;
    int bad = 0;
    for (int s = 1; s < r->n_streams; s++)
        bad |= ops->mark(r->device, s, r->n_actions + s) || ops->follow(r->device, 0, r->n_actions + s);
    return bad ? -1 : 0;
}

int replay_await(bz_replay *r, const bz_action *a)
{
    for (int k = 0; k < a->n_after; k++)
        if (r->ops->follow(r->device, a->stream, a->after[k]))
            return -1;
    return 0;
}
