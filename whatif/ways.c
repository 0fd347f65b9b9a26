/* Words, groups and prices of the steps that frameworks offer. */
#include "whatif/ways.h"

#include "base/sort.h"
#include "whatif/constants.h"

#include <math.h>
#include <stdlib.h>

int bz_way_read(const bz_whatif_asked *asked, bz_way *out)
{
    char word[64];
    const char *words = asked->text ? asked->text : "";
    *out = (bz_way){.patterns = words, .leaves = "", .only = ""};
    while (bz_word_next(&words, word, sizeof word)) {
        const struct {
            const char *name;
            bool *flag;
        } FLAGS[] = {
            {"blocked", &out->blocked}, {"pads", &out->pads}, {"constants", &out->constants}, {"turned", &out->turned}};
        bool known = strchr(word, '+') != NULL;
        if (!strcmp(word, "leaves") || !strcmp(word, "only")) {
            *(*word == 'l' ? &out->leaves : &out->only) = words;
            return 0;
        }
        for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
            if (!strcmp(word, FLAGS[i].name))
                known = *FLAGS[i].flag = true;
        if (!known)
            return bz_fail(
                asked->err, BZ_USAGE,
                "%s: '%s' is no word of it: blocked, pads, constants, turned, fusion patterns as conv+relu, and last "
                "'leaves KIND…' or 'only KIND…'",
                asked->row->name, word);
    }
    return 0;
}

BZ_SORTS(larger, bz_bound_place *const, BZ_THEN((*q)->n - (*p)->n, (*p)->layer[0] - (*q)->layer[0]));

int *bz_way_groups(const bz_whatif_asked *asked, const bz_way *way, const bz_picks *picks)
{
    const bz_bound *b = asked->model->bound;
    const bz_bound_place **list = BZ_NEW(asked->arena, const bz_bound_place *, b->fused.n_places + 1);
    int n = 0, *of_node = BZ_NEW_NONE(asked->arena, int, b->dag->n + 1);
    for (int g = 0; g < b->fused.n_places; g++)
        if (!b->fused.place[g].refused && bz_has_word(way->patterns, b->fused.place[g].pattern) &&
            (!picks || isfinite(picks->place[g].seconds)))
            list[n++] = &b->fused.place[g];
    BZ_QSORT(list, n, larger);
    for (int g = 0; g < n; g++) {
        bool free = true;
        for (int k = 0; k < list[g]->n; k++)
            free &= of_node[list[g]->layer[k]] < 0;
        for (int k = 0; k < list[g]->n && free; k++)
            of_node[list[g]->layer[k]] = (int)(list[g] - b->fused.place);
    }
    return of_node;
}

const bz_picks *bz_way_picks(const bz_whatif_model *m, bz_dtype dtype, bool training)
{
    for (int i = 0; m && i < m->n_picks; i++)
        if (m->picks[i].dtype == dtype && m->picks[i].training == training)
            return &m->picks[i];
    return NULL;
}

double bz_way_again(const bz_whatif_asked *asked, const bz_pick *pick)
{
    const bz_peaks *peaks = asked->model->bound->peaks;
    return fmax(0, bz_peaks_again(peaks, pick->weights, asked->between) -
                       bz_peaks_again(peaks, pick->weights, pick->weights + pick->data));
}

/* Records are hot, and between two uses of a program's weights it goes over all that an iteration has. What that takes a record with cold caches says,
 * as far as its bytes are weights; else two loops do, one over as many bytes, and one over those of the call, which is what the record has gone over. */
double bz_way_price(const bz_whatif_asked *asked, const bz_layer_place *place, const bz_pick *pick, bool cold)
{
    bool known = cold && pick->cold > 0;
    double bytes = pick->weights + pick->data, more = 0, scale = asked->busy * place->share;
    if (known && bytes > 0)
        more = fmax(0, pick->cold - pick->seconds) * pick->weights / bytes;
    else if (cold)
        more = AGAIN_TAKES[asked->side] * bz_way_again(asked, pick);
    if (asked->side == 0)
        return pick->low * scale;
    if (asked->side == 2)
        return (known ? fmax(pick->high, pick->cold) : pick->high + more) * scale;
    return (pick->seconds + more) * scale;
}

/* What calls take longer than their records now is operands that come from far. Weights do then, too; data lie where the call before has just
 * written them. So the share of the weights in the bytes stays. */
double bz_way_slower(const bz_whatif_asked *asked, const bz_pick *pick, double now)
{
    double bytes = pick->weights + pick->data;
    now /= asked->busy; /* the price has that */
    if (asked->side != 1)
        return asked->side == 0 ? fmin(1, now) : fmax(1, now);
    return now > 1 && bytes > 0 ? 1 + (now - 1) * pick->weights / bytes : now;
}

bool bz_way_is_product(const bz_whatif_asked *asked, const bz_layer_place *place)
{
    for (int k = 0; k < place->n; k++)
        if (bz_way_layer(asked, place, k)->layer->macs)
            return true;
    return false;
}

int64_t bz_way_block(const bz_picks *direct, int n)
{
    for (int i = 0; i < n; i++)
        if (direct->free[i].variant && strstr(direct->free[i].variant, "avx512"))
            return 16;
    return 8;
}

bool bz_way_fills(const bz_layer *l, int64_t block, bool *whole)
{
    *whole = true;
    if (l->n_in < 2 || l->in[0].rank < 3 || l->in[1].rank != l->in[0].rank || l->in[1].dims[1] <= 0)
        return true;
    int64_t out = l->in[1].dims[0], in = l->in[1].dims[1], groups = l->in[0].dims[1] / in;
    if (groups <= 1)
        return true;
    *whole = out % block == 0;
    return (in == 1 && out == groups) || (in % block == 0 && out / groups % block == 0);
}

bool bz_way_same_shape(const bz_type *a, const bz_type *b)
{
    return a->rank == b->rank && a->rank > 0 && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

bool bz_way_is_silu(const bz_bound *b, int mul, int *sigmoid)
{
    const bz_dag *dag = b->dag;
    int from = dag->first[mul];
    if (strcmp(b->layers->layer[mul].kind, "mul") != 0 || dag->first[mul + 1] - from != 2)
        return false;
    for (int k = 0; k < 2; k++) {
        int s = dag->pred[from + k], x = dag->pred[from + 1 - k];
        *sigmoid = s;
        if (!strcmp(b->layers->layer[s].kind, "sigmoid") && dag->first[s + 1] - dag->first[s] == 1 &&
            dag->pred[dag->first[s]] == x)
            return true;
    }
    return false;
}

double *bz_way_waiting(const bz_whatif_asked *asked, bz_dtype dtype)
{
    const bz_bound *b = asked->model->bound;
    const bz_dag *dag = b->dag;
    double *waiting = BZ_NEW(asked->arena, double, dag->n + 1), sum = 0;
    int *last = BZ_NEW(asked->arena, int, dag->n + 1),
        *seen = BZ_NEW(asked->arena, int, dag->n + 1); /* by which layer; the first one reads none */
    for (int i = 0; i < dag->n; i++)
        for (int k = dag->first[i]; k < dag->first[i + 1]; k++)
            last[dag->pred[k]] = i;
    double *ends = BZ_NEW(asked->arena, double, dag->n + 1); /* of those that are read last by this layer */
    for (int i = 0; i < dag->n; i++) {
        const bz_layer *l = &b->layers->layer[i];
        double bytes = l->n_out && last[i] > i ? bz_peaks_bytes(l, &l->out[0], dtype) : 0;
        waiting[i] = sum;
        for (int k = dag->first[i]; k < dag->first[i + 1]; k++) { /* its own operands do not wait */
            const bz_layer *from = &b->layers->layer[dag->pred[k]];
            bool again = seen[dag->pred[k]] == i;
            seen[dag->pred[k]] = i;
            waiting[i] -= from->n_out && !again ? bz_peaks_bytes(from, &from->out[0], dtype) : 0;
        }
        waiting[i] = fmax(0, waiting[i]); /* sums round */
        sum += bytes - ends[i];
        ends[last[i]] += bytes;
    }
    return waiting;
}

bool bz_way_keeps_memory(double most, double largest)
{
    return most <= 2 * fmin(largest, MAPPED);
}

/* The task behind which each layer of the main graph is done. */
static uint32_t *tasks_of_nodes(const bz_way_borders *b)
{
    int n = b->map->asked->model->bound->dag->n;
    uint32_t *task = BZ_NEW_NONE(b->map->asked->arena, uint32_t, n + 1);
    for (int i = 0; i < b->map->n; i++)
        for (int k = 0; k < b->map->place[i].n; k++)
            task[bz_way_layer(b->map->asked, &b->map->place[i], k)->node] =
                b->map->place[i].task != BZ_NONE && !b->gone[i] ? b->map->place[i].task : b->map->place[i].behind;
    return task;
}

void bz_way_add_borders(bz_way_borders *b)
{
    const bz_bound *bound = b->map->asked->model->bound;
    const bz_dag *dag = bound->dag;
    const uint32_t *task = tasks_of_nodes(b);
    bool *passed = BZ_NEW(b->map->asked->arena, bool, dag->n + 1);
    for (int i = 0; i < dag->n; i++)
        for (int k = dag->first[i]; k < dag->first[i + 1]; k++) {
            int from = dag->pred[k];
            const bz_layer *l = &bound->layers->layer[from];
            if (b->side[i] == b->side[from] || !l->n_out || task[i] == BZ_NONE || b->map->flow->task[task[i]].removed)
                continue;
            bool copies = b->how == BZ_BORDER_COPY && b->side[from], each = copies || b->how == BZ_BORDER_EACH;
            int64_t time = b->took(b, l);
            for (int n = (each || !passed[from]) + (copies && !passed[from]); n > 0; n--) {
                bz_flow_insert(b->map->flow, BZ_TASK_CALL, "reorder", task[i], BZ_BEHIND, time,
                               b->map->call[b->map->asked->side]);
                bz_tally_add(b->added, 0, time);
            }
            passed[from] = true;
        }
}
