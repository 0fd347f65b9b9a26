/* What all transformations say of random recordings fits together: times, gains, intervals, who worked when, and the critical path. */
#include "random_recording.h"
#include "whatif/whatif.h"

static void check(const bz_whatif *w, const bz_prediction *p, int64_t before)
{
    int64_t on_path = p->critical.between;
    assert_true(p->low <= p->time && p->time <= p->high);
    for (int k = 0; k < BZ_TASK_KINDS; k++)
        on_path += p->critical.of[k];
    int64_t rows = 0;
    for (uint32_t i = 0; i < p->critical.n; i++) {
        rows += p->critical.row[i].time;
        assert_true(!i || p->critical.row[i - 1].time >= p->critical.row[i].time);
    }
    if (on_path != p->critical.time || rows != p->critical.time ||
        p->split.host + p->split.device + p->split.both + p->split.neither != p->split.total ||
        p->critical.time != p->split.total)
        fail_msg("%s: the path takes %ld by kinds, %ld by rows, %ld in all; the split %ld", p->name, (long)on_path,
                 (long)rows, (long)p->critical.time, (long)p->split.total);
    if (!bz_whatif_differs_unrecorded(w, p) && p->gain != before - p->time)
        fail_msg("%s: gains %ld, not %ld", p->name, (long)p->gain, (long)(before - p->time));
}

/* Each task begins when all that it waits for is done, and its channel is free, and not later; work of devices and of the host by the moment. */
static void check_simulation(const bz_flow *f)
{
    bz_arena arena = {0};
    bz_simulated s;
    bz_flow_split split;
    bz_error err;
    assert_int_equal(bz_flow_simulate(f, &arena, &s, &err), 0);
    for (uint32_t i = 0; i < f->n; i++) {
        const bz_task *t = &f->task[i];
        int64_t must = t->not_before;
        if (t->prev != BZ_NONE) {
            const bz_task *p = &f->task[t->prev];
            must = s.start[t->prev] + p->duration + p->gap > must ? s.start[t->prev] + p->duration + p->gap : must;
        }
        for (uint32_t e = t->in; e != BZ_NONE; e = f->edge[e].next_in) {
            const bz_flow_edge *edge = &f->edge[e];
            int64_t from =
                s.start[edge->from] + edge->lag + (edge->kind == BZ_DEPENDS_LAUNCH ? 0 : f->task[edge->from].duration);
            must = !edge->wraps && from > must ? from : must;
        }
        bool waits = s.start[i] > must + t->late && f->lane[t->lane].channel,
             free = false; /* until the channel is free */
        for (uint32_t k = 0; k < f->n && waits; k++)
            free |= f->task[k].lane == t->lane && s.start[k] + f->task[k].duration + f->task[k].gap == s.start[i];
        assert_true(waits ? free : s.start[i] == must + t->late);
    }
    bz_flow_split_make(f, &s, &split);
    int64_t time[4] = {0}; /* nobody, the host, a device, both */
    for (int64_t at = f->offset; at < f->offset + s.total; at += TICK) {
        unsigned works = 0;
        for (uint32_t i = 0; i < f->n; i++) {
            const bz_task *t = &f->task[i];
            bool device = bz_task_on_device((bz_task_kind)t->kind) || t->kind == BZ_TASK_COMMUNICATION;
            int64_t from = t->lane == f->main && t->prev == BZ_NONE ? 0 : s.start[i];
            int64_t end = s.start[i] + t->duration + (device || t->next == BZ_NONE ? 0 : t->gap);
            works |= from <= at && at < end ? device ? 2u : 1u : 0u;
        }
        time[works] += TICK;
    }
    assert_int_equal(split.total, s.total);
    assert_int_equal(split.neither, time[0]);
    assert_int_equal(split.host, time[1]);
    assert_int_equal(split.device, time[2]);
    assert_int_equal(split.both, time[3]);
    bz_arena_free(&arena);
}

static void all_of_them(void **state)
{
    (void)state;
    bz_error err;
    int applied = 0;
    for (int round = 0; round < 10; round++) {
        make_recording();
        bz_arena arena = {0};
        bz_flow f = {0};
        bz_whatif w = {0};
        if (bz_flow_make(r.trace, bz_typical_iteration(r.trace), &f, &err) || bz_whatif_begin(&f, &arena, &w, &err) ||
            bz_whatif_try_all(&arena, &w, &err))
            fail_msg("%s", err.text);
        check_simulation(&f);
        for (int i = 1; i < w.n_greedy; i++)
            assert_true(w.greedy[i].time <= w.greedy[i - 1].time);
        for (int i = 0; i < w.n; i++) {
            if (!w.prediction[i].changed)
                continue;
            check(&w, &w.prediction[i], w.simulated);
            applied++;
        }
        bz_flow_free(&f);
        bz_trace_free(r.trace);
        bz_arena_free(&arena);
    }
    assert_true(applied > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
