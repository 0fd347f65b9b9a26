/* conformance_testdata DIR EXCEPTIONS: for every model of the ONNX package's test data, infers the
 * graph's outputs from its inputs alone and holds them against what the file declares.
 *
 * EXCEPTIONS lists the models whose output shapes depend on data that is not in the file, one
 * "NAME reason" a line, or "NAME@18 reason" where an attribute became an operand in operator set 18: Debian 12 has an older
 * package than Debian 13; "NAME? reason" where packages have two models of that name. They must be exactly the ones where we leave a dimension open: a model that
 * is listed and inferred anyway fails the test, too. A wrong dimension is never excused. */
#include "modelproc/modelproc.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { EQUAL, OPEN, DIFFERENT } verdict;

static verdict worse(verdict a, verdict b)
{
    return a > b ? a : b;
}

static verdict compare(const bz_type *declared, const bz_type *found)
{
    if (declared->kind == BZ_TYPE_NONE)
        return EQUAL;
    if (found->kind == BZ_TYPE_NONE)
        return OPEN;
    if (declared->kind != found->kind)
        return DIFFERENT;
    if (declared->dtype && found->dtype != declared->dtype)
        return found->dtype ? DIFFERENT : OPEN;
    if (declared->elem)
        return found->elem ? compare(declared->elem, found->elem) : OPEN;
    if (declared->rank < 0)
        return EQUAL;
    if (found->rank != declared->rank)
        return found->rank < 0 ? OPEN : DIFFERENT;
    verdict v = EQUAL;
    for (int i = 0; i < declared->rank; i++)
        if (!bz_is_symbol(declared->dims[i]) && found->dims[i] != declared->dims[i])
            v = worse(v, bz_is_symbol(found->dims[i]) ? OPEN : DIFFERENT);
    return v;
}

static void print_type(const bz_model *m, const char *what, const bz_type *t)
{
    bz_buf text = {0};
    bz_type_text(m, t, &text);
    printf("    %s %s %s\n", what, bz_dtype_name(t->dtype), bz_buf_text(&text));
    bz_buf_free(&text);
}

static verdict check_model(const char *path, int *opset)
{
    bz_error err = {0};
    bz_model *m = NULL;
    bz_layers *l = NULL;
    bz_infer_options options = {.ignore_declared = true, .open_inputs = true};
    verdict v = EQUAL;
    if (bz_model_load(path, &m, &err) || bz_layers_infer(m, &options, &l, &err)) {
        printf("  %s\n", err.text);
        v = DIFFERENT;
    }
    *opset = m ? m->opset : 0;
    for (int k = 0; l && k < m->graph->n_outputs; k++) {
        bz_value_id id = m->graph->outputs[k];
        const bz_type *declared = m->values[id].declared;
        verdict one = declared ? compare(declared, &l->types[id]) : EQUAL;
        if (one == DIFFERENT) {
            printf("  %s: output '%s' differs\n", path, m->values[id].name);
            print_type(m, "declared", declared);
            print_type(m, "inferred", &l->types[id]);
        }
        v = worse(v, one);
    }
    bz_layers_free(l);
    bz_model_free(m);
    return v;
}

/* The folder that holds model.onnx names the case. */
static void case_name(const char *path, char *out, size_t room)
{
    const char *end = strrchr(path, '/'), *begin = end;
    while (begin > path && begin[-1] != '/')
        begin--;
    snprintf(out, room, "%.*s", (int)(end - begin), begin);
}

enum { SOMETIMES = 1000 }; /* an operator set that does not come */

/* Returns the text of the file; names become keys of the map, with the operator set from which on they are exceptions. */
static char *read_exceptions(const char *path, bz_map *names)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    char *text = calloc(1, 1 << 20);
    size_t n = text ? fread(text, 1, (1 << 20) - 1, f) : 0;
    fclose(f);
    for (char *line = text; n && line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (*line && *line != '#' && *line != '\n')
            bz_map_add(names, line, strcspn(line, "@? \n"),
                       line[strcspn(line, "@? \n")] == '@'   ? (uint32_t)atoi(strchr(line, '@') + 1)
                       : line[strcspn(line, "@? \n")] == '?' ? SOMETIMES
                                                             : 0);
    return text;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    bz_map exceptions = {0};
    char *text = read_exceptions(argv[2], &exceptions), pattern[4096], name[256];
    if (!text)
        return 2;
    glob_t g = {0};
    snprintf(pattern, sizeof pattern, "%s/*/*/model.onnx", argv[1]);
    if (glob(pattern, 0, NULL, &g)) {
        printf("skipped: %s has no test models (Debian package libonnx-testdata)\n", argv[1]);
        return 77;
    }
    int equal = 0, open = 0, wrong = 0;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        case_name(g.gl_pathv[i], name, sizeof name);
        int opset;
        verdict v = check_model(g.gl_pathv[i], &opset);
        uint32_t since = bz_map_get(&exceptions, name, strlen(name));
        bool excused = since == SOMETIMES ? v == OPEN : since != BZ_MAP_NONE && opset >= (int)since;
        equal += v == EQUAL;
        open += v == OPEN && excused;
        if (v == DIFFERENT || excused != (v == OPEN)) {
            wrong++;
            printf("FAILED %s: %s\n", name,
                   v == DIFFERENT ? "inferred otherwise than declared"
                   : excused      ? "listed as an exception, but inferred"
                                  : "left open");
        }
    }
    printf("%zu models: %d equal, %d open because they depend on data, %d wrong\n", g.gl_pathc, equal, open, wrong);
    globfree(&g);
    bz_map_free(&exceptions);
    free(text);
    return wrong ? 1 : 0;
}
