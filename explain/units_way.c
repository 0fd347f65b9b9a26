/* A model another way: which layers go that way, and what the conversions between them and the others cost.
 *
 * Every layer is labelled: as asked, or the other way. A tensor whose producer and a reader are labelled
 * differently is converted once; the model's own inputs and outputs stay as asked. The cheapest labelling is a
 * minimum cut; from two starts, labels are turned one by one while that saves something, which finds it on
 * chains of products, where all layers gain or none. It is never dearer than all as asked. */
#include "bound/cover.h"
#include "explain/constants.h"
#include "explain/units.h"

#include <math.h>
#include <string.h>

enum { ASKED, OTHER };

typedef struct conversion {
    double seconds;
    bool needed, modelled;
} conversion;

typedef struct labelling {
    const bz_bound *b;
    const bz_unit_try *other;
    bz_perfdb *db;
    const bz_system *system;
    bz_arena *arena;
    int n;
    const double *cost[2];   /* [n]: as asked, the other way; NAN unknown */
    conversion *out[2], *in; /* [n]: of a layer's result, from the label; of the model's input that it reads */
    bz_edges reader;
    unsigned char *label; /* [n] */
    int *differ;          /* [n]: readers labelled otherwise */
    bz_map known;         /* conversions looked up */
    conversion *price;
    int n_prices;
} labelling;

static bool is_real(bz_dtype t)
{
    return t == BZ_F32 || t == BZ_F16 || t == BZ_BF16 || t == BZ_F64;
}

/* The problem of a tensor's conversion from a label; false where both are the same to it. */
static bool reorder(const labelling *l, const bz_type *type, int from, bz_problem *p)
{
    bz_dtype asked = l->b->dtype && is_real(type->dtype) ? l->b->dtype : type->dtype;
    bz_dtype there = l->other->dtype && is_real(type->dtype) ? l->other->dtype : asked;
    bool space = l->other->layout && !strcmp(l->other->layout, "nhwc") && type->rank >= 3 && type->rank <= 5;
    bz_error err;
    *p = (bz_problem){.kind = BZ_PROBLEM_REORDER};
    if (type->kind != BZ_TYPE_TENSOR || type->rank < 1 || type->rank > BZ_PROBLEM_RANK || bz_type_elements(type) <= 0 ||
        (asked == there && !space))
        return false;
    for (int i = 0; i < type->rank; i++)
        p->reorder.x[i] = type->dims[i];
    p->dtype = p->dtype_w = from == ASKED ? asked : there;
    p->dtype_y = from == ASKED ? there : asked;
    p->reorder.from = space && from == OTHER ? BZ_LAYOUT_NHWC : BZ_LAYOUT_PLAIN;
    p->reorder.to = space && from == ASKED ? BZ_LAYOUT_NHWC : BZ_LAYOUT_PLAIN;
    p->reorder.scale = there == BZ_U8 && asked != there ? 16 : 1;
    return !bz_problem_normalize(p, &err);
}

/* Caches whose rate no data sheet tells take no time in a roofline; here they take the memory's. */
static double copy_time(const bz_peaks *peaks, double bytes)
{
    double seconds = bz_peaks_traffic(peaks, bytes);
    return seconds > 0 ? seconds : bytes / peaks->bandwidth[peaks->n_bandwidth - 1].rate;
}

static int look_up(labelling *l, const char *text, const bz_problem *p, conversion *out, bz_error *err)
{
    bz_record *r;
    size_t n;
    *out = (conversion){.seconds = NAN, .needed = true};
    if (l->db && bz_perfdb_variants(l->db, l->system, text, l->arena, &r, &n, err))
        return -1;
    for (size_t i = 0; l->db && i < n; i++)
        if (r[i].status == BZ_RECORD_OK && r[i].median > 0 && r[i].setting.threads == l->b->setting.threads &&
            r[i].setting.cache == l->b->setting.cache && !(out->seconds <= bz_record_busy(&r[i])))
            out->seconds = bz_record_busy(&r[i]);
    if (!isfinite(out->seconds) && !l->b->peaks->why) {
        out->seconds = copy_time(l->b->peaks, bz_problem_bytes(p));
        out->modelled = true;
    }
    out->seconds = bz_tick(out->seconds);
    return 0;
}

/* What a tensor's conversion costs: 0 where there is none, NAN where nobody knows. */
static int convert(labelling *l, const bz_type *type, int from, conversion *out, bz_error *err)
{
    bz_problem p;
    BZ_SCOPED(bz_buf) text = {0};
    *out = (conversion){0};
    if (!reorder(l, type, from, &p))
        return 0;
    bz_problem_print(&p, &text);
    uint32_t at = bz_map_number(&l->known, l->arena, text.data, text.len);
    int rc = 0;
    if (at == (uint32_t)l->n_prices) {
        BZ_ARENA_ROOM(l->arena, l->price, at);
        rc = look_up(l, text.data, &p, &l->price[l->n_prices++], err);
    }
    *out = l->price[at];
    return rc;
}

static int price_conversions(labelling *l, bz_error *err)
{
    const bz_dag *dag = l->b->dag;
    for (int i = 0; i < l->n; i++) {
        const bz_layer *layer = &l->b->layers->layer[i];
        if (layer->class == BZ_CONSTANT)
            continue; /* converted once, before anything runs */
        for (int from = ASKED; from <= OTHER && layer->n_out; from++)
            if (convert(l, &layer->out[0], from, &l->out[from][i], err))
                return -1;
        if (dag->first[i] == dag->first[i + 1] && layer->n_in && !layer->in_constant[0] &&
            convert(l, &layer->in[0], ASKED, &l->in[i], err))
            return -1;
    }
    return 0;
}

static int readers(const labelling *l, int i)
{
    return l->reader.first[i + 1] - l->reader.first[i];
}

static double known(conversion c)
{
    return isfinite(c.seconds) ? c.seconds : 0;
}

/* What is spent on a layer's result and input, with this label and so many readers labelled otherwise. */
static double spent(const labelling *l, int i, int label, int differ)
{
    bool leaves = readers(l, i) ? differ > 0 : label == OTHER;
    return (leaves ? known(l->out[label][i]) : 0) + (label == OTHER ? known(l->in[i]) : 0);
}

static double cost_of(const labelling *l, int i, int label)
{
    return isfinite(l->cost[label][i]) ? l->cost[label][i] : 0;
}

/* What turning a layer's label would change. */
static double turned(const labelling *l, int i)
{
    const bz_dag *dag = l->b->dag;
    int from = l->label[i], to = !from;
    double change = cost_of(l, i, to) - cost_of(l, i, from) + spent(l, i, to, readers(l, i) - l->differ[i]) -
                    spent(l, i, from, l->differ[i]);
    for (int p = dag->first[i]; p < dag->first[i + 1]; p++) {
        int q = dag->pred[p], label = l->label[q];
        change += spent(l, q, label, l->differ[q] + (label == to ? -1 : 1)) - spent(l, q, label, l->differ[q]);
    }
    return change;
}

static void turn(labelling *l, int i)
{
    const bz_dag *dag = l->b->dag;
    l->label[i] = !l->label[i];
    l->differ[i] = readers(l, i) - l->differ[i];
    for (int p = dag->first[i]; p < dag->first[i + 1]; p++)
        l->differ[dag->pred[p]] += l->label[dag->pred[p]] == l->label[i] ? -1 : 1;
}

/* A layer that nobody can price, whichever way, goes with its neighbours. */
static bool is_open(const labelling *l, int i)
{
    return !isfinite(l->cost[OTHER][i]) == !isfinite(l->cost[ASKED][i]);
}

static void count_differing(labelling *l)
{
    for (int i = 0; i < l->n; i++) {
        l->differ[i] = 0;
        for (int r = l->reader.first[i]; r < l->reader.first[i + 1]; r++)
            l->differ[i] += l->label[l->reader.to[r]] != l->label[i];
    }
}

static void improve(labelling *l)
{
    bool any = true;
    for (int sweep = 0; sweep < LAYOUT_SWEEPS && any; sweep++) {
        any = false;
        for (int k = 0; k < l->n; k++) {
            int i = sweep % 2 ? k : l->n - 1 - k;
            if (is_open(l, i) && turned(l, i) < 0) {
                turn(l, i);
                any = true;
            }
        }
    }
}

static double total(const labelling *l)
{
    double sum = 0;
    for (int i = 0; i < l->n; i++)
        sum += cost_of(l, i, l->label[i]) + spent(l, i, l->label[i], l->differ[i]);
    return sum;
}

/* The better of two starts: whatever can goes the other way; or what gains by it alone. */
static void choose_labels(labelling *l)
{
    double best = INFINITY;
    unsigned char *chosen = BZ_NEW(l->arena, unsigned char, l->n);
    for (int start = 0; start < 3; start++) {
        for (int i = 0; i < l->n; i++)
            l->label[i] = (start < 2 && is_open(l, i) && (!start || l->cost[OTHER][i] < l->cost[ASKED][i]));
        count_differing(l);
        if (l->other->layout) /* told for comparison: all that can */
            return;
        if (start < 2)
            improve(l);
        double sum = total(l);
        if (sum < best) {
            best = sum;
            memcpy(chosen, l->label, (size_t)l->n);
        }
    }
    memcpy(l->label, chosen, (size_t)l->n);
    count_differing(l);
}

static void count_conversion(const conversion *c, bz_unit_way *w)
{
    if (!c->needed)
        return;
    w->converted++;
    w->modelled += c->modelled;
    w->open += !isfinite(c->seconds);
    w->conversions += known(*c);
}

/* With groups whose layers all go the same way; layers that cost nothing go with the others. */
static void cover(const labelling *l, const double *seconds, const double *extra, bz_unit_way *w)
{
    const bz_bound_fused *f[2] = {&l->b->fused, &l->other->bound->fused};
    bz_path path;
    w->fused = w->fused_parallel = NAN;
    if (!f[0]->wanted || f[0]->n_places != f[1]->n_places)
        return;
    double *place = BZ_NEW(l->arena, double, f[0]->n_places), *at = BZ_NEW(l->arena, double, l->n);
    bool *taken = BZ_NEW(l->arena, bool, f[0]->n_places);
    for (int g = 0; g < f[0]->n_places; g++) {
        const bz_bound_place *p = &f[0]->place[g];
        bool some[2] = {false, false};
        for (int i = 0; i < p->n; i++)
            if (!(l->cost[0][p->layer[i]] == 0 && l->cost[1][p->layer[i]] == 0))
                some[l->label[p->layer[i]]] = true;
        const bz_layer_price *price = &f[some[OTHER]]->place[g].price;
        place[g] = (price->alternative || p->spare) && !(some[ASKED] && some[OTHER]) ? price->seconds : NAN;
    }
    w->fused = bz_bound_cover(l->b, seconds, place, taken, at) + w->conversions;
    for (int i = 0; i < l->n; i++)
        at[i] += extra[i];
    bz_schedule_parallel(l->b->dag, at, l->arena, &path);
    w->fused_parallel = path.seconds;
}

static void sum(labelling *l, bz_unit_way *w)
{
    double *seconds = BZ_NEW(l->arena, double, l->n), *extra = BZ_NEW(l->arena, double, l->n);
    double *at = BZ_NEW(l->arena, double, l->n);
    bz_path path;
    for (int i = 0; i < l->n; i++) {
        int label = l->label[i];
        seconds[i] = cost_of(l, i, label);
        extra[i] = spent(l, i, label, l->differ[i]);
        at[i] = seconds[i] + extra[i];
        w->unknown += !is_open(l, i);
        w->layers += label == OTHER && l->cost[OTHER][i] < l->cost[ASKED][i];
        if (readers(l, i) ? l->differ[i] > 0 : label == OTHER)
            count_conversion(&l->out[label][i], w);
        if (label == OTHER)
            count_conversion(&l->in[i], w);
    }
    w->sequential = bz_schedule_sequential(at, l->n);
    bz_schedule_parallel(l->b->dag, at, l->arena, &path);
    w->parallel = path.seconds;
    cover(l, seconds, extra, w);
    bz_goal goal = bz_bound_goal(l->b);
    w->gain = goal.enough ? goal.sequential - (isfinite(w->fused) ? w->fused : w->sequential) : NAN;
    if (!bz_bound_written(l->other->bound).products) /* sums would tell what the few products with a record gain */
        w->sequential = w->parallel = w->fused = w->fused_parallel = w->gain = NAN;
}

int bz_unit_way_make(const bz_bound *bound, const bz_unit_try *other, bz_perfdb *db, const bz_system *system,
                     bz_arena *arena, bz_unit_way *out, bz_error *err)
{
    int n = bound->dag->n;
    BZ_SCOPED(bz_arena) work = {0};
    labelling l = {.b = bound, .other = other, .db = db, .system = system, .arena = &work, .n = n};
    *out = (bz_unit_way){.name = bz_arena_str(arena, other->name),
                         .layout = other->layout,
                         .calibrated = other->calibrated,
                         .seconds = bz_bound_seconds(other->bound, arena)};
    l.cost[ASKED] = bz_bound_seconds(bound, &work);
    l.cost[OTHER] = out->seconds;
    l.out[ASKED] = BZ_NEW(&work, conversion, n);
    l.out[OTHER] = BZ_NEW(&work, conversion, n);
    l.in = BZ_NEW(&work, conversion, n);
    l.label = BZ_NEW(&work, unsigned char, n);
    l.differ = BZ_NEW(&work, int, n);
    int rc = price_conversions(&l, err);
    if (!rc) {
        l.reader = bz_dag_successors(bound->dag, &work);
        choose_labels(&l);
        sum(&l, out);
    }
    bz_map_free(&l.known);
    return rc;
}
