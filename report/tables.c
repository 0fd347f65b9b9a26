/* The tables of a recording: an overview or one of them, as text, JSON and CSV. */
#include "base/member.h"
#include "report/parts.h"

static void put_head(const bz_sheet *s, const bz_table_kind *kind, bz_buf *out)
{
    bz_buf_printf(out, "%s (%s)\n", s->title, kind->name);
}

void bz_report_tables_text(bz_tables *m, const bz_table_kind *kind, int top, bz_buf *out)
{
    const bz_sheet *s = bz_tables_fill(m, kind);
    put_head(s, kind, out);
    bz_buf_printf(out, "%s\n\n", kind->tells);
    if (s->n)
        bz_sheet_text(s, top, out);
    else
        bz_buf_puts(out, "The recording has nothing of that.\n");
}

void bz_report_tables_overview(bz_tables *m, int top, bz_buf *out)
{
    BZ_SCOPED(bz_buf) others = {0}, empty = {0};
    for (int i = 0; i < bz_n_tables; i++) {
        const bz_table_kind *kind = &bz_table_list[i];
        const bz_sheet *s = bz_tables_fill(m, kind);
        if (s->n && kind->telling) {
            put_head(s, kind, out);
            bz_sheet_text(s, top, out);
            bz_buf_putc(out, '\n');
        } else {
            bz_buf *list = s->n ? &others : &empty;
            bz_buf_printf(list, "%s%s", list->len ? ", " : "", kind->name);
        }
    }
    if (others.len)
        bz_buf_printf(out, "More tables: %s\n", bz_buf_text(&others));
    if (empty.len)
        bz_buf_printf(out, "Of these the recording has nothing: %s\n", bz_buf_text(&empty));
}

void bz_report_tables_names(bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "table|what it tells|as");
    for (int i = 0; i < bz_n_tables; i++)
        BZ_ROW(t, BZ_SHOW(bz_table_list[i].name), BZ_SHOW(bz_table_list[i].title),
               BZ_SHOW(bz_table_list[i].like ? bz_table_list[i].like : ""));
    bz_table_print(t, out);
}

void bz_report_tables_names_json(bz_buf *out)
{
    bz_json j = bz_json_document_to(out, 0, "tables", 1);
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_sheet_column *column;
    BZ_JSON_EACH (&j, "kinds", i, bz_n_tables) {
        const bz_table_kind *kind = &bz_table_list[i];
        bz_json_key_str(&j, "id", kind->name);
        BZ_PUT(&j, bz_table_kind, kind, title, tells, like);
        int n = bz_sheet_columns(kind->columns, &arena, &column);
        BZ_JSON_LIST(&j, "columns", str, k, n, column[k].key);
    }
    bz_json_document_end(&j);
}

/* `most`: rows of a table; 0: all. */
static void put_tables(bz_tables *m, const bz_table_kind *kind, const char *file, int most, bz_json *j)
{
    bz_json_document(j, "tables", 1);
    bz_json_key_str(j, "file", file);
    BZ_JSON_EACH_VALUE (j, "tables", i, bz_n_tables) {
        if (kind && kind != &bz_table_list[i])
            continue;
        bz_sheet s = *bz_tables_fill(m, &bz_table_list[i]);
        if (!s.n && !kind)
            continue;
        if (most && s.n > most) {
            s.note = bz_arena_printf(s.arena, "%s%sThe first %d of %d rows: benanza profile tables --table %s has all.",
                                     s.note ? s.note : "", s.note ? " " : "", most, s.n, s.id);
            s.n = most;
        }
        bz_sheet_json(&s, j);
    }
    bz_json_object_end(j);
}

void bz_report_tables_json(bz_tables *m, const bz_table_kind *kind, const char *file, bz_buf *out)
{
    bz_json j = bz_json_to(out, true);
    put_tables(m, kind, file, 0, &j);
    bz_buf_putc(out, '\n');
}

void report_tables_page(bz_tables *m, const char *file, bz_json *j)
{
    enum { MOST = 200 };
    put_tables(m, NULL, file, MOST, j);
}

void bz_report_tables_csv(bz_tables *m, const bz_table_kind *kind, bz_buf *out)
{
    bz_sheet_csv(bz_tables_fill(m, kind), out);
}
