#include "base/sheet.h"
#include "base/member.h"
#include "base/table.h"
#include "base/units.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const TYPES[] = {"text", "text", "count", "seconds", "bytes", "bytes_per_second", "share", "large"};

/* As bz_sheet_type. */
static const char *const UNITS[] = {"", "-", "n", "s", "B", "B/s", "%", "M"};
enum { N_UNITS = sizeof UNITS / sizeof *UNITS };

static bz_sheet_type type_of(const char *unit, size_t n)
{
    int type = 0;
    while (type < N_UNITS && (strlen(UNITS[type]) != n || strncmp(UNITS[type], unit, n) != 0))
        type++;
    assert(type < N_UNITS);
    return (bz_sheet_type)type;
}

int bz_sheet_columns(const char *columns, bz_arena *arena, const bz_sheet_column **out)
{
    bz_sheet_column *list = NULL;
    int n = 0;
    for (const char *at = columns; *at; n++) {
        size_t key = strcspn(at, ":=|"), type = key + (at[key] == ':'), unit = strcspn(at + type, "=|");
        const char *name = bz_arena_strn(arena, at, key), *title = name, *behind = at + type + unit;
        BZ_ARENA_ROOM(arena, list, n);
        if (*behind == '=')
            title = bz_arena_strn(arena, behind + 1, strcspn(behind + 1, "|"));
        list[n] = (bz_sheet_column){name, title, type_of(at + type, unit)};
        at = behind + strcspn(behind, "|");
        at += *at == '|';
    }
    *out = list;
    return n;
}

bz_sheet *bz_sheet_new(bz_arena *arena, const char *id, const char *title, const char *columns)
{
    bz_sheet *s = BZ_NEW(arena, bz_sheet, 1);
    *s = (bz_sheet){.id = id, .title = title, .arena = arena};
    s->n_columns = bz_sheet_columns(columns, arena, &s->column);
    return s;
}

static bool is_text(const bz_sheet *s, int column)
{
    return s->column[column].type == BZ_SHEET_TEXT || s->column[column].type == BZ_SHEET_DETAIL;
}

bz_sheet_cell *bz_sheet_row(bz_sheet *s)
{
    size_t width = (size_t)s->n_columns;
    if (s->n == s->cap) {
        int cap = s->cap ? 2 * s->cap : 16;
        s->cell = bz_arena_grow(s->arena, s->cell, (size_t)s->cap * width, (size_t)cap * width, sizeof *s->cell);
        s->cap = cap;
    }
    bz_sheet_cell *row = &s->cell[(size_t)s->n++ * width];
    for (int k = 0; k < s->n_columns; k++)
        if (is_text(s, k))
            row[k].text = NULL;
        else
            row[k].number = NAN;
    return row;
}

void bz_sheet_add(bz_sheet *s, const bz_sheet_cell *cell, size_t n)
{
    assert(n == (size_t)s->n_columns);
    memcpy(bz_sheet_row(s), cell, n * sizeof *cell);
}

typedef struct {
    const bz_sheet *sheet;
    int column;
} order;

static int by_column(const void *a, const void *b, void *context)
{
    const order *o = context;
    int i = *(const int *)a, j = *(const int *)b, c;
    const bz_sheet_cell *x = &o->sheet->cell[(size_t)i * (size_t)o->sheet->n_columns + (size_t)o->column],
                        *y = &o->sheet->cell[(size_t)j * (size_t)o->sheet->n_columns + (size_t)o->column];
    if (is_text(o->sheet, o->column))
        c = strcmp(x->text ? x->text : "", y->text ? y->text : "");
    else if (isnan(x->number) || isnan(y->number))
        c = isnan(x->number) - isnan(y->number);
    else
        c = (x->number < y->number) - (x->number > y->number);
    return c ? c : i - j;
}

void bz_sheet_sort(bz_sheet *s, int column)
{
    if (s->n < 2)
        return;
    size_t width = (size_t)s->n_columns * sizeof *s->cell;
    BZ_FREED int *at = bz_alloc((size_t)s->n, sizeof *at);
    BZ_FREED bz_sheet_cell *old = bz_alloc((size_t)s->n, width);
    for (int i = 0; i < s->n; i++)
        at[i] = i;
    qsort_r(at, (size_t)s->n, sizeof *at, by_column, &(order){s, column});
    memcpy(old, s->cell, (size_t)s->n * width);
    for (int i = 0; i < s->n; i++)
        memcpy(&s->cell[(size_t)i * (size_t)s->n_columns], &old[(size_t)at[i] * (size_t)s->n_columns], width);
}

/* For people. */
static const char *number_text(bz_sheet_type type, double v, bz_unit_text out)
{
    if (!isfinite(v))
        return "-";
    switch (type) {
    case BZ_SHEET_SECONDS:
        return bz_units_time(out, v);
    case BZ_SHEET_BYTES:
        return bz_units_bytes(out, v);
    case BZ_SHEET_SHARE:
        return bz_units_percent(out, v);
    case BZ_SHEET_LARGE:
        return bz_units_count(out, v);
    case BZ_SHEET_RATE:
        bz_units_bytes(out, v);
        snprintf(out + strlen(out), sizeof(bz_unit_text) - strlen(out), "/s");
        return out;
    default:
        snprintf(out, sizeof(bz_unit_text), v == floor(v) || fabs(v) >= 1e5 ? "%.0f" : "%.1f", v);
        return out;
    }
}

void bz_sheet_text(const bz_sheet *s, int top, bz_buf *out)
{
    bz_table *table = bz_table_new(s->arena);
    for (int k = 0; k < s->n_columns; k++)
        if (s->column[k].type != BZ_SHEET_DETAIL)
            bz_table_column(table, s->column[k].title, s->column[k].type == BZ_SHEET_TEXT ? BZ_LEFT : BZ_RIGHT);
    for (int i = 0; i < s->n && i < top; i++)
        for (int k = 0; k < s->n_columns; k++) {
            const bz_sheet_cell *c = &s->cell[(size_t)i * (size_t)s->n_columns + (size_t)k];
            bz_unit_text text;
            if (s->column[k].type == BZ_SHEET_TEXT)
                bz_table_cell(table, c->text ? c->text : "-", NULL);
            else if (s->column[k].type != BZ_SHEET_DETAIL)
                bz_table_cell(table, number_text(s->column[k].type, c->number, text), NULL);
        }
    bz_table_print(table, out);
    if (s->n > top)
        bz_buf_printf(out, "… and %d more\n", s->n - top);
    if (s->note)
        bz_buf_printf(out, "%s\n", s->note);
}

void bz_sheet_csv(const bz_sheet *s, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *table = bz_table_new(&arena);
    BZ_SCOPED(bz_buf) number = {0};
    for (int k = 0; k < s->n_columns; k++)
        bz_table_column(table, s->column[k].key, BZ_LEFT);
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->n_columns; k++) {
            const bz_sheet_cell *c = &s->cell[(size_t)i * (size_t)s->n_columns + (size_t)k];
            bz_json j = bz_json_to(&number, false);
            bz_buf_clear(&number);
            if (!is_text(s, k) && isfinite(c->number))
                bz_json_num(&j, c->number);
            bz_table_cell(table, "", is_text(s, k) ? c->text ? c->text : "" : bz_buf_text(&number));
        }
    bz_table_csv(table, out);
}

static void put_columns(const bz_sheet *s, bz_json *j)
{
    bz_json_key(j, "columns");
    bz_json_array(j);
    for (int k = 0; k < s->n_columns; k++) {
        bz_json_object(j);
        BZ_JSON(j, BZ_TELL("key", s->column[k].key), BZ_TELL("title", s->column[k].title),
                BZ_TELL("type", TYPES[s->column[k].type]));
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

void bz_sheet_json(const bz_sheet *s, bz_json *j)
{
    bz_json_object(j);
    BZ_JSON(j, BZ_TELL("id", s->id), BZ_TELL("title", s->title), BZ_TELL("note", s->note));
    put_columns(s, j);
    bz_json_key(j, "rows");
    bz_json_array(j);
    for (int i = 0; i < s->n; i++) {
        bz_json_object(j);
        for (int k = 0; k < s->n_columns; k++) {
            const bz_sheet_cell *c = &s->cell[(size_t)i * (size_t)s->n_columns + (size_t)k];
            if (is_text(s, k))
                bz_json_key_str(j, s->column[k].key, c->text);
            else
                bz_json_key_num(j, s->column[k].key, c->number);
        }
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}
