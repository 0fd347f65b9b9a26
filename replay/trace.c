/* A replay as a profile: its last passes, a layer each an operator, with its calls. */
#include "replay/replay.h"

#include <stdio.h>
#include <string.h>

static bz_library library_of(const char *backend)
{
    const bz_backend_row *b = bz_backend_named(backend);
    bz_library library = BZ_LIBRARIES - 1;
    while (library && (!b || !b->library || strcmp(bz_library_name(library), b->library) != 0))
        library--;
    return library;
}

static void add_event(bz_trace *trace, const bz_replay_plan *p, const bz_replay_action *a, int64_t start, int64_t end,
                      uint32_t lane)
{
    static const char *const NAMES[] = {"call", "loop", "convert", "copy"};
    const bz_replay_step *s = a->step < 0 ? NULL : &p->step[a->step];
    bz_trace_add(trace, BZ_EVENT_OP, start, end, bz_trace_text(trace, s ? s->name : "outputs"), lane);
    bool call = a->kind == BZ_REPLAY_CALL && s;
    const char *name = call ? bz_problem_kind_name(s->problem->kind) : NAMES[a->kind];
    size_t i = bz_trace_add(trace, BZ_EVENT_CALL, start, end, bz_trace_text(trace, name), lane);
    bz_events *e = &trace->event[BZ_EVENT_CALL];
    e->flags[i] = BZ_CALL_EXECUTES;
    e->library[i] = call ? library_of(s->backend) : BZ_LIBRARY_OTHER;
    if (call) {
        e->variant[i] = bz_trace_text(trace, s->algorithm);
        e->detail[i] = bz_trace_text(trace, p->choice[a->step].text);
    }
}

bz_trace *bz_replay_trace(const bz_replay_report *r, bz_error *err)
{
    const bz_replay_result *m = r->result;
    bz_trace *trace = bz_trace_new();
    uint32_t source = bz_trace_source(trace, r->plan->model, "replay"), lane[BZ_REPLAY_STREAMS];
    int64_t now = 0;
    char threads[16];
    for (int s = 0; s < r->plan->streams; s++) /* each stream as a thread of its own */
        lane[s] = bz_trace_thread(trace, source, 1, s + 1);
    snprintf(threads, sizeof threads, "%d", r->plan->setting.threads);
    bz_trace_fact(trace, "program", "benanza replay");
    bz_trace_fact(trace, "model", r->plan->model);
    bz_trace_fact(trace, "threads", threads);
    bz_trace_cover(trace, source, BZ_COVERAGE_NOTE,
                   "a clock was read between any two steps; the median of whole runs without that is %.6g ms",
                   m->median * 1e3);
    for (int k = 0; k < m->n_passes; k++) {
        int64_t begin = now, last = now;
        for (int i = 0; i < m->n; i++) {
            const bz_replay_action *a = &m->action[i];
            int64_t start = m->start ? begin + (int64_t)(m->start[k * m->n + i] * 1e9) : last;
            int64_t end = start + (int64_t)(m->pass[k * m->n + i] * 1e9);
            bool known = a->stream >= 0 && a->stream < r->plan->streams;
            add_event(trace, r->plan, a, start, end, lane[known ? a->stream : 0]);
            last = end;
            now = end > now ? end : now;
        }
        bz_trace_add(trace, BZ_EVENT_RANGE, begin, now, bz_trace_text(trace, "benanza_iteration"), lane[0]);
        now += 1000;
    }
    if (!bz_trace_finish(trace, NULL, err))
        return trace;
    bz_trace_free(trace);
    return NULL;
}
