/* Lists of variants. Apart from the rest, so that a loadable backend can have it without the other ones. */
#include "runtime/backend.h"

#include "base/arena.h"

bz_variant *bz_variant_add(bz_variant_list *list, const bz_backend *backend, void *session, const char *layout,
                           const char *math)
{
    BZ_ROOM(list->item, list->n);
    bz_variant *v = &list->item[list->n++];
    *v = (bz_variant){.backend = backend, .session = session};
    snprintf(v->layout, sizeof v->layout, "%s", layout);
    snprintf(v->math, sizeof v->math, "%s", math);
    return v;
}

void bz_variant_tell_apart(bz_variant_list *list, int first)
{
    for (int i = first; i < list->n; i++) {
        bz_variant *v = &list->item[i];
        int same = 1;
        for (int j = first; j < i; j++) {
            const char *other = list->item[j].algorithm;
            size_t n = strlen(v->algorithm);
            same += !strncmp(other, v->algorithm, n) && (!other[n] || !strncmp(other + n, " #", 2));
        }
        size_t n = strlen(v->algorithm);
        if (same > 1)
            snprintf(v->algorithm + n, sizeof v->algorithm - n, " #%d", same);
    }
}
