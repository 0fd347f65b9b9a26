/* conformance_replayed EXPECTED PATTERN...: replays every model of the ONNX package that a replay can be made of, on the inputs that come with it,
 * and holds the outputs against those that come with it.
 *
 * EXPECTED lists why models have no replay, or give something else, one "OPERATOR: reason" a line. It must be exact: a line that no model needs
 * any more fails the test like a model without a line. What other packages' models have begins with a question mark. -v names the models.
 *
 * The plan's tables run here, in this process: what `benanza replay` does besides is write them down as C. */
#include "replay/replay.h"
#include "tests/conformance/replayed_run.h"
#include "tests/unit/writer.h"

#include <glob.h>
#include <math.h>

typedef struct line {
    char *text;
    bool met, optional;
    int count;
} line;

typedef struct survey {
    line *list;
    int n, models, right, unread, wrong;
    bool names;
} survey;

static line *find_line(survey *s, const char *text)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->list[i].text, text))
            return &s->list[i];
    s->list = realloc(s->list, (size_t)(s->n + 1) * sizeof *s->list);
    s->list[s->n] = (line){.text = strdup(text)};
    return &s->list[s->n++];
}

static int read_list(survey *s, const char *path)
{
    FILE *f = fopen(path, "r");
    char text[800];
    if (!f)
        return -1;
    while (fgets(text, sizeof text, f)) {
        text[strcspn(text, "\n")] = 0;
        bool optional = !strncmp(text, "? ", 2);
        if (*text && *text != '#') {
            line *l = find_line(s, optional ? text + 2 : text);
            l->optional = optional, l->count = -1;
        }
    }
    fclose(f);
    return 0;
}

/* A file is the message of a tensor: as the only initializer of a model it is read as such. NULL: there is none, or it is no tensor. */
static bz_model *read_tensor(const char *folder, const char *what, int i)
{
    char path[4096];
    bz_buf tensor = {0}, graph = {0};
    bz_model *m = NULL;
    bz_error err;
    snprintf(path, sizeof path, "%s/%s_%d.pb", folder, what, i);
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    for (int c; (c = getc(f)) != EOF;)
        bz_buf_putc(&tensor, (char)c);
    fclose(f);
    put_text(&tensor, TENSOR_NAME, "tensor"); /* the last of several counts */
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_INIT, tensor);
    put_message(&graph, GRAPH_OUTPUT, a_value("tensor", BZ_F32, ""));
    bz_buf bytes = a_model(8, 17, graph);
    if (bz_model_parse(bytes.data, bytes.len, "tensor", &m, &err))
        m = NULL;
    bz_buf_free(&bytes);
    return m;
}

static const bz_tensor *tensor_of(const bz_model *m)
{
    for (int i = 0; m && i < m->n_values; i++)
        if (m->values[i].init)
            return m->values[i].init;
    return NULL;
}

static int value_named(const bz_replay_plan *p, const char *name)
{
    for (int i = 0; i < p->n_values; i++)
        if (!strcmp(p->value[i].name, name) && (p->value[i].source == BZ_VALUE_INPUT || p->value[i].output))
            return i;
    return -1;
}

static int n_steps;

static int forward(bz_replay *r)
{
    int bad = 0;
    for (int i = 0; i <= n_steps; i++)
        bad |= bz_replay_step_run(r, i);
    return bad;
}

/* Where constants lie: one behind the other, in whole lines, as the program has them. */
static void place_weights(bz_replay_plan *p)
{
    int64_t at = 0;
    for (int i = 0; i < p->n_values; i++)
        if (p->value[i].source == BZ_VALUE_STORED) {
            p->value[i].at = at;
            at += (bz_extent_count(p->value[i].dim) * bz_dtype_bits(p->value[i].given) / 8 + 63) / 64 * 64;
        }
}

static int set_inputs(bz_replay *r, const bz_replay_plan *p, const char *data)
{
    const bz_graph *g = p->layers->model->graph;
    bz_error err;
    for (int i = 0; i < g->n_inputs; i++) {
        int v = value_named(p, p->layers->model->values[g->inputs[i]].name);
        bz_model *m = v < 0 ? NULL : read_tensor(data, "input", i);
        const bz_tensor *t = tensor_of(m);
        char *bytes = v < 0 ? NULL : malloc(replayed_size(r, v) + 64);
        bool good = v < 0 || (t && t->n == bz_extent_count(p->value[v].dim) && !bz_tensor_bytes(m, t, bytes, &err) &&
                              !replayed_set(r, v, bytes));
        free(bytes);
        bz_model_free(m);
        if (!good)
            return -1;
    }
    return 0;
}

/* As ONNX's own runner compares; 16 bits by their own precision. 8 bits that were rounded may be one off. */
static bool is_near(bz_dtype t, double got, double wanted, double largest)
{
    double part = bz_dtype_is_float(t) && bz_dtype_bits(t) < 32 ? 1e-2 : 1e-3;
    if (isnan(wanted) || isinf(wanted) || !bz_dtype_is_float(t))
        return got == wanted || (isnan(got) && isnan(wanted));
    return fabs(got - wanted) <= part * fabs(wanted) + 1e-2 * part * largest;
}

static bool compare(bz_replay *r, const bz_replay_plan *p, int v, const char *data, int i)
{
    int64_t n = bz_extent_count(p->value[v].dim);
    bz_dtype type = p->value[v].given;
    bz_model *m = read_tensor(data, "output", i);
    const bz_tensor *t = tensor_of(m);
    bz_error err;
    char *own = malloc(replayed_size(r, v) + 64), *file = malloc(replayed_size(r, v) + 64);
    double largest = 0;
    bool same = t && t->n == n && t->dtype == type && !bz_tensor_bytes(m, t, file, &err) && !replayed_get(r, v, own);
    if (same) {
        for (int64_t k = 0; k < n; k++) {
            double wanted = replayed_number(type, file, k);
            largest = isfinite(wanted) ? fmax(largest, fabs(wanted)) : largest;
        }
        for (int64_t k = 0; k < n && same; k++)
            same = is_near(type, replayed_number(type, own, k), replayed_number(type, file, k), largest);
    }
    free(own), free(file);
    bz_model_free(m);
    return same;
}

/* What is wrong with what the plan gives, or NULL. */
static const char *run_plan(bz_replay_plan *p, const char *folder, const char *model)
{
    static char why[800];
    char data[4096], weights[4096];
    bz_error err;
    bz_replay *r = NULL;
    place_weights(p);
    n_steps = p->n_steps;
    snprintf(data, sizeof data, "%.*s/test_data_set_0", (int)(strrchr(model, '/') - model), model);
    snprintf(weights, sizeof weights, "%s/" BZ_GENERATED_WEIGHTS, folder);
    const bz_replay_model tables = {p->model, weights, p->value, p->n_values, p->step, p->n_steps, forward, 0};
    if (bz_replay_generate(p, folder, &err) || !(r = replayed_open(&tables, weights, &err))) {
        snprintf(why, sizeof why, "%s", err.text);
        return why;
    }
    const char *bad = set_inputs(r, p, data) ? "its inputs cannot be read" : NULL;
    if (!bad && replayed_run(r))
        bad = "it does not run";
    const bz_graph *g = p->layers->model->graph;
    for (int i = 0; i < g->n_outputs && !bad; i++) {
        int v = value_named(p, p->layers->model->values[g->outputs[i]].name);
        if (v < 0 || !compare(r, p, v, data, i))
            bad = "its outputs are not those that are expected";
    }
    replayed_close(r);
    return bad;
}

/* The reason alone: messages begin with names, which are the model's. */
static const char *reason_of(const bz_error *err)
{
    const char *at = strstr(err->text, "): ");
    return at ? at + 3 : err->text;
}

static void note(survey *s, const char *op, const char *why, const char *model)
{
    char text[900];
    snprintf(text, sizeof text, "%s: %.*s", op, (int)strcspn(why, ";"), why);
    line *l = find_line(s, text);
    if (!l->met && !l->count) {
        printf("NOT LISTED %s\n    %s\n", text, model);
        s->wrong++;
    }
    if (s->names)
        printf("%s\n    %s\n", text, model);
    l->met = true;
}

/* The operator of the layer that the sentence names; of several layers it is the first. */
static const char *culprit(const bz_layers *layers, const bz_error *err)
{
    const char *at = strstr(err->text, "executed: ");
    for (int i = 0; at && i < layers->n; i++) {
        size_t n = strlen(layers->layer[i].name);
        if (!strncmp(at + 10, layers->layer[i].name, n) && at[10 + n] == ' ')
            return layers->layer[i].node->op;
    }
    return layers->n ? layers->layer[layers->n - 1].node->op : "none";
}

static void replay_model(survey *s, const char *path, const char *folder)
{
    const char *name = path;
    bz_error err;
    bz_model *m = NULL;
    bz_layers *l = NULL;
    bz_replay_plan *p = NULL;
    if (bz_model_load(path, &m, &err) || bz_layers_infer(m, &(bz_infer_options){0}, &l, &err)) {
        s->unread++;
        bz_model_free(m);
        return;
    }
    s->models++;
    bz_plan *plan = bz_plan_of(&(bz_plan_options){0}, &l, &name, 1);
    const bz_replay_input in = {
        .model = "model", .layers = l, .plan = plan, .setting = {1, BZ_CACHE_HOT, ""}, .gradients = true};
    if (bz_replay_make(&in, &p, &err)) {
        note(s, culprit(l, &err), reason_of(&err), path);
    } else {
        const char *why = run_plan(p, folder, path);
        s->right += !why;
        if (why)
            note(s, l->layer[l->n - 1].node->op, why, path);
    }
    bz_replay_free(p);
    bz_plan_free(plan);
    bz_layers_free(l);
    bz_model_free(m);
}

int main(int argc, char **argv)
{
    survey s = {0};
    char folder[] = "/tmp/replayed-XXXXXX", command[100];
    if (argc > 1 && !strcmp(argv[1], "-v")) {
        s.names = true;
        argc--, argv++;
    }
    if (argc < 3 || read_list(&s, argv[1]) || !mkdtemp(folder))
        return 2;
    for (int i = 2; i < argc; i++) {
        glob_t g = {0};
        if (glob(argv[i], 0, NULL, &g))
            printf("nothing is named %s (Debian package libonnx-testdata)\n", argv[i]);
        for (size_t k = 0; k < g.gl_pathc; k++)
            replay_model(&s, g.gl_pathv[k], folder);
        globfree(&g);
    }
    for (int i = 0; i < s.n; i++) {
        if (s.models && !s.list[i].met && !s.list[i].optional) {
            printf("NO LONGER NEEDED %s\n", s.list[i].text);
            s.wrong++;
        }
        free(s.list[i].text);
    }
    free(s.list);
    printf("%d models, %d replayed as expected, %d left out: their shapes are not known\n", s.models, s.right,
           s.unread);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) || s.wrong ? 1 : s.models ? 0 : 77;
}
