/* Models as sequences of layers. */
#include "base/sort.h"
#include "report/report.h"

#include "base/member.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>

typedef struct totals {
    int64_t layers, sequences, unique;
    double whole;
} totals;

static totals totals_of(const bz_bricks *b)
{
    totals t = {0};
    for (int i = 0; i < b->n_models; i++) {
        t.layers += b->model[i].covered;
        t.whole += b->model[i].measured;
    }
    for (int i = 0; i < b->n; i++) {
        t.sequences += b->brick[i].count;
        t.unique += b->brick[i].count > 0; /* joints are not of the models */
    }
    return t;
}

static const char *id_of(const bz_brick *b, bz_arena *arena)
{
    char id[33];
    bz_hash_hex(b->hash, id);
    return bz_arena_str(arena, id);
}

/* How far what is built is from what was measured: the geometric mean of their ratios, and of how far they are off. */
static int errors(const bz_bricks_report *r, double *ratio, double *off)
{
    double sum = 0, away = 0;
    int n = 0;
    for (int i = 0; i < r->b->n_models; i++) {
        double one = bz_bricks_build(r->b, i, r->rules) / r->b->model[i].measured;
        if (!(one > 0) || !isfinite(one))
            continue;
        sum += log(one);
        away += fabs(log(one));
        n++;
    }
    *ratio = exp(sum / n);
    *off = exp(away / n) - 1;
    return n;
}

static void answer(const bz_bricks_report *r, bz_buf *out)
{
    const bz_bricks *b = r->b;
    double ratio, off;
    const totals t = totals_of(b);
    double saved = t.whole / bz_bricks_cost(b);
    bz_style_begin(out, BZ_STYLE_STRONG);
    bz_buf_printf(out, "%d model%s, %lld layers in %lld sequences of at most %d: %lld of them unique (%.1f %%).",
                  b->n_models, BZ_PLURAL(b->n_models), (long long)t.layers, (long long)t.sequences, b->most,
                  (long long)t.unique, t.sequences ? 100.0 * (double)t.unique / (double)t.sequences : 0);
    if (r->rules && r->rules->cuts.n) {
        const bz_brick_cuts *cuts = &r->rules->cuts;
        bz_buf_printf(out,
                      " A cut adds %s, and %s for each MB (by %d joints, half of them within %s of that): taken off.",
                      BZ_SAY_TIME(cuts->each), BZ_SAY_TIME(cuts->byte * 1e6), cuts->n, BZ_SAY_TIME(cuts->spread));
    }
    if (errors(r, &ratio, &off))
        bz_buf_printf(out, " Built of them, models take %.1f %% of what was measured (geometric mean), %.1f %% off.",
                      100 * ratio, 100 * off);
    if (isfinite(saved))
        bz_buf_printf(out, " To run each of these once takes %s, the models %s: %.1f × less.",
                      BZ_SAY_TIME(bz_bricks_cost(b)), BZ_SAY_TIME(t.whole), saved);
    bz_style_end(out, BZ_STYLE_STRONG);
    bz_buf_puts(out, "\n\n");
}

static int unique_in(const bz_bricks *b, const bz_brick_model *m, bz_arena *arena)
{
    bool *seen = BZ_NEW(arena, bool, b->n);
    int n = 0;
    for (int i = 0; i < m->n; i++) {
        n += !seen[m->brick[i]];
        seen[m->brick[i]] = true;
    }
    return n;
}

static const bz_sheet *models(const bz_bricks_report *r, bz_arena *arena)
{
    const bz_bricks *b = r->b;
    static const char COLUMNS[] = "model|layers:n|sequences:n|unique:n|built:s=by its sequences|path:s=longest path"
                                  "|measured:s|ratio:%=of measured";
    bool cuts = r->rules && r->rules->cuts.n;
    bz_brick_rules uncut = r->rules ? *r->rules : (bz_brick_rules){0};
    uncut.cuts.n = 0;
    bz_sheet *s = bz_sheet_new(arena, "models", "Models",
                               bz_arena_printf(arena, "%s%s", COLUMNS, cuts ? "|cuts:s=cuts taken off" : ""));
    for (int i = 0; i < b->n_models; i++) {
        const bz_brick_model *m = &b->model[i];
        double built = bz_bricks_build(b, i, r->rules), whole = cuts ? bz_bricks_build(b, i, &uncut) : NAN;
        const bz_sheet_cell row[] = {BZ_TEXT(m->name),        BZ_NUMBER(m->covered),
                                     BZ_NUMBER(m->n),         BZ_NUMBER(unique_in(b, m, arena)),
                                     BZ_NUMBER(built),        BZ_NUMBER(bz_bricks_path(b, i, r->rules)),
                                     BZ_NUMBER(m->measured),  BZ_NUMBER(built / m->measured),
                                     BZ_NUMBER(whole - built)};
        bz_sheet_add(s, row, cuts ? 9 : 8);
    }
    return s;
}

BZ_SORTS(more_often, bz_brick *const, BZ_THEN(BZ_ORDER((*q)->count, (*p)->count), BZ_ORDER(*p, *q)));

static const bz_sheet *bricks(const bz_bricks_report *r, bz_arena *arena)
{
    const bz_bricks *b = r->b;
    static const char COLUMNS[] = "id|times:n|models:n|layers:n|time:s|hot:s|why=why not|key=layers' keys";
    bz_sheet *s = bz_sheet_new(arena, "sequences", "Unique sequences", COLUMNS);
    const bz_brick **list = BZ_NEW(arena, const bz_brick *, b->n);
    for (int i = 0; i < b->n; i++)
        list[i] = &b->brick[i];
    BZ_QSORT(list, b->n, more_often);
    for (int i = 0; i < b->n; i++)
        BZ_SHEET_ADD(s, BZ_TEXT(id_of(list[i], arena)), BZ_NUMBER(list[i]->count), BZ_NUMBER(list[i]->models),
                     BZ_NUMBER(list[i]->n), BZ_NUMBER(list[i]->seconds),
                     BZ_NUMBER(r->hot ? r->hot[list[i] - b->brick] : (double)NAN), BZ_TEXT(r->why[list[i] - b->brick]),
                     BZ_TEXT(list[i]->key));
    return s;
}

/* Each two models with what they share, the most alike first. */
static const bz_sheet *pairs(const bz_bricks *b, bz_arena *arena)
{
    static const char COLUMNS[] = "one=model|other=and|alike:%=shared of both";
    bz_sheet *s = bz_sheet_new(arena, "pairs", "Sequences that two models share, of all that either has", COLUMNS);
    for (int i = 0; i < b->n_models; i++)
        for (int k = i + 1; k < b->n_models; k++)
            BZ_SHEET_ADD(s, BZ_TEXT(b->model[i].name), BZ_TEXT(b->model[k].name), BZ_NUMBER(bz_bricks_alike(b, i, k)));
    return s;
}

/* What cutting adds, by two sequences and by the one of both. */
static const bz_sheet *joints(const bz_bricks_report *r, bz_arena *arena)
{
    static const char COLUMNS[] = "first|second|both|bytes:B=read over the cut|price:s=of the cut|line:s=by the line";
    bz_sheet *s = bz_sheet_new(arena, "joints", "Joints, and what cutting them adds", COLUMNS);
    for (int i = 0; i < r->b->n_joints; i++) {
        const bz_brick_joint *j = &r->b->joint[i];
        const bz_brick *brick = r->b->brick;
        BZ_SHEET_ADD(s, BZ_TEXT(id_of(&brick[j->first], arena)), BZ_TEXT(id_of(&brick[j->second], arena)),
                     BZ_TEXT(id_of(&brick[j->both], arena)), BZ_NUMBER(j->bytes),
                     BZ_NUMBER(bz_bricks_price_joint(r->b, j)),
                     BZ_NUMBER(r->rules->cuts.each + r->rules->cuts.byte * j->bytes));
    }
    return s;
}

/* Each model's sequences, one behind another. */
static const bz_sheet *order(const bz_bricks *b, bz_arena *arena)
{
    static const char COLUMNS[] = "model|at:n=from layer|layers:n|id";
    bz_sheet *s = bz_sheet_new(arena, "order", "Which sequences a model consists of", COLUMNS);
    for (int m = 0; m < b->n_models; m++)
        for (int i = 0; i < b->model[m].n; i++) {
            const bz_brick *k = &b->brick[b->model[m].brick[i]];
            BZ_SHEET_ADD(s, BZ_TEXT(b->model[m].name), BZ_NUMBER(b->model[m].at[i]), BZ_NUMBER(k->n),
                         BZ_TEXT(id_of(k, arena)));
        }
    return s;
}

enum { TOP = 12 };

void bz_report_bricks_text(const bz_bricks_report *r, bz_buf *out)
{
    const bz_bricks *b = r->b;
    BZ_SCOPED(bz_arena) arena = {0};
    int refused = 0;
    for (int i = 0; i < b->n; i++)
        refused += r->why[i] != NULL;
    answer(r, out);
    if (r->advice) {
        bz_sheet_text(r->advice, r->advice->n, out);
        return;
    }
    bz_sheet_text(models(r, &arena), b->n_models, out);
    bz_buf_putc(out, '\n');
    bz_sheet_text(bricks(r, &arena), TOP, out);
    if (b->n_models > 1 && b->n_models <= TOP) {
        bz_buf_putc(out, '\n');
        bz_sheet_text(pairs(b, &arena), TOP, out);
    }
    if (refused)
        bz_buf_printf(out, "\n%d unique sequence%s cannot be written or measured: --json says why.\n", refused,
                      BZ_PLURAL(refused));
}

void bz_report_bricks_json(const bz_bricks_report *r, bz_buf *out)
{
    const bz_bricks *b = r->b;
    const totals t = totals_of(b);
    BZ_SCOPED(bz_arena) arena = {0};
    bz_json j = bz_json_document_to(out, -1, "bricks", 1);
    BZ_JSON(&j, BZ_TELL("most", b->most), BZ_TELL("layers", t.layers), BZ_TELL("sequences", t.sequences),
            BZ_TELL("unique", t.unique), BZ_TELL("cost", bz_bricks_cost(b)), BZ_TELL("whole", t.whole));
    bz_json_key_array(&j, "sheets");
    bz_sheet_json(models(r, &arena), &j);
    bz_sheet_json(bricks(r, &arena), &j);
    bz_sheet_json(pairs(b, &arena), &j);
    bz_sheet_json(order(b, &arena), &j);
    if (b->n_joints)
        bz_sheet_json(joints(r, &arena), &j);
    if (r->advice)
        bz_sheet_json(r->advice, &j);
    bz_json_array_end(&j);
    bz_json_document_end(&j);
}
