/* Settings as text. */
#include "perfdb/perfdb.h"

#include <string.h>

static const char *clock_of(const bz_setting *s)
{
    return s->clock ? s->clock : "";
}

const char *bz_setting_clock(const bz_setting *s)
{
    return *clock_of(s) ? s->clock : NULL;
}

void bz_setting_print(const bz_setting *s, bz_buf *out)
{
    bz_buf_printf(out, "threads=%d cache=%s", s->threads, bz_record_cache_name(s->cache));
    if (*clock_of(s)) /* it may hold blanks, so it stands last */
        bz_buf_printf(out, " clock=%s", clock_of(s));
}

bool bz_setting_same(const bz_setting *a, const bz_setting *b)
{
    return a->threads == b->threads && a->cache == b->cache && !strcmp(clock_of(a), clock_of(b));
}
