#include "fleet/document.h"

#include "base/buf.h"

#include <string.h>

enum { LONGEST = 16384 };

int document_open(const char *text, const char *path, const char *record, cJSON **root, bz_error *err)
{
    const char *end = NULL;
    *root = cJSON_ParseWithOpts(text, &end, 1);
    if (!*root) {
        size_t line = 1;
        for (const char *p = text; end && p < end && *p; p++)
            line += *p == '\n';
        return bz_fail(err, BZ_BAD_INPUT, "%s:%zu: is no JSON here", path, line);
    }
    const cJSON *what = cJSON_GetObjectItemCaseSensitive(*root, "record"),
                *v = cJSON_GetObjectItemCaseSensitive(*root, "v");
    if (!cJSON_IsObject(*root))
        bz_fail(err, BZ_BAD_INPUT, "%s: is no JSON object", path);
    else if (record && (!cJSON_IsString(what) || strcmp(what->valuestring, record) != 0))
        bz_fail(err, BZ_BAD_INPUT, "%s: is no \"%s\"", path, record);
    else if (record && (!cJSON_IsNumber(v) || v->valuedouble != 1))
        bz_fail(err, BZ_BAD_INPUT, "%s: was written by a newer benanza", path);
    else
        return 0;
    cJSON_Delete(*root);
    *root = NULL;
    return -1;
}

bool document_is_line(const char *text)
{
    BZ_SCOPED(bz_buf) clean = {0};
    bz_buf_clean(&clean, text);
    return clean.len < LONGEST && !strcmp(bz_buf_text(&clean), text);
}

const char *document_text(const cJSON *object, const char *name, bz_arena *arena)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(v) && document_is_line(v->valuestring) ? bz_arena_str(arena, v->valuestring) : "";
}

static double number(const cJSON *v, const bz_member *m)
{
    return cJSON_IsNumber(v) && v->valuedouble >= m->least && v->valuedouble <= m->most ? v->valuedouble : m->otherwise;
}

void document_members(const bz_member *m, int n, const cJSON *object, bz_arena *arena, void *of)
{
    for (int i = 0; i < n; i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, m[i].name);
        void *field = (char *)of + m[i].offset;
        switch (m[i].type) {
        case BZ_MEMBER_STRING:
            *(const char **)field = document_text(object, m[i].name, arena);
            break;
        case BZ_MEMBER_NUMBER:
            *(double *)field = number(v, &m[i]);
            break;
        case BZ_MEMBER_COUNT:
            *(int64_t *)field = (int64_t)number(v, &m[i]);
            break;
        case BZ_MEMBER_INT:
        case BZ_MEMBER_KNOWN:
            *(int *)field = (int)number(v, &m[i]);
            break;
        case BZ_MEMBER_BOOL:
            *(bool *)field = cJSON_IsTrue(v);
            break;
        default: /* is written only */
            break;
        }
    }
}

int document_rows(const char *key, const bz_member *m, int n, size_t size, const cJSON *object, bz_arena *arena,
                  void **rows)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, key), *item;
    int at = 0;
    if (!cJSON_IsArray(list))
        list = NULL;
    *rows = bz_arena_array(arena, list ? (size_t)cJSON_GetArraySize(list) : 0, size);
    cJSON_ArrayForEach(item, list) document_members(m, n, item, arena, (char *)*rows + size * (size_t)at++);
    return at;
}

int document_lines(const char *key, const cJSON *object, bz_arena *arena, const char ***lines)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, key), *item;
    int n = 0;
    if (!cJSON_IsArray(list))
        list = NULL;
    *lines = BZ_NEW(arena, const char *, list ? cJSON_GetArraySize(list) : 0);
    cJSON_ArrayForEach(item, list) if (cJSON_IsString(item) && document_is_line(item->valuestring))(*lines)[n++] =
        bz_arena_str(arena, item->valuestring);
    return n;
}
