/* The way in: map, walk, unpack, build. */
#include "onnx/build.h"
#include "onnx/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int add_functions(builder *b, const Onnx__ModelProto *p)
{
    bz_model_file *file = b->model->file;
    enum { FUNCTION_OVERLOAD = 13 }; /* newer than our schema */
    file->functions = BZ_NEW(b->arena, const function_proto *, p->n_functions);
    for (size_t i = 0; i < p->n_functions; i++) {
        const Onnx__FunctionProto *f = p->functions[i];
        const char *domain = f->domain && strcmp(f->domain, "ai.onnx") != 0 ? f->domain : "",
                   *name = f->name ? f->name : "";
        size_t n = 0;
        const uint8_t *overload = unknown_field(&f->base, FUNCTION_OVERLOAD, 0, &n);
        bz_buf key = {0};
        bz_buf_put(&key, domain, strlen(domain) + 1);
        bz_buf_put(&key, name, strlen(name) + 1);
        if (overload)
            bz_buf_put(&key, overload, n);
        uint32_t k = bz_map_add(&file->function_names, bz_arena_dup(b->arena, key.data, key.len), key.len,
                                (uint32_t)file->n_functions);
        bz_buf_free(&key);
        if (k != (uint32_t)file->n_functions)
            return bz_fail(b->err, BZ_BAD_INPUT, "two functions are named '%s' (domain '%s')", name, domain);
        file->functions[file->n_functions++] = f;
    }
    return 0;
}

static int set_opsets(builder *b, const Onnx__ModelProto *p)
{
    static const bz_opset FIRST = {"", 1};
    b->model->ir_version = p->ir_version;
    b->opsets = convert_opsets(b, p->opset_import, p->n_opset_import);
    b->n_opsets = (int)p->n_opset_import;
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

static int build_model(builder *b, const Onnx__ModelProto *p)
{
    if (!p || !p->graph)
        return bz_fail(b->err, BZ_BAD_INPUT,
                       p ? "there is no graph in it: this is no ONNX model" : "the file is damaged, or no ONNX model");
    b->model->producer = p->producer_name ? p->producer_name : "";
    if (add_functions(b, p) || set_opsets(b, p))
        return -1;
    b->model->graph = build_graph(b, NULL, p->graph);
    return b->model->graph ? 0 : -1;
}

/* External paths are judged at once, not only when somebody wants the data. */
static int check_external(const bz_model *m, bz_error *err)
{
    const char *last = NULL;
    for (int i = 0; i < m->n_values; i++) {
        const bz_tensor *t = m->values[i].init;
        if (!t || !t->external || (last && !strcmp(last, t->external)))
            continue;
        last = t->external;
        int fd = file_open_external(m->file, t->external, err);
        if (fd == -1)
            return bz_fail_in(err, "tensor '%s'", t->name);
        if (fd >= 0)
            close(fd);
    }
    return 0;
}

/* Takes the file over, also on failure. */
static int parse(bz_model_file *file, const char *path, bz_model **model, bz_error *err)
{
    bz_model *m = bz_alloc(1, sizeof *m);
    *m = (bz_model){.file = file, .file_size = file->size};
    m->path = bz_arena_str(&m->arena, path);
    builder b = {.model = m, .arena = &m->arena, .err = err};
    bz_buf skeleton = {0};
    int failed = wire_skeleton(file->data, file->size, &skeleton, err);
    if (!failed) {
        ProtobufCAllocator allocator = arena_allocator(&m->arena);
        failed = build_model(
            &b, onnx__model_proto__unpack(&allocator, skeleton.len, (const uint8_t *)bz_buf_text(&skeleton)));
    }
    bz_buf_free(&skeleton);
    failed = failed || check_external(m, err);
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
    *file = (bz_model_file){.folder = -1};
    if (file_map(path, file, err)) {
        free(file);
        return -1;
    }
    return parse(file, path, model, err);
}

int bz_model_parse(const void *data, size_t size, const char *name, bz_model **model, bz_error *err)
{
    bz_model_file *file = bz_alloc(1, sizeof *file);
    *file = (bz_model_file){.data = data, .size = size, .folder = -1};
    return parse(file, name, model, err);
}

void bz_model_free(bz_model *m)
{
    if (!m)
        return;
    file_unmap(m->file);
    bz_map_free(&m->file->symbols);
    bz_map_free(&m->file->function_names);
    free(m->file);
    free(m->values);
    free(m->symbols);
    bz_arena_free(&m->arena);
    free(m);
}
