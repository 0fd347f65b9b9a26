/* The database against a list in memory, operation by operation; and what its small functions promise, over random inputs, by
 * definitions that are written here once more. */
#include "tests/unit/perfdb_test.h"

#include "perfdb/entry.h"
#include "perfdb/gbench.h"
#include "perfdb/store.h"

#include <math.h>
#include <sys/stat.h>
#include <time.h>

static uint64_t chance_state = 11;

static unsigned chance(unsigned below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance_state >> 33) % below;
}

static const char *const SYSTEMS[] = {"a@onednn2.9", "a@onednn2.10", "b@x1"}; /* in their order */
static const char *const PROBLEMS[] = {"relu x=1x8 dtype=f32",  "relu x=1x9 dtype=f32",  "relu x=1x8 dtype=bf16",
                                       "sqrt x=1x8 dtype=f32",  "relu x=1x10 dtype=f32", "relu x=1x11 dtype=bf16",
                                       "sqrt x=1x12 dtype=f32", "relu x=1x13 dtype=f32", "sqrt x=1x14 dtype=bf16"};
static const char *const BACKENDS[] = {"cblas", "onednn"};
static const char *const ALGORITHMS[] = {"first", "second"};
enum { MOST = 4000, N_PROBLEMS = sizeof PROBLEMS / sizeof *PROBLEMS };

static bz_record model[MOST];
static int n_model;

static bz_record random_record(void)
{
    bz_record r = sample_record();
    r.system = SYSTEMS[chance(3)];
    r.problem = PROBLEMS[chance(chance(2) ? 4 : N_PROBLEMS)];
    r.variant.backend = BACKENDS[chance(2)];
    r.variant.algorithm = ALGORITHMS[chance(2)];
    r.setting.threads = (int)(const unsigned[]){1, 2, 16}[chance(3)];
    r.status = chance(4) ? BZ_RECORD_OK : (bz_record_status)(1 + chance(5));
    r.reason = r.status == BZ_RECORD_OK ? "" : "why";
    r.provenance = (bz_record_provenance)chance(3);
    r.n = 1 + chance(2);
    r.low = 0;
    r.high = 1e-6 * (1 + chance(2));
    r.median = 1e-6 * (1 + chance(1000));
    r.date = 100 + chance(8);
    r.meta = chance(2) ? "{\"counted\":{\"flops\":1}}" : "{\"spread\":1}";
    return r;
}

/* Which of two tellings of the same second stays, as the manual says; 0: the bytes decide. */
static int preferred(const bz_record *a, const bz_record *b)
{
    static const int RANK[] = {
        [BZ_PROVENANCE_MEASURED] = 3, [BZ_PROVENANCE_IMPORTED] = 2, [BZ_PROVENANCE_MODELLED] = 1};
    const double by[][2] = {{RANK[a->provenance], RANK[b->provenance]},
                            {a->status == BZ_RECORD_OK, b->status == BZ_RECORD_OK},
                            {(double)a->n, (double)b->n},
                            {b->high - b->low, a->high - a->low},
                            {strstr(a->meta, "counted") != NULL, strstr(b->meta, "counted") != NULL}};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++)
        if (by[i][0] != by[i][1])
            return by[i][0] > by[i][1] ? 1 : -1;
    return 0;
}

static void model_put(const bz_record *r, bz_perfdb_count *count)
{
    for (int i = 0; i < n_model; i++) {
        bz_record *old = &model[i];
        if (old->date != r->date || !bz_record_same_identity(old, r))
            continue;
        int order = preferred(r, old), bytes = bz_record_prefer(r, old);
        assert_true(order == 0 || (order > 0) == (bytes > 0));
        assert_true((bz_record_prefer(old, r) > 0) == (bytes < 0));
        if (bytes > 0)
            *old = *r;
        *(bytes > 0 ? &count->replaced : &count->kept) += 1;
        return;
    }
    assert_true(n_model < MOST);
    model[n_model++] = *r;
    count->added++;
}

static bool is_newest(const bz_record *r)
{
    for (int i = 0; i < n_model; i++)
        if (bz_record_same_identity(&model[i], r) && model[i].date > r->date)
            return false;
    return true;
}

static void same_record(const bz_record *a, const bz_record *b)
{
    assert_true(bz_record_same_identity(a, b));
    assert_int_equal(bz_record_prefer(a, b), 0);
    assert_int_equal(a->date, b->date);
}

typedef struct {
    const bz_perfdb_filter *filter;
    bool seen[MOST];
    int n, stop;
} walk;

static int each(void *user, const bz_record *r)
{
    walk *w = user;
    for (int i = 0; i < n_model; i++)
        if (model[i].date == r->date && bz_record_same_identity(&model[i], r)) {
            same_record(&model[i], r);
            assert_false(w->seen[i]);
            w->seen[i] = true;
            return ++w->n == w->stop;
        }
    fail();
    return 1;
}

static void scans_agree(bz_perfdb *db, const bz_system *system)
{
    for (int i = 0; i < 8; i++) {
        bz_perfdb_filter f = {i & 1 ? system : NULL, i & 2 ? "f32" : NULL, i & 4};
        static walk w;
        w = (walk){.filter = &f, .stop = -1};
        assert_ok(bz_perfdb_scan(db, &f, each, &w, &err));
        for (int k = 0; k < n_model; k++) {
            const bz_record *r = &model[k];
            bool wanted = (!f.system || !strcmp(f.system->name, r->system)) &&
                          (!f.dtype || strstr(r->problem, "=f32")) && (f.history || is_newest(r));
            assert_int_equal(w.seen[k], wanted);
        }
        int all = w.n;
        w = (walk){.filter = &f, .stop = all / 2};
        assert_ok(bz_perfdb_scan(db, &f, each, &w, &err));
        assert_int_equal(w.n, all / 2 ? all / 2 : all);
    }
}

static void stock_agrees(bz_perfdb *db, bz_arena *arena)
{
    bz_stock *s;
    size_t n;
    assert_ok(bz_perfdb_stocks(db, arena, &s, &n, &err));
    for (size_t i = 0; i < n; i++) {
        size_t records = 0, variants = 0, problems = 0, ok = 0;
        int64_t newest = 0;
        bool problem[N_PROBLEMS] = {0}, from[3] = {0}, threads[17] = {0};
        for (int k = 0; k < n_model; k++) {
            const bz_record *r = &model[k];
            if (strcmp(r->system, s[i].system->name) != 0)
                continue;
            records++;
            if (!is_newest(r))
                continue;
            variants++;
            ok += r->status == BZ_RECORD_OK;
            newest = r->date > newest ? r->date : newest;
            from[r->provenance] = threads[r->setting.threads] = true;
            for (int p = 0; p < N_PROBLEMS; p++)
                problem[p] |= !strcmp(PROBLEMS[p], r->problem);
        }
        for (int p = 0; p < N_PROBLEMS; p++)
            problems += problem[p];
        assert_true(s[i].records == records && s[i].variants == variants && s[i].problems == problems && s[i].ok == ok);
        assert_int_equal(s[i].newest, newest);
        assert_memory_equal(s[i].from, from, sizeof from);
        int at = 0;
        for (int t = 0; t < 17; t++)
            if (threads[t])
                assert_int_equal(s[i].threads[at++], t);
        assert_int_equal(at, s[i].n_threads);
    }
}

/* By problem, then system, what is ok by time, then what is not. */
static void picks_agree(bz_perfdb *db, const bz_system *system, bz_arena *arena)
{
    const char *const words[] = {"relu", "x=1x8"};
    bz_perfdb_choice c = {.filter = {chance(2) ? system : NULL, NULL, chance(2)},
                          .backend = chance(2) ? "cblas" : NULL,
                          .word = words,
                          .n_words = (int)chance(3),
                          .failed = chance(2)};
    bz_record *list;
    size_t n, expected = 0;
    assert_ok(bz_perfdb_pick(db, &c, arena, &list, &n, &err));
    for (int k = 0; k < n_model; k++) {
        const bz_record *r = &model[k];
        expected += (!c.filter.system || !strcmp(system->name, r->system)) && (c.filter.history || is_newest(r)) &&
                    (!c.backend || !strcmp(c.backend, r->variant.backend)) && (c.failed || r->status == BZ_RECORD_OK) &&
                    (c.n_words < 1 || strstr(r->problem, "relu")) && (c.n_words < 2 || strstr(r->problem, "x=1x8"));
    }
    assert_int_equal(n, expected);
    for (size_t i = 1; i < n; i++) {
        const bz_record *a = &list[i - 1], *b = &list[i];
        int problem = strcmp(a->problem, b->problem), name = problem ? 0 : bz_system_compare(a->system, b->system);
        bool ok_a = a->status == BZ_RECORD_OK, ok_b = b->status == BZ_RECORD_OK;
        assert_true(problem <= 0 && name <= 0);
        if (problem || name)
            continue;
        assert_true(ok_a >= ok_b);
        assert_true(!ok_a || !ok_b || a->median <= b->median);
    }
}

static void identities_agree(bz_perfdb *db, const bz_record *one, bz_arena *arena)
{
    const bz_system *system;
    bz_record *list, *found = find(db, *one, arena);
    size_t n, history = 0, variants = 0;
    assert_ok(bz_perfdb_system(db, one->system, &system, &err));
    if (!system)
        return;
    for (int k = 0; k < n_model; k++) {
        history += bz_record_same_identity(&model[k], one);
        variants +=
            is_newest(&model[k]) && !strcmp(model[k].system, one->system) && !strcmp(model[k].problem, one->problem);
        if (bz_record_same_identity(&model[k], one) && is_newest(&model[k]))
            same_record(found, &model[k]);
    }
    assert_int_equal(found != NULL, history > 0);
    assert_ok(bz_perfdb_history(db, system, one->problem, &one->variant, &one->setting, arena, &list, &n, &err));
    assert_int_equal(n, history);
    for (size_t i = 1; i < n; i++)
        assert_true(list[i - 1].date > list[i].date);
    assert_ok(bz_perfdb_variants(db, system, one->problem, arena, &list, &n, &err));
    assert_int_equal(n, variants);
    for (size_t i = 0; i < n; i++)
        assert_true(is_newest(&list[i]));
}

static void model_gc(size_t keep, size_t *deleted)
{
    static bool gone[MOST];
    for (int i = 0; i < n_model; i++) {
        size_t newer = 0;
        for (int k = 0; k < n_model; k++)
            newer += bz_record_same_identity(&model[i], &model[k]) && model[k].date > model[i].date;
        gone[i] = newer >= keep;
    }
    int n = 0;
    for (int i = 0; i < n_model; i++)
        if (gone[i])
            ++*deleted;
        else
            model[n++] = model[i];
    n_model = n;
}

static void test_against_a_list(void **state)
{
    struct stat st;
    mode_t mask = umask(0);
    bz_perfdb *db = open_new(state, "db");
    umask(mask);
    assert_ok(stat(below(state, "db/data.mdb"), &st));
    assert_int_equal(st.st_mode & 07777, 0666); /* who may use it is the umask's to say */
    for (int round = 0; round < 60; round++) {
        bz_arena arena = {0};
        bz_record batch[40];
        bz_perfdb_count expected = {0}, count = {0};
        int n = (int)chance(40);
        for (int i = 0; i < n; i++) {
            batch[i] = random_record();
            int same = 0; /* which of two in one batch comes first is not promised: the counts would differ */
            while (same < i && (batch[same].date != batch[i].date || !bz_record_same_identity(&batch[same], &batch[i])))
                same++;
            if (same < i)
                n = i--;
            else
                model_put(&batch[i], &expected);
        }
        assert_ok(bz_perfdb_put(db, batch, (size_t)n, &count, &err));
        assert_memory_equal(&count, &expected, sizeof count);
        if (chance(6) == 0) {
            size_t keep = 1 + chance(3), deleted = 0, gone = 0;
            model_gc(keep, &gone);
            assert_ok(bz_perfdb_gc(db, keep, &deleted, &err));
            assert_int_equal(deleted, gone);
        }
        const bz_system *system, **systems;
        size_t n_systems;
        assert_ok(bz_perfdb_system(db, "a", &system, &err));
        assert_ok(bz_perfdb_systems(db, &arena, &systems, &n_systems, &err));
        for (size_t i = 1; i < n_systems; i++)
            assert_true(bz_system_compare(systems[i - 1]->name, systems[i]->name) < 0);
        scans_agree(db, system);
        stock_agrees(db, &arena);
        if (system)
            picks_agree(db, system, &arena);
        for (int i = 0; i < 20; i++) {
            bz_record one = random_record();
            identities_agree(db, &one, &arena);
        }
        bz_arena_free(&arena);
    }
    assert_clean(db);
    assert_int_equal(warnings.len, 0);
    bz_perfdb_close(db);
}

/* Details: some win over none, then the newer, then the greater text. Whichever comes first. */
static void test_details_in_any_order(void **state)
{
    static const char *const DETAILS[] = {"{}", "{\"a\":1}", "{\"a\":2}"};
    bz_perfdb *db = open_new(state, "db");
    for (int i = 0; i < 300; i++) {
        int best = -1;
        char name[20];
        snprintf(name, sizeof name, "s%d", i);
        for (int k = 0; k < 3; k++) {
            int text = (int)chance(3), date = (int)chance(3), rank = (text > 0) * 100 + date * 10 + text;
            best = rank > best ? rank : best;
            assert_ok(bz_perfdb_put_system(db, name, DETAILS[text], date, &err));
            const bz_system *s;
            assert_ok(bz_perfdb_system(db, name, &s, &err));
            assert_string_equal(s->details, DETAILS[best % 10]);
            assert_int_equal(s->date, best / 10 % 10);
        }
    }
    bz_perfdb_close(db);
}

static int encoded(uint32_t c, char out[5])
{
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c /= 64)
        out[i] = (char)(0x80 + c % 64);
    out[0] = (char)((n == 1 ? 0 : 0xf00 >> n & 0xff) + c);
    out[n] = 0;
    return n;
}

static void test_plain_text(void **state)
{
    (void)state;
    for (uint32_t c = 1; c < 0x200000; c++) {
        char text[6];
        int n = encoded(c, text);
        bool control = c < 0x20 || (c >= 0x7f && c < 0xa0), character = c < 0xd800 || (c > 0xdfff && c < 0x110000);
        assert_int_equal(bz_text_is_plain(text, 4), character && !control);
        if (n > 1) {
            text[n - 1] = 0; /* cut off */
            assert_false(bz_text_is_plain(text, 4));
        }
        if (c < 0x800 && n == 2) { /* longer than it need be */
            char more[] = {(char)0xe0, (char)(0x80 + c / 64), (char)(0x80 + c % 64), 0};
            assert_false(bz_text_is_plain(more, 4));
        }
    }
    assert_true(bz_text_is_plain("1234", 4));
    assert_false(bz_text_is_plain("12345", 4));
}

/* Each text and number at its border, and one step behind it. */
static void test_borders(void **state)
{
    (void)state;
    static char text[70000];
    bz_record good = sample_record();
    const struct {
        size_t at, longest;
    } TEXTS[] = {
        {offsetof(bz_record, variant.backend), 64}, {offsetof(bz_record, variant.algorithm), 1000},
        {offsetof(bz_record, variant.layout), 64},  {offsetof(bz_record, variant.math), 64},
        {offsetof(bz_record, setting.clock), 200},  {offsetof(bz_record, reason), 4000},
        {offsetof(bz_record, checked), 4000},       {offsetof(bz_record, meta), 65536},
        {offsetof(bz_record, problem), 65536},      {offsetof(bz_record, system), 100},
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        for (size_t more = 0; more < 2; more++) {
            bz_record r = good;
            memset(text, 'x', TEXTS[i].longest + more);
            text[TEXTS[i].longest + more] = 0;
            if (TEXTS[i].at == offsetof(bz_record, meta))
                text[0] = '{';
            *(const char **)(void *)((char *)&r + TEXTS[i].at) = text;
            assert_int_equal(bz_record_check(&r, &err), more ? -1 : 0);
            text[0] = '\t';
            assert_int_equal(bz_record_check(&r, &err), -1);
        }
    const size_t NUMBERS[] = {offsetof(bz_record, median), offsetof(bz_record, q25),    offsetof(bz_record, q75),
                              offsetof(bz_record, min),    offsetof(bz_record, max),    offsetof(bz_record, low),
                              offsetof(bz_record, high),   offsetof(bz_record, launch), offsetof(bz_record, bytes),
                              offsetof(bz_record, flops)};
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        const double VALUES[] = {-1e-300, INFINITY, 0, 1e300, NAN};
        for (int k = 0; k < 5; k++) {
            bz_record r = good;
            *(double *)(void *)((char *)&r + NUMBERS[i]) = VALUES[k];
            bool fine = i ? k > 1 : k == 3; /* a median must be above 0 */
            assert_int_equal(bz_record_check(&r, &err), fine ? 0 : -1);
        }
    }
    const size_t COUNTS[] = {offsetof(bz_record, n), offsetof(bz_record, iterations), offsetof(bz_record, workspace),
                             offsetof(bz_record, variants), offsetof(bz_record, date)};
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
        for (int64_t v = -1; v < 2; v++) {
            bz_record r = good;
            *(int64_t *)(void *)((char *)&r + COUNTS[i]) = v;
            assert_int_equal(bz_record_check(&r, &err), v < 0 ? -1 : 0);
        }
    const struct {
        int threads, variants_over;
        bool good;
    } LIMITS[] = {{0, 0, true}, {-1, 0, false}, {1 << 20, 0, true}, {(1 << 20) + 1, 0, false}, {1, 1, false}};
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        bz_record r = good;
        r.setting.threads = LIMITS[i].threads;
        r.variants = (int64_t)INT32_MAX + LIMITS[i].variants_over;
        assert_int_equal(bz_record_check(&r, &err), LIMITS[i].good ? 0 : -1);
    }
    for (int s = 0; s <= BZ_RECORD_DROPPED; s++)
        for (int i = 0; i < 4; i++) {
            bz_record r = good;
            r.status = (bz_record_status)s;
            r.reason = i & 1 ? "why" : "";
            r.variant.algorithm = i & 2 ? "a" : "";
            assert_int_equal(bz_record_check(&r, &err), (s ? i & 1 : i & 2) ? 0 : -1);
        }
}

/* A name has one half or two, of small letters, digits and four signs; versions are compared as numbers. */
static void test_names_of_systems(void **state)
{
    (void)state;
    for (int i = 0; i < 30000; i++) {
        static const char LETTERS[] = "az09._+-@@AZ/ ";
        char name[8];
        int n = (int)chance(7), ats = 0;
        bool good = n > 0;
        for (int k = 0; k < n; k++)
            name[k] = LETTERS[chance(chance(5) ? 10 : sizeof LETTERS - 1)];
        name[n] = 0;
        for (int k = 0; k < n; k++) {
            bool first = !k || name[k - 1] == '@';
            ats += name[k] == '@';
            good &=
                name[k] == '@' ? !first && k + 1 < n : strchr("az09._+-", name[k]) && !(first && strchr(".-", name[k]));
        }
        assert_int_equal(bz_system_check(name, &err), good && ats < 2 ? 0 : -1);
    }
    for (int i = 0; i < 30000; i++) {
        unsigned a[3], b[3];
        char x[60], y[60];
        int expected = 0;
        for (int k = 0; k < 3; k++) {
            a[k] = chance(chance(2) ? 3 : 200), b[k] = chance(2) ? a[k] : chance(200);
            expected = expected ? expected : (a[k] > b[k]) - (a[k] < b[k]);
        }
        snprintf(x, sizeof x, "s@c%u.%u-%u", a[0], a[1], a[2]);
        snprintf(y, sizeof y, "s@c%u.%u-%u", b[0], b[1], b[2]);
        int order = bz_system_compare(x, y);
        assert_int_equal((order > 0) - (order < 0), expected);
    }
    assert_true(bz_system_compare("a@x9", "ab@x1") < 0 && bz_system_compare("b", "a@x") > 0);
    assert_true(bz_system_compare("a@x", "a@x1") < 0 && bz_system_compare("a", "a@x") < 0);
    assert_true(bz_system_compare("a@x01", "a@x1") != 0 && bz_system_compare("a@x007", "a@x10") < 0);
}

static void test_what_is_measured_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        bz_record r[12], kept[12];
        size_t n = chance(12), expected = 0;
        bz_remeasure again = {.all = !chance(5), .marked = chance(2), .before = chance(2) ? 103 : 0};
        for (size_t k = 0; k < n; k++) {
            r[k] = random_record();
            r[k].noisy = !chance(3), r[k].throttled = !chance(3), r[k].busy = !chance(3);
            bool marked = r[k].busy || (r[k].status != BZ_RECORD_DROPPED && (r[k].noisy || r[k].throttled));
            if (!again.all && !(again.marked && marked) && (!again.before || r[k].date >= 103))
                kept[expected++] = r[k];
        }
        assert_int_equal(bz_records_keep(r, n, &again), expected);
        assert_memory_equal(r, kept, expected * sizeof *r);
        assert_int_equal(bz_records_keep(r, expected, NULL), expected);
    }
    const struct {
        const char *text;
        int64_t ago; /* seconds; -1: refused */
    } TIMES[] = {{"7d", 7 * 86400}, {"12h", 12 * 3600}, {"30min", 1800}, {"2w", 14 * 86400}, {"999999min", 59999940},
                 {"0d", -1},        {"1000000min", -1}, {"7", -1},       {"d", -1},          {"-3d", -1},
                 {"", -1},          {"7days", -1}};
    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
        char text[60];
        bz_remeasure again;
        snprintf(text, sizeof text, "older-than=%s", TIMES[i].text);
        int64_t now = (int64_t)time(NULL);
        assert_int_equal(bz_remeasure_parse(text, &again, &err), TIMES[i].ago < 0 ? -1 : 0);
        if (TIMES[i].ago > 0)
            assert_true(again.before >= now - TIMES[i].ago && again.before <= (int64_t)time(NULL) - TIMES[i].ago);
    }
    bz_remeasure again;
    assert_int_equal(bz_remeasure_parse("older-than=1970-01-03", &again, &err), 0);
    assert_int_equal(again.before, 2 * 86400);
}

/* As many variants of a family as it has; or one record that names none. */
static void test_families(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        bz_record r[6], family = random_record();
        size_t n = chance(7), had = 0;
        bool complete = false;
        for (size_t k = 0; k < n; k++) {
            r[k] = random_record();
            r[k].variants = chance(4);
            if (!chance(6)) {
                r[k].status = BZ_RECORD_UNSUPPORTED;
                r[k].variant.algorithm = "";
            }
            if (strcmp(r[k].variant.backend, family.variant.backend) != 0 ||
                r[k].setting.threads != family.setting.threads)
                continue;
            complete |= !*r[k].variant.algorithm || (int64_t)++had >= r[k].variants;
        }
        assert_int_equal(bz_records_complete(r, n, &family.variant, &family.setting), complete);
    }
}

/* Two positive numbers in the order of the run, or none. */
static void test_yardsticks(void **state)
{
    (void)state;
    static const char *const NUMBERS[] = {"0", "1e-3", "-1", "inf", "nan", "2", "", "x"};
    static const double VALUES[] = {0, 1e-3, -1, 0, 0, 2, 0, 0};
    enum { N = sizeof VALUES / sizeof *VALUES };
    for (int i = 0; i < N * N * 2; i++) {
        int a = i % N, b = i / N % N;
        char meta[100];
        double seconds[2];
        snprintf(meta, sizeof meta, "{\"yardstick\":[%s%s%s]}", NUMBERS[a], i < N * N ? "," : "", NUMBERS[b]);
        bz_record r = {.meta = meta};
        bool two = i < N * N && VALUES[a] > 0 && VALUES[b] > 0;
        assert_int_equal(bz_record_yardsticks(&r, seconds), two);
        assert_true(!two || (seconds[0] == VALUES[a] && seconds[1] == VALUES[b]));
    }
    assert_false(bz_record_yardsticks(&(bz_record){.meta = "{}"}, (double[2]){0}));
    assert_false(bz_record_yardsticks(&(bz_record){0}, (double[2]){0}));
}

/* One measurement as JSON, with a peak that tells which it is. */
static const char *measured(int threads, double peak, bz_arena *arena)
{
    return bz_arena_printf(
        arena,
        "{\"threads\":%d,\"busy\":%s,\"flops\":{\"f32\":%.17g,\"bf16\":-1,\"f16\":\"x\"},\"launch\":{\"onednn\":%.17g},"
        "\"yardstick\":%.17g,\"bandwidth\":[{\"bytes\":1024,\"read\":%.17g,\"copy\":2},{\"bytes\":0}]}",
        threads, threads % 2 ? "true" : "false", peak, 1 / peak, peak / 7, peak + 1);
}

static void check_measured(const bz_measured *m, int threads, double peak)
{
    assert_int_equal(m->threads, threads);
    assert_int_equal(m->busy, threads % 2);
    assert_true(m->flops.n == 1 && m->flops.at[0].rate == peak && !strcmp(m->flops.at[0].name, "f32"));
    assert_true(m->launch.n == 1 && fabs(m->launch.at[0].rate * peak - 1) < 1e-14 &&
                !strcmp(m->launch.at[0].name, "onednn"));
    assert_true(m->reorder.n == 0 && m->convert.n == 0);
    assert_true(m->n_buffers == 2 && m->buffer[0].bytes == 1024 && fabs(m->buffer[0].read - peak - 1) < 1e-9);
    assert_true(m->buffer[0].copy == 2 && isnan(m->buffer[0].copy_cold) && isnan(m->buffer[1].bytes));
}

static void test_facts(void **state)
{
    (void)state;
    for (int i = 0; i < 400; i++) {
        bz_arena arena = {0};
        bz_buf text = {0};
        double peak[6] = {0}; /* by threads: what counts, the first of each */
        int n = (int)chance(7), threads[6];
        bool list = n != 1 || chance(2);
        bz_buf_puts(
            &text,
            "{\"device\":\"cpu\",\"name\":\"N\",\"isa\":\"AVX2\",\"clock\":3e9,\"l2\":-5,\"capability\":\"9.0\","
            "\"caches\":["
            "{\"level\":1,\"count\":2,\"bytes\":100},{\"level\":2,\"count\":0,\"bytes\":100},{\"level\":2,\"count\":1,"
            "\"bytes\":101},"
            "{\"level\":3,\"count\":5000,\"bytes\":1e12},{\"level\":3,\"count\":1,\"bytes\":2e12}],\"measured\":");
        bz_buf_puts(&text, list ? "[" : "");
        double least = INFINITY;
        int different = 0;
        for (int k = 0; k < n; k++) {
            threads[k] = (int)chance(6);
            double p = 100 + chance(1000);
            bz_buf_printf(&text, "%s%s", k ? "," : "", measured(threads[k], p, &arena));
            if (threads[k] && peak[threads[k]] == 0) { /* no thread is no measurement */
                peak[threads[k]] = p;
                least = fmin(least, p / 7);
                different++;
            }
        }
        bz_buf_puts(&text, list ? "]}" : "}");
        const bz_system_facts *f = bz_system_facts_read(bz_buf_text(&text), &arena);
        assert_int_equal(f->n_measured, different);
        assert_true(different ? f->yardstick == least : isnan(f->yardstick));
        for (int t = 0; t < 6; t++) {
            const bz_measured *m = bz_system_measured(f, t);
            assert_int_equal(m != NULL, peak[t] > 0);
            if (m)
                check_measured(m, t, peak[t]);
        }
        assert_true(!f->gpu && f->clock == 3e9 && f->l2 == 0 && f->capability == 9 && f->bandwidth == 0);
        assert_string_equal(f->name, "N");
        assert_true(f->n_caches == 3 && f->cache[0].count == 2 && f->cache[1].level == 2 && f->cache[1].bytes == 101);
        assert_true(f->cache[2].bytes == 1e12 && f->cache[2].count == 1);

        int now = 1 + (int)chance(6); /* joined by one more measurement */
        const char *new = bz_arena_printf(&arena, "{\"name\":\"M\",\"measured\":%s}", measured(now, 5000, &arena));
        const char *joined = bz_system_join(bz_buf_text(&text), new, &arena);
        bool others = different > (now < 6 && peak[now] > 0);
        assert_int_equal(joined != NULL, others);
        if (joined) {
            const bz_system_facts *both = bz_system_facts_read(joined, &arena);
            assert_string_equal(both->name, "M");
            int at = 0;
            for (int t = 1; t < 7; t++)
                if (t == now || (t < 6 && peak[t] > 0))
                    check_measured(&both->measured[at++], t, t == now ? 5000 : peak[t]);
            assert_int_equal(at, both->n_measured);
        }
        bz_buf_free(&text);
        bz_arena_free(&arena);
    }
    const struct {
        const char *text;
        bool gpu;
    } DEVICES[] = {{"{\"gpu\":\"Tesla V100\"}", true},
                   {"{\"device\":\"gpu\"}", true},
                   {"{\"device\":\"cpu\"}", false},
                   {"{}", false},
                   {"", false}};
    bz_arena arena = {0};
    for (size_t i = 0; i < sizeof DEVICES / sizeof *DEVICES; i++)
        assert_int_equal(bz_system_facts_read(DEVICES[i].text, &arena)->gpu, DEVICES[i].gpu);
    bz_arena_free(&arena);
}

/* The places where a window of `size`, `dilation` apart, lies within the padded input: counted. */
static int windows(int input, int pad, int size, int dilation, int stride)
{
    int n = 0;
    for (int at = -pad; at + dilation * (size - 1) < input + pad; at += stride)
        n++;
    return n;
}

static void test_convolutions_by_name(void **state)
{
    (void)state;
    static const char *const KINDS_OF[] = {
        "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
        "WINOGRAD",      "WINOGRAD_NONFUSED"};
    for (int i = 0; i < 6000; i++) {
        bz_arena arena = {0};
        int v[15], zero = chance(4) ? -1 : (int)chance(15);
        bool good = true;
        for (int k = 0; k < 15; k++)
            v[k] = 1 + (int)chance(6);
        int *x = v, *w = v + 4, *stride = v + 7, *pad = v + 9, *dilation = v + 11, *group = v + 13,
            algorithm = (int)chance(8);
        if (chance(2))
            x[1] *= *group;
        if (zero >= 0 && zero < 14)
            v[zero] = 0;
        for (int k = 0; k < 14; k++)
            good &= v[k] > 0 || k == 9 || k == 10; /* only padding may be none */
        const char *name = bz_arena_printf(&arena,
                                           "LAYER_CUDNN_CONV_FWD_0_FLOAT32__BatchSize_1__1<CUDNN_CONVOLUTION_FWD_ALGO_%"
                                           "s>/input[0]:%d/input[1]:%d/input[2]:%d/"
                                           "input[3]:%d/filter_count:%d/filter_height:%d/filter_width:%d/"
                                           "stride_height:%d/stride_width:%d/pad_height:%d/pad_width:%d/"
                                           "dilation_height:%d/dilation_width:%d/group:%d/manual_time",
                                           KINDS_OF[algorithm], v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8],
                                           v[9], v[10], v[11], v[12], v[13]);
        int out[2] = {0, 0};
        for (int k = 0; k < 2 && good; k++)
            out[k] = windows(x[2 + k], pad[k], w[1 + k], dilation[k], stride[k]);
        good = good && out[0] && out[1] && x[1] % *group == 0;
        bz_record r = bz_record_blank();
        assert_int_equal(bz_gbench_name(name, &arena, &r, &err), good ? 0 : -1);
        if (good) {
            assert_string_equal(
                r.problem,
                bz_arena_printf(
                    &arena,
                    "conv x=%dx%dx%dx%d w=%dx%dx%dx%d stride=%dx%d pad=%dx%dx%dx%d dilation=%dx%d group=%d dtype=f32",
                    x[0], x[1], x[2], x[3], w[0], x[1] / *group, w[1], w[2], stride[0], stride[1], pad[0], pad[1],
                    pad[0], pad[1], dilation[0], dilation[1], *group));
            assert_string_equal(r.variant.algorithm,
                                bz_arena_printf(&arena, "cudnn algo %d %s", algorithm, KINDS_OF[algorithm]));
            double each_output = 2.0 * (x[1] / *group) * w[1] * w[2];
            assert_true(r.flops == each_output * x[0] * w[0] * out[0] * out[1]);
        }
        bool fits = windows(x[2], pad[0], w[1], 1, 1) > 0 && windows(x[3], pad[1], w[2], 1, 1) > 0;
        for (int k = 0; k < 11; k++)
            fits &= v[k] > 0 || k == 4 || k == 9 || k == 10;
        name = bz_arena_printf(
            &arena,
            "LAYER_CUDNN_POOLING_FWD_FLOAT64__BatchSize_1__1<CUDNN_POOLING_MAX>/input[0]:%d/input[1]:%d/input[2]:%d/"
            "input[3]:%d/filter_height:%d/filter_width:%d/stride_height:%d/stride_width:%d/pad_height:%d/pad_width:%d",
            v[0], v[1], v[2], v[3], v[5], v[6], v[7], v[8], v[9], v[10]);
        r = bz_record_blank();
        assert_int_equal(bz_gbench_name(name, &arena, &r, &err), fits ? 0 : -1);
        if (fits)
            assert_string_equal(
                r.problem,
                bz_arena_printf(
                    &arena,
                    "pool mode=max x=%dx%dx%dx%d kernel=%dx%d stride=%dx%d pad=%dx%dx%dx%d dilation=1x1 dtype=f64",
                    x[0], x[1], x[2], x[3], w[1], w[2], stride[0], stride[1], pad[0], pad[1], pad[0], pad[1]));
        bz_arena_free(&arena);
    }
    bz_arena arena = {0};
    for (long n = 1L << 30, more = 0; more < 2; more++) {
        bz_record r = bz_record_blank();
        const char *name =
            bz_arena_printf(&arena, "LAYER_CUBLAS_GEMV_FWD_FLOAT32__BatchSize_1__1/input[0]:%ld/input[1]:3", n + more);
        assert_int_equal(bz_gbench_name(name, &arena, &r, &err), more ? -1 : 0);
        assert_true(more || r.flops == 6.0 * (double)n);
    }
    bz_arena_free(&arena);
}

/* Numbers of a system at their limits, and one behind: what lies behind is none. Of caches those that grow, at most four. */
static void test_limits_of_facts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int threads, n_caches, level, count;
        double bytes; /* of the last one */
    } CASES[] = {
#define CACHE(level, count, bytes) "{\"level\":" #level ",\"count\":" #count ",\"bytes\":" #bytes "}"
        {"{\"measured\":{\"threads\":1}}", 1, 0, 0, 0, 0},
        {"{\"measured\":{\"threads\":4096}}", 4096, 0, 0, 0, 0},
        {"{\"measured\":{\"threads\":4097}}", 0, 0, 0, 0, 0},
        {"{\"measured\":{\"threads\":0.5}}", 0, 0, 0, 0, 0},
        {"{\"measured\":{\"threads\":1.5}}", 0, 0, 0, 0, 0},
        {"{\"measured\":{\"threads\":\"1\"}}", 0, 0, 0, 0, 0},
        {"{\"caches\":[" CACHE(9, 4096, 1e12) "]}", 0, 1, 9, 4096, 1e12},
        {"{\"caches\":[" CACHE(9.5, 1, 8) "]}", 0, 0, 0, 0, 0},
        {"{\"caches\":[" CACHE(1, 4097, 8) "]}", 0, 1, 1, 1, 8},
        {"{\"caches\":[" CACHE(1, 0, 8) "]}", 0, 1, 1, 1, 8},
        {"{\"caches\":[" CACHE(1, 2, 1.1e12) "]}", 0, 0, 0, 0, 0},
        {"{\"caches\":[" CACHE(1, 2, 8) "," CACHE(2, 3, 8) "]}", 0, 1, 1, 2, 8},
        {"{\"caches\":[" CACHE(1, 2, 8) "," CACHE(2, 3, 9) "]}", 0, 2, 2, 3, 9},
        {"{\"caches\":[" CACHE(1, 2, 8) "," CACHE(2, 3, 9) "," CACHE(3, 4, 10) "," CACHE(4, 5, 11) "," CACHE(5, 6,
                                                                                                             12) "]}",
         0, 4, 4, 5, 11},
    };
    bz_arena arena = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const bz_system_facts *f = bz_system_facts_read(CASES[i].text, &arena);
        const int last = f->n_caches - 1, n = CASES[i].n_caches;
        if (f->n_measured != (CASES[i].threads > 0) || (f->n_measured && f->measured[0].threads != CASES[i].threads) ||
            last + 1 != n ||
            (n && (f->cache[last].level != CASES[i].level || f->cache[last].count != CASES[i].count ||
                   f->cache[last].bytes != CASES[i].bytes)))
            fail_msg("case %zu: %s", i, CASES[i].text);
    }
    static const struct {
        const char *number;
        double rate;
    } RATES[] = {{"1e-300", 1e-300}, {"9e29", 9e29}, {"1e30", NAN}, {"0", NAN},
                 {"-1", NAN},        {"\"1\"", NAN}, {"true", NAN}};
    for (size_t i = 0; i < sizeof RATES / sizeof *RATES; i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"measured\":{\"threads\":1,\"flops\":{\"f32\":%s}}}", RATES[i].number);
        const bz_measured *m = bz_system_measured(bz_system_facts_read(text, &arena), 1);
        assert_int_equal(m->flops.n, !isnan(RATES[i].rate));
        assert_true(!m->flops.n || m->flops.at[0].rate == RATES[i].rate);
        assert_null(bz_system_measured(bz_system_facts_read(text, &arena), 2));
    }
    bz_arena_free(&arena);
}

/* A key tells its system's number again, whichever byte of it is not zero. */
static void test_systems_of_keys(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        bz_record_key key = {{0}};
        uint32_t system = (uint32_t)chance(1u << 31) >> chance(31);
        bz_key_problem(&key, system, "relu x=1x8 dtype=f32");
        assert_int_equal(bz_key_system_of(&key), system);
        bz_key_type(&key, system, "f32");
        assert_int_equal(bz_key_system_of(&key), system);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_against_a_list, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_details_in_any_order, make_folder, remove_folder),
        cmocka_unit_test(test_limits_of_facts),
        cmocka_unit_test(test_systems_of_keys),
        cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_names_of_systems),
        cmocka_unit_test(test_what_is_measured_again),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_yardsticks),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_convolutions_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
