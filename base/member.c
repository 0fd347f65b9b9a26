#include "base/member.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const void *at(const void *of, size_t offset)
{
    return (const char *)of + offset;
}

static void put_rows(const bz_member *m, int n, const void *row, size_t size, int rows, bz_json *j)
{
    bz_json_array(j);
    for (int i = 0; i < rows; i++) {
        bz_json_object(j);
        bz_members_json(m, n, at(row, (size_t)i * size), j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}

static void put_list(const bz_member *m, const void *of, bz_json *j)
{
    const void *list = *(const void *const *)at(of, m->offset);
    bz_json_array(j);
    for (int i = 0; i < *(const int *)at(of, m->count); i++)
        if (m->type == BZ_MEMBER_TEXTS)
            bz_json_str(j, ((const char *const *)list)[i]);
        else if (m->type == BZ_MEMBER_INTS)
            bz_json_int(j, ((const int *)list)[i]);
        else if (m->type == BZ_MEMBER_COUNTS)
            bz_json_int(j, ((const int64_t *)list)[i]);
        else
            bz_json_num(j, ((const double *)list)[i]);
    bz_json_array_end(j);
}

static void put_value(const bz_member *m, const void *of, bz_json *j)
{
    const void *field = at(of, m->offset);
    switch (m->type) {
    case BZ_MEMBER_STRING:
        bz_json_str(j, *(const char *const *)field);
        break;
    case BZ_MEMBER_TEXT:
        bz_json_str(j, *(const char *const *)field ? *(const char *const *)field : "");
        break;
    case BZ_MEMBER_WORD:
        bz_json_str(j, m->word(*(const int *)field));
        break;
    case BZ_MEMBER_RAW:
        bz_json_raw(j,
                    *(const char *const *)field && **(const char *const *)field ? *(const char *const *)field : "{}");
        break;
    case BZ_MEMBER_CHARS:
        bz_json_str(j, field);
        break;
    case BZ_MEMBER_TOLD:
        bz_json_str(j, m->told(of));
        break;
    case BZ_MEMBER_FIGURE:
        bz_json_num(j, m->figure(of));
        break;
    case BZ_MEMBER_TRUTH:
        bz_json_bool(j, m->truth(of));
        break;
    case BZ_MEMBER_PUT:
        m->put(of, j);
        break;
    case BZ_MEMBER_NUMBER:
        bz_json_num(j, *(const double *)field);
        break;
    case BZ_MEMBER_NANOSECONDS:
        bz_json_num(j, 1e-9 * (double)*(const int64_t *)field);
        break;
    case BZ_MEMBER_COUNT:
        bz_json_int(j, *(const int64_t *)field);
        break;
    case BZ_MEMBER_UNSIGNED:
        bz_json_int(j, *(const uint32_t *)field);
        break;
    case BZ_MEMBER_SIZE:
        bz_json_int(j, (int64_t) * (const size_t *)field);
        break;
    case BZ_MEMBER_INT:
        bz_json_int(j, *(const int *)field);
        break;
    case BZ_MEMBER_KNOWN:
        if (*(const int *)field < 0)
            bz_json_null(j);
        else
            bz_json_int(j, *(const int *)field);
        break;
    case BZ_MEMBER_BOOL:
        bz_json_bool(j, *(const bool *)field);
        break;
    case BZ_MEMBER_OBJECT:
        bz_json_object(j);
        bz_members_json(m->of, m->n_of, field, j);
        bz_json_object_end(j);
        break;
    case BZ_MEMBER_POINTED:
        bz_json_object(j);
        bz_members_json(m->of, m->n_of, *(const void *const *)field, j);
        bz_json_object_end(j);
        break;
    case BZ_MEMBER_ROWS:
        put_rows(m->of, m->n_of, *(const void *const *)field, m->size, *(const int *)at(of, m->count), j);
        break;
    case BZ_MEMBER_TEXTS:
    case BZ_MEMBER_INTS:
    case BZ_MEMBER_COUNTS:
    case BZ_MEMBER_NUMBERS:
        put_list(m, of, j);
        break;
    }
}

void bz_members_json(const bz_member *m, int n, const void *of, bz_json *j)
{
    for (const bz_member *end = m + n; m < end; m++) {
        const void *field = at(of, m->offset);
        const void *part = m->type == BZ_MEMBER_POINTED ? *(const void *const *)field : field;
        if ((m->where && !m->where(of)) || !part)
            continue;
        if (!m->name) {
            bz_members_json(m->of, m->n_of, part, j);
            continue;
        }
        bz_json_key(j, m->name);
        put_value(m, of, j);
    }
}

bz_said bz_said_str(const char *key, const char *s)
{
    return (bz_said){.key = key, .text = s, .type = 's'};
}

bz_said bz_said_num(const char *key, double v)
{
    return (bz_said){.key = key, .number = v, .type = 'n'};
}

bz_said bz_said_bool(const char *key, bool v)
{
    return (bz_said){.key = key, .count = v, .type = 'b'};
}

bz_said bz_said_int(const char *key, int64_t v)
{
    return (bz_said){.key = key, .count = v, .type = 'i'};
}

void bz_members_tell(bz_json *j, const bz_said *told, size_t n)
{
    for (const bz_said *t = told; t < told + n; t++) {
        bz_json_key(j, t->key);
        if (t->type == 's')
            bz_json_str(j, t->text);
        else if (t->type == 'n')
            bz_json_num(j, t->number);
        else if (t->type == 'b')
            bz_json_bool(j, t->count);
        else
            bz_json_int(j, t->count);
    }
}

void bz_members_object(const char *key, const bz_member *m, int n, const void *of, bz_json *j)
{
    bz_json_key_object(j, key);
    bz_members_json(m, n, of, j);
    bz_json_object_end(j);
}

void bz_members_document(const char *record, int version, const bz_member *m, int n, const void *of, int flat,
                         bz_buf *out)
{
    bz_json j = bz_json_document_to(out, flat, record, version);
    bz_members_json(m, n, of, &j);
    bz_json_document_end(&j);
}

void bz_members_rows(const char *key, const bz_member *m, int n, const void *row, size_t size, int rows, bz_json *j)
{
    bz_json_key(j, key);
    put_rows(m, n, row, size, rows, j);
}

/* "first=first.seconds": the column, the member. Returns what stands behind it. */
static const char *next_column(const char *columns, char column[64], char member[64])
{
    int length = (int)strcspn(columns, "|"), name = (int)strcspn(columns, "=|");
    int from = name < length ? name + 1 : 0;
    snprintf(column, 64, "%.*s", name, columns);
    snprintf(member, 64, "%.*s", length - from, columns + from);
    return columns + length + (columns[length] == '|');
}

void bz_members_columns(const char *columns, bz_table *t)
{
    char column[64], member[64];
    while (*columns) {
        columns = next_column(columns, column, member);
        bz_table_columns(t, column);
    }
}

/* The member that a path names; `of` becomes the struct that it is of. NULL: there is none. */
static const bz_member *find(const bz_member *m, int n, const char *path, const void **of)
{
    size_t length = strcspn(path, ".");
    for (const bz_member *end = m + n; m < end; m++) {
        bool named = m->name && strlen(m->name) == length && !strncmp(m->name, path, length);
        if (named && !path[length])
            return m;
        if (!named && m->name)
            continue;
        const void *part = at(*of, m->offset);
        const bz_member *found = find(m->of, m->n_of, named ? path + length + 1 : path, &part);
        if (found) {
            *of = part;
            return found;
        }
    }
    return NULL;
}

static void put_cell(const bz_member *m, const void *of, bz_table *t)
{
    char digits[40] = "";
    BZ_SCOPED(bz_buf) text = {0};
    bz_json j = bz_json_to(&text, false);
    if (m->type == BZ_MEMBER_STRING || m->type == BZ_MEMBER_TOLD) {
        const char *s = m->told ? m->told(of) : *(const char *const *)at(of, m->offset);
        bz_table_cell(t, s ? s : "", NULL);
    } else if (m->type == BZ_MEMBER_NUMBER || m->type == BZ_MEMBER_FIGURE) {
        double v = m->figure ? m->figure(of) : *(const double *)at(of, m->offset);
        if (isfinite(v))
            snprintf(digits, sizeof digits, v == floor(v) && fabs(v) < 1e15 ? "%.0f" : "%.9g", v);
        bz_table_cell(t, digits, NULL);
    } else {
        put_value(m, of, &j);
        bz_table_cell(t, bz_buf_text(&text), NULL);
    }
}

void bz_members_cells(const bz_member *m, int n, const void *of, const char *columns, bz_table *t)
{
    char column[64], member[64];
    while (*columns) {
        columns = next_column(columns, column, member);
        const void *part = of;
        const bz_member *found = find(m, n, member, &part);
        assert(found);
        put_cell(found, part, t);
    }
}
