/* A night step by step, with scripts in the place of Slurm's programs, of the compiler and of the benchmarks: random wants, attempts and
 * queues against definitions that are written here once more. */
#include "tests/unit/programs.h"

#include "fleet/constants.h"
#include "fleet/steps.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

enum { KINDS = 5, BEGIN = 1795000000 };
static const char *const KIND[KINDS] = {"a", "b", "c", "d", "gone"};

/* What each kind was last seen as; "gone" is refused by Slurm. */
static bz_fleet_stack STACKS[] = {{"a", "box@onednn2.6.3", "", 100, 2},
                                  {"b", "new@cblas2", "old@cblas1", 200, 0},
                                  {"d", "lone@onednn3", "", 300, 0},
                                  {"gone", "gone@onednn1", "", 400, 0}};

static bz_fleet_job *opened(void **state)
{
    static bz_fleet_job j;
    bz_buf_clear(&warnings);
    j = (bz_fleet_job){
        .config = below(state, "fleet.json"), .db_dir = below(state, "db"), .max_age = -1, .warn = keep_warning};
    return &j;
}

#define SMALL  BENANZA_SOURCE "/tests/cases/layers-json/small.onnx"
#define LARGER BENANZA_SOURCE "/models/squeezenet1_1.onnx"

static void write_fleet(void **state, const char *model, const char *more)
{
    write_file(
        state, "fleet.json",
        bz_arena_printf(&texts,
                        "{\"folder\":\"%s\",\"benanza\":\"/opt/benanza\",\"models\":[\"%s\"],\"shard_minutes\":0.02,"
                        "\"poll_seconds\":0.1,\"hours\":0.001%s}",
                        below(state, "nights"), model, more),
        false);
}

#define SYSTEMS                                                                                                        \
    "\"systems\":{\"a\":{\"partition\":\"p\",\"threads\":2,\"layouts\":[\"plain\"],\"shards\":4},"                     \
    "\"b\":{\"cache\":\"cold\",\"minutes\":7,\"time_limit\":0.02,\"backends\":[\"onednn\"]},"                          \
    "\"c\":{\"slug\":\"lone\",\"layouts\":[\"plain\"],\"shards\":2},\"d\":{\"peaks\":false,\"shards\":1},"             \
    "\"gone\":{\"partition\":\"gone\",\"layouts\":[\"any\"]}}"

/* Slurm's programs: each job gets a number and is noted, the queue is a file. What else happens when a job is submitted
 * stands in a script. */
static void make_slurm(void **state)
{
    look_here_first(state, "bin");
    write_file(state, "bin/sbatch",
               "#!/bin/sh\nhere=${0%/*}\nprintf '%s\\n' \"$@\" -- >>$here/submitted\nfor script; do :; done\n"
               "case \"$*\" in *--partition=gone*) echo 'sbatch: error: no such partition'; echo more; exit 1;; esac\n"
               "[ -e $here/on-submit ] && . $here/on-submit\nn=$(cat $here/next)\necho $((n + 1)) >$here/next\n"
               "echo 'sbatch: info: welcome'\necho \"$n;cluster\"\n",
               true);
    write_file(state, "bin/squeue",
               "#!/bin/sh\nhere=${0%/*}\n[ \"$*\" = '-h -r --me -o %F %K %t %N' ] || exit 9\n"
               "echo >>$here/asked\n"
               "[ -e $here/down ] && echo 'squeue: error: no controller' && exit 1\ncat $here/queue\n",
               true);
    write_file(state, "bin/scancel",
               "#!/bin/sh\nhere=${0%/*}\necho $1 >>$here/cancelled\nsed -i \"/^$1 /d\" $here/queue\n", true);
    write_file(state, "bin/queue", "", false);
    write_file(state, "bin/next", "101\n", false);
    assert_ok(mkdir(below(state, "nights"), 0777));
}

static bz_record family_record(const char *system, const bz_plan_problem *p, int f, const char *name,
                               bz_setting setting)
{
    bz_record r = sample_record();
    r.system = system;
    r.problem = p->text;
    r.variant = (bz_variant){p->family[f].backend, name, p->family[f].layout, p->family[f].math};
    r.setting = setting;
    r.variants = 1;
    return r;
}

static void load(bz_fleet_job *j)
{
    assert_ok(bz_fleet_open(j, false, &err));
    assert_ok(bz_fleet_load(j, NULL, &err));
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* The longest first, each to the shard that is shortest so far: how long the shards are does not depend on which of equal ones it is. */
static void test_shards(void **state)
{
    assert_ok(symlink(LARGER, below(state, "larger.onnx")));
    write_fleet(state, "large?.onnx", "," SYSTEMS); /* beside the file, as a pattern */
    bz_fleet_job *j = opened(state);
    load(j);
    const bz_plan *plan = bz_fleet_plan_of(j, 0)->plan;
    const bz_plan_problem *problem;
    int n = bz_plan_problems(plan, &problem);
    assert_true(n > 20);
    for (int i = 0; i < 300; i++) {
        unsigned char why[200 * BZ_PLAN_FAMILIES] = {0};
        double seconds[200], size[200], length[200], got[200], total = 0;
        int families[200] = {0}, wanted = 0, most = 1 + (int)chance(12);
        double target = chance(2) ? 1 + chance(8) : 10 * chance(20) + 0.5;
        bz_want want = {.n = n, .why = why, .seconds = seconds};
        bz_shards s;
        for (int p = 0; p < n; p++) {
            seconds[p] = chance(4) ? 0.125 * chance(200) : 4;
            for (int f = 0; f < problem[p].n_families; f++)
                families[p] += (why[p * BZ_PLAN_FAMILIES + f] =
                                    chance(2 + (unsigned)i % 9) ? 0 : (unsigned char)(1 + chance(BZ_WANTS - 1))) != 0;
            if (families[p])
                total += size[wanted++] = seconds[p] + SECONDS_PER_FILE;
        }
        double room = target - SECONDS_PER_SHARD > target / 4 ? target - SECONDS_PER_SHARD : target / 4;
        int expected = 0;
        while (expected < most && expected < wanted && expected * room < total)
            expected++;
        bz_shards_make(plan, &want, target, most, &j->arena, &s);
        assert_int_equal(s.n, expected);
        qsort(size, (size_t)wanted, sizeof *size, by_size);
        for (int k = 0; k < s.n; k++)
            length[k] = SECONDS_PER_SHARD;
        for (int p = 0; p < wanted; p++) {
            int shortest = 0;
            for (int k = 1; k < s.n; k++)
                shortest = length[k] < length[shortest] ? k : shortest;
            length[shortest] += size[p];
        }
        for (int k = 0; k < s.n; k++) {
            double sum = SECONDS_PER_SHARD;
            int problems = 0, of = 0;
            for (int p = 0; p < n; p++)
                if (s.of[p] == k)
                    sum += seconds[p] + SECONDS_PER_FILE, problems++, of += families[p];
            assert_true(fabs(sum - s.shard[k].seconds) < 1e-9 && problems == s.shard[k].problems &&
                        of == s.shard[k].families);
            got[k] = sum;
        }
        qsort(length, (size_t)s.n, sizeof *length, by_size);
        qsort(got, (size_t)s.n, sizeof *got, by_size);
        for (int k = 0; k < s.n; k++)
            assert_true(fabs(length[k] - got[k]) < 1e-9);
        for (int p = 0; p < n; p++)
            assert_true(families[p] ? s.of[p] >= 0 && s.of[p] < s.n : s.of[p] == -1);
    }
    bz_fleet_end(j);
}

/* A model at one batch has its path for a name; where there are several, the batch stands behind it. */
static void test_names_of_models(void **state)
{
    static const char MODEL[] = BENANZA_SOURCE "/tests/cases/analyze/branches.onnx";
    static const char *const BATCHES[] = {"[3]", "[1,2]"}, *const NAMES[][2] = {{""}, {" batch 1", " batch 2"}};
    for (int k = 0; k < 2; k++) {
        write_fleet(state, MODEL, bz_arena_printf(&texts, ",\"batches\":%s," SYSTEMS, BATCHES[k]));
        bz_fleet_job *j = opened(state);
        load(j);
        assert_int_equal(j->paths.n, k + 1);
        for (int i = 0; i <= k; i++)
            assert_string_equal(j->paths.item[i], bz_arena_printf(&texts, "%s%s", MODEL, NAMES[k][i]));
        bz_fleet_end(j);
    }
}

static const bz_setting SETTINGS[KINDS] = {
    {2, BZ_CACHE_HOT, ""}, {1, BZ_CACHE_COLD, ""}, {1, BZ_CACHE_HOT, ""}, {1, BZ_CACHE_HOT, ""}, {1, BZ_CACHE_HOT, ""}};

/* Of every family of kind a nothing, all, or a part is known. 0, 1, 2: by problem and family. */
static int stock[200][BZ_PLAN_FAMILIES];

static void fill(bz_fleet_job *j)
{
    const bz_plan_problem *problem;
    int n = bz_plan_problems(bz_fleet_plan_of(j, 0)->plan, &problem);
    for (int p = 0; p < n; p++)
        for (int f = 0; f < problem[p].n_families; f++) {
            bz_record r = family_record("box@onednn2.6.3", &problem[p], f, "first", SETTINGS[0]);
            stock[p][f] = p < 2 ? 2 * p : (int)chance(3);
            r.variants = stock[p][f] == 2 ? 3 : 1;
            if (stock[p][f])
                put(j->db, r);
            r.setting.threads = 9; /* known in another setting: that is nobody's business */
            put(j->db, r);
        }
    put(j->db, family_record("lone@onednn1", &problem[0], 0, "first", SETTINGS[2]));
    put(j->db, family_record("lone@onednn2", &problem[0], 0, "first", SETTINGS[2]));
    put(j->db, family_record("zz@onednn2", &problem[0], 0, "first", SETTINGS[2]));
    assert_ok(bz_perfdb_put_system(j->db, "lone@onednn2", "{\"measured\":{\"threads\":1,\"yardstick\":1}}", 5, &err));
}

static void write_stacks(void **state)
{
    bz_buf text = {0};
    bz_fleet_stacks_print(&(bz_fleet_stacks){STACKS, sizeof STACKS / sizeof *STACKS}, &text);
    write_file(state, "nights/stacks.json", bz_buf_text(&text), false);
    bz_buf_free(&text);
}

/* Ready to submit. */
static bz_fleet_job *planned(void **state, const char *model)
{
    bz_fleet_job *j;
    make_slurm(state);
    write_stacks(state);
    write_fleet(state, model, ",\"merge\":{\"partition\":\"head\"}," SYSTEMS);
    load(j = opened(state));
    fill(j);
    assert_ok(bz_fleet_want(j, false, &err));
    return j;
}

static void put_options(const bz_fleet_system *s, bz_buf *out)
{
    const char *room[40];
    bz_arena arena = {0};
    bz_fleet_names argv = {room, 0};
    bz_slurm_options(s, &arena, &argv);
    for (int i = 0; i < argv.n; i++)
        bz_buf_printf(out, "%s\n", argv.item[i]);
    bz_arena_free(&arena);
}

/* What sbatch is told in a round, and the numbers of the jobs. */
static void expect_submitted(void **state, bz_fleet_job *j, int round, int64_t first, bz_buf *out)
{
    const char *night = bz_arena_printf(&texts, "%s/%s", below(state, "nights"), j->night.id);
    bz_buf after = {0};
    for (int i = 0; i < KINDS; i++) {
        bz_shards shards = bz_fleet_shards(j, i, &j->arena);
        double longest = 0;
        for (int k = 0; k < shards.n; k++)
            longest = fmax(longest, shards.shard[k].seconds);
        if (!shards.n)
            continue;
        bz_buf_printf(out,
                      "--parsable\n--chdir=/\n--job-name=benanza-%s\n--array=0-%d\n--time=%d\n--output=%s/%s/"
                      "slurm-%%A_%%a.out\n--requeue\n"
                      "--open-mode=append\n",
                      KIND[i], shards.n - 1, i == 1 ? 7 : (int)ceil(3 * longest / 60) + 10, night, KIND[i]);
        put_options(&j->fleet.system[i], out);
        bz_buf_printf(out, "%s/%s/round-%d.sh\n--\n", night, KIND[i], round);
        if (i < 4)
            bz_buf_printf(&after, ":%lld", (long long)first++);
    }
    bz_buf_printf(
        out,
        "--parsable\n--chdir=/\n--job-name=benanza-merge\n--dependency=afterany%s\n--output=%s/slurm-merge.out\n"
        "--open-mode=append\n--time=60\n--partition=head\n--nodes=1\n%s/merge-%d.sh\n--\n",
        bz_buf_text(&after), night, night, round);
    bz_buf_free(&after);
}

static void check_shard(void **state, bz_fleet_job *j, int kind, int index, const bz_shards *shards, const char *folder)
{
    bz_work work;
    const bz_plan_problem *problem;
    int n = bz_plan_problems(bz_fleet_plan_of(j, kind)->plan, &problem), known = 0;
    assert_ok(
        bz_work_parse(read_file(state, bz_arena_printf(&texts, "%s/shard.json", folder)), "f", &texts, &work, &err));
    assert_int_equal(work.threads, SETTINGS[kind].threads);
    assert_int_equal(work.cold, kind == 1);
    assert_int_equal(work.peaks, index == 0 && (kind == 0 || kind == 1)); /* c's are known, d does not want them */
    assert_true(work.time_limit == (kind == 1 ? 0.02 : 0));
    assert_string_equal(work.device, "");
    assert_string_equal(work.system, kind == 2 ? "" : STACKS[kind < 2 ? kind : 2].system);
    char *manifest = bz_arena_str(&texts, read_file(state, bz_arena_printf(&texts, "%s/manifest.json", folder)));
    char *lines = read_file(state, bz_arena_printf(&texts, "%s/known.jsonl", folder));
    for (int p = 0; p < n; p++) {
        bool here = shards->of[p] == index;
        assert_int_equal(strstr(manifest, bz_arena_printf(&texts, "\"%s\"", problem[p].text)) != NULL, here);
        for (int f = 0; f < problem[p].n_families; f++)
            known += kind == 0 && here && stock[p][f] == 2;
    }
    for (char *p = lines; (p = strchr(p, '\n')); p++)
        known--;
    assert_int_equal(known, 0);
}

static void check_night(void **state, bz_fleet_job *j, const bz_night *night, int rounds)
{
    static const char *const SYSTEM[KINDS] = {"box@onednn2.6.3", "new@cblas2", "lone@onednn2", "lone@onednn3",
                                              "gone@onednn1"};
    static const char *const BEFORE[KINDS] = {"box@onednn2.6.3", "old@cblas1", "lone@onednn2", "lone@onednn2", ""};
    assert_int_equal(night->n_systems, KINDS);
    assert_int_equal(night->begin, BEGIN);
    assert_string_equal(night->program, BENANZA_VERSION);
    assert_int_equal(night->models.n, 1);
    for (int i = 0; i < KINDS; i++) {
        const bz_night_system *s = &night->system[i];
        bz_shards shards = bz_fleet_shards(j, i, &j->arena);
        assert_string_equal(s->name, KIND[i]);
        assert_string_equal(s->system, SYSTEM[i]);
        assert_string_equal(s->before, BEFORE[i]);
        assert_int_equal(s->until, i == 0 || i == 2 ? BEGIN - 1 : 0);
        assert_true(s->pace == (i == 0 ? 2 : 1));
        assert_memory_equal(s->families, j->want[i].count, sizeof s->families);
        assert_int_equal(s->n_jobs, i < 4 ? rounds : 0);
        assert_int_equal(s->n_shards, i < 4 ? rounds * shards.n : 0);
        assert_int_equal(strstr(s->note, "system gone: sbatch would not: sbatch: error: no such partition") != NULL,
                         i == 4);
        for (int k = 0; k < s->n_jobs; k++)
            assert_true(s->job[k].round == k + 1 && s->job[k].id == 101 + 5 * k + i &&
                        s->job[k].begin == BEGIN + 10 * k);
        for (int k = 0; k < s->n_shards; k++) {
            const bz_night_shard *h = &s->shard[k];
            const bz_shard *w = &shards.shard[k % shards.n];
            assert_true(h->round == 1 + k / shards.n && h->index == k % shards.n && h->problems == w->problems &&
                        h->families == w->families && fabs(h->estimate - w->seconds) < 1e-6 * w->seconds);
            check_shard(state, j, i, h->index, &shards,
                        bz_arena_printf(&texts, "nights/%s/%s/%d-%03d", night->id, s->name, h->round, h->index));
        }
    }
    assert_int_equal(night->merge_job, 101 + 5 * rounds - 1);
}

static void test_submitting(void **state)
{
    bz_fleet_job *j = planned(state, LARGER);
    bz_buf expected = {0};
    assert_true(bz_fleet_shards(j, 0, &j->arena).n > 1);
    for (int round = 1; round <= 2; round++) {
        bz_fleet_job again = {.night_name = NULL};
        assert_ok(bz_fleet_submit(j, round, BEGIN + 10 * (round - 1), &err));
        assert_int_equal(
            warnings_with("gone: not submitted: system gone: sbatch would not: sbatch: error: no such partition\n"),
            round);
        expect_submitted(state, j, round, 101 + 5 * (round - 1), &expected);
        is_file(state, "bin/submitted", bz_buf_text(&expected));
        again.fleet.folder = j->fleet.folder;
        assert_ok(bz_fleet_night_load(&again, &err)); /* as it is written */
        check_night(state, j, &again.night, round);
        bz_arena_free(&again.arena);
    }
    assert_null(read_file(state, "bin/cancelled"));
    const char *merge = read_file(state, bz_arena_printf(&texts, "nights/%s/merge-1.sh", j->night.id));
    assert_non_null(strstr(merge, "'/opt/benanza' 'fleet' 'collect'"));
    assert_non_null(strstr(merge, bz_arena_printf(&texts, "'--night' '%s'", j->night.id)));
    assert_ok(access(below(state, bz_arena_printf(&texts, "nights/%s/a/round-2.sh", j->night.id)), X_OK));
    for (int i = 0; i < KINDS; i++)
        j->want[i].problems = 0;
    assert_ok(bz_fleet_submit(j, 3, BEGIN, &err)); /* nothing is wanted: nothing is done */
    is_file(state, "bin/submitted", bz_buf_text(&expected));

    bz_fleet_end(j);
    bz_buf_free(&expected);
}

/* Jobs that nobody wrote down could not be collected. */
static void test_submitting_in_vain(void **state)
{
    bz_fleet_job *j = planned(state, SMALL);
    write_file(state, "bin/on-submit",
               "case \"$*\" in *merge*) ;; *) mkdir -p \"${script%/*/*}/night.json/x\";; esac\n", false);
    assert_fails(bz_fleet_submit(j, 1, BEGIN, &err), BZ_FAILED, "night.json");
    is_file(state, "bin/cancelled", "101\n102\n103\n104\n105\n");
    bz_fleet_end(j);

    write_fleet(state, SMALL, ",\"systems\":{\"gone\":{\"partition\":\"gone\"}}");
    load(j = opened(state));
    assert_ok(bz_fleet_want(j, false, &err));
    assert_fails(bz_fleet_submit(j, 1, BEGIN + 1, &err), BZ_FAILED, "no such partition");
    bz_fleet_job again = {.fleet = {.folder = j->fleet.folder}};
    assert_ok(bz_fleet_night_load(&again, &err)); /* which says why */
    assert_non_null(strstr(again.night.system[0].note, "no such partition"));
    bz_arena_free(&again.arena);
    bz_fleet_end(j);

    write_file(state, "bin/sbatch", "#!/bin/sh\necho welcome\n", true);
    load(j = opened(state));
    assert_ok(bz_fleet_want(j, false, &err));
    assert_fails(bz_fleet_submit(j, 1, BEGIN + 2, &err), BZ_FAILED, "did not tell the job's number but: welcome");
    bz_fleet_end(j);
}

enum { MOST_TEXTS = 400 };
typedef struct {
    const char *text[MOST_TEXTS];
    int n;
} list;

static void add_text(list *l, const char *text)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->text[i], text))
            return;
    l->text[l->n++] = text;
}

/* The attempts at the shards of one kind, as they were drawn. */
typedef struct {
    bz_attempt a[12];
    int shard[12], n;
    bool garbled[12];
} attempts;

static bz_night_shard night_shards[2][4];
static bz_night_job night_jobs[2][2] = {{{1, 201, 0}, {2, 301, 0}}, {{1, 202, 0}, {2, 302, 0}}};

static bz_night draw_night(bz_night_system s[2])
{
    static const char *const PLANNED[] = {"", "box@onednn2.6.3", "box@onednn3.1"};
    for (int i = 0; i < 2; i++) {
        s[i] = (bz_night_system){.name = KIND[i],
                                 .system = PLANNED[chance(3)],
                                 .before = "",
                                 .note = chance(4) ? "" : "why",
                                 .pace = chance(2) ? 1 : 0.5,
                                 .job = night_jobs[i],
                                 .n_jobs = 2,
                                 .shard = night_shards[i],
                                 .n_shards = (int)chance(5)};
        s[i].families[BZ_WANT_NOT] = 7;
        s[i].families[BZ_WANT_NEW] = (int)chance(2);
        s[i].families[BZ_WANT_PASSING] = (int)chance(3);
        for (int k = 0; k < s[i].n_shards; k++)
            night_shards[i][k] = (bz_night_shard){1 + k % 2, k / 2, 1, 1, 10 * (1 + chance(5))};
    }
    return (bz_night){
        .id = "20261121T020000Z", .fleet = "f", .program = "1", .begin = BEGIN, .system = s, .n_systems = 2};
}

static bz_attempt draw_attempt(const char *id)
{
    static const char *const RAN[] = {"", "box@onednn2.6.3", "box@onednn3.1"};
    bz_attempt a = {.id = id,
                    .node = chance(2) ? "n1" : "n2",
                    .system = RAN[chance(3)],
                    .program = chance(4) ? BENANZA_VERSION : "9.9",
                    .reason = "no disk",
                    .state = (bz_attempt_state)chance(3),
                    .begin = 100000 + (int)chance(400),
                    .skew = chance(2) ? 0 : 119 + (int)chance(4),
                    .records = (int)chance(9),
                    .failed = (int)chance(3),
                    .seconds = 5 * chance(9)};
    a.skew = chance(2) ? a.skew : -a.skew;
    for (int y = 0; y < BZ_YARDSTICKS; y++)
        a.yardstick[y] = NAN;
    return a;
}

static void draw_lines(void **state, const char *path);
static list notes; /* what cannot be used, in the order in which it is met: folders of a kind, then files */

/* Folders and status files of all attempts; `line` writes what each measured. Where lines are collected, some folders are none. */
static void draw_attempts(void **state, const bz_night *night, attempts of[2],
                          void (*line)(void **state, const char *path))
{
    assert_ok(mkdir(below(state, bz_arena_printf(&texts, "nights/%s", night->id)), 0777));
    for (int i = 0; i < 2; i++) {
        const bz_night_system *s = &night->system[i];
        of[i] = (attempts){0};
        bool closed[4] = {false};
        assert_ok(mkdir(below(state, bz_arena_printf(&texts, "nights/%s/%s", night->id, s->name)), 0777));
        for (int k = 0; k < s->n_shards && line == draw_lines; k++) {
            const char *folder =
                bz_arena_printf(&texts, "%s/%s/%d-%03d", night->id, s->name, s->shard[k].round, s->shard[k].index);
            if (!(closed[k] = !chance(9)))
                continue;
            assert_ok(mkdir(below(state, bz_arena_printf(&texts, "nights/%s", folder)), 0777));
            write_file(state, bz_arena_printf(&texts, "nights/%s/attempts", folder), "", false);
            add_text(&notes, bz_arena_printf(&texts, "%s/attempts: cannot be opened: Not a directory", folder));
        }
        for (int k = 0; k < s->n_shards; k++) {
            const char *folder = bz_arena_printf(&texts, "nights/%s/%s/%d-%03d", night->id, s->name, s->shard[k].round,
                                                 s->shard[k].index);
            if (closed[k] || !chance(5))
                continue; /* nobody came so far */
            assert_ok(mkdir(below(state, folder), 0777));
            assert_ok(mkdir(below(state, bz_arena_printf(&texts, "%s/attempts", folder)), 0777));
            for (int t = (int)chance(4); t < 3; t++) {
                const char *id = bz_arena_printf(&texts, "%d-x", t);
                const char *stem = bz_arena_printf(&texts, "%s/attempts/%s", folder, id);
                bz_buf text = {0};
                int at = of[i].n++;
                of[i].shard[at] = k;
                of[i].a[at] = draw_attempt(id);
                if ((of[i].garbled[at] = !chance(8)))
                    of[i].a[at] =
                        (bz_attempt){.id = id, .node = "?", .system = "", .program = "", .state = BZ_ATTEMPT_FAILED};
                else
                    bz_attempt_print(&of[i].a[at], &text);
                write_file(state, bz_arena_printf(&texts, "%s.json", stem),
                           of[i].garbled[at] ? "{" : bz_buf_text(&text), false);
                line(state, bz_arena_printf(&texts, "%s.jsonl", stem));
                bz_buf_free(&text);
            }
        }
    }
}

static bz_merged merged; /* what is to come of the lines */
static bool known_line[10][3], known_ahead;
static int64_t now;

static void draw_lines(void **state, const char *path)
{
    const char *name = path + strlen("nights/");
    bz_buf text = {0};
    int n = (int)chance(8), bad = 0, newer = 0;
    if (!chance(9)) {
        assert_ok(symlink("/nowhere/at-all", below(state, path)));
        add_text(&notes, bz_arena_printf(&texts, "%s: cannot be read", name));
        return;
    }
    if (!chance(9)) {
        assert_ok(mkdir(below(state, path), 0777));
        add_text(&notes, bz_arena_printf(&texts, "%s: cannot be read: Is a directory", below(state, path)));
        merged.files++;
        return;
    }
    for (int i = 0; i < n; i++) {
        bz_record r = sample_record();
        bz_json j = bz_json_to(&text, false);
        int p = (int)chance(10), date = (int)chance(3), what = (int)chance(9);
        r.problem = bz_arena_printf(&texts, "activation fn=relu x=1x%d dtype=f32", what == 1 ? 99 : p);
        r.system = "box@onednn2.6.3";
        r.date = what == 1 ? now + CLOCK_AHEAD - 1000 : what == 2 ? now + CLOCK_AHEAD + 1000 : 100 + date;
        bool *known = what == 1 ? &known_ahead : &known_line[p][date];
        if (what == 3 || what == 4) {
            bz_buf_puts(&text, what == 3 ? "{\"v\":1,\"problem\":7}" : "{\"v\":9,\"problem\":\"x\"}");
        } else {
            bz_record_json(&j, &r);
        }
        bz_buf_puts(&text, text.data[text.len - 1] == '\n' ? "" : "\n");
        bad += what >= 2 && what <= 4, newer += what == 4;
        if (what >= 2 && what <= 4)
            continue;
        *(*known ? &merged.known : &merged.added) += 1;
        *known = true;
    }
    merged.files++;
    merged.bad += bad;
    if (newer)
        add_text(&notes,
                 bz_arena_printf(&texts, "%s: %d lines were written by a newer benanza: update this one", name, newer));
    if (bad > newer)
        add_text(&notes, bz_arena_printf(&texts, "%s: %d of %d lines cannot be used; they are measured again", name,
                                         bad - newer, n));
    write_file(state, path, bz_buf_text(&text), false);
    bz_buf_free(&text);
}

/* What a kind is said to be behind a night: by the attempt that began last, if nobody has seen it since. */
static bz_fleet_stack learned(bz_fleet_stack before, const bz_night_system *s, const attempts *of)
{
    int newest = -1;
    double estimate = 0, seconds = 0;
    for (int i = 0; i < of->n; i++) {
        const bz_attempt *a = &of->a[i];
        int tries = 0;
        if (*a->system && (newest < 0 || a->begin - a->skew > of->a[newest].begin - of->a[newest].skew))
            newest = i;
        for (int k = 0; k < of->n; k++)
            tries += of->shard[k] == of->shard[i];
        if (tries == 1 && a->state == BZ_ATTEMPT_DONE)
            estimate += s->shard[of->shard[i]].estimate, seconds += a->seconds;
    }
    if (newest >= 0 && of->a[newest].begin - of->a[newest].skew + 120 >= before.seen &&
        strcmp(of->a[newest].system, before.system) != 0) {
        before.before = *before.system ? before.system : before.before;
        before.system = of->a[newest].system;
        before.seen = -1;
    }
    if (seconds > 0)
        before.pace = fmin(10, fmax(0.1, s->pace * seconds / estimate));
    return before;
}

static void test_collecting(void **state)
{
    write_fleet(state, SMALL, "," SYSTEMS);
    assert_ok(mkdir(below(state, "nights"), 0777));
    for (int i = 0; i < 60; i++) {
        bz_fleet_job *j = opened(state), again = {0};
        bz_fleet_stack before[2] = {{"a", "box@onednn2.6.3", "older@onednn1", 99900 + (int)chance(600), 3},
                                    {"b", "", "", 0, 0}};
        bz_night_system s[2];
        attempts of[2];
        bz_buf text = {0};
        j->db_dir = below(state, bz_arena_printf(&texts, "db%d", i));
        unlink(below(state, "nights/stacks.json"));
        assert_ok(bz_fleet_open(j, false, &err));
        now = (int64_t)time(NULL);
        merged = (bz_merged){0}, notes.n = 0, known_ahead = false;
        memset(known_line, 0, sizeof known_line);
        j->night = draw_night(s);
        j->night.id = bz_arena_printf(&texts, "20261121T%06dZ", i);
        *bz_fleet_stacks_add(&j->stacks, "a", &j->arena) = before[0];
        draw_attempts(state, &j->night, of, draw_lines);
        assert_ok(bz_fleet_collect(j, &err));
        assert_int_equal(count_records(j->db), merged.added);
        assert_ok(bz_whole_read(below(state, bz_arena_printf(&texts, "nights/%s/merge.json", j->night.id)), 1 << 20, "",
                                &text, &err));
        assert_ok(bz_merged_parse(bz_buf_text(&text), "f", &texts, &j->merged, &err));
        assert_int_equal(j->merged.files, merged.files);
        assert_int_equal(j->merged.added, merged.added);
        assert_int_equal(j->merged.known, merged.known);
        assert_int_equal(j->merged.bad, merged.bad);
        assert_int_equal(j->merged.note.n, notes.n);
        for (int k = 0; k < notes.n; k++)
            assert_string_equal(j->merged.note.item[k], notes.text[k]);
        bz_perfdb_close(j->db);
        j->db = NULL;
        again.config = j->config, again.db_dir = j->db_dir;
        assert_ok(bz_fleet_open(&again, true, &err)); /* as it is written */
        assert_int_equal(again.stacks.n, 1 + (of[1].n > 0));
        for (int k = 0; k < again.stacks.n; k++) {
            const bz_fleet_stack *got = &again.stacks.item[k],
                                 e = of[k].n ? learned(before[k], &s[k], &of[k]) : before[k];
            assert_string_equal(got->name, KIND[k]);
            assert_string_equal(got->system, e.system);
            assert_string_equal(got->before, e.before);
            assert_true(e.seen < 0 ? got->seen >= now && got->seen < now + 60 : got->seen == e.seen);
            assert_true(fabs(got->pace - e.pace) <= 1e-6 * e.pace);
        }
        bz_fleet_end(&again);
        bz_fleet_end(j);
        bz_buf_free(&text);
    }
}

static void no_lines(void **state, const char *path)
{
    write_file(state, path, "", false);
}

typedef struct {
    int64_t job;
    int task;
    const char *state;
} place;

static void draw_queue(void **state, const bz_night_system s[2], bool down, place queue[16], int *n)
{
    static const char *const STATES[] = {"R", "CG", "PD", "CF", "CD"};
    bz_buf text = {0};
    *n = 0;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < s[i].n_shards; k++)
            if (chance(2))
                queue[(*n)++] = (place){s[i].job[s[i].shard[k].round - 1].id, s[i].shard[k].index, STATES[chance(5)]};
    queue[(*n)++] = (place){777, 0, "R"}; /* somebody else's */
    for (int k = 0; k < *n; k++)
        bz_buf_printf(&text, "%lld %d %s n1\n", (long long)queue[k].job, queue[k].task, queue[k].state);
    write_file(state, "bin/queue", bz_buf_text(&text), false);
    unlink(below(state, "bin/down"));
    if (down)
        write_file(state, "bin/down", "", false), *n = 0;
    bz_buf_free(&text);
}

/* What became of a kind's shards, and what is worth a word. */
static bz_night_result expect_result(const bz_night_system *s, const attempts *of, const place *queue, int n_queued,
                                     list *warned)
{
    bz_night_result x = {.shards = s->n_shards, .attempts = of->n, .system = s->system};
    x.wanted = s->families[BZ_WANT_NEW] + s->families[BZ_WANT_PASSING];
    for (int k = 0; k < s->n_shards; k++) {
        bool done = false, failed = false;
        const char *waits = NULL;
        for (int i = 0; i < of->n; i++)
            if (of->shard[i] == k) {
                done = done || of->a[i].state == BZ_ATTEMPT_DONE;
                failed = of->a[i].state == BZ_ATTEMPT_FAILED;
            }
        for (int i = 0; i < n_queued; i++)
            if (queue[i].job == s->job[s->shard[k].round - 1].id && queue[i].task == s->shard[k].index)
                waits = queue[i].state;
        bool runs = waits && (!strcmp(waits, "R") || !strcmp(waits, "CG"));
        *(done ? &x.done : runs ? &x.running : waits ? &x.waiting : failed ? &x.failed : &x.died) += 1;
        x.estimate += s->shard[k].estimate;
    }
    int64_t newest = INT64_MIN;
    for (int i = 0; i < of->n; i++) {
        const bz_attempt *a = &of->a[i];
        int64_t begin = a->begin - a->skew, off = a->skew < 0 ? -a->skew : a->skew;
        x.records += a->records, x.bad_records += a->failed, x.seconds += a->seconds;
        if (a->state == BZ_ATTEMPT_FAILED)
            add_text(warned, bz_arena_printf(&texts, "%s, attempt %s on %s: %s", s->name, a->id, a->node,
                                             a->reason ? a->reason : ""));
        if (off > 120)
            add_text(warned, bz_arena_printf(&texts, "%s: the clock of %s is %d s %s; dates were corrected", s->name,
                                             a->node, (int)off, a->skew > 0 ? "ahead" : "behind"));
        if (*a->system && *s->system && strcmp(a->system, s->system) != 0 && !x.moved++)
            add_text(warned, bz_arena_printf(&texts, "%s: planned for %s, ran on %s (%s); recorded under what ran",
                                             s->name, s->system, a->system, a->node));
        if (!strcmp(a->program, "9.9"))
            add_text(warned,
                     bz_arena_printf(&texts, "%s: %s runs benanza 9.9, this is " BENANZA_VERSION, s->name, a->node));
        if (*a->system && begin >= newest)
            newest = begin, x.system = a->system;
    }
    if (*s->note && x.wanted)
        add_text(warned, bz_arena_printf(&texts, "%s: not submitted: why", s->name));
    return x;
}

static void test_how_far_it_is(void **state)
{
    make_slurm(state);
    write_fleet(state, SMALL, "," SYSTEMS);
    for (int i = 0; i < 60; i++) {
        bz_fleet_job *j = opened(state);
        bz_night_system s[2];
        attempts of[2];
        place queue[16];
        list warned = {.n = 0};
        bz_fleet_report r;
        int n, done = 0, shards = 0;
        bool down = !chance(6);
        bz_buf text = {0};
        assert_ok(bz_fleet_open(j, false, &err));
        j->night = draw_night(s);
        j->night.id = bz_arena_printf(&texts, "20261121T%06dZ", i);
        draw_attempts(state, &j->night, of, no_lines);
        draw_queue(state, s, down, queue, &n);
        if (down)
            add_text(&warned, "squeue would not: squeue: error: no controller");
        if (chance(2)) {
            const char *note = bz_arena_printf(&texts, "note %d", i);
            bz_merged_print(&(bz_merged){.note = {&note, 1}}, &text);
            write_file(state, bz_arena_printf(&texts, "nights/%s/merge.json", j->night.id), bz_buf_text(&text), false);
            add_text(&warned, note);
        }
        bz_buf_clear(&text);
        assert_ok(bz_fleet_report_make(j, -1, &r, &err));
        bz_fleet_status_text(&r, &text);
        for (int k = 0; k < 2; k++) {
            const bz_night_result *x = &r.result[k], e = expect_result(&s[k], &of[k], queue, n, &warned);
            assert_ptr_equal(x->planned, &s[k]);
            assert_string_equal(x->system, e.system);
            assert_true(x->wanted == e.wanted && x->left == 0 && x->shards == e.shards && x->done == e.done &&
                        x->running == e.running && x->waiting == e.waiting && x->failed == e.failed &&
                        x->died == e.died && x->attempts == e.attempts && x->moved == e.moved &&
                        x->records == e.records && x->bad_records == e.bad_records);
            assert_true(fabs(x->estimate - e.estimate) < 1e-9 && fabs(x->seconds - e.seconds) < 1e-9);
            done += e.done, shards += e.shards;
            char *line = strstr(bz_buf_text(&text), k ? "\nb " : "\na "), word[8][32] = {""};
            const int cells[] = {e.shards, e.done, e.running, e.waiting, e.died, e.failed, e.records};
            assert_non_null(line);
            bool named = *e.system != 0;
            sscanf(line + 3, named ? "%*s %31s %31s %31s %31s %31s %31s %31s" : "%31s %31s %31s %31s %31s %31s %31s",
                   word[0], word[1], word[2], word[3], word[4], word[5], word[6]);
            for (int c = 0; c < 7; c++)
                assert_int_equal(atoi(word[c]), cells[c]);
        }
        assert_non_null(strstr(bz_buf_text(&text), bz_arena_printf(&texts, "night %s: %d of %d shards are done\n",
                                                                   j->night.id, done, shards)));
        int at = 0;
        for (int k = 0; k < r.warning.n; k++) { /* one text may be said of several attempts */
            int found = 0;
            while (found < warned.n && strncmp(r.warning.item[k], warned.text[found], strlen(warned.text[found])) != 0)
                found++;
            if (found == warned.n)
                fail_msg("nobody expects '%s'", r.warning.item[k]);
            at = found > at ? found : at;
            assert_non_null(strstr(bz_buf_text(&text), warned.text[found]));
        }
        assert_true(r.warning.n >= warned.n && (!warned.n || at == warned.n - 1));
        bz_fleet_end(j);
        bz_buf_free(&text);
    }
}

/* Kind a measured all anew, twice as long, and came to 25 failures; the others did nothing. */
static void write_brought(void **state, bz_fleet_job *j, const char *folder)
{
    const bz_plan_problem *problem;
    int n = bz_plan_problems(bz_fleet_plan_of(j, 0)->plan, &problem);
    bz_buf text = {0};
    bz_attempt a = draw_attempt("x");
    for (int i = 0; i < n + 25; i++)
        for (int f = 0; f < (i < n ? problem[i].n_families : 1); f++) {
            bz_json w = bz_json_to(&text, false);
            bz_record r = family_record("box@onednn2.6.3", &problem[i < n ? i : 0], f, "first", SETTINGS[0]);
            r.median *= 2, r.low *= 2, r.high *= 2, r.q25 *= 2, r.q75 *= 2, r.max *= 2, r.min *= 2,
                r.date = BEGIN + (i < n ? 50 : 0);
            if (i >= n) {
                r.variant.algorithm = bz_arena_printf(&texts, "other%d", i);
                r.status = BZ_RECORD_FAILED, r.reason = "the result is wrong";
            }
            bz_record_json(&w, &r);
            bz_buf_putc(&text, '\n');
        }
    a.state = BZ_ATTEMPT_DONE, a.system = "box@onednn2.6.3", a.skew = 0, a.program = BENANZA_VERSION;
    write_file(state, bz_arena_printf(&texts, "%s/attempts/x.jsonl", folder), bz_buf_text(&text), false);
    bz_buf_clear(&text);
    bz_attempt_print(&a, &text);
    write_file(state, bz_arena_printf(&texts, "%s/attempts/x.json", folder), bz_buf_text(&text), false);
    bz_buf_free(&text);
}

static void test_what_a_night_brought(void **state)
{
    bz_fleet_job *j = planned(state, SMALL);
    bz_fleet_report r;
    bz_buf text = {0};
    int left = 0, models = 0;
    assert_ok(bz_fleet_submit(j, 1, BEGIN, &err));
    write_brought(state, j, bz_arena_printf(&texts, "nights/%s/a/1-000", j->night.id));
    assert_ok(bz_fleet_collect(j, &err));
    assert_ok(bz_fleet_report_make(j, 0.05, &r, &err));
    for (int i = 0; i < KINDS; i++) {
        int wanted = 0;
        for (int w = BZ_WANT_NOT + 1; w < BZ_WANTS; w++)
            wanted += j->night.system[i].families[w];
        assert_int_equal(r.result[i].wanted, wanted);
        assert_int_equal(r.result[i].left, i ? wanted : 0);
        left += r.result[i].left;
    }
    assert_true(left > 0 && r.left == left);
    assert_string_equal(r.result[0].before, "itself before tonight");
    assert_string_equal(r.result[1].before, "");
    assert_true(r.result[0].slower > 0 && r.result[0].faster + r.result[0].undecided == 0);
    for (int i = 0; i < r.n_changes; i++) {
        models += r.change[i].model != NULL;
        double ratio =
            r.change[i].after.seconds / r.change[i].before.seconds; /* or less, by a way that nobody had measured */
        assert_true(ratio > 1.05 && ratio < 2.001 && r.change[i].verdict == BZ_SLOWER);
        assert_true(i == 0 || !r.change[i].model || r.change[i - 1].model); /* models come first */
    }
    assert_true(models == 1 && r.n_changes == 1 + r.result[0].slower && r.regressions == r.n_changes);
    assert_true(r.n_failures == 20 && r.more_failures == 5);
    assert_non_null(strstr(r.failure[0].what, " other"));
    assert_string_equal(r.failure[0].reason, "failed: the result is wrong");
    bz_fleet_report_text(&r, 1, &text);
    assert_non_null(strstr(
        bz_buf_text(&text),
        bz_arena_printf(&texts,
                        "night %s: %d REGRESSIONS (1 of models); INCOMPLETE, %d of %d families are still missing; ",
                        j->night.id, r.regressions, left, left + r.result[0].wanted)));
    assert_non_null(
        strstr(bz_buf_text(&text), bz_arena_printf(&texts, "and %d more: --top %d\n", r.n_changes - 1, r.n_changes)));
    assert_non_null(strstr(bz_buf_text(&text), "  and 5 more: 'benanza db show --failed'\n"));
    assert_ok(bz_fleet_report_make(j, 1.5, &r, &err)); /* twice is less than that */
    assert_true(r.regressions == 0 && r.n_changes > 0);
    j->fleet.system[0].name = "other";
    assert_ok(bz_fleet_report_make(j, 0.05, &r, &err));
    assert_true(strstr(r.warning.item[0], "a: is no longer in ") && r.left == left);
    bz_fleet_end(j);
    bz_buf_free(&text);
}

static bz_change_row change(const char *model, const char *what, double before, double after)
{
    return (bz_change_row){.kind = "a",
                           .model = model,
                           .what = what,
                           .layers = 3,
                           .of = 4,
                           .before = {before, before, before, false},
                           .after = {after, after, after, false},
                           .variant_before = "old",
                           .variant_after = "new",
                           .verdict = after > before   ? BZ_SLOWER
                                      : after < before ? BZ_FASTER
                                                       : BZ_SAME};
}

static const char *printed(const bz_fleet_report *r, int rows)
{
    bz_buf text = {0};
    bz_fleet_report_text(r, rows, &text);
    return bz_buf_keep(&text, &texts);
}

/* Line by line what the answer is, and why. */
static void test_answers(void **state)
{
    bz_night_system planned = {.name = "a", .system = "box@1", .note = ""};
    bz_night night = {.id = "N", .system = &planned, .n_systems = 1};
    bz_night_result x = {&planned, "box@1", "box@0", 0, 30, 0, 4, 3, 0, 0, 2, 5, 9, 11, 6, 2, 3, 12, 13, 14, 15};
    bz_fleet_report r = {.night = &night, .result = &x, .tolerance = 0.1};
    bz_change_row rows[] = {change("m", NULL, 1, 1.2), change(NULL, "k", 1, 1.3), change(NULL, "l", 2, 1),
                            change(NULL, "s", 1, 1.05), change(NULL, "t", 1, 1)};
    bz_deviation deviation[] = {{"a", "n1", "gemm", 3, 2, 0, 0}, {"a", "n2", "throttled", NAN, NAN, 3, 7}};
    bz_failure failure[] = {{"a", "p", "bad"}, {"b", "q", "worse"}};
    const char *warning[] = {"first", "second"};
    char kind[20], system[20], against[20], cell[12][20], shown[400];
    (void)state;
    const char *text = printed(&r, 5);
    assert_non_null(strstr(text, "night N: 11 records, all that was wanted, and nothing became slower\n\nkind"));
    const char *row = strstr(text, "\na ");
    assert_int_equal(sscanf(row,
                            " %19s %19s %19s %19s %19s %19s %19s %19s %19s %19[0-9.] s %19[0-9.] s %19s %19s %19s %19s",
                            kind, system, cell[0], cell[1], cell[2], cell[3], cell[4], cell[5], cell[6], cell[7],
                            cell[8], cell[9], cell[10], cell[11], against),
                     15);
    snprintf(shown, sizeof shown, "%s %s %s %s %s %s %s %s %s %g %g %s %s %s %s", kind, system, cell[0], cell[1],
             cell[2], cell[3], cell[4], cell[5], cell[6], atof(cell[7]), atof(cell[8]), cell[9], cell[10], cell[11],
             against);
    assert_string_equal(shown, "a box@1 30 0 4 3 7 11 6 2 3 12 13 14 box@0");
    assert_null(strstr(text, "Changes") ? strstr(text, "Changes") : strstr(text, "Nodes"));
    x.wanted = 0;
    assert_non_null(strstr(printed(&r, 5), "night N: nothing was to be done\n"));
    x.wanted = 30, r.left = x.left = 2;
    assert_non_null(strstr(printed(&r, 5), "night N: INCOMPLETE, 2 of 30 families are still missing; 11 records\n"));
    r.left = 0, r.change = rows, r.n_changes = 5, r.regressions = 2, r.deviation = deviation, r.n_deviations = 2;
    r.failure = failure, r.n_failures = 2, r.warning = (bz_fleet_names){warning, 2};
    text = printed(&r, 5);
    assert_non_null(strstr(text, "night N: 2 REGRESSIONS (1 of models); 11 records\n"));
    assert_non_null(strstr(text, "\nChanges beyond 10 %:\n"));
    assert_non_null(strstr(text, "1.200  bound of m (3 of 4 layers)\n"));
    assert_non_null(strstr(text, "1.300  k; old -> new\n"));
    assert_non_null(strstr(text, "0.500  l; old -> new\n"));
    assert_null(strstr(text, "1.050") ? strstr(text, "1.050") : strstr(text, "1.000"));
    assert_null(strstr(text, " more"));
    assert_non_null(
        strstr(text, "\nNodes that deviate from their peers:\n  a n1: 3 s where its peers take 2 s (1.50 times), gemm\n"
                     "  a n2: throttled in 3 of 7 records\n\nWhat failed:\n  a p: bad\n  b q: worse\n"
                     "\nTo be looked at:\n  first\n  second\n"));
    r.more_failures = 4, r.regressions = 1;
    text = printed(&r, 2);
    assert_non_null(strstr(text, "night N: 1 REGRESSION (1 of models); "));
    assert_non_null(strstr(text, "\nand 1 more: --top 3\n"));
    assert_non_null(strstr(text, "  b q: worse\n  and 4 more: 'benanza db show --failed'\n"));
    assert_null(strstr(text, "0.500"));
    assert_null(strstr(printed(&r, 0), "Changes"));
    bz_buf merged_text = {0};
    const char *note = "look";
    bz_merged_text(&(bz_merged){2, 3, 4, 0, {&note, 1}}, "N", &merged_text);
    bz_merged_text(&(bz_merged){2, 3, 4, 5, {0}}, "N", &merged_text);
    assert_string_equal(bz_buf_text(&merged_text),
                        "night N: 2 result files, 3 records added, 4 known already\n  look\n"
                        "night N: 2 result files, 3 records added, 4 known already, 5 lines left out\n");
    bz_buf_free(&merged_text);
}

static void put_night(void **state, const char *folder, const char *id)
{
    bz_buf text = {0};
    bz_night_print(&(bz_night){.id = id, .fleet = "f", .program = "1"}, &text);
    assert_ok(mkdir(below(state, bz_arena_printf(&texts, "nights/%s", folder)), 0777));
    write_file(state, bz_arena_printf(&texts, "nights/%s/night.json", folder), bz_buf_text(&text), false);
    bz_buf_free(&text);
}

static void test_which_night(void **state)
{
    bz_fleet_job j = {.fleet = {.folder = below(state, "nights")}};
    assert_fails(bz_fleet_night_load(&j, &err), BZ_BAD_INPUT, "there was no night yet");
    assert_ok(mkdir(below(state, "nights"), 0777));
    assert_fails(bz_fleet_night_load(&j, &err), BZ_BAD_INPUT, "there was no night yet");
    put_night(state, "20260102T000000Z", "20260102T000000Z");
    put_night(state, "20260103T000000Z", "20260103T000000Z");
    put_night(state, "20260101T000000Z", "20260101T000000Z");
    put_night(state, "probes", "20270101T000000Z");
    assert_ok(mkdir(below(state, "nights/20260104T000000Z"), 0777)); /* nothing was written down there */
    assert_ok(bz_fleet_night_load(&j, &err));
    assert_string_equal(j.night.id, "20260103T000000Z");
    j.night_name = "20260101T000000Z";
    assert_ok(bz_fleet_night_load(&j, &err));
    assert_string_equal(j.night.id, "20260101T000000Z");
    j.night_name = "probes";
    assert_fails(bz_fleet_night_load(&j, &err), BZ_USAGE, "'probes' is no night");
    put_night(state, "20260105T000000Z", "20260101T000000Z");
    j.night_name = "20260105T000000Z";
    assert_fails(bz_fleet_night_load(&j, &err), BZ_BAD_INPUT, "is of another night: 20260101T000000Z");
    bz_arena_free(&j.arena);
}

/* Where there is no file, the newest stack of each slug is a kind, with the backends that its records have. */
static void test_without_a_file(void **state)
{
    char before[4096];
    bz_fleet_job *j = opened(state);
    bz_buf text = {0};
    const bz_plan_problem p = {.text = PROBLEM,
                               .family = {{"onednn", "any", "default"}, {"cblas", "plain", "default"}}};
    unsetenv("BENANZA_FLEET");
    assert_non_null(getcwd(before, sizeof before));
    assert_ok(chdir(*state));
    j->config = NULL;
    bz_perfdb *db = open_new(state, "db");
    bz_perfdb_close(db);
    assert_fails(bz_fleet_open_any(j, &err), BZ_USAGE, "neither a fleet.json nor a system");
    bz_fleet_end(j);
    db = open_new(state, "db");
    for (int f = 0; f < 2; f++) {
        put(db, family_record("box@onednn2.6", &p, f, "x", SETTINGS[0]));
        put(db, family_record("box@onednn2.10", &p, 1, "y", SETTINGS[0]));
        put(db, family_record("boxer@onednn1", &p, f, "z", SETTINGS[0]));
    }
    bz_perfdb_close(db);
    j = opened(state);
    j->config = NULL;
    assert_ok(bz_fleet_open_any(j, &err));
    assert_int_equal(j->fleet.n_systems, 2);
    assert_string_equal(j->fleet.system[0].name, "box");
    assert_string_equal(j->fleet.system[1].name, "boxer");
    assert_int_equal(j->fleet.system[0].backends.n, 1);
    assert_string_equal(j->fleet.system[0].backends.item[0], "cblas");
    assert_int_equal(j->fleet.system[1].backends.n, 2);
    assert_true(j->fleet.system[1].shards == 8 && j->fleet.rounds == 2);
    assert_fails(bz_fleet_load(j, NULL, &err), BZ_USAGE, "name a model");
    bz_fleet_end(j);
    j = opened(state);
    j->config = NULL;
    assert_ok(bz_fleet_open_any(j, &err));
    const char *model = SMALL;
    assert_ok(bz_fleet_load(j, &(bz_fleet_names){&model, 1}, &err));
    assert_ok(bz_fleet_want(j, false, &err));
    bz_fleet_plan_text(j, &text);
    int wanted = j->want[0].count[BZ_WANT_NEW] + j->want[1].count[BZ_WANT_NEW],
        guessed = j->want[0].guessed + j->want[1].guessed;
    assert_true(wanted > 0 && guessed > 0);
    assert_non_null(
        strstr(bz_buf_text(&text),
               bz_arena_printf(&texts, " of device time: %d families of variants on 2 kinds of machines\n\n", wanted)));
    assert_non_null(
        strstr(bz_buf_text(&text), bz_arena_printf(&texts, "\n%d families were measured nowhere yet", guessed)));
    assert_non_null(strstr(bz_buf_text(&text), "box@onednn2.10"));
    bz_fleet_end(j);
    write_file(state, "fleet.json", "{\"systems\":{\"k\":{}}}", false); /* here it is the fleet */
    j = opened(state);
    j->config = NULL;
    assert_fails(bz_fleet_open_any(j, &err), BZ_BAD_INPUT, "names no \"folder\"");
    bz_fleet_end(j);
    assert_ok(chdir(before));
    bz_buf_free(&text);
}

#define TWO_KINDS                                                                                                      \
    ",\"merge\":{\"partition\":\"head\"},\"systems\":{\"a\":{\"layouts\":[\"plain\"],\"shards\":1},\"b\":{"            \
    "\"layouts\":[\"plain\"],\"shards\":1}}"
#define ANSWER "{\"v\":1,\"record\":\"system\",\"slug\":\"box\",\"stack\":\"onednn3.1\",\"date\":9,\"cores\":4}\n"

/* A machine of kind a answers what it is; of jobs of kind a the first shard is as good as done; what waits stays so for ever. */
static void make_machines(void **state, bool stays)
{
    make_slurm(state);
    write_stacks(state);
    write_fleet(state, SMALL, TWO_KINDS);
    write_file(state, "bin/answer-a", ANSWER "\n", false);
    write_file(
        state, "bin/on-submit",
        bz_arena_printf(&texts,
                        "case \"$*\" in\n*job-name=benanza-probe-*) k=${script##*/}; [ -e $here/answer-${k%%.sh} ] && "
                        "cp $here/answer-${k%%.sh} ${script%%.sh}.json ;;\n*job-name=benanza-merge*) ;;\n"
                        "*) [ %d = 1 ] && echo \"$(cat $here/next) 0 R n1\" >>$here/queue ;;\nesac\n",
                        stays),
        false);
}

static void test_nights(void **state)
{
    make_machines(state, false);
    bz_fleet_job *j = opened(state);
    bz_fleet_report r;
    assert_ok(bz_fleet_nightly(j, NULL, &r, &err));
    assert_int_equal(warnings_with("b: no machine said what it is"), 1);
    assert_int_equal(warnings_with("\n"), 1);
    assert_string_equal(j->night.system[0].system, "box@onednn3.1");
    assert_string_equal(j->night.system[0].before, "box@onednn2.6.3");
    assert_true(j->night.system[0].n_jobs == 2 && j->night.system[1].n_jobs == 2); /* nobody came, so once more */
    assert_true(r.left > 0 && r.result[0].died == 2 && r.result[1].died == 2);
    is_file(state, "bin/cancelled", "105\n108\n"); /* the jobs that merge */
    const char *id = bz_arena_str(&texts, j->night.id), *config = bz_arena_str(&texts, j->config);
    assert_non_null(strstr(read_file(state, bz_arena_printf(&texts, "nights/%s/report.txt", id)), "INCOMPLETE"));
    assert_non_null(strstr(read_file(state, bz_arena_printf(&texts, "nights/%s/report.html", id)), "<h1>"));
    assert_non_null(strstr(read_file(state, bz_arena_printf(&texts, "nights/%s/report.json", id)), "\"fleet-report\""));
    const char *probe = read_file(state, "nights/probes/a.sh");
    assert_non_null(strstr(probe, "'/opt/benanza' fleet work --probe"));

    bz_fleet_job second = {
        .config = config, .db_dir = below(state, "db"), .max_age = -1}; /* the first holds the lock */
    assert_fails(bz_fleet_prepare(&second, NULL, false, &err), BZ_FAILED, "another night is under way");
    bz_fleet_end(&second);
    bz_fleet_end(j);
    write_file(state, "bin/queue", "108 N/A R n1\n", false);
    j = opened(state);
    assert_fails(bz_fleet_prepare(j, NULL, false, &err), BZ_FAILED,
                 bz_arena_printf(&texts, "night %s is still under way (job 108)", id));
    bz_fleet_end(j);
    write_file(state, "bin/queue", "103 0 R n1\n", false);
    j = opened(state);
    assert_fails(bz_fleet_prepare(j, NULL, false, &err), BZ_FAILED, "is still under way (job 103)");
    bz_fleet_end(j);
    write_file(state, "bin/queue", "999 0 R n1\n", false); /* somebody else's */
    const char *merge = bz_arena_printf(&texts, "nights/%s/merge.json", id);
    assert_ok(unlink(below(state, merge)));
    j = opened(state);
    assert_ok(bz_fleet_prepare(j, NULL, false, &err));
    assert_null(read_file(state, merge)); /* it had come to its end */
    assert_null(j->night.id);
    bz_fleet_end(j);
    assert_ok(unlink(below(state, bz_arena_printf(&texts, "nights/%s/report.json", id))));
    j = opened(state);
    assert_ok(bz_fleet_prepare(j, NULL, false, &err));
    assert_non_null(read_file(state, merge)); /* its `nightly` was killed: what it brought is taken */
    const bz_plan_problem *problem;
    int n = bz_plan_problems(bz_fleet_plan_of(j, 0)->plan, &problem);
    for (int k = 0; k < 2; k++)
        for (int p = 0; p < n; p++)
            for (int f = 0; f < problem[p].n_families; f++)
                put(j->db, family_record(k ? "new@cblas2" : "box@onednn3.1", &problem[p], f, "first", SETTINGS[2]));
    bz_fleet_end(j);
    write_file(state, "bin/queue", "", false);
    j = opened(state);
    assert_ok(bz_fleet_nightly(j, NULL, &r, &err));
    assert_true(!j->night.id && !r.night); /* all is known */
    bz_fleet_end(j);
}

/* Kinds that turn out to be one system are measured once. A night ends when its hours are over. */
static void test_long_nights(void **state)
{
    make_machines(state, true);
    write_file(state, "bin/answer-b", ANSWER, false);
    write_file(state, "bin/scancel", /* a job that is cancelled takes a while to end */
               "#!/bin/sh\nhere=${0%/*}\necho $1 >>$here/cancelled\n[ $1 = 103 ] && wait=0.7\n"
               "(sleep ${wait:-0}; sed -i \"/^$1 /d\" $here/queue) >/dev/null 2>&1 &\n[ $wait ] || wait\n",
               true);
    bz_fleet_job *j = opened(state);
    bz_fleet_report r;
    double begin = bz_now();
    assert_ok(bz_fleet_nightly(j, NULL, &r, &err));
    assert_true((double)strlen(read_file(state, "bin/asked")) < 5 + (bz_now() - begin) / j->fleet.poll);
    assert_int_equal(warnings_with("the night's 0.001 hours are over"), 1);
    is_file(state, "bin/cancelled", "103\n104\n");
    assert_null(strstr(read_file(state, "bin/queue"), "103 "));
    assert_true(j->night.system[0].n_jobs == 1 && j->night.system[1].n_jobs == 0);
    assert_string_equal(j->night.system[1].note, "the same system as a, which measures it");
    bz_fleet_end(j);
    write_file(state, "bin/sbatch", "#!/bin/sh\nexit 1\n", true);
    j = opened(state);
    assert_fails(bz_fleet_nightly(j, NULL, &r, &err), BZ_FAILED, "no kind of machine can be asked what it is");
    bz_fleet_end(j);
}

static void put_work_line(bz_buf *out, const char *name, bz_record_status status, const char *reason)
{
    bz_record r = sample_record();
    bz_json w = bz_json_to(out, false);
    r.system = "box@onednn3.1", r.problem = "relu x=1x8 dtype=f32",
    r.variant = (bz_variant){"onednn", name, "plain", "default"};
    r.status = status, r.reason = reason, r.variants = 9, r.noisy = *name == 'a',
    r.throttled = *name == 'a' || *name == 'b';
    bz_record_json(&w, &r);
    bz_buf_puts(out, out->data[out->len - 1] == '\n' ? "" : "\n");
}

/* A folder with sources, a compiler that takes a script for the program, a machine that says what it is. */
static void make_shard(void **state, bool peaks)
{
    bz_buf text = {0};
    look_here_first(state, "bin");
    write_file(state, "bin/cmake",
               bz_arena_printf(&texts,
                               "#!/bin/sh\n[ -e %s/broken ] && echo 'x.c:1: error: no y' && exit 1\n"
                               "[ \"$1\" = --build ] && cp \"${2%%/build}/program\" \"$2/benchmarks\" && exec chmod "
                               "755 \"$2/benchmarks\"\nmkdir -p \"$4\"\n",
                               (char *)*state),
               true);
    write_file(state, "bench",
               bz_arena_printf(&texts,
                               "#!/bin/sh\necho \"$*\" >>%s/asked\ncase $1 in --system) cat %s/system ;; *) echo no "
                               "record; cat %s/yardstick ;; esac\n",
                               (char *)*state, (char *)*state, (char *)*state),
               true);
    write_file(state, "system", ANSWER, false);
    setenv("BENANZA_BENCH", below(state, "bench"), 1);
    assert_ok(mkdir(below(state, "shard"), 0777) || mkdir(below(state, "shard/attempts"), 0777) ||
              mkdir(below(state, "scratch"), 0777));
    write_file(state, "shard/manifest.json", "{}", false);
    write_file(
        state, "shard/program",
        bz_arena_printf(
            &texts,
            "#!/bin/sh\n[ \"$1\" = --list ] && printf 'relu x=1x8 dtype=f32\\n    onednn plain default\\n' && exit\n"
            "while [ $# -gt 1 ]; do [ $1 = --only ] && cp $2 %s/only; shift; done\ncat %s/lines\nexit $(cat "
            "%s/status)\n",
            (char *)*state, (char *)*state, (char *)*state),
        true);
    write_file(state, "status", "0", false);
    bz_work_print(&(bz_work){.threads = 1, .peaks = peaks, .time_limit = 0.5, .device = "", .system = ""}, &text);
    write_file(state, "shard/shard.json", bz_buf_text(&text), false);
    bz_buf_clear(&text);
    for (int k = 2; k > 0; k--) { /* the shorter of two counts */
        bz_json w = bz_json_to(&text, false);
        bz_record r = sample_record();
        r.median = r.min = r.max = r.low = r.high = r.q25 = r.q75 = 0.25 * k;
        bz_record_json(&w, &r);
        bz_buf_putc(&text, '\n');
    }
    write_file(state, "yardstick", bz_buf_text(&text), false);
    bz_buf_clear(&text);
    put_work_line(&text, "a", BZ_RECORD_OK, "");
    put_work_line(&text, "b", BZ_RECORD_OK, "");
    put_work_line(&text, "c", BZ_RECORD_FAILED, "the result is wrong");
    put_work_line(&text, "d", BZ_RECORD_CRASHED, "ended by SIGTERM");
    bz_buf_puts(&text, "what is this\n");
    write_file(state, "lines", bz_buf_text(&text), false);
    bz_buf_clear(&text);
    bz_record known = sample_record();
    bz_json w = bz_json_to(&text, false);
    known.system = "box@onednn3.1", known.problem = "relu x=1x8 dtype=f32", known.variants = 9;
    known.variant = (bz_variant){"onednn", "earlier", "plain", "default"};
    bz_record_json(&w, &known);
    bz_buf_putc(&text, '\n');
    write_file(state, "shard/known.jsonl", bz_buf_text(&text), false);
    known.variant.algorithm = "killed";
    bz_buf_clear(&text);
    w = bz_json_to(&text, false);
    bz_record_json(&w, &known);
    bz_buf_puts(&text, "\nhalf a li");
    write_file(state, "shard/attempts/0-killed.jsonl", bz_buf_text(&text), false);
    bz_buf_free(&text);
}

static int is_attempt(const struct dirent *e)
{
    const char *end = strrchr(e->d_name, '.');
    return end && !strcmp(end, ".json") && strncmp(e->d_name, "last", 4) != 0;
}

/* The one attempt that has a status file, which goes away. */
static bz_attempt last_attempt(void **state, const char **lines)
{
    struct dirent **entry;
    bz_attempt a;
    assert_int_equal(scandir(below(state, "shard/attempts"), &entry, is_attempt, alphasort), 1);
    const char *path = bz_arena_printf(&texts, "shard/attempts/%s", entry[0]->d_name);
    assert_ok(bz_attempt_parse(read_file(state, path), path, &texts, &a, &err));
    assert_string_equal(bz_arena_printf(&texts, "%s.json", a.id), entry[0]->d_name);
    *lines = bz_arena_str(&texts, read_file(state, bz_arena_printf(&texts, "%sl", path)));
    assert_ok(unlink(below(state, path)) || unlink(below(state, bz_arena_printf(&texts, "%sl", path))));
    free(entry[0]);
    free(entry);
    return a;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int count_files(void **state, const char *folder)
{
    struct dirent **entry;
    int n = scandir(below(state, folder), &entry, visible, alphasort);
    for (int i = 0; i < n; i++)
        free(entry[i]);
    free(entry);
    return n;
}

static void test_work_on_a_node(void **state)
{
    const char *lines;
    int by, held;
    make_shard(state, false);
    setenv("SLURMD_NODENAME", "n17", 1);
    setenv("SLURM_JOB_ID", "42", 1);
    setenv("SLURM_RESTART_COUNT", "1", 1);
    assert_ok(mkdir(below(state, "scratch/benanza-work-left"), 0700) ||
              mkdir(below(state, "scratch/benanza-work-left/x"), 0700) ||
              mkdir(below(state, "scratch/benanza-work-held"), 0700) || mkdir(below(state, "scratch/other"), 0700));
    held = open(below(state, "scratch/benanza-work-held"), O_RDONLY);
    assert_ok(flock(held, LOCK_EX));
    int64_t begun = (int64_t)time(NULL);
    assert_ok(bz_fleet_work(below(state, "shard"), below(state, "scratch"), NULL, NULL, &by, &err));
    bz_attempt a = last_attempt(state, &lines);
    assert_string_equal(a.node, "n17");
    assert_string_equal(a.system, "box@onednn3.1");
    assert_string_equal(a.program, BENANZA_VERSION);
    assert_string_equal(a.reason, "");
    assert_true(
        !strncmp(a.id, bz_arena_printf(&texts, "%lld-42-1-n17-", (long long)a.begin), strlen("1795000000-42-1-n17-")));
    assert_true(a.state == BZ_ATTEMPT_DONE && a.job == 42 && a.begin >= begun && a.end >= a.begin && a.skew == 0 &&
                a.seconds > 0);
    assert_true(a.records == 3 && a.failed == 1 && a.bad == 1 && a.noisy == 1 && a.throttled == 2 && by == 0);
    assert_true(a.yardstick[0] == 0.25 && a.yardstick[1] == 0.25 && isnan(a.yardstick[2]) && isnan(a.yardstick[3]));
    bz_line line;
    int n = 0;
    for (const char *p = lines; *p; p += strcspn(p, "\n") + 1, n++) { /* what the machine is, then what it measured */
        assert_ok(bz_line_parse(p, strcspn(p, "\n"), &texts, &line, &err));
        assert_int_equal(line.is_system, n == 0);
        assert_true(!n || line.record.variant.algorithm[0] == 'a' + n - 1);
        assert_true(!n || !strcmp(line.record.meta, "{\"node\":\"n17\",\"build\":\"Ω 3\"}"));
        assert_true(!n || (line.record.date == 1790000000 && !strcmp(line.record.system, "box@onednn3.1")));
    }
    assert_int_equal(n, 4);
    const char *only = read_file(state, "only"); /* what was measured before it is not measured again */
    assert_true(strstr(only, "    onednn plain default earlier\n") &&
                strstr(only, "    onednn plain default killed\n"));
    assert_int_equal(
        strlen(only),
        strlen("relu x=1x8 dtype=f32\n    onednn plain default earlier\n    onednn plain default killed\n"));
    assert_int_equal(count_files(state, "scratch"), 2); /* what is held, and what is none of ours */
    assert_null(strstr(read_file(state, "asked"), "--measure"));
    close(held);

    write_file(state, "status", "3", false);
    setenv("SLURMD_NODENAME", "amzAMZ059`{@[/:._ é", 1); /* letters and digits stay in a file's name */
    assert_fails(bz_fleet_work(below(state, "shard"), below(state, "scratch"), NULL, NULL, &by, &err), BZ_FAILED,
                 "ended early");
    a = last_attempt(state, &lines);
    assert_string_equal(a.node, "amzAMZ059`{@[/:._ é");
    assert_non_null(strstr(a.id, "-42-1-amzAMZ059-----------"));
    setenv("SLURMD_NODENAME", "n17", 1);
    assert_true(a.state == BZ_ATTEMPT_FAILED && strstr(a.reason, "ended early") && a.records == 3);
    assert_int_equal(count_files(state, "scratch"), 1);
    write_file(state, "broken", "", false);
    assert_fails(bz_fleet_work(below(state, "shard"), below(state, "scratch"), NULL, NULL, &by, &err), BZ_FAILED,
                 "error: no y");
    a = last_attempt(state, &lines);
    assert_true(a.state == BZ_ATTEMPT_FAILED && a.records == 0 && !*a.system && isnan(a.yardstick[0]));
    assert_string_equal(lines, "");
    assert_fails(bz_fleet_work(below(state, "shard"), below(state, "nowhere"), NULL, NULL, &by, &err), BZ_FAILED,
                 "no folder can be made");
    last_attempt(state, &lines);
    assert_fails(bz_fleet_work(below(state, "nowhere"), NULL, NULL, NULL, &by, &err), BZ_BAD_INPUT, "shard.json");
    assert_ok(bz_fleet_tell(below(state, "told"), NULL, &err));
    is_file(state, "told", ANSWER);
}

/* Without a folder named, Slurm's own, that of the environment, or /tmp is taken: the first that is there. Peaks are measured where they are wanted. */
static void test_places_on_a_node(void **state)
{
    const char *lines, *before = getenv("TMPDIR") ? bz_arena_str(&texts, getenv("TMPDIR")) : NULL;
    int by;
    make_shard(state, true);
    unsetenv("SLURM_JOB_ID");
    assert_ok(mkdir(below(state, "scratch/benanza-work-left"), 0700));
    setenv("SLURM_TMPDIR", below(state, "scratch"), 1);
    setenv("TMPDIR", below(state, "elsewhere"), 1);
    assert_ok(bz_fleet_work(below(state, "shard"), NULL, NULL, NULL, &by, &err));
    assert_int_equal(count_files(state, "scratch"), 0);
    bz_attempt a = last_attempt(state, &lines);
    assert_int_equal(a.job, 0);
    assert_non_null(strstr(read_file(state, "asked"), "--system --measure --threads 1\n"));
    assert_ok(mkdir(below(state, "scratch/benanza-work-left"), 0700));
    setenv("TMPDIR", below(state, "scratch"), 1);
    setenv("SLURM_TMPDIR", below(state, "elsewhere"), 1);
    assert_ok(bz_fleet_work(below(state, "shard"), NULL, NULL, NULL, &by, &err));
    assert_int_equal(count_files(state, "scratch"), 0);
    last_attempt(state, &lines);
    unsetenv("SLURM_TMPDIR");
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_shards),
                                       TEST(test_names_of_models),
                                       TEST(test_submitting),
                                       TEST(test_submitting_in_vain),
                                       TEST(test_collecting),
                                       TEST(test_how_far_it_is),
                                       TEST(test_what_a_night_brought),
                                       cmocka_unit_test(test_answers),
                                       TEST(test_which_night),
                                       TEST(test_without_a_file),
                                       TEST(test_nights),
                                       TEST(test_long_nights),
                                       TEST(test_work_on_a_node),
                                       TEST(test_places_on_a_node)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    bz_arena_free(&texts);
    return failed;
}
