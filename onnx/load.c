/* The way in: read the structure, unpack it, build. */
#include "onnx/build.h"
#include "onnx/structure.h"

#include <stdio.h>
#include <stdlib.h>

bz_dim bz_model_symbol(bz_model *model)
{
    BZ_ROOM(model->symbols, model->n_symbols);
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

static int set_opsets(builder *b, const Onnx__ModelProto *p)
{
    static const bz_opset FIRST = {"", 1};
    decode_opsets(b, p->n_opset_import, p->opset_import);
    if (!b->n_opsets && p->ir_version >= 3)
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

/* Functions first: nodes look them up. */
static int build_model(builder *b)
{
    bz_model_file *file = b->model->file;
    if (unpack_model(file, b->arena, b->err))
        return -1;
    const Onnx__ModelProto *p = file->proto;
    b->model->ir_version = p->ir_version;
    b->model->producer = text_of(p->producer_name);
    if (!p->graph)
        return bz_fail(b->err, BZ_BAD_INPUT, "there is no graph in it: this is no ONNX model");
    for (size_t i = 0; i < p->n_functions; i++)
        if (add_function(b, p->functions[i], (uint32_t)i))
            return -1;
    if (set_opsets(b, p))
        return -1;
    b->model->graph = build_graph(b, NULL, p->graph);
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
    int failed = build_model(&b) || check_external(m, err);
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
    bz_map_free(&m->file->function_names);
    slice_index_free(m->file->slices);
    free(m->file);
    free(m->values);
    free(m->symbols);
    bz_arena_free(&m->arena);
    free(m);
}
