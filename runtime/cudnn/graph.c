/* The graph interface of cuDNN: operations make a graph, heuristics propose engine configurations for it, and each
 * of them is a variant. */
#include "runtime/cudnn/graph.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Since cuDNN 9.5. PyTorch brought 9.1 for long, and there is no reason that the rest should not run with that. */
#pragma weak cudnnBackendPopulateCudaGraph
#pragma weak cudnnBackendUpdateCudaGraph

static cudnnStatus_t make_graph(call *c)
{
    struct graph_call *g = c->graph;
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &g->graph));
    if (!c->device)
        TRY(graph_set(g->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->handle));
    TRY(graph_set(g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops, g->op));
    return cudnnBackendFinalize(g->graph);
}

enum { KNOBS = CUDNN_KNOB_TYPE_COUNTS };

/* What a descriptor knows of knobs: [KNOBS], which begin as NULL, and how many of them. The caller destroys all. */
static cudnnStatus_t list_knobs(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t attribute,
                                cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *list, int64_t *n)
{
    for (int i = 0; i < KNOBS; i++)
        TRY(cudnnBackendCreateDescriptor(type, &list[i]));
    return cudnnBackendGetAttribute(of, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS, n, list);
}

static cudnnStatus_t get_type(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t attribute, int *out)
{
    int64_t n;
    cudnnBackendKnobType_t type;
    TRY(cudnnBackendGetAttribute(d, attribute, CUDNN_TYPE_KNOB_TYPE, 1, &n, &type));
    *out = (int)type;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_number(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t attribute, int64_t *out)
{
    int64_t n;
    return cudnnBackendGetAttribute(d, attribute, CUDNN_TYPE_INT64, 1, &n, out);
}

/* "engine 5 k2=18 k13=1": the engine's number and its knobs by their numbers, as cuDNN itself names them. */
static cudnnStatus_t name_knobs(cudnnBackendDescriptor_t config, char *out, size_t size)
{
    cudnnBackendDescriptor_t knob[KNOBS] = {0};
    int64_t n = 0, value = 0;
    int type = 0;
    size_t at = strlen(out);
    cudnnStatus_t status =
        list_knobs(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, knob, &n);
    for (int64_t i = 0; i < n && i < KNOBS && status == CUDNN_STATUS_SUCCESS; i++) {
        status = get_type(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, &type);
        status = status ? status : get_number(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &value);
        if (status == CUDNN_STATUS_SUCCESS && at < size)
            at += (size_t)snprintf(out + at, size - at, " k%d=%lld", type, (long long)value);
    }
    for (int i = 0; i < KNOBS; i++)
        graph_forget(&knob[i]);
    return status;
}

/* What an engine does to numbers. */
typedef struct notes {
    bool tensor, converts;
} notes;

/* The engine of a configuration; the caller destroys it. */
static cudnnStatus_t engine_of(cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *out)
{
    int64_t n = 0;
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, out));
    cudnnStatus_t status =
        cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, out);
    if (status != CUDNN_STATUS_SUCCESS)
        graph_forget(out);
    return status;
}

/* Whether the engine can make a CUDA graph of itself. */
static bool is_native(cudnnBackendDescriptor_t config)
{
    cudnnBackendDescriptor_t engine;
    cudnnBackendBehaviorNote_t note[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t n = 0;
    bool native = false;
    if (!cudnnBackendPopulateCudaGraph || engine_of(config, &engine) != CUDNN_STATUS_SUCCESS)
        return false;
    if (cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                 CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n, note) != CUDNN_STATUS_SUCCESS)
        n = 0;
    for (int64_t i = 0; i < n && i < CUDNN_BEHAVIOR_NOTE_TYPE_COUNT; i++)
        native |= note[i] == CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API;
    cudnnBackendDestroyDescriptor(engine);
    return native;
}

static cudnnStatus_t look_at(cudnnBackendDescriptor_t config, char *name, size_t size, notes *out)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0, number = 0;
    *out = (notes){0};
    TRY(engine_of(config, &engine));
    cudnnStatus_t status =
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &number);
    n = 0;
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                          CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note);
    for (int64_t i = 0; i < n && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) {
        out->tensor |= note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        out->converts |= note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    }
    cudnnBackendDestroyDescriptor(engine);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    snprintf(name, size, "engine %lld%s", (long long)number, out->tensor ? "+tensor" : "");
    return name_knobs(config, name, size);
}

/* f32 is computed in f32 unless the user allowed less: tensor cores have no f32. Where nothing is multiplied and summed
 * up, that an engine knows them means nothing. */
static bool is_allowed(const call *c, notes n)
{
    if (c->problem->dtype != BZ_F32)
        return true;
    if (!bz_problem_has(c->problem, BZ_TRAIT_PRODUCT))
        return !n.converts;
    if (c->math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
        return n.converts;
    return !n.converts && n.tensor == (c->math == CUDNN_TENSOR_OP_MATH);
}

enum { USUAL_ENGINES = 10, MOST_WALKED = 96, MOST_TURNED = 2000 };

/* Modes propose the same configuration again: each is kept once, at its first place. Whether it may be used. */
static bool keep_config(call *c, cudnnBackendDescriptor_t config)
{
    struct graph_call *g = c->graph;
    notes n;
    char name[140];
    bool allowed = look_at(config, name, sizeof name, &n) == CUDNN_STATUS_SUCCESS && is_allowed(c, n);
    bool keep = allowed && g->n_configs < GRAPH_CONFIGS;
    for (int i = 0; i < g->n_configs && keep; i++)
        keep = strcmp(g->config[i].name, name) != 0;
    if (!keep) {
        cudnnBackendDestroyDescriptor(config);
        return allowed;
    }
    g->config[g->n_configs].desc = config;
    g->config[g->n_configs].native = is_native(config);
    memcpy(g->config[g->n_configs++].name, name, sizeof name);
    return true;
}

static cudnnStatus_t ask_mode(call *c, cudnnBackendHeurMode_t mode)
{
    cudnnBackendDescriptor_t heuristic = NULL, result[GRAPH_CONFIGS] = {0};
    int64_t n = 0, made = 0;
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic));
    cudnnStatus_t status = graph_set_desc(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, c->graph->graph);
    status = status ? status : graph_set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (status == CUDNN_STATUS_SUCCESS && c->device)
        status = graph_set_desc(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, c->device);
    status = status ? status : cudnnBackendFinalize(heuristic);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                          &n, NULL);
    n = n > GRAPH_CONFIGS ? GRAPH_CONFIGS : n;
    for (; made < n && status == CUDNN_STATUS_SUCCESS; made++)
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &result[made]);
    if (status == CUDNN_STATUS_SUCCESS && n)
        status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n,
                                          &n, result);
    int taken = 0; /* those that an earlier mode proposed, too */
    int most = c->engines > 0 ? c->engines : c->engines < 0 ? GRAPH_CONFIGS : USUAL_ENGINES;
    for (int64_t i = 0; i < made; i++)
        if (i < n && status == CUDNN_STATUS_SUCCESS && taken < most)
            taken += keep_config(c, result[i]);
        else
            graph_forget(&result[i]);
    cudnnBackendDestroyDescriptor(heuristic);
    return status;
}

/* Each engine that the library has for the graph, with its usual knobs: heuristics leave out what they take for slow. */
static void walk_engines(call *c)
{
    int64_t n = 0;
    char name[32];
    if (get_number(c->graph->graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, &n) != CUDNN_STATUS_SUCCESS)
        return;
    n = n > MOST_WALKED ? MOST_WALKED : n;
    for (int64_t i = 0; i < n; i++) {
        cudnnBackendDescriptor_t config;
        snprintf(name, sizeof name, "engine %lld", (long long)i);
        if (cudnn_config_named(c, name, &config) == CUDNN_STATUS_SUCCESS)
            keep_config(c, config);
    }
}

/* What a knob of an engine may be. */
typedef struct knob {
    int type;
    int64_t least, most, step;
} knob;

static int find_knobs(cudnnBackendDescriptor_t config, knob *out)
{
    cudnnBackendDescriptor_t engine = NULL, info[KNOBS] = {0};
    int64_t n = 0;
    int found = 0;
    cudnnStatus_t status = engine_of(config, &engine);
    if (status == CUDNN_STATUS_SUCCESS)
        status = list_knobs(engine, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, info, &n);
    for (int64_t i = 0; i < n && i < KNOBS && status == CUDNN_STATUS_SUCCESS; i++) {
        knob *k = &out[found];
        bool known = get_type(info[i], CUDNN_ATTR_KNOB_INFO_TYPE, &k->type) == CUDNN_STATUS_SUCCESS &&
                     get_number(info[i], CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, &k->least) == CUDNN_STATUS_SUCCESS &&
                     get_number(info[i], CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, &k->most) == CUDNN_STATUS_SUCCESS &&
                     get_number(info[i], CUDNN_ATTR_KNOB_INFO_STRIDE, &k->step) == CUDNN_STATUS_SUCCESS;
        found += known && k->step > 0 && k->least >= INT32_MIN && k->most <= INT32_MAX && k->most > k->least;
    }
    for (int i = 0; i < KNOBS; i++)
        graph_forget(&info[i]);
    graph_forget(&engine);
    return found;
}

/* Takes the configuration of this name with the knob so many steps from where it stands, or where it stands nowhere, from its
 * least; whether that is within its range. */
static bool turn_knob(call *c, const char *name, const knob *k, int64_t steps)
{
    char own[16], turned[200];
    cudnnBackendDescriptor_t config;
    snprintf(own, sizeof own, " k%d=", k->type);
    const char *at = strstr(name, own);
    char *rest = "";
    int64_t value = (at ? strtoll(at + strlen(own), &rest, 10) : k->least) + steps * k->step;
    if (value < k->least || value > k->most)
        return false;
    snprintf(turned, sizeof turned, "%.*s%s%lld%s", (int)(at ? (size_t)(at - name) : strlen(name)), name, own,
             (long long)value, rest);
    if (cudnn_config_named(c, turned, &config) == CUDNN_STATUS_SUCCESS)
        keep_config(c, config);
    return true;
}

/* Each knob of the first configuration of each engine, one step up and down, then two, and so on, as long as there is room: what
 * is near a library's choice is measured for all engines before what is far. */
static void turn_knobs(call *c)
{
    typedef struct base {
        char name[140];
        knob knob[KNOBS];
        int n;
    } base;
    struct graph_call *g = c->graph;
    int n = 0, tried = 0;
    bool any = true;
    BZ_FREED base *bases = bz_alloc(GRAPH_CONFIGS, sizeof *bases);
    for (int i = 0; i < g->n_configs; i++) {
        size_t engine = strcspn(g->config[i].name + 7, " +") + 7; /* behind "engine " */
        int k = 0;
        while (k < n &&
               (strncmp(bases[k].name, g->config[i].name, engine) != 0 || strchr(" +", bases[k].name[engine]) == NULL))
            k++;
        if (k < n)
            continue;
        memcpy(bases[n].name, g->config[i].name, sizeof bases[n].name);
        bases[n].n = find_knobs(g->config[i].desc, bases[n].knob);
        n++;
    }
    for (int64_t steps = 1; any; steps++) {
        any = false;
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 2 * bases[i].n && g->n_configs < GRAPH_CONFIGS && tried < MOST_TURNED; k++) {
                bool within = turn_knob(c, bases[i].name, &bases[i].knob[k / 2], k % 2 ? -steps : steps);
                any |= within;
                tried += within;
            }
    }
}

/* A mode that refuses proposes nothing; that all of them do is what the library has to say. */
static void ask(call *c)
{
    static const cudnnBackendHeurMode_t MODES[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK};
    c->graph->asked = true;
    c->graph->chosen = -1;
    if (make_graph(c) != CUDNN_STATUS_SUCCESS || cudnn_configs_take(c))
        return;
    for (int i = 0; i < 3; i++) {
        ask_mode(c, MODES[i]);
        if (!i && c->graph->n_configs)
            c->graph->chosen = 0;
    }
    if (c->engines < 0) {
        walk_engines(c);
        turn_knobs(c);
    }
    cudnn_configs_keep(c);
}

/* Whether a configuration has a second variant. */
static bool is_twice(const call *c, int config)
{
    return (c->engines < 0 || config == c->graph->chosen) && c->graph->config[config].native;
}

/* Behind the configurations stand those that are launched as CUDA graphs, too: the library's choice; all that can be where
 * all engines are asked for. The configuration of variant i; -1 behind the last. */
static int config_of(const call *c, int i)
{
    const struct graph_call *g = c->graph;
    if (i < g->n_configs)
        return i;
    i -= g->n_configs;
    for (int k = 0; k < g->n_configs; k++)
        if (is_twice(c, k) && !i--)
            return k;
    return -1;
}

const char *cudnn_graph_algorithm(const call *c, int i, char *out, size_t size)
{
    if (!c->graph->asked)
        ask((call *)c);
    int config = config_of(c, i);
    if (config < 0)
        return NULL;
    snprintf(out, size, "%s %s%s", c->kind->name ? c->kind->name : "graph", c->graph->config[config].name,
             i < c->graph->n_configs ? "" : "+cudagraph");
    return out;
}

int cudnn_graph_choice(call *c)
{
    if (!c->graph->asked)
        ask(c);
    return c->graph->chosen;
}

/* Engines may want more than the 16 bytes that tensors are said to be aligned to. */
enum { ALIGNED = 256 };

static cudnnStatus_t make_plan(call *c)
{
    struct graph_call *g = c->graph;
    int64_t size = 0, n = 0;
    struct graph_call *asked = c->first->graph;
    int i = config_of(c->first, c->algorithm);
    g->plan = asked->config[i].plan;
    if (!g->plan)
        TRY(cudnn_plan_get(c, &asked->config[i], &g->plan));
    if (is_twice(c->first, i)) /* cuDNN 9.14 fails to compile most of these a second time in one process */
        asked->config[i].plan = g->plan;
    g->native = c->algorithm >= asked->n_configs;
    TRY(cudnnBackendGetAttribute(g->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &size));
    c->workspace = size > 0 ? (size_t)size : 0;
    for (int k = 0; k < g->n_tensors; k++) {
        graph_tensor *t = &g->tensor[k];
        if (!t->room)
            continue;
        t->at = (c->workspace + ALIGNED - 1) / ALIGNED * ALIGNED;
        c->workspace = t->at + t->room;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Made before each first call only: the workspace is shared and may have moved since. */
static cudnnStatus_t make_pack(call *c)
{
    struct graph_call *g = c->graph;
    int64_t number[GRAPH_TENSORS];
    void *data[GRAPH_TENSORS];
    int n = 0;
    for (int i = 0; i < g->n_tensors; i++) {
        graph_tensor *t = &g->tensor[i];
        if (t->memory.operand < 0 && !t->number && !t->cell && !t->room)
            continue;
        number[n] = i + 1;
        data[n++] = t->number ? (void *)&t->value : t->room ? (char *)c->cuda->workspace + t->at : t->memory.data;
    }
    graph_forget(&g->pack);
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &g->pack));
    TRY(graph_set(g->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, data));
    TRY(graph_set(g->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, number));
    TRY(graph_set(g->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &c->cuda->workspace));
    c->packed_for = c->cuda->workspace;
    return cudnnBackendFinalize(g->pack);
}

static int put_cell(graph_tensor *t, bz_error *err)
{
    size_t size = t->scales ? t->scales : t->whole ? t->wholes * sizeof *t->whole : sizeof t->value;
    const void *from = t->whole ? (const void *)t->whole : (const void *)&t->value;
    if (!t->memory.data && bz_cuda_alloc(size, &t->memory.data, err))
        return -1;
    cudaError_t status = t->scales ? cudaMemset(t->memory.data, t->value.whole, size)
                                   : cudaMemcpy(t->memory.data, from, size, cudaMemcpyHostToDevice);
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "bringing a number to the device", status);
}

int cudnn_prepare_graph(call *c, session *s, bz_error *err)
{
    struct graph_call *g = c->graph;
    for (int i = 0; i < g->n_tensors; i++)
        if (g->tensor[i].cell ? put_cell(&g->tensor[i], err) : bz_cudnn_upload(s, &g->tensor[i].memory, err))
            return -1;
    c->y = g->tensor[g->y].memory;
    cudnnStatus_t status = make_plan(c);
    g->native &= !s->job->placed; /* a replay makes one graph of all calls */
    return status == CUDNN_STATUS_SUCCESS ? 0 : bz_cudnn_failed(err, "making the plan", status);
}

static void forget_exec(struct graph_call *g)
{
    if (g->exec)
        cudaGraphExecDestroy(g->exec);
    g->exec = NULL;
}

/* Anew where the workspace has moved: its address stands in the graph. */
static cudnnStatus_t make_cuda_graph(call *c)
{
    struct graph_call *g = c->graph;
    bool again = g->cuda_graph;
    forget_exec(g);
    if (!again && cudaGraphCreate(&g->cuda_graph, 0) != cudaSuccess)
        return CUDNN_STATUS_ALLOC_FAILED;
    TRY(again ? cudnnBackendUpdateCudaGraph(c->handle, g->plan, g->pack, g->cuda_graph)
              : cudnnBackendPopulateCudaGraph(c->handle, g->plan, g->pack, g->cuda_graph));
    return cudaGraphInstantiate(&g->exec, g->cuda_graph, 0) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                           : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnn_run_graph(call *c)
{
    struct graph_call *g = c->graph;
    bool moved = !g->pack || c->packed_for != c->cuda->workspace;
    if (moved)
        TRY(make_pack(c));
    if (!g->native)
        return cudnnBackendExecute(c->handle, g->plan, g->pack);
    if (moved || !g->exec)
        TRY(make_cuda_graph(c));
    return cudaGraphLaunch(g->exec, c->cuda->stream) == cudaSuccess ? CUDNN_STATUS_SUCCESS
                                                                    : CUDNN_STATUS_EXECUTION_FAILED;
}

/* Whether the plan is the configuration's, which the second variant has, too. */
static bool is_plan_shared(const call *c)
{
    int i = c->first ? config_of(c->first, c->algorithm) : -1;
    return i >= 0 && c->first->graph->config[i].plan == c->graph->plan;
}

void cudnn_release_graph(call *c)
{
    struct graph_call *g = c->graph;
    if (!g)
        return;
    forget_exec(g);
    if (g->cuda_graph)
        cudaGraphDestroy(g->cuda_graph);
    graph_forget(&g->pack);
    if (!is_plan_shared(c))
        graph_forget(&g->plan);
    for (int i = 0; i < g->n_configs; i++) {
        graph_forget(&g->config[i].plan);
        graph_forget(&g->config[i].desc);
    }
    graph_forget(&g->graph);
    for (int i = 0; i < g->n_ops; i++)
        graph_forget(&g->op[i]);
    for (int i = 0; i < g->n_parts; i++)
        graph_forget(&g->part[i]);
    for (int i = 0; i < g->n_tensors; i++) {
        graph_forget(&g->tensor[i].desc);
        if (g->tensor[i].cell)
            bz_cuda_free(g->tensor[i].memory.data);
        free(g->tensor[i].whole);
    }
    free(g);
    c->graph = NULL;
}
