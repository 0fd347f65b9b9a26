/* What the room does with programs, which are shell scripts here: random stocks, lists and outputs against definitions that are written
 * here once more. */
#include "tests/unit/programs.h"

#include "bench/bench.h"

#include <signal.h>

#define SYSTEM "a@onednn2.9"
#define DETAILS                                                                                                        \
    "{\"caches\":[{\"level\":1,\"count\":1,\"bytes\":32768},{\"level\":3,\"count\":1,\"bytes\":1000000}],"             \
    "\"measured\":{\"threads\":1,\"yardstick\":0.0625}}"

static const char *const PROBLEMS[] = {"relu x=1x8 dtype=f32", "relu x=1x9 dtype=f32", "sqrt x=1x8 dtype=f32"};
static const char *const FAMILIES[] = {"onednn plain default", "onednn any default", "cblas plain tf32"};
static const char *const NAMES[] = {"", "first", "second", "third"};
enum { N_PROBLEMS = 3, N_FAMILIES = 3, N_NAMES = 4, ALL = 3 /* variants of a family */ };

static bz_record record_of(int problem, int family, int name)
{
    static char words[N_FAMILIES][3][16];
    bz_record r = sample_record();
    sscanf(FAMILIES[family], "%15s %15s %15s", words[family][0], words[family][1], words[family][2]);
    r.system = SYSTEM;
    r.problem = PROBLEMS[problem];
    r.variant = (bz_variant){words[family][0], NAMES[name], words[family][1], words[family][2]};
    r.variants = ALL;
    if (!name || !chance(3)) {
        r.status = name ? (bz_record_status)(1 + chance(5)) : BZ_RECORD_UNSUPPORTED;
        r.reason = "why";
    }
    r.noisy = !chance(3), r.busy = !chance(4);
    return r;
}

/* One folder, database and list; `stock[p][f]` has a bit for each name that the database has and that counts. */
typedef struct {
    bz_perfdb *db;
    bz_bench run;
    unsigned stock[N_PROBLEMS][N_FAMILIES];
} one;

static void fill(void **state, one *o)
{
    static int n;
    bz_remeasure *again = (bz_remeasure *)o->run.again;
    o->db = open_new(state, bz_arena_printf(&texts, "db%d", n++));
    assert_ok(bz_perfdb_put_system(o->db, SYSTEM, DETAILS, 5, &err));
    assert_ok(bz_perfdb_system(o->db, SYSTEM, &o->run.system, &err));
    for (int p = 0; p < N_PROBLEMS; p++)
        for (int f = 0; f < N_FAMILIES; f++)
            for (int k = 0; k < N_NAMES; k++) {
                bz_record r = record_of(p, f, k);
                if (chance(k ? 2 : 8))
                    continue;
                bool other = !chance(5), marked = r.busy || (r.status != BZ_RECORD_DROPPED && r.noisy);
                r.setting.threads = other ? 2 : 1;
                put(o->db, r);
                if (!other && !o->run.all && !(again && (again->all || (again->marked && marked))))
                    o->stock[p][f] |= 1U << k;
            }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lines behind each other, those of one problem in any order. */
static void sort_lines(char *text, bz_buf *out)
{
    char *line[64] = {0}, *rest = NULL;
    int n = 0, first = 0;
    for (char *l = strtok_r(text, "\n", &rest); l; l = strtok_r(NULL, "\n", &rest))
        line[n++] = l;
    for (int i = 1; i <= n; i++)
        if (i == n || *line[i] != ' ') {
            qsort(line + first + 1, (size_t)(i - first - 1), sizeof *line, by_text);
            first = i;
        }
    for (int i = 0; i < n; i++)
        bz_buf_printf(out, "%s\n", line[i]);
}

/* A problem is run that has a family of which not all is known; what is known of it is said. */
static void expect_only(const one *o, bz_buf *only, int *wanted)
{
    bz_buf text = {0};
    for (int p = 0; p < N_PROBLEMS; p++) {
        bz_buf lines = {0};
        bool missing = false;
        if (o->run.filter && !strstr(PROBLEMS[p], o->run.filter))
            continue;
        for (int f = 0; f < N_FAMILIES; f++) {
            bool complete = o->stock[p][f] & 1 || __builtin_popcount(o->stock[p][f]) >= ALL;
            missing |= !complete;
            for (int k = 1; k < N_NAMES && !complete; k++)
                if (o->stock[p][f] & 1U << k)
                    bz_buf_printf(&lines, "    %s %s\n", FAMILIES[f], NAMES[k]);
            if (complete)
                bz_buf_printf(&lines, "    %s\n", FAMILIES[f]);
        }
        if (missing)
            bz_buf_printf(&text, "%s\n%s", PROBLEMS[p], bz_buf_text(&lines));
        *wanted += missing;
        bz_buf_free(&lines);
    }
    sort_lines((char *)bz_buf_text(&text), only);
    bz_buf_free(&text);
}

/* Leaves out what the third name has, and fails at a layout that no list has. */
static int each(void *user, bz_record *r, bz_error *e)
{
    ++*(int *)user;
    r->date += 7;
    return !strcmp(r->variant.layout, "stop") ? bz_fail(e, BZ_FAILED, "enough")
                                              : !strcmp(r->variant.algorithm, "third");
}

static void put_line(bz_buf *out, const bz_record *r)
{
    bz_json j = bz_json_to(out, false);
    bz_record_json(&j, r);
    bz_buf_puts(out, out->data[out->len - 1] == '\n' ? "" : "\n");
}

/* What the program prints, and what is to become of it. Returns how many records `each` sees. */
static int speak(one *o, bz_buf *out, bz_bench *expected, bool stops, bz_record *last)
{
    int seen = 0;
    for (int n = (int)chance(12); n > 0; n--) {
        bz_record r = record_of((int)chance(N_PROBLEMS), (int)chance(N_FAMILIES), 1 + (int)chance(N_NAMES - 1));
        if (!chance(6)) {
            bz_buf_puts(out, chance(2) ? "no record\n" : "\n");
            expected->bad++;
            continue;
        }
        r.date = 1800000000 - 100 * n;
        put_line(out, &r);
        seen++;
        if (o->run.each && !strcmp(r.variant.algorithm, "third"))
            continue;
        *last = r;
        expected->records++;
        expected->busy += r.busy;
        expected->failed += bz_record_failed(&r);
    }
    if (stops) {
        bz_record r = record_of(0, 0, 1);
        r.variant.layout = "stop";
        put_line(out, &r);
        seen++;
    }
    return seen;
}

static void list_problems(bz_buf *out)
{
    for (int p = 0; p < N_PROBLEMS; p++) {
        bz_buf_printf(out, "%s\n", PROBLEMS[p]);
        for (int f = 0; f < N_FAMILIES; f++)
            bz_buf_printf(out, "    %s\n", FAMILIES[f]);
    }
}

static void expect_arguments(void **state, const one *o, bz_buf *out)
{
    const bz_bench *r = &o->run;
    bz_buf_printf(out, "--progress\n9\n--only\n%s\n--threads\n1\n--cache\n%s\n", below(state, "build/only"),
                  r->setting.cache == BZ_CACHE_HOT ? "hot" : "cold");
    bz_buf_printf(out, "%s%s%s", r->time_limit ? "--time-limit\n" : "", r->time_limit ? r->time_limit : "",
                  r->time_limit ? "\n" : "");
    bz_buf_printf(out, "%s--yardstick\n0.0625\n--plans\n%s/plans\n%s", r->wait ? "--wait\n3\n" : "",
                  bz_perfdb_dir(o->db), r->metrics ? "--metrics\nflops\n" : "");
}

/* Lines come in pieces; the other descriptor counts. It may end badly, or be ended at a record that nobody wants to store. */
static void test_runs(void **state)
{
    bz_buf text = {0};
    assert_ok(mkdir(below(state, "build"), 0777));
    list_problems(&text);
    write_file(state, "build/list", bz_buf_text(&text), false);
    write_file(
        state, "build/benchmarks",
        "#!/bin/sh\nhere=${0%/*}\n[ \"$1\" = --list ] && exec cat $here/list\nprintf '%s\\n' \"$@\" >$here/arguments\n"
        "cat $here/progress >&9\ndd if=$here/out ibs=37 obs=37 2>/dev/null\nexit $(cat $here/status)\n",
        true);
    for (int i = 0; i < 25; i++) {
        bz_arena arena = {0};
        bz_remeasure again = {.all = !chance(6), .marked = chance(2)};
        int seen = 0, wanted = 0, status = chance(4) ? 0 : 3;
        bool stops = !chance(5);
        one o = {.run = {.setting = {1, chance(3) ? BZ_CACHE_HOT : BZ_CACHE_COLD, ""},
                         .filter = chance(2)   ? NULL
                                   : chance(2) ? "relu"
                                               : "1x8",
                         .time_limit = chance(2) ? "0.5" : NULL,
                         .wait = chance(2) ? "3" : NULL,
                         .metrics = chance(2) ? "flops" : NULL,
                         .again = chance(2) ? &again : NULL,
                         .all = !chance(5),
                         .each = stops || chance(2) ? each : NULL,
                         .user = &seen}};
        bz_bench expected = {0};
        bz_buf only = {0}, got = {0}, out = {0}, arguments = {0};
        bz_record last = {0};
        fill(state, &o);
        for (int p = 0; p < N_PROBLEMS; p++) /* what is stored is so for the setting at hand alone */
            for (int f = 0; f < N_FAMILIES; f++)
                o.stock[p][f] = o.run.setting.cache == BZ_CACHE_HOT ? o.stock[p][f] : 0;
        expect_only(&o, &only, &wanted);
        int n = speak(&o, &out, &expected, stops, &last);
        write_file(state, "build/out", bz_buf_text(&out), false);
        write_file(state, "build/progress", "1 9 first\n2 9 second\n5 9 last\n", false);
        write_file(state, "build/status", status ? "3" : "0", false);
        unlink(below(state, "build/arguments"));
        o.run.db = o.db;
        int rc = bz_bench_run(*state, &o.run, &err);
        assert_int_equal(rc, wanted && (status || stops) ? -1 : 0);
        assert_int_equal(o.run.wanted, wanted);
        int listed = 0;
        for (int p = 0; p < N_PROBLEMS; p++)
            listed += !o.run.filter || strstr(PROBLEMS[p], o.run.filter);
        assert_int_equal(o.run.listed, listed);
        if (!wanted) {
            assert_null(read_file(state, "build/arguments"));
        } else {
            expect_arguments(state, &o, &arguments);
            is_file(state, "build/arguments", bz_buf_text(&arguments));
            sort_lines(read_file(state, "build/only"), &got);
            assert_string_equal(bz_buf_text(&got), bz_buf_text(&only));
            assert_int_equal(o.run.records, expected.records);
            assert_int_equal(o.run.failed, expected.failed);
            assert_int_equal(o.run.busy, expected.busy);
            assert_int_equal(o.run.bad, expected.bad);
            assert_int_equal(seen, o.run.each ? n : 0);
            assert_true(o.run.problems == 5 || stops);
            if (rc && (stops ? expected.records > 0 : true))
                assert_non_null(
                    strstr(err.text, bz_arena_printf(&arena, stops ? "%d record%s stored" : "; %d records are stored",
                                                     expected.records, expected.records == 1 ? " is" : "s are")));
            last.system = SYSTEM;
            if (expected.records)
                assert_int_equal(find(o.db, last, &arena)->date, last.date + (o.run.each ? 7 : 0));
        }
        bz_perfdb_close(o.db);
        bz_arena_free(&arena);
        bz_buf_free(&only);
        bz_buf_free(&got);
        bz_buf_free(&out);
        bz_buf_free(&arguments);
    }
    bz_buf_free(&text);
}

/* Who asks us to end ends the program; what it had told is kept, and counted. */
static void test_stopped(void **state)
{
    bz_buf out = {0};
    one o = {.run = {.setting = {1, BZ_CACHE_HOT, ""}, .all = true}};
    fill(state, &o);
    o.run.db = o.db;
    bz_record r = record_of(0, 0, 1);
    assert_ok(mkdir(below(state, "build"), 0777));
    put_line(&out, &r);
    write_file(state, "build/out", bz_buf_text(&out), false);
    write_file(state, "build/benchmarks",
               "#!/bin/sh\n[ \"$1\" = --list ] && exec printf 'relu x=1x8 dtype=f32\\n    onednn plain default\\n'\n"
               "cat ${0%/*}/out\nkill -TERM $PPID\nexec sleep 60\n",
               true);
    assert_fails(bz_bench_run(*state, &o.run, &err), BZ_FAILED, "stopped; 1 record is stored");
    assert_int_equal(o.run.stopped_by, SIGTERM);
    assert_false(bz_bench_stopped());
    bz_perfdb_close(o.db);
    bz_buf_free(&out);
}

/* Where the first record is not stored, nothing is told of others. */
static void test_first_refused(void **state)
{
    bz_buf out = {0};
    int seen = 0;
    one o = {.run = {.setting = {1, BZ_CACHE_HOT, ""}, .all = true, .each = each, .user = &seen}};
    fill(state, &o);
    o.run.db = o.db;
    bz_record r = record_of(0, 0, 1);
    r.variant.layout = "stop";
    assert_ok(mkdir(below(state, "build"), 0777));
    put_line(&out, &r);
    write_file(state, "build/out", bz_buf_text(&out), false);
    write_file(state, "build/benchmarks",
               "#!/bin/sh\n[ \"$1\" = --list ] && exec printf 'relu x=1x8 dtype=f32\\n    onednn plain default\\n'\n"
               "exec cat ${0%/*}/out\n",
               true);
    assert_fails(bz_bench_run(*state, &o.run, &err), BZ_FAILED, "enough");
    assert_null(strstr(err.text, "stored"));
    assert_int_equal(seen, 1);
    bz_perfdb_close(o.db);
    bz_buf_free(&out);
}

static void test_programs(void **state)
{
    bz_buf out = {0};
    (void)state;
    for (int i = 0; i < 8; i++) { /* 4: with its complaints, which are "why" */
        char *argv[] = {"sh", "-c", "head -c 10000 /dev/zero | tr '\\0' x; echo why >&2; exit $0", i & 1 ? "3" : "0",
                        NULL};
        bz_buf_clear(&out);
        assert_int_equal(i & 2 ? bz_bench_output(argv, &out, &err) : bz_bench_program(argv, i & 4, &out, &err),
                         i & 1 ? i & 2 ? -1 : 1 : 0);
        assert_int_equal(out.len, 10000 + ((i & 6) == 4 ? 4 : 0));
    }
    assert_fails(bz_bench_program((char *[]){"/nowhere/at-all", NULL}, false, &out, &err), BZ_FAILED, "No such file");
    bz_buf_free(&out);
}

/* CMake and ninja, or what stands in for them. */
static void test_builds(void **state)
{
    char here[4096];
    assert_non_null(realpath(*state, here));
    look_here_first(state, "bin");
    assert_ok(mkdir(below(state, "build"), 0777));
    assert_fails(bz_bench_build(*state, &err), BZ_BAD_INPUT, "is no folder of benchmarks");
    write_file(state, "manifest.json", "{}", false);
    for (int i = 0; i < 16; i++) {
        bool ninja = i & 1, same = i & 2;
        int failing = i / 4; /* 0: none; the first, the second, both */
        bz_buf b = {0};
        bz_buf_printf(&b, "#!/bin/sh\nexit %d\n", !ninja);
        write_file(state, "bin/ninja", bz_buf_text(&b), true);
        bz_buf_clear(&b);
        bz_buf_printf(&b,
                      "#!/bin/sh\necho \"$*\"\necho \"in $TMPDIR\" >&2\necho 'x.c:3: error: no y'\n[ \"$1\" = --build "
                      "] && exit %d\nexit %d\n",
                      failing >> 1, failing & 1);
        write_file(state, "bin/cmake", bz_buf_text(&b), true);
        bz_buf_clear(&b);
        bz_buf_printf(&b, "//\nCMAKE_HOME_DIRECTORY:INTERNAL=%s\nX:STRING=/\n", same ? here : "/elsewhere");
        write_file(state, "build/CMakeCache.txt", bz_buf_text(&b), false);
        assert_int_equal(bz_bench_build(*state, &err), failing ? -1 : 0);
        assert_true(!failing || strstr(err.text, "cannot be built: x.c:3: error: no y; "));
        assert_int_equal(!access(below(state, "build/CMakeCache.txt"), F_OK), same);
        char *log = read_file(state, "build.log"), *to = strstr(log, "-Dbenanza-runtime_DIR=");
        bz_buf_clear(&b);
        bz_buf_printf(&b, "-S %s -B %s ", (char *)*state, below(state, "build"));
        assert_true(to && !strncmp(log, bz_buf_text(&b), b.len) && to == log + b.len);
        bz_buf_clear(&b);
        bz_buf_printf(&b, " -Wno-dev%s\nin %s/build\nx.c:3: error: no y\n", ninja ? " -GNinja" : "", here);
        if (!(failing & 1))
            bz_buf_printf(&b, "--build %s --parallel\nin %s/build\nx.c:3: error: no y\n", below(state, "build"), here);
        assert_string_equal(strstr(to, " -Wno-dev"), bz_buf_text(&b));
        bz_buf_free(&b);
    }
    write_file(state, "bin/cmake",
               "#!/bin/sh\necho 'CMake Error at a.cmake:70 (message):\n  The C compiler\n\n    \"cc\"\n\n  is not "
               "able to compile.\n\n  It fails with:\nCall Stack:\n  more'\nexit 1\n",
               true);
    assert_fails(bz_bench_build(*state, &err), BZ_FAILED,
                 "cannot be built: CMake says: The C compiler \"cc\" is not able to compile.; ");
    write_file(state, "bin/cmake", "#!/bin/sh\nexit 127\n", true); /* as env where there is none */
    assert_fails(bz_bench_build(*state, &err), BZ_FAILED, "there is no cmake in $PATH");
}

/* The machine is asked; what it says is stored once, or where it was measured anew, beside what was measured with other threads. */
static void test_system(void **state)
{
    const bz_system *system;
    bz_buf text = {0};
    bz_arena arena = {0};
    bz_perfdb *db = open_new(state, "db");
    setenv("BENANZA_BENCH", below(state, "bench"), 1);
    assert_fails(bz_bench_system(db, NULL, NULL, &system, &err), BZ_FAILED, "No such file");
    for (int i = 0; i < 4; i++) {
        bz_record r = record_of(0, 0, 1);
        r.date = 1800000000 + i;
        bz_buf_clear(&text);
        put_line(&text, &r);
        write_file(state, "records", bz_buf_text(&text), false);
        bz_buf_clear(&text);
        bz_buf_printf(
            &text,
            "#!/bin/sh\necho \"$*\" >${0%%/*}/arguments\n[ \"$3\" = none ] && echo benanza: no device here && exit 1\n"
            "echo "
            "'{\"v\":1,\"record\":\"system\",\"slug\":\"a\",\"stack\":\"onednn2.9\",\"date\":9,\"name\":\"N%d\","
            "\"measured\":{\"threads\":%d,\"yardstick\":%d}}'\n"
            "cat ${0%%/*}/records\n",
            i, i < 2 ? 1 : i, i + 1);
        write_file(state, "bench", bz_buf_text(&text), true);
        assert_fails(bz_bench_system(db, NULL, "none", &system, &err), BZ_FAILED,
                     "no device here; --system NAME looks up");
        assert_fails(bz_bench_device("none", &err), BZ_FAILED, "no device here; --no-run");
        is_file(state, "arguments", "--system --backend none\n");
        assert_ok(bz_bench_system(db, NULL, NULL, &system, &err));
        is_file(state, "arguments", "--system\n");
        const bz_system_facts *f = bz_system_facts_read(system->details, &arena);
        assert_true(f->n_measured == (i < 2 ? 1 : i - 1)); /* as stored before, but for the first time */
        assert_string_equal(f->name, i ? bz_arena_printf(&arena, "N%d", i - 1) : "N0");
        if (i) { /* measured anew: beside the others, and newer than they */
            int64_t before = system->date;
            bz_remeasure again = {.marked = true, .all = i == 1};
            assert_ok(bz_bench_peaks(db, i < 2 ? 0 : i, i == 3 ? "4" : NULL, &again, &system, &err));
            is_file(state, "arguments",
                    bz_arena_printf(&arena, "--system --measure --threads %d%s\n", i < 2 ? 1 : i,
                                    i == 3 ? " --wait 4" : ""));
            f = bz_system_facts_read(system->details, &arena);
            assert_int_equal(f->n_measured, i);
            assert_true(bz_system_measured(f, i < 2 ? 1 : i) && f->yardstick == 2 && system->date > before);
            assert_string_equal(f->name, bz_arena_printf(&arena, "N%d", i));
            assert_ok(unlink(below(state, "arguments")));
            assert_ok(bz_bench_peaks(db, i < 2 ? 0 : i, NULL, &(bz_remeasure){.marked = true}, &system, &err));
            assert_null(read_file(state, "arguments")); /* known: nobody is asked */
        }
        assert_int_equal(count_records(db), i + 1);
    }
    bz_perfdb_close(db);
    bz_buf_free(&text);
    bz_arena_free(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_runs),     TEST(test_stopped), TEST(test_first_refused),
                                       TEST(test_programs), TEST(test_builds),  TEST(test_system)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    return failed;
}
