/* Layers by the nodes that a recording names: ONNX Runtime writes beside each operator which node of the model it was. Its
 * optimizer makes new nodes, whose names begin with that of an old one, or with that of the tensor that they make. */
#include "explain/align.h"
#include "explain/constants.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t TWICE = BZ_MAP_NONE - 1; /* what two layers have */

static void add_name(bz_map *map, const char *name, int layer)
{
    size_t n = strlen(name);
    uint32_t at = n ? bz_map_add(map, name, n, (uint32_t)layer) : (uint32_t)layer;
    if (at != (uint32_t)layer)
        bz_map_set(map, name, n, TWICE);
}

static void add_layers(bz_align_names *names, const bz_layer *layers, int n)
{
    for (int i = 0; i < n; i++) {
        const bz_layer *l = &layers[i];
        BZ_ROOM(names->layer, names->n);
        names->layer[names->n] = l;
        add_name(&names->node, l->name, names->n);
        for (int k = 0; l->node && k < l->node->n_out; k++)
            if (l->node->out[k] >= 0)
                add_name(&names->tensor, names->bound->layers->model->values[l->node->out[k]].name, names->n);
        names->n++;
    }
    for (int i = 0; i < n; i++)
        for (int b = 0; b < layers[i].n_bodies; b++)
            if (layers[i].bodies[b].trips == 1)
                add_layers(names, layers[i].bodies[b].layers, layers[i].bodies[b].n);
}

static void read_names(bz_align_names *names)
{
    add_layers(names, names->bound->layers->layer, names->bound->layers->n);
    names->read = true;
}

void bz_align_names_end(bz_align_names *names)
{
    free(names->layer);
    bz_map_free(&names->node);
    bz_map_free(&names->tensor);
}

static int find(const bz_map *map, const char *name, size_t n)
{
    uint32_t at = bz_map_get(map, name, n);
    return at < TWICE ? (int)at : -1;
}

static size_t without(const char *name, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n > m && !memcmp(name + n - m, end, m) ? n - m : n;
}

bz_align_name bz_align_name_of(bz_align_names *names, const char *detail)
{
    const char *name = names ? strstr(detail, "name=") : NULL;
    if (!name)
        return (bz_align_name){-1, false};
    if (!names->read)
        read_names(names);
    name += strlen("name=");
    size_t n = without(name, strlen(name), "_kernel_time"), m = without(name, n, "_nchwc");
    bz_align_name found = {find(&names->node, name, n), true};
    if (found.layer >= 0)
        return found;
    found = (bz_align_name){m < n ? find(&names->tensor, name, m) : -1, false};
    for (int cuts = 0; found.layer < 0 && n && cuts < NAME_CUTS;)
        if (name[--n] == '/') {
            found.layer = find(&names->node, name, n);
            cuts++;
        }
    return found;
}

/* The layer whose result this one alone reads: what goes into one operator with it comes before it. */
static int layer_before(const bz_align_names *names, int layer)
{
    const bz_dag *dag = names->bound->dag;
    return dag && layer < names->bound->layers->n && dag->first[layer + 1] == dag->first[layer] + 1
               ? dag->pred[dag->first[layer]]
               : -1;
}

static bool does(const bz_layer *l, const char *kind)
{
    return !strcmp(kind, "product") ? l->macs > 0
           : !strcmp(kind, "conv")  ? bz_layer_has(l, BZ_LAYER_CONVOLUTION)
           : !strcmp(kind, "pool")  ? bz_layer_has(l, BZ_LAYER_POOL)
                                    : !strcmp(l->kind, kind);
}

int bz_align_name_atoms(const bz_align_names *names, bz_align_words *w, bz_align_name name, const char *kind,
                        bz_align_atom *atom, int n)
{
    int chain[BZ_ALIGN_ATOMS], layer = name.layer, more = 0;
    if (!n || layer < 0)
        return n;
    while (layer >= 0 && !name.exact && more < BZ_ALIGN_ATOMS - 1 && !does(names->layer[layer], kind)) {
        chain[more++] = layer;
        layer = layer_before(names, layer);
    }
    if (layer < 0)
        return n;
    atom[0].node = layer + 1;
    if (more) /* and no bias besides: that is among them */
        n = 1;
    while (more) {
        atom[n] = bz_align_named_atom(w, names->layer[chain[--more]]->kind);
        atom[n++].node = chain[more] + 1;
    }
    return n;
}
