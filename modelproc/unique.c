/* The same layer only once. */
#include "modelproc/modelproc.h"

#include <stdlib.h>
#include <string.h>

static bz_unique_layer *new_item(bz_unique *u)
{
    BZ_ROOM(u->item, u->n);
    u->item[u->n] = (bz_unique_layer){0};
    return &u->item[u->n++];
}

void bz_uses_add(bz_uses *u, bz_arena *arena, int model)
{
    if (u->n && u->model[u->n - 1] == model) {
        u->times[u->n - 1]++;
        return;
    }
    BZ_ARENA_ROOM(arena, u->model, u->n);
    BZ_ARENA_ROOM(arena, u->times, u->n);
    u->model[u->n] = model;
    u->times[u->n++] = 1;
}

static void add_layers(bz_unique *u, const bz_model *model, const bz_layer *layers, int n, int number,
                       bool (*take)(const bz_layer *))
{
    for (int i = 0; i < n; i++) {
        const bz_layer *l = &layers[i];
        for (int b = 0; b < l->n_bodies; b++)
            add_layers(u, model, l->bodies[b].layers, l->bodies[b].n, number, take);
        if (take && !take(l))
            continue;
        u->n_layers++;
        uint32_t k = bz_map_add(&u->map, l->key, strlen(l->key), (uint32_t)u->n);
        if (k == (uint32_t)u->n) {
            bz_unique_layer *item = new_item(u);
            item->layer = l;
            item->model = model;
        }
        u->item[k].count++;
        bz_uses_add(&u->item[k].uses, &u->arena, number);
    }
}

void bz_unique_add(bz_unique *u, const bz_layers *layers, int model, bool (*take)(const bz_layer *))
{
    add_layers(u, layers->model, layers->layer, layers->n, model, take);
}

void bz_unique_free(bz_unique *u)
{
    free(u->item);
    bz_map_free(&u->map);
    bz_arena_free(&u->arena);
    *u = (bz_unique){0};
}
