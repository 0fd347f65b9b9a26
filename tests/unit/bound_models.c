/* Bounds of the bundled models by records that are made up: several variants of most problems, some that failed, were marked, or are of another
 * origin, some missing. bound_models.txt has a hash of all that each bound says (seen.h): here is noticed that something changed. What is right
 * the definitions in bound_*.c say, and conformance_bound_oracle. */
#include "bound/bound.h"
#include "tests/unit/perfdb_test.h"

#include "generator_say.h"
#include "seen.h"

#define SYSTEM "epyc@onednn2.6.3"

static const bz_setting SETTING = {1, BZ_CACHE_HOT, ""};

static const char DETAILS[] =
    "{\"measured\":{\"threads\":1,\"yardstick\":1e-5,\"flops\":{\"f32\":1e11,\"bf16\":2e11},\"reorder\":{\"f32\":1e9},"
    "\"bandwidth\":[{\"bytes\":8192,\"read\":9e10,\"copy\":4e10,\"copy_cold\":1e10},"
    "{\"bytes\":4194304,\"read\":4e10,\"copy\":2e10,\"copy_cold\":1e10},"
    "{\"bytes\":268435456,\"read\":2e10,\"copy\":1e10,\"copy_cold\":1e10}]}}";

/* Below `below`; another for each problem and use of it, the same in each run. */
static unsigned drawn(const bz_hash *h, int use, unsigned below)
{
    return (unsigned)((h->low >> use) ^ (h->high >> (use + 7))) % below;
}

/* Records of one variant. What is drawn decides what is true of it. */
static void make_record(const bz_plan_problem *p, const bz_plan_family *f, int which, bz_record *r)
{
    static const bz_record_status FAILED[] = {BZ_RECORD_UNSUPPORTED, BZ_RECORD_FAILED, BZ_RECORD_CRASHED,
                                              BZ_RECORD_DROPPED};
    static const char *const ALGORITHM[] = {"jit:avx2", "ref:any", "gemm:jit", "brgconv"};
    static const char *const META[] = {"", "{\"yardstick\":[1.1e-5,1.2e-5]}", "{\"yardstick\":[1e-5,1.05e-5]}",
                                       "{\"kernel_time\":1e-6}"};
    bz_hash h = bz_hash_bytes(p->text, strlen(p->text));
    h.low += (uint64_t)which * 0x9e3779b97f4a7c15u + (uint64_t)strlen(f->backend) + (uint64_t)*f->layout;
    *r = bz_record_blank();
    r->system = SYSTEM;
    r->problem = p->text;
    r->variant = (bz_variant){f->backend, ALGORITHM[which], f->layout, f->math};
    r->setting = SETTING;
    r->status = drawn(&h, 3, 5) ? BZ_RECORD_OK : FAILED[drawn(&h, 5, 4)];
    r->date = 1000 + (int64_t)drawn(&h, 9, 1000);
    r->reason = r->status == BZ_RECORD_OK ? "" : "made up";
    r->meta = META[drawn(&h, 11, 4)];
    r->checked = drawn(&h, 13, 9) ? "ok" : "skipped";
    r->variants = 3;
    if (r->status != BZ_RECORD_OK)
        return;
    r->median = bz_problem_bytes(p->problem) / 1e10 * (1 + drawn(&h, 17, 100) / 64.0) + 1e-6;
    r->low = r->median * (1 - drawn(&h, 19, 4) / 128.0);
    r->high = r->median * (1 + drawn(&h, 23, 4) / 128.0);
    r->launch = drawn(&h, 29, 3) ? 2e-6 : NAN;
    r->n = 10;
    r->iterations = 100;
    r->noisy = !drawn(&h, 31, 6);
    r->throttled = !drawn(&h, 33, 11);
    r->busy = !drawn(&h, 37, 9);
    r->chosen = !drawn(&h, 39, 3);
    r->timing = (bz_record_timing)drawn(&h, 41, 4);
    r->provenance = drawn(&h, 43, 8) ? BZ_PROVENANCE_MEASURED : BZ_PROVENANCE_IMPORTED;
}

static void store(bz_perfdb *db, const bz_plan *plan)
{
    const bz_plan_problem *p;
    int n = bz_plan_problems(plan, &p);
    size_t made = 0;
    bz_record *r = bz_alloc((size_t)n * BZ_PLAN_FAMILIES * 4, sizeof *r);
    for (int i = 0; i < n; i++) {
        bz_hash h = bz_hash_bytes(p[i].text, strlen(p[i].text));
        int variants = drawn(&h, 1, 7) ? 1 + (int)drawn(&h, 2, 3) : 0; /* of one problem in seven none */
        for (int f = 0; f < p[i].n_families; f++)
            for (int which = 0; which < variants; which++, made++) {
                make_record(&p[i], &p[i].family[f], which, &r[made]);
                if (!which) { /* measured before, too */
                    r[made + 1] = r[made];
                    r[made++].date -= 500;
                }
            }
    }
    assert_ok(bz_perfdb_put(db, r, made, NULL, &err));
    free(r);
}

static void say_price(const bz_layer_price *p, bz_buf *out)
{
    bz_buf_printf(out, " %.6g %.6g..%.6g launch %.6g %d%d%d%d missing %d %d\n", p->seconds, p->low, p->high, p->launch,
                  (int)p->provenance, p->noisy, p->reference, p->predicted, p->missing, p->refused);
}

static void say_layers(const bz_bound *b, bz_buf *out)
{
    for (int i = 0; i < b->n; i++) {
        const bz_bound_layer *l = &b->layer[i];
        bz_buf_printf(out, "%s at %d, %g times, '%s' then %.6g '%s', roof %.6g %d%d%d", l->layer->key, l->node,
                      l->times, l->variant ? l->variant : "", l->runner_up,
                      l->runner_up_variant ? l->runner_up_variant : "", l->hardware, l->memory, l->floor,
                      bz_bound_contradicts(l));
        say_price(&l->price, out);
    }
}

static void say_fused(const bz_bound_fused *f, bz_buf *out)
{
    bz_buf_printf(out, "fused %.6g %.6g %.6g, %d groups of %d, %d spare, %d %d %d %d %d\n", f->sequential, f->parallel,
                  f->hardware, f->n, f->covered, f->spares, f->modelled, f->unpriced, f->refused, f->missing,
                  f->failed);
    for (int i = 0; i < f->n; i++)
        bz_buf_printf(out, "group %s %d\n", f->group[i].pattern, f->group[i].layer[f->group[i].n - 1]);
    for (int i = 0; i < f->n_places; i++) {
        const bz_bound_place *p = &f->place[i];
        bz_buf_printf(out, "place %s %d..%d of %d, %d %d", p->pattern, p->layer[0], p->layer[p->n - 1], p->n,
                      p->refused, (int)p->spare);
        say_price(&p->price, out);
    }
}

static void say_bound(const bz_bound *b, bz_buf *out)
{
    const bz_coverage_sum *c = &b->coverage;
    const bz_goal goals[] = {bz_bound_goal(b), bz_bound_written(b)};
    bz_buf_printf(out, "%.6g, at once %.6g, roof %.6g, launch %.6g, above %d\n", b->sequential, b->path.seconds,
                  b->hardware, b->launch, b->above_roofline);
    bz_buf_printf(out, "%d: %d %d %d %d %d %d; %d %d %d %d; %d %d %d; %.9g %.9g %.9g %.9g %.9g\n", c->layers, c->free,
                  c->measured, c->imported, c->modelled, c->predicted, c->unpriced, c->noisy, c->floor, c->missing,
                  c->reference, c->branches, c->loops, c->loops_open, c->macs, c->macs_measured, c->macs_imported,
                  c->macs_modelled, c->macs_unpriced);
    bz_buf_printf(out, "marks %d %d %d %d %d %.6g %.6g\n", b->marks.layers, b->marks.again, b->marks.restless,
                  b->marks.lasting, b->marks.varies, b->marks.slow, b->marks.above);
    for (int i = 0; i < b->streams.n; i++)
        bz_buf_printf(out, "%d streams %.6g\n", b->streams.at[i].k, b->streams.at[i].seconds);
    for (int i = 0; i < b->path.n; i++)
        bz_buf_printf(out, "%d ", b->path.node[i]);
    for (int i = 0; i < b->n_modules; i++)
        bz_buf_printf(out, "module of %d: %.6g %.6g in %d\n", b->module[i].cost.nodes, b->module[i].cost.sequential,
                      b->module[i].cost.parallel, b->module[i].within);
    for (int i = 0; i < 2; i++) {
        bz_buf_printf(out, "%s %.6g %.6g %.6g, %d of %d, %d%d%d ", goals[i].name, goals[i].sequential,
                      goals[i].parallel, goals[i].hardware, goals[i].unpriced, goals[i].layers, goals[i].modelled,
                      goals[i].products, goals[i].enough);
        bz_goal_print(&goals[i], out);
    }
    say_layers(b, out);
    say_fused(&b->fused, out);
}

static void say_picks(const bz_bound *b, const bz_picks *p, bz_buf *out)
{
    for (int i = 0; i < 2 * b->n + b->fused.n_places; i++) {
        const bz_pick *k = i < b->n ? &p->free[i] : i < 2 * b->n ? &p->plain[i - b->n] : &p->place[i - 2 * b->n];
        bz_buf_printf(out, "%.6g %.6g..%.6g cold %.6g %.9g %.9g %d %s\n", k->seconds, k->low, k->high, k->cold,
                      k->weights, k->data, k->calls, k->variant ? k->variant : "");
    }
}

/* What layers and groups are lowered to, and how a group's call takes its layers along. */
static void say_plan(const bz_plan *plan, bz_buf *out)
{
    const bz_plan_layer *l;
    const bz_plan_place *place;
    int n = bz_plan_layers(plan, &l), places = bz_plan_places(plan, 0, &place);
    for (int i = 0; i < places; i++)
        say_taken(l, place, i, out);
    for (int i = 0; i < n; i++) {
        bz_buf_printf(out, "%s %s %s x %lld\n", l[i].file, l[i].pattern ? l[i].pattern : "", l[i].key,
                      (long long)l[i].count);
        for (int a = 0; a < l[i].lowering.n; a++) {
            const bz_alternative *way = &l[i].lowering.alternative[a];
            for (int k = 0; k < way->n; k++)
                bz_buf_printf(out, "  %d%d %d %s\n", way->modelled, way->fallback, bz_plan_offers(plan, way),
                              way->text[k]);
        }
    }
}

static void say(const char *name, bz_dtype dtype, bz_buf *out)
{
    char *folder;
    bz_arena arena = {0};
    bz_models m = {0};
    bz_patterns *patterns = NULL;
    const bz_system *system;
    bz_prices *prices;
    bz_peaks peaks;
    bz_bound b;
    bz_picks picks;
    assert_ok(make_folder((void **)&folder));
    bz_perfdb *db = open_with(folder, (bz_perfdb_options){0});
    const char *path = bz_arena_printf(&arena, "%s/models/%s.onnx", BENANZA_SOURCE, name);
    assert_ok(bz_models_load(&path, 1, &(bz_infer_options){0}, &m, &err));
    assert_ok(bz_patterns_load(NULL, &patterns, &err));
    bz_plan *plan = bz_plan_of(&(bz_plan_options){.dtype = dtype, .patterns = patterns}, m.layers, m.name, 1);
    say_plan(plan, out);
    store(db, plan);
    assert_ok(bz_perfdb_put_system(db, SYSTEM, DETAILS, 2000, &err));
    assert_ok(bz_perfdb_system(db, SYSTEM, &system, &err));
    assert_ok(bz_prices_load(plan, db, system, &SETTING, &arena, &prices, &err));
    const bz_system_facts *facts = bz_system_facts_read(system->details, &arena);
    bz_peaks_read(facts, &SETTING, &arena, &peaks);
    bz_bound_make(&(bz_bound_input){.model = name,
                                    .system = SYSTEM,
                                    .facts = facts,
                                    .setting = SETTING,
                                    .dtype = dtype,
                                    .layers = m.layers[0],
                                    .plan = plan,
                                    .fused = true,
                                    .prices = prices,
                                    .peaks = &peaks},
                  &arena, &b);
    assert_ok(bz_bound_marks_make(&b, prices, db, system, &arena, &err));
    assert_ok(bz_picks_make(&b, BZ_UNDEFINED, false, db, system, &arena, &picks, &err));
    say_bound(&b, out);
    say_picks(&b, &picks, out);
    bz_plan_free(plan);
    bz_patterns_free(patterns);
    bz_models_free(&m);
    bz_arena_free(&arena);
    bz_perfdb_close(db);
    assert_ok(remove_folder((void **)&folder));
}

static void say_all(const char *name, seen *s)
{
    say(name, BZ_UNDEFINED, &s->text);
    say(name, BZ_BF16, &s->text);
    s->tried = s->taken = 2;
}

int main(int argc, char **argv)
{
    static const char *const MODELS[] = {"resnet18", "mobilenet_v3_large", "googlenet", "lstm", "bert_base", "swin_t"};
    return seen_main(argc, argv, MODELS, sizeof MODELS / sizeof *MODELS, say_all,
                     BENANZA_SOURCE "/tests/unit/bound_models.txt");
}
