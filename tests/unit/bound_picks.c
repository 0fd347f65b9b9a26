/* What the library takes by itself: which of the records a program gets that leaves the choice to it. */
#include "bound/bound.h"
#include "tests/unit/perfdb_test.h"

#define SYSTEM  "epyc@onednn2.6.3"
#define RELU    "activation fn=relu x=1x8x4x4 dtype=f32"
#define PRODUCT "gemm m=4 n=10 k=48 batch=1 transa=0 transb=1 dtype=f32"
#define COPY    "copy read=512 write=512 dtype=u8"

static const double US = 1e-6;

/* Two layers of one problem each, and a place where both are the product alone. */
typedef struct lowered {
    bz_problem problem[2];
    const char *text[2];
    bz_alternative several, one;
} lowered;

typedef struct program {
    char *folder;
    bz_perfdb *db;
    const bz_system *system;
    lowered first, second;
    bz_lowering lowering[2];
    bz_layer layer[2];
    bz_bound_layer of[2];
    bz_bound_place place;
    bz_bound b;
    bool training;
    bz_picks picks;
    bz_arena arena;
} program;

static void read_problem(lowered *l, int k, const char *text)
{
    l->text[k] = text;
    assert_ok(bz_problem_parse(text, &l->problem[k], &err));
}

static int make(void **state)
{
    program *p = calloc(1, sizeof *p);
    make_folder((void **)&p->folder);
    assert_ok(bz_perfdb_open(&p->db, p->folder, &(bz_perfdb_options){0}, &err));
    read_problem(&p->first, 0, PRODUCT);
    read_problem(&p->first, 1, COPY);
    read_problem(&p->second, 0, RELU);
    p->first.one = (bz_alternative){.n = 1, .problem = p->first.problem, .text = p->first.text};
    p->first.several = (bz_alternative){.n = 2, .problem = p->first.problem, .text = p->first.text};
    p->second.one = (bz_alternative){.n = 1, .problem = p->second.problem, .text = p->second.text};
    p->lowering[0] = (bz_lowering){.alternative = &p->first.one, .n = 1};
    p->lowering[1] = (bz_lowering){.alternative = &p->second.one, .n = 1};
    for (int i = 0; i < 2; i++) {
        p->layer[i] = (bz_layer){.index = i, .kind = i ? "relu" : "gemm"};
        p->layer[i].hash.low = (uint64_t)i;
        p->of[i] = (bz_bound_layer){.layer = &p->layer[i], .node = i, .times = 1, .lowering = &p->lowering[i]};
    }
    p->place.price.alternative = &p->first.one;
    p->b = (bz_bound){
        .layer = p->of, .n = 2, .setting = {1, BZ_CACHE_HOT, ""}, .fused = {.place = &p->place, .n_places = 1}};
    *state = p;
    return 0;
}

static int drop(void **state)
{
    program *p = *state;
    bz_perfdb_close(p->db);
    remove_folder((void **)&p->folder);
    bz_arena_free(&p->arena);
    free(p);
    return 0;
}

static bz_record record_of(const char *problem, const char *backend, const char *algorithm, const char *layout,
                           double us, bool chosen)
{
    bz_record r = bz_record_blank();
    r.system = SYSTEM;
    r.problem = problem;
    r.variant = (bz_variant){backend, algorithm, layout, "default"};
    r.setting = (bz_setting){1, BZ_CACHE_HOT, ""};
    r.median = us * US;
    r.n = 3;
    r.iterations = 1;
    r.chosen = chosen;
    r.date = 1000;
    return r;
}

static void store(program *p, bz_record r)
{
    assert_ok(bz_perfdb_put(p->db, &r, 1, NULL, &err));
}

static void look(program *p)
{
    assert_ok(bz_perfdb_system(p->db, SYSTEM, &p->system, &err));
    assert_ok(bz_picks_make(&p->b, BZ_UNDEFINED, p->training, p->db, p->system, &p->arena, &p->picks, &err));
}

static void is(const bz_pick *pick, const char *variant, double us)
{
    if (!(fabs(pick->seconds - us * US) < 1e-12))
        fail_msg("%g µs, not %g", pick->seconds / US, us);
    assert_string_equal(pick->variant, variant);
}

/* First the layout that the library wants, then what its heuristic takes in it, and only then what is fastest. */
static void test_order(void **state)
{
    program *p = *state;
    store(p, record_of(RELU, "onednn", "fast", "nhwc", 1, true));
    store(p, record_of(RELU, "onednn", "plain", "plain", 2, true));
    look(p);
    is(&p->picks.free[1], "plain", 2);
    store(p, record_of(RELU, "onednn", "blocked", "any", 5, false));
    store(p, record_of(RELU, "onednn", "blocked too", "any", 4, false));
    look(p);
    is(&p->picks.free[1], "blocked too", 4);
    is(&p->picks.plain[1], "plain", 2);
    store(p, record_of(RELU, "onednn", "taken", "any", 9, true));
    look(p);
    is(&p->picks.free[1], "taken", 9);
    is(&p->picks.plain[1], "plain", 2);
}

/* A program that asks as training does is given what the library picks for that, where somebody noted it. */
static void test_training(void **state)
{
    program *p = *state;
    bz_record trained = record_of(RELU, "onednn", "trained", "any", 7, false);
    p->training = true;
    store(p, record_of(RELU, "onednn", "taken", "any", 3, true));
    store(p, trained);
    look(p);
    is(&p->picks.free[1], "taken", 3);
    trained.chosen_training = true;
    trained.date++;
    store(p, trained);
    look(p);
    is(&p->picks.free[1], "trained", 7);
    p->training = false;
    look(p);
    is(&p->picks.free[1], "taken", 3);
}

/* A BLAS where nothing else is known; what failed, and what runs with other threads, is not looked at. */
static void test_status(void **state)
{
    program *p = *state;
    store(p, record_of(PRODUCT, "cblas", "sgemm", "plain", 1, true));
    look(p);
    is(&p->picks.free[0], "sgemm", 1);
    assert_true(isnan(p->picks.free[1].seconds));
    bz_record r = record_of(PRODUCT, "onednn", "slow", "packed", 50, false);
    store(p, r);
    look(p);
    is(&p->picks.free[0], "slow", 50);
    r = record_of(PRODUCT, "onednn", "broken", "any", 1, true);
    r.status = BZ_RECORD_FAILED;
    r.reason = "wrong results";
    store(p, r);
    r = record_of(PRODUCT, "onednn", "parallel", "any", 1, true);
    r.setting.threads = 2;
    store(p, r);
    look(p);
    is(&p->picks.free[0], "slow", 50);
    is(&p->picks.place[0], "slow", 50);
}

/* What was given up as hopeless, and a single sample, are no times; that another variant has one does not make it the pick. */
static void test_given_up(void **state)
{
    program *p = *state;
    store(p, record_of(RELU, "onednn", "good", "any", 3, false));
    for (int single = 0; single < 2; single++) {
        bz_record r = record_of(RELU, "onednn", "hopeless", "any", 50, true);
        r.date += single;
        r.n = 1;
        if (!single) {
            r.n = 3;
            r.status = BZ_RECORD_DROPPED;
            r.reason = "slower than twice the best";
        }
        store(p, r);
        look(p);
        assert_true(isnan(p->picks.free[1].seconds));
    }
}

/* The interval where it is known; cold is that of the variant that was picked, and never below hot. */
static void test_cold(void **state)
{
    program *p = *state;
    bz_record r = record_of(RELU, "onednn", "jit", "any", 10, true);
    store(p, r);
    look(p);
    assert_true(isnan(p->picks.free[1].cold));
    assert_true(p->picks.free[1].low == p->picks.free[1].seconds && p->picks.free[1].high == p->picks.free[1].seconds);
    r.low = 9 * US;
    r.high = 12 * US;
    r.date++;
    store(p, r);
    r.setting.cache = BZ_CACHE_COLD;
    r.median = 30 * US;
    store(p, r);
    r.variant.algorithm = "other";
    r.median = 8 * US;
    store(p, r);
    look(p);
    const bz_pick *pick = &p->picks.free[1];
    is(pick, "jit", 10);
    assert_true(pick->low == 9 * US && pick->high == 12 * US && pick->cold == 30 * US);
    r.variant.algorithm = "jit";
    r.median = 5 * US;
    r.date++;
    store(p, r);
    look(p);
    assert_true(p->picks.free[1].cold == p->picks.free[1].seconds);
}

/* Operands in bytes, what is constant apart; 1x8x4x4 and back, weights of 10x48. */
static void test_bytes(void **state)
{
    program *p = *state;
    store(p, record_of(RELU, "onednn", "jit", "any", 1, true));
    store(p, record_of(PRODUCT, "onednn", "brg", "packed", 1, true));
    store(p, record_of(RELU, "onednn", "jit", "plain", 2, true));
    look(p);
    assert_true(p->picks.plain[1].data == 2 * 128 * 4 && p->picks.plain[1].weights == 0);
    assert_true(p->picks.free[1].data == 2 * 128 * 4 && p->picks.free[1].weights == 0);
    assert_true(p->picks.free[0].weights == 480 * 4 && p->picks.free[0].data == (4 * 48 + 4 * 10) * 4);
    assert_int_equal(p->picks.free[0].calls, 1);
}

/* Of the alternatives the first that the records know whole, all of its calls together. */
static void test_several(void **state)
{
    program *p = *state;
    bz_alternative list[] = {p->first.several, p->second.one};
    p->lowering[0] = (bz_lowering){.alternative = list, .n = 2};
    store(p, record_of(PRODUCT, "onednn", "brg", "packed", 7, true));
    store(p, record_of(RELU, "onednn", "jit", "any", 1, true));
    look(p);
    is(&p->picks.free[0], "jit", 1); /* nobody measured the copy */
    store(p, record_of(COPY, "memory", "memcpy", "plain", 2, true));
    look(p);
    is(&p->picks.free[0], "brg", 9);
    assert_int_equal(p->picks.free[0].calls, 2);
    p->layer[1].hash = p->layer[0].hash; /* layers of one key are picked for once */
    look(p);
    is(&p->picks.free[1], "brg", 9);
}

/* Views are free; what cannot be lowered is not known, nor a place that nobody has a price for. */
static void test_none(void **state)
{
    program *p = *state;
    store(p, record_of(PRODUCT, "onednn", "brg", "packed", 7, true));
    p->lowering[0] = (bz_lowering){.free = true};
    p->lowering[1] = (bz_lowering){.why = "no library has it"};
    p->place.price.alternative = NULL;
    look(p);
    assert_true(p->picks.free[0].seconds == 0 && p->picks.plain[0].seconds == 0);
    assert_true(isnan(p->picks.free[1].seconds) && isnan(p->picks.place[0].seconds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, make, drop),
        cmocka_unit_test_setup_teardown(test_training, make, drop),
        cmocka_unit_test_setup_teardown(test_status, make, drop),
        cmocka_unit_test_setup_teardown(test_given_up, make, drop),
        cmocka_unit_test_setup_teardown(test_cold, make, drop),
        cmocka_unit_test_setup_teardown(test_bytes, make, drop),
        cmocka_unit_test_setup_teardown(test_several, make, drop),
        cmocka_unit_test_setup_teardown(test_none, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
