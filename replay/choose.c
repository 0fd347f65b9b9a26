/* Variants for the calls of a plan: by the records, and so that conversions between their layouts pay. */
#include "replay/bind.h"

#include "replay/constants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How the data of a variant lies: by its layout, and where that is the library's choice by what its implementations take.
 * What does not hold shows when the program runs: it converts where it has to, and says so. */
static bz_laid laid_of(const bz_problem *p, const char *layout, const char *algorithm)
{
    static const struct {
        const char *algorithm;
        bz_laid laid;
    } IMPLEMENTATIONS[] = {{"brg", BZ_LAID_NHWC}, {"gemm", BZ_LAID_PLAIN}, {"ref", BZ_LAID_PLAIN}};
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, operand), rank = operand[n - 1].rank;
    if (bz_problem_is_matrix(p) || rank < 3 || rank > 5 || bz_problem_has(p, BZ_TRAIT_RECURRENT))
        return BZ_LAID_PLAIN;
    if (!strcmp(layout, "nhwc"))
        return BZ_LAID_NHWC;
    if (strcmp(layout, "any") != 0)
        return BZ_LAID_PLAIN;
    bool chooses = bz_problem_has(p, BZ_TRAIT_CONVOLUTION);
    for (size_t i = 0; chooses && i < sizeof IMPLEMENTATIONS / sizeof *IMPLEMENTATIONS; i++)
        if (!strncmp(algorithm, IMPLEMENTATIONS[i].algorithm, strlen(IMPLEMENTATIONS[i].algorithm)))
            return IMPLEMENTATIONS[i].laid;
    return BZ_LAID_BLOCKED;
}

/* The cheapest of each layout in which data lies. */
static void add_option(bz_replay_choice *c, const bz_replay_option *o)
{
    for (int i = 0; i < c->n; i++)
        if (c->option[i].laid == o->laid) {
            if (o->seconds < c->option[i].seconds)
                c->option[i] = *o;
            return;
        }
    if (c->n < BZ_REPLAY_OPTIONS)
        c->option[c->n++] = *o;
}

/* A program runs on the processor or on one device. */
static bool runs_there(const bz_replay_input *in, const char *backend)
{
    return bz_backend_is_on(backend, in->device);
}

static bool can_replay(const bz_record *r, const bz_replay_input *in)
{
    return runs_there(in, r->variant.backend) && r->status == BZ_RECORD_OK && r->median > 0 &&
           !strcmp(r->variant.math, "default") && bz_setting_same(&r->setting, &in->setting);
}

/* Who of the processor is asked for problems of this kind. */
static void who_runs(const bz_problem *p, bool *ours, bool *library)
{
    *ours = *library = false;
    for (const bz_backend_row *b = bz_backends; b->name; b++)
        for (const bz_backend_family *f = b->family; f->kinds && !b->device; f++)
            if (bz_has_word(f->kinds, bz_problem_kind_name(p->kind)))
                *(strcmp(b->name, "loops") ? library : ours) = true;
}

/* What no library of the processor has, but our loops do; and of training all that they do, since a library may lack the
 * gradient of a function. */
static bool is_ours(const bz_problem *p)
{
    bool ours, library;
    who_runs(p, &ours, &library);
    return ours && (!library || bind_is_training(p));
}

bool replay_runs_here(const bz_problem *p)
{
    bool ours, library;
    who_runs(p, &ours, &library);
    return ours || library;
}

/* Values for each channel, or one for all: what oneDNN computes quickly whatever the shape. Others it may leave to its reference code: 26 ms for
 * 600,000 numbers by one for each image of a batch, which a loop of ours does in 0.06. */
static bool is_along_channels(const bz_problem *p)
{
    int64_t images = p->binary.b[0] ? p->binary.b[0] : 1, channels = p->binary.b[1] ? p->binary.b[1] : 1;
    return bz_extent_count(p->binary.b) == images * channels && (channels > 1 || images == 1);
}

double replay_guess(const bz_problem *p)
{
    return GUESS_LAUNCH + bz_problem_bytes(p) / CORE_BYTES + bz_problem_flops(p) / CORE_FLOPS;
}

/* Without a record: the library's own choice in each layout, priced by what it must move and compute. Channels last before the library's choice,
 * which may lie in any way: what converts is known before the program is built. Element-wise work takes as long in any layout, and follows. */
static void add_guesses(const bz_replay_input *in, const bz_problem *p, bz_replay_choice *c)
{
    static const struct {
        const char *backend, *layout;
        double factor;
    } GUESSES[] = {{"onednn", "any", 1},
                   {"onednn", "nhwc", CHANNELS_LAST},
                   {"onednn", "plain", IN_ROWS},
                   {"memory", "plain", IN_ROWS}};
    static const bz_replay_option LOOPS = {"loops",       "", "plain", "default",
                                           BZ_LAID_PLAIN, 0,  0,       BZ_PROVENANCE_MODELLED};
    double seconds = replay_guess(p);
    bool blocks = bz_problem_has(p, BZ_TRAIT_CONVOLUTION), copy = bz_problem_has(p, BZ_TRAIT_BYTES);
    bool spatial = laid_of(p, "nhwc", "") == BZ_LAID_NHWC;
    bool recurrent = bz_problem_has(p, BZ_TRAIT_RECURRENT) && bz_problem_has(p, BZ_TRAIT_GRADIENT);
    bool broadcasts = p->kind == BZ_PROBLEM_BINARY && bz_extent_count(p->binary.a) != bz_extent_count(p->binary.b);
    bool fixed = p->kind == BZ_PROBLEM_LAYERNORM || p->kind == BZ_PROBLEM_TRANSPOSE || p->kind == BZ_PROBLEM_REORDER ||
                 p->kind == BZ_PROBLEM_GROUPNORM;
    bool elementwise = p->kind == BZ_PROBLEM_BINARY || p->kind == BZ_PROBLEM_ACTIVATION;
    bool ours = is_ours(p);
    if ((ours || (broadcasts && !is_along_channels(p))) && bz_plan_allows(in->plan, p, "loops", NULL)) {
        c->option[c->n] = LOOPS;
        c->option[c->n++].seconds = seconds * IN_ROWS;
        return;
    }
    if (ours)
        return; /* loops are not among the backends that were named */
    for (int i = 0; i < 4; i++) {
        bool plain = !strcmp(GUESSES[i].layout, "plain"), memory = !strcmp(GUESSES[i].backend, "memory");
        if (memory != copy || (broadcasts && !strcmp(GUESSES[i].layout, "any")) || (!plain && (fixed || !spatial)) ||
            !bz_plan_allows(in->plan, p, GUESSES[i].backend, GUESSES[i].layout))
            continue;
        add_option(c, &(bz_replay_option){
                          .backend = GUESSES[i].backend,
                          .algorithm = "",
                          .layout = plain && (blocks || p->kind == BZ_PROBLEM_GEMM || recurrent) ? "packed"
                                                                                                 : GUESSES[i].layout,
                          .math = "default",
                          .laid = laid_of(p, GUESSES[i].layout, ""),
                          .seconds = seconds * (blocks || (plain && !elementwise) ? GUESSES[i].factor : 1),
                          .provenance = BZ_PROVENANCE_MODELLED,
                      });
    }
    if (!c->n && !copy && bz_plan_allows(in->plan, p, "onednn", NULL))
        c->option[c->n++] =
            (bz_replay_option){"onednn", "", "plain", "default", BZ_LAID_PLAIN, seconds, 0, BZ_PROVENANCE_MODELLED};
}

/* Whether cuBLASLt does all that follows the product. */
static bool is_epilogue(const bz_problem *p)
{
    for (int i = 0; p->post[i].fn; i++)
        if (p->post[i].fn != BZ_FN_BIAS && p->post[i].fn != BZ_FN_ADD && p->post[i].fn != BZ_FN_RELU &&
            p->post[i].fn != BZ_FN_GELU_TANH)
            return false;
    return true;
}

/* On a device, of the families that are planned for: products by cuBLAS, 16 bits channels last. */
static void add_device_guesses(const bz_replay_input *in, const bz_problem *p, bz_replay_choice *c)
{
    const bz_plan_problem *planned = bz_plan_find_problem(in->plan, c->text);
    double seconds = GUESS_LAUNCH + bz_problem_bytes(p) / DEVICE_BYTES + bz_problem_flops(p) / DEVICE_FLOPS;
    for (int f = 0; planned && f < planned->n_families; f++) {
        const bz_plan_family *family = &planned->family[f];
        bool product = bz_problem_is_matrix(p), blas = !strcmp(family->backend, "cublas");
        if (strcmp(family->math, "default") != 0 || !runs_there(in, family->backend))
            continue;
        double factor = product && (blas != is_epilogue(p)) ? OTHER_FAMILY : 1;
        if (!strcmp(family->layout, "nhwc"))
            factor = bz_dtype_bits(p->dtype) <= 16 ? DEVICE_CHANNELS_LAST_16 : DEVICE_CHANNELS_LAST;
        add_option(c, &(bz_replay_option){
                          .backend = family->backend,
                          .algorithm = "",
                          .layout = family->layout,
                          .math = "default",
                          .laid = laid_of(p, family->layout, ""),
                          .seconds = seconds * factor,
                          .provenance = BZ_PROVENANCE_MODELLED,
                      });
    }
}

/* A step may be a problem that the plan has not. */
static int find_records(bz_replay_plan *p, const bz_replay_input *in, const char *text, const bz_record **records,
                        size_t *n, bz_error *err)
{
    bz_record *own = NULL;
    *records = NULL, *n = 0;
    if ((in->prices && bz_prices_records(in->prices, text, records, n)) || !in->db || !in->system)
        return 0;
    int rc = bz_perfdb_variants(in->db, in->system, text, &p->arena, &own, n, err);
    *records = own;
    return rc;
}

static int find_options(bz_replay_plan *p, const bz_replay_input *in, const bz_problem *problem, bz_replay_choice *c,
                        bz_error *err)
{
    const bz_record *records;
    size_t n;
    if (find_records(p, in, c->text, &records, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        const bz_record *r = &records[i];
        if (!can_replay(r, in) || !bz_plan_allows(in->plan, problem, r->variant.backend, r->variant.layout))
            continue;
        add_option(c, &(bz_replay_option){
                          .backend = r->variant.backend,
                          .algorithm = r->variant.algorithm,
                          .layout = r->variant.layout,
                          .math = r->variant.math,
                          .laid = laid_of(problem, r->variant.layout, r->variant.algorithm),
                          .seconds = r->median,
                          .launch = isfinite(r->launch) ? r->launch : 0,
                          .provenance = r->provenance,
                      });
    }
    if (!c->n)
        (in->device ? add_device_guesses : add_guesses)(in, problem, c);
    return c->n ? 0 : bz_fail(err, BZ_INCOMPLETE, "no backend and layout of those that were named runs '%s'", c->text);
}

/* What the caches of a device move nobody knows: there all goes through its memory. */
static double copy_time(const bz_replay_input *in, double bytes)
{
    const bz_peaks *p = in->peaks;
    if (!p || !p->n_bandwidth)
        return bytes / (in->device ? DEVICE_BYTES : CORE_BYTES);
    return in->device ? bytes / p->bandwidth[p->n_bandwidth - 1].rate : bz_peaks_traffic(p, bytes);
}

/* By the record of the reorder where there is one, else by a copy of as many bytes. */
static double price_reorder(bz_replay_plan *p, const bz_replay_input *in, const bz_replay_value *v, int from, int to)
{
    static const bz_layout LAYOUTS[] = {BZ_LAYOUT_PLAIN, BZ_LAYOUT_NHWC, BZ_LAYOUT_BLOCKED};
    bz_problem r = {.kind = BZ_PROBLEM_REORDER,
                    .reorder = {.from = LAYOUTS[from], .to = LAYOUTS[to], .scale = 1},
                    .dtype = v->dtype};
    bz_error err;
    double best = NAN, bytes = 2 * (double)bz_extent_count(v->dim) * bz_dtype_bits(v->dtype) / 8;
    memcpy(r.reorder.x, v->dim, (size_t)v->rank * sizeof *v->dim);
    if (in->db && in->system && !bz_problem_normalize(&r, &err)) {
        BZ_SCOPED(bz_buf) text = {0};
        bz_record *records;
        size_t n = 0;
        bz_problem_print(&r, &text);
        if (!bz_perfdb_variants(in->db, in->system, bz_buf_text(&text), &p->arena, &records, &n, &err))
            for (size_t i = 0; i < n; i++)
                if (can_replay(&records[i], in))
                    best = fmin(best, records[i].median);
    }
    return isnan(best) ? GUESS_LAUNCH + copy_time(in, bytes) / CONVERTS : best;
}

/* Rows and channels last are one where there is one channel, or one place. */
static bool lies_alike(const bz_replay_value *v, int from, int to)
{
    return from == to || (from != BZ_LAID_BLOCKED && to != BZ_LAID_BLOCKED &&
                          (v->dim[1] == 1 || bz_extent_count(v->dim) == v->dim[0] * v->dim[1]));
}

typedef struct reorders {
    bz_map map; /* shape and type -> row */
    bz_label_value *row;
    int n;
    bz_arena arena;
} reorders;

/* Tensors of one shape have one row: models have few shapes. */
static const bz_label_value *price_tensor(reorders *all, bz_replay_plan *p, const bz_replay_input *in,
                                          const bz_replay_value *v)
{
    int64_t key[BZ_PROBLEM_RANK + 2] = {v->dtype, v->rank};
    memcpy(key + 2, v->dim, (size_t)v->rank * sizeof *v->dim);
    uint32_t k = bz_map_get(&all->map, key, sizeof key);
    if (k != BZ_MAP_NONE)
        return &all->row[k];
    BZ_ROOM(all->row, all->n);
    bz_label_value *t = &all->row[all->n];
    *t = (bz_label_value){0};
    for (int from = 0; from < BZ_LAID_N && v->rank >= 3 && v->rank <= 5; from++)
        for (int to = 0; to < BZ_LAID_N; to++)
            t->convert[from][to] = lies_alike(v, from, to) ? 0 : price_reorder(p, in, v, from, to);
    bz_map_add(&all->map, bz_arena_dup(&all->arena, key, sizeof key), sizeof key, (uint32_t)all->n);
    return &all->row[all->n++];
}

static bool is_constant(const bz_replay_plan *p, const bool *once, int v)
{
    return v < 0 || p->value[v].source == BZ_VALUE_STORED || p->value[v].source == BZ_VALUE_SEEDED || once[v];
}

/* In which layouts of a call oneDNN takes operand k in rows all the same: images of up to three channels by convolutions
 * in blocks, and what a binary operation broadcasts in every layout. */
static unsigned rows_of(const bz_problem *p, int k)
{
    enum { IMAGE_CHANNELS = 3 };
    if (p->kind == BZ_PROBLEM_BINARY && k == 1 && bz_extent_count(p->binary.a) != bz_extent_count(p->binary.b))
        return 1U << BZ_LAID_NHWC | 1U << BZ_LAID_BLOCKED;
    return p->kind == BZ_PROBLEM_CONV && k == 0 && p->conv.x[1] <= IMAGE_CHANNELS ? 1U << BZ_LAID_BLOCKED : 0;
}

static void describe_step(bz_replay_plan *p, const bool *once, int i, bz_label_step *t)
{
    const bz_replay_step *s = &p->step[i];
    const bz_replay_choice *c = &p->choice[i];
    int *in = BZ_NEW(&p->arena, int, s->n_in + 1);
    unsigned *plain = BZ_NEW(&p->arena, unsigned, s->n_in + 1);
    int *laid = BZ_NEW(&p->arena, int, c->n + 1);
    double *seconds = BZ_NEW(&p->arena, double, c->n + 1);
    *t = (bz_label_step){in, 0, s->once ? -1 : s->out, c->n, laid, seconds, plain};
    for (int k = 0; k < s->n_in && !s->once; k++)
        if (!is_constant(p, once, s->in[k])) {
            plain[t->n_in] = s->problem && !p->device ? rows_of(s->problem, k) : 0;
            in[t->n_in++] = s->in[k];
        }
    for (int o = 0; o < c->n; o++)
        laid[o] = c->option[o].laid, seconds[o] = c->option[o].seconds;
}

/* By the layouts that laid_of() takes the calls to have: the libraries may choose others when the program is built. */
static void price_plan(bz_replay_plan *p, const bz_label_step *step, const bz_label_value *tensor)
{
    unsigned *have = BZ_NEW(&p->arena, unsigned, p->n_values + 1);
    p->seconds = p->conversions = 0;
    p->modelled = p->n_conversions = 0;
    for (int i = 0; i < p->n_steps; i++) {
        bz_replay_choice *c = &p->choice[i];
        bz_laid laid = c->n ? c->option[c->taken].laid : BZ_LAID_PLAIN;
        c->conversion = 0;
        for (int k = 0; k < step[i].n_in; k++) {
            int reads = bz_labels_read(&step[i], k, (int)laid);
            unsigned *h = &have[step[i].in[k]];
            *h = *h ? *h : 1U << BZ_LAID_PLAIN;
            double best = INFINITY;
            for (int from = 0; from < BZ_LAID_N; from++)
                best = *h & 1U << from ? fmin(best, tensor[step[i].in[k]].convert[from][reads]) : best;
            if (*h & 1U << reads)
                continue;
            *h |= 1U << reads;
            c->conversion += best;
            p->n_conversions += best > 0;
        }
        if (step[i].out >= 0) {
            have[step[i].out] = 1U << laid;
            if (p->value[step[i].out].output && laid != BZ_LAID_PLAIN) { /* outputs go as rows */
                have[step[i].out] |= 1U << BZ_LAID_PLAIN;
                c->conversion += tensor[step[i].out].convert[laid][BZ_LAID_PLAIN];
                p->n_conversions += tensor[step[i].out].convert[laid][BZ_LAID_PLAIN] > 0;
            }
        }
        p->conversions += c->conversion;
        p->seconds += c->n ? c->option[c->taken].seconds : 0;
        p->modelled += c->n && c->option[c->taken].provenance == BZ_PROVENANCE_MODELLED;
    }
}

void replay_take(bz_replay_plan *p)
{
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_choice *c = &p->choice[i];
        if (p->step[i].kind != BZ_STEP_CALL || p->step[i].once)
            continue;
        const bz_replay_option *o = &c->option[c->taken];
        p->step[i].backend = o->backend, p->step[i].algorithm = o->algorithm;
        p->step[i].layout = o->layout, p->step[i].math = o->math;
    }
}

/* The layer of the whole model for each of a sequence's file; -1 of those that fill its constants. NULL where they are others. */
static const int *layers_in_whole(bz_replay_plan *p, const bz_replay_plan *whole, const bz_brick *k)
{
    int *layer = BZ_NEW(&p->arena, int, p->layers->n + 1), n = 0;
    for (int i = 0; i < p->layers->n; i++)
        layer[i] = p->layers->layer[i].class == BZ_CONSTANT || n == k->n ? -1 : k->layer[n++];
    return n == k->n && k->layers == whole->layers ? layer : NULL;
}

/* The next call of a unit that computes the same: constants may take other steps. */
static const bz_replay_choice *next_same(const bz_replay_plan *p, const bz_replay_unit *u, const char *text, int *at)
{
    for (int k = *at; k < u->n_steps; k++) {
        const bz_replay_choice *c = &p->choice[u->first + k];
        if (c->n && !strcmp(c->text, text)) {
            *at = k + 1;
            return c;
        }
    }
    return NULL;
}

void bz_replay_follow_whole(bz_replay_plan *p, const bz_replay_plan *whole, const bz_brick *k)
{
    const int *layer = layers_in_whole(p, whole, k);
    const bz_replay_unit **unit_of = BZ_NEW(&p->arena, const bz_replay_unit *, whole->layers->n + 1);
    for (int u = 0; u < whole->n_units; u++)
        for (int i = 0; i < whole->unit[u].n; i++)
            unit_of[whole->unit[u].layer[i]] = &whole->unit[u];
    for (int u = 0; u < p->n_units && layer; u++) {
        const bz_replay_unit *own = &p->unit[u];
        int first = own->n ? layer[own->layer[0]] : -1;
        const bz_replay_unit *there = first < 0 ? NULL : unit_of[first];
        int at = 0;
        for (int i = 0; there && there->n == own->n && i < own->n_steps; i++) {
            bz_replay_choice *c = &p->choice[own->first + i];
            const bz_replay_choice *taken = c->n ? next_same(whole, there, c->text, &at) : NULL;
            if (!taken)
                continue;
            c->option[0] = taken->option[taken->taken];
            c->n = 1, c->taken = 0;
        }
    }
    replay_take(p);
}

int replay_choose(bz_replay_plan *p, const bz_replay_input *in, bz_error *err)
{
    reorders all = {0};
    bz_label_step *step = BZ_NEW(&p->arena, bz_label_step, p->n_steps + 1);
    bz_label_value *tensor = BZ_NEW(&p->arena, bz_label_value, p->n_values + 1);
    bool *once = BZ_NEW(&p->arena, bool, p->n_values + 1);
    int *taken = BZ_NEW(&p->arena, int, p->n_steps + 1), rc = 0;
    p->choice = BZ_NEW(&p->arena, bz_replay_choice, p->n_steps + 1);
    for (int i = 0; i < p->n_steps; i++)
        if (p->step[i].once)
            once[p->step[i].out] = true;
    for (int i = 0; i < p->n_steps && !rc; i++) {
        if (p->step[i].kind == BZ_STEP_CALL) {
            bz_buf text = {0};
            bz_problem_print(p->step[i].problem, &text);
            p->choice[i].text = bz_buf_keep(&text, &p->arena);
            rc = p->step[i].once ? 0 : find_options(p, in, p->step[i].problem, &p->choice[i], err);
        }
        describe_step(p, once, i, &step[i]);
    }
    for (int i = 0; i < p->n_values && !rc; i++) {
        tensor[i] = *price_tensor(&all, p, in, &p->value[i]);
        tensor[i].outside =
            p->value[i].output || p->value[i].source == BZ_VALUE_INPUT || p->value[i].source == BZ_VALUE_KEPT;
        if (in->within && tensor[i].outside)
            memset(tensor[i].convert, 0, sizeof tensor[i].convert);
    }
    for (int i = 0; i < p->n_steps && !rc; i++)
        for (int k = 0; k < p->step[i].n_more;
             k++) /* in rows, most of them: nobody asks for another layout of these alone */
            tensor[p->step[i].more[k]].outside = true;
    if (!rc) {
        bz_labels_choose(step, p->n_steps, tensor, p->n_values, taken, &p->followed, &p->beam);
        for (int i = 0; i < p->n_steps; i++)
            p->choice[i].taken = taken[i];
        price_plan(p, step, tensor);
        replay_take(p);
    }
    bz_map_free(&all.map);
    free(all.row);
    bz_arena_free(&all.arena);
    return rc;
}
