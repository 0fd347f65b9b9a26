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
    bz_buf clean = {0};
    bz_buf_clean(&clean, text);
    bool same = clean.len < LONGEST && !strcmp(bz_buf_text(&clean), text);
    bz_buf_free(&clean);
    return same;
}

const char *document_text(const cJSON *object, const char *name, bz_arena *arena)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(v) && document_is_line(v->valuestring) ? bz_arena_str(arena, v->valuestring) : "";
}

int64_t document_int(const cJSON *object, const char *name, int64_t least, int64_t most, int64_t otherwise)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(v) && v->valuedouble >= (double)least && v->valuedouble <= (double)most
               ? (int64_t)v->valuedouble
               : otherwise;
}

double document_number(const cJSON *object, const char *name, double otherwise)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble < 1e30 ? v->valuedouble : otherwise;
}

bool document_bool(const cJSON *object, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}
