/* Settings as text. */
#include "perfdb/entry.h"

#include <string.h>

const char *bz_setting_clock(const bz_setting *s)
{
    return s->clock && *s->clock ? s->clock : NULL;
}

void bz_setting_print(const bz_setting *s, bz_buf *out)
{
    bz_buf_printf(out, "threads=%d cache=%s", s->threads, bz_record_cache_name(s->cache));
    if (bz_setting_clock(s)) /* it may hold blanks, so it stands last */
        bz_buf_printf(out, " clock=%s", s->clock);
}

bool bz_setting_same(const bz_setting *a, const bz_setting *b)
{
    return a->threads == b->threads && a->cache == b->cache &&
           !strcmp(bz_text_or_empty(a->clock), bz_text_or_empty(b->clock));
}
