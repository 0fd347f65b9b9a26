/* What the page draws and --json does not tell, for its script. Models, layers, modules, groups and profiles stand in the order in
 * which the report has them. */
#include "base/sort.h"
#include "report/parts.h"

#include <stdlib.h>
#include <string.h>

/* [size or type, rate] */
static void put_roofs(const bz_peaks *p, bz_json *j)
{
    bz_json_key_str(j, "no_peaks", p->why);
    BZ_JSON_EACH_ARRAY (j, "flops", i, p->n_flops) {
        bz_json_str(j, bz_dtype_name(p->flops[i].dtype));
        bz_json_num(j, p->flops[i].rate);
    }
    BZ_JSON_EACH_ARRAY (j, "bandwidth", i, p->n_bandwidth) {
        bz_json_num(j, p->bandwidth[i].bytes);
        bz_json_num(j, p->bandwidth[i].rate);
    }
}

/* [kind, operations, bytes] */
static void put_layers(const bz_bound *b, bz_json *j)
{
    BZ_JSON_EACH_ARRAY (j, "layers", i, b->n) {
        const bz_layer *l = b->layer[i].layer;
        bz_json_str(j, l->kind);
        bz_json_int(j, l->flops);
        bz_json_num(j, bz_peaks_bytes(l, NULL, b->dtype));
    }
}

/* Names of the first and the last layer, and how many cost something. */
static void put_modules(const bz_bound *b, bz_json *j)
{
    BZ_JSON_EACH_ARRAY (j, "modules", i, b->n_modules) {
        const bz_bound_module *m = &b->module[i];
        bz_json_str(j, b->layers->layer[m->module->begin].name);
        bz_json_str(j, b->layers->layer[m->module->end - 1].name);
        bz_json_int(j, m->cost.nodes);
    }
}

/* Layers of the main graph, by number: names need not be unique. */
static void put_groups(const bz_bound_fused *f, bz_json *j)
{
    BZ_JSON_EACH_ARRAY (j, "groups", g, f->n) {
        for (int i = 0; i < f->group[g].n; i++)
            bz_json_int(j, f->group[g].layer[i]);
    }
}

/* Of row `r` from event `i` on: [start, length, name, depth], times in nanoseconds. Returns the event behind them. */
static int put_events(const bz_timeline *t, int r, int i, bz_json *j)
{
    bz_json_key_array(j, "events");
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
    BZ_JSON(j, BZ_TELL("length", t->length), BZ_TELL("left_out", t->left_out));
    BZ_JSON_LIST(j, "names", str, k, t->n_names, t->name[k]);
    int event = 0;
    BZ_JSON_EACH (j, "rows", r, t->n_rows) {
        BZ_JSON(j, BZ_TELL("name", t->row[r].name), BZ_TELL("kind", bz_event_kind_name(t->row[r].kind)),
                BZ_TELL("depth", t->row[r].depth));
        event = put_events(t, r, event, j);
    }
    bz_json_object_end(j);
}

enum { SHOWN_TASKS = 4000 }; /* of each of the two time lines; the shortest are left out */

BZ_SORTS(by_length, int64_t, BZ_ORDER(*q, *p));

/* The shortest duration that is drawn. */
static int64_t shortest_shown(const bz_flow *f, int *left_out)
{
    BZ_FREED int64_t *length = bz_alloc((size_t)f->n + 1, sizeof *length);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        if (!f->task[i].removed && f->task[i].duration > 0)
            length[n++] = f->task[i].duration;
    BZ_QSORT(length, n, by_length);
    int64_t least = n > SHOWN_TASKS ? length[SHOWN_TASKS - 1] + 1 : 1;
    *left_out = 0;
    for (uint32_t i = 0; i < n; i++)
        *left_out += length[i] < least;
    return least;
}

/* The tasks that are drawn, as a list for each lane. */
typedef struct {
    uint32_t *first, *next; /* [lanes]; [tasks]. BZ_NONE: no more */
} shown_tasks;

static shown_tasks list_tasks(const bz_flow *f, int64_t least)
{
    shown_tasks list = {bz_none((size_t)f->n_lanes + 1, sizeof *list.first),
                        bz_alloc((size_t)f->n + 1, sizeof *list.next)};
    for (uint32_t i = f->n; i-- > 0;) {
        const bz_task *t = &f->task[i];
        list.next[i] = BZ_NONE;
        if (t->removed || t->duration < least)
            continue;
        list.next[i] = list.first[t->lane];
        list.first[t->lane] = i;
    }
    return list;
}

static void put_lane(const bz_flow *f, const bz_simulated *s, uint32_t lane, const shown_tasks *list, bz_map *names,
                     bz_json *j)
{
    bz_json_object(j);
    BZ_JSON(j, BZ_TELL("name", f->lane[lane].name),
            BZ_TELL("kind", f->lane[lane].channel  ? "sync"
                            : f->lane[lane].device ? "kernel"
                                                   : "call"),
            BZ_TELL("depth", 1));
    bz_json_key_array(j, "events"); /* start, length, name, depth */
    for (uint32_t i = list->first[lane]; i != BZ_NONE; i = list->next[i]) {
        const bz_task *t = &f->task[i];
        bz_json_array(j);
        bz_json_int(j, s->start[i] - f->offset);
        bz_json_int(j, t->duration);
        bz_json_int(j, bz_map_add(names, t->name, strlen(t->name), names->n));
        bz_json_int(j, 0);
        bz_json_array_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

static void put_names(const bz_flow *f, const bz_map *names, bz_json *j)
{
    BZ_FREED const char **name = bz_alloc((size_t)names->n + 1, sizeof *name);
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t at = bz_map_get(names, f->task[i].name, strlen(f->task[i].name));
        if (at != BZ_MAP_NONE)
            name[at] = f->task[i].name;
    }
    BZ_JSON_LIST(j, "names", str, k, names->n, name[k]);
}

/* A time line as those of recordings. */
static void put_flow(const char *key, const bz_flow *f, const bz_simulated *s, bz_json *j)
{
    int left_out;
    int64_t least = shortest_shown(f, &left_out);
    BZ_SCOPED(bz_map) names = {0};
    shown_tasks list = list_tasks(f, least);
    bz_json_key(j, key);
    bz_json_object(j);
    BZ_JSON(j, BZ_TELL("length", s->total), BZ_TELL("left_out", left_out));
    BZ_JSON_EACH_VALUE (j, "rows", l, f->n_lanes)
        if (list.first[l] != BZ_NONE)
            put_lane(f, s, l, &list, &names, j);
    put_names(f, &names, j);
    bz_json_object_end(j);
    free(list.first);
    free(list.next);
}

/* The answer in a sentence, and both time lines. */
static void put_shown(const bz_whatif_shown *shown, bool all, bz_json *j)
{
    BZ_SCOPED(bz_buf) text = {0};
    bz_report_whatif_answer(&shown->whatif, all, &text);
    bz_json_key_str(j, "answer", bz_buf_text(&text));
    put_flow("before", &shown->flow, &shown->before, j);
    if (shown->changed.n)
        put_flow("after", &shown->changed, &shown->after, j);
}

/* With what 'benanza whatif --json' prints; or why there is none of this. */
static void put_whatif(const bz_whatif_shown *shown, bz_json *j)
{
    BZ_SCOPED(bz_buf) text = {0};
    if (!shown) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    if (shown->why) {
        bz_json_key_str(j, "why", shown->why);
        bz_json_object_end(j);
        return;
    }
    bz_report_whatif_json(&shown->whatif, &text);
    bz_json_key(j, "told");
    bz_json_raw(j, bz_buf_text(&text));
    put_shown(shown, true, j);
    bz_json_object_end(j);
}

/* What 'benanza profile tables --json' prints, of long tables the first rows. */
static void put_tables(const bz_recording *r, bz_json *j)
{
    if (r->tables)
        report_tables_page(r->tables, r->profile, j);
    else
        bz_json_null(j);
}

static void put_analysis(const bz_analysis *a, bz_json *j)
{
    const bz_bound *b = &a->bound;
    BZ_JSON(j, BZ_TELL("details", b->facts->text), BZ_TELL("clock", b->setting.clock),
            BZ_TELL("dtype", b->dtype ? bz_dtype_name(b->dtype) : NULL));
    put_roofs(b->peaks, j);
    put_layers(b, j);
    put_modules(b, j);
    put_groups(&b->fused, j);
    BZ_JSON_EACH_VALUE (j, "timelines", i, a->n_ladders)
        put_timeline(a->ladder[i].timeline, j);
    BZ_JSON_EACH_VALUE (j, "whatifs", i, a->n_ladders)
        put_whatif(a->ladder[i].whatif, j);
}

void bz_html_drawing_whatif(const bz_whatif_shown *shown, bool all, bz_buf *out)
{
    bz_json j = bz_json_to(out, false);
    bz_json_object(&j);
    bz_json_key_str(&j, "version", BENANZA_VERSION);
    put_shown(shown, all, &j);
    bz_json_object_end(&j);
}

void bz_html_drawing(const bz_findings *r, bz_buf *out)
{
    bz_json j = bz_json_to(out, false);
    bz_json_object(&j);
    bz_json_key_str(&j, "version", BENANZA_VERSION);
    int recordings = r ? r->n_recordings : 0;
    BZ_JSON_EACH_VALUE (&j, "recordings", i, recordings) /* their timelines */
        put_timeline(r->recording[i].analysis->ladder->timeline, &j);
    BZ_JSON_EACH_VALUE (&j, "whatifs", i, recordings)
        put_whatif(r->recording[i].analysis->ladder->whatif, &j);
    BZ_JSON_EACH_VALUE (&j, "tables", i, recordings)
        put_tables(&r->recording[i], &j);
    BZ_JSON_EACH (&j, "models", i, r ? r->n : 0)
        put_analysis(&r->analysis[i], &j);
    bz_json_object_end(&j);
}
