/* Calls of a loop whose sizes grow from one repetition to the next are one call: a language model's attention reads a cache that is
 * one token longer at each step, so that no step has the shapes of another.
 *
 * Texts that differ in nothing but numbers are of one family. Of a family, those are a chain of which each is used only when the one
 * before is no longer, and in which the same numbers grow. Layers that become wider are none: in the next iteration they are
 * narrow again. */
#include "profile/constants.h"
#include "profile/sequence.h"

#include <ctype.h>
#include <stdlib.h>

enum { NUMBERS = 48, OPEN = 64 }; /* numbers of a text that are looked at; chains of a family that may still go on */

typedef struct {
    uint64_t family;
    uint64_t value[NUMBERS];
    int n;
} shape;

typedef struct {
    size_t first, last, times;
    uint32_t chain;      /* + 1 */
    uint32_t before;     /* it in its chain, + 1; 0: none is */
    uint32_t also;       /* the chain, + 1, that has this shape as well, in place of one of its own; 0: none has */
    uint32_t also_after; /* in that chain */
} use;

typedef struct {
    uint32_t last, length;
    uint64_t grows; /* bits: numbers that do; 0: not known yet */
    uint64_t by;    /* the smallest step */
    bool repeats;   /* each was used several times, but for the last */
} chain;

static void read_shape(const char *name, const char *detail, shape *s)
{
    const char *text[] = {name, " ", detail};
    BZ_SCOPED(bz_buf) family = {0};
    s->n = 0;
    for (int i = 0; i < 3; i++)
        for (const char *p = text[i]; *p;) {
            if (!isdigit((unsigned char)*p) || s->n == NUMBERS) {
                bz_buf_putc(&family, *p++);
                continue;
            }
            char *end;
            s->value[s->n++] = strtoull(p, &end, 10);
            bz_buf_putc(&family, '#');
            p = end;
        }
    s->family = bz_hash_bytes(family.data, family.len).low;
}

/* The numbers in which b is greater, as bits, and by how much at least. 0 where it is less in one, greater in all, or more than twice
 * as great: then it is another layer. */
static uint64_t growth(const shape *a, const shape *b, uint64_t *by)
{
    uint64_t grows = 0;
    *by = UINT64_MAX;
    for (int i = 0; i < a->n; i++) {
        if (b->value[i] < a->value[i] || b->value[i] / 2 > a->value[i])
            return 0;
        if (b->value[i] == a->value[i])
            continue;
        grows |= UINT64_C(1) << i;
        if (b->value[i] - a->value[i] < *by)
            *by = b->value[i] - a->value[i];
    }
    return a->n && grows == UINT64_MAX >> (64 - a->n) ? 0 : grows;
}

typedef struct {
    shape *shape;
    use *use;
    chain *chain;
    uint32_t n_chains;
    uint32_t (*open)[OPEN]; /* of each family: chains + 1, a ring */
    uint32_t *at;
} making;

/* The chain of the family that this one goes on with: one that grows in the same numbers, else the one that is nearest. */
static chain *chain_for(making *m, uint32_t family, uint32_t id, uint64_t *grows, uint64_t *by)
{
    chain *best = NULL;
    for (int i = 0; i < OPEN; i++) {
        if (!m->open[family][i])
            continue;
        chain *c = &m->chain[m->open[family][i] - 1];
        uint64_t step, now = growth(&m->shape[c->last], &m->shape[id], &step);
        if (m->use[c->last].last >= m->use[id].first || !now || (c->grows && c->grows != now))
            continue;
        if (best && (best->grows && !c->grows))
            continue;
        if (best && !best->grows == !c->grows && *by <= step)
            continue;
        best = c;
        *grows = now;
        *by = step;
    }
    return best;
}

/* Where a cache has as many tokens as a head has numbers, both products of attention have one shape: one chain has it, and the other goes on from what was
 * before to what is behind. */
static void find_shared(making *m, uint32_t family, const chain *c, uint32_t id)
{
    enum { BACK = 2 }; /* the other chain may have gone on by one already */
    for (int i = 0; i < OPEN && c->grows; i++) {
        const chain *other = m->open[family][i] ? &m->chain[m->open[family][i] - 1] : c;
        uint64_t by;
        uint32_t x = other == c ? 0 : other->last + 1;
        for (int k = 0; x && k < BACK; k++, x = m->use[x - 1].before) {
            use *u = &m->use[x - 1];
            if (u->first > m->use[c->last].last && u->last < m->use[id].first &&
                growth(&m->shape[c->last], &m->shape[x - 1], &by) == c->grows &&
                growth(&m->shape[x - 1], &m->shape[id], &by) == c->grows) {
                u->also = (uint32_t)(c - m->chain) + 1;
                u->also_after = c->last;
            }
        }
    }
}

static void add_shape(making *m, uint32_t family, uint32_t id)
{
    uint64_t grows = 0, by = 0;
    chain *c = chain_for(m, family, id, &grows, &by);
    if (!c) {
        c = &m->chain[m->n_chains];
        *c = (chain){.last = id, .length = 1, .repeats = true};
        m->open[family][m->at[family]++ % OPEN] = m->n_chains + 1;
        m->n_chains++;
    } else {
        c->repeats &= m->use[c->last].times > 1;
        c->by = c->length == 1 || by < c->by
                    ? by
                    : c->by; /* a step may be one of another chain, where both have one shape */
        c->grows = grows;
        find_shared(m, family, c, id);
        m->use[id].before = c->last + 1;
        c->last = id;
        c->length++;
    }
    m->use[id].chain = (uint32_t)(c - m->chain) + 1;
}

static bool holds(const chain *c)
{
    return c->length >= SHORTEST_GROWTH && (c->repeats || c->by <= TOKENS_OF_A_STEP);
}

bool bz_sequence_merge_growing(const bz_trace *t, const bz_sequence *s, const uint32_t *exact, uint32_t count,
                               uint32_t *merged)
{
    BZ_SCOPED(bz_arena) scratch = {0};
    BZ_SCOPED(bz_map) families = {0};
    making m = {.shape = BZ_NEW(&scratch, shape, count),
                .use = BZ_NEW(&scratch, use, count),
                .chain = BZ_NEW(&scratch, chain, count)};
    uint32_t *family = BZ_NEW(&scratch, uint32_t, count), n_families = 0;
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        use *u = &m.use[exact[i]];
        if (!u->times++) {
            u->first = i;
            read_shape(bz_string(t, s->event->name[s->row[i]]), bz_string(t, s->event->detail[s->row[i]]),
                       &m.shape[exact[i]]);
        }
        u->last = i;
    }
    for (uint32_t id = 0; id < count; id++) {
        family[id] = bz_map_add(&families, &m.shape[id].family, sizeof m.shape[id].family, n_families);
        n_families += family[id] == n_families;
    }
    m.open = bz_arena_array(&scratch, n_families, sizeof *m.open);
    m.at = BZ_NEW(&scratch, uint32_t, n_families);
    for (uint32_t id = 0; id < count; id++) /* numbered by first use */
        add_shape(&m, family[id], id);
    uint32_t *of_chain = BZ_NEW(&scratch, uint32_t, m.n_chains), *number = BZ_NEW(&scratch, uint32_t, count);
    for (uint32_t id = 0; id < count; id++) {
        uint32_t c = m.use[id].chain - 1;
        number[id] = id;
        if (holds(&m.chain[c])) {
            of_chain[c] = of_chain[c] ? of_chain[c] : id + 1;
            number[id] = of_chain[c] - 1;
            any = true;
        }
    }
    for (size_t i = 0, end; i < s->n; i = end) {
        const use *u = &m.use[exact[i]];
        bool shared = u->also && u->before && holds(&m.chain[u->also - 1]) && holds(&m.chain[u->chain - 1]);
        bool second =
            shared && m.use[u->also_after].first > m.use[u->before - 1].first; /* half of them is the other's */
        for (end = i + 1; end < s->n && exact[end] == exact[i];)
            end++;
        for (size_t k = i; k < end; k++)
            merged[k] = shared && (2 * (k - i) >= end - i) == second ? of_chain[u->also - 1] - 1 : number[exact[i]];
    }
    return any;
}
