/* Two reports: what 'analyze --json' wrote at two times, or of two systems, layer by layer. */
#include "compare/rows.h"

#include <cJSON.h>
#include <math.h>
#include <string.h>

enum { VERSION = 1, SETTINGS = 6 };
enum { SEQUENTIAL, PARALLEL, FUSED, HARDWARE, LATENCY, TOTALS };

/* A layer by its key: how often the model has it, and what one costs. */
typedef struct item {
    const char *key, *variant;
    double times;
    bz_span span;
    bool priced;
} item;

typedef struct analysis {
    const char *model;                             /* without its folder */
    const char *setting[SETTINGS], *path_of_model; /* as SETTING_NAMES; "" where the report has none */
    double total[TOTALS];                          /* as TOTAL_NAMES; NAN where the report has none */
    item *item;
    int n;
    bz_map map;
} analysis;

struct bz_report_file {
    analysis *analysis;
    int n;
};

static const char *const SETTING_NAMES[SETTINGS] = {"system", "batch", "threads", "cache", "peaks", "unpriced"};
static const char *const TOTAL_NAMES[TOTALS] = {"sequential", "parallel", "fused", "hardware", "latency"};
static const bz_answers ANSWERS[TOTALS] = {[SEQUENTIAL] = BZ_ANSWERS_BOUND, [LATENCY] = BZ_ANSWERS_LATENCY};

static double number(const cJSON *o, const char *name)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(m) && isfinite(m->valuedouble) ? m->valuedouble : NAN;
}

static const char *text(const cJSON *o, const char *name, bz_arena *arena)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(o, name);
    if (cJSON_IsNumber(m))
        return bz_arena_printf(arena, "%.12g", m->valuedouble);
    return cJSON_IsString(m) ? bz_arena_str(arena, m->valuestring) : "";
}

static bz_span read_span(const cJSON *layer)
{
    bz_span s = {
        .seconds = bz_tick(number(layer, "seconds")), .low = number(layer, "low"), .high = number(layer, "high")};
    if (!(s.low > 0) || !(s.high >= s.low)) {
        s.low = s.seconds * (1 - BZ_COMPARE_GUESS);
        s.high = s.seconds * (1 + BZ_COMPARE_GUESS);
        s.guessed = true;
    }
    return s;
}

static void read_layer(const cJSON *layer, bz_arena *arena, analysis *a)
{
    const char *key = text(layer, "key", arena);
    double times = number(layer, "times");
    uint32_t at = bz_map_get(&a->map, key, strlen(key));
    times = times > 0 && times < 1e15 ? times : 1;
    if (!*key)
        return;
    if (at != BZ_MAP_NONE) {
        a->item[at].times += times;
        return;
    }
    item *i = &a->item[a->n];
    *i = (item){.key = key, .variant = text(layer, "variant", arena), .times = times, .span = read_span(layer)};
    i->priced = i->span.seconds > 0 && i->span.seconds < 1e9;
    bz_map_add(&a->map, key, strlen(key), (uint32_t)a->n++);
}

static int read_analysis(const cJSON *model, const char *name, bz_arena *arena, analysis *a, bz_error *err)
{
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(model, "layers"), *layer;
    a->path_of_model = text(model, "model", arena);
    a->model = bz_file_name(a->path_of_model);
    if (!cJSON_IsObject(model) || !*a->model || !cJSON_IsArray(layers))
        return bz_fail(err, BZ_BAD_INPUT, "%s: a model in it has no name or no layers: write it anew with --json",
                       name);
    for (int i = 0; i < SETTINGS; i++)
        a->setting[i] = text(model, SETTING_NAMES[i], arena);
    const cJSON *profile = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(model, "profiles"), 0);
    for (int i = 0; i < TOTALS; i++)
        a->total[i] = number(i == LATENCY ? profile : model, TOTAL_NAMES[i]);
    a->total[FUSED] = number(cJSON_GetObjectItemCaseSensitive(model, "fused"), "sequential");
    a->item = BZ_NEW(arena, item, cJSON_GetArraySize(layers));
    cJSON_ArrayForEach(layer, layers) read_layer(layer, arena, a);
    bz_map_free(&a->map);
    return 0;
}

int bz_report_read(const char *json, size_t n, const char *name, bz_arena *arena, bz_report_file **out, bz_error *err)
{
    cJSON *root = cJSON_ParseWithLength(json, n);
    const cJSON *models = cJSON_GetObjectItemCaseSensitive(root, "models"), *model;
    bz_report_file *file = *out = BZ_NEW(arena, bz_report_file, 1);
    int failed = 0;
    if (!root)
        failed = bz_fail(err, BZ_BAD_INPUT, "%s: is cut off or damaged: no JSON", name);
    else if (strcmp(text(root, "record", arena), "analysis") != 0 || !cJSON_IsArray(models))
        failed = bz_fail(err, BZ_BAD_INPUT, "%s: is no report of 'benanza analyze --json'", name);
    else if (!(number(root, "v") <= VERSION))
        failed = bz_fail(err, BZ_BAD_INPUT, "%s: has version %s, this benanza reads up to %d: take a newer one", name,
                         text(root, "v", arena), VERSION);
    file->analysis = BZ_NEW(arena, analysis, failed ? 0 : cJSON_GetArraySize(models));
    if (!failed)
        cJSON_ArrayForEach(model, models) if (!failed) failed =
            read_analysis(model, name, arena, &file->analysis[file->n++], err);
    cJSON_Delete(root);
    return failed;
}

static const analysis *partner(const analysis *a, const bz_report_file *own, const bz_report_file *other)
{
    if (own->n == 1 && other->n == 1)
        return &other->analysis[0];
    for (int i = 0; i < other->n; i++)
        if (!strcmp(other->analysis[i].model, a->model) && !strcmp(other->analysis[i].setting[1], a->setting[1]))
            return &other->analysis[i];
    return NULL;
}

static const bz_span NONE = {NAN, NAN, NAN, false}; /* of a layer that the side does not have */

static void add_layers(const analysis *a, const analysis *b, bz_arena *arena, bz_compare_part *part)
{
    BZ_SCOPED(bz_map) map = {0};
    bool *met = BZ_NEW(arena, bool, b->n);
    for (int i = 0; i < b->n; i++)
        bz_map_add(&map, b->item[i].key, strlen(b->item[i].key), (uint32_t)i);
    *part = (bz_compare_part){.what = bz_arena_printf(arena, "layers of %s", a->model),
                              .compare = {.row = BZ_NEW(arena, bz_compare_row, a->n)},
                              .only = {BZ_NEW(arena, bz_compare_row, a->n), BZ_NEW(arena, bz_compare_row, b->n)}};
    for (int i = 0; i < a->n; i++) {
        const item *x = &a->item[i];
        uint32_t at = bz_map_get(&map, x->key, strlen(x->key));
        const item *y = at == BZ_MAP_NONE ? NULL : &b->item[at];
        bz_compare_row row = {.what = x->key, .times = x->times, .variant_a = x->variant, .a = x->span, .b = NONE};
        if (y)
            met[at] = true;
        if (y && x->priced && y->priced) {
            row.b = y->span;
            row.variant_b = y->variant;
            if (x->times != y->times)
                row.setting = bz_arena_printf(arena, "%g -> %g times", x->times, y->times);
            bz_compare_add(&part->compare, &row);
        } else if (!y || x->priced) {
            row.variant_b = "";
            part->only[0][part->n_only[0]++] = row;
        } else if (!y->priced) {
            part->compare.neither++;
        } else {
            met[at] = false;
        }
    }
    for (int i = 0; i < b->n; i++)
        if (!met[i])
            part->only[1][part->n_only[1]++] = (bz_compare_row){.what = b->item[i].key,
                                                                .times = b->item[i].times,
                                                                .variant_a = "",
                                                                .variant_b = b->item[i].variant,
                                                                .a = NONE,
                                                                .b = b->item[i].span};
    part->compare.only_a = part->n_only[0];
    part->compare.only_b = part->n_only[1];
    bz_compare_sort(&part->compare);
}

/* Totals are sums of what has intervals or not: they are told, and not judged more sharply than 2.5 %; a bound
 * without some layers is a lower end. */
static bz_span total_span(const analysis *a, int total)
{
    bool open = total <= FUSED && *a->setting[5] && strcmp(a->setting[5], "0") != 0;
    double s = a->total[total];
    return (bz_span){bz_tick(s), s * (1 - BZ_COMPARE_GUESS), open ? INFINITY : s * (1 + BZ_COMPARE_GUESS), true};
}

static void add_totals(const analysis *a, const analysis *b, bz_arena *arena, bz_compare_part *part)
{
    *part = (bz_compare_part){.what = bz_arena_printf(arena, "totals of %s", a->model),
                              .compare = {.row = BZ_NEW(arena, bz_compare_row, TOTALS)}};
    for (int i = 0; i < TOTALS; i++) {
        if (!(a->total[i] > 0) || !(b->total[i] > 0))
            continue;
        bz_compare_row row = {
            .what = TOTAL_NAMES[i], .times = 1, .variant_a = "", .variant_b = "", .answers = ANSWERS[i]};
        row.a = total_span(a, i);
        row.b = total_span(b, i);
        bz_compare_add(&part->compare, &row);
    }
}

static void add_settings(const analysis *a, const analysis *b, bz_compare_set *out)
{
    if (strcmp(a->path_of_model, b->path_of_model) != 0)
        out->difference[out->n_differences++] = (bz_difference){"model", a->path_of_model, b->path_of_model};
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(a->setting[i], b->setting[i]) != 0)
            out->difference[out->n_differences++] = (bz_difference){SETTING_NAMES[i], a->setting[i], b->setting[i]};
}

int bz_compare_reports(const bz_report_file *a, const bz_report_file *b, bz_arena *arena, bz_compare_set *out,
                       bz_error *err)
{
    *out = (bz_compare_set){.kind = "reports",
                            .part = BZ_NEW(arena, bz_compare_part, 2 * a->n),
                            .difference = BZ_NEW(arena, bz_difference, (SETTINGS + 2) * (a->n + b->n))};
    for (int i = 0; i < a->n; i++) {
        const analysis *x = &a->analysis[i], *y = partner(x, a, b);
        if (!y) {
            out->difference[out->n_differences++] = (bz_difference){"models", x->path_of_model, NULL};
            continue;
        }
        add_totals(x, y, arena, &out->part[out->n_parts++]);
        add_layers(x, y, arena, &out->part[out->n_parts++]);
        add_settings(x, y, out);
    }
    for (int i = 0; i < b->n; i++)
        if (!partner(&b->analysis[i], b, a))
            out->difference[out->n_differences++] = (bz_difference){"models", NULL, b->analysis[i].path_of_model};
    return out->n_parts ? 0 : bz_fail(err, BZ_BAD_INPUT, "the reports have no model and batch in common");
}
