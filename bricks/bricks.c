/* Models cut into sequences. */
#include "bricks/bricks.h"

#include "base/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP = 64 }; /* bytes of a constant that says how to compute: axes, shapes, bounds */

typedef struct cutter {
    bz_bricks *b;
    const bz_layers *layers;
    int *maker; /* [n_values]: the layer that makes it; -1: none, or a constant */
    int *layer; /* those that are cut, in order */
    int n;
    int *brick, *at, n_bricks;
    double *cut;
    bool *convolves; /* [layers->n]: the layer's sequence has a convolution */
    bz_buf key;
    bz_arena room;
} cutter;

/* Layers stand in ascending order: a whole model may have a million of them. */
static int place_in(const int *layer, int n, int wanted)
{
    int low = 0, high = n;
    BZ_FIND_FIRST(low, high, at, layer[at] < wanted);
    return low < n && layer[low] == wanted ? low : -1;
}

static bool is_alone(const bz_layer *l)
{
    return l->n_bodies > 0 || l->node->function >= 0;
}

static bool runs(const cutter *c, const int *layer, int n)
{
    for (int i = 0; i < n; i++) {
        const bz_layer *l = &c->layers->layer[layer[i]];
        bool inside = false;
        if (n > 1 && is_alone(l))
            return false;
        for (int k = 0; i && k < l->node->n_in; k++) {
            bz_value_id v = l->node->in[k];
            if (v == BZ_NO_VALUE || c->layers->constant[v])
                continue;
            if (place_in(layer, i, c->maker[v]) < 0)
                return false;
            inside = true;
        }
        if (i && !inside)
            return false;
    }
    return true;
}

/* "KEY; KEY 0=0; KEY 0=1": operand 0 of the second layer is what the first one makes. */
static void write_key(cutter *c, const int *layer, int n)
{
    bz_buf_clear(&c->key);
    for (int i = 0; i < n; i++) {
        const bz_layer *l = &c->layers->layer[layer[i]];
        bz_buf_puts(&c->key, i ? "; " : "");
        bz_buf_puts(&c->key, l->key);
        for (int k = 0; i && k < l->node->n_in; k++) {
            bz_value_id v = l->node->in[k];
            int from = v == BZ_NO_VALUE ? -1 : place_in(layer, i, c->maker[v]);
            if (from < 0)
                continue;
            const bz_node *made = c->layers->layer[layer[from]].node;
            int result = 0;
            while (made->out[result] != v)
                result++;
            bz_buf_printf(&c->key, result ? " %d=%d.%d" : " %d=%d", k, from, result);
        }
    }
}

static int brick_of(cutter *c, int begin, int n)
{
    bz_bricks *b = c->b;
    const int *layer = &c->layer[begin];
    write_key(c, layer, n);
    const char *key = bz_buf_text(&c->key);
    uint32_t at = bz_map_get(&b->map, key, c->key.len);
    if (at == BZ_MAP_NONE) {
        BZ_ARENA_ROOM(&b->arena, b->brick, b->n);
        at = (uint32_t)b->n++;
        key = bz_arena_strn(&b->arena, key, c->key.len);
        b->brick[at] = (bz_brick){.key = key,
                                  .hash = bz_hash_bytes(key, c->key.len),
                                  .layers = c->layers,
                                  .layer = bz_arena_dup(&b->arena, layer, (size_t)n * sizeof *layer),
                                  .n = n,
                                  .last = -1,
                                  .bodies = is_alone(&c->layers->layer[layer[0]]),
                                  .seconds = NAN};
        bz_map_add(&b->map, key, c->key.len, at);
    }
    return (int)at;
}

static int64_t macs_of(const bz_brick *k)
{
    int64_t sum = 0;
    for (int i = 0; i < k->n; i++)
        bz_count_add(&sum, k->layers->layer[k->layer[i]].macs);
    return sum;
}

static bool has_convolution(const bz_brick *k)
{
    for (int i = 0; i < k->n; i++)
        if (bz_layer_has(&k->layers->layer[k->layer[i]], BZ_LAYER_CONVOLUTION))
            return true;
    return false;
}

static double bytes_over_cut(const cutter *c, int layer, bool convolves)
{
    const bz_node *node = c->layers->layer[layer].node;
    double bytes = NAN;
    for (int k = 0; k < node->n_in; k++) {
        int maker = node->in[k] == BZ_NO_VALUE ? -1 : c->maker[node->in[k]];
        if (maker >= 0)
            bytes = (isnan(bytes) ? 0 : bytes) + (c->convolves[maker] + convolves) / 2.0 *
                                                     fmax(0, (double)bz_type_bytes(&c->layers->types[node->in[k]]));
    }
    return bytes;
}

static void add_brick(cutter *c, int begin, int n)
{
    int at = brick_of(c, begin, n);
    bz_brick *k = &c->b->brick[at];
    bool convolves = has_convolution(k);
    k->count++;
    k->models += k->last != c->b->n_models;
    k->last = c->b->n_models;
    c->at[c->n_bricks] = begin;
    c->cut[c->n_bricks] = bytes_over_cut(c, c->layer[begin], convolves);
    c->brick[c->n_bricks++] = at;
    for (int i = 0; i < n; i++)
        c->convolves[c->layer[begin + i]] = convolves;
}

/* As many layers as run, and multiply no matrices but in the first. */
static int length_behind(const cutter *c, int begin, int most)
{
    int n = 1;
    while (n < most && !c->layers->layer[c->layer[begin + n]].macs && runs(c, &c->layer[begin], n + 1))
        n++;
    return n;
}

static void cut(cutter *c)
{
    for (int begin = 0; begin < c->n && c->b->overlap; begin++)
        for (int n = 1; n <= c->b->most && n <= c->n - begin; n++)
            if (n == 1 || runs(c, &c->layer[begin], n))
                add_brick(c, begin, n);
    for (int begin = 0; begin < c->n && !c->b->overlap;) {
        int n = c->n - begin < c->b->most ? c->n - begin : c->b->most;
        if (c->b->fusions)
            n = length_behind(c, begin, n);
        else if (!runs(c, &c->layer[begin], n))
            n = 1;
        add_brick(c, begin, n);
        begin += n;
    }
}

/* Which layers read which, by their places. */
static void find_reads(cutter *c, int **first, int **read)
{
    int n = 0, most = 0;
    for (int i = 0; i < c->n; i++)
        most += c->layers->layer[c->layer[i]].node->n_in;
    *first = BZ_NEW(&c->b->arena, int, c->n + 1);
    *read = BZ_NEW(&c->b->arena, int, most);
    BZ_FREED int *place = bz_zeroed((size_t)c->layers->n + 1, sizeof *place);
    for (int i = 0; i < c->n; i++) {
        const bz_layer *l = &c->layers->layer[c->layer[i]];
        place[c->layer[i]] = i;
        (*first)[i] = n;
        for (int k = 0; k < l->node->n_in; k++) {
            bz_value_id v = l->node->in[k];
            if (v != BZ_NO_VALUE && c->maker[v] >= 0)
                (*read)[n++] = place[c->maker[v]];
        }
    }
    (*first)[c->n] = n;
}

static cutter begin_cutting(bz_bricks *b, const bz_layers *layers)
{
    cutter c = {.b = b, .layers = layers};
    c.maker = BZ_NEW_NONE(&c.room, int, layers->model->n_values);
    c.layer = BZ_NEW(&c.room, int, layers->n);
    c.convolves = BZ_NEW(&c.room, bool, layers->n);
    for (int i = 0; i < layers->n; i++) {
        const bz_layer *l = &layers->layer[i];
        if (l->class == BZ_CONSTANT)
            continue;
        c.layer[c.n++] = i;
        for (int k = 0; k < l->node->n_out; k++)
            if (l->node->out[k] != BZ_NO_VALUE)
                c.maker[l->node->out[k]] = i;
    }
    return c;
}

static void end_cutting(cutter *c)
{
    bz_buf_free(&c->key);
    bz_arena_free(&c->room);
}

void bz_bricks_add(bz_bricks *b, const bz_layers *layers, const char *name)
{
    cutter c = begin_cutting(b, layers);
    int *first, *read;
    size_t most = (size_t)(b->overlap ? b->most : 1) * (size_t)layers->n;
    c.brick = BZ_NEW(&b->arena, int, most);
    c.at = BZ_NEW(&b->arena, int, most);
    c.cut = BZ_NEW(&b->arena, double, most);
    BZ_ARENA_ROOM(&b->arena, b->model, b->n_models);
    cut(&c);
    find_reads(&c, &first, &read);
    write_key(&c, c.layer, c.n);
    b->model[b->n_models++] = (bz_brick_model){.layers = layers,
                                               .name = bz_arena_str(&b->arena, name),
                                               .brick = c.brick,
                                               .at = c.at,
                                               .cut = c.cut,
                                               .first = first,
                                               .read = read,
                                               .key = bz_arena_strn(&b->arena, bz_buf_text(&c.key), c.key.len),
                                               .n = c.n_bricks,
                                               .covered = c.n,
                                               .measured = NAN};
    end_cutting(&c);
}

/* Cuts between the same two sequences are one. */
typedef struct joint_at {
    int model, at; /* the first one's number in the model */
    int64_t count, macs;
    double bytes;
} joint_at;

BZ_SORTS(by_bytes, joint_at, BZ_THEN(BZ_ORDER(p->bytes, q->bytes), BZ_THEN(p->model - q->model, p->at - q->at)));

/* Of sequences that the model is the first to have: all three are measured beside it. */
static int find_joints(bz_bricks *b, bool convolutions, joint_at **list, int64_t *cuts)
{
    BZ_SCOPED(bz_map) map = {0};
    int n = 0;
    for (int m = 0; m < b->n_models; m++) {
        const bz_brick_model *model = &b->model[m];
        cutter c = begin_cutting(b, model->layers);
        for (int i = 0; i + 1 < model->n; i++) {
            const bz_brick *one = &b->brick[model->brick[i]], *next = &b->brick[model->brick[i + 1]];
            int64_t macs = macs_of(one), more = macs_of(next);
            if (one->layers != model->layers || next->layers != model->layers ||
                (convolutions && !(has_convolution(one) && has_convolution(next))) ||
                !runs(&c, &c.layer[model->at[i]], one->n + next->n))
                continue;
            uint32_t at = bz_map_add(&map, &model->brick[i], 2 * sizeof *model->brick, (uint32_t)n);
            if (at == (uint32_t)n) {
                BZ_ADD(*list, n) = (joint_at){m, i, 0, macs, model->cut[i + 1]};
                bz_count_add(&(*list)[at].macs, more);
            }
            (*list)[at].count++;
            ++*cuts;
        }
        end_cutting(&c);
    }
    return n;
}

static void add_joint(bz_bricks *b, const joint_at *j)
{
    const bz_brick_model *m = &b->model[j->model];
    int first = m->brick[j->at], second = m->brick[j->at + 1];
    cutter c = begin_cutting(b, m->layers);
    int both = brick_of(&c, m->at[j->at], b->brick[first].n + b->brick[second].n);
    end_cutting(&c);
    b->joint[b->n_joints++] = (bz_brick_joint){first, second, both, j->bytes};
}

/* What is longer is farther off, and differences of long times tell nothing: the shortest of each group stands for it. */
void bz_bricks_join(bz_bricks *b, int most)
{
    BZ_FREED joint_at *list = NULL;
    int64_t cuts = 0;
    int n = find_joints(b, true, &list, &cuts);
    if (!n)
        n = find_joints(b, false, &list, &cuts);
    BZ_QSORT(list, n, by_bytes);
    most = most < n ? most : n;
    b->joint = BZ_NEW(&b->arena, bz_brick_joint, most);
    int64_t passed = 0;
    for (int group = 0, i = 0; group < most; group++) {
        const joint_at *taken = NULL;
        for (; i < n && (double)passed * most < (group + 1.0) * (double)cuts; passed += list[i++].count)
            if (!taken || list[i].macs < taken->macs)
                taken = &list[i];
        if (taken)
            add_joint(b, taken);
    }
}

void bz_bricks_free(bz_bricks *b)
{
    bz_map_free(&b->map);
    bz_arena_free(&b->arena);
}

int bz_bricks_save(const bz_bricks *b, int brick, bz_buf *out, bz_error *err)
{
    const bz_brick *k = &b->brick[brick];
    bz_model *model = k->layers->model;
    BZ_SCOPED(bz_arena) room = {0};
    int *node = BZ_NEW(&room, int, k->n);
    for (int i = 0; i < k->n; i++)
        node[i] = (int)(k->layers->layer[k->layer[i]].node - model->graph->nodes);
    const bz_slice slice = {node, k->n, k->layers->types, k->layers->constant, b->weights ? UINT64_MAX : KEEP};
    return bz_model_slice(model, &slice, out, err);
}

static double seconds_of(const bz_brick *k, const bz_brick_rules *rules)
{
    double factor = 1;
    for (int i = 0; rules && i < rules->n_kinds; i++)
        if (!strcmp(rules->kind[i].kind, k->layers->layer[k->layer[0]].kind))
            factor = rules->kind[i].factor;
    double seconds = k->seconds * factor + (rules ? rules->each : 0);
    return seconds < 0 ? 0 : seconds;
}

/* Of a sequence at its place: one that begins with the model's inputs was not cut off. */
static double charge_of(const bz_bricks *b, const bz_brick_model *m, int i, const bz_brick_rules *rules)
{
    double seconds = seconds_of(&b->brick[m->brick[i]], rules);
    if (rules && rules->cuts.n && isfinite(m->cut[i]))
        seconds -= rules->cuts.each + rules->cuts.byte * m->cut[i];
    return seconds < 0 ? 0 : seconds;
}

/* The sequences that cover all layers cheapest, by where they end: taken[i] ends with the layer at place i - 1. */
static double cover(const bz_bricks *b, const bz_brick_model *m, const bz_brick_rules *rules, int *taken,
                    bz_arena *room)
{
    double *best = BZ_NEW(room, double, m->covered + 1);
    for (int i = 1; i <= m->covered; i++)
        best[i] = INFINITY;
    for (int i = 0; i < m->n; i++) {
        const bz_brick *k = &b->brick[m->brick[i]];
        double sum = best[m->at[i]] + charge_of(b, m, i, rules);
        if (sum < best[m->at[i] + k->n]) {
            best[m->at[i] + k->n] = sum;
            taken[m->at[i] + k->n] = i;
        }
    }
    return isfinite(best[m->covered]) ? best[m->covered] : (double)NAN;
}

double bz_bricks_build(const bz_bricks *b, int model, const bz_brick_rules *rules)
{
    BZ_SCOPED(bz_arena) room = {0};
    const bz_brick_model *m = &b->model[model];
    return cover(b, m, rules, BZ_NEW(&room, int, m->covered + 1), &room);
}

double bz_bricks_path(const bz_bricks *b, int model, const bz_brick_rules *rules)
{
    BZ_SCOPED(bz_arena) room = {0};
    const bz_brick_model *m = &b->model[model];
    int *taken = BZ_NEW(&room, int, m->covered + 1), *begin = BZ_NEW(&room, int, m->covered);
    double *finish = BZ_NEW(&room, double, m->covered), longest = cover(b, m, rules, taken, &room);
    for (int end = m->covered; end > 0 && isfinite(longest); end = m->at[taken[end]])
        for (int i = m->at[taken[end]]; i < end; i++)
            begin[i] = taken[end];
    if (isfinite(longest))
        longest = 0;
    for (int i = 0; i < m->covered && isfinite(longest);) {
        const bz_brick *k = &b->brick[m->brick[begin[i]]];
        double start = 0, seconds = charge_of(b, m, begin[i], rules);
        for (int r = m->first[i]; r < m->first[i + k->n]; r++)
            start = m->read[r] < i ? fmax(start, finish[m->read[r]]) : start;
        for (int end = i + k->n; i < end; i++)
            finish[i] = start + seconds;
        longest = fmax(longest, finish[i - 1]);
    }
    return longest;
}

double bz_bricks_price_joint(const bz_bricks *b, const bz_brick_joint *j)
{
    return b->brick[j->first].seconds + b->brick[j->second].seconds - b->brick[j->both].seconds;
}

/* Least squares. What a joint is off by grows with what it takes: it counts by the square of that. Neither a cut nor a byte gives time back. */
void bz_bricks_price_cuts(const bz_bricks *b, bz_brick_cuts *out)
{
    double w = 0, x = 0, y = 0, xx = 0, xy = 0, *off = bz_zeroed((size_t)b->n_joints + 1, sizeof *off);
    int n = 0;
    for (int i = 0; i < b->n_joints; i++) {
        const bz_brick_joint *j = &b->joint[i];
        double price = bz_bricks_price_joint(b, j), both = b->brick[j->both].seconds, weight = 1 / (both * both);
        if (!isfinite(price))
            continue;
        n++, w += weight, x += weight * j->bytes, y += weight * price;
        xx += weight * j->bytes * j->bytes, xy += weight * j->bytes * price;
    }
    *out = (bz_brick_cuts){.n = n > 1 ? n : 0};
    double slope = w * xx > x * x ? (w * xy - x * y) / (w * xx - x * x) : 0;
    if (slope > 0 && slope * x > y) /* a line through nothing */
        slope = xy / xx;
    out->byte = fmax(0, slope);
    out->each = n ? fmax(0, (y - out->byte * x) / w) : 0;
    n = 0;
    for (int i = 0; i < b->n_joints; i++) {
        double price = bz_bricks_price_joint(b, &b->joint[i]);
        if (isfinite(price))
            off[n++] = fabs(price - out->each - out->byte * b->joint[i].bytes);
    }
    bz_sort_numbers(off, (size_t)n);
    out->spread = n ? bz_quantile(off, (size_t)n, 0.5) : 0;
    free(off);
}

double bz_bricks_cost(const bz_bricks *b)
{
    double sum = 0;
    for (int i = 0; i < b->n; i++)
        sum += b->brick[i].seconds;
    return sum;
}

double bz_bricks_alike(const bz_bricks *b, int one, int other)
{
    BZ_SCOPED(bz_arena) room = {0};
    char *has = BZ_NEW(&room, char, b->n);
    int both = 0, either = 0;
    for (int i = 0; i < b->model[one].n; i++)
        has[b->model[one].brick[i]] |= 1;
    for (int i = 0; i < b->model[other].n; i++)
        has[b->model[other].brick[i]] |= 2;
    for (int i = 0; i < b->n; i++) {
        both += has[i] == 3;
        either += has[i] != 0;
    }
    return either ? (double)both / either : (double)NAN;
}

const char *bz_brick_problem(const char *key, bz_arena *arena)
{
    enum { LONGEST = 60000 };
    size_t n = strlen(key);
    char hex[33];
    if (n <= LONGEST)
        return bz_arena_printf(arena, "sequence %s", key);
    bz_hash_hex(bz_hash_bytes(key, n), hex);
    return bz_arena_printf(arena, "sequence hash=%s", hex);
}
