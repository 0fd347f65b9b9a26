/* Predictions of records that chance made of six GPUs or four processors: what is learned of them, what each is told by the others, with some of its
 * own records and without, what networks of these problems would take, and what to measure first. predict_generated.txt has a hash for each seed (seen.h). */
#include "predict/evaluate.h"

#include <math.h>

#include "chance.h"
#include "perfdb_test.h"
#include "seen.h"

enum { SYSTEMS = 6, CPUS = 4, SHAPES = 26, BATCHES = 3, PROBLEMS = SHAPES * BATCHES, WORKS = 6, SEEDS = 4 };

static const char *const GPUS[SYSTEMS] = {"Tesla V100-SXM2-16GB", "Tesla T4", "Tesla P4", "Tesla K80", "Tesla M60",
                                          "NVIDIA A100-SXM4-40GB"};

/* %d: items of the batch, channels. */
static const char *const SORTS[] = {
    "conv x=%dx%dx14x14 w=64x%dx3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
    "conv x=%dx%dx28x28 w=32x%dx1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 dtype=f32",
    "conv x=%dx%dx9x9 w=48x%dx3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 group=1 dtype=f16",
    "pool mode=max x=%dx%dx28x28 kernel=3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 dtype=f32",
    "binary fn=add a=%dx%dx14x14 b=1x1x1x1 dtype=f32",
    "activation fn=relu x=%dx%dx28x28 dtype=f32",
    "softmax x=%dx%d axis=1 dtype=f32",
    "gemm m=%d n=%d k=%d transa=0 transb=1 dtype=f32",
};

static char text[PROBLEMS][200];
static bz_shape shape[PROBLEMS];

/* Batches of the same shapes stand behind each other. */
static void make_problems(void)
{
    for (int i = 0; i < PROBLEMS; i++) {
        bz_problem p;
        bz_buf printed = {0};
        char one[200];
        int channels = 8 * (1 + i / BATCHES * 7 % 23);
        snprintf(one, sizeof one, SORTS[i / BATCHES % 8], 1 << 2 * (i % BATCHES), channels,
                 channels); /* NOLINT: rows above */
        assert_ok(bz_problem_parse(one, &p, &err));
        bz_problem_print(&p, &printed);
        snprintf(text[i], sizeof text[i], "%s", bz_buf_text(&printed));
        bz_shape_of(&p, &shape[i]);
        bz_buf_free(&printed);
    }
}

static void put_records(bz_perfdb *db, bool gpu, unsigned seed)
{
    chance_state = seed + 1;
    for (int m = 0; m < (gpu ? SYSTEMS : CPUS); m++) {
        char details[600], name[20];
        static char note[PROBLEMS][100];
        bz_record record[PROBLEMS];
        int n = 0;
        snprintf(name, sizeof name, "%c@x1", 'a' + m);
        if (gpu)
            snprintf(details, sizeof details, "{\"gpu\":\"%s\"}", GPUS[m]);
        else
            snprintf(details, sizeof details,
                     "{\"isa\":\"%s\",\"measured\":{\"threads\":1,\"flops\":{\"f32\":%d00000000,\"bf16\":%d00000000},"
                     "\"launch\":{\"onednn\":%d.5e-07},\"bandwidth\":[{\"bytes\":16384,\"read\":1%d0e9,\"copy\":150e9},"
                     "{\"bytes\":1048576,\"read\":6%de9,\"copy\":50e9},{\"bytes\":268435456,\"read\":2%de9,\"copy\":"
                     "15e9}]}}",
                     m % 2 ? "AVX2" : "AVX512_CORE", 500 + 300 * m, 1000 + 700 * m, 1 + m, m, m, m);
        assert_ok(bz_perfdb_put_system(db, name, details, 1, &err));
        for (int i = 0; i < PROBLEMS; i++) {
            bz_record r = sample_record();
            bool full = m % 3 != 2; /* the others have records of some problems */
            double speed = (gpu ? 2e12 : 1e11) * (1 + m),
                   seconds = 5e-6 + (shape[i].flops + 20 * shape[i].bytes) / speed;
            unsigned skip = chance(3), off = chance(60), notes = chance(2);
            if (!full && !skip)
                continue;
            r.system = name;
            r.problem = text[i];
            r.variant =
                (bz_variant){gpu ? "cudnn" : "onednn", i % 2 ? "implicit_gemm" : "winograd", "plain", "default"};
            r.setting = (bz_setting){1, BZ_CACHE_HOT, ""};
            r.median = seconds * (0.8 + off / 100.0);
            snprintf(note[i], sizeof note[i], "{\"counted\":{\"flops\":%d,\"dram_read\":%d,\"dram_write\":%d}}",
                     1000 * (i + 1), 300 * (m + 1), 200);
            r.meta = gpu && notes ? note[i] : "";
            record[n++] = r;
        }
        assert_ok(bz_perfdb_put(db, record, (size_t)n, NULL, &err));
    }
}

static void say_aim(const bz_predictor *p, const bz_machine *machine, const bz_samples *s, int own,
                    const bool *measured, bz_buf *out)
{
    bz_aim *a = bz_predictor_aim(p, machine, s, own, measured);
    bz_buf_printf(out, "%s: beyond %d, met f32 %d, f16 %d\n", machine->name, bz_aim_beyond(a),
                  bz_aim_met_type(a, BZ_F32), bz_aim_met_type(a, BZ_F16));
    for (int i = 0; i < PROBLEMS; i++)
        for (int times = 1; times <= 2; times++) { /* twice the items: no record has those */
            bz_problem problem, more;
            bz_buf other = {0};
            bz_shape of;
            assert_ok(bz_problem_parse(text[i], &problem, &err));
            if (!bz_problem_batched(&problem, times, &more))
                continue;
            bz_problem_print(&more, &other);
            bz_shape_of(&more, &of);
            bz_predicted_time is = bz_predict(a, bz_buf_text(&other), &of);
            bz_buf_printf(out, " %.4g %.3g %.3g %d", is.seconds, is.spread, is.alone, (int)is.by);
            bz_buf_free(&other);
        }
    bz_buf_putc(out, '\n');
    bz_aim_free(a);
}

static void say_sum(const char *what, const bz_error_sum *e, bz_buf *out)
{
    bz_buf_printf(out, "%s %s: %d %d %.4g %.4g %.4g %.4g:", what, e->name ? e->name : "", e->n, e->scaled, e->bias,
                  e->layers, e->median, e->inside);
    for (int r = 0; r < BZ_RULES; r++)
        bz_buf_printf(out, " %.4g", e->total[r]);
    bz_buf_putc(out, '\n');
}

static void say_judgement(const bz_judgement *j, bz_buf *out)
{
    if (j->missing) {
        bz_buf_printf(out, "%s\n", j->missing);
        return;
    }
    bz_buf_printf(out, "%s: %.4g %.4g %.4g %.4g\n", j->left_out, j->spent, j->ranked, j->quantile, j->printed);
    say_sum("all", &j->all, out);
    for (int i = 0; i < j->machines; i++)
        say_sum("machine", &j->machine[i], out);
    for (int i = 0; i < j->networks; i++)
        say_sum("network", &j->network[i], out);
    for (int i = 0; i < j->kinds; i++)
        say_sum("kind", &j->kind[i], out);
    for (int i = 0; i < j->pairs; i++) {
        bz_buf_printf(out, "%d to %d, %d:", j->pair[i].from, j->pair[i].to, j->pair[i].n);
        for (int r = 0; r < BZ_RULES; r++)
            bz_buf_printf(out, " %.4g", j->pair[i].error[r]);
        bz_buf_putc(out, '\n');
    }
    for (int i = 0; i < j->choices; i++)
        bz_buf_printf(out, "%s %s %s\n", j->choice[i].system, j->choice[i].kind, j->choice[i].way);
    for (int i = 0; i < j->points; i++)
        bz_buf_printf(out, "%d %d: %.4g %.4g %.4g %.4g %.4g\n", j->point[i].machine, j->point[i].network,
                      j->point[i].measured, j->point[i].predicted, j->point[i].spread, j->point[i].low,
                      j->point[i].high);
}

/* Three networks, at a batch and at another. */
static void say_networks(const bz_samples *s, const bz_without *without, bz_buf *out)
{
    static int problem[WORKS][PROBLEMS], times[WORKS][PROBLEMS];
    bz_workload work[WORKS];
    bz_arena arena = {0};
    for (int w = 0; w < WORKS; w++) {
        work[w] = (bz_workload){.name = &"a\0b\0c"[w % 3 * 2],
                                .batch = w / 3 ? 16 : 1,
                                .problem = problem[w],
                                .times = times[w],
                                .flops = 1e9 * (w + 1),
                                .bytes = 1e6 * (w + 2)};
        for (int i = 0; i < s->n; i++)
            if (i % 3 == w % 3) {
                problem[w][work[w].n] = i;
                times[w][work[w].n++] = 1 + i % 3;
            }
    }
    for (int leave = 0; leave < BZ_LEAVE_N; leave++)
        for (int few = 0; few < (leave ? 1 : 3); few++) {
            bz_judgement j = {.missing = bz_judge_missing(s, work, WORKS, (bz_leave)leave)};
            if (!j.missing)
                bz_judge(s, work, WORKS, (bz_leave)leave, (bz_few){few == 1 ? 0.1 : 0, few == 2 ? 0.5 : 0}, without,
                         &arena, &j);
            say_judgement(&j, out);
        }
    for (int m = 0; m < s->machines; m++) {
        double scaled[BZ_RULES];
        double takes = bz_work_scaled(s, &work[m % WORKS], &without[m], (m + 1) % s->machines, m, scaled);
        bz_buf_printf(out, "%d scaled: %.4g", m, takes);
        for (int r = 0; takes > 0 && r < BZ_RULES; r++)
            bz_buf_printf(out, " %.4g", scaled[r]);
        bz_buf_putc(out, '\n');
    }
    bz_arena_free(&arena);
}

static void say_order(const bz_samples *s, bz_buf *out)
{
    const bz_shape *of[PROBLEMS];
    double cost[PROBLEMS], seconds[PROBLEMS];
    int order[PROBLEMS];
    bz_benchmark_times t;
    for (int i = 0; i < PROBLEMS; i++) {
        of[i] = &shape[i];
        cost[i] = 1 + chance(9);
        seconds[i] = 1 + chance(3);
    }
    for (int k = 0; k < 3; k++) {
        int n =
            bz_most_informative(of, cost, k ? seconds : NULL, PROBLEMS, k == 2 ? PROBLEMS : 12, k == 2 ? 20 : 0, order);
        for (int i = 0; i < n; i++)
            bz_buf_printf(out, " %d", order[i]);
        bz_buf_putc(out, '\n');
    }
    bz_benchmark_times_of(s, NULL, &t);
    bz_buf_printf(out, "%.4g\n", t.all);
}

static void say_samples(const bz_samples *s, bool gpu, bz_buf *out)
{
    static bz_without without[SYSTEMS];
    bool use[SYSTEMS], half[PROBLEMS];
    bz_kinship all[BZ_GROUPS];
    bz_kinship_choose(s, NULL, NULL, all);
    bz_predictor *whole = bz_predictor_new(s, NULL, NULL, all);
    bz_predictor_write(whole, out);
    for (int i = 0; i < PROBLEMS; i++)
        half[i] = i % 2;
    for (int m = 0; m < s->machines; m++) {
        for (int k = 0; k < s->machines; k++) {
            use[k] = k != m;
            for (int i = 0; i < s->n; i += 7)
                for (int rule = 0; rule < BZ_SCALING_N; rule++)
                    bz_buf_printf(out, " %.4g",
                                  bz_scaling_of((bz_scaling)rule, &s->shape[i], bz_samples_intensity(s, i, m),
                                                &s->machine[m], &s->machine[k]));
        }
        bz_kinship_choose(s, use, NULL, without[m].kinship);
        for (int g = 0; g < BZ_GROUPS; g++)
            bz_buf_printf(out, "\n%.4g %.4g %.4g", without[m].kinship[g].margin, without[m].kinship[g].generation,
                          without[m].kinship[g].noise);
        without[m].predictor = bz_predictor_new(s, use, NULL, without[m].kinship);
        say_aim(without[m].predictor, &s->machine[m], s, -1, NULL, out);
        say_aim(without[m].predictor, &s->machine[m], s, m, half, out);
        say_aim(whole, &s->machine[m], s, m, NULL, out);
    }
    for (int kind = 0; kind < BZ_SHAPE_KINDS; kind++) {
        bz_choice c = bz_predictor_choice(whole, gpu, kind);
        bz_buf_printf(out, "%s%s ", bz_way_name(c.way), c.validated ? "" : "?");
    }
    say_networks(s, without, out);
    say_order(s, out);
    for (int m = 0; m < s->machines; m++)
        bz_predictor_free(without[m].predictor);
    bz_predictor_free(whole);
}

static void say(const char *name, seen *out)
{
    bool gpu = *name == 'g';
    bz_samples s;
    void *folder;
    char path[4200];
    assert_int_equal(make_folder(&folder), 0);
    snprintf(path, sizeof path, "%s/db", (const char *)folder);
    bz_perfdb *db;
    assert_ok(bz_perfdb_open(&db, path, &(bz_perfdb_options){0}, &err));
    put_records(db, gpu, (unsigned)atoi(name + 4));
    assert_ok(bz_samples_load(db, &(bz_setting){1, BZ_CACHE_HOT, ""}, NULL, &s, &err));
    out->tried = SYSTEMS;
    out->taken = s.machines;
    for (int i = 0; i < s.n * s.machines; i++)
        bz_buf_printf(&out->text, " %.5g", s.log[i]);
    if (s.machines > 2)
        say_samples(&s, gpu, &out->text);
    bz_samples_free(&s);
    bz_perfdb_close(db);
    remove_folder(&folder);
}

int main(int argc, char **argv)
{
    static char name[2 * SEEDS][16];
    const char *names[2 * SEEDS];
    make_problems();
    for (int i = 0; i < 2 * SEEDS; i++) {
        snprintf(name[i], sizeof *name, "%s-%d", i % 2 ? "cpu" : "gpu", i / 2);
        names[i] = name[i];
    }
    int wrong = seen_main(argc, argv, names, 2 * SEEDS, say, BENANZA_SOURCE "/tests/unit/predict_generated.txt");
    bz_buf_free(&warnings);
    return wrong;
}
