/* Two profiles or two reports: for people, as JSON, as CSV. */
#include "compare/rows.h"

#include <math.h>

static void put_answer(const bz_compare_set *s, bz_buf *out)
{
    const bz_compare_row *r = bz_compare_answer(s);
    bz_buf_clean(out, s->name_b);
    if (!r) {
        bz_buf_puts(out, " and ");
        bz_buf_clean(out, s->name_a);
        bz_buf_puts(out, " have no time in common\n");
        return;
    }
    bz_unit_text a, b;
    double ratio = r->b.seconds / r->a.seconds;
    bz_buf_printf(out, ": %s %s where ", r->what, bz_units_time(b, r->b.seconds));
    bz_buf_clean(out, s->name_a);
    bz_buf_printf(out, " has %s: %s", bz_units_time(a, r->a.seconds), bz_verdict_name(r->verdict));
    if (r->verdict == BZ_FASTER || r->verdict == BZ_SLOWER)
        bz_buf_printf(out, ", %.2f times %s", ratio > 1 ? ratio : 1 / ratio, ratio > 1 ? "slower" : "faster");
    bz_buf_putc(out, '\n');
}

static void put_differences(const bz_compare_set *s, bz_buf *out)
{
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_columns(t, "what changed|first|second");
    for (int i = 0; i < s->n_differences; i++) {
        bz_table_cell(t, s->difference[i].what, NULL);
        bz_table_cell(t, s->difference[i].a ? s->difference[i].a : "-", NULL);
        bz_table_cell(t, s->difference[i].b ? s->difference[i].b : "-", NULL);
    }
    if (s->n_differences) {
        bz_buf_putc(out, '\n');
        bz_table_print(t, out);
    }
    bz_arena_free(&arena);
}

/* What came and what went. */
static void put_only(const bz_compare_part *p, int which, int rows, bz_buf *out)
{
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_column(t, which ? "only in the second" : "only in the first", BZ_LEFT);
    bz_table_columns(t, ">times|>time|variant");
    for (int i = 0; i < p->n_only[which] && i < rows; i++) {
        const bz_compare_row *r = &p->only[which][i];
        const bz_span *s = which ? &r->b : &r->a;
        bz_unit_text time;
        bz_table_cell(t, r->what, NULL);
        bz_table_cell(t, bz_arena_printf(&arena, "%.4g", r->times), NULL);
        bz_table_cell(t, isfinite(s->seconds) ? bz_units_time(time, s->seconds) : "-", NULL);
        bz_table_cell(t, which ? r->variant_b : r->variant_a, NULL);
    }
    if (bz_table_rows(t)) {
        bz_buf_putc(out, '\n');
        bz_table_print(t, out);
    }
    if (p->n_only[which] > rows)
        bz_buf_printf(out, "and %d more: --top %d\n", p->n_only[which] - rows, p->n_only[which]);
    bz_arena_free(&arena);
}

void bz_report_set_text(const bz_compare_set *s, int rows, bz_buf *out)
{
    put_answer(s, out);
    put_differences(s, out);
    for (int i = 0; i < s->n_parts; i++) {
        const bz_compare *c = &s->part[i].compare;
        bz_buf_printf(out, "\n%s: ", s->part[i].what);
        for (int v = 0; v < BZ_VERDICTS; v++)
            bz_buf_printf(out, "%s%d %s", v ? ", " : "", c->count[v], bz_verdict_name((bz_verdict)v));
        if (c->only_a || c->only_b)
            bz_buf_printf(out, "; %d only in the first, %d only in the second", c->only_a, c->only_b);
        if (c->neither)
            bz_buf_printf(out, "; %d without times", c->neither);
        if (c->guessed)
            bz_buf_printf(out, "; %d without an interval", c->guessed);
        bz_buf_putc(out, '\n');
        bz_compare_rows_text(c, rows, out);
        put_only(&s->part[i], 0, rows, out);
        put_only(&s->part[i], 1, rows, out);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_rows(const char *key, const bz_compare_row *row, int n, bz_json *j)
{
    bz_json_key_array(j, key);
    for (int i = 0; i < n; i++)
        bz_compare_row_json(&row[i], j);
    bz_json_array_end(j);
}

/* Layers that only one side has. */
static void put_single(const char *key, const bz_compare_part *p, int which, bz_json *j)
{
    bz_json_key_array(j, key);
    for (int i = 0; i < p->n_only[which]; i++) {
        const bz_compare_row *r = &p->only[which][i];
        bz_json_object(j);
        bz_json_key_str(j, "what", r->what);
        bz_json_key_num(j, "times", r->times);
        bz_json_key_num(j, "seconds", which ? r->b.seconds : r->a.seconds);
        bz_json_key_str(j, "variant", which ? r->variant_b : r->variant_a);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

void bz_report_set_json(const bz_compare_set *s, bz_buf *out)
{
    bz_json j = bz_json_to(out, true);
    j.flat = 5;
    bz_json_document(&j, "comparison", 1);
    bz_json_key_str(&j, "of", s->kind);
    bz_json_key_str(&j, "first", s->name_a);
    bz_json_key_str(&j, "second", s->name_b);
    bz_json_key_array(&j, "changed");
    for (int i = 0; i < s->n_differences; i++) {
        bz_json_object(&j);
        bz_json_key_str(&j, "what", s->difference[i].what);
        bz_json_key_str(&j, "first", s->difference[i].a);
        bz_json_key_str(&j, "second", s->difference[i].b);
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_json_key_array(&j, "parts");
    for (int i = 0; i < s->n_parts; i++) {
        const bz_compare *c = &s->part[i].compare;
        bz_json_object(&j);
        bz_json_key_str(&j, "what", s->part[i].what);
        bz_json_key_num(&j, "total_first", c->total_a);
        bz_json_key_num(&j, "total_second", c->total_b);
        bz_json_key_int(&j, "neither", c->neither);
        for (int v = 0; v < BZ_VERDICTS; v++)
            bz_json_key_int(&j, bz_verdict_name((bz_verdict)v), c->count[v]);
        put_rows("rows", c->row, c->n, &j);
        put_single("only_first", &s->part[i], 0, &j);
        put_single("only_second", &s->part[i], 1, &j);
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
}

/* ---- CSV ------------------------------------------------------------------------------------ */

static void csv_row(bz_table *t, bz_arena *arena, const char *part, const char *verdict, const bz_compare_row *r)
{
    const double v[] = {r->times, r->a.seconds, r->a.low, r->a.high, r->b.seconds, r->b.low, r->b.high};
    bz_table_cell(t, part, NULL);
    bz_table_cell(t, verdict, NULL);
    for (size_t k = 0; k < sizeof v / sizeof *v; k++)
        bz_table_cell(t, v[k] > 0 && isfinite(v[k]) ? bz_arena_printf(arena, "%.9g", v[k]) : "", NULL);
    bz_table_cell(t, r->variant_a, NULL);
    bz_table_cell(t, r->variant_b, NULL);
    bz_table_cell(t, r->setting ? r->setting : "", NULL);
    bz_table_cell(t, r->what, NULL);
}

void bz_report_set_csv(const bz_compare_set *s, bz_buf *out)
{
    static const char *const ONLY[] = {"ONLY FIRST", "ONLY SECOND"};
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_columns(t, "part|verdict|times|first|first_low|first_high|second|second_low|second_high|first_variant|"
                        "second_variant|setting|what");
    for (int i = 0; i < s->n_parts; i++) {
        const bz_compare_part *p = &s->part[i];
        for (int k = 0; k < p->compare.n; k++)
            csv_row(t, &arena, p->what, bz_verdict_name(p->compare.row[k].verdict), &p->compare.row[k]);
        for (int w = 0; w < 2; w++)
            for (int k = 0; k < p->n_only[w]; k++)
                csv_row(t, &arena, p->what, ONLY[w], &p->only[w][k]);
    }
    bz_table_csv(t, out);
    bz_arena_free(&arena);
}
