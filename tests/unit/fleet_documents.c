/* What the room writes is read back; fleet.json member by member, at its borders and behind them; scripts by the shell that runs them. */
#include "tests/unit/perfdb_test.h"

#include "fleet/fleet.h"

#include <sys/stat.h>
#include <sys/wait.h>

static uint64_t chance_state = 9;
static bz_arena arena;

static unsigned chance(unsigned below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance_state >> 33) % below;
}

static int count(void)
{
    return (int)chance(chance(2) ? 3 : 90);
}

static const char *word(void)
{
    static const char *const WORDS[] = {"a", "it's", "box@lib1.2", "é \"x\"", "$(c)", "b-1"};
    return bz_arena_printf(&arena, "%s%u", WORDS[chance(6)], chance(100));
}

static bz_fleet_names names(int most)
{
    bz_fleet_names list = {.n = (int)chance((unsigned)most + 1)};
    list.item = BZ_NEW(&arena, const char *, list.n);
    for (int i = 0; i < list.n; i++)
        list.item[i] = word();
    return list;
}

static void same_names(const bz_fleet_names *a, const bz_fleet_names *b)
{
    assert_int_equal(a->n, b->n);
    for (int i = 0; i < a->n; i++)
        assert_string_equal(a->item[i], b->item[i]);
}

#define SAME(x)      assert_true(a->x == b->x)
#define SAME_TEXT(x) assert_string_equal(a->x, b->x)

static void same_night(const bz_night *a, const bz_night *b)
{
    SAME_TEXT(id), SAME_TEXT(fleet), SAME_TEXT(program), SAME(begin), SAME(merge_job), SAME(n_systems);
    same_names(&a->models, &b->models);
    for (int i = 0; i < a->n_systems; i++) {
        const bz_night_system *x = &a->system[i], *y = &b->system[i];
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->system, y->system);
        assert_string_equal(x->before, y->before);
        assert_string_equal(x->note, y->note);
        assert_true(x->until == y->until && x->pace == y->pace && x->n_jobs == y->n_jobs && x->n_shards == y->n_shards);
        assert_memory_equal(x->families, y->families, sizeof x->families);
        for (int k = 0; k < x->n_jobs; k++)
            assert_true(x->job[k].round == y->job[k].round && x->job[k].id == y->job[k].id &&
                        x->job[k].begin == y->job[k].begin);
        for (int k = 0; k < x->n_shards; k++) {
            const bz_night_shard *s = &x->shard[k], *t = &y->shard[k];
            assert_true(s->round == t->round && s->index == t->index && s->problems == t->problems &&
                        s->families == t->families && s->estimate == t->estimate);
        }
    }
}

static bz_night random_night(void)
{
    bz_night n = {.id = "20261121T020000Z", .fleet = word(), .program = word(), .begin = count(), .merge_job = count()};
    n.models = names(4);
    n.n_systems = (int)chance(4);
    n.system = BZ_NEW(&arena, bz_night_system, n.n_systems);
    for (int i = 0; i < n.n_systems; i++) {
        bz_night_system *s = &n.system[i];
        *s = (bz_night_system){.name = bz_arena_printf(&arena, "k%d", i),
                               .system = word(),
                               .before = chance(2) ? word() : "",
                               .until = count(),
                               .note = chance(2) ? word() : "",
                               .pace = 0.25 * count(),
                               .n_jobs = (int)chance(3),
                               .n_shards = (int)chance(3)};
        for (int w = 0; w < BZ_WANTS; w++)
            s->families[w] = count();
        s->job = BZ_NEW(&arena, bz_night_job, s->n_jobs);
        s->shard = BZ_NEW(&arena, bz_night_shard, s->n_shards);
        for (int k = 0; k < s->n_jobs; k++)
            s->job[k] = (bz_night_job){count(), count(), count()};
        for (int k = 0; k < s->n_shards; k++)
            s->shard[k] = (bz_night_shard){count(), count(), count(), count(), 0.5 * count()};
    }
    return n;
}

static void same_attempt(const bz_attempt *a, const bz_attempt *b)
{
    SAME_TEXT(id), SAME_TEXT(node), SAME_TEXT(system), SAME_TEXT(program), SAME_TEXT(reason);
    SAME(state), SAME(job), SAME(begin), SAME(end), SAME(skew), SAME(seconds);
    SAME(records), SAME(failed), SAME(bad), SAME(throttled), SAME(noisy);
    for (int i = 0; i < BZ_YARDSTICKS; i++)
        assert_true(a->yardstick[i] == b->yardstick[i] || (isnan(a->yardstick[i]) && isnan(b->yardstick[i])));
}

#define ROUND(kind, value, same)                                                                                       \
    do {                                                                                                               \
        bz_buf text = {0};                                                                                             \
        bz_##kind##_print(&(value), &text);                                                                            \
        assert_ok(bz_##kind##_parse(bz_buf_text(&text), "f", &arena, &back_##kind, &err));                             \
        same(&(value), &back_##kind);                                                                                  \
        bz_buf_free(&text);                                                                                            \
    } while (0)

static void same_merged(const bz_merged *a, const bz_merged *b)
{
    SAME(files), SAME(added), SAME(known), SAME(bad);
    same_names(&a->note, &b->note);
}

static void same_work(const bz_work *a, const bz_work *b)
{
    SAME(threads), SAME(cold), SAME(peaks), SAME(time_limit), SAME_TEXT(device), SAME_TEXT(system);
}

static void same_fleet_stacks(const bz_fleet_stacks *x, const bz_fleet_stacks *y)
{
    assert_int_equal(x->n, y->n);
    for (int i = 0; i < x->n; i++) {
        const bz_fleet_stack *a = &x->item[i], *b = &y->item[i];
        SAME_TEXT(name), SAME_TEXT(system), SAME_TEXT(before), SAME(seen), SAME(pace);
        assert_ptr_equal(bz_fleet_stacks_find(y, a->name), b);
    }
    assert_null(bz_fleet_stacks_find(y, "nobody"));
}

static void test_documents_read_back(void **state)
{
    (void)state;
    static bz_night back_night;
    static bz_attempt back_attempt;
    static bz_merged back_merged;
    static bz_work back_work;
    static bz_fleet_stacks back_fleet_stacks;
    for (int i = 0; i < 200; i++) {
        bz_night night = random_night();
        bz_merged merged = {count(), count(), count(), count(), names(3)};
        bz_work work = {1 + count(), chance(2), chance(2), 0.5 * count(), chance(2) ? "cudnn" : "", word()};
        bz_attempt attempt = {word(),  word(),  word(),  word(),        word(),  (bz_attempt_state)chance(3),
                              count(), count(), count(), count() - 40,  count(), count(),
                              count(), count(), count(), 0.5 * count(), {0},     NULL,
                              0};
        bz_fleet_stacks stacks = {0};
        for (int k = 0; k < BZ_YARDSTICKS; k++)
            attempt.yardstick[k] = chance(2) ? 0.25 * (1 + count()) : (double)NAN;
        for (int k = 0; k < (int)chance(5); k++) {
            bz_fleet_stack *s = bz_fleet_stacks_add(&stacks, bz_arena_printf(&arena, "s%d", k), &arena);
            assert_string_equal(s->before, "");
            s->system = word(), s->before = word(), s->seen = count(), s->pace = 0.5 * count();
            assert_ptr_equal(bz_fleet_stacks_add(&stacks, s->name, &arena), s);
        }
        ROUND(night, night, same_night);
        ROUND(attempt, attempt, same_attempt);
        ROUND(merged, merged, same_merged);
        ROUND(work, work, same_work);
        ROUND(fleet_stacks, stacks, same_fleet_stacks);
    }
    assert_ok(bz_attempt_parse("{\"record\":\"attempt\",\"v\":1}", "f", &arena, &back_attempt, &err));
    const bz_attempt *a = &back_attempt; /* what is not told is nothing */
    assert_true(!a->job && !a->begin && !a->end && !a->skew && !a->records && !a->failed && !a->bad && !a->throttled &&
                !a->noisy && a->seconds == 0);
    char id[32];
    bz_night_id(1763690400 + 5, id);
    assert_string_equal(id, "20251121T020005Z");
    assert_fails(bz_work_parse("{\"record\":\"shard\",\"v\":1,\"device\":\"abacus\"}", "f", &arena, &back_work, &err),
                 BZ_BAD_INPUT, "has not");
    assert_fails(bz_work_parse("{\"record\":\"night\",\"v\":1}", "f", &arena, &back_work, &err), BZ_BAD_INPUT, "is no");
    assert_fails(bz_work_parse("{\"record\":\"shard\",\"v\":2}", "f", &arena, &back_work, &err), BZ_BAD_INPUT, "newer");
    assert_fails(bz_work_parse("{\n\n?", "f", &arena, &back_work, &err), BZ_BAD_INPUT, "f:3: is no JSON");
    bz_arena_free(&arena);
}

/* What a document does not tell is nothing, and an estimate's pace is 1. */
static void test_bare_documents(void **state)
{
    (void)state;
    static const bz_night_job NO_JOB;
    static const bz_night_shard NO_SHARD;
    static const bz_merged NOTHING;
    bz_night night;
    bz_merged merged;
    bz_fleet_stacks stacks;
    assert_ok(bz_night_parse("{\"record\":\"night\",\"v\":1,\"id\":\"20261121T020000Z\",\"systems\":[{\"name\":\"a\","
                             "\"jobs\":[{}],\"shards\":[{}]}]}",
                             "f", &arena, &night, &err));
    assert_true(!night.begin && !night.merge_job && night.n_systems == 1);
    const bz_night_system *s = night.system;
    assert_true(!s->until && s->pace == 1 && s->n_jobs == 1 && s->n_shards == 1);
    for (int w = 0; w < BZ_WANTS; w++)
        assert_int_equal(s->families[w], 0);
    assert_memory_equal(s->job, &NO_JOB, sizeof NO_JOB);
    assert_memory_equal(s->shard, &NO_SHARD, sizeof NO_SHARD);
    assert_ok(bz_merged_parse("{\"record\":\"merge\",\"v\":1}", "f", &arena, &merged, &err));
    assert_memory_equal(&merged, &NOTHING, offsetof(bz_merged, note));
    assert_ok(bz_fleet_stacks_parse("{\"record\":\"stacks\",\"v\":1,\"stacks\":[{\"name\":\"a\"}]}", "f", &arena,
                                    &stacks, &err));
    assert_true(stacks.n == 1 && !stacks.item->seen && stacks.item->pace == 0);
    bz_arena_free(&arena);
}

static int parse(bz_fleet *f, bool of_system, const char *name, const char *value)
{
    const char *text = of_system ? "{\"systems\":{\"first\":{},\"v100\":{\"%s\":%s}}}"
                                 : "{\"%s\":%s,\"systems\":{\"first\":{},\"v100\":{}}}";
    char whole[40000];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(whole, sizeof whole, text, name, value);
#pragma GCC diagnostic pop
    return bz_fleet_parse(whole, "f.json", f, &err);
}

#define S(field) true, offsetof(bz_fleet_system, field)
#define F(field) false, offsetof(bz_fleet, field)

static void test_members_of_fleets(void **state)
{
    (void)state;
    bz_fleet f;
    const struct {
        const char *name;
        bool of_system;
        size_t at;
        double least, most, otherwise; /* most 0: a text; 1 of 1: a switch */
    } MEMBERS[] = {
        {"partition", S(partition), 0, 0, 0},
        {"gres", S(gres), 0, 0, 0},
        {"constraint", S(constraint), 0, 0, 0},
        {"account", S(account), 0, 0, 0},
        {"qos", S(qos), 0, 0, 0},
        {"nodelist", S(nodelist), 0, 0, 0},
        {"slug", S(slug), 0, 0, 0},
        {"scratch", S(scratch), 0, 0, 0},
        {"cache", S(cache), 0, 0, 0},
        {"dtype", S(dtype), 0, 0, 0},
        {"shared", S(shared), 1, 1, 0},
        {"fuse", S(fuse), 1, 1, 0},
        {"peaks", S(peaks), 1, 1, 1},
        {"shards", S(shards), 1, 1000, 8},
        {"minutes", S(minutes), 1, 10080, 0},
        {"threads", S(threads), 1, 4096, 0},
        {"time_limit", S(time_limit), 1e-4, 3600, 0},
        {"benanza", F(benanza), 0, 0, 0},
        {"max_age_days", F(max_age), 0, 36500, 0},
        {"retries", F(retries), 0, 100, 2},
        {"tolerance", F(tolerance), 0, 10, 0.05},
        {"deviation", F(deviation), 0, 10, 0.1},
        {"shard_minutes", F(shard_minutes), 0.01, 1440, 20},
        {"rounds", F(rounds), 1, 9, 2},
        {"hours", F(hours), 0.001, 168, 8},
        {"poll_seconds", F(poll), 0.1, 3600, 15},
    };
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
        bool is_text = MEMBERS[i].most == 0, is_switch = MEMBERS[i].least == 1 && MEMBERS[i].most == 1;
        const double values[] = {MEMBERS[i].least, MEMBERS[i].most, MEMBERS[i].least * 0.999 - 1e-9,
                                 MEMBERS[i].most * 1.001};
        const char *const others[] = {"null",
                                      "[]",
                                      "{}",
                                      is_text ? "7" : "\"7\"",
                                      is_text ? "\"\"" : "\"\"",
                                      is_switch ? "1" : "true",
                                      is_text ? "\"a\\nb\"" : "[1]"};
        for (int k = 0; k < (is_text ? 1 : is_switch ? 2 : 4); k++) {
            char value[40];
            snprintf(value, sizeof value,
                     is_text     ? "\"it's é\""
                     : is_switch ? k ? "true" : "false"
                                 : "%.17g",
                     values[k]);
            int rc = parse(&f, MEMBERS[i].of_system, MEMBERS[i].name, value);
            assert_int_equal(rc, k > 1 ? -1 : 0);
            for (int s = 0; s < (MEMBERS[i].of_system ? 2 : 1) && !rc;
                 s++) { /* the other system has what it has by itself */
                const void *at =
                    (const char *)(MEMBERS[i].of_system ? (const void *)&f.system[1 - s] : (const void *)&f) +
                    MEMBERS[i].at;
                if (is_text && s)
                    assert_null(*(const char *const *)at);
                else if (is_text)
                    assert_string_equal(*(const char *const *)at, "it's é");
                else if (is_switch)
                    assert_int_equal(*(const bool *)at, s ? MEMBERS[i].otherwise > 0 : k);
                else
                    assert_true(*(const double *)at == (s ? MEMBERS[i].otherwise : values[k]));
            }
            bz_fleet_free(&f);
        }
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            assert_int_equal(parse(&f, MEMBERS[i].of_system, MEMBERS[i].name, others[k]), -1);
            assert_non_null(strstr(err.text, MEMBERS[i].name));
            bz_fleet_free(&f);
        }
        if (MEMBERS[i].of_system)
            continue;
        assert_ok(parse(&f, false, "folder", "\"/x\"")); /* what is not given */
        if (!is_text)
            assert_true(*(double *)(void *)((char *)&f + MEMBERS[i].at) == MEMBERS[i].otherwise);
        bz_fleet_free(&f);
    }
    const struct {
        const char *name;
        bool of_system;
        size_t at;
        bool options;
    } LISTS[] = {{"models", F(models), false},   {"dims", F(dims), false},   {"backends", S(backends), false},
                 {"layouts", S(layouts), false}, {"maths", S(maths), false}, {"modules", S(modules), false},
                 {"options", S(options), true}};
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        assert_ok(parse(&f, LISTS[i].of_system, LISTS[i].name, "[\"--a=1\",\"--b\"]"));
        const bz_fleet_names *n =
            (const void *)((char *)(LISTS[i].of_system ? (void *)&f.system[1] : (void *)&f) + LISTS[i].at);
        assert_true(n->n == 2 && !strcmp(n->item[0], "--a=1") && !strcmp(n->item[1], "--b"));
        bz_fleet_free(&f);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(parse(&f, LISTS[i].of_system, LISTS[i].name,
                                   k == 0   ? "[\"--a\",\"b\"]"
                                   : k == 1 ? "[\"--a\",\"--\"]"
                                            : "[\"-a\"]"),
                             LISTS[i].options ? -1 : 0);
            bz_fleet_free(&f);
        }
    }
    assert_ok(parse(&f, true, "environment", "{\"A_1\":\"x y\",\"b\":\"\"}"));
    assert_true(f.system[1].environment.n == 2 && f.system[1].values.n == 2);
    assert_string_equal(f.system[1].environment.item[1], "b");
    assert_string_equal(f.system[1].values.item[0], "x y");
    bz_fleet_free(&f);
    assert_ok(parse(&f, false, "batches", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,1e6]"));
    assert_true(f.n_batches == 16 && f.batch[0] == 1 && f.batch[15] == 1e6 && !f.merge.name);
    bz_fleet_free(&f);
    static const char *const BAD[] = {"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", "[0.5]", "[1000001]", "[\"1\"]",
                                      "1"};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(parse(&f, false, "batches", BAD[i]), -1);
        bz_fleet_free(&f);
    }
    assert_ok(parse(&f, false, "merge", "{\"qos\":\"night\"}"));
    assert_true(!strcmp(f.merge.name, "merge") && !strcmp(f.merge.qos, "night") && f.n_systems == 2);
    bz_fleet_free(&f);
    for (int c = 1; c < 256; c++) { /* names and variables, letter by letter */
        char text[] = {'a', (char)c, 0}, first[] = {(char)c, 0}, json[20];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z', digit = c >= '0' && c <= '9';
        assert_int_equal(bz_fleet_is_name(text), letter || digit || c == '-' || c == '_' || c == '.');
        assert_int_equal(bz_fleet_is_name(first), letter || digit || c == '_');
        if (c < ' ' || c == '"' || c == '\\' || c > 126)
            continue;
        snprintf(json, sizeof json, "{\"%s\":\"x\"}", chance(2) ? text : first);
        assert_int_equal(parse(&f, true, "environment", json),
                         letter || c == '_' || (digit && json[2] == 'a' && json[3] == c) ? 0 : -1);
        bz_fleet_free(&f);
    }
    char longest[70] = {0};
    for (int n = 0; n < 66; n++, memset(longest, 'a', (size_t)n))
        assert_int_equal(bz_fleet_is_name(longest), n > 0 && n < 64);
}

static void put_file(void **state, const char *name, const char *text)
{
    bz_buf b = {0};
    bz_buf_puts(&b, text);
    assert_ok(bz_whole_write(below(state, name), &b, &err));
    assert_ok(chmod(below(state, name), 0755));
    bz_buf_free(&b);
}

static void is_said(void **state, const char *expected)
{
    bz_buf b = {0};
    assert_ok(bz_whole_read(below(state, "said"), 1 << 20, "is too long", &b, &err));
    assert_string_equal(bz_buf_text(&b), expected);
    bz_buf_free(&b);
}

/* A program that says its words and variables, `module` as a program, and scontrol. */
static void test_scripts_are_run(void **state)
{
    char command[9000];
    const char *program = below(state, "it's $(a) program");
    put_file(state, "it's $(a) program",
             "#!/bin/sh\nprintf '%s\\n' \"$@\" >>said\necho \"[$A]\" >>said\nexit $STATUS\n");
    put_file(state, "module", "#!/bin/sh\necho \"module $*\" >>said\n[ \"$2\" != bad ]\n");
    put_file(state, "scontrol", "#!/bin/sh\necho \"scontrol $*\" >>said\n");
    for (int i = 0; i < 40; i++) {
        const char *module = chance(3) ? "good" : "bad", *scratch = chance(2) ? "/s p" : NULL, *variable = "A",
                   *value = word();
        int status = chance(2) ? 137 : (int)chance(3), restarts = (int)chance(4), kind = (int)chance(3);
        bz_fleet_system s = {.scratch = scratch,
                             .modules = {&module, (int)chance(2)},
                             .environment = {&variable, (int)chance(2)},
                             .values = {&value, 1}};
        bz_buf text = {0}, expected = {0};
        if (kind == 0)
            bz_slurm_script(&s, program, "/n $x/v100", 2, &text);
        else if (kind == 1)
            bz_slurm_probe(&s, program, scratch, "/an's wer", &text);
        else
            bz_slurm_merge(program, "f.json", "/d b", "20261121T020000Z", &text);
        put_file(state, "script", bz_buf_text(&text));
        unlink(below(state, "said"));
        snprintf(command, sizeof command,
                 "cd %s && A=none STATUS=%d PATH=.:$PATH SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_JOB_ID=12 "
                 "SLURM_RESTART_COUNT=%d ./script",
                 (char *)*state, status, restarts);
        int rc = system(command);
        bool loads = kind < 2 && s.modules.n, stops = loads && *module == 'b';
        if (loads)
            bz_buf_printf(&expected, "module load %s\n", module);
        if (!stops) {
            bz_buf_puts(&expected, "fleet\n");
            if (kind == 0)
                bz_buf_printf(&expected, "work\n%s/n $x/v100/2-007\n", scratch ? "--scratch\n/s p\n" : "");
            else if (kind == 1)
                bz_buf_printf(&expected, "work\n--probe\n/an's wer\n%s", scratch ? "--backend\n/s p\n" : "");
            else
                bz_buf_puts(&expected, "collect\n--config\nf.json\n--db\n/d b\n--night\n20261121T020000Z\n");
            bz_buf_printf(&expected, "[%s]\n", kind < 2 && s.environment.n ? value : "none");
            if (kind == 0 && status == 137 && restarts < 2)
                bz_buf_puts(&expected, "scontrol requeue 12_7\n");
        }
        assert_true(WIFEXITED(rc) && WEXITSTATUS(rc) == (stops ? 1 : status));
        is_said(state, bz_buf_text(&expected));
        bz_buf_free(&text);
        bz_buf_free(&expected);
    }
    bz_arena_free(&arena);
}

static void test_options_and_queues(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"partition", "gres", "constraint", "account", "qos", "nodelist"};
    for (int i = 0; i < 200; i++) {
        const char *more[] = {"--mem=1", "--x"}, *room[20], *value[6], *expected[20];
        int n = 0, at = 0;
        for (int k = 0; k < 6; k++)
            value[k] = chance(2) ? word() : NULL;
        bz_fleet_system s = {.partition = value[0],
                             .gres = value[1],
                             .constraint = value[2],
                             .account = value[3],
                             .qos = value[4],
                             .nodelist = value[5],
                             .shared = chance(2),
                             .threads = chance(4),
                             .options = {more, (int)chance(3)}};
        bz_fleet_names argv = {room, 0};
        argv.item[argv.n++] = "sbatch";
        bz_slurm_options(&s, &arena, &argv);
        expected[n++] = "sbatch";
        for (int k = 0; k < 6; k++)
            if (value[k])
                expected[n++] = bz_arena_printf(&arena, "--%s=%s", NAMES[k], value[k]);
        expected[n++] = "--nodes=1";
        if (!s.shared)
            expected[n++] = "--exclusive";
        if (s.threads > 1)
            expected[n++] = bz_arena_printf(&arena, "--cpus-per-task=%.0f", s.threads);
        for (int k = 0; k < s.options.n; k++)
            expected[n++] = more[k];
        assert_int_equal(argv.n, n);
        for (; at < n; at++)
            assert_string_equal(argv.item[at], expected[at]);
    }
    static const struct {
        const char *text;
        int64_t job;
        int task;
        const char *state, *node;
    } LINES[] = {{"1 0 R n1", 1, 0, "R", "n1"},
                 {"2147483646 99999 PD ", 2147483646, 99999, "PD", ""},
                 {"2147483647 1 R n", 0, 0, "", ""},
                 {"3 100000 R n", 3, -1, "R", "n"},
                 {"4 -1 R n", 4, -1, "R", "n"},
                 {"5 N/A CG n2", 5, -1, "CG", "n2"},
                 {"6 1", 0, 0, "", ""},
                 {"0 1 R n", 0, 0, "", ""},
                 {"", 0, 0, "", ""},
                 {"7 3x R n", 7, -1, "R", "n"}};
    enum { N = sizeof LINES / sizeof *LINES };
    for (int i = 0; i < 300; i++) {
        bz_buf text = {0};
        int chosen[12], n = (int)chance(12), at = 0;
        const bz_queued *q;
        for (int k = 0; k < n; k++)
            bz_buf_printf(&text, "%s%s", LINES[chosen[k] = (int)chance(N)].text, k + 1 == n && chance(2) ? "" : "\n");
        int found = bz_slurm_queue(bz_buf_text(&text), &arena, &q);
        for (int k = 0; k < n; k++) {
            if (!LINES[chosen[k]].job)
                continue;
            assert_true(at < found && q[at].job == LINES[chosen[k]].job && q[at].task == LINES[chosen[k]].task);
            assert_string_equal(q[at].state, LINES[chosen[k]].state);
            assert_string_equal(q[at++].node, LINES[chosen[k]].node);
        }
        assert_int_equal(at, found);
        bz_buf_free(&text);
    }
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_read_back), cmocka_unit_test(test_bare_documents),
        cmocka_unit_test(test_members_of_fleets),
        cmocka_unit_test_setup_teardown(test_scripts_are_run, make_folder, remove_folder),
        cmocka_unit_test(test_options_and_queues)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
