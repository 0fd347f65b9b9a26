/* What the program says of itself: profile/marker/benanza.h, whose functions do nothing without us. */
#include "profile/inject/record.h"
#include "profile/marker/benanza.h"

enum { DEEPEST = 64 };

static __thread struct {
    int64_t start;
    uint32_t name;
} opened[DEEPEST];
static __thread int depth; /* may be more than DEEPEST: those are not recorded */

BZI_SHARED void benanza_iteration_begin(void)
{
    bzi_mark(false);
}

BZI_SHARED void benanza_iteration_end(void)
{
    bzi_mark(true);
}

BZI_SHARED void benanza_range_begin(const char *name)
{
    if (depth < DEEPEST && bzi_marking()) {
        opened[depth].name = bzi_text(name);
        opened[depth].start = bzi_now();
    } else if (depth < DEEPEST) {
        opened[depth].name = 0;
    }
    depth += depth < INT32_MAX;
}

BZI_SHARED void benanza_range_end(void)
{
    depth -= depth > 0;
    bz_spool_range *r = depth < DEEPEST && opened[depth].name && bzi_marking() ? bzi_claim(sizeof *r) : NULL;
    if (!r)
        return;
    r->start = opened[depth].start;
    r->end = bzi_now();
    r->thread = bzi_thread();
    r->name = opened[depth].name;
    opened[depth].name = 0;
    bzi_commit(r, BZ_SPOOL_RANGE, 0, sizeof *r);
}

BZI_SHARED void benanza_fact(const char *key, const char *value)
{
    if (key && *key && value)
        bzi_fact(key, value);
}
