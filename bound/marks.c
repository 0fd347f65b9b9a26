/* Whether it helps to measure once more what is marked noisy or busy: the records and their history tell. */
#include "base/map.h"
#include "base/sort.h"
#include "bound/bound.h"
#include "bound/constants.h"
#include "runtime/runtime.h"

#include <math.h>
#include <string.h>

typedef struct marking {
    const bz_prices *prices;
    bz_perfdb *db;
    const bz_system *system;
    bz_arena *arena;
    bz_bound_marks *out;
    double best;     /* seconds that the yardstick takes on this machine at its best; NAN */
    double *slowest; /* [n] the slower yardstick beside each marked record that has them */
    size_t n;
    double doubtful; /* seconds by which marked prices may be too high */
    bz_map before;   /* problem: was its record marked before, too? Many layers share one, whose history is long */
} marking;

/* Were both measurements marked, this one and one before? */
static int was_marked_before(marking *m, const bz_record *r, bool *again, bz_error *err)
{
    bz_record *record;
    size_t n;
    int marked = 0;
    uint32_t known = bz_map_get(&m->before, r->problem, strlen(r->problem));
    *again = known == 1;
    if (known != BZ_MAP_NONE)
        return 0;
    if (bz_perfdb_history(m->db, m->system, r->problem, &r->variant, &r->setting, m->arena, &record, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        marked += record[i].provenance == BZ_PROVENANCE_MEASURED && bz_record_marked(&record[i]);
    *again = marked > 1;
    bz_map_add(&m->before, r->problem, strlen(r->problem), *again);
    return 0;
}

/* One marked layer: `seconds` of the bound rest on it. */
static int look_at(marking *m, const bz_bound_layer *l, bz_error *err)
{
    const bz_alternative *a = l->price.alternative;
    bool again = true, restless = false, told = false;
    double too_long = l->price.seconds - l->price.low;
    for (int i = 0; i < a->n; i++) {
        const bz_record *r = bz_prices_call(m->prices, a, i)->record;
        bool twice;
        double y[2];
        if (!bz_record_marked(r))
            continue;
        if (was_marked_before(m, r, &twice, err))
            return -1;
        again &= twice;
        if (!bz_record_yardsticks(r, y))
            continue;
        double mean = (y[0] + y[1]) / 2, slower = fmax(y[0], y[1]), least = fmin(y[0], y[1]);
        m->slowest[m->n++] = slower;
        too_long = (told ? too_long : 0) + (mean > m->best ? bz_record_busy(r) * (1 - m->best / mean) : 0);
        told = true;
        restless |= slower > (1 + BZ_NOISY_SPREAD) * least;
    }
    m->out->layers++;
    m->out->again += again;
    m->out->restless += restless;
    m->doubtful += l->times * too_long;
    return 0;
}

static void find_best(marking *m, const bz_bound *b)
{
    m->best = b->facts->yardstick;
    for (int i = 0; i < b->n; i++) {
        const bz_alternative *a = b->layer[i].price.alternative;
        double y[2];
        for (int k = 0; a && k < a->n; k++) {
            const bz_record *r = bz_prices_call(m->prices, a, k)->record;
            if (r && bz_record_yardsticks(r, y))
                m->best = fmin(m->best, fmin(y[0], y[1]));
        }
    }
}

int bz_bound_marks_make(bz_bound *b, const bz_prices *prices, bz_perfdb *db, const bz_system *system, bz_arena *arena,
                        bz_error *err)
{
    bz_bound_marks *out = &b->marks;
    marking m = {.prices = prices, .db = db, .system = system, .arena = arena, .out = out};
    size_t calls = 0;
    for (int i = 0; i < b->n; i++)
        calls += b->layer[i].price.noisy ? (size_t)b->layer[i].price.alternative->n : 0;
    *out = (bz_bound_marks){.slow = NAN};
    m.slowest = BZ_NEW(arena, double, calls);
    find_best(&m, b);
    int rc = 0;
    for (int i = 0; i < b->n && !rc; i++)
        rc = b->layer[i].price.noisy ? look_at(&m, &b->layer[i], err) : 0;
    bz_map_free(&m.before);
    if (rc)
        return -1;
    if (m.n && m.best > 0) {
        bz_sort_numbers(m.slowest, m.n);
        out->slow = bz_quantile(m.slowest, m.n, MOSTLY) / m.best - 1;
    }
    out->varies = out->slow > BZ_NOISY_SPREAD;
    out->above = b->sequential > m.doubtful ? m.doubtful / (b->sequential - m.doubtful) : 0;
    out->lasting = 2 * out->again > out->layers || 2 * out->restless > out->layers;
    return 0;
}
