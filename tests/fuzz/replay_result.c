/* What a replay's program reports, for a plan of three steps in another order. Whatever it says, what is taken of it is in range, and takes
 * no more memory than some times the text. */
#include "replay/replay.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>

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

static void say(const bz_replay_result *r)
{
    bz_buf out = {0};
    bz_buf_printf(&out, "%g %g %g %g, %d %d %d %d %g: %g %g %g %g %g\n", r->median, r->low, r->high, r->min, r->samples,
                  r->runs, r->throttled, r->graph, r->opened, r->peak, r->least, r->ends, r->weights, r->scratch);
    for (int i = 0; i < r->n; i++)
        bz_buf_printf(&out, "%d %d %d: %g %g %g, %d of %d wrong, %g: %g for %g\n", (int)r->action[i].kind,
                      r->action[i].step, r->action[i].stream, r->action[i].seconds, r->action[i].hot,
                      r->action[i].flushed, r->action[i].wrong, r->action[i].elements, r->action[i].worst,
                      r->action[i].value, r->action[i].expected);
    for (int i = 0; i < r->n_passes * r->n; i++)
        bz_buf_printf(&out, "%g from %g\n", r->pass[i], r->start ? r->start[i] : 0);
    for (int i = 0; i < r->steps; i++)
        bz_buf_printf(&out, "loss %g\n", r->loss[i]);
    SAW(out.data, out.len);
    bz_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_replay_plan plan = {.n_steps = 3, .order = (int[]){2, 0, 1}};
    bz_replay_result r;
    bz_error err = {0};
    char *text = bz_alloc(size + 1, 1);
    memcpy(text, data, size);
    if (!bz_replay_read(&plan, text, size, &r, &err)) {
        check(&r, size);
        say(&r);
    } else if (!*err.text) {
        abort();
    }
    if (r.arena.used > 65536 + 200 * size)
        abort();
    bz_arena_free(&r.arena);
    free(text);
    return 0;
}
