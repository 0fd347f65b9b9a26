/* Layers without a model, by a framework's operators and their shapes: each becomes a node of a model, and what these nodes cost
 * is inferred as any model's. PyTorch tells what operators read, not what they made, and older versions not how they
 * computed it: strides and padding are then those that lead to a result that some operator behind reads. */
#include "base/sort.h"
#include "explain/constants.h"
#include "explain/rebuild.h"

#include <stdio.h>
#include <string.h>

typedef rebuild_making making;

/* "aten::relu_" -> "relu" */
static void base_of(const char *name, char out[64])
{
    const char *colon = strstr(name, "::");
    snprintf(out, 64, "%.60s", colon ? colon + 2 : name);
    size_t n = strlen(out);
    if (n > 1 && out[n - 1] == '_')
        out[n - 1] = 0;
}

enum { MADE = 1, PARENT = 2, BACKWARD = 4, LAUNCHES = 8 };

/* What PyTorch's optimizers do lies in a range of theirs. */
static void mark_updates(const making *m, unsigned char *mark)
{
    const bz_events *r = &m->t->event[BZ_EVENT_RANGE];
    for (size_t k = 0; k < r->n; k++) {
        if (!bz_name_matches("^Optimizer.", bz_string(m->t, r->name[k])))
            continue;
        size_t low = 0, high = m->e->n;
        BZ_FIND_FIRST(low, high, at, m->e->start[at] < r->start[k]);
        for (; low < m->e->n && m->e->start[low] < r->end[k]; low++)
            mark[low] |= m->e->lane[low] == r->lane[k] ? BACKWARD : 0;
    }
}

/* Who has operators inside, who launched work on a device, and who belongs to the way back of training. */
static unsigned char *mark_operators(const making *m)
{
    unsigned char *mark = BZ_NEW(m->arena, unsigned char, m->e->n);
    const bz_events *kernel = &m->t->event[BZ_EVENT_KERNEL];
    for (size_t i = 0; i < kernel->n; i++)
        for (uint32_t op = kernel->op[i]; op < m->e->n && !(mark[op] & LAUNCHES); op = m->e->op[op])
            mark[op] |= LAUNCHES;
    mark_updates(m, mark);
    for (size_t i = 0; i < m->e->n; i++) {
        uint32_t around = m->e->op[i];
        const char *name = bz_string(m->t, m->e->name[i]);
        mark[i] |= bz_name_matches("ackward", name) || bz_name_matches("autograd::", name) ||
                           bz_name_matches("^Optimizer.", name)
                       ? BACKWARD
                       : 0;
        if (around < i) {
            mark[around] |= PARENT;
            mark[i] |= mark[around] & BACKWARD;
        }
    }
    return mark;
}

typedef struct others {
    const char *name[8];
    int count[8], n, more;
} others;

static void add_other(others *o, const char *name)
{
    int k = 0;
    while (k < o->n && strcmp(o->name[k], name) != 0)
        k++;
    if (k == 8) {
        o->more++;
        return;
    }
    o->n += k == o->n;
    o->name[k] = name;
    o->count[k]++;
}

static const char *name_others(const others *o, int backward, int guessed, bz_arena *arena)
{
    bz_buf text = {0};
    if (backward)
        bz_buf_printf(&text, "%d of the way back of training", backward);
    for (int k = 0; k < o->n; k++)
        bz_buf_printf(&text, "%s%d %s", text.len ? ", " : "", o->count[k], o->name[k]);
    if (o->more)
        bz_buf_printf(&text, ", and %d others", o->more);
    if (guessed)
        bz_buf_printf(&text, "%s; the windows of %d were not recorded and are guessed", text.len ? "" : "none",
                      guessed);
    return bz_buf_keep(&text, arena);
}

/* Of operators within each other the outermost one that makes nodes counts; where a device was recorded, what launched nothing
 * there, as the loading of data, does none of the network's work. */
static const char *make_nodes(making *m, bool *partial)
{
    uint32_t iteration = bz_typical_iteration(m->t);
    unsigned char *mark = mark_operators(m);
    others left = {0};
    int backward = 0;
    bool device = false;
    for (size_t i = 0; i < m->e->n; i++)
        device |= mark[i] & LAUNCHES;
    for (size_t i = 0; i < m->e->n && m->n_made < MOST_NODES; i++) {
        uint32_t around = m->e->op[i];
        bool inside = iteration == BZ_NONE || bz_event_iteration(m->t, BZ_EVENT_OP, i) == iteration;
        mark[i] |= around < i ? mark[around] & MADE : 0;
        if (!inside || mark[i] & MADE || (device && !(mark[i] & LAUNCHES)))
            continue;
        m->op = i;
        m->o = bz_operator_of(m->t, i);
        base_of(bz_string(m->t, m->e->name[i]), m->base);
        bool works = false;
        for (int k = 0; k < m->o->n_in; k++)
            works |= m->o->in[k].rank > 0;
        if (works && mark[i] & BACKWARD)
            backward += !(mark[i] & PARENT);
        else if (works && rebuild_operator(m))
            mark[i] |= MADE;
        else if (works && !(mark[i] & PARENT) && !rebuild_is_quiet(m->base))
            add_other(&left, bz_string(m->t, m->e->name[i]));
    }
    *partial = backward > 0;
    return name_others(&left, backward, m->guessed, m->arena);
}

BZ_ENDS(end_model, bz_model_free)

BZ_ENDS(end_layers, bz_layers_free)

void bz_rebuild_operators(const bz_trace *trace, bz_arena *arena, bz_rebuilt *out)
{
    making m = {.t = trace, .e = &trace->event[BZ_EVENT_OP], .arena = arena};
    BZ_SCOPED(bz_buf) file = {0};
    bz_model *model;
    bz_layers *layers;
    bz_error err;
    *out = (bz_rebuilt){.of = "operators"};
    out->left_out = make_nodes(&m, &out->partial);
    bz_draft_opset(&m.draft, "", 20);
    bz_draft_end(&m.draft, 9, "rebuilt", &file);
    char *kept = bz_arena_strn(arena, file.data, file.len);
    size_t size = file.len;
    if (!m.n_made || bz_model_parse(kept, size, "recording", &model, &err))
        return;
    bz_arena_keep(arena, model, end_model);
    if (bz_layers_infer(model, &(bz_infer_options){0}, &layers, &err)) {
        out->left_out = bz_arena_str(arena, err.text);
        return;
    }
    bz_arena_keep(arena, layers, end_layers);
    out->layers = layers;
    uint32_t *made_by = BZ_NEW(arena, uint32_t, layers->n);
    for (int i = 0; i < layers->n; i++)
        made_by[i] = m.made_by[layers->layer[i].node - model->graph->nodes];
    out->made_by = made_by;
}
