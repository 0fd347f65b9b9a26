/* conformance_lowering [-p PROBLEMS] EXPECTED PATTERN... [-- PATTERN...]: lowers every layer of the models that the
 * patterns name, and of the unit tests' table of operators, and says, operator by operator, what prices
 * it: a library's call, a copy of as many bytes, or nothing.
 *
 * EXPECTED lists why layers of class compute have no library's call, one "OPERATOR: reason" a line. Over
 * the models before "--" the list must be exact: a line that no layer needs any more fails the test like
 * a layer without a line. Models after it must not add to the list. PROBLEMS is written: every library
 * call of the models before "--", a line each, for benanza-bench to run.
 *
 * conformance_lowering -t TEXTS EXPECTED PATTERN...: writes what these layers become in each data type: their alternatives, a
 * line each, its problems behind each other. conformance_lowered holds that against a file in the tree. */
#include "generator/generator.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../unit/modelproc_ops_model.h"

#include "../unit/modelproc_gradient_cases.h"

enum { LIBRARY, COPY, UNPRICED, N_PRICES };

typedef struct row {
    char *name; /* operator, or "OPERATOR: reason" */
    int count[N_PRICES];
    bool memory, listed, met, newer; /* newer: in newer packages only */
} row;

typedef struct table {
    row *item;
    int n;
    bz_map names;
} table;

static row *find_row(table *t, const char *name)
{
    uint32_t k = bz_map_get(&t->names, name, strlen(name));
    if (k != BZ_MAP_NONE)
        return &t->item[k];
    t->item = realloc(t->item, (size_t)(t->n + 1) * sizeof *t->item);
    t->item[t->n] = (row){.name = strdup(name)};
    bz_map_add(&t->names, t->item[t->n].name, strlen(name), (uint32_t)t->n);
    return &t->item[t->n++];
}

static void free_table(table *t)
{
    for (int i = 0; i < t->n; i++)
        free(t->item[i].name);
    free(t->item);
    bz_map_free(&t->names);
}

typedef struct survey {
    table operators, reasons;
    bool exact; /* models that the list must fit exactly */
    int models, unread, wrong;
    FILE *problems, *texts;
    table seen; /* layers that are in `texts` */
    bz_plan *processor;
} survey;

/* Alternatives, a line each; in another data type without those that stand for as many bytes. */
static char *text_of(const bz_layer *layer, bz_dtype wanted, bz_arena *arena)
{
    bz_lowering low;
    bz_buf text = {0};
    bz_lower(layer, wanted, arena, &low);
    for (int i = 0; i < low.n; i++) {
        const bz_alternative *way = &low.alternative[i];
        for (int k = 0; k < way->n && !(way->modelled && wanted); k++)
            bz_buf_printf(&text, "%s%s%s",
                          k               ? "; "
                          : way->modelled ? "    modelled: "
                                          : "    ",
                          way->text[k], k + 1 == way->n ? "\n" : "");
    }
    if (low.free || !low.n)
        bz_buf_printf(&text, "    %s\n", low.free ? "free" : low.why);
    return bz_buf_keep(&text, arena);
}

/* What the layer becomes; in another data type where more than the name of that differs. */
static void write_texts(survey *s, const bz_layer *layer, bz_arena *arena)
{
    const char *own = text_of(layer, BZ_UNDEFINED, arena);
    row *r = find_row(&s->seen, bz_arena_printf(arena, "%s %s", layer->node->op, layer->key));
    if (!r->met)
        fprintf(s->texts, "%s %s (%lld MACs, %lld flops, %lld weights, %lld bytes)\n%s", layer->node->op, layer->key,
                (long long)layer->macs, (long long)layer->flops, (long long)layer->params_count,
                (long long)layer->bytes, own);
    for (int t = 0; t < 2 && !r->met; t++) {
        const char *name = t ? "i8" : "bf16", *other = text_of(layer, t ? BZ_I8 : BZ_BF16, arena), *at = own;
        bz_buf named = {0};
        for (const char *end; *at; at = end) { /* the same with the other name */
            size_t line = strcspn(at, "\n") + 1;
            end = at + line;
            for (size_t k = 0; k < line && strncmp(at, "    modelled", 12) != 0; k++) {
                bool type = !strncmp(at + k, "=f32", 4);
                bz_buf_puts(&named, type ? "=" : "");
                bz_buf_put(&named, type ? name : at + k, type ? strlen(name) : 1);
                k += type ? 3 : 0;
            }
        }
        if (*other && strcmp(bz_buf_text(&named), other) != 0)
            fprintf(s->texts, "%s %s as %s\n%s", layer->node->op, layer->key, name, other);
        bz_buf_free(&named);
    }
    r->met = true;
}

static void note(survey *s, const char *model, const bz_layer *layer)
{
    char name[200], reason[600];
    bz_arena arena = {0};
    bz_lowering low;
    bz_lower(layer, BZ_UNDEFINED, &arena, &low);
    if (s->texts && s->exact)
        write_texts(s, layer, &arena);
    if (!low.free && layer->priced) {
        int price = low.n ? COPY : UNPRICED;
        for (int i = 0; i < low.n; i++)
            if (!low.alternative[i].modelled && bz_plan_offers(s->processor, &low.alternative[i]))
                price = LIBRARY;
        for (int i = 0; s->problems && s->exact && price == LIBRARY && i < low.n; i++)
            for (int k = 0; k < low.alternative[i].n; k++)
                fprintf(s->problems, "%s\n", low.alternative[i].text[k]);
        bool foreign = layer->node->domain[0] && strcmp(layer->node->domain, "ai.onnx") != 0;
        snprintf(name, sizeof name, "%s%s%s", foreign ? layer->node->domain : "", foreign ? "." : "", layer->node->op);
        row *r = find_row(&s->operators, name);
        r->memory = layer->class == BZ_MEMORY;
        r->count[price]++;
        if (price != LIBRARY && layer->class == BZ_COMPUTE) {
            snprintf(reason, sizeof reason, "%s: %s", name, low.why ? low.why : "no reason is given");
            r = find_row(&s->reasons, reason);
            if (!r->listed && !r->met) {
                printf("NOT LISTED %s\n    %s, layer %s\n", reason, model, layer->key);
                s->wrong++;
            }
            r->met |= s->exact || !r->listed;
        }
    }
    bz_arena_free(&arena);
}

static void walk(survey *s, const char *model, const bz_layer *layers, int n)
{
    for (int i = 0; i < n; i++) {
        for (int b = 0; b < layers[i].n_bodies; b++)
            walk(s, model, layers[i].bodies[b].layers, layers[i].bodies[b].n);
        note(s, model, &layers[i]);
    }
}

static void read_layers(survey *s, const char *name, bz_model *m, int64_t batch)
{
    bz_error err;
    bz_layers *l = NULL;
    if (!m || bz_layers_infer(m, &(bz_infer_options){.batch = batch}, &l, &err)) {
        s->unread++;
    } else {
        s->models++;
        walk(s, name, l->layer, l->n);
    }
    bz_layers_free(l);
    bz_model_free(m);
}

static void read_file(survey *s, const char *path)
{
    bz_error err;
    bz_model *m = NULL;
    read_layers(s, path, bz_model_load(path, &m, &err) ? NULL : m, 1);
}

static void read_cases(survey *s, const op_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bz_buf bytes = write_model(&cases[i]);
        bz_error err;
        bz_model *m = NULL;
        read_layers(s, cases[i].in, bz_model_parse(bytes.data, bytes.len, cases[i].op, &m, &err) ? NULL : m, 0);
        bz_buf_free(&bytes);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const row *)a)->name, ((const row *)b)->name);
}

static void print_table(survey *s)
{
    int total[2][N_PRICES] = {{0}};
    qsort(s->operators.item, (size_t)s->operators.n, sizeof(row), by_name);
    printf("%-45s %-8s %8s %8s %8s\n", "operator", "class", "library", "copy", "unpriced");
    for (int i = 0; i < s->operators.n; i++) {
        const row *r = &s->operators.item[i];
        printf("%-45s %-8s %8d %8d %8d\n", r->name, r->memory ? "memory" : "compute", r->count[LIBRARY], r->count[COPY],
               r->count[UNPRICED]);
        for (int k = 0; k < N_PRICES; k++)
            total[r->memory][k] += r->count[k];
    }
    for (int i = 0; i < 2; i++)
        printf("%-45s %-8s %8d %8d %8d\n", "all", i ? "memory" : "compute", total[i][LIBRARY], total[i][COPY],
               total[i][UNPRICED]);
    printf("%d models, %d left out: their shapes are not known\n", s->models, s->unread);
}

static int read_list(table *reasons, const char *path)
{
    FILE *f = fopen(path, "r");
    char line[800];
    if (!f)
        return -1;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        bool newer = !strncmp(line, "? ", 2);
        if (*line && *line != '#') {
            row *r = find_row(reasons, newer ? line + 2 : line);
            r->listed = true, r->newer = newer;
        }
    }
    fclose(f);
    return 0;
}

int main(int argc, char **argv)
{
    survey s = {.exact = true, .processor = bz_plan_new(&(bz_plan_options){0})};
    if (argc > 2 && (!strcmp(argv[1], "-p") || !strcmp(argv[1], "-t"))) {
        FILE *f = fopen(argv[2], "w");
        if (!f)
            return 2;
        *(argv[1][1] == 'p' ? &s.problems : &s.texts) = f;
        argc -= 2, argv += 2;
    }
    if (argc < 3 || read_list(&s.reasons, argv[1]))
        return 2;
    read_cases(&s, standard, sizeof standard / sizeof *standard);
    read_cases(&s, microsoft, sizeof microsoft / sizeof *microsoft);
    read_cases(&s, classical, sizeof classical / sizeof *classical);
    read_cases(&s, gradients, sizeof gradients / sizeof *gradients);
    for (int i = 2; i < argc; i++) {
        glob_t g = {0};
        if (!strcmp(argv[i], "--")) {
            s.exact = false;
        } else if (!glob(argv[i], 0, NULL, &g)) {
            for (size_t k = 0; k < g.gl_pathc; k++)
                read_file(&s, g.gl_pathv[k]);
            globfree(&g);
        } else if (s.exact) {
            printf("skipped: nothing is named %s (Debian package libonnx-testdata)\n", argv[i]);
            free_table(&s.operators);
            free_table(&s.reasons);
            bz_plan_free(s.processor);
            return 77;
        }
    }
    print_table(&s);
    for (int i = 0; i < s.reasons.n; i++)
        if (s.reasons.item[i].listed && !s.reasons.item[i].met && !s.reasons.item[i].newer) {
            printf("NO LONGER NEEDED %s\n", s.reasons.item[i].name);
            s.wrong++;
        }
    if (s.problems)
        fclose(s.problems);
    if (s.texts)
        fclose(s.texts);
    free_table(&s.operators);
    free_table(&s.reasons);
    free_table(&s.seen);
    bz_plan_free(s.processor);
    return s.wrong ? 1 : 0;
}
