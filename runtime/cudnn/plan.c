/* Engine configurations and plans, each made once. Asking heuristics takes tens of milliseconds, and compiling a plan half a
 * second; what came of it is kept in a folder (runtime/kept.h), for the next process that needs the same. A key names
 * the library's version, the device as cuDNN describes it, this module by the hash of its file (another one may make another
 * graph of the same problem), the problem, and what is made of it.
 *
 * Plans are kept as the library's own JSON, which it reads back without compiling anew. Configurations are kept as their names,
 * which hold the engine's number and all of its knobs. */
#include "runtime/cudnn/graph.h"

#include "base/map.h"
#include "base/progress.h"
#include "base/whole.h"
#include "runtime/kept.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_MOST = 32 << 20, MODULE_MOST = 256 << 20 };

/* A plan that is built sooner than this, in seconds, is not kept: reading it back would take as long. */
#define WORTH_KEEPING 0.005

/* Bytes of all that is kept; what was made longest ago goes first. */
#define KEPT_MOST 1e9

static cudnnStatus_t json_of(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, bz_buf *out)
{
    int64_t n = 0;
    TRY(cudnnBackendGetAttribute(d, name, CUDNN_TYPE_CHAR, 0, &n, NULL));
    if (n <= 0 || n > JSON_MOST)
        return CUDNN_STATUS_NOT_SUPPORTED;
    char *to = bz_buf_extend(out, (size_t)n);
    return cudnnBackendGetAttribute(d, name, CUDNN_TYPE_CHAR, n, &n, to);
}

cudnnStatus_t cudnn_device_find(int number, cudnnBackendDescriptor_t *out)
{
    int32_t id = number;
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, out));
    TRY(graph_set(*out, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id));
    return cudnnBackendFinalize(*out);
}

static bool hash_module(char out[33])
{
    BZ_SCOPED(bz_buf) text = {0};
    Dl_info where;
    bool found = dladdr((const void *)bz_cudnn_kinds, &where) && where.dli_fname &&
                 !bz_whole_read(where.dli_fname, MODULE_MOST, "is no module", &text, NULL);
    bz_hash_hex(bz_hash_bytes(bz_buf_text(&text), text.len), out);
    return found;
}

bool cudnn_shelf_open(cudnn_shelf *s, const char *folder, void *device)
{
    char module[33];
    BZ_SCOPED(bz_buf) json = {0};
    *s = (cudnn_shelf){0};
    if (hash_module(module) &&
        json_of(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, &json) == CUDNN_STATUS_SUCCESS) {
        s->folder = folder;
        bz_buf_printf(&s->about, "cudnn %zu\nmodule %s\ndevice %s\n", cudnnGetVersion(), module, bz_buf_text(&json));
    }
    return s->folder;
}

void cudnn_shelf_close(cudnn_shelf *s)
{
    bz_buf_free(&s->about);
    s->folder = NULL;
}

static void key_of(const call *c, const char *what, bz_buf *out)
{
    bz_buf_put(out, bz_buf_text(&c->shelf->about), c->shelf->about.len);
    bz_problem_print(c->problem, out);
    bz_buf_printf(out, "\n%s math %d%s row %d\n%s\n", c->nhwc ? "nhwc" : "plain", (int)c->math,
                  c->half_sums ? " f16" : "", (int)(c->kind - bz_cudnn_kinds), what);
}

static cudnnStatus_t make_choice(int64_t type, int64_t value, cudnnBackendDescriptor_t *out)
{
    cudnnBackendKnobType_t knob = (cudnnBackendKnobType_t)type;
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, out));
    TRY(graph_set(*out, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob));
    TRY(graph_set(*out, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value));
    return cudnnBackendFinalize(*out);
}

static cudnnStatus_t make_engine(const call *c, int64_t number, cudnnBackendDescriptor_t *out)
{
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, out));
    TRY(graph_set_desc(*out, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, c->graph->graph));
    TRY(graph_set(*out, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number));
    if (c->device)
        TRY(graph_set_desc(*out, CUDNN_ATTR_ENGINE_DEVICEPROP, c->device));
    return cudnnBackendFinalize(*out);
}

static cudnnStatus_t make_config(cudnnBackendDescriptor_t engine, int n, const cudnnBackendDescriptor_t *choice,
                                 cudnnBackendDescriptor_t *out)
{
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, out));
    TRY(graph_set_desc(*out, CUDNN_ATTR_ENGINECFG_ENGINE, engine));
    if (n)
        TRY(graph_set(*out, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, choice));
    return cudnnBackendFinalize(*out);
}

cudnnStatus_t cudnn_config_named(const call *c, const char *name, cudnnBackendDescriptor_t *out)
{
    enum { MOST = CUDNN_KNOB_TYPE_COUNTS };
    cudnnBackendDescriptor_t engine = NULL, choice[MOST];
    cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM;
    long long number, value;
    int at = 0, type, n = 0, step = 0;
    *out = NULL;
    if (sscanf(name, "engine %lld%n", &number, &at) == 1)
        status = make_engine(c, number, &engine);
    at += strncmp(name + at, "+tensor", 7) ? 0 : 7;
    for (; status == CUDNN_STATUS_SUCCESS && name[at] && n < MOST; at += step, n++) {
        choice[n] = NULL;
        status = sscanf(name + at, " k%d=%lld%n", &type, &value, &step) == 2 ? make_choice(type, value, &choice[n])
                                                                             : CUDNN_STATUS_BAD_PARAM;
    }
    if (status == CUDNN_STATUS_SUCCESS)
        status = name[at] ? CUDNN_STATUS_BAD_PARAM : make_config(engine, n, choice, out);
    if (status != CUDNN_STATUS_SUCCESS)
        graph_forget(out);
    while (n--)
        graph_forget(&choice[n]);
    graph_forget(&engine);
    return status;
}

static void configs_key(const call *c, bz_buf *out)
{
    char what[48];
    snprintf(what, sizeof what, "configurations, engines %d", c->engines);
    key_of(c, what, out);
}

bool cudnn_configs_take(call *c)
{
    struct graph_call *g = c->graph;
    BZ_SCOPED(bz_buf) key = {0}, text = {0};
    char *rest = NULL;
    if (!c->shelf)
        return false;
    configs_key(c, &key);
    bool good = bz_kept_take(c->shelf->folder, bz_buf_text(&key), &text);
    char *line = good ? strtok_r(text.data, "\n", &rest) : NULL;
    long chosen = line ? strtol(line, NULL, 10) : -1;
    while (good && (line = strtok_r(NULL, "\n", &rest))) {
        graph_config *config = &g->config[g->n_configs];
        good = g->n_configs < GRAPH_CONFIGS && strlen(line) < sizeof config->name;
        if (!good)
            break;
        *config = (graph_config){.native = *line == '*'};
        snprintf(config->name, sizeof config->name, "%s", line + config->native);
        g->n_configs++;
    }
    g->n_configs = good ? g->n_configs : 0; /* the library has to be asked */
    g->chosen = good && chosen >= 0 && chosen < g->n_configs ? (int)chosen : -1;
    return good;
}

void cudnn_configs_keep(const call *c)
{
    const struct graph_call *g = c->graph;
    BZ_SCOPED(bz_buf) key = {0}, text = {0};
    if (!c->shelf)
        return;
    bz_buf_printf(&text, "%d\n", g->chosen);
    for (int i = 0; i < g->n_configs; i++)
        bz_buf_printf(&text, "%s%s\n", g->config[i].native ? "*" : "", g->config[i].name);
    configs_key(c, &key);
    bz_kept_put(c->shelf->folder, bz_buf_text(&key), text.data, text.len);
}

static cudnnStatus_t set_device(const call *c, cudnnBackendDescriptor_t plan)
{
    return c->device ? graph_set_desc(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, c->device)
                     : graph_set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->handle);
}

static cudnnStatus_t build_plan(const call *c, cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *out)
{
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, out));
    TRY(set_device(c, *out));
    TRY(graph_set_desc(*out, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config));
    return cudnnBackendFinalize(*out);
}

/* Making a configuration from its name takes 5 ms, as long as reading a plan: only what has to be built needs one. */
static cudnnStatus_t build(const call *c, const graph_config *config, cudnnBackendDescriptor_t *out)
{
    cudnnBackendDescriptor_t made = NULL;
    if (!config->desc)
        TRY(cudnn_config_named(c->first ? c->first : c, config->name, &made));
    cudnnStatus_t status = build_plan(c, made ? made : config->desc, out);
    graph_forget(&made);
    return status;
}

static cudnnStatus_t load(const call *c, const bz_buf *json, cudnnBackendDescriptor_t *out)
{
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, out));
    TRY(graph_set(*out, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)json->len,
                  json->data));
    TRY(set_device(c, *out));
    return cudnnBackendFinalize(*out);
}

/* The library writes plans as text only where it compiled them; all others are built at once. */
static void keep(const call *c, const bz_buf *key, cudnnBackendDescriptor_t plan)
{
    BZ_SCOPED(bz_buf) json = {0};
    if (json_of(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, &json) == CUDNN_STATUS_SUCCESS) {
        bz_kept_put(c->shelf->folder, bz_buf_text(key), json.data, json.len);
        bz_kept_trim(c->shelf->folder, KEPT_MOST);
    }
}

cudnnStatus_t cudnn_plan_get(const call *c, const graph_config *config, cudnnBackendDescriptor_t *out)
{
    BZ_SCOPED(bz_buf) key = {0}, json = {0};
    cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
    *out = NULL;
    if (!c->shelf)
        return build(c, config, out);
    key_of(c, config->name, &key);
    if (bz_kept_take(c->shelf->folder, bz_buf_text(&key), &json))
        status = load(c, &json, out);
    if (status != CUDNN_STATUS_SUCCESS) {
        graph_forget(out);
        double from = bz_now();
        status = build(c, config, out);
        if (status == CUDNN_STATUS_SUCCESS && bz_now() - from > WORTH_KEEPING)
            keep(c, &key, *out);
    }
    return status;
}

static void build_row(const bz_job *job, const cudnn_kind *kind, const char *layout, const char *math,
                      const cudnn_shelf *shelf, cudnnBackendDescriptor_t device)
{
    char name[200];
    bz_error why;
    call *c = bz_cudnn_describe(kind, job->problem, job->operand, job->n_operands, layout, math, &why);
    if (!c)
        return;
    c->device = device;
    c->shelf = shelf;
    c->engines = job->setting->engines;
    for (int i = 0; cudnn_graph_algorithm(c, i, name, sizeof name) && i < c->graph->n_configs; i++) {
        cudnnBackendDescriptor_t plan;
        cudnn_plan_get(c, &c->graph->config[i], &plan);
        graph_forget(&plan);
    }
    bz_cudnn_free(c);
}

void cudnn_build_for(const bz_job *job, const char *layout, const char *math, cudnnBackendDescriptor_t device)
{
    cudnn_shelf shelf;
    if (!cudnn_shelf_open(&shelf, job->setting->plans, device))
        return;
    for (const cudnn_kind *k = bz_cudnn_kinds; k->kind; k++)
        if (k->kind == job->problem->kind && k->release == cudnn_release_graph)
            build_row(job, k, layout, math, &shelf, device);
    cudnn_shelf_close(&shelf);
}

void cudnn_ahead(const bz_job *job, const char *layout, const char *math)
{
    cudnnBackendDescriptor_t device = NULL;
    if (job->setting->plans && cudnn_device_find(0, &device) == CUDNN_STATUS_SUCCESS)
        cudnn_build_for(job, layout, math, device);
    graph_forget(&device);
}
