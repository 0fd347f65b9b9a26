/* Plans: the order and the streams of random ones, and that a plan read from its own text is the same plan. */
#include "replay/replay.h"
#include "tests/unit/chance.h"
#include "tests/unit/perfdb_test.h"

enum { UNITS = 10, STEPS = 3 * UNITS, MOST_IN = 3, MORE = STEPS + 1, VALUES = MORE + STEPS };

typedef struct {
    bz_replay_unit unit[UNITS];
    bz_replay_step step[STEPS];
    bz_replay_choice choice[STEPS];
    bz_replay_value value[VALUES];
    int order[STEPS + 1], in[STEPS][MOST_IN], more[STEPS], unit_of[STEPS];
    double takes[UNITS];
    bz_replay_plan plan;
} sample;

/* Step i makes value i + 1, and some calls MORE + i, too; value 0 is the input. Constants read nothing. A loop and a call that is too short take as long as a launch. */
static void draw_sample(sample *s)
{
    static const double LAUNCH = 1e-6;
    int n = 0, units = 1 + (int)chance(UNITS);
    *s = (sample){0};
    for (int u = 0; u < units; u++) {
        s->unit[u] = (bz_replay_unit){.name = "layer", .first = n, .n_steps = (int)chance(4)};
        for (int k = 0; k < s->unit[u].n_steps; k++, n++) {
            bz_replay_step *t = &s->step[n];
            bz_replay_choice *c = &s->choice[n];
            *t = (bz_replay_step){.kind = (bz_step_kind)chance(3), .once = !chance(5), .in = s->in[n], .out = n + 1};
            t->n_in = t->kind == BZ_STEP_VIEW ? 1 : t->once ? 0 : 1 + (int)chance(MOST_IN);
            for (int i = 0; i < t->n_in; i++)
                s->in[n][i] = (int)chance(6) ? n - (int)chance(n < 4 ? (unsigned)n + 1 : 4) : -1;
            for (int i = 0; i < t->n_in; i++)
                if (s->in[n][i] > 0 && s->step[s->in[n][i] - 1].n_more && !chance(2))
                    s->in[n][i] += MORE - 1;
            s->more[n] = MORE + n, t->more = &s->more[n], t->n_more = t->kind == BZ_STEP_CALL && !chance(3);
            if (t->kind == BZ_STEP_VIEW)
                s->in[n][0] = n, t->once = n > 0 && s->step[n - 1].once;
            s->unit_of[n] = u;
            if (t->kind == BZ_STEP_CALL) {
                c->n = 1, c->option[0].seconds = 1e-6 * chance(20);
                s->plan.seconds += c->option[0].seconds;
            }
            c->conversion = t->kind == BZ_STEP_CALL && !chance(3) ? 3e-6 : 0;
            s->plan.conversions += c->conversion;
            if (t->kind != BZ_STEP_VIEW && !t->once)
                s->takes[u] += fmax(LAUNCH, c->option[0].seconds) + c->conversion;
        }
    }
    s->plan.unit = s->unit, s->plan.n_units = units;
    s->plan.step = s->step, s->plan.choice = s->choice, s->plan.n_steps = n, s->plan.order = s->order;
    s->plan.value = s->value, s->plan.n_values = VALUES;
}

/* The step that makes a value; -1: none does. */
static int maker(int value)
{
    return value <= 0 ? -1 : value < MORE ? value - 1 : value - MORE;
}

/* When units end at the earliest, each on a stream of its own. */
static double longest(const sample *s)
{
    double end[UNITS] = {0}, most = 0;
    for (int u = 0; u < s->plan.n_units; u++) {
        const bz_replay_unit *unit = &s->unit[u];
        double start = 0;
        for (int i = unit->first; i < unit->first + unit->n_steps; i++)
            for (int k = 0; k < s->step[i].n_in && !s->step[i].once; k++) {
                int from = maker(s->in[i][k]);
                if (from >= 0 && from < unit->first && !s->step[from].once)
                    start = fmax(start, end[s->unit_of[from]]);
            }
        end[u] = start + s->takes[u];
        most = fmax(most, end[u]);
    }
    return most;
}

/* Every step runs once: constants first, the others behind all that makes their operands. A unit stays on one stream. All together take no less
 * than the longest way and than an even share for each stream, and no longer than one after the other. */
static void test_streams(void **state)
{
    (void)state;
    static sample s;
    int moved = 0;
    for (int round = 0; round < 3000; round++) {
        int streams = 1 + (int)chance(4), at[STEPS], stream[UNITS], n;
        double all = 0;
        bool others = false;
        draw_sample(&s);
        n = s.plan.n_steps;
        bz_replay_schedule(&s.plan, streams);
        assert_int_equal(s.plan.streams, streams);
        for (int i = 0; i < n; i++)
            at[i] = -1;
        for (int u = 0; u < UNITS; u++)
            stream[u] = -1, all += s.takes[u];
        for (int k = 0; k < n; k++) {
            assert_in_range(s.order[k], 0, n - 1);
            assert_int_equal(at[s.order[k]], -1);
            at[s.order[k]] = k;
            others |= !s.step[s.order[k]].once;
            assert_true(streams == 1 || !others || !s.step[s.order[k]].once);
        }
        for (int i = 0; i < n; i++) {
            int u = s.unit_of[i];
            assert_in_range(s.step[i].stream, 0, streams - 1);
            for (int k = 0; k < s.step[i].n_in; k++)
                assert_true(maker(s.in[i][k]) < 0 || at[maker(s.in[i][k])] < at[i]);
            if (s.step[i].once)
                continue;
            assert_true(stream[u] < 0 || stream[u] == s.step[i].stream);
            stream[u] = s.step[i].stream;
            moved += stream[u] > 0;
            assert_true(streams > 1 || at[i] == i);
        }
        if (streams == 1) {
            assert_true(fabs(s.plan.scheduled - s.plan.seconds - s.plan.conversions) < 1e-12);
        } else {
            assert_true(s.plan.scheduled >= longest(&s) - 1e-8 && s.plan.scheduled >= all / streams - 1e-8);
            assert_true(s.plan.scheduled <= all + 1e-8);
        }
    }
    assert_true(moved > 1000);
}

typedef struct {
    bz_models models;
    bz_plan *plan;
    bz_replay_plan *replay;
} planned;

static planned plan_of(const char *path)
{
    planned p = {0};
    const char *name = "m";
    assert_ok(bz_models_load(&path, 1, &(bz_infer_options){0}, &p.models, &err));
    p.plan = bz_plan_of(&(bz_plan_options){0}, p.models.layers, &name, 1);
    assert_ok(bz_replay_make(
        &(bz_replay_input){
            .model = name, .layers = p.models.layers[0], .plan = p.plan, .setting = {1, BZ_CACHE_HOT, ""}},
        &p.replay, &err));
    return p;
}

static void end(planned *p)
{
    bz_replay_free(p->replay);
    bz_plan_free(p->plan);
    bz_models_free(&p->models);
}

/* The text with its occurrence number `which` of a word replaced; false: there is none. */
static bool replace(const char *text, const char *word, int which, const char *by, bz_buf *out)
{
    const char *at = strstr(text, word);
    while (at && which--)
        at = strstr(at + 1, word);
    bz_buf_clear(out);
    if (at)
        bz_buf_printf(out, "%.*s%s%s", (int)(at - text), text, by, at + strlen(word));
    return at;
}

/* A plan's own text changes nothing. Another layout of one call, or another time, is that call's alone; what nothing computes is refused. */
static void test_followed(void **state)
{
    (void)state;
    planned p = plan_of(BENANZA_SOURCE "/models/squeezenet1_1.onnx");
    bz_buf text = {0}, again = {0}, other = {0};
    bz_replay_plan *r = p.replay;
    bz_replay_json(r, &text);
    assert_ok(bz_replay_follow(r, bz_buf_text(&text), text.len, &err));
    bz_replay_json(r, &again);
    assert_string_equal(bz_buf_text(&again), bz_buf_text(&text));
    int calls = 0;
    for (int i = 0; i < r->n_steps; i++) {
        char word[64];
        if (r->step[i].kind != BZ_STEP_CALL)
            continue;
        const char *by = strcmp(r->step[i].layout, "nhwc") != 0 ? "nhwc" : "plain", *was = r->step[i].layout;
        bz_buf_clear(&text);
        bz_replay_json(r, &text);
        int which = 0;
        for (int k = 0; k < i; k++)
            which += r->step[k].kind == BZ_STEP_CALL;
        assert_true(replace(bz_buf_text(&text), "\"layout\": \"", which, "\"layout\": \"#", &other));
        snprintf(word, sizeof word, "#%s\"", was);
        bz_buf change = {0};
        char quoted[16];
        snprintf(quoted, sizeof quoted, "%s\"", by);
        assert_true(replace(bz_buf_text(&other), word, 0, quoted, &change));
        assert_ok(bz_replay_follow(r, bz_buf_text(&change), change.len, &err));
        assert_string_equal(r->step[i].layout, by);
        bz_buf_clear(&again);
        bz_replay_json(r, &again);
        assert_string_equal(bz_buf_text(&again), bz_buf_text(&change));
        assert_fails(bz_replay_follow(r, bz_buf_text(&other), other.len, &err), BZ_BAD_INPUT, "names no variant");
        bz_buf_free(&change);
        calls++;
    }
    assert_true(calls > 20);
    static const char *const WRONG[][3] = {
        {"\"replay-plan\"", "\"replay\"", "it is no plan"},
        {"\"v\": 2", "\"v\": 3", "it is no plan"},
        {"\"problem\": \"", "\"problem\": \"x", "expected"},
        {"\"backend\": \"onednn", "\"backend\": \"cudnn", "variant"},
        {"\"math\": \"default", "\"math\": \"tf3", "variant"},
        {"\"step\": \"call", "\"step\": \"loop", "another step"},
        {"\"steps\": [{", "\"steps\": [], \"s\": [{", "fewer"},
        {"\"units\": [", "\"units\": [], \"u\": [", "ends before"},
    };
    bz_buf_clear(&text);
    bz_replay_json(r, &text);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        assert_true(replace(bz_buf_text(&text), WRONG[i][0], 0, WRONG[i][1], &other));
        assert_fails(bz_replay_follow(r, bz_buf_text(&other), other.len, &err), BZ_BAD_INPUT, WRONG[i][2]);
    }
    for (size_t n = 0; n + 2 < text.len; n += 1 + text.len / 50)
        assert_fails(bz_replay_follow(r, bz_buf_text(&text), n, &err), BZ_BAD_INPUT, "it is no JSON");
    bz_buf_free(&text);
    bz_buf_free(&again);
    bz_buf_free(&other);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_streams), cmocka_unit_test(test_followed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
