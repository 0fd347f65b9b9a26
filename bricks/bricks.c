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
    bz_buf key;
} cutter;

/* Layers stand in ascending order: a whole model may have a million of them. */
static int place_in(const int *layer, int n, int wanted)
{
    int low = 0, high = n;
    BZ_FIND_FIRST(low, high, at, layer[at] < wanted);
    return low < n && layer[low] == wanted ? low : -1;
}

/* ---- which sequences run by themselves -------------------------------------------------------- */

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

/* ---- keys ------------------------------------------------------------------------------------- */

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

static void add_brick(cutter *c, int begin, int n)
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
    bz_brick *k = &b->brick[at];
    k->count++;
    k->models += k->last != b->n_models;
    k->last = b->n_models;
    c->at[c->n_bricks] = begin;
    c->brick[c->n_bricks++] = (int)at;
}

/* ---- cutting ---------------------------------------------------------------------------------- */

static void cut(cutter *c)
{
    for (int begin = 0; begin < c->n && c->b->overlap; begin++)
        for (int n = 1; n <= c->b->most && n <= c->n - begin; n++)
            if (n == 1 || runs(c, &c->layer[begin], n))
                add_brick(c, begin, n);
    for (int begin = 0; begin < c->n && !c->b->overlap;) {
        int n = c->n - begin < c->b->most ? c->n - begin : c->b->most;
        if (!runs(c, &c->layer[begin], n))
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
    int *place = bz_zeroed((size_t)c->layers->n + 1, sizeof *place);
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
    free(place);
}

void bz_bricks_add(bz_bricks *b, const bz_layers *layers, const char *name)
{
    cutter c = {.b = b, .layers = layers};
    bz_arena room = {0};
    c.maker = BZ_NEW(&room, int, layers->model->n_values);
    c.layer = BZ_NEW(&room, int, layers->n);
    int *first, *read;
    size_t most = (size_t)(b->overlap ? b->most : 1) * (size_t)layers->n;
    c.brick = BZ_NEW(&b->arena, int, most);
    c.at = BZ_NEW(&b->arena, int, most);
    for (int v = 0; v < layers->model->n_values; v++)
        c.maker[v] = -1;
    for (int i = 0; i < layers->n; i++) {
        const bz_layer *l = &layers->layer[i];
        if (l->class == BZ_CONSTANT)
            continue;
        c.layer[c.n++] = i;
        for (int k = 0; k < l->node->n_out; k++)
            if (l->node->out[k] != BZ_NO_VALUE)
                c.maker[l->node->out[k]] = i;
    }
    BZ_ARENA_ROOM(&b->arena, b->model, b->n_models);
    cut(&c);
    find_reads(&c, &first, &read);
    write_key(&c, c.layer, c.n);
    b->model[b->n_models++] = (bz_brick_model){.layers = layers,
                                               .name = bz_arena_str(&b->arena, name),
                                               .brick = c.brick,
                                               .at = c.at,
                                               .first = first,
                                               .read = read,
                                               .key = bz_arena_strn(&b->arena, bz_buf_text(&c.key), c.key.len),
                                               .n = c.n_bricks,
                                               .covered = c.n,
                                               .measured = NAN};
    bz_buf_free(&c.key);
    bz_arena_free(&room);
}

void bz_bricks_free(bz_bricks *b)
{
    bz_map_free(&b->map);
    bz_arena_free(&b->arena);
}

/* ---- results ---------------------------------------------------------------------------------- */

int bz_bricks_save(const bz_bricks *b, int brick, bz_buf *out, bz_error *err)
{
    const bz_brick *k = &b->brick[brick];
    bz_model *model = k->layers->model;
    bz_arena room = {0};
    int *node = BZ_NEW(&room, int, k->n);
    for (int i = 0; i < k->n; i++)
        node[i] = (int)(k->layers->layer[k->layer[i]].node - model->graph->nodes);
    const bz_slice slice = {node, k->n, k->layers->types, k->layers->constant, b->weights ? UINT64_MAX : KEEP};
    int rc = bz_model_slice(model, &slice, out, err);
    bz_arena_free(&room);
    return rc;
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

/* The sequences that cover all layers cheapest, by where they end: taken[i] ends with the layer at place i - 1. */
static double cover(const bz_bricks *b, const bz_brick_model *m, const bz_brick_rules *rules, int *taken,
                    bz_arena *room)
{
    double *best = BZ_NEW(room, double, m->covered + 1);
    for (int i = 1; i <= m->covered; i++)
        best[i] = INFINITY;
    for (int i = 0; i < m->n; i++) {
        const bz_brick *k = &b->brick[m->brick[i]];
        double sum = best[m->at[i]] + seconds_of(k, rules);
        if (sum < best[m->at[i] + k->n]) {
            best[m->at[i] + k->n] = sum;
            taken[m->at[i] + k->n] = i;
        }
    }
    return isfinite(best[m->covered]) ? best[m->covered] : (double)NAN;
}

double bz_bricks_build(const bz_bricks *b, int model, const bz_brick_rules *rules)
{
    bz_arena room = {0};
    const bz_brick_model *m = &b->model[model];
    double sum = cover(b, m, rules, BZ_NEW(&room, int, m->covered + 1), &room);
    bz_arena_free(&room);
    return sum;
}

double bz_bricks_path(const bz_bricks *b, int model, const bz_brick_rules *rules)
{
    bz_arena room = {0};
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
        double start = 0;
        for (int r = m->first[i]; r < m->first[i + k->n]; r++)
            start = m->read[r] < i ? fmax(start, finish[m->read[r]]) : start;
        for (int end = i + k->n; i < end; i++)
            finish[i] = start + seconds_of(k, rules);
        longest = fmax(longest, finish[i - 1]);
    }
    bz_arena_free(&room);
    return longest;
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
    bz_arena room = {0};
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
    bz_arena_free(&room);
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
