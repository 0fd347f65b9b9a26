/* The folder of benchmarks: sources to be read by people, and what it takes to build them. */
#include "generator/plan.h"

#include "base/member.h"

#include <stdio.h>
#include <string.h>

/* Text from a model inside a comment: one line, printable, and nothing that ends or nests a comment, or
 * is a trigraph or a continued line. */
void bz_generate_comment(bz_buf *out, const char *s)
{
    size_t n = 0;
    for (; *s && n < 200; s++, n++) {
        unsigned char c = (unsigned char)*s;
        bool plain = c >= ' ' && c < 127 && c != '*' && c != '\\' && c != '?' && c != '"';
        if (plain)
            bz_buf_putc(out, (char)c);
        else if (c >= 128)
            bz_buf_putc(out, '_');
        else
            bz_buf_putc(out, c == '*' ? '+' : '.');
    }
}

static bool wanted(const bz_plan_problem *p)
{
    for (int f = 0; f < p->n_families; f++)
        if (p->family[f].wanted)
            return true;
    return false;
}

static bool has_file(const bz_plan *plan, int layer)
{
    const bz_plan_layer *l = &plan->layer[layer];
    for (int i = 0; i < l->n_problems; i++)
        if (plan->problem[l->problem[i]].layer == layer && wanted(&plan->problem[l->problem[i]]))
            return true;
    return false;
}

/* The layers of a group, and what becomes of them. Keys and texts of problems hold no ';'. */
static void put_group(const bz_plan_layer *l, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    char *rest, *key = bz_arena_str(&arena, l->key + strlen(l->pattern) + 1);
    bz_generate_comment(out, l->pattern);
    bz_buf_puts(out, ": the layers\n");
    for (key = strtok_r(key, ";", &rest); key; key = strtok_r(NULL, ";", &rest)) {
        bz_buf_puts(out, " *  ");
        bz_generate_comment(out, key);
        bz_buf_putc(out, '\n');
    }
    for (int a = 0; a < l->lowering.n; a++) {
        bz_buf_puts(out, a ? " * or\n" : " * as the calls\n");
        for (int i = 0; i < l->lowering.alternative[a].n; i++)
            bz_buf_printf(out, " *   %s\n", l->lowering.alternative[a].text[i]);
    }
}

static void put_heading(const bz_plan *plan, const bz_plan_layer *l, bz_buf *out)
{
    bz_buf_puts(out, "/* ");
    if (l->pattern) {
        put_group(l, out);
    } else {
        bz_generate_comment(out, l->key);
        bz_buf_putc(out, '\n');
    }
    bz_buf_puts(out, l->layer ? " *\n" : " *\n * given by its text\n");
    for (int i = 0; i < l->uses.n; i++) {
        bz_buf_puts(out, " * ");
        bz_generate_comment(out, plan->model[l->uses.model[i]]);
        bz_buf_printf(out, ": %lld %s%s", (long long)l->uses.times[i], l->pattern ? "group" : "layer",
                      l->uses.times[i] == 1 ? "" : "s");
        if (!i) {
            bz_buf_puts(out, l->pattern ? " (first ends in " : " (first ");
            bz_generate_comment(out, l->first_name);
            bz_buf_putc(out, ')');
        }
        bz_buf_putc(out, '\n');
    }
    bz_buf_puts(out, " */\n#include \"runtime/runtime.h\"\n\n");
}

void bz_generate_source(const bz_plan *plan, const bz_plan_layer *l, bz_buf *out)
{
    int number = (int)(l - plan->layer);
    put_heading(plan, l, out);
    for (int i = 0; i < l->n_problems; i++) {
        const bz_plan_problem *p = &plan->problem[l->problem[i]];
        if (p->layer != number || !wanted(p))
            continue;
        bz_buf_printf(out, "/* %s */\nstatic const bz_problem problem_%d = {\n", p->text, i);
        bz_problem_print_c(p->problem, 4, out);
        bz_buf_puts(out, "};\n\n");
    }
    bz_buf_puts(out, "static const bz_family families[] = {\n");
    for (int i = 0; i < l->n_problems; i++) {
        const bz_plan_problem *p = &plan->problem[l->problem[i]];
        for (int f = 0; p->layer == number && f < p->n_families; f++)
            if (p->family[f].wanted)
                bz_buf_printf(out, "    {&problem_%d, \"%s\", \"%s\", \"%s\"},\n", i, p->family[f].backend,
                              p->family[f].layout, p->family[f].math);
    }
    bz_buf_printf(out, "};\n\nconst bz_benchmark %s = {\"%s\", families, sizeof families / sizeof *families};\n",
                  l->file, l->file);
}

static void put_list(const bz_plan *plan, bz_buf *out)
{
    bz_buf_puts(out, "/* All benchmarks of this folder, in the order in which they run. */\n"
                     "#include \"runtime/runtime.h\"\n\n");
    for (int i = 0; i < plan->n_layers; i++)
        if (has_file(plan, i))
            bz_buf_printf(out, "extern const bz_benchmark %s;\n", plan->layer[i].file);
    bz_buf_puts(out, "\nconst bz_benchmark *const bz_benchmarks[] = {\n");
    for (int i = 0; i < plan->n_layers; i++)
        if (has_file(plan, i))
            bz_buf_printf(out, "    &%s,\n", plan->layer[i].file);
    bz_buf_puts(out, "    NULL,\n};\n");
}

static bool uses(const bz_plan *plan, const char *backend)
{
    for (int i = 0; i < plan->n_problems; i++)
        for (int f = 0; f < plan->problem[i].n_families; f++)
            if (plan->problem[i].family[f].wanted && !strcmp(plan->problem[i].family[f].backend, backend))
                return true;
    return false;
}

/* Backends that are loaded lie beside the program. */
static void put_build(const bz_plan *plan, bz_buf *out)
{
    bz_buf_puts(out, "cmake_minimum_required(VERSION 3.20)\n"
                     "project(benchmarks LANGUAGES C)\n"
                     "set(CMAKE_C_STANDARD 17)\n"
                     "find_package(benanza-runtime REQUIRED)\n"
                     "add_executable(benchmarks\n  benchmarks.c\n");
    for (int i = 0; i < plan->n_layers; i++)
        if (has_file(plan, i))
            bz_buf_printf(out, "  %s.c\n", plan->layer[i].file);
    bz_buf_puts(out, ")\ntarget_link_libraries(benchmarks PRIVATE benanza::benanza_runtime)\n");
    for (const bz_backend_row *b = bz_backends; b->name; b++)
        if (b->device && uses(plan, b->name))
            bz_buf_printf(out, "benanza_module(benchmarks %s)\n", b->name);
}

static void put_manifest_layer(const bz_plan *plan, const bz_plan_layer *l, int number, bz_json *j)
{
    char file[72];
    bz_json_object(j);
    snprintf(file, sizeof file, "%s.c", l->file);
    bz_json_key_str(j, "file", file);
    if (l->pattern)
        bz_json_key_str(j, "pattern", l->pattern);
    bz_json_key_str(j, "key", l->key);
    BZ_JSON_EACH (j, "models", i, l->uses.n) {
        BZ_JSON(j, BZ_TELL("model", plan->model[l->uses.model[i]]),
                BZ_TELL(l->pattern ? "groups" : "layers", l->uses.times[i]));
    }
    bz_json_key_array(j, "problems");
    for (int i = 0; i < l->n_problems; i++) {
        const bz_plan_problem *p = &plan->problem[l->problem[i]];
        if (p->layer != number || !wanted(p))
            continue;
        bz_json_object(j);
        bz_json_key_str(j, "problem", p->text);
        bz_json_key_array(j, "families");
        for (int f = 0; f < p->n_families; f++) {
            char name[80];
            snprintf(name, sizeof name, "%s %s %s", p->family[f].backend, p->family[f].layout, p->family[f].math);
            if (p->family[f].wanted)
                bz_json_str(j, name);
        }
        bz_json_array_end(j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_manifest(const bz_plan *plan, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, 0, "manifest", 1);
    bz_json_key_strs(&j, "models", plan->model, plan->n_models);
    bz_json_key_array(&j, "layers");
    for (int i = 0; i < plan->n_layers; i++)
        if (has_file(plan, i))
            put_manifest_layer(plan, &plan->layer[i], i, &j);
    bz_json_array_end(&j);
    bz_json_document_end(&j);
}

int bz_generate(const bz_plan *plan, const char *folder, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    char name[72];
    int rc = bz_generate_folder(folder, err);
    for (int i = 0; i < plan->n_layers && !rc; i++) {
        if (!has_file(plan, i))
            continue;
        bz_buf_clear(&text);
        bz_generate_source(plan, &plan->layer[i], &text);
        snprintf(name, sizeof name, "%s.c", plan->layer[i].file);
        rc = bz_generate_file(folder, name, &text, err);
    }
    static const struct {
        const char *name;
        void (*put)(const bz_plan *plan, bz_buf *out);
    } REST[] = {{"benchmarks.c", put_list}, {"CMakeLists.txt", put_build}, {"manifest.json", put_manifest}};
    for (int i = 0; i < 3 && !rc; i++) {
        bz_buf_clear(&text);
        REST[i].put(plan, &text);
        rc = bz_generate_file(folder, REST[i].name, &text, err);
    }
    return rc;
}
