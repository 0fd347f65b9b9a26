/* Tables of the original tool's evaluation: for each batch, model and layer the time of its best algorithm, taken by a pair of
 * events. What surprises:
 *
 * - A layer with a bias has two rows of its name: the convolution, and the addition of the bias, which is the shorter.
 * - Graphs that hold their batch as a number ran as network.h says.
 * - Dropout has rows, though nothing runs at inference: they are passed over.
 * - The classifiers of VGG and ArcFace were timed with 512 inputs for 25,088, DUC's softmax over fewer pixels than it has. Times in which a GPU
 *   cannot do what the layer does are left out. */
#include "predict/published.h"

#include "base/sort.h"
#include "predict/network.h"
#include "predict/predict.h"
#include "runtime/gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HEADER[] = "batch\tmodel\tlayer\ttype\tms";
enum { MODELS = 512, BATCH_MOST = 1 << 20, NAME = 200 };

typedef struct row {
    int64_t batch;
    const char *model, *layer;
    double seconds;
    size_t number;
} row;

typedef struct import {
    bz_arena *arena;
    const char *path, *models, *system;
    bz_machine machine; /* the GPU by its data sheet; `gpu` false: it has none */
    row *rows;
    size_t n;
    bz_record *records;
    size_t n_records;
    bz_perfdb_import_report *report;
    bz_error *err;
} import;

static int first_line(void *user, size_t number, const char *text, size_t len)
{
    *(bool *)user = number == 1 && len == strlen(HEADER) && !memcmp(text, HEADER, len);
    return 1;
}

bool bz_published_is(const char *path)
{
    bool is = false;
    return strcmp(path, "-") != 0 && !bz_text_lines(path, first_line, &is, NULL) && is;
}

/* A model's name becomes that of a file: it may hold no path. */
static bool is_name(const char *s)
{
    return *s && *s != '.' && strlen(s) < NAME &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+") == strlen(s);
}

static bool read_row(char *text, row *out)
{
    char *field[5], *end;
    for (int i = 0; i < 5; i++)
        if (!(field[i] = strsep(&text, "\t")))
            return false;
    out->batch = strtoll(field[0], &end, 10);
    bool good = end != field[0] && !*end && out->batch >= 1 && out->batch <= BATCH_MOST && is_name(field[1]) &&
                strlen(field[2]) < NAME;
    out->seconds = strtod(field[4], &end) / 1e3;
    out->model = field[1];
    out->layer = field[2];
    return good && end != field[4] && !*end && !text && out->seconds > 0 && out->seconds < 1e5;
}

static int take_line(void *user, size_t number, const char *text, size_t len)
{
    import *in = user;
    row r;
    if (number == 1)
        return len == strlen(HEADER) && !memcmp(text, HEADER, len) ? 0 : 1;
    in->report->lines++;
    if (!read_row(bz_arena_strn(in->arena, text, len), &r)) {
        in->report->bad++;
        return 0;
    }
    BZ_ROOM(in->rows, in->n);
    r.number = number;
    in->rows[in->n++] = r;
    return 0;
}

/* Rows of one layer at one batch stand together, the longest first. */
BZ_SORTS(by_layer, row,
         BZ_THEN(BZ_THEN(strcmp(p->model, q->model), BZ_ORDER(p->batch, q->batch)),
                 BZ_THEN(strcmp(p->layer, q->layer),
                         BZ_THEN(BZ_ORDER(q->seconds, p->seconds), BZ_ORDER(p->number, q->number)))));

static void add(import *in, const char *text, const bz_problem *p, double seconds)
{
    bz_record r = bz_record_blank();
    r.system = in->system;
    r.problem = text;
    r.variant = (bz_variant){bz_problem_is_matrix(p) ? "cublas" : "cudnn", "published best", "plain", "default"};
    r.setting.threads = 1;
    r.status = BZ_RECORD_OK;
    r.median = seconds;
    r.n = r.iterations = 1;
    r.checked = "skipped";
    r.timing = BZ_TIMING_EVENT_PAIR;
    r.provenance = BZ_PROVENANCE_IMPORTED;
    BZ_ADD(in->records, in->n_records) = r;
    in->report->records++;
}

/* The way through the layer with so many calls that libraries have. */
static const bz_alternative *way(const bz_lowering *low, int calls)
{
    for (int i = 0; i < low->n; i++)
        if (low->alternative[i].n == calls && !low->alternative[i].modelled)
            return &low->alternative[i];
    return NULL;
}

/* `rows` of one layer, the longest first. The product comes first in its way, what is added to it behind. */
static bool take_layer(import *in, const bz_network *net, const row *rows, size_t n)
{
    uint32_t at = bz_map_get(&net->by_name, rows->layer, strlen(rows->layer));
    if (at == BZ_MAP_NONE)
        return false;
    const bz_layer *layer = &net->models.layers[0]->layer[at];
    bz_lowering low;
    bz_lower(layer, BZ_UNDEFINED, in->arena, &low);
    if (!strcmp(layer->kind, "dropout"))
        return true;
    const bz_alternative *a = n <= 2 ? way(&low, (int)n) : NULL;
    if (!a)
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *text = bz_network_text(net, (int)at, &a->problem[i], in->arena);
        bz_shape shape;
        bz_problem problem;
        if (!text || bz_problem_parse(text, &problem, NULL))
            return false;
        bz_shape_of(&problem, &shape);
        if (in->machine.gpu && !bz_shape_possible(&shape, &in->machine, rows[i].seconds))
            return false;
        add(in, text, &a->problem[i], rows[i].seconds);
    }
    return true;
}

static int load(const import *in, const row *first, bz_network *out, bz_error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s.onnx", in->models, first->model) >= (int)sizeof path)
        return bz_fail(err, BZ_BAD_INPUT, "%s: the folder's name is too long", in->models);
    return bz_network_load(path, first->batch, out, err);
}

static int take_model(import *in, const row *rows, size_t n, bz_error *err)
{
    bz_network net;
    int rc = load(in, rows, &net, err);
    for (size_t i = 0, k; i < n && !rc; i = k) {
        for (k = i + 1; k < n && !strcmp(rows[k].layer, rows[i].layer);)
            k++;
        if (!take_layer(in, &net, rows + i, k - i))
            in->report->bad += k - i;
    }
    bz_network_free(&net);
    return rc;
}

static int put_system(bz_perfdb *db, import *in, const char *system, bz_error *err)
{
    char name[128];
    const char *base = bz_file_name(in->path);
    bz_gpu gpu;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(base, "."), base);
    for (char *p = name; *p; p++)
        *p = *p == '_' ? ' ' : *p;
    bool found = bz_gpu_find(name, &gpu);
    if (!system && !found)
        return bz_fail(err, BZ_BAD_INPUT, "%s: '%s' is no GPU of the data sheets: name the system with --system",
                       in->path, name);
    in->system = system ? bz_arena_str(in->arena, system) : bz_arena_printf(in->arena, "%s@published", gpu.slug);
    if (found && bz_machine_named(gpu.slug, in->arena, &in->machine, err))
        return -1;
    BZ_SCOPED(bz_buf) details = {0};
    bz_json j = bz_json_to(&details, false);
    bz_json_object(&j);
    bz_json_key_str(&j, "gpu", name);
    bz_json_object_end(&j);
    int rc = bz_perfdb_put_system(db, in->system, details.data, 0, err);
    in->report->systems++;
    return rc;
}

int bz_published_import(bz_perfdb *db, const char *path, const char *models, const char *system,
                        bz_perfdb_import_report *report, bz_error *err)
{
    bz_arena arena = {0};
import in = {.arena = & arena, .path = path, .models = models, .report = report, .err = err };
    int rc = bz_text_lines(path, take_line, &in, err) || put_system(db, &in, system, err);
    BZ_QSORT(in.rows, in.n, by_layer);
    for (size_t i = 0, k; i < in.n && !rc; i = k) {
        for (k = i + 1;
             k < in.n && !strcmp(in.rows[k].model, in.rows[i].model) && in.rows[k].batch == in.rows[i].batch;)
            k++;
        rc = take_model(&in, in.rows + i, k - i, err);
    }
    if (!rc && in.n_records)
        rc = bz_perfdb_put(db, in.records, in.n_records, &report->count, err);
    free(in.rows);
    free(in.records);
    bz_arena_free(&arena);
    return rc ? -1 : 0;
}
