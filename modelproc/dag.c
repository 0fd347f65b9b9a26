/* Who waits for whom among layers. */
#include "modelproc/modelproc.h"

/* Constants are there before anything runs: nobody waits for them. */
static int count_edges(const bz_layers *l, const int *producer)
{
    int n = 0;
    bz_value_id v;
    for (int i = 0; i < l->n; i++)
        for (int k = 0; (v = bz_node_reads(l->layer[i].node, k)) != BZ_READS_END; k++)
            n += v >= 0 && producer[v] >= 0;
    return n;
}

static int *producers(bz_layers *l)
{
    int *producer = BZ_NEW_NONE(&l->arena, int, l->model->n_values);
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < l->layer[i].n_out && l->layer[i].class != BZ_CONSTANT; k++)
            if (l->layer[i].node->out[k] >= 0)
                producer[l->layer[i].node->out[k]] = i;
    return producer;
}

const bz_dag *bz_dag_build(bz_layers *l)
{
    bz_dag *dag = BZ_NEW(&l->arena, bz_dag, 1);
    int *producer = producers(l), *first = BZ_NEW(&l->arena, int, l->n + 1);
    int *pred = BZ_NEW(&l->arena, int, count_edges(l, producer));
    int *seen = BZ_NEW(&l->arena, int, l->n + 1), n = 0; /* seen[p] == i + 1: p is a predecessor of i already */
    bz_value_id v;
    for (int i = 0; i < l->n; i++) {
        first[i] = n;
        for (int k = 0; (v = bz_node_reads(l->layer[i].node, k)) != BZ_READS_END; k++) {
            int p = v >= 0 ? producer[v] : -1;
            if (p < 0 || seen[p] == i + 1)
                continue;
            seen[p] = i + 1;
            pred[n++] = p;
        }
    }
    first[l->n] = n;
    *dag = (bz_dag){.n = l->n, .first = first, .pred = pred};
    BZ_FREED unsigned char *role = bz_zeroed((size_t)l->n, sizeof *role);
    for (int i = 0; i < l->n; i++)
        role[i] = l->layer[i].class == BZ_CONSTANT ? BZ_NODE_AHEAD
                  : l->layer[i].class == BZ_VIEW   ? BZ_NODE_WAY
                                                   : BZ_NODE_WORK;
    bz_dag_find_modules(dag, role, &l->arena);
    return dag;
}
