/* Curves and lines from records whose truth is known. */
#include "transfer/transfer.h"

#include "chance.h"
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

static bz_record record_of(const char *system, const char *problem, double seconds, const char *algorithm)
{
    bz_record r = bz_record_blank();
    r.system = system;
    r.problem = problem;
    r.variant = (bz_variant){"memory", algorithm, "plain", "default"};
    r.setting = (bz_setting){1, BZ_CACHE_HOT, ""};
    r.status = BZ_RECORD_OK;
    r.reason = "";
    r.median = r.q25 = r.q75 = r.min = r.max = r.low = r.high = seconds;
    r.n = r.iterations = 10;
    r.timing = BZ_TIMING_WALL;
    r.date = 1700000000;
    return r;
}

static void store(bz_perfdb *db, const char *problem, double seconds, const char *algorithm, bz_record_status status,
                  int threads)
{
    bz_record r = record_of("here@onednn1", problem, seconds, algorithm);
    r.setting.threads = threads;
    r.status = status;
    if (status != BZ_RECORD_OK) {
        r.reason = "no such thing here";
        r.median = r.q25 = r.q75 = r.min = r.max = r.low = r.high = bz_record_blank().median;
    }
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

/* Rows of the sheets are what was read: a point, a line, and for a size asked what the curve says. */
static void check_sheets(const bz_transfers *t, bz_arena *arena)
{
    const bz_sheet *points = bz_transfers_points(t, arena), *fits = bz_transfers_fits(t, arena),
                   *asked = bz_transfers_asked(t, 1 << 20, arena);
    int n_points = 0, n_fits = 0;
    for (int i = 0; i < t->n; i++) {
        const bz_transfer_curve *c = &t->curve[i];
        for (int k = 0; k < c->n; k++) {
            assert_true(n_points < points->n);
            const bz_sheet_cell *cell = &points->cell[points->n_columns * n_points++];
            assert_string_equal(cell[0].text, c->way);
            assert_true(cell[1].number == c->point[k].size && cell[2].number == c->point[k].seconds);
            if (c->point[k].bytes > 0)
                close_to(cell[3].number, c->point[k].bytes / c->point[k].seconds);
            else
                assert_true(isnan(cell[3].number));
            assert_string_equal(cell[4].text, c->point[k].variant);
            assert_string_equal(cell[5].text, c->point[k].marked ? "noisy" : "");
        }
        for (int k = 0; k < c->n_fits; k++) {
            assert_true(n_fits < fits->n);
            const bz_sheet_cell *cell = &fits->cell[fits->n_columns * n_fits++];
            assert_string_equal(cell[0].text, c->way);
            assert_string_equal(cell[1].text, c->fit[k].level);
            assert_true(cell[2].number == c->fit[k].start && cell[8].number == c->fit[k].n);
            assert_true(cell[3].number == c->fit[k].rate || (isnan(cell[3].number) && isnan(c->fit[k].rate)));
            assert_string_equal(cell[7].text, c->fit[k].variant);
            assert_string_equal(cell[9].text, c->tells);
        }
        assert_true(i < asked->n);
        const bz_sheet_cell *cell = &asked->cell[asked->n_columns * i];
        double seconds = bz_transfer_seconds(c, 1 << 20);
        assert_string_equal(cell[0].text, c->way);
        assert_true(cell[1].number == seconds || (isnan(cell[1].number) && isnan(seconds)));
        if (c->point->bytes > 0 && seconds > 0)
            close_to(cell[2].number, (1 << 20) / seconds);
        else
            assert_true(isnan(cell[2].number));
    }
    assert_int_equal(points->n, n_points);
    assert_int_equal(points->n, t->points);
    assert_int_equal(fits->n, n_fits);
    assert_int_equal(asked->n, t->n);
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
    check_sheets(&t, &arena);
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

static bz_perfdb *open_here(const char *folder, const bz_system **system)
{
    bz_perfdb *db;
    assert_ok(bz_perfdb_open(&db, folder, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(db, "here@onednn1", DETAILS, 1700000000, &err));
    assert_ok(bz_perfdb_known(db, "here", system, &err));
    return db;
}

static void store_read(bz_perfdb *db, int x, double seconds)
{
    char name[64];
    snprintf(name, sizeof name, "transfer way=read x=%d dtype=f64", x);
    store(db, name, seconds, "wide", BZ_RECORD_OK, 1);
}

/* Where the slope changes from 0.2 to 1.8, sizes in the middle are wanted: there, and on both sides, where the corner may lie as well; not
 * where the line goes straight on. */
static void test_bends(void **state)
{
    bz_arena arena = {0};
    bz_transfers t;
    const bz_system *system;
    const char *const *text;
    const bz_setting setting = {1, BZ_CACHE_HOT, ""};
    const bz_system_facts *facts = bz_system_facts_read(DETAILS, &arena);
    bz_perfdb *db = open_here(*state, &system);
    for (int x = 1024; x <= 65536; x *= 2) {
        double far = log((double)x / 11000);
        store_read(db, x, 1e-6 * exp(far * (far > 0 ? 1.8 : 0.2)));
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

/* Between 4096 and 8192 elements the time grows eight times, behind them as the bytes: the jump lies somewhere between, whose middle is
 * wanted, and that behind it, as the jump may be there. The two slopes join in no corner. What takes longer than a larger size is told: 2048 here, by 6 %. */
static void test_jumps(void **state)
{
    bz_arena arena = {0};
    bz_transfers t;
    const bz_system *system;
    const char *const *text;
    const bz_setting setting = {1, BZ_CACHE_HOT, ""};
    const bz_system_facts *facts = bz_system_facts_read(DETAILS, &arena);
    bz_perfdb *db = open_here(*state, &system);
    for (int x = 4096; x <= 65536; x *= 2)
        store_read(db, x, 1e-9 * x * (x > 4096 ? 4 : 1));
    assert_ok(bz_transfers_read(db, system, facts, &setting, &arena, &t, &err));
    assert_int_equal(bz_transfers_disturbed(&t, facts, &arena, &text), 0);
    assert_int_equal(bz_transfers_finer(&t, facts, &arena, &text), 2);
    assert_string_equal(text[0], "transfer way=read x=6144 dtype=f64");
    store_read(db, 2048, 1.06 * 4096e-9);
    assert_ok(bz_transfers_read(db, system, facts, &setting, &arena, &t, &err));
    assert_int_equal(bz_transfers_disturbed(&t, facts, &arena, &text), 1);
    assert_string_equal(text[0], "transfer way=read x=2048 dtype=f64");
    store(db, "transfer way=read x=2048 dtype=f64", 1.04 * 4096e-9, "halves", BZ_RECORD_OK, 1);
    assert_ok(bz_transfers_read(db, system, facts, &setting, &arena, &t, &err));
    assert_int_equal(bz_transfers_disturbed(&t, facts, &arena, &text), 0);
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

/* The size of the last cache, by the definition: where the latency crosses the middle between the least one from four times the second
 * cache to what is shown of the last, and that of the largest ring. The crossing lies on a straight line over the sizes' logarithms,
 * and is looked for by halving; half the size there is the cache's. `shown`: nothing else is known. */
static double last_cache(const double *size, const double *seconds, int n, double second, double shown)
{
    double least = INFINITY, memory = seconds[n - 1];
    int k = 0;
    for (int i = 0; i < n; i++)
        if (!(size[i] < 4 * second) && !(size[i] > shown) && seconds[i] < least)
            least = seconds[i];
    if (size[n - 1] < 2 * shown || isinf(least) || memory <= 1.5 * least)
        return shown;
    double middle = (least + memory) / 2;
    for (k = 0; size[k] < 4 * second || seconds[k] < middle;)
        k++;
    if (!k)
        return shown;
    double low = log(size[k - 1]), high = log(size[k]), from = low, to = high;
    for (int i = 0; i < 100 && seconds[k - 1] < middle; i++) {
        double at = (from + to) / 2, there = seconds[k - 1] + (seconds[k] - seconds[k - 1]) * (at - low) / (high - low);
        *(there < middle ? &from : &to) = at;
    }
    double found = exp(from) / 2;
    for (int i = 0; i < n; i++) /* halving ends beside it */
        found = fabs(found / size[i] - 1) < 1e-9 ? size[i] : found;
    return found < shown && found >= second ? found : shown;
}

/* Latencies by chance, few of them, so that they are often the same, and caches whose borders are sizes that are measured. */
static void test_chance(void **state)
{
    enum { SIZES = 18, TIMES = 200 };
    bz_perfdb *db;
    bz_record r[SIZES];
    double size[SIZES], seconds[SIZES];
    char text[SIZES][64];
    int found_one = 0;
    assert_ok(bz_perfdb_open(&db, *state, &(bz_perfdb_options){0}, &err));
    for (int i = 0; i < SIZES; i++) {
        size[i] = pow(2, i + 1 < SIZES ? 12 + i : 30);
        snprintf(text[i], sizeof text[i], "transfer way=chase_huge x=%.0f dtype=u8", size[i]);
    }
    for (int time = 0; time < TIMES; time++) {
        bz_arena arena = {0};
        const bz_system *system;
        const bz_system_facts *found;
        char name[32], details[300];
        double second = pow(2, 12 + chance(16)), times = pow(2, chance(10)), odd = chance(4) ? 1 : 1.1,
               shown = second * times * odd;
        snprintf(name, sizeof name, "of%d@onednn1", time);
        snprintf(details, sizeof details,
                 "{\"device\":\"cpu\",\"caches\":[{\"level\":1,\"count\":1,\"bytes\":4096},{\"level\":2,\"count\":1,"
                 "\"bytes\":%.0f},{\"level\":3,\"count\":1,\"bytes\":%.0f}]}",
                 second, shown);
        for (int i = 0; i < SIZES; i++) {
            seconds[i] = 1e-9 * (1 + chance(i > SIZES / 2 ? 8 : 3));
            r[i] = record_of(name, text[i], seconds[i] * fmin(size[i] / 64, 32768), "pages");
        }
        assert_ok(bz_perfdb_put_system(db, name, details, 1700000000, &err));
        assert_ok(bz_perfdb_put(db, r, SIZES, NULL, &err));
        const bz_system_facts *facts = bz_system_facts_read(details, &arena);
        assert_ok(bz_perfdb_known(db, bz_arena_printf(&arena, "of%d", time), &system, &err));
        assert_ok(bz_transfers_caches(db, system, facts, &arena, &found, &err));
        close_to(found->cache[2].bytes, last_cache(size, seconds, SIZES, second, facts->cache[2].bytes));
        assert_true(found->cache[1].bytes == facts->cache[1].bytes);
        found_one += found != facts;
        bz_arena_free(&arena);
    }
    assert_in_range(found_one, TIMES / 10, TIMES - TIMES / 10);
    bz_perfdb_close(db);
}

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
    "{\"caches\":[{\"level\":1,\"count\":6,\"bytes\":32768},{\"level\":2,\"count\":6,\"bytes\":1048576},{\"level\":3,"
    "\"count\":2,\"bytes\":16777216}]}",
};

/* What threads move together is of each way the smallest size of those always measured that no cache of all cores holds half of; they
 * are counted in powers of two and all cores, and each count has its row and its rate. */
static void test_together(void **state)
{
    static const char *const WAYS[] = {"read", "write", "copy", "scale", "add", "triad", "strided", "scattered"};
    static const int ARRAYS[] = {1, 1, 2, 2, 3, 3, 1, 2};
    bz_perfdb *db;
    const bz_setting setting = {1, BZ_CACHE_HOT, ""};
    assert_ok(bz_perfdb_open(&db, *state, &(bz_perfdb_options){0}, &err));
    for (size_t c = 0; c < sizeof CACHES / sizeof *CACHES; c++) {
        bz_arena arena = {0};
        const char *const *together, *const *list;
        const bz_system *system;
        const bz_sheet *sheet;
        char name[32];
        const bz_system_facts *facts = bz_system_facts_read(CACHES[c], &arena);
        int count[BZ_TRANSFER_COUNTS], counts = bz_transfers_counts(facts, count), cores = count[counts - 1], n = 0,
                                       rows = 0;
        assert_int_equal(cores, facts->n_caches ? facts->cache[0].count : 1);
        for (int i = 0; i + 1 < counts; i++)
            assert_true(count[i] == 1 << i && count[i] < cores);
        assert_true(counts == BZ_TRANSFER_COUNTS || 1 << (counts - 1) >= cores);
        double bytes = 32 << 20;
        if (facts->n_caches) {
            int last = facts->n_caches - 1;
            bytes = facts->cache[last].bytes * fmin(facts->cache[last].count, cores);
        }
        int n_together = bz_transfers_together(facts, &arena, &together),
            n_list = bz_transfers_list(facts, cores, false, &arena, &list);
        snprintf(name, sizeof name, "of%zu@onednn1", c);
        assert_ok(bz_perfdb_put_system(db, name, CACHES[c], 1700000000, &err));
        for (size_t w = 0; w < sizeof WAYS / sizeof *WAYS && !facts->gpu; w++) {
            const char *wanted = NULL;
            long long least = INT64_MAX;
            for (int i = 0; i < n_list; i++) {
                char way[32];
                long long x;
                assert_int_equal(sscanf(list[i], "transfer way=%31s x=%lld", way, &x), 2);
                if (!strcmp(way, WAYS[w]) && (double)x * 8 * ARRAYS[w] >= 2 * bytes && x < least)
                    least = x, wanted = list[i];
            }
            if (!wanted)
                continue;
            assert_true(n < n_together);
            assert_string_equal(together[n++], wanted);
            for (int i = 0; i < counts; i++) {
                bz_record r = record_of(name, wanted, 1e-3 * (double)(1 + w), "fast");
                r.setting.threads = count[i];
                assert_ok(bz_perfdb_put(db, &r, 1, NULL, &err));
            }
        }
        assert_int_equal(n, n_together);
        assert_ok(bz_perfdb_known(db, bz_arena_printf(&arena, "of%zu", c), &system, &err));
        assert_ok(bz_transfers_by_threads(db, system, facts, &setting, &arena, &sheet, &err));
        for (int i = 0; i < n; i++)
            for (int k = 0; k < counts; k++, rows++) {
                char way[32];
                long long x;
                int w = 0;
                assert_true(rows < sheet->n);
                const bz_sheet_cell *cell = &sheet->cell[sheet->n_columns * rows];
                sscanf(together[i], "transfer way=%31s x=%lld", way, &x);
                while (strcmp(WAYS[w], way) != 0)
                    w++;
                double size = (double)x * 8 * ARRAYS[w], seconds = 1e-3 * (1 + w);
                assert_string_equal(cell[0].text, way);
                assert_true(cell[1].number == count[k] && cell[2].number == size && cell[3].number == seconds);
                close_to(cell[4].number, size / seconds);
                close_to(cell[5].number, size / seconds / count[k]);
                assert_string_equal(cell[6].text, "fast");
            }
        assert_int_equal(sheet->n, rows);
        bz_arena_free(&arena);
    }
    bz_perfdb_close(db);
}

/* Caches of all shapes, and none: sizes ascend, and are sizes that the problems take. */
static void test_sizes(void **unused)
{
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
                                       cmocka_unit_test_setup_teardown(test_jumps, make_folder, remove_folder),
                                       cmocka_unit_test_setup_teardown(test_share, make_folder, remove_folder),
                                       cmocka_unit_test_setup_teardown(test_chance, make_folder, remove_folder),
                                       cmocka_unit_test_setup_teardown(test_together, make_folder, remove_folder),
                                       cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
