/* The ways to a measurement: problems by their texts, a plan, a folder that was written before. The compiler and what measures are scripts.
 * However it ends, what was told is stored, and nothing is left in the folder for temporary files but a log that tells of an error. */
#include "tests/unit/programs.h"

#include "bench/bench.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#define PROBLEM_TEXT "activation fn=relu x=1x8 dtype=f32"
#define SYSTEM_LINE  "{\"v\":1,\"record\":\"system\",\"slug\":\"a\",\"stack\":\"onednn2.9\",\"date\":9,\"name\":\"N\"}\n"
#define MEASURED                                                                                                       \
    "{\"v\":1,\"record\":\"system\",\"slug\":\"a\",\"stack\":\"onednn2.9\",\"date\":9,\"measured\":{\"threads\":1,"    \
    "\"yardstick\":2}}\n"

/* A program that lists one problem, and tells of one record when it runs. "stop": its parent is told to end. */
static void write_program(void **state, const char *name)
{
    write_file(
        state, name,
        bz_arena_printf(&texts,
                        "#!/bin/sh\nhere=%s\ncase \"$*\" in\n*--list*) printf '" PROBLEM_TEXT
                        "\\n    onednn plain default\\n' ;;\n"
                        "*--system*) echo \"$*\" >>$here/asked; case \"$*\" in *--measure*) cat $here/measured ;; *) "
                        "cat $here/system ;; esac ;;\n"
                        "*) printf '%%s\\n' \"$@\" >$here/arguments; cat $here/record\n"
                        "[ -e $here/stop ] && kill -TERM $PPID && exec sleep 60\nexit $(cat $here/status) ;;\nesac\n",
                        (char *)*state),
        true);
}

static bz_perfdb *set_up(void **state, bz_bench *run)
{
    bz_buf text = {0};
    bz_json j = bz_json_to(&text, false);
    bz_record r = sample_record();
    r.system = "a@onednn2.9", r.problem = PROBLEM_TEXT;
    r.variant = (bz_variant){"onednn", "jit", "plain", "default"};
    bz_record_json(&j, &r);
    bz_buf_putc(&text, '\n');
    write_file(state, "record", bz_buf_text(&text), false);
    bz_buf_free(&text);
    look_here_first(state, "bin");
    write_file(state, "bin/cmake",
               bz_arena_printf(&texts,
                               "#!/bin/sh\n[ -e %s/broken ] && echo 'x.c:1: error: no y' && exit 1\n"
                               "[ \"$1\" = --build ] && exec cp -p %s/program \"$2/benchmarks\"\nmkdir -p \"$4\"\n",
                               (char *)*state, (char *)*state),
               true);
    write_program(state, "program");
    write_program(state, "bench");
    write_file(state, "system", SYSTEM_LINE, false);
    write_file(state, "measured", MEASURED, false);
    write_file(state, "status", "0", false);
    write_file(state, "asked", "", false);
    setenv("BENANZA_BENCH", below(state, "bench"), 1);
    assert_ok(mkdir(below(state, "tmp"), 0777));
    setenv("TMPDIR", below(state, "tmp"), 1);
    bz_perfdb *db = open_new(state, "db");
    *run = (bz_bench){.db = db, .setting = {1, BZ_CACHE_HOT, ""}, .wait = "7"};
    assert_ok(bz_bench_system(db, NULL, NULL, &run->system, &err));
    return db;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* What is left, once whoever removes it has had the time. */
static int count_left(void **state)
{
    int n = 1;
    for (int i = 0; n && i < 200; i++) {
        struct dirent **entry;
        n = scandir(below(state, "tmp"), &entry, visible, alphasort);
        for (int k = 0; k < n; k++)
            free(entry[k]);
        free(entry);
        usleep(n ? 10000 : 0);
    }
    return n;
}

static void test_texts(void **state)
{
    bz_bench run;
    bz_perfdb *db = set_up(state, &run);
    const char *text[] = {PROBLEM_TEXT, "copy read=64 write=64 dtype=u8"};
    assert_ok(bz_bench_texts(text, 2, "onednn", &run, &err));
    assert_true(run.records == 1 && run.wanted == 1 && run.listed == 1 && count_records(db) == 1);
    const char *said = bz_arena_str(&texts, read_file(state, "arguments"));
    const char *first =
        "--layout\nplain\n--backend\nonednn\n" PROBLEM_TEXT "\ncopy read=64 write=64 dtype=u8\n--progress\n9\n--only\n";
    assert_int_equal(strncmp(said, first, strlen(first)), 0);
    assert_non_null(strstr(said, "\n--wait\n7\n"));
    assert_int_equal(count_left(state), 0);
    write_file(state, "status", "3", false);
    run.all = true, run.records = 0;
    assert_fails(bz_bench_texts(text, 1, "onednn", &run, &err), BZ_FAILED, "ended early; 1 records are stored");
    assert_int_equal(count_left(state), 0);
    setenv("BENANZA_BENCH", below(state, "nowhere"), 1);
    assert_fails(bz_bench_texts(text, 1, "onednn", &run, &err), BZ_FAILED, "nowhere");
    bz_perfdb_close(db);
}

static bz_plan *plan_of_one(void)
{
    static const bz_plan_options OPTIONS = {
        .backend = {"onednn"}, .n_backends = 1, .layout = {"plain"}, .n_layouts = 1};
    bz_plan *plan = bz_plan_new(&OPTIONS);
    assert_ok(bz_plan_add_text(plan, PROBLEM_TEXT, &err));
    return plan;
}

static void test_plans(void **state)
{
    bz_bench run;
    bz_perfdb *db = set_up(state, &run);
    bz_plan *plan = plan_of_one();
    assert_ok(bz_bench_plan(plan, &run, false, &err));
    assert_true(run.records == 1 && count_records(db) == 1);
    is_file(state, "asked", "--system\n"); /* when the test began */
    assert_int_equal(count_left(state), 0);
    run.records = 0;
    assert_ok(bz_bench_plan(plan, &run, true, &err)); /* all is known but the peaks */
    assert_int_equal(run.records, 0);
    is_file(state, "asked", "--system\n--system --measure --threads 1 --wait 7\n");
    assert_true(strstr(run.system->details, "measured") && count_left(state) == 0);
    write_file(state, "status", "3", false);
    run.all = true;
    assert_fails(bz_bench_plan(plan, &run, false, &err), BZ_FAILED, "ended early; 1 records are stored");
    assert_int_equal(count_left(state), 0);
    write_file(state, "broken", "", false);
    assert_fails(bz_bench_plan(plan, &run, false, &err), BZ_FAILED, "cannot be built: x.c:1: error: no y; ");
    char *log = bz_arena_str(&texts, strstr(err.text, below(state, "tmp")));
    log[strcspn(log, " ")] = 0;
    assert_ok(access(log, R_OK)); /* which is to be read */
    setenv("TMPDIR", below(state, "nowhere"), 1);
    assert_fails(bz_bench_plan(plan, &run, false, &err), BZ_FAILED, "nowhere");
    assert_false(bz_bench_stopped());
    bz_plan_free(plan);
    bz_perfdb_close(db);
}

static void test_folders(void **state)
{
    bz_bench run;
    bz_perfdb *db = set_up(state, &run);
    assert_ok(mkdir(below(state, "folder"), 0777) || mkdir(below(state, "folder/build"), 0777));
    assert_fails(bz_bench_folder(below(state, "folder"), &run, &err), BZ_BAD_INPUT, "is no folder of benchmarks");
    write_file(state, "folder/manifest.json", "{}", false);
    run.system = NULL;
    assert_ok(bz_bench_folder(below(state, "folder"), &run, &err));
    assert_string_equal(run.system->name, "a@onednn2.9");
    assert_int_equal(run.records, 1);
    is_file(state, "asked", "--system\n--system\n");
    assert_null(bz_bench_folder_device(below(state, "folder")));
    write_file(state, "folder/build/benanza-onednn.so", "", false); /* that is no device's */
    assert_null(bz_bench_folder_device(below(state, "folder")));
    write_file(state, "folder/build/benanza-cudnn.so", "", false);
    assert_string_equal(bz_bench_folder_device(below(state, "folder")), "cudnn");
    assert_ok(bz_bench_folder(below(state, "folder"), &run, &err));
    is_file(state, "asked", "--system\n--system\n--system --backend cudnn\n");
    bz_perfdb_close(db);
}

/* Who is told to end while a program measures ends that, stores what it has told, clears up, and ends by the signal. */
static void test_signals(void **state)
{
    bz_bench run;
    bz_perfdb *db = set_up(state, &run);
    bz_perfdb_close(db);
    write_file(state, "stop", "", false);
    for (int way = 0; way < 2; way++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            const char *text = PROBLEM_TEXT;
            bz_plan *plan = plan_of_one();
            run.db = open_new(state, bz_arena_printf(&texts, "db%d", way));
            run.all = true;
            if (bz_bench_system(run.db, NULL, NULL, &run.system, &err))
                _exit(1);
            way ? bz_bench_plan(plan, &run, false, &err) : bz_bench_texts(&text, 1, "onednn", &run, &err);
            bz_perfdb_close(run.db);
            /* It is told by run.stopped_by, as the sentence comes first. */
            _exit(run.stopped_by == SIGTERM && strstr(err.text, "stopped; 1 record is stored") ? 42 : 2);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
        assert_int_equal(count_left(state), 0);
        db = open_with(below(state, bz_arena_printf(&texts, "db%d", way)), (bz_perfdb_options){.read_only = true});
        assert_int_equal(count_records(db), 1);
        bz_perfdb_close(db);
    }
}

/* The test's folder lies where temporary files were before the test before. */
static int make_here(void **state)
{
    static const char *before;
    before = before ? before : bz_arena_str(&texts, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    setenv("TMPDIR", before, 1);
    return make_folder(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_here, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_texts), TEST(test_plans), TEST(test_folders), TEST(test_signals)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    bz_arena_free(&texts);
    return failed;
}
