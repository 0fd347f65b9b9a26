/* Memory of a replay: what lives between steps, workspaces, and what loops work on. */
#include "runtime/replay_open.h"

#include <string.h>

/* Where a loop finds what it works on: here, or copied one behind the other into the stream's memory of the host. */
static size_t place_loop(bz_replay *r, replay_loop *l, char *host)
{
    size_t end = 0;
    for (int i = 0; i < l->n; i++) {
        if (l->slot[i] < 0)
            memcpy(&l->at[i], &l->constant[i], sizeof l->at[i]);
        else if (r->ops == &replay_processor)
            l->at[i] = replay_at(r, l->slot[i]);
        else {
            l->at[i] = host ? host + end : NULL;
            end += r->slot[l->slot[i]].bytes;
        }
    }
    return end;
}

static int bind_call(bz_replay *r, const bz_action *a)
{
    replay_call *c = a->state;
    const bz_backend *b = c->variant.backend;
    int rc = b->bind(&c->variant, BZ_OPERAND_SCRATCH, r->stream[a->stream].scratch);
    for (int k = 0; k < c->n && !rc; k++)
        rc = c->slot[k] < 0 ? 0 : b->bind(&c->variant, k, replay_at(r, c->slot[k]));
    return rc;
}

static int allocate(bz_replay *r, bz_error *err)
{
    bool all = (r->memory = r->ops->alloc(r->device, r->sizes.peak + 64, false)) != NULL;
    for (int s = 0; s < r->n_streams && all; s++) {
        r->sizes.scratch += r->stream[s].scratch_size;
        all = (r->stream[s].scratch = r->ops->alloc(r->device, r->stream[s].scratch_size + 64, false)) != NULL;
        if (all && r->stream[s].host_size)
            all = (r->stream[s].host = r->ops->alloc(r->device, r->stream[s].host_size, true)) != NULL;
    }
    return all ? 0
               : bz_fail(err, BZ_FAILED, "out of memory: %.3g GB between the layers, %.3g GB of workspace",
                         (double)r->sizes.peak / 1e9, (double)r->sizes.scratch / 1e9);
}

int replay_place(bz_replay *r, bz_error *err)
{
    replay_order(r);
    r->sizes.peak = bz_lifetimes_place(r->slot, r->n_slots, &r->sizes.least);
    for (int i = 0; i < r->n_actions; i++) {
        size_t *most = &r->stream[r->action[i].stream].host_size;
        size_t wanted = r->action[i].kind == BZ_ACTION_LOOP ? place_loop(r, r->action[i].state, NULL) : 0;
        *most = wanted > *most ? wanted : *most;
    }
    if (allocate(r, err))
        return -1;
    for (int i = 0; i < r->n_actions; i++) {
        const bz_action *a = &r->action[i];
        if (a->kind == BZ_ACTION_LOOP)
            place_loop(r, a->state, r->stream[a->stream].host);
        if (a->kind == BZ_ACTION_CALL && bind_call(r, a))
            return bz_fail(err, BZ_FAILED, "%s: the library takes no memory of ours", r->model->step[a->step].name);
    }
    return 0;
}

void replay_unplace(bz_replay *r)
{
    if (!r->device)
        return;
    if (r->memory)
        r->ops->free(r->device, r->memory, false);
    for (int s = 0; s < BZ_REPLAY_STREAMS; s++) {
        if (r->stream[s].scratch)
            r->ops->free(r->device, r->stream[s].scratch, false);
        if (r->stream[s].host)
            r->ops->free(r->device, r->stream[s].host, true);
    }
    r->ops->close(r->device);
}
