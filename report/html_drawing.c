/* What the page draws and --json does not tell, for its script. Models, layers, modules, groups and profiles stand in the order in
 * which the report has them. */
#include "report/html.h"

#include <math.h>

static void key_array(bz_json *j, const char *key)
{
    bz_json_key(j, key);
    bz_json_array(j);
}

/* [size or type, rate] */
static void put_roofs(const bz_peaks *p, bz_json *j)
{
    bz_json_key_str(j, "no_peaks", p->why);
    key_array(j, "flops");
    for (int i = 0; i < p->n_flops; i++) {
        bz_json_array(j);
        bz_json_str(j, bz_dtype_name(p->flops[i].dtype));
        bz_json_num(j, p->flops[i].rate);
        bz_json_array_end(j);
    }
    bz_json_array_end(j);
    key_array(j, "bandwidth");
    for (int i = 0; i < p->n_bandwidth; i++) {
        bz_json_array(j);
        bz_json_num(j, p->bandwidth[i].bytes);
        bz_json_num(j, p->bandwidth[i].rate);
        bz_json_array_end(j);
    }
    bz_json_array_end(j);
}

/* [kind, operations, bytes] */
static void put_layers(const bz_bound *b, bz_json *j)
{
    key_array(j, "layers");
    for (int i = 0; i < b->n; i++) {
        const bz_layer *l = b->layer[i].layer;
        bz_json_array(j);
        bz_json_str(j, l->kind);
        bz_json_int(j, l->flops);
        bz_json_num(j, bz_peaks_bytes(l, NULL, b->dtype));
        bz_json_array_end(j);
    }
    bz_json_array_end(j);
}

/* Names of the first and the last layer, and how many cost something. */
static void put_modules(const bz_bound *b, bz_json *j)
{
    key_array(j, "modules");
    for (int i = 0; i < b->n_modules; i++) {
        const bz_bound_module *m = &b->module[i];
        bz_json_array(j);
        bz_json_str(j, b->layers->layer[m->module->begin].name);
        bz_json_str(j, b->layers->layer[m->module->end - 1].name);
        bz_json_int(j, m->cost.nodes);
        bz_json_array_end(j);
    }
    bz_json_array_end(j);
}

/* Layers of the main graph, by number: names need not be unique. */
static void put_groups(const bz_bound_fused *f, bz_json *j)
{
    key_array(j, "groups");
    for (int g = 0; g < f->n; g++) {
        bz_json_array(j);
        for (int i = 0; i < f->group[g].n; i++)
            bz_json_int(j, f->group[g].layer[i]);
        bz_json_array_end(j);
    }
    bz_json_array_end(j);
}

/* Of row `r` from event `i` on: [start, length, name, depth], times in nanoseconds. Returns the event behind them. */
static int put_events(const bz_timeline *t, int r, int i, bz_json *j)
{
    key_array(j, "events");
    for (; i < t->n && t->event[i].row == r; i++) {
        const int64_t event[] = {t->event[i].start, t->event[i].length, t->event[i].name, t->event[i].depth};
        bz_json_array(j);
        for (int k = 0; k < 4; k++)
            bz_json_int(j, event[k]);
        bz_json_array_end(j);
    }
    bz_json_array_end(j);
    return i;
}

static void put_timeline(const bz_timeline *t, bz_json *j)
{
    if (!t) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_json_key_int(j, "length", t->length);
    bz_json_key_int(j, "left_out", t->left_out);
    key_array(j, "names");
    for (int k = 0; k < t->n_names; k++)
        bz_json_str(j, t->name[k]);
    bz_json_array_end(j);
    key_array(j, "rows");
    for (int r = 0, event = 0; r < t->n_rows; r++) {
        bz_json_object(j);
        bz_json_key_str(j, "name", t->row[r].name);
        bz_json_key_str(j, "kind", bz_event_kind_name(t->row[r].kind));
        bz_json_key_int(j, "depth", t->row[r].depth);
        event = put_events(t, r, event, j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_analysis(const bz_analysis *a, bz_json *j)
{
    const bz_bound *b = &a->bound;
    bz_json_object(j);
    bz_json_key_str(j, "details", b->facts->text);
    bz_json_key_str(j, "clock", b->setting.clock);
    bz_json_key_str(j, "dtype", b->dtype ? bz_dtype_name(b->dtype) : NULL);
    put_roofs(b->peaks, j);
    put_layers(b, j);
    put_modules(b, j);
    put_groups(&b->fused, j);
    key_array(j, "timelines");
    for (int i = 0; i < a->n_ladders; i++)
        put_timeline(a->ladder[i].timeline, j);
    bz_json_array_end(j);
    bz_json_object_end(j);
}

void bz_html_drawing(const bz_findings *r, bz_buf *out)
{
    bz_json j = bz_json_to(out, false);
    bz_json_object(&j);
    bz_json_key_str(&j, "version", BENANZA_VERSION);
    key_array(&j, "recordings"); /* their timelines */
    for (int i = 0; i < r->n_recordings; i++)
        put_timeline(r->recording[i].analysis->ladder->timeline, &j);
    bz_json_array_end(&j);
    key_array(&j, "models");
    for (int i = 0; i < r->n; i++)
        put_analysis(&r->analysis[i], &j);
    bz_json_array_end(&j);
    bz_json_object_end(&j);
}
