#include "base/member.h"

void bz_members_json(const bz_member *m, int n, const void *of, bz_json *j)
{
    for (int i = 0; i < n; i++) {
        const void *field = (const char *)of + m[i].offset;
        bz_json_key(j, m[i].name);
        switch (m[i].type) {
        case BZ_MEMBER_STRING:
            bz_json_str(j, *(const char *const *)field);
            break;
        case BZ_MEMBER_NUMBER:
            bz_json_num(j, *(const double *)field);
            break;
        case BZ_MEMBER_COUNT:
            bz_json_int(j, *(const int64_t *)field);
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
        }
    }
}

void bz_members_rows(const char *key, const bz_member *m, int n, const void *row, size_t size, int rows, bz_json *j)
{
    bz_json_key(j, key);
    bz_json_array(j);
    for (int i = 0; i < rows; i++) {
        bz_json_object(j);
        bz_members_json(m, n, (const char *)row + (size_t)i * size, j);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
}
