/* Generated programs: compiled, the tables that they are hold what the plan holds, forward runs its steps in the plan's order, and the weights
 * lie in their file where the tables say. The plans are random ones that no model has. */
#include "base/whole.h"
#include "replay/replay.h"
#include "tests/unit/chance.h"
#include "tests/unit/perfdb_test.h"

#include <dlfcn.h>

enum { PLANS = 6, VALUES = 9, STEPS = 12, MOST_IN = 4 };

static const char *const PROBLEMS[] = {
    "conv x=1x8x6x6 w=8x8x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 post=bias,add,relu dtype=f32",
    "gemm m=4 n=5 k=6 dtype=f32",
    "activation fn=elu alpha=0.3 x=2x7 dtype=f32",
    "lstm seq=3 batch=4 input=2 hidden=3 dir=bidirectional training=1 dtype=f32",
    "pool mode=avg_pad x=1x2x9 kernel=3 stride=1 pad=1x1 dilation=2 dtype=f32",
};
enum { N_PROBLEMS = sizeof PROBLEMS / sizeof *PROBLEMS };

static bz_problem problem[N_PROBLEMS];
static const char *problem_text[N_PROBLEMS];
static bz_arena arena;

static const char *a_name(void)
{
    static const char *const NAMES[] = {"conv1", "", "a \"quoted\" \\ name", "/* c */ // ?\?/", "é\n\x01%d", "x0/y:0"};
    return NAMES[chance(6)];
}

static float a_float(void)
{
    static const float FLOATS[] = {0, 1, -1, 0.1f, 1e-30f, 3e38f, 1.0f / 3, 16777216, INFINITY, -INFINITY};
    return FLOATS[chance(10)];
}

static void draw_dims(int64_t *dim, int rank)
{
    for (int i = 0; i < rank; i++)
        dim[i] = 1 + chance(5);
}

static void draw_value(bz_replay_value *v, bz_replay_source *s)
{
    static const bz_dtype TYPES[] = {BZ_F32, BZ_F64, BZ_I64, BZ_I32, BZ_I8, BZ_U8, BZ_BOOL};
    *v = (bz_replay_value){.name = a_name(),
                           .dtype = TYPES[chance(7)],
                           .given = TYPES[chance(7)],
                           .rank = 1 + (int)chance(4),
                           .source = (bz_value_source)chance(5),
                           .next = chance(2) ? (int)chance(VALUES) : 0,
                           .scale = a_float(),
                           .offset = a_float(),
                           .positive = chance(2),
                           .below = chance(2) ? chance(1000) : 0,
                           .output = chance(2)};
    draw_dims(v->dim, v->rank);
    *s = (bz_replay_source){0};
    if (v->source != BZ_VALUE_STORED)
        return;
    int64_t n = bz_extent_count(v->dim);
    double *number = BZ_NEW(&arena, double, n);
    for (int64_t i = 0; i < n; i++)
        number[i] = v->given == BZ_BOOL ? chance(2) : v->given == BZ_U8 ? chance(200) : (double)chance(100) - 50;
    s->number = number;
}

static bz_replay_loop *draw_loop(void)
{
    static const int STRIDES[] = {2, 0, 0, 3, 1, 2, 1}; /* that a kind of loop reads */
    bz_replay_loop *l = BZ_NEW(&arena, bz_replay_loop, 1);
    *l = (bz_replay_loop){.kind = (bz_loop_kind)chance(7),
                          .function = chance(2) ? "add" : NULL,
                          .alpha = a_float(),
                          .beta = a_float(),
                          .value = chance(2) ? (double)a_float() : 1.0 / (1 + chance(9)),
                          .rank = 1 + (int)chance(4),
                          .from = chance(3),
                          .to = chance(3)};
    draw_dims(l->dim, l->rank);
    for (int k = 0; k < STRIDES[l->kind]; k++)
        for (int i = 0; i < l->rank; i++)
            l->stride[k][i] = (int64_t)chance(9) - 2;
    return l;
}

static int *draw_numbers(int n)
{
    int *v = BZ_NEW(&arena, int, n + 1);
    for (int i = 0; i < n; i++)
        v[i] = (int)chance(VALUES + 1) - 1;
    return v;
}

static void draw_step(bz_replay_step *s, bz_replay_choice *c, int streams)
{
    *s = (bz_replay_step){.name = a_name(),
                          .layer = (int)chance(40) - 1,
                          .kind = (bz_step_kind)chance(3),
                          .once = !chance(4),
                          .n_in = (int)chance(MOST_IN + 1),
                          .n_more = (int)chance(3),
                          .out = (int)chance(VALUES),
                          .stream = (int)chance((unsigned)streams)};
    *c = (bz_replay_choice){0};
    s->in = draw_numbers(s->n_in);
    s->more = draw_numbers(s->n_more);
    if (s->kind == BZ_STEP_LOOP)
        s->loop = draw_loop();
    if (s->kind != BZ_STEP_CALL)
        return;
    unsigned which = chance(N_PROBLEMS);
    bz_replay_fold *fold = BZ_NEW(&arena, bz_replay_fold, 3);
    s->problem = &problem[which];
    c->text = problem_text[which];
    s->backend = "onednn", s->algorithm = a_name(), s->layout = "any", s->math = "default";
    s->epsilon = a_float();
    s->fold = fold;
    s->n_folds = (int)chance(4);
    for (int i = 0; i < s->n_folds; i++)
        fold[i] = (bz_replay_fold){(bz_fold_kind)chance(6), {1, 2 + (int)chance(3), 3, 4}, a_float()};
}

static bz_replay_plan *draw_plan(void)
{
    bz_replay_plan *p = BZ_NEW(&arena, bz_replay_plan, 1);
    *p = (bz_replay_plan){.model = a_name(),
                          .layers = BZ_NEW(&arena, bz_layers, 1),
                          .step = BZ_NEW(&arena, bz_replay_step, STEPS),
                          .choice = BZ_NEW(&arena, bz_replay_choice, STEPS),
                          .value = BZ_NEW(&arena, bz_replay_value, VALUES),
                          .source = BZ_NEW(&arena, bz_replay_source, VALUES),
                          .order = BZ_NEW(&arena, int, STEPS),
                          .n_steps = STEPS,
                          .n_values = VALUES,
                          .loss = (int)chance(VALUES),
                          .streams = 1 + (int)chance(3)};
    for (int i = 0; i < VALUES; i++)
        draw_value(&p->value[i], &p->source[i]);
    for (int i = 0; i < STEPS; i++) {
        int k = (int)chance((unsigned)i + 1);
        draw_step(&p->step[i], &p->choice[i], p->streams);
        p->order[i] = p->order[k];
        p->order[k] = i;
    }
    return p;
}

#define SAME(x)      assert_true(a->x == b->x)
#define SAME_TEXT(x) assert_string_equal(a->x ? a->x : "", b->x ? b->x : "")

static void same_value(const bz_replay_value *a, const bz_replay_value *b)
{
    SAME_TEXT(name);
    SAME(dtype), SAME(given), SAME(rank), SAME(source), SAME(next), SAME(positive), SAME(below), SAME(output);
    SAME(scale), SAME(offset);
    assert_memory_equal(a->dim, b->dim, sizeof a->dim);
}

static void same_loop(const bz_replay_loop *a, const bz_replay_loop *b)
{
    SAME_TEXT(function);
    SAME(kind), SAME(rank), SAME(from), SAME(to), SAME(alpha), SAME(beta), SAME(value);
    assert_memory_equal(a->dim, b->dim, sizeof a->dim);
    assert_memory_equal(a->stride, b->stride, sizeof a->stride);
}

static void same_problem(const bz_problem *a, const char *text)
{
    bz_problem whole = *a; /* what a descriptor leaves out is filled in */
    bz_buf out = {0};
    assert_ok(bz_problem_normalize(&whole, &err));
    bz_problem_print(&whole, &out);
    assert_string_equal(bz_buf_text(&out), text);
    bz_buf_free(&out);
}

static void same_step(const bz_replay_step *a, const bz_replay_step *b, const bz_replay_choice *choice)
{
    SAME_TEXT(name);
    SAME(layer), SAME(kind), SAME(once), SAME(n_in), SAME(n_more), SAME(out), SAME(stream);
    for (int i = 0; i < a->n_in; i++)
        SAME(in[i]);
    for (int i = 0; i < a->n_more; i++)
        SAME(more[i]);
    assert_true(!a->loop == !b->loop && !a->problem == !b->problem);
    if (a->loop)
        same_loop(a->loop, b->loop);
    if (!a->problem)
        return;
    same_problem(b->problem, choice->text);
    SAME_TEXT(backend), SAME_TEXT(algorithm), SAME_TEXT(layout), SAME_TEXT(math);
    SAME(epsilon), SAME(n_folds);
    for (int i = 0; i < a->n_folds; i++) {
        SAME(fold[i].kind), SAME(fold[i].factor);
        assert_memory_equal(a->fold[i].value, b->fold[i].value, sizeof a->fold[i].value);
    }
}

static double stored(const char *at, bz_dtype t)
{
    double f64;
    float f32;
    int64_t i64;
    int32_t i32;
    memcpy(&f64, at, 8), memcpy(&f32, at, 4), memcpy(&i64, at, 8), memcpy(&i32, at, 4);
    return t == BZ_F64   ? f64
           : t == BZ_F32 ? (double)f32
           : t == BZ_I64 ? (double)i64
           : t == BZ_I32 ? i32
           : t == BZ_I8  ? *(const signed char *)at
                         : *(const unsigned char *)at;
}

/* Each constant of each plan lies by itself, at the begin of a line of the caches. */
static void same_weights(const bz_replay_plan *p, const bz_replay_model *m, const bz_buf *file, char *taken)
{
    for (int i = 0; i < p->n_values; i++) {
        const bz_replay_value *v = &m->value[i];
        if (v->source == BZ_VALUE_KEPT)
            assert_int_equal(v->at, -1);
        if (v->source != BZ_VALUE_STORED)
            continue;
        int64_t size = bz_dtype_bits(v->given) / 8, n = bz_extent_count(v->dim);
        assert_true(v->at >= 0 && v->at % 64 == 0 && (size_t)(v->at + n * size) <= file->len);
        for (int64_t k = 0; k < n; k++) {
            char bytes[8] = {0};
            memcpy(bytes, file->data + v->at + k * size, (size_t)size);
            assert_true(stored(bytes, v->given) == p->source[i].number[k]);
            assert_false(taken[v->at + k * size]);
            taken[v->at + k * size] = 1;
        }
    }
}

/* What forward calls, told by the last lines of the generated files' neighbour. */
static const char RECORDER[] =
    "int ran[1000], n_ran;\n"
    "int bz_replay_step_run(void *r, int step);\n"
    "int bz_replay_step_run(void *r, int step) { (void)r; ran[n_ran++] = step; return 0; }\n";

static void *compiled(void **state, const char *folder)
{
    bz_buf command = {0};
    FILE *f = fopen(bz_arena_printf(&arena, "%s/recorder.c", folder), "w");
    assert_true(f && fputs(RECORDER, f) >= 0 && !fclose(f));
    bz_buf_printf(&command, "cc -std=c17 -Wall -Wextra -Werror -shared -fPIC -O0 -I%s -o %s/all.so %s/recorder.c",
                  BENANZA_SOURCE, folder, folder);
    for (int i = 0; i < PLANS; i++)
        bz_buf_printf(&command, " %s/replay_%d.c", folder, i);
    int rc = system(bz_buf_text(&command));
    bz_buf_free(&command);
    assert_int_equal(rc, 0);
    void *so = dlopen(below(state, "program/all.so"), RTLD_NOW);
    if (!so)
        fail_msg("%s", dlerror());
    return so;
}

static void test_programs(void **state)
{
    const bz_replay_plan *plan[PLANS];
    const char *folder = below(state, "program");
    bz_buf weights = {0};
    if (system("cc --version >/dev/null 2>&1") != 0)
        skip();
    for (int i = 0; i < N_PROBLEMS; i++) {
        bz_buf text = {0};
        assert_ok(bz_problem_parse(PROBLEMS[i], &problem[i], &err));
        bz_problem_print(&problem[i], &text);
        problem_text[i] = bz_buf_keep(&text, &arena);
    }
    for (int i = 0; i < PLANS; i++)
        plan[i] = draw_plan();
    assert_ok(bz_replay_generate_all(plan, PLANS, folder, &err));
    assert_ok(bz_whole_read(below(state, "program/weights.bin"), 1 << 20, "", &weights, &err));
    char *taken = bz_zeroed(weights.len + 1, 1);
    void *so = compiled(state, folder);
    int *ran = dlsym(so, "ran"), *n_ran = dlsym(so, "n_ran");
    for (int i = 0; i < PLANS; i++) {
        const bz_replay_plan *p = plan[i];
        const bz_replay_model *m = dlsym(so, bz_arena_printf(&arena, "replay_%d", i));
        int n = 0;
        assert_non_null(m);
        assert_string_equal(m->name, p->model);
        assert_string_equal(m->weights, "weights.bin");
        assert_true(m->n_values == p->n_values && m->n_steps == p->n_steps && m->loss == p->loss);
        for (int k = 0; k < p->n_values; k++)
            same_value(&p->value[k], &m->value[k]);
        for (int k = 0; k < p->n_steps; k++)
            same_step(&p->step[p->order[k]], &m->step[k], &p->choice[p->order[k]]);
        same_weights(p, m, &weights, taken);
        *n_ran = 0;
        assert_int_equal(m->forward(NULL), 0);
        for (int k = 0; k < p->n_steps; k++)
            if (!p->step[p->order[k]].once)
                assert_int_equal(ran[n++], k);
        assert_int_equal(ran[n++], p->n_steps); /* outputs */
        assert_int_equal(*n_ran, n);
    }
    dlclose(so);
    free(taken);
    bz_buf_free(&weights);
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_programs, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
