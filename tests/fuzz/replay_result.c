/* What a replay's program reports, for a plan of three steps in another order. Whatever it says, what is taken of it is in range, and takes
 * no more memory than some times the text. */
#include "replay/replay.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const bz_replay_result *r, size_t size)
{
    int checked = 0, wrong = 0;
    for (int i = 0; i < r->n; i++) {
        const bz_replay_action *a = &r->action[i];
        if (a->step < -1 || a->step > 2 || a->stream < -1 || a->kind > BZ_REPLAY_COPY)
            abort();
        checked += a->elements > 0;
        wrong += a->wrong > 0;
    }
    if (checked != r->checked || wrong != r->wrong || !r->pass || (size_t)r->steps > size || (size_t)r->n_passes > size)
        abort();
    for (int i = 0; i < r->n_passes * r->n; i++)
        if (!(r->pass[i] >= 0) || (r->start && !(r->start[i] >= 0)))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_replay_plan plan = {.n_steps = 3, .order = (int[]){2, 0, 1}};
    bz_replay_result r;
    bz_error err = {0};
    char *text = bz_alloc(size + 1, 1);
    memcpy(text, data, size);
    if (!bz_replay_read(&plan, text, size, &r, &err))
        check(&r, size);
    else if (!*err.text)
        abort();
    if (r.arena.used > 65536 + 200 * size)
        abort();
    bz_arena_free(&r.arena);
    free(text);
    return 0;
}
