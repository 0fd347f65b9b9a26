/* Curves and lines from records whose truth is known. */
#include "transfer/transfer.h"

#include "perfdb_test.h"
#include "runtime/problem.h"
#include "transfer/ways.h"

static const char DETAILS[] =
    "{\"device\":\"cpu\",\"caches\":[{\"level\":1,\"count\":2,\"bytes\":32768},{\"level\":2,\"count\":2,"
    "\"bytes\":1048576},{\"level\":3,\"count\":1,\"bytes\":16777216}]}";

/* Every size of every way takes start + bytes / rate, with another rate in each level. */
static double truth(const transfer_way *w, double size, const way_level *level, int n)
{
    int at = 0;
    while (at + 1 < n && size > level[at].to)
        at++;
    if (w->sizes == WAY_RING)
        return 1e-9 * pow(4, at);
    return w->sizes == WAY_ARRAYS ? 20e-9 + size / (400e9 / pow(3, at)) : 5e-6 + size / 10e9;
}

static void store(bz_perfdb *db, const char *problem, double seconds, const char *algorithm, bz_record_status status,
                  int threads)
{
    bz_record r = bz_record_blank();
    r.system = "here@onednn1";
    r.problem = problem;
    r.variant = (bz_variant){"memory", algorithm, "plain", "default"};
    r.setting = (bz_setting){threads, BZ_CACHE_HOT, ""};
    r.status = status;
    r.reason = status == BZ_RECORD_OK ? "" : "no such thing here";
    if (status == BZ_RECORD_OK)
        r.median = r.q25 = r.q75 = r.min = r.max = r.low = r.high = seconds;
    r.n = r.iterations = 10;
    r.timing = BZ_TIMING_WALL;
    r.date = 1700000000;
    assert_ok(bz_perfdb_put(db, &r, 1, NULL, &err));
}

static void fill(bz_perfdb *db, const bz_system_facts *facts, const char *without)
{
    way_level level[WAY_LEVELS_MOST];
    int n_levels = transfer_levels(facts, 1, level);
    for (const transfer_way *w = transfer_ways; w->name; w++) {
        int64_t x[WAY_MOST_SIZES];
        int n = transfer_sizes(w, facts, 1, x);
        if (!transfer_asked(w, facts, 1))
            continue;
        assert_true(n >= 3 || (facts->gpu && !w->arrays));
        for (int i = 0; i < n; i++) {
            bz_buf text = {0};
            bz_problem p;
            if (i % (WAY_PARTS / 2) || (i % WAY_PARTS && x[i] == x[i - 1]))
                continue;
            transfer_text(w, x[i], &text);
            assert_ok(bz_problem_parse(bz_buf_text(&text), &p, &err));
            double seconds = truth(w, transfer_size(w, x[i]), level, n_levels);
            double loads = w->arrays ? 1 : (double)bz_problem_hops(&p);
            if (strcmp(w->name, without) != 0) {
                store(db, bz_buf_text(&text), seconds * loads, "fast", BZ_RECORD_OK, 1);
                store(db, bz_buf_text(&text), 3 * seconds * loads, "slow", BZ_RECORD_OK, 1);
                store(db, bz_buf_text(&text), seconds * loads / 9, "of others", BZ_RECORD_OK, 2);
            } else if (i) {
                store(db, bz_buf_text(&text), NAN, "fast", BZ_RECORD_FAILED, 1);
            }
            bz_buf_free(&text);
        }
    }
}

static void close_to(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fabs(b)))
        fail_msg("%g is not %g", a, b);
}

static void test_lines(void **state)
{
    bz_perfdb *db;
    bz_arena arena = {0};
    bz_transfers t;
    const bz_system *system;
    const bz_setting setting = {1, BZ_CACHE_HOT, ""};
    const bz_system_facts *facts = bz_system_facts_read(DETAILS, &arena);
    way_level level[WAY_LEVELS_MOST];
    int n = transfer_levels(facts, 1, level);
    assert_int_equal(facts->n_caches, 3);
    assert_int_equal(n, 4);
    assert_ok(bz_perfdb_open(&db, *state, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(db, "here@onednn1", DETAILS, 1700000000, &err));
    fill(db, facts, "tcp");
    assert_ok(bz_perfdb_known(db, "here", &system, &err));
    assert_ok(bz_transfers_read(db, system, facts, &setting, &arena, &t, &err));

    assert_null(bz_transfer_find(&t, "tcp")); /* all failed, but the first, which nobody tried */
    assert_int_equal(t.missing, 1);
    assert_true(t.failed > 3);
    assert_string_equal(t.why, "no such thing here");
    for (int i = 0; i < n; i++) {
        const bz_transfer_fit *read = bz_transfer_level(bz_transfer_find(&t, "read"), level[i].name);
        const bz_transfer_fit *chase = bz_transfer_level(bz_transfer_find(&t, "chase"), level[i].name);
        assert_non_null(read);
        assert_non_null(chase);
        assert_true(read->n >= 2);
        assert_string_equal(read->variant, "fast");
        assert_true(fabs(read->start - 20e-9) < 1e-9);
        close_to(read->rate, 400e9 / pow(3, i));
        assert_true(fabs(read->half - read->start * read->rate) < 1);
        assert_true(!(read->furthest > 1e-6) && !(chase->furthest > 1e-6));
        close_to(chase->start, 1e-9 * pow(4, i));
        assert_true(isnan(chase->rate));
    }
    const bz_transfer_curve *pipe = bz_transfer_find(&t, "pipe");
    close_to(bz_transfer_level(pipe, "small")->start, 5e-6);
    close_to(bz_transfer_level(pipe, "large")->rate, 10e9);

    /* at a point it is the point, between two it lies between them, below the first and beyond the last it goes on */
    for (int i = 0; i < pipe->n; i++)
        close_to(bz_transfer_seconds(pipe, pipe->point[i].size), pipe->point[i].seconds);
    for (int i = 1; i < pipe->n; i++) {
        double between = bz_transfer_seconds(pipe, sqrt(pipe->point[i - 1].size * pipe->point[i].size));
        close_to(between, sqrt(pipe->point[i - 1].seconds * pipe->point[i].seconds));
    }
    close_to(bz_transfer_seconds(pipe, 0), pipe->point->seconds);
    const bz_transfer_point *last = &pipe->point[pipe->n - 1];
    close_to(bz_transfer_seconds(pipe, 10 * last->size), 10 * last->seconds);
    const bz_transfer_curve *chase = bz_transfer_find(&t, "chase");
    const bz_transfer_curve *file = bz_transfer_find(&t, "file");
    close_to(bz_transfer_seconds(file, file->point->size / 4), file->point->seconds);
    assert_true(isnan(bz_transfer_seconds(file, file->point->size / 5)));
    close_to(bz_transfer_seconds(chase, 1e12), chase->point[chase->n - 1].seconds);

    /* one way by itself tells what all of them together tell of it: latency and rate of sizes like the one asked for */
    bz_transfer_cost cost;
    assert_ok(bz_transfer_cost_of(db, system, "pipe", 1 << 20, &arena, &cost, &err));
    assert_int_equal(cost.points, pipe->n);
    close_to(cost.seconds, bz_transfer_seconds(pipe, 1 << 20));
    close_to(cost.start, bz_transfer_level(pipe, "large")->start);
    close_to(cost.rate, 10e9);
    assert_ok(bz_transfer_cost_of(db, system, "read", 3 * level[0].to, &arena, &cost, &err));
    close_to(cost.rate, 400e9 / 3);
    assert_ok(bz_transfers_caches(db, system, facts, &arena, &facts, &err));
    assert_ok(bz_transfers_read(db, system, facts, &setting, &arena, &t, &err));
    assert_ok(bz_transfer_cost_of(db, system, "read", 1e12, &arena, &cost, &err));
    close_to(cost.rate, bz_transfer_level(bz_transfer_find(&t, "read"), "memory")->rate);
    assert_ok(bz_transfer_cost_of(db, system, "chase", 1024, &arena, &cost, &err));
    assert_true(isnan(cost.rate) && !cost.marked);
    close_to(cost.start, 1e-9);
    assert_ok(bz_transfer_cost_of(db, system, "tcp", 100, &arena, &cost, &err));
    assert_true(!cost.points && isnan(cost.seconds) && isnan(cost.rate));
    assert_ok(bz_transfer_cost_of(db, NULL, "pipe", 100, &arena, &cost, &err));
    assert_int_equal(cost.points, 0);
    assert_int_equal(bz_transfer_cost_of(db, system, "pigeon", 100, &arena, &cost, &err), -1);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* Of a GPU copies have two lines, calls one time, and a kernel of a graph its share. */
static void test_gpu(void **state)
{
    static const char GPU[] = "{\"device\":\"gpu\",\"l2\":1000000}";
    bz_perfdb *db;
    bz_arena arena = {0};
    bz_transfers t;
    const bz_system *system;
    const bz_setting setting = {1, BZ_CACHE_HOT, ""};
    const bz_system_facts *facts = bz_system_facts_read(GPU, &arena);
    assert_ok(bz_perfdb_open(&db, *state, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(db, "here@onednn1", GPU, 1700000000, &err));
    fill(db, facts, "peer");
    assert_ok(bz_perfdb_known(db, "here", &system, &err));
    assert_ok(bz_transfers_read(db, system, facts, &setting, &arena, &t, &err));
    const bz_transfer_curve *pinned = bz_transfer_find(&t, "to_device_pinned"), *graph = bz_transfer_find(&t, "graph");
    close_to(bz_transfer_level(pinned, "small")->start, 5e-6);
    close_to(bz_transfer_level(pinned, "large")->rate, 10e9);
    assert_int_equal(graph->n, 1);
    close_to(graph->point->seconds, 5e-6 + 64 / 10e9); /* of one kernel: `fill` multiplies by their number */
    assert_null(bz_transfer_find(&t, "pipe"));
    assert_null(bz_transfer_find(&t, "peer"));
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* The bandwidths of a system are its transfers', at their best, of each thread count its own; without any its details'. */
static void test_facts(void **state)
{
    static const char MEASURED[] = "{\"device\":\"cpu\",\"measured\":[{\"threads\":1,\"flops\":{\"f32\":1e11},"
                                   "\"bandwidth\":[{\"bytes\":8192,\"read\":1,"
                                   "\"copy\":2,\"copy_cold\":3}]},{\"threads\":4,\"bandwidth\":[{\"bytes\":8192,"
                                   "\"read\":5,\"copy\":6,\"copy_cold\":7}]}]}";
    bz_perfdb *db;
    bz_arena arena = {0};
    const bz_system *system;
    const bz_system_facts *facts;
    assert_ok(bz_perfdb_open(&db, *state, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(db, "here@onednn1", MEASURED, 1700000000, &err));
    store(db, "transfer way=read x=1024 dtype=f64", 1e-6, "fast", BZ_RECORD_OK, 1);
    store(db, "transfer way=read x=1024 dtype=f64", 2e-6, "slow", BZ_RECORD_OK, 1);
    store(db, "transfer way=copy x=8192 dtype=f64", 4e-6, "fast", BZ_RECORD_OK, 1);
    store(db, "transfer way=copy x=512 dtype=f64", NAN, "fast", BZ_RECORD_FAILED, 4);
    assert_ok(bz_perfdb_known(db, "here", &system, &err));
    assert_ok(bz_transfers_facts(db, system, &arena, &facts, &err));
    const bz_measured *one = bz_system_measured(facts, 1), *four = bz_system_measured(facts, 4);
    assert_int_equal(one->n_buffers, 2);
    assert_true(one->buffer[0].bytes == 8192 && isnan(one->buffer[0].copy));
    close_to(one->buffer[0].read, 8192 / 1e-6);
    assert_true(one->buffer[1].bytes == 131072 && isnan(one->buffer[1].read) && isnan(one->buffer[1].copy_cold));
    close_to(one->buffer[1].copy, 131072 / 4e-6);
    assert_int_equal(four->n_buffers, 1);
    assert_true(four->buffer[0].read == 5 && four->buffer[0].copy == 6 && four->buffer[0].copy_cold == 7);
    assert_true(one->flops.n == 1 && one->flops.at[0].rate == 1e11);
    assert_ok(bz_transfers_facts(db, NULL, &arena, &facts, &err));
    assert_int_equal(facts->n_measured, 0);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* Where the slope changes from 0.2 to 1.8, sizes in the middle are wanted: there, and on both sides, where the corner may lie as well; not
 * where the line goes straight on. */
static void test_bends(void **state)
{
    bz_perfdb *db;
    bz_arena arena = {0};
    bz_transfers t;
    const bz_system *system;
    const char *const *text;
    const bz_setting setting = {1, BZ_CACHE_HOT, ""};
    const bz_system_facts *facts = bz_system_facts_read(DETAILS, &arena);
    assert_ok(bz_perfdb_open(&db, *state, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(db, "here@onednn1", DETAILS, 1700000000, &err));
    assert_ok(bz_perfdb_known(db, "here", &system, &err));
    for (int x = 1024; x <= 65536; x *= 2) {
        char name[64];
        double far = log((double)x / 11000);
        snprintf(name, sizeof name, "transfer way=read x=%d dtype=f64", x);
        store(db, name, 1e-6 * exp(far * (far > 0 ? 1.8 : 0.2)), "wide", BZ_RECORD_OK, 1);
    }
    assert_ok(bz_transfers_read(db, system, facts, &setting, &arena, &t, &err));
    assert_int_equal(bz_transfers_finer(&t, facts, &arena, &text), 3);
    assert_string_equal(text[1], "transfer way=read x=12288 dtype=f64");
    store(db, text[1], 1.2e-6, "wide", BZ_RECORD_OK, 1);
    assert_ok(bz_transfers_read(db, system, facts, &setting, &arena, &t, &err));
    assert_int_equal(t.points, 8);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* A virtual machine shows 512 MiB and has 24 of them: a random load of a ring finds its line in the cache with the probability that
 * the line is in it. The last size measured must lie in memory; else what is shown holds. */
static void test_share(void **state)
{
    static const char SHOWN[] =
        "{\"device\":\"cpu\",\"caches\":[{\"level\":1,\"count\":2,\"bytes\":32768},{\"level\":2,"
        "\"count\":2,\"bytes\":1048576},{\"level\":3,\"count\":1,\"bytes\":536870912}]}";
    const double own = 24 << 20, cache = 40e-9, memory = 160e-9;
    bz_perfdb *db;
    bz_arena arena = {0};
    const bz_system *system;
    const bz_system_facts *facts = bz_system_facts_read(SHOWN, &arena), *found;
    assert_ok(bz_perfdb_open(&db, *state, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(db, "here@onednn1", SHOWN, 1700000000, &err));
    assert_ok(bz_perfdb_known(db, "here", &system, &err));
    assert_ok(bz_transfers_caches(db, system, facts, &arena, &found, &err));
    assert_ptr_equal(found, facts); /* nothing is measured */
    for (int64_t x = 4096; x <= 1 << 30; x *= x < 256 << 20 ? 2 : 4) {
        char text[64];
        double hit = fmin(1, own / (double)x), hops = fmin((double)x / 64, 32768);
        snprintf(text, sizeof text, "transfer way=chase_huge x=%lld dtype=u8", (long long)x);
        store(db, text, hops * (hit * cache + (1 - hit) * memory), "huge pages", BZ_RECORD_OK, 1);
        assert_ok(bz_transfers_caches(db, system, facts, &arena, &found, &err));
        assert_true((found == facts) == (x < 1 << 30));
    }
    assert_true(found->cache[2].bytes > 0.8 * own && found->cache[2].bytes < 1.2 * own);
    assert_true(found->cache[1].bytes == facts->cache[1].bytes);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

/* Caches of all shapes, and none: sizes ascend, and are sizes that the problems take. */
static void test_sizes(void **unused)
{
    static const char *const CACHES[] = {
        "{}",
        "{\"caches\":[]}",
        "{\"caches\":[{\"level\":1,\"count\":1,\"bytes\":1}]}",
        "{\"caches\":[{\"level\":1,\"count\":64,\"bytes\":49152},{\"level\":2,\"count\":64,\"bytes\":2097152},{"
        "\"level\":3,"
        "\"count\":1,\"bytes\":1207959552}]}",
        "{\"caches\":[{\"level\":2,\"count\":1e300,\"bytes\":1e29},{\"level\":-1,\"bytes\":5}, 7, {\"bytes\":null}]}",
        "{\"caches\":{\"level\":1}}",
        "{\"device\":\"gpu\"}",
    };
    (void)unused;
    for (size_t c = 0; c < sizeof CACHES / sizeof *CACHES; c++)
        for (int threads = 1; threads < 300; threads *= 7) {
            bz_arena arena = {0};
            const bz_system_facts *facts = bz_system_facts_read(CACHES[c], &arena);
            const char *const *text;
            int all = 0;
            for (int rings = 0; rings < 2; rings++) {
                int some = bz_transfers_list(facts, threads, rings, &arena, &text);
                all += some;
                for (int i = 0; i < some; i++) {
                    bz_problem p;
                    assert_ok(bz_problem_parse(text[i], &p, &err));
                }
            }
            for (const transfer_way *w = transfer_ways; w->name; w++) {
                int64_t x[WAY_MOST_SIZES];
                int n = transfer_sizes(w, facts, threads, x);
                all -= transfer_asked(w, facts, threads) ? (n + WAY_PARTS - 1) / WAY_PARTS : 0;
                for (int i = 1; i < n; i++)
                    assert_true(i % WAY_PARTS ? x[i] >= x[i - 1] : x[i] > x[i - 1]);
                for (int i = 0; i < n; i++)
                    assert_true(transfer_size(w, x[i]) < 4e9);
            }
            assert_int_equal(all, 0);
            bz_arena_free(&arena);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_lines, make_folder, remove_folder),
                                       cmocka_unit_test_setup_teardown(test_gpu, make_folder, remove_folder),
                                       cmocka_unit_test_setup_teardown(test_facts, make_folder, remove_folder),
                                       cmocka_unit_test_setup_teardown(test_bends, make_folder, remove_folder),
                                       cmocka_unit_test_setup_teardown(test_share, make_folder, remove_folder),
                                       cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
