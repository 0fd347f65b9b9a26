/* All tables of a recording that may lie: whatever they say, shares are shares, and idle and busy time are all the time. */
#include "profile/reader.h"
#include "tables/tables.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double cell(const bz_sheet *s, int row, const char *key)
{
    int k = 0;
    while (strcmp(s->column[k].key, key) != 0)
        k++;
    return s->cell[(size_t)row * (size_t)s->n_columns + (size_t)k].number;
}

static void look_at(const bz_sheet *s)
{
    bz_buf text = {0};
    bz_sheet_csv(s, &text);
    SAW(text.data, text.len);
    bz_buf_free(&text);
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->n_columns; k++) {
            double v = s->cell[(size_t)i * (size_t)s->n_columns + (size_t)k].number;
            bool deviation = !strcmp(s->column[k].key, "variation") || !strcmp(s->column[k].key, "found");
            PROMISE(s->column[k].type != BZ_SHEET_SHARE || isnan(v) || (v >= -1e-9 && (deviation || v <= 1 + 1e-9)));
        }
    for (int i = 0; i < s->n && !strcmp(s->id, "temporal"); i++)
        PROMISE(fabs(cell(s, i, "span") - cell(s, i, "busy") - cell(s, i, "idle")) <= 1e-12 * cell(s, i, "span"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const RANGES[] = {NULL, "step", "a:1"};
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint8_t choice = size ? data[0] : 0;
    bz_stream *in = bz_stream_memory((const char *)data + !!size, size - !!size);
    bz_arena arena = {0};
    if (!bz_profile_read_stream(t, in, &bz_reader_chrome, &err) && !bz_trace_finish(t, NULL, &err)) {
        bz_tables *m = bz_tables_new(t, RANGES[choice % 3], choice & 4 ? t : NULL, &arena, &err);
        m = m ? m : bz_tables_new(t, NULL, choice & 4 ? t : NULL, &arena, &err); /* it has no such range */
        for (int i = 0; m && i < bz_n_tables; i++)
            look_at(bz_tables_fill(m, &bz_table_list[i]));
    }
    bz_stream_close(in);
    bz_trace_free(t);
    bz_arena_free(&arena);
    return 0;
}
