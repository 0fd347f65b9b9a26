/* Comparisons, of two systems or of two files: for people, as JSON, as CSV. */
#include "base/member.h"
#include "report/report.h"

#include <string.h>

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
    bz_buf_clean(out, c->name_b);
    if (!c->n) {
        bz_buf_say(out, " and %s know nothing in common\n", c->name_a);
    } else {
        bool slower = c->total_b > c->total_a;
        bz_buf_say(out, " takes %s for what both know, where %s takes %s: ", BZ_SAY_TIME(c->total_b), c->name_a,
                   BZ_SAY_TIME(c->total_a));
        if (c->total_b == c->total_a)
            bz_buf_puts(out, "the same\n");
        else
            bz_buf_printf(out, "%.2f times %s\n", slower ? c->total_b / c->total_a : c->total_a / c->total_b,
                          slower ? "slower" : "faster");
    }
    put_counts(c, out);
}

static void put_rows(const bz_compare *c, int rows, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "verdict|>times|>first|>second|>ratio|variants|what");
    for (int i = 0; i < c->n && i < rows; i++) {
        const bz_compare_row *r = &c->row[i];
        bz_table_cell(t, bz_verdict_name(r->verdict), NULL);
        bz_table_style(t, r->verdict == BZ_FASTER   ? BZ_STYLE_GOOD
                          : r->verdict == BZ_SLOWER ? BZ_STYLE_BAD
                                                    : BZ_STYLE_NONE);
        BZ_ROW(
            t, BZ_SHOW_DIGITS(6, r->times), BZ_SHOW_TIME(r->a.seconds), BZ_SHOW_TIME(r->b.seconds),
            BZ_SHOW_FIXED(3, r->b.seconds / r->a.seconds),
            BZ_SHOW(*r->variant_a || *r->variant_b ? bz_arena_printf(&arena, "%s -> %s", r->variant_a, r->variant_b)
                                                   : ""),
            BZ_SHOW(bz_arena_printf(&arena, "%s%s%s", r->what, r->setting ? "; " : "", r->setting ? r->setting : "")));
    }
    bz_table_below(t, out);
    if (c->n > rows)
        bz_buf_printf(out, "and %d more, which differ by less: --top %d\n", c->n - rows, c->n);
}

static void put_set_answer(const bz_compare_set *s, bz_buf *out)
{
    const bz_compare_row *r = bz_compare_answer(s);
    bz_buf_clean(out, s->name_b);
    if (!r) {
        bz_buf_say(out, " and %s have no time in common\n", s->name_a);
        return;
    }
    double ratio = r->b.seconds / r->a.seconds;
    bz_buf_say(out, ": %s %s where %s has %s: %s", r->what, BZ_SAY_TIME(r->b.seconds), s->name_a,
               BZ_SAY_TIME(r->a.seconds), bz_verdict_name(r->verdict));
    if (r->verdict == BZ_FASTER || r->verdict == BZ_SLOWER)
        bz_buf_printf(out, ", %.2f times %s", ratio > 1 ? ratio : 1 / ratio, ratio > 1 ? "slower" : "faster");
    bz_buf_putc(out, '\n');
}

static void put_differences(const bz_compare_set *s, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "what changed|first|second");
    for (int i = 0; i < s->n_differences; i++)
        BZ_ROW(t, BZ_SHOW(s->difference[i].what), BZ_SHOW(s->difference[i].a), BZ_SHOW(s->difference[i].b));
    bz_table_below(t, out);
}

/* What came and what went. */
static void put_only(const bz_compare_part *p, int which, int rows, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_table_column(t, which ? "only in the second" : "only in the first", BZ_LEFT);
    bz_table_columns(t, ">times|>time|variant");
    for (int i = 0; i < p->n_only[which] && i < rows; i++) {
        const bz_compare_row *r = &p->only[which][i];
        const bz_span *s = which ? &r->b : &r->a;
        BZ_ROW(t, BZ_SHOW(r->what), BZ_SHOW_DIGITS(4, r->times), BZ_SHOW_TIME(s->seconds),
               BZ_SHOW(which ? r->variant_b : r->variant_a));
    }
    bz_table_below(t, out);
    if (p->n_only[which] > rows)
        bz_buf_printf(out, "and %d more: --top %d\n", p->n_only[which] - rows, p->n_only[which]);
}

static void set_text(const bz_compare_set *s, int rows, bz_buf *out)
{
    put_set_answer(s, out);
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
        put_rows(c, rows, out);
        put_only(&s->part[i], 0, rows, out);
        put_only(&s->part[i], 1, rows, out);
    }
}

static const char *verdict_of(const void *row)
{
    return bz_verdict_name(((const bz_compare_row *)row)->verdict);
}

static const bz_member FIRST[] = {BZ_SPAN_MEMBERS(bz_compare_row, a, variant_a)};
static const bz_member SECOND[] = {BZ_SPAN_MEMBERS(bz_compare_row, b, variant_b)};
static const bz_member ROW[] = {
    BZ_FIELDS(bz_compare_row, what, setting, times),
    BZ_MEMBER_MADE("verdict", verdict_of),
    BZ_MEMBER_WHOLE("first", FIRST),
    BZ_MEMBER_WHOLE("second", SECOND),
};
static const char COLUMNS[] = "verdict|times|first=first.seconds|first_low=first.low|first_high=first.high|"
                              "second=second.seconds|second_low=second.low|second_high=second.high|"
                              "first_variant=first.variant|second_variant=second.variant|setting|what";

static const bz_member COMPARISON[] = {
    BZ_MEMBER_AS(bz_compare, name_a, "first"),
    BZ_MEMBER_AS(bz_compare, name_b, "second"),
    BZ_MEMBER_AS(bz_compare, total_a, "total_first"),
    BZ_MEMBER_AS(bz_compare, total_b, "total_second"),
    BZ_MEMBER_AS(bz_compare, only_a, "only_first"),
    BZ_MEMBER_AS(bz_compare, only_b, "only_second"),
    BZ_MEMBER(bz_compare, neither),
};
static const bz_member ROWS[] = {BZ_MEMBER_EACH(bz_compare, row, n, "rows", ROW)};

static void put_verdicts(const bz_compare *c, bz_json *j)
{
    for (int v = 0; v < BZ_VERDICTS; v++)
        bz_json_key_int(j, bz_verdict_name((bz_verdict)v), c->count[v]);
}

static void compare_json(const bz_compare *c, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, 3, "comparison", 1);
    bz_members_json(BZ_MEMBERS(COMPARISON), c, &j);
    bz_json_key_object(&j, "verdicts");
    put_verdicts(c, &j);
    bz_json_object_end(&j);
    bz_members_json(BZ_MEMBERS(ROWS), c, &j);
    bz_json_document_end(&j);
}

static void compare_csv(const bz_compare *c, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_new(&arena);
    bz_members_columns(COLUMNS, t);
    for (int i = 0; i < c->n; i++)
        bz_members_cells(BZ_MEMBERS(ROW), &c->row[i], COLUMNS, t);
    bz_table_csv(t, out);
}

/* What one side has alone. */
static const bz_member ONLY[2][4] = {
    {BZ_FIELDS(bz_compare_row, what, times), BZ_MEMBER_AS(bz_compare_row, a.seconds, "seconds"),
     BZ_MEMBER_AS(bz_compare_row, variant_a, "variant")},
    {BZ_FIELDS(bz_compare_row, what, times), BZ_MEMBER_AS(bz_compare_row, b.seconds, "seconds"),
     BZ_MEMBER_AS(bz_compare_row, variant_b, "variant")}};

static const bz_member CHANGED[] = {
    BZ_MEMBER(bz_difference, what),
    BZ_MEMBER_AS(bz_difference, a, "first"),
    BZ_MEMBER_AS(bz_difference, b, "second"),
};
static const bz_member SET[] = {
    BZ_MEMBER_AS(bz_compare_set, kind, "of"),
    BZ_MEMBER_AS(bz_compare_set, name_a, "first"),
    BZ_MEMBER_AS(bz_compare_set, name_b, "second"),
    BZ_MEMBER_EACH(bz_compare_set, difference, n_differences, "changed", CHANGED),
};
static const bz_member PART[] = {
    BZ_MEMBER(bz_compare_part, what),
    BZ_MEMBER_AS(bz_compare_part, compare.total_a, "total_first"),
    BZ_MEMBER_AS(bz_compare_part, compare.total_b, "total_second"),
    BZ_MEMBER_AS(bz_compare_part, compare.neither, "neither"),
};

static void set_json(const bz_compare_set *s, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, 5, "comparison", 1);
    bz_members_json(BZ_MEMBERS(SET), s, &j);
    BZ_JSON_EACH (&j, "parts", i, s->n_parts) {
        const bz_compare_part *p = &s->part[i];
        bz_members_json(BZ_MEMBERS(PART), p, &j);
        put_verdicts(&p->compare, &j);
        bz_members_json(BZ_MEMBERS(ROWS), &p->compare, &j);
        for (int w = 0; w < 2; w++)
            bz_members_rows(w ? "only_second" : "only_first", BZ_MEMBERS(ONLY[w]), p->only[w], sizeof *p->only[w],
                            p->n_only[w], &j);
    }
    bz_json_document_end(&j);
}

static void set_csv(const bz_compare_set *s, bz_buf *out)
{
    /* The verdict of what one side has alone. */
    static const char *const ALONE[] = {"ONLY FIRST", "ONLY SECOND"};
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "part");
    bz_members_columns(COLUMNS, t);
    for (int i = 0; i < s->n_parts; i++) {
        const bz_compare_part *p = &s->part[i];
        for (int k = 0; k < p->compare.n; k++) {
            bz_table_cell(t, p->what, NULL);
            bz_members_cells(BZ_MEMBERS(ROW), &p->compare.row[k], COLUMNS, t);
        }
        for (int w = 0; w < 2; w++)
            for (int k = 0; k < p->n_only[w]; k++) {
                BZ_ROW(t, BZ_SHOW(p->what), BZ_SHOW(ALONE[w]));
                bz_members_cells(BZ_MEMBERS(ROW), &p->only[w][k], strchr(COLUMNS, '|') + 1, t);
            }
    }
    bz_table_csv(t, out);
}

void bz_report_compare(const bz_compare *c, int rows, bz_form form, bz_buf *out)
{
    if (form == BZ_FORM_TEXT) {
        put_answer(c, out);
        put_rows(c, rows, out);
    } else {
        (form == BZ_FORM_JSON ? compare_json : compare_csv)(c, out);
    }
}

void bz_report_set(const bz_compare_set *s, int rows, bz_form form, bz_buf *out)
{
    if (form == BZ_FORM_TEXT)
        set_text(s, rows, out);
    else
        (form == BZ_FORM_JSON ? set_json : set_csv)(s, out);
}
