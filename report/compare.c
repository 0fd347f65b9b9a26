/* Comparisons: for people, as JSON, as CSV. */
#include "compare/rows.h"

#include <math.h>

static void put_counts(const bz_compare *c, bz_buf *out)
{
    bz_buf_printf(out, "  both know %d:", c->n);
    for (int v = 0; v < BZ_VERDICTS; v++)
        bz_buf_printf(out, "%s %d %s", v ? "," : "", c->count[v], bz_verdict_name((bz_verdict)v));
    bz_buf_printf(out, "; %d only in the first, %d only in the second", c->only_a, c->only_b);
    if (c->neither)
        bz_buf_printf(out, ", %d in neither", c->neither);
    bz_buf_putc(out, '\n');
    if (c->guessed)
        bz_buf_printf(out, "  %d have records without an interval: 2.5 %% to either side are assumed\n", c->guessed);
}

static void put_answer(const bz_compare *c, bz_buf *out)
{
    bz_unit_text a, b;
    bz_buf_clean(out, c->name_b);
    if (!c->n) {
        bz_buf_puts(out, " and ");
        bz_buf_clean(out, c->name_a);
        bz_buf_puts(out, " know nothing in common\n");
    } else {
        bool slower = c->total_b > c->total_a;
        bz_buf_printf(out, " takes %s for what both know, where ", bz_units_time(b, c->total_b));
        bz_buf_clean(out, c->name_a);
        bz_buf_printf(out, " takes %s: ", bz_units_time(a, c->total_a));
        if (c->total_b == c->total_a)
            bz_buf_puts(out, "the same\n");
        else
            bz_buf_printf(out, "%.2f times %s\n", slower ? c->total_b / c->total_a : c->total_a / c->total_b,
                          slower ? "slower" : "faster");
    }
    put_counts(c, out);
}

void bz_compare_rows_text(const bz_compare *c, int rows, bz_buf *out)
{
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_columns(t, "verdict|>times|>first|>second|>ratio|variants|what");
    for (int i = 0; i < c->n && i < rows; i++) {
        const bz_compare_row *r = &c->row[i];
        bz_unit_text a, b;
        bz_table_cell(t, bz_verdict_name(r->verdict), NULL);
        bz_table_style(t, r->verdict == BZ_FASTER   ? BZ_STYLE_GOOD
                          : r->verdict == BZ_SLOWER ? BZ_STYLE_BAD
                                                    : BZ_STYLE_NONE);
        bz_table_cell(t, bz_arena_printf(&arena, "%g", r->times), NULL);
        bz_table_cell(t, bz_units_time(a, r->a.seconds), NULL);
        bz_table_cell(t, bz_units_time(b, r->b.seconds), NULL);
        bz_table_cell(t, bz_arena_printf(&arena, "%.3f", r->b.seconds / r->a.seconds), NULL);
        bz_table_cell(
            t, *r->variant_a || *r->variant_b ? bz_arena_printf(&arena, "%s -> %s", r->variant_a, r->variant_b) : "",
            NULL);
        bz_table_cell(
            t, bz_arena_printf(&arena, "%s%s%s", r->what, r->setting ? "; " : "", r->setting ? r->setting : ""), NULL);
    }
    if (bz_table_rows(t)) {
        bz_buf_putc(out, '\n');
        bz_table_print(t, out);
    }
    if (c->n > rows)
        bz_buf_printf(out, "and %d more, which differ by less: --top %d\n", c->n - rows, c->n);
    bz_arena_free(&arena);
}

void bz_report_compare_text(const bz_compare *c, int rows, bz_buf *out)
{
    put_answer(c, out);
    bz_compare_rows_text(c, rows, out);
}

void bz_compare_row_json(const bz_compare_row *r, bz_json *j)
{
    bz_json_object(j);
    bz_json_key_str(j, "what", r->what);
    bz_json_key_str(j, "setting", r->setting);
    bz_json_key_num(j, "times", r->times);
    bz_json_key_str(j, "verdict", bz_verdict_name(r->verdict));
    bz_span_json(&r->a, "first", r->variant_a, j);
    bz_span_json(&r->b, "second", r->variant_b, j);
    bz_json_object_end(j);
}

void bz_report_compare_json(const bz_compare *c, bz_buf *out)
{
    bz_json j = bz_json_to(out, true);
    j.flat = 3;
    bz_json_document(&j, "comparison", 1);
    bz_json_key_str(&j, "first", c->name_a);
    bz_json_key_str(&j, "second", c->name_b);
    bz_json_key_num(&j, "total_first", c->total_a);
    bz_json_key_num(&j, "total_second", c->total_b);
    bz_json_key_int(&j, "only_first", c->only_a);
    bz_json_key_int(&j, "only_second", c->only_b);
    bz_json_key_int(&j, "neither", c->neither);
    bz_json_key_object(&j, "verdicts");
    for (int v = 0; v < BZ_VERDICTS; v++)
        bz_json_key_int(&j, bz_verdict_name((bz_verdict)v), c->count[v]);
    bz_json_object_end(&j);
    bz_json_key_array(&j, "rows");
    for (int i = 0; i < c->n; i++)
        bz_compare_row_json(&c->row[i], &j);
    bz_json_array_end(&j);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
}

void bz_report_compare_csv(const bz_compare *c, bz_buf *out)
{
    bz_arena arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_columns(t, "verdict|times|first|first_low|first_high|second|second_low|second_high|first_variant|second_"
                        "variant|setting|what");
    for (int i = 0; i < c->n; i++) {
        const bz_compare_row *r = &c->row[i];
        const double v[] = {r->times, r->a.seconds, r->a.low, r->a.high, r->b.seconds, r->b.low, r->b.high};
        bz_table_cell(t, bz_verdict_name(r->verdict), NULL);
        for (size_t k = 0; k < sizeof v / sizeof *v; k++)
            bz_table_cell(t, bz_arena_printf(&arena, "%.9g", v[k]), NULL);
        bz_table_cell(t, r->variant_a, NULL);
        bz_table_cell(t, r->variant_b, NULL);
        bz_table_cell(t, r->setting ? r->setting : "", NULL);
        bz_table_cell(t, r->what, NULL);
    }
    bz_table_csv(t, out);
    bz_arena_free(&arena);
}
