/* All algorithms of cublasLt. Its heuristic names a few that it takes for fast; the library has tens of them, each with tiles,
 * stages, splits of the depth and options of its own, and checks any combination without running it. */
#include "runtime/cublas/cublas.h"

#include <string.h>

enum { MOST_IDS = 128, MOST_PARTS = 64, MOST_CHECKS = 512, MOST_CUSTOM = 16 };

/* One algorithm and what may be chosen of it. Where a list is empty, the library's own choice stands. */
typedef struct choices {
    cublasLtMatmulAlgo_t base;
    uint32_t tile[MOST_PARTS], stage[MOST_PARTS];
    int n_tiles, n_stages, n_custom, n_swizzles, n_splits;
    uint32_t reduction; /* with which the parts of a split depth are added */
} choices;

static const int32_t SPLITS[] = {1, 2, 4, 8, 16};
enum { N_SPLITS = sizeof SPLITS / sizeof *SPLITS };

/* How many there are; longer lists are cut. */
static int read_list(const cublasLtMatmulAlgo_t *a, cublasLtMatmulAlgoCapAttributes_t what, uint32_t *out)
{
    size_t size = 0;
    if (cublasLtMatmulAlgoCapGetAttribute(a, what, NULL, 0, &size) != CUBLAS_STATUS_SUCCESS || !size)
        return 0;
    uint32_t all[1024];
    if (size > sizeof all || cublasLtMatmulAlgoCapGetAttribute(a, what, all, size, &size) != CUBLAS_STATUS_SUCCESS ||
        size > sizeof all)
        return 0;
    int n = (int)(size / sizeof *all), kept = n < MOST_PARTS ? n : MOST_PARTS;
    for (int i = 0; i < kept; i++) /* of a longer list as many, evenly */
        out[i] = all[(int64_t)i * n / kept];
    return kept;
}

static int32_t read_one(const cublasLtMatmulAlgo_t *a, cublasLtMatmulAlgoCapAttributes_t what)
{
    int32_t v = 0;
    size_t size;
    return cublasLtMatmulAlgoCapGetAttribute(a, what, &v, sizeof v, &size) == CUBLAS_STATUS_SUCCESS ? v : 0;
}

static void read_choices(choices *c)
{
    uint32_t schemes = (uint32_t)read_one(&c->base, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK);
    int32_t custom = read_one(&c->base, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX);
    c->n_tiles = read_list(&c->base, CUBLASLT_ALGO_CAP_TILE_IDS, c->tile);
    c->n_stages = read_list(&c->base, CUBLASLT_ALGO_CAP_STAGES_IDS, c->stage);
    c->n_custom = custom < 0 ? 1 : custom < MOST_CUSTOM ? custom + 1 : MOST_CUSTOM;
    c->n_swizzles = read_one(&c->base, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT) ? 2 : 1;
    c->reduction = schemes & (~schemes + 1); /* the first that it has */
    c->n_splits = read_one(&c->base, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT) && c->reduction ? N_SPLITS : 1;
}

static bool set(cublasLtMatmulAlgo_t *a, cublasLtMatmulAlgoConfigAttributes_t what, uint32_t v)
{
    return cublasLtMatmulAlgoConfigSetAttribute(a, what, &v, sizeof v) == CUBLAS_STATUS_SUCCESS;
}

static int options(const choices *c)
{
    return (c->n_tiles ? c->n_tiles : 1) * (c->n_stages ? c->n_stages : 1) * c->n_custom * c->n_swizzles * c->n_splits;
}

/* Combination i of all, the tile changing fastest. */
static bool choose(const choices *c, int i, cublasLtMatmulAlgo_t *out)
{
    bool good = true;
    *out = c->base;
    if (c->n_tiles) {
        good = set(out, CUBLASLT_ALGO_CONFIG_TILE_ID, c->tile[i % c->n_tiles]);
        i /= c->n_tiles;
    }
    if (c->n_stages) {
        good &= set(out, CUBLASLT_ALGO_CONFIG_STAGES_ID, c->stage[i % c->n_stages]);
        i /= c->n_stages;
    }
    if (i % c->n_custom)
        good &= set(out, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, (uint32_t)(i % c->n_custom));
    i /= c->n_custom;
    if (i % c->n_swizzles)
        good &= set(out, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 1);
    i /= c->n_swizzles;
    if (i % c->n_splits)
        good &= set(out, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, (uint32_t)SPLITS[i % c->n_splits]) &&
                set(out, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, c->reduction);
    return good;
}

static bool is_new(const lt_plan *plan, const cublasLtMatmulAlgo_t *algorithm)
{
    char name[160], other[160];
    cublas_lt_name(algorithm, name, sizeof name);
    for (int i = 0; i < plan->n; i++) {
        cublas_lt_name(&plan->algorithm[i].algo, other, sizeof other);
        if (plan->algorithm[i].state == CUBLAS_STATUS_SUCCESS && !strcmp(name, other))
            return false;
    }
    return true;
}

/* Adds the combination where the library says that it runs. */
static bool add(cublasLtHandle_t lt, lt_plan *plan, const cublasLtMatmulAlgo_t *algorithm, size_t workspace)
{
    cublasLtMatmulHeuristicResult_t r = {0};
    cublasLtMatrixLayout_t added = plan->other ? plan->other : plan->result;
    if (cublasLtMatmulAlgoCheck(lt, plan->desc, plan->left, plan->right, added, plan->result, algorithm, &r) !=
            CUBLAS_STATUS_SUCCESS ||
        r.workspaceSize > workspace || !is_new(plan, algorithm))
        return false;
    r.algo = *algorithm; /* the check leaves it alone */
    r.state = CUBLAS_STATUS_SUCCESS;
    plan->algorithm[plan->n++] = r;
    return true;
}

static int divisor(int a, int b)
{
    return b ? divisor(b, a % b) : a;
}

/* A step through n combinations that comes to each of them once, and far from the last. */
static int stride_of(int n)
{
    int step = (int)(0.618 * n) + 1;
    while (divisor(n, step) != 1)
        step++;
    return step;
}

static void walk_one(cublasLtHandle_t lt, lt_plan *plan, const choices *c, int most, size_t workspace)
{
    int n = options(c), step = stride_of(n), found = 0;
    cublasLtMatmulAlgo_t algorithm;
    for (int i = 0, at = 0; i < n && i < MOST_CHECKS && found < most; i++, at = (int)(((int64_t)at + step) % n))
        found += choose(c, at, &algorithm) && add(lt, plan, &algorithm, workspace);
}

int cublas_lt_walk(cublasLtHandle_t lt, lt_plan *plan, const types *t, size_t workspace)
{
    int id[MOST_IDS], n = 0, before = plan->n;
    if (cublasLtMatmulAlgoGetIds(lt, t->compute, t->scale, t->left, t->right, cublas_added_type(t), t->result, MOST_IDS,
                                 id, &n) != CUBLAS_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < n && i < MOST_IDS && plan->n < CUBLAS_MOST_ALGORITHMS; i++) {
        choices c = {0};
        if (cublasLtMatmulAlgoInit(lt, t->compute, t->scale, t->left, t->right, cublas_added_type(t), t->result, id[i],
                                   &c.base) != CUBLAS_STATUS_SUCCESS)
            continue;
        read_choices(&c);
        int left = CUBLAS_MOST_ALGORITHMS - plan->n, algorithms = n - i;
        walk_one(lt, plan, &c, (left + algorithms - 1) / algorithms, workspace);
    }
    return plan->n - before;
}
