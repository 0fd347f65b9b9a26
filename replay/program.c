/* The program: tables and a function with a line for each step. */
#include "replay/replay.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A string of a stranger's as a C literal. */
static void put_string(bz_buf *out, const char *s)
{
    bz_buf_putc(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c >= ' ' && c < 127 && c != '"' && c != '\\' && c != '?')
            bz_buf_putc(out, (char)c);
        else
            bz_buf_printf(out, "\\%03o", c);
    }
    bz_buf_putc(out, '"');
}

static void put_numbers(bz_buf *out, const int64_t *v, int n)
{
    bz_buf_putc(out, '{');
    for (int i = 0; i < n; i++)
        bz_buf_printf(out, "%s%lld", i ? ", " : "", (long long)v[i]);
    bz_buf_putc(out, '}');
}

/* "BZ_F32": ONNX's types have these names in C. */
static void put_dtype(bz_buf *out, bz_dtype t)
{
    bz_buf_puts(out, "BZ_");
    for (const char *s = bz_dtype_name(t); *s; s++)
        bz_buf_putc(out, *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s);
}

/* A number with so many digits as C reads it back. Masks are filled with minus infinity. */
static void put_real(bz_buf *out, double v, int digits, const char *suffix)
{
    char text[32];
    if (!isfinite(v)) {
        bz_buf_puts(out, isnan(v) ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY");
        return;
    }
    snprintf(text, sizeof text, "%.*g", digits, v);
    bz_buf_puts(out, text);
    bz_buf_puts(out, strpbrk(text, ".e") ? "" : ".0");
    bz_buf_puts(out, suffix);
}

static void put_float(bz_buf *out, float v)
{
    put_real(out, (double)v, 9, "f");
}

static void put_value(const bz_replay_value *v, int64_t at, int number, bz_buf *out)
{
    static const char *const SOURCES[] = {NULL, "BZ_VALUE_INPUT", "BZ_VALUE_STORED", "BZ_VALUE_SEEDED",
                                          "BZ_VALUE_KEPT"};
    bz_buf_printf(out, "    [%d] = {.name = ", number);
    put_string(out, v->name);
    bz_buf_puts(out, ", .dtype = ");
    put_dtype(out, v->dtype);
    bz_buf_printf(out, ", .rank = %d, .dim = ", v->rank);
    put_numbers(out, v->dim, v->rank);
    bz_buf_puts(out, ", .given = ");
    put_dtype(out, v->given);
    if (SOURCES[v->source])
        bz_buf_printf(out, ", .source = %s", SOURCES[v->source]);
    if (v->source == BZ_VALUE_STORED || v->source == BZ_VALUE_KEPT)
        bz_buf_printf(out, ", .at = %lld", (long long)at);
    if (v->next)
        bz_buf_printf(out, ", .next = %d", v->next);
    if (v->scale != 0) {
        bz_buf_puts(out, ", .scale = ");
        put_float(out, v->scale);
    }
    if (v->offset != 0) {
        bz_buf_puts(out, ", .offset = ");
        put_float(out, v->offset);
    }
    if (v->positive)
        bz_buf_puts(out, ", .positive = true");
    if (v->below)
        bz_buf_printf(out, ", .below = %lld", (long long)v->below);
    if (v->output)
        bz_buf_printf(out, ", .output = %d", v->output);
    bz_buf_puts(out, "},\n");
}

static void put_loop(const bz_replay_loop *l, int number, bz_buf *out)
{
    static const char *const KINDS[] = {"COPY", "FILL", "GATHER", "SELECT", "UNARY", "BINARY", "SCATTER", "LANES"};
    static const int OPERANDS[] = {2, 0, 2, 3, 1, 2, 3, 0};
    bz_buf_printf(out, "static const bz_replay_loop loop_%d = {.kind = BZ_LOOP_%s", number, KINDS[l->kind]);
    if (l->function) {
        bz_buf_puts(out, ", .function = ");
        put_string(out, l->function);
    }
    if (l->alpha != 0 || l->beta != 0) {
        bz_buf_puts(out, ", .alpha = ");
        put_float(out, l->alpha);
        bz_buf_puts(out, ", .beta = ");
        put_float(out, l->beta);
    }
    if (l->value != 0) {
        bz_buf_puts(out, ", .value = ");
        put_real(out, l->value, 17, "");
    }
    bz_buf_printf(out, ", .rank = %d, .dim = ", l->rank);
    put_numbers(out, l->dim, l->rank);
    for (int k = 0; k < OPERANDS[l->kind]; k++) {
        bz_buf_puts(out, k ? ", " : ", .stride = {");
        put_numbers(out, l->stride[k], l->rank);
    }
    if (OPERANDS[l->kind])
        bz_buf_putc(out, '}');
    if (l->from)
        bz_buf_printf(out, ", .from = %lld", (long long)l->from);
    if (l->to)
        bz_buf_printf(out, ", .to = %lld", (long long)l->to);
    if (l->length)
        bz_buf_printf(out, ", .length = %d", l->length);
    if (l->extent[0]) {
        bz_buf_puts(out, ", .extent = ");
        put_numbers(out, l->extent, l->length ? l->length : 1);
        bz_buf_puts(out, ", .step = ");
        put_numbers(out, l->step, l->length ? l->length : 1);
    }
    bz_buf_puts(out, "};\n");
}

static void put_folds(const bz_replay_step *s, int number, bz_buf *out)
{
    static const char *const KINDS[] = {"BATCHNORM", "ADD", "MUL", "DIV", "WEIGHTS", "BIAS"};
    bz_buf_printf(out, "static const bz_replay_fold fold_%d[] = {", number);
    for (int i = 0; i < s->n_folds; i++) {
        const bz_replay_fold *f = &s->fold[i];
        bz_buf_printf(out, "%s{BZ_FOLD_%s, {%d, %d, %d, %d}, ", i ? ", " : "", KINDS[f->kind], f->value[0], f->value[1],
                      f->value[2], f->value[3]);
        put_float(out, f->factor);
        bz_buf_putc(out, '}');
    }
    bz_buf_puts(out, "};\n");
}

static void put_step(const bz_replay_step *s, int number, int problem, bz_buf *out)
{
    static const char *const KINDS[] = {"BZ_STEP_CALL", "BZ_STEP_VIEW", "BZ_STEP_LOOP"};
    bz_buf_printf(out, "    [%d] = {.name = ", number);
    put_string(out, s->name);
    bz_buf_printf(out, ", .layer = %d, .kind = %s, ", s->layer, KINDS[s->kind]);
    if (s->once)
        bz_buf_puts(out, ".once = true, ");
    if (s->stream)
        bz_buf_printf(out, ".stream = %d, ", s->stream);
    if (s->n_in) {
        bz_buf_puts(out, ".in = (const int[]){");
        for (int i = 0; i < s->n_in; i++)
            bz_buf_printf(out, "%s%d", i ? ", " : "", s->in[i]);
        bz_buf_printf(out, "}, .n_in = %d, ", s->n_in);
    }
    if (s->n_more) {
        bz_buf_puts(out, ".more = (const int[]){");
        for (int i = 0; i < s->n_more; i++)
            bz_buf_printf(out, "%s%d", i ? ", " : "", s->more[i]);
        bz_buf_printf(out, "}, .n_more = %d, ", s->n_more);
    }
    bz_buf_printf(out, ".out = %d", s->out);
    if (s->kind == BZ_STEP_LOOP)
        bz_buf_printf(out, ", .loop = &loop_%d", number);
    if (s->kind == BZ_STEP_CALL) {
        bz_buf_printf(out, ",\n        .problem = &problem_%d, .backend = ", problem);
        put_string(out, s->backend);
        bz_buf_puts(out, ", .algorithm = ");
        put_string(out, s->algorithm);
        bz_buf_puts(out, ", .layout = ");
        put_string(out, s->layout);
        bz_buf_puts(out, ", .math = ");
        put_string(out, s->math);
        bz_buf_puts(out, ", .epsilon = ");
        put_float(out, s->epsilon);
        if (s->n_folds)
            bz_buf_printf(out, ", .fold = fold_%d, .n_folds = %d", number, s->n_folds);
    }
    bz_buf_puts(out, "},\n");
}

/* The step at a place of the program. */
static const bz_replay_step *step_at(const bz_replay_plan *p, int at)
{
    return &p->step[p->order[at]];
}

/* Problems once each; number[i] is that of the step at place i. */
static void put_problems(const bz_replay_plan *p, int *number, bz_buf *out)
{
    BZ_SCOPED(bz_map) map = {0};
    int n = 0;
    for (int i = 0; i < p->n_steps; i++) {
        if (step_at(p, i)->kind != BZ_STEP_CALL)
            continue;
        const char *text = p->choice[p->order[i]].text;
        number[i] = (int)bz_map_add(&map, text, strlen(text), (uint32_t)n);
        if (number[i] < n)
            continue;
        bz_buf_printf(out, "/* %s */\nstatic const bz_problem problem_%d = {\n", text, n++);
        bz_problem_print_c(step_at(p, i)->problem, 4, out);
        bz_buf_puts(out, "};\n\n");
    }
}

static int64_t bytes_of(const bz_replay_value *v)
{
    return bz_extent_count(v->dim) * bz_dtype_bits(v->given) / 8;
}

static bool is_stored(const bz_replay_plan *p, int i)
{
    return p->value[i].source == BZ_VALUE_STORED || (p->value[i].source == BZ_VALUE_KEPT && p->source[i].tensor);
}

/* Where constants lie in the weights file from `end` on, and what training begins with; -1 where it begins with seeded numbers. Returns
 * where the next are to lie. */
static int64_t place_weights(const bz_replay_plan *p, int64_t end, int64_t *at)
{
    for (int i = 0; i < p->n_values; i++) {
        at[i] = p->value[i].source == BZ_VALUE_KEPT && !is_stored(p, i) ? -1 : end;
        if (is_stored(p, i))
            end += (bytes_of(&p->value[i]) + 63) / 64 * 64;
    }
    return end;
}

static void put_forward(const bz_replay_plan *p, bz_buf *out)
{
    bz_buf_puts(out, "static int forward(bz_replay *r)\n{\n    int bad = 0;\n");
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_step *s = step_at(p, i);
        if (s->once)
            continue;
        bz_buf_printf(out, "    bad |= bz_replay_step_run(r, %d); /* ", i);
        if (p->streams > 1)
            bz_buf_printf(out, "%d: ", s->stream);
        bz_generate_comment(out, s->name);
        if (s->kind == BZ_STEP_CALL)
            bz_buf_printf(out, ": %s %s", bz_problem_kind_name(s->problem->kind), s->backend);
        bz_buf_puts(out, s->kind == BZ_STEP_VIEW ? ": a view */\n" : " */\n");
    }
    bz_buf_printf(out, "    bad |= bz_replay_step_run(r, %d); /* outputs */\n    return bad;\n}\n\n", p->n_steps);
}

/* `name` is that of its model, which other files see; NULL: none does. Its weights lie from `weights` on: where the next ones begin. */
static int64_t put_program(const bz_replay_plan *p, const char *name, int64_t weights, bz_buf *out)
{
    BZ_FREED int *problem = bz_zeroed((size_t)p->n_steps + 1, sizeof *problem);
    BZ_FREED int64_t *at = bz_zeroed((size_t)p->n_values + 1, sizeof *at);
    bz_buf_puts(out, "/* ");
    bz_generate_comment(out, p->model);
    bz_buf_puts(out, ", replayed: its layers ");
    if (p->streams > 1)
        bz_buf_printf(out, "on %d streams", p->streams);
    else
        bz_buf_puts(out, "one after the other");
    bz_buf_puts(out, ", each by the variant that the plan names. */\n#include \"runtime/replay.h\"\n\n"
                     "#include <math.h>\n\n");
    put_problems(p, problem, out);
    weights = place_weights(p, weights, at);
    bz_buf_puts(out, "static const bz_replay_value values[] = {\n");
    for (int i = 0; i < p->n_values; i++)
        put_value(&p->value[i], at[i], i, out);
    bz_buf_puts(out, "};\n\n");
    for (int i = 0; i < p->n_steps; i++) {
        if (step_at(p, i)->kind == BZ_STEP_LOOP)
            put_loop(step_at(p, i)->loop, i, out);
        if (step_at(p, i)->n_folds)
            put_folds(step_at(p, i), i, out);
    }
    bz_buf_puts(out, "\nstatic const bz_replay_step steps[] = {\n");
    for (int i = 0; i < p->n_steps; i++)
        put_step(step_at(p, i), i, problem[i], out);
    bz_buf_puts(out, "};\n\n");
    put_forward(p, out);
    bz_buf_printf(out, "%sconst bz_replay_model %s = {\n    .name = ", name ? "" : "static ", name ? name : "model");
    put_string(out, p->model);
    bz_buf_printf(out,
                  ",\n    .weights = \"weights.bin\",\n    .value = values,\n    .n_values = %d,\n    .step = steps,\n"
                  "    .n_steps = %d,\n    .loss = %d,\n    .forward = forward,\n};\n",
                  p->n_values, p->n_steps, p->loss);
    return weights;
}

void bz_replay_program(const bz_replay_plan *p, bz_buf *out)
{
    put_program(p, NULL, 0, out);
    bz_buf_puts(out, "\nint main(int argc, char **argv)\n{\n    return bz_replay_main(argc, argv, &model);\n}\n");
}

static void put_number(bz_dtype t, double v, char *to)
{
    int64_t whole = (int64_t)v;
    float single = (float)v;
    if (t == BZ_F64)
        memcpy(to, &v, 8);
    else if (t == BZ_F32)
        memcpy(to, &single, 4);
    else
        memcpy(to, &whole, (size_t)bz_dtype_bits(t) / 8); /* little-endian, as ONNX files are */
}

/* A constant's bytes. */
static int read_constant(const bz_replay_plan *p, int i, char *to, bz_error *err)
{
    const bz_replay_source *s = &p->source[i];
    const bz_model *model = s->model ? s->model : p->layers->model;
    bz_dtype t = p->value[i].given;
    int64_t n = bz_extent_count(p->value[i].dim), size = bz_dtype_bits(t) / 8;
    if (s->tensor && !s->tensor->values)
        return bz_tensor_bytes(model, s->tensor, to, err);
    bool real = s->number || bz_dtype_is_float(t);
    BZ_FREED double *reals = bz_alloc((size_t)n + 1, sizeof *reals);
    int rc = 0;
    if (s->number)
        memcpy(reals, s->number, (size_t)n * sizeof *reals);
    else if (real)
        rc = bz_tensor_reals(model, s->tensor, reals, err);
    else
        rc = bz_tensor_ints(model, s->tensor, (int64_t *)(void *)reals, err);
    if (t == BZ_F16 || t == BZ_BF16)
        rc = rc || bz_fail(err, BZ_INCOMPLETE, "'%s': numbers of this type are not stored yet", p->value[i].name) ? -1
                                                                                                                  : 0;
    for (int64_t k = 0; k < n && !rc; k++)
        if (real)
            put_number(t, reals[k], to + k * size);
        else
            memcpy(to + k * size, &reals[k], (size_t)size);
    return rc;
}

static int write_weights(const bz_replay_plan *p, int fd, const char *folder, bz_error *err)
{
    int rc = 0;
    for (int i = 0; i < p->n_values && !rc; i++) {
        if (!is_stored(p, i))
            continue;
        size_t size = (size_t)(bytes_of(&p->value[i]) + 63) / 64 * 64;
        BZ_FREED char *bytes = bz_alloc(size, 1);
        memset(bytes + size - 64, 0, 64);
        rc = read_constant(p, i, bytes, err);
        for (size_t done = 0; done < size && !rc;) {
            ssize_t k = write(fd, bytes + done, size - done);
            if (k < 0 && errno != EINTR)
                rc = bz_fail(err, BZ_FAILED, "%s/" BZ_GENERATED_WEIGHTS ": cannot be written: %s", folder,
                             strerror(errno));
            done += k > 0 ? (size_t)k : 0;
        }
    }
    return rc;
}

static int write_all_weights(const bz_replay_plan *const *p, int n, const char *folder, bz_error *err)
{
    int fd = bz_generate_weights(folder, err), rc = 0;
    for (int i = 0; i < n && !rc && fd >= 0; i++)
        rc = write_weights(p[i], fd, folder, err);
    if (fd >= 0)
        close(fd);
    return fd < 0 || rc ? -1 : 0;
}

static bool uses(const bz_replay_plan *p, const char *backend)
{
    for (int i = 0; i < p->n_steps; i++)
        if (p->step[i].kind == BZ_STEP_CALL && !strcmp(p->step[i].backend, backend))
            return true;
    return false;
}

static void put_build(const char *sources, bz_buf *out)
{
    bz_buf_printf(out,
                  "cmake_minimum_required(VERSION 3.20)\n"
                  "project(replay LANGUAGES C)\n"
                  "set(CMAKE_C_STANDARD 17)\n"
                  "find_package(benanza-runtime REQUIRED)\n"
                  "add_executable(replay %s)\n"
                  "target_link_libraries(replay PRIVATE benanza::benanza_runtime)\n",
                  sources);
}

int bz_replay_generate(const bz_replay_plan *p, const char *folder, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    int rc = bz_generate_folder(folder, err);
    if (!rc) {
        bz_replay_program(p, &text);
        rc = bz_generate_file(folder, "replay.c", &text, err);
    }
    bz_buf_clear(&text);
    put_build("replay.c", &text);
    for (const bz_backend_row *b = bz_backends; b->name; b++)
        if (b->device && uses(p, b->name))
            bz_buf_printf(&text, "benanza_module(replay %s)\n", b->name);
    rc = rc || bz_generate_file(folder, "CMakeLists.txt", &text, err) || write_all_weights(&p, 1, folder, err) ? -1 : 0;
    bz_buf_clear(&text);
    bz_replay_json(p, &text);
    return rc || bz_generate_file(folder, "manifest.json", &text, err) ? -1 : 0;
}

static int write_sources(const bz_replay_plan *const *p, int n, const char *folder, bz_buf *sources, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    int64_t weights = 0;
    int rc = 0;
    for (int i = 0; i < n && !rc; i++) {
        char name[32], file[40];
        snprintf(name, sizeof name, "replay_%d", i);
        snprintf(file, sizeof file, "%s.c", name);
        bz_buf_clear(&text);
        weights = put_program(p[i], name, weights, &text);
        rc = bz_generate_file(folder, file, &text, err);
        bz_buf_printf(sources, " %s", file);
    }
    return rc;
}

static void put_main(int n, bz_buf *out)
{
    bz_buf_puts(out, "/* Runs one of the replays, or some in turns: its number or FIRST-LAST, then options. */\n"
                     "#include \"runtime/replay.h\"\n\n");
    for (int i = 0; i < n; i++)
        bz_buf_printf(out, "extern const bz_replay_model replay_%d;\n", i);
    bz_buf_puts(out, "static const bz_replay_model *const replays[] = {\n");
    for (int i = 0; i < n; i++)
        bz_buf_printf(out, "    &replay_%d,\n", i);
    bz_buf_printf(
        out, "};\n\nint main(int argc, char **argv)\n{\n    return bz_replay_main_of(argc, argv, replays, %d);\n}\n",
        n);
}

int bz_replay_generate_all(const bz_replay_plan *const *p, int n, const char *folder, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0}, sources = {0};
    bz_buf_puts(&sources, "main.c");
    int rc = bz_generate_folder(folder, err) || write_sources(p, n, folder, &sources, err) ? -1 : 0;
    put_main(n, &text);
    rc = rc || bz_generate_file(folder, "main.c", &text, err) ? -1 : 0;
    bz_buf_clear(&text);
    put_build(bz_buf_text(&sources), &text);
    rc = rc || bz_generate_file(folder, "CMakeLists.txt", &text, err) || write_all_weights(p, n, folder, err) ? -1 : 0;
    bz_buf_clear(&text);
    bz_json j = bz_json_to(&text, false);
    bz_json_document(&j, "replays", 1);
    BZ_JSON_LIST(&j, "models", str, i, n, p[i]->model);
    bz_json_object_end(&j);
    bz_buf_putc(&text, '\n');
    return rc || bz_generate_file(folder, "manifest.json", &text, err) ? -1 : 0;
}
