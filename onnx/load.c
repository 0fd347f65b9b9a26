/* The way in: read the structure, find the graph, build. */
#include "onnx/build.h"
#include "onnx/structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bz_dim bz_model_symbol(bz_model *model)
{
    bz_model_file *file = model->file;
    if (model->n_symbols == file->symbols_cap) {
        file->symbols_cap = file->symbols_cap ? file->symbols_cap * 2 : 16;
        model->symbols = bz_realloc(model->symbols, (size_t)file->symbols_cap, sizeof *model->symbols);
    }
    model->symbols[model->n_symbols] = NULL;
    return INT64_MIN + model->n_symbols++;
}

const char *bz_symbol_text(const bz_model *model, bz_dim symbol, char *out)
{
    int64_t k = symbol - INT64_MIN;
    if (k < model->n_symbols && model->symbols[k])
        snprintf(out, 64, "%s", model->symbols[k]);
    else
        snprintf(out, 64, "?%lld", (long long)k);
    return out;
}

enum { M_IR_VERSION = 1, M_PRODUCER = 2, M_GRAPH = 7, M_OPSETS = 8, M_FUNCTION = 25 };

static int set_opsets(builder *b, slice m)
{
    static const bz_opset FIRST = {"", 1};
    if (decode_opsets(b, m, M_OPSETS))
        return -1;
    if (!b->n_opsets && b->model->ir_version >= 3)
        return bz_fail(b->err, BZ_BAD_INPUT, "the file does not say which operator set it uses (no opset_import)");
    if (!b->n_opsets) {
        b->opsets = &FIRST;
        b->n_opsets = 1;
    }
    for (int i = 0; i < b->n_opsets; i++)
        if (!*b->opsets[i].domain)
            b->model->opset = b->opsets[i].version;
    return 0;
}

/* Functions first: nodes look them up. Operator sets may stand behind the graph in the file. */
static int build_model(builder *b, slice m)
{
    wire_reader r = read_message(b, m);
    wire_field f;
    slice graph = {0};
    size_t n_functions = 0;
    int more;
    b->model->producer = "";
    while ((more = wire_next(&r, &f, b->err)) > 0) {
        if (f.number == M_IR_VERSION && f.type == 0)
            b->model->ir_version = (int64_t)f.value;
        else if (f.number == M_PRODUCER && f.type == 2)
            b->model->producer = decode_text(b, (slice){f.data, (size_t)f.size});
        else if (f.number == M_GRAPH && f.type == 2)
            graph = (slice){f.data, (size_t)f.size};
        n_functions += f.number == M_FUNCTION && f.type == 2;
    }
    if (more < 0)
        return -1;
    if (!graph.data)
        return bz_fail(b->err, BZ_BAD_INPUT, "there is no graph in it: this is no ONNX model");
    b->model->file->functions = BZ_NEW(b->arena, slice, n_functions);
    for (r = read_message(b, m); n_functions && wire_next(&r, &f, b->err) > 0;)
        if (f.number == M_FUNCTION && f.type == 2 && add_function(b, (slice){f.data, (size_t)f.size}))
            return -1;
    if (set_opsets(b, m))
        return -1;
    b->model->graph = build_graph(b, NULL, graph);
    return b->model->graph ? 0 : -1;
}

/* External paths are judged at once, not only when somebody wants the data. */
static int check_external(const bz_model *m, bz_error *err)
{
    for (int i = 0; i < m->n_values; i++) {
        const bz_tensor *t = m->values[i].init;
        if (t && t->external && file_external(m->file, t->external, err) == -1)
            return bz_fail_in(err, "tensor '%s'", t->name);
    }
    return 0;
}

/* Takes the file over, also on failure. */
static int parse(bz_model_file *file, const char *path, bz_model **model, bz_error *err)
{
    bz_model *m = bz_alloc(1, sizeof *m);
    *m = (bz_model){.file = file, .file_size = file->size};
    m->path = bz_arena_str(&m->arena, path);
    file->path = file->path ? m->path : NULL;
    builder b = {.model = m, .arena = &m->arena, .err = err};
    int failed = build_model(&b, (slice){file->bytes.data, file->bytes.size}) || check_external(m, err);
    if (failed) {
        bz_fail_in(err, "%s", path);
        bz_model_free(m);
        m = NULL;
    }
    *model = m;
    return failed ? -1 : 0;
}

int bz_model_load(const char *path, bz_model **model, bz_error *err)
{
    *model = NULL;
    bz_model_file *file = bz_alloc(1, sizeof *file);
    if (file_open(path, file, err)) {
        free(file);
        return -1;
    }
    return parse(file, path, model, err);
}

int structure_model(const wire_bytes *bytes, const char *name, bz_model **model, bz_error *err)
{
    bz_model_file *file = bz_alloc(1, sizeof *file);
    *file = (bz_model_file){.bytes = *bytes, .size = bytes->size, .folder = -1};
    return parse(file, name, model, err);
}

int bz_model_parse(const void *data, size_t size, const char *name, bz_model **model, bz_error *err)
{
    return structure_model(&(wire_bytes){.data = data, .size = size}, name, model, err);
}

void bz_model_free(bz_model *m)
{
    if (!m)
        return;
    file_close(m->file);
    bz_map_free(&m->file->symbols);
    bz_map_free(&m->file->words);
    free((void *)m->file->word);
    bz_map_free(&m->file->function_names);
    free(m->file);
    free(m->values);
    free(m->symbols);
    bz_arena_free(&m->arena);
    free(m);
}
