/* Two sides, problem by problem or layer by layer. */
#include "base/sort.h"
#include "compare/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TOLERANCE = 0.02, GUESS = BZ_COMPARE_GUESS;

typedef struct known {
    bz_record record; /* strings in the arena */
    const char *key;
    size_t key_len;
} known;

struct bz_side {
    known *item;
    int n;
    bz_map map; /* key -> item */
    bz_arena *arena;
    /* while reading */
    int64_t until;
    const bz_plan *plan;
    bz_record last; /* of the identity whose history is being passed */
    bool any_last;
    bz_buf key;
};

static void make_key(bz_buf *key, const char *problem, const bz_setting *s)
{
    bz_buf_clear(key);
    bz_buf_puts(key, problem);
    bz_buf_putc(key, '\n');
    bz_setting_print(s, key);
}

/* What is compared of it. */
static bz_record copy_record(const bz_record *r, bz_arena *arena)
{
    bz_record c = *r;
    c.system = c.reason = c.checked = c.meta = "";
    return bz_record_copy(&c, arena);
}

static void keep(bz_side *side, const bz_record *r)
{
    bool taken = !side->plan || bz_plan_options_take(bz_plan_asked(side->plan), r);
    if (r->status != BZ_RECORD_OK || !(r->median > 0) || !taken)
        return;
    make_key(&side->key, r->problem, &r->setting);
    uint32_t at = bz_map_get(&side->map, side->key.data, side->key.len);
    if (at != BZ_MAP_NONE) {
        if (r->median < side->item[at].record.median)
            side->item[at].record = copy_record(r, side->arena);
        return;
    }
    BZ_ROOM(side->item, side->n);
    known *k = &side->item[side->n];
    k->record = copy_record(r, side->arena);
    k->key = bz_arena_strn(side->arena, side->key.data, side->key.len);
    k->key_len = side->key.len;
    bz_map_add(&side->map, k->key, k->key_len, (uint32_t)side->n++);
}

/* The measurements of an identity come one after the other, newest first. */
static int each_record(void *user, const bz_record *r)
{
    bz_side *side = user;
    if (r->date > side->until || (side->any_last && bz_record_same_identity(&side->last, r)))
        return 0;
    side->last = copy_record(r, side->arena);
    side->last.system = r->system;
    side->any_last = true;
    keep(side, r);
    return 0;
}

int bz_side_read(bz_perfdb *db, const bz_system *system, int64_t until, const bz_plan *plan, bz_arena *arena,
                 bz_side **out, bz_error *err)
{
    bz_side *side = bz_alloc(1, sizeof *side);
    *side = (bz_side){.arena = arena, .until = until, .plan = plan};
    *out = side;
    return bz_perfdb_scan(db, &(bz_perfdb_filter){.system = system, .history = true}, each_record, side, err);
}

void bz_side_free(bz_side *side)
{
    if (!side)
        return;
    bz_map_free(&side->map);
    bz_buf_free(&side->key);
    free(side->item);
    free(side);
}

static const bz_record *find(const bz_side *side, const char *problem, const bz_setting *setting, bz_buf *key)
{
    make_key(key, problem, setting);
    uint32_t at = bz_map_get(&side->map, key->data, key->len);
    return at == BZ_MAP_NONE ? NULL : &side->item[at].record;
}

const char *bz_verdict_name(bz_verdict v)
{
    static const char *const NAMES[] = {"SAME", "FASTER", "SLOWER", "UNDECIDED"};
    return NAMES[v];
}

bz_verdict bz_verdict_of(const bz_span *a, const bz_span *b)
{
    double low = b->low / a->high, high = b->high / a->low;
    if ((low >= 1 - TOLERANCE && high <= 1 + TOLERANCE) || (a->guessed && b->guessed && a->seconds == b->seconds))
        return BZ_SAME;
    return high < 1 ? BZ_FASTER : low > 1 ? BZ_SLOWER : BZ_UNDECIDED;
}

static void add_record(bz_span *s, const bz_record *r)
{
    bool interval = isfinite(r->low) && isfinite(r->high) && r->low > 0 && r->low <= r->high;
    s->seconds += bz_tick(r->median);
    s->low += interval ? r->low : r->median * (1 - GUESS);
    s->high += interval ? r->high : r->median * (1 + GUESS);
    s->guessed |= !interval;
}

static void put_variant(const bz_record *r, bz_buf *out)
{
    bz_buf_puts(out, out->len ? " + " : "");
    bz_record_variant(r, out);
}

void bz_compare_add(bz_compare *c, const bz_compare_row *row)
{
    bz_compare_row *r = &c->row[c->n++];
    *r = *row;
    r->verdict = bz_verdict_of(&r->a, &r->b);
    c->count[r->verdict]++;
    c->guessed += r->a.guessed || r->b.guessed;
    c->total_a += r->times * r->a.seconds;
    c->total_b += r->times * r->b.seconds;
}

static int heavier(const void *x, const void *y)
{
    const bz_compare_row *a = x, *b = y;
    double s = fabs(a->b.seconds - a->a.seconds) * a->times, t = fabs(b->b.seconds - b->a.seconds) * b->times;
    int order = s > t ? -1 : s < t ? 1 : strcmp(a->what, b->what);
    return order ? order : strcmp(a->setting ? a->setting : "", b->setting ? b->setting : "");
}

void bz_compare_sort(bz_compare *c)
{
    BZ_QSORT(c->row, c->n, heavier);
}

static const char *variant_of(const bz_record *r, bz_arena *arena)
{
    bz_buf text = {0};
    put_variant(r, &text);
    return bz_buf_keep(&text, arena);
}

static const char *setting_of(const bz_setting *s, bz_arena *arena)
{
    return bz_arena_printf(arena, "%d thread%s, %s%s%s", s->threads, BZ_PLURAL(s->threads),
                           bz_record_cache_name(s->cache), *s->clock ? ", " : "", s->clock);
}

void bz_compare_problems(const bz_side *a, const bz_side *b, bz_arena *arena, bz_compare *out)
{
    *out = (bz_compare){.row = BZ_NEW(arena, bz_compare_row, a->n)};
    for (int i = 0; i < a->n; i++) {
        const bz_record *r = &a->item[i].record, *s;
        uint32_t at = bz_map_get(&b->map, a->item[i].key, a->item[i].key_len);
        if (at == BZ_MAP_NONE) {
            out->only_a++;
            continue;
        }
        s = &b->item[at].record;
        bz_compare_row row = {.what = r->problem,
                              .setting = setting_of(&r->setting, arena),
                              .layer = -1,
                              .times = 1,
                              .variant_a = variant_of(r, arena),
                              .variant_b = variant_of(s, arena)};
        add_record(&row.a, r);
        add_record(&row.b, s);
        bz_compare_add(out, &row);
    }
    out->only_b = b->n - out->n;
    bz_compare_sort(out);
}

/* The cheapest alternative by the side's records. */
static bool price(const bz_side *side, const bz_lowering *low, const bz_setting *setting, bz_span *span,
                  const char **variant, bz_arena *arena)
{
    BZ_SCOPED(bz_buf) key = {0}, text = {0};
    bool found = false;
    for (int i = 0; i < low->n; i++) {
        const bz_alternative *a = &low->alternative[i];
        bz_span s = {0};
        bool whole = true;
        bz_buf_clear(&text);
        for (int k = 0; k < a->n && whole; k++) {
            const bz_record *r = find(side, a->text[k], setting, &key);
            whole = r != NULL;
            if (r) {
                add_record(&s, r);
                put_variant(r, &text);
            }
        }
        if (!whole || (found && s.seconds >= span->seconds))
            continue;
        found = true;
        *span = s;
        *variant = bz_arena_str(arena, bz_buf_text(&text));
    }
    return found;
}

void bz_compare_layers(const bz_side *a, const bz_side *b, const bz_plan *plan, const bz_setting *setting,
                       bz_arena *arena, bz_compare *out)
{
    const bz_plan_layer *layer;
    int n = bz_plan_layers(plan, &layer);
    *out = (bz_compare){.row = BZ_NEW(arena, bz_compare_row, n)};
    for (int i = 0; i < n; i++) {
        bz_compare_row row = {.what = layer[i].key, .layer = i, .times = (double)layer[i].count};
        if (layer[i].lowering.free || layer[i].pattern)
            continue;
        bool in_a = price(a, &layer[i].lowering, setting, &row.a, &row.variant_a, arena);
        bool in_b = price(b, &layer[i].lowering, setting, &row.b, &row.variant_b, arena);
        if (in_a && in_b)
            bz_compare_add(out, &row);
        else if (in_a)
            out->only_a++;
        else if (in_b)
            out->only_b++;
        else
            out->neither++;
    }
    bz_compare_sort(out);
}

double bz_compare_slower(const bz_compare *c, bool *sure)
{
    double high = 0, low = 0;
    for (int i = 0; i < c->n; i++) {
        high += c->row[i].times * c->row[i].a.high;
        low += c->row[i].times * c->row[i].b.low;
    }
    *sure = c->n && low > high;
    return c->n ? c->total_b / c->total_a - 1 : (double)NAN;
}

const bz_compare_row *bz_compare_answer(const bz_compare_set *set)
{
    const bz_compare *c = set->n_parts ? &set->part->compare : NULL;
    const bz_compare_row *best = c && c->n ? c->row : NULL;
    for (int i = 1; best && i < c->n; i++)
        if (c->row[i].answers > best->answers)
            best = &c->row[i];
    return best;
}
