/* Models cut into sequences. */
#include "bricks/bricks.h"

#include <math.h>
#include <string.h>

enum { KEEP = 64 }; /* bytes of a constant that says how to compute: axes, shapes, bounds */

typedef struct cutter {
    bz_bricks *b;
    const bz_layers *layers;
    int *maker; /* [n_values]: the layer that makes it; -1: none, or a constant */
    int *layer; /* those that are cut, in order */
    int n;
    int *brick, n_bricks;
    bz_buf key;
} cutter;

static int place_in(const int *layer, int n, int wanted)
{
    for (int i = 0; i < n; i++)
        if (layer[i] == wanted)
            return i;
    return -1;
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

static void add_brick(cutter *c, const int *layer, int n)
{
    bz_bricks *b = c->b;
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
    c->brick[c->n_bricks++] = (int)at;
}

/* ---- cutting ---------------------------------------------------------------------------------- */

static void cut(cutter *c)
{
    for (int begin = 0; begin < c->n;) {
        int n = c->n - begin < c->b->most ? c->n - begin : c->b->most;
        if (!runs(c, &c->layer[begin], n))
            n = 1;
        add_brick(c, &c->layer[begin], n);
        begin += n;
    }
}

void bz_bricks_add(bz_bricks *b, const bz_layers *layers, const char *name)
{
    cutter c = {.b = b, .layers = layers};
    bz_arena room = {0};
    c.maker = BZ_NEW(&room, int, layers->model->n_values);
    c.layer = BZ_NEW(&room, int, layers->n);
    c.brick = BZ_NEW(&b->arena, int, layers->n);
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
    b->model[b->n_models++] = (bz_brick_model){.layers = layers,
                                               .name = bz_arena_str(&b->arena, name),
                                               .brick = c.brick,
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
    const bz_slice slice = {node, k->n, k->layers->types, k->layers->constant, KEEP};
    int rc = bz_model_slice(model, &slice, out, err);
    bz_arena_free(&room);
    return rc;
}

double bz_bricks_build(const bz_bricks *b, int model)
{
    double sum = 0;
    for (int i = 0; i < b->model[model].n; i++)
        sum += b->brick[b->model[model].brick[i]].seconds;
    return sum;
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
