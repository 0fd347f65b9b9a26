/* Records of two systems side by side, against a list in memory: what each knows, the cheapest, intervals, verdicts, sums, order. */
#include "tests/unit/perfdb_test.h"

#include "compare/compare.h"

static uint64_t chance_state = 13;

static unsigned chance(unsigned below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance_state >> 33) % below;
}

static const char *const PROBLEMS[] = {"relu x=1x8 dtype=f32", "relu x=1x9 dtype=f32", "sqrt x=1x8 dtype=f32"};
static const char *const SYSTEMS[] = {"a@l1", "b@l1"};
static const char *const NAMES[] = {"first", "second", "third"};
enum { N_PROBLEMS = 3, N_SETTINGS = 4, N_NAMES = 3, KEYS = N_PROBLEMS * N_SETTINGS, UNTIL = 1005 };

static bz_setting setting_of(int s)
{
    return (bz_setting){1 + s % 2, s / 2 ? BZ_CACHE_COLD : BZ_CACHE_HOT, ""};
}

/* Seconds of a record, and between which it lies. */
static bz_span span_of(const bz_record *r)
{
    bool told = r->low > 0 && r->high > 0;
    return (bz_span){r->median, told ? r->low : 0.975 * r->median, told ? r->high : 1.025 * r->median, !told};
}

/* Puts the history of each variant, and returns by key the cheapest of those that ran when they were measured last. */
static void fill(bz_perfdb *db, const char *system, bz_record best[KEYS])
{
    memset(best, 0, KEYS * sizeof *best);
    for (int k = 0; k < KEYS; k++)
        for (int v = 0; v < N_NAMES; v++) {
            bz_record newest = {0};
            for (int n = (int)chance(3); n > 0; n--) {
                bz_record r = sample_record();
                r.system = system;
                r.problem = PROBLEMS[k / N_SETTINGS];
                r.setting = setting_of(k % N_SETTINGS);
                r.variant.algorithm = NAMES[v];
                r.date = 1000 + chance(9);
                r.median = 1e-6 * (100 + chance(8) + 0.25 * v); /* no two variants take the same */
                r.low = chance(4) ? r.median * (1 - 0.001 * chance(30)) : (double)NAN;
                r.high = r.low > 0 ? r.median * (1 + 0.001 * chance(30)) : (double)NAN;
                r.status = chance(5) ? BZ_RECORD_OK : BZ_RECORD_FAILED;
                r.reason = r.status ? "why" : "";
                if (r.date == newest.date)
                    continue;
                put(db, r);
                if (r.date <= UNTIL && r.date > newest.date)
                    newest = r;
            }
            if (newest.date && newest.status == BZ_RECORD_OK &&
                !(best[k].median > 0 && best[k].median <= newest.median))
                best[k] = newest;
        }
}

static bz_verdict verdict_of(const bz_span *a, const bz_span *b)
{
    double least = b->low / a->high, most = b->high / a->low;
    bool equal_guesses = a->guessed && b->guessed && a->seconds == b->seconds;
    return (least >= 0.98 && most <= 1.02) || equal_guesses ? BZ_SAME
           : most < 1                                       ? BZ_FASTER
           : least > 1                                      ? BZ_SLOWER
                                                            : BZ_UNDECIDED;
}

static void near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-10); /* times are held in ticks */
}

static void test_side_by_side(void **state)
{
    for (int i = 0; i < 40; i++) {
        bz_arena arena = {0};
        static bz_record best[2][KEYS];
        bz_side *side[2];
        bz_perfdb *db = open_new(state, bz_arena_printf(&arena, "db%d", i));
        for (int s = 0; s < 2; s++) {
            const bz_system *system;
            fill(db, SYSTEMS[s], best[s]);
            assert_ok(bz_perfdb_system(db, SYSTEMS[s], &system, &err));
            assert_non_null(system);
            assert_ok(bz_side_read(db, system, UNTIL, NULL, &arena, &side[s], &err));
        }
        bz_compare c;
        int both = 0, only[2] = {0}, guessed = 0, count[BZ_VERDICTS] = {0};
        double total[2] = {0}, high = 0, low = 0;
        bz_compare_problems(side[0], side[1], &arena, &c);
        for (int k = 0; k < KEYS; k++) {
            bool in[] = {best[0][k].median > 0, best[1][k].median > 0};
            only[0] += in[0] && !in[1];
            only[1] += in[1] && !in[0];
            if (!in[0] || !in[1])
                continue;
            bz_span a = span_of(&best[0][k]), b = span_of(&best[1][k]);
            const bz_setting setting = setting_of(k % N_SETTINGS);
            const char *said =
                bz_arena_printf(&arena, "%d thread%s, %s", setting.threads, setting.threads == 1 ? "" : "s",
                                setting.cache == BZ_CACHE_HOT ? "hot" : "cold");
            const bz_compare_row *row = NULL;
            for (int r = 0; r < c.n; r++)
                if (!strcmp(c.row[r].what, best[0][k].problem) && !strcmp(c.row[r].setting, said))
                    row = &c.row[r];
            assert_non_null(row);
            near(row->a.seconds, a.seconds), near(row->a.low, a.low), near(row->a.high, a.high);
            near(row->b.seconds, b.seconds), near(row->b.low, b.low), near(row->b.high, b.high);
            assert_true(row->a.guessed == a.guessed && row->b.guessed == b.guessed && row->times == 1);
            assert_non_null(strstr(row->variant_a, best[0][k].variant.algorithm));
            assert_non_null(strstr(row->variant_b, best[1][k].variant.algorithm));
            assert_int_equal(row->verdict, verdict_of(&row->a, &row->b));
            both++;
            count[row->verdict]++;
            guessed += a.guessed || b.guessed;
            total[0] += a.seconds, total[1] += b.seconds;
            high += a.high, low += b.low;
        }
        assert_true(c.n == both && c.only_a == only[0] && c.only_b == only[1] && c.guessed == guessed);
        assert_memory_equal(c.count, count, sizeof count);
        near(c.total_a, total[0]), near(c.total_b, total[1]);
        for (int r = 1; r < c.n; r++)
            assert_true(fabs(c.row[r - 1].b.seconds - c.row[r - 1].a.seconds) >=
                        fabs(c.row[r].b.seconds - c.row[r].a.seconds));
        bool sure;
        double slower = bz_compare_slower(&c, &sure);
        assert_true(both ? fabs(slower - (total[1] / total[0] - 1)) < 1e-6 : isnan(slower));
        assert_true(fabs(low - high) < 1e-9 || sure == (both && low > high));
        bz_side_free(side[0]);
        bz_side_free(side[1]);
        bz_perfdb_close(db);
        bz_arena_free(&arena);
    }
}

/* At the borders of the tolerance, and of what overlaps. */
static void test_verdicts(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        bz_span s[2];
        for (int k = 0; k < 2; k++) {
            double least = 64 + chance(5), width = chance(4);
            s[k] = (bz_span){least + width / 2, least, least + width, !chance(3)};
        }
        assert_int_equal(bz_verdict_of(&s[0], &s[1]), verdict_of(&s[0], &s[1]));
    }
    bz_span one = {1, 1, 1, false}, more = {1.02, 1.02, 1.02, false}, less = {0.98, 0.98, 0.98, false};
    assert_true(bz_verdict_of(&one, &more) == BZ_SAME && bz_verdict_of(&one, &less) == BZ_SAME);
}

/* All rows count, each as often as it occurs, and no other. */
static void test_slower(void **state)
{
    (void)state;
    enum { ROWS = 6 };
    int sure_ones = 0;
    for (int i = 0; i < 5000; i++) {
        bz_compare_row row[ROWS + 1];
        bz_compare c = {.row = row, .n = (int)chance(ROWS + 1)};
        double high = 0, low = 0;
        bool sure;
        for (int k = 0; k <= ROWS; k++) {
            double a = 10 + chance(10), b = a + chance(5);
            row[k] = (bz_compare_row){
                .times = 1 + chance(3), .a = {a, a - 1, a + chance(2), false}, .b = {b, b - chance(3), b + 1, false}};
            if (k >= c.n)
                continue;
            high += row[k].times * row[k].a.high, low += row[k].times * row[k].b.low;
            c.total_a += row[k].times * a, c.total_b += row[k].times * b;
        }
        double slower = bz_compare_slower(&c, &sure);
        assert_true(c.n ? fabs(slower - (c.total_b / c.total_a - 1)) < 1e-12 : isnan(slower));
        assert_true(sure == (low > high));
        sure_ones += sure;
    }
    assert_true(sure_ones > 500 && sure_ones < 4500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_side_by_side, make_folder, remove_folder),
                                       cmocka_unit_test(test_verdicts), cmocka_unit_test(test_slower)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
