/* Memory of a training run by what it is for, from recordings that have allocations with their addresses. What a block is for is told by
 * when it is taken and when it is given back: activations are taken in the forward pass and given back in the backward pass or behind it,
 * gradients are taken in the backward pass and outlive it, states of the optimizer are taken in an update and stay; what was there before
 * the first iteration and stays is weights and data. */
#include "base/sort.h"
#include "tables/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };
typedef enum { BEFORE, FORWARD, BACKWARD, UPDATE, OUTSIDE } phase;
typedef enum { WEIGHTS, GRADIENTS, OPTIMIZER, ACTIVATIONS, REST, CLASSES } class;
static const char *const NAMES[CLASSES] = {"weights and data", "gradients", "optimizer", "activations", "rest"};

typedef struct block {
    int64_t bytes, from, to; /* to: INT64_MAX where it is never given back */
} block;

typedef struct change {
    int64_t at, bytes; /* below 0: given back */
    class of;
} change;

typedef struct memory_run {
    const bz_trace *t;
    int64_t *backward, *update; /* [iterations] where these begin; INT64_MAX: nothing tells */
    block *block;
    uint32_t n;
} memory_run;

static uint32_t iteration_at(const bz_trace *t, int64_t at)
{
    uint32_t low = 0, high = t->n_iterations;
    BZ_FIND_FIRST(low, high, middle, t->iteration[middle].start <= at);
    return low - 1; /* BZ_NONE before the first */
}

static void note(const bz_trace *t, int64_t *begin, int64_t at)
{
    uint32_t i = iteration_at(t, at);
    if (i != BZ_NONE && at < begin[i])
        begin[i] = at;
}

static void find_passes(memory_run *r)
{
    const bz_trace *t = r->t;
    const bz_events *range = &t->event[BZ_EVENT_RANGE], *op = &t->event[BZ_EVENT_OP], *call = &t->event[BZ_EVENT_CALL];
    for (uint32_t i = 0; i < t->n_iterations; i++)
        r->backward[i] = r->update[i] = INT64_MAX;
    for (size_t i = 0; i < range->n; i++) {
        const char *name = bz_string(t, range->name[i]);
        if (!strcmp(name, "backward"))
            note(t, r->backward, range->start[i]);
        else if (!strcmp(name, "update") || bz_name_matches("^Optimizer.step", name))
            note(t, r->update, range->start[i]);
    }
    for (size_t i = 0; i < op->n; i++) {
        const char *name = bz_string(t, op->name[i]);
        if (bz_name_matches("^autograd::engine", name))
            note(t, r->backward, op->start[i]);
        else if (bz_name_matches("^Optimizer.step", name))
            note(t, r->update, op->start[i]);
    }
    for (size_t i = 0; i < call->n; i++) {
        char prop[32];
        if (bz_call_parameter(t, i, "prop", prop, sizeof prop) && !strncmp(prop, "backward", 8))
            note(t, r->backward, call->start[i]);
    }
}

static phase phase_at(const memory_run *r, int64_t at)
{
    uint32_t i = iteration_at(r->t, at);
    return i == BZ_NONE                  ? BEFORE
           : at > r->t->iteration[i].end ? OUTSIDE
           : at >= r->update[i]          ? UPDATE
           : at >= r->backward[i]        ? BACKWARD
                                         : FORWARD;
}

static void find_blocks(memory_run *r)
{
    const bz_events *e = &r->t->event[BZ_EVENT_RANGE];
    BZ_SCOPED(bz_map) open = {0};
    for (size_t i = 0; i < e->n; i++) {
        const int64_t *address = &e->address[i];
        uint32_t k = *address ? bz_map_get(&open, address, sizeof *address) : BZ_MAP_NONE;
        if (!e->bytes[i] || !*address)
            continue;
        if (k != BZ_MAP_NONE && r->block[k].to == INT64_MAX)
            r->block[k].to = e->start[i]; /* one that was taken again was given back unseen */
        if (e->bytes[i] < 0)
            continue;
        BZ_ROOM(r->block, r->n);
        r->block[r->n] = (block){e->bytes[i], e->start[i], INT64_MAX};
        bz_map_set(&open, address, sizeof *address, r->n++);
    }
}

static class class_of(const memory_run *r, const block *b, int64_t end)
{
    phase from = phase_at(r, b->from);
    uint32_t i = iteration_at(r->t, b->from);
    if (from == BEFORE)
        return b->to >= end ? WEIGHTS : REST;
    if (from == FORWARD)
        return r->backward[i] != INT64_MAX && b->to >= r->backward[i] ? ACTIVATIONS : REST;
    if (from == BACKWARD)
        return r->update[i] != INT64_MAX && b->to >= r->update[i] ? GRADIENTS : REST;
    return from == UPDATE && b->to > r->t->iteration[i].end ? OPTIMIZER : REST;
}

BZ_SORTS(by_time, change, BZ_THEN(BZ_ORDER(p->at, q->at), BZ_ORDER(p->bytes, q->bytes)));

static int64_t to_pages(int64_t bytes)
{
    int64_t rest = bytes % PAGE;
    return rest && bytes < INT64_MAX - PAGE ? bytes + PAGE - rest : bytes;
}

typedef struct held {
    double bytes, pages, blocks;
} held;

static void add_change(const change *c, held *of)
{
    double sign = c->bytes < 0 ? -1 : 1;
    of->bytes += (double)c->bytes;
    of->pages += sign * (double)to_pages(llabs(c->bytes));
    of->blocks += sign;
}

static void sweep(const memory_run *r, const training_run *sample, held at_peak[CLASSES], held most[CLASSES])
{
    held now[CLASSES] = {{0}};
    double peak = 0;
    size_t n = 0;
    BZ_FREED change *list = bz_alloc(2 * (size_t)r->n + 1, sizeof *list);
    for (uint32_t i = 0; i < r->n; i++) {
        const block *b = &r->block[i];
        class of = class_of(r, b, sample->to);
        list[n++] = (change){b->from, b->bytes, of};
        if (b->to != INT64_MAX)
            list[n++] = (change){b->to, -b->bytes, of};
    }
    qsort(list, n, sizeof *list, by_time);
    for (size_t i = 0; i < n && list[i].at < sample->to; i++) {
        double sum = 0;
        add_change(&list[i], &now[list[i].of]);
        if (list[i].at < sample->from)
            continue;
        for (int k = 0; k < CLASSES; k++) {
            sum += now[k].bytes;
            if (now[k].bytes > most[k].bytes)
                most[k] = now[k];
        }
        if (sum > peak) {
            peak = sum;
            memcpy(at_peak, now, sizeof now);
        }
    }
}

static void add_row(bz_sheet *s, const char *which, const char *name, const held *at_peak, const held *most, double all)
{
    BZ_SHEET_ADD(s, BZ_TEXT(which), BZ_TEXT(name), BZ_NUMBER(at_peak->blocks), BZ_NUMBER(at_peak->bytes),
                 BZ_NUMBER(at_peak->pages), BZ_NUMBER(tables_share(at_peak->bytes, all)),
                 BZ_NUMBER(most ? most->bytes : NAN));
}

void training_add_memory(const training_run *sample, const char *which, bz_sheet *s)
{
    held at_peak[CLASSES] = {{0}}, most[CLASSES] = {{0}}, all = {0};
    memory_run r = {.t = sample->m->t};
    r.backward = bz_alloc((size_t)r.t->n_iterations + 1, sizeof *r.backward);
    r.update = bz_alloc((size_t)r.t->n_iterations + 1, sizeof *r.update);
    if (sample->iterations)
        find_blocks(&r);
    if (r.n) {
        find_passes(&r);
        sweep(&r, sample, at_peak, most);
    }
    for (int k = 0; k < CLASSES; k++) {
        all.blocks += at_peak[k].blocks;
        all.bytes += at_peak[k].bytes;
        all.pages += at_peak[k].pages;
    }
    for (int k = 0; k < CLASSES && r.n; k++)
        add_row(s, which, NAMES[k], &at_peak[k], &most[k], all.bytes);
    if (r.n)
        add_row(s, which, "all", &all, NULL, all.bytes);
    free(r.block);
    free(r.backward);
    free(r.update);
}
