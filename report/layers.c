/* What models consist of: their layers, and the unique ones over all of them. */
#include "base/member.h"
#include "base/sort.h"
#include "report/parts.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool listed(const bz_layers_view *s, const bz_layer *layer)
{
    return !s->fold || bz_layer_is_not_constant(layer);
}

static void put_shape(bz_json *j, const bz_model *m, const bz_type *t)
{
    char name[64];
    if ((t->kind != BZ_TYPE_TENSOR && t->kind != BZ_TYPE_SPARSE) || t->rank < 0) {
        bz_json_null(j);
        return;
    }
    bz_json_array(j);
    for (int i = 0; i < t->rank; i++) {
        if (bz_is_symbol(t->dims[i]))
            bz_json_str(j, bz_symbol_text(m, t->dims[i], name));
        else
            bz_json_int(j, t->dims[i]);
    }
    bz_json_array_end(j);
}

static void put_value(bz_json *j, const bz_model *m, bz_value_id v, const bz_type *t, const bool *constant)
{
    bz_json_key_str(j, "name", v >= 0 ? m->values[v].name : NULL);
    bool plain = t->kind == BZ_TYPE_TENSOR || t->kind == BZ_TYPE_SPARSE || t->kind == BZ_TYPE_NONE;
    bz_json_key_str(j, "dtype", plain && t->dtype ? bz_dtype_name(t->dtype) : NULL);
    if (!plain) {
        BZ_SCOPED(bz_buf) text = {0};
        bz_type_text(m, t, &text);
        bz_json_key_str(j, "type", bz_buf_text(&text));
    }
    bz_json_key(j, "shape");
    put_shape(j, m, t);
    if (constant)
        bz_json_key_bool(j, "constant", *constant);
}

static void put_layers(bz_json *j, const bz_layers_view *s, const bz_layers *all, const bz_layer *layers, int n);

static void put_bodies(bz_json *j, const bz_layers_view *s, const bz_layers *all, const bz_layer *layer)
{
    BZ_JSON_EACH (j, "bodies", b, layer->n_bodies) {
        const bz_body *body = &layer->bodies[b];
        BZ_PUT(j, bz_body, body, name, trips, trips_known);
        bz_json_key(j, "layers");
        put_layers(j, s, all, body->layers, body->n);
    }
}

/* What a layer of an iteration of training is for; NULL of others. */
static const char *phase_of(const bz_layers *l, const bz_layer *layer)
{
    bool mine = l->phase && layer >= l->layer && layer < l->layer + l->n;
    return mine ? bz_train_phase_name(l->phase[layer - l->layer]) : NULL;
}

static const char *class_name(int value)
{
    return bz_class_name((bz_class)value);
}

static const bz_member NODE[] = {BZ_MEMBER(bz_node, op)};
static const bz_member CLASS[] = {
    BZ_MEMBER(bz_layer, kind),
    BZ_MEMBER_LIKE("class", offsetof(bz_layer, class), BZ_MEMBER_WORD, .word = class_name),
};
static const bz_member LAYER[] = {
    BZ_FIELDS(bz_layer, index, name),
    BZ_MEMBERS_AT(bz_layer, node, NODE),
    BZ_MEMBER_WHOLE(NULL, CLASS),
};
static const bz_member WORK[] = {
    BZ_FIELDS(bz_layer, key, macs, flops),
    BZ_MEMBER_AS(bz_layer, params_count, "params"),
    BZ_FIELDS(bz_layer, bytes, priced),
};

static void put_layer(bz_json *j, const bz_layers_view *s, const bz_layers *all, const bz_layer *layer)
{
    const bz_model *m = all->model;
    bz_json_object(j);
    bz_members_json(BZ_MEMBERS(LAYER), layer, j);
    if (phase_of(all, layer))
        bz_json_key_str(j, "phase", phase_of(all, layer));
    BZ_JSON_EACH (j, "inputs", k, layer->n_in)
        put_value(j, m, layer->node->in[k], &layer->in[k], &layer->in_constant[k]);
    BZ_JSON_EACH (j, "outputs", k, layer->n_out)
        put_value(j, m, layer->node->out[k], &layer->out[k], NULL);
    bz_members_json(BZ_MEMBERS(WORK), layer, j);
    if (layer->n_bodies)
        put_bodies(j, s, all, layer);
    bz_json_object_end(j);
}

static void put_layers(bz_json *j, const bz_layers_view *s, const bz_layers *all, const bz_layer *layers, int n)
{
    bz_json_array(j);
    for (int i = 0; i < n; i++)
        if (listed(s, &layers[i]))
            put_layer(j, s, all, &layers[i]);
    bz_json_array_end(j);
}

static const bz_member MODULE[] = {BZ_FIELDS(bz_module, begin, end, width)};

/* What one call could run, and what need not run. */
static int find_fusions(const bz_layers_view *s, bz_layers *l, const bz_match **matches, int *spares)
{
    const bz_match *found;
    bz_spares spare;
    bz_spares_find(l, &spare);
    int n = bz_patterns_find(s->patterns, l, &spare, &found);
    bz_match *all = BZ_NEW(&l->arena, bz_match, n + spare.n);
    for (int i = 0; i < n + spare.n; i++)
        all[i] = i < n ? found[i] : spare.match[i - n];
    *matches = all;
    *spares = spare.n;
    return n + spare.n;
}

static void put_fusions(bz_json *j, const bz_layers_view *s, bz_layers *l)
{
    const bz_match *matches;
    int spares, n = find_fusions(s, l, &matches, &spares);
    const bz_dag *dag = bz_dag_build(l);
    BZ_JSON_EACH (j, "fusions", i, n) {
        bz_json_key_str(j, "pattern", matches[i].pattern);
        BZ_JSON_LIST(j, "layers", int, k, matches[i].n, matches[i].layer[k]);
    }
    bz_members_rows("modules", BZ_MEMBERS(MODULE), dag->modules, sizeof *dag->modules, dag->n_modules, j);
}

static const bz_member TOTALS[] = {BZ_FIELDS(bz_totals, layers, unique, macs, flops, params, bytes, open)};
static const bz_member WHOLE[] = {BZ_MEMBER_WHOLE("totals", TOTALS)};

static void put_model(bz_json *j, const bz_layers_view *s, bz_layers *l)
{
    bz_totals t;
    bz_totals_make(l, s->fold, &t);
    bz_json_document(j, "layers", 1);
    BZ_JSON(j, BZ_TELL("model", l->name), BZ_TELL("opset", l->model->opset), BZ_TELL("nodes", l->model->graph->n_nodes),
            BZ_TELL("batch", l->batch));
    bz_json_key(j, "layers");
    put_layers(j, s, l, l->layer, l->n);
    if (s->patterns)
        put_fusions(j, s, l);
    bz_members_json(BZ_MEMBERS(WHOLE), &t, j);
    if (l->training)
        bz_report_training_json(l->training, j);
    bz_json_key_strs(j, "warnings", l->warnings, l->n_warnings);
    bz_json_object_end(j);
}

static void cell_type(bz_table *table, const bz_model *m, const bz_type *types, int n)
{
    BZ_SCOPED(bz_buf) text = {0};
    for (int k = 0; k < n && !text.len; k++) /* the first operand that is there */
        if (types[k].kind != BZ_TYPE_NONE)
            bz_type_text(m, &types[k], &text);
    bz_table_cell(table, text.len ? bz_buf_text(&text) : "-", NULL);
}

static void add_rows(bz_table *table, const bz_layers_view *s, const bz_layers *all, const bz_layer *layers, int n,
                     int depth)
{
    const bz_model *m = all->model;
    for (int i = 0; i < n; i++) {
        const bz_layer *l = &layers[i];
        if (!listed(s, l))
            continue;
        char indent[64];
        BZ_SCOPED(bz_buf) name = {0};
        snprintf(indent, sizeof indent, "%*s", depth * 2 < 60 ? depth * 2 : 60, "");
        bz_buf_printf(&name, "%s%s", indent, l->name);
        if (s->csv)
            bz_table_cell(table, m->path, NULL);
        bz_table_int(table, l->index);
        bz_table_cell(table, bz_buf_text(&name), l->name);
        BZ_ROW(table, BZ_SHOW(l->kind), BZ_SHOW(bz_class_name(l->class)));
        if (s->phases)
            bz_table_cell(table, phase_of(all, l) ? phase_of(all, l) : "-", NULL);
        cell_type(table, m, l->in, l->n_in);
        cell_type(table, m, l->out, l->n_out);
        BZ_ROW(table, BZ_SHOW_COUNT(l->macs), BZ_SHOW_COUNT(l->params_count));
        char digits[24];
        snprintf(digits, sizeof digits, "%lld", (long long)l->bytes);
        bz_table_cell(table, l->bytes ? BZ_SAY_BYTES((double)l->bytes) : "-", digits);
        if (s->csv)
            bz_table_cell(table, l->key, NULL);
        for (int b = 0; b < l->n_bodies; b++)
            add_rows(table, s, all, l->bodies[b].layers, l->bodies[b].n, depth + 1);
    }
}

static bz_table *layer_table(bz_arena *arena, const bz_layers_view *s)
{
    bz_table *t = bz_table_new(arena);
    if (s->csv)
        bz_table_column(t, "model", BZ_LEFT);
    bz_table_column(t, s->csv ? "index" : "#", BZ_RIGHT);
    bz_table_columns(t, s->phases ? "name|kind|class|phase|input|output" : "name|kind|class|input|output");
    bz_table_column(t, s->csv ? "macs" : "MACs", BZ_RIGHT);
    bz_table_columns(t, ">params|>bytes");
    if (s->csv)
        bz_table_column(t, "key", BZ_LEFT);
    return t;
}

static void put_summary(bz_buf *out, const bz_layers_view *s, const bz_layers *l)
{
    bz_totals t;
    bz_totals_make(l, s->fold, &t);
    char inside[64] = "";
    if (t.inside)
        snprintf(inside, sizeof inside, " (%d of them in loops and branches)", t.inside);
    bz_buf_say(out,
               "%s: %d layer%s%s, %d of them unique (%s), with %s parameters; one run takes %s multiply-accumulates\n",
               l->name, t.layers, BZ_PLURAL(t.layers), inside, t.unique,
               BZ_SAY_SHARE(t.layers ? (double)t.unique / t.layers : 0), BZ_SAY_COUNT((double)t.params),
               BZ_SAY_COUNT((double)t.macs));
    if (l->model->opset)
        bz_buf_printf(out, "  operator set %d", l->model->opset);
    else
        bz_buf_puts(out, "  no operator set of ai.onnx");
    if (l->batch)
        bz_buf_printf(out, ", batch %lld", (long long)l->batch);
    bz_buf_printf(out, ": %d compute, %d memory, %d view, %d constant%s\n", t.per_class[BZ_COMPUTE],
                  t.per_class[BZ_MEMORY], t.per_class[BZ_VIEW], t.per_class[BZ_CONSTANT],
                  s->fold ? " (folded away)" : "");
    if (t.open)
        bz_buf_printf(
            out, "  %d layer%s results whose shape depends on the input's values%s (shown as ?): they have no price\n",
            t.open, t.open == 1 ? " has" : "s have", t.unknown ? ", or on operators that are not known" : "");
    report_guesses(t.loops_open, t.branches, out);
}

static void put_fusion_rows(bz_buf *out, bz_arena *arena, const bz_layers_view *s, bz_layers *l)
{
    const bz_match *matches;
    int spares, n = find_fusions(s, l, &matches, &spares);
    bz_table *t = bz_table_of(arena, "pattern|layers");
    for (int i = 0; i < n; i++) {
        BZ_SCOPED(bz_buf) names = {0};
        for (int k = 0; k < matches[i].n; k++)
            bz_buf_printf(&names, "%s%d %s", k ? ", " : "", matches[i].layer[k], l->layer[matches[i].layer[k]].name);
        BZ_ROW(t, BZ_SHOW(matches[i].pattern), BZ_SHOW(bz_buf_text(&names)));
    }
    const bz_dag *dag = bz_dag_build(l);
    bz_buf_printf(out, "\n%d places where a fusion pattern fits, ", n - spares);
    if (spares)
        bz_buf_printf(out, "%d layers that need not run, ", spares);
    bz_buf_printf(out, "%d parallel modules\n", dag->n_modules);
    if (n)
        bz_table_print(t, out);
}

void bz_report_layers_sizes(bz_layers *const *layers, int n, bool fold, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "model|>layers|>params|>MACs|>bytes|>tokens");
    for (int i = 0; i < n; i++) {
        bz_totals totals;
        bz_token_step step = {0};
        bz_totals_make(layers[i], fold, &totals);
        bz_layers_step(layers[i], &step);
        BZ_ROW(t, BZ_SHOW(layers[i]->name), BZ_SHOW_INT(totals.layers), BZ_SHOW_COUNT(totals.params),
               BZ_SHOW_COUNT(totals.macs), BZ_SHOW_BYTES((double)totals.bytes),
               BZ_SHOW_COUNT(step.sequences * step.tokens));
    }
    bz_table_print(t, out);
}

BZ_SORTS(by_count, bz_unique_layer, BZ_THEN(BZ_ORDER(q->count, p->count), strcmp(p->layer->key, q->layer->key)));

static const bz_member KEY[] = {BZ_MEMBER(bz_layer, key), BZ_MEMBER_WHOLE(NULL, CLASS)};
static const bz_member SIZES[] = {BZ_FIELDS(bz_layer, macs, bytes)};
static const bz_member UNIQUE[] = {
    BZ_MEMBERS_AT(bz_unique_layer, layer, KEY),
    BZ_MEMBER(bz_unique_layer, count),
    BZ_MEMBERS_AT(bz_unique_layer, layer, SIZES),
};

static void unique_json(bz_json *j, const bz_unique *u, bz_layers *const *layers, int n)
{
    bz_json_document(j, "unique-layers", 1);
    BZ_JSON(j, BZ_TELL("models", n), BZ_TELL("layers", u->n_layers), BZ_TELL("unique", u->n));
    BZ_JSON_EACH (j, "items", i, u->n) {
        const bz_unique_layer *item = &u->item[i];
        bz_members_json(BZ_MEMBERS(UNIQUE), item, j);
        BZ_JSON_EACH (j, "in", k, item->uses.n)
            BZ_JSON(j, BZ_TELL("model", layers[item->uses.model[k]]->name), BZ_TELL("count", item->uses.times[k]));
    }
    bz_json_object_end(j);
}

/* "resnet50" of "models/resnet50.onnx" */
static void put_model_name(bz_buf *out, const char *path)
{
    const char *name = bz_file_name(path);
    size_t n = strlen(name);
    bz_buf_put(out, name, n > 5 && !strcmp(name + n - 5, ".onnx") ? n - 5 : n);
}

static void unique_table(bz_table *t, const bz_unique *u, bz_layers *const *layers, bool csv)
{
    bz_table_columns(t, ">count|>models");
    bz_table_column(t, csv ? "macs" : "MACs", BZ_RIGHT);
    bz_table_columns(t, "in|key");
    for (int i = 0; i < u->n; i++) {
        const bz_unique_layer *item = &u->item[i];
        BZ_SCOPED(bz_buf) in = {0};
        for (int k = 0; k < item->uses.n && (csv || k < 3); k++) {
            bz_buf_puts(&in, k ? " " : "");
            put_model_name(&in, layers[item->uses.model[k]]->name);
        }
        if (item->uses.n > 3 && !csv)
            bz_buf_printf(&in, " +%d", item->uses.n - 3);
        BZ_ROW(t, BZ_SHOW_INT(item->count), BZ_SHOW_INT(item->uses.n), BZ_SHOW_COUNT(item->layer->macs),
               BZ_SHOW(bz_buf_text(&in)), BZ_SHOW(item->layer->key));
    }
}

void bz_report_unique_layers(bz_layers *const *layers, int n, const bz_layers_view *s, bz_buf *out)
{
    BZ_SCOPED(bz_unique) u = {0};
    BZ_SCOPED(bz_arena) arena = {0};
    for (int i = 0; i < n; i++)
        bz_unique_add(&u, layers[i], i, s->fold ? bz_layer_is_not_constant : NULL);
    BZ_QSORT(u.item, u.n, by_count);
    if (s->json) {
        bz_json j = bz_json_to(out, false);
        unique_json(&j, &u, layers, n);
        bz_buf_putc(out, '\n');
    } else {
        bz_table *t = bz_table_new(&arena);
        unique_table(t, &u, layers, s->csv);
        if (s->csv) {
            bz_table_csv(t, out);
        } else {
            bz_buf_printf(out, "%d model%s, %lld layer%s, %d unique (%s)\n", n, BZ_PLURAL(n), (long long)u.n_layers,
                          BZ_PLURAL(u.n_layers), u.n, BZ_SAY_SHARE(u.n_layers ? (double)u.n / (double)u.n_layers : 0));
            bz_table_print(t, out);
        }
    }
}

void bz_report_layers(bz_layers *const *layers, int n, const bz_layers_view *s, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_json j = bz_json_to(out, false);
    bz_table *all = s->csv ? layer_table(&arena, s) : NULL;
    if (s->json)
        bz_json_array(&j);
    for (int i = 0; i < n; i++) {
        bz_layers *l = layers[i];
        if (s->json) {
            put_model(&j, s, l);
            continue;
        }
        bz_table *t = all ? all : layer_table(&arena, s);
        add_rows(t, s, l, l->layer, l->n, 0);
        if (s->csv)
            continue;
        if (i)
            bz_buf_putc(out, '\n');
        put_summary(out, s, l);
        if (l->training)
            bz_report_training(l->training, out);
        bz_table_print(t, out);
        if (s->patterns)
            put_fusion_rows(out, &arena, s, l);
    }
    if (s->json) {
        bz_json_array_end(&j);
        bz_buf_putc(out, '\n');
    }
    if (all)
        bz_table_csv(all, out);
}
