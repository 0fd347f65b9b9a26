/* What was learned as lines of text:
 *
 *   benanza-trained 6 HASH
 *   kinship GROUP margin generation noise
 *   machine gpu f32 f16 i8 vouched clock multiprocessors bandwidth generation floor capability name
 *   cache bytes rate                    of the processor before it, the smallest first
 *   kind NAME points shape-members, then of each machine its mean and how many records it rests on
 *   point x…, then of each machine its weight */
#include "predict/predictor.h"

#include "predict/constants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MOST = 4096 };

/* Of a machine, in the order of its line. */
static const size_t VALUES[] = {
    offsetof(bz_machine, f32),       offsetof(bz_machine, f16),        offsetof(bz_machine, i8),
    offsetof(bz_machine, vouched),   offsetof(bz_machine, clock),      offsetof(bz_machine, multiprocessors),
    offsetof(bz_machine, bandwidth), offsetof(bz_machine, generation), offsetof(bz_machine, floor)};
enum { N_VALUES = sizeof VALUES / sizeof *VALUES };

static void put(bz_buf *out, double v)
{
    bz_buf_printf(out, " %.7g", v);
}

/* Of the problems and times that it rests on, in the order of the table. */
static bz_hash hash_of(const bz_predictor *p)
{
    BZ_SCOPED(bz_buf) text = {0};
    for (int i = 0; p->samples && i < p->samples->n; i++) {
        bz_buf_puts(&text, p->samples->text[i]);
        for (int m = 0; m < p->machines; m++)
            put(&text, bz_samples_log(p->samples, i, m));
    }
    return bz_hash_bytes(bz_buf_text(&text), text.len);
}

/* Kinds by name: their numbers change with the next kind. A + behind it: with post-operations. */
static const char *kind_word(int kind, char *out, size_t size)
{
    snprintf(out, size, "%s%s", bz_shape_kind_name(kind), kind >= BZ_SHAPE_FUSED ? "+" : "");
    return out;
}

static int kind_named(const char *word)
{
    char is[40];
    int kind = BZ_SHAPE_KINDS - 1;
    while (kind > 0 && (kind == BZ_SHAPE_FUSED || strcmp(kind_word(kind, is, sizeof is), word) != 0))
        kind--;
    return kind; /* 0: none */
}

static void write_kind(const bz_predictor *p, int kind, bz_buf *out)
{
    const bz_learned *l = &p->learned[kind];
    if (!l->n)
        return;
    char word[40];
    bz_buf_printf(out, "kind %s %d %d", kind_word(kind, word, sizeof word), l->n, l->point[0]->n);
    for (int m = 0; m < p->machines; m++) {
        put(out, l->mean[m]);
        bz_buf_printf(out, " %d", l->trained[m]);
    }
    bz_buf_putc(out, '\n');
    for (int i = 0; i < l->n; i++) {
        bz_buf_puts(out, "point");
        for (int k = 0; k < l->point[i]->n; k++)
            put(out, l->point[i]->x[k]);
        for (int m = 0; m < p->machines; m++)
            put(out, l->weight[i * p->machines + m]);
        bz_buf_putc(out, '\n');
    }
}

void bz_predictor_write(const bz_predictor *p, bz_buf *out)
{
    char hash[33];
    bz_hash_hex(hash_of(p), hash);
    bz_buf_printf(out, BZ_TRAINED_MARK "6 %s\n", hash);
    for (int g = 0; g < BZ_GROUPS; g++) {
        bz_buf_printf(out, "kinship %d", g);
        put(out, p->kinship[g].margin);
        put(out, p->kinship[g].generation);
        put(out, p->kinship[g].noise);
        bz_buf_putc(out, '\n');
    }
    for (int m = 0; m < p->machines; m++) {
        const bz_machine *is = &p->machine[m];
        bz_buf_printf(out, "machine %d", is->gpu);
        for (int i = 0; i < N_VALUES; i++)
            put(out, *(const double *)(const void *)((const char *)is + VALUES[i]));
        bz_buf_printf(out, " %d %s\n", is->capability, is->name);
        for (int i = 0; i < is->caches; i++) {
            bz_buf_puts(out, "cache");
            put(out, is->cache[i].bytes);
            put(out, is->cache[i].rate);
            bz_buf_putc(out, '\n');
        }
    }
    for (int kind = 0; kind < BZ_SHAPE_KINDS; kind++)
        write_kind(p, kind, out);
}

typedef struct reading {
    bz_predictor *p;
    bz_machine machine[BZ_NEIGHBOURS];
    const char *at; /* in the line */
    bz_learned *kind;
    int points, members; /* of the kind: that are still to come */
} reading;

static double number(reading *r)
{
    char *end;
    double v = strtod(r->at, &end);
    bool good = end != r->at;
    r->at = end;
    return good ? v : NAN;
}

static bool whole(reading *r, int least, int most, int *out)
{
    double v = number(r);
    *out = v >= least && v <= most ? (int)v : least;
    return v >= least && v <= most && v == floor(v);
}

static bool read_machine(reading *r)
{
    bz_machine *m = &r->machine[r->p->machines];
    int gpu;
    char name[64];
    if (r->p->machines == BZ_NEIGHBOURS || r->kind || !whole(r, 0, 1, &gpu))
        return false;
    *m = (bz_machine){.gpu = gpu};
    for (int i = 0; i < N_VALUES; i++)
        *(double *)(void *)((char *)m + VALUES[i]) = number(r);
    bool good = whole(r, 0, 1000, &m->capability) && sscanf(r->at, " %63s", name) == 1;
    r->p->machines++;
    m->name = bz_arena_str(&r->p->arena, good ? name : "");
    m->launch = gpu ? 0 : m->floor;
    return good && m->f32 > 0 && m->vouched > 0 && m->vouched <= 1 && m->clock > 0 && m->bandwidth > 0 &&
           isfinite(m->generation) && m->floor > 0;
}

static bool read_cache(reading *r)
{
    bz_machine *m = r->p->machines ? &r->machine[r->p->machines - 1] : NULL;
    if (!m || m->gpu || r->kind || m->caches == BZ_CACHE_RATES)
        return false;
    double least = m->caches ? m->cache[m->caches - 1].bytes : 1, bytes = number(r), rate = number(r);
    m->cache[m->caches++] = (struct bz_cache_rate){bytes, rate};
    return bytes >= least && isfinite(bytes) && rate > 0 && isfinite(rate);
}

static bool read_kind(reading *r)
{
    bz_predictor *p = r->p;
    int kind, n, at = 0;
    char word[40];
    if (r->points || sscanf(r->at, "%39s%n", word, &at) != 1)
        return false;
    r->at += at;
    kind = kind_named(word);
    if (!kind || p->learned[kind].n || !whole(r, 1, POINTS_MOST, &n) || !whole(r, 1, BZ_SHAPE, &r->members))
        return false;
    bz_learned *l = r->kind = &p->learned[kind];
    *l = (bz_learned){.machines = p->machines,
                      .point = BZ_NEW(&p->arena, const bz_shape *, n),
                      .weight = BZ_NEW(&p->arena, double, (size_t)n *(size_t)p->machines),
                      .mean = BZ_NEW(&p->arena, double, p->machines),
                      .trained = BZ_NEW(&p->arena, int, p->machines)};
    r->points = n;
    for (int m = 0; m < p->machines; m++) {
        l->mean[m] = number(r);
        if (!isfinite(l->mean[m]) || !whole(r, 0, 1 << 30, &l->trained[m]))
            return false;
    }
    return true;
}

static bool read_point(reading *r)
{
    bz_learned *l = r->kind;
    if (!l || !r->points)
        return false;
    bz_shape *shape = BZ_NEW(&r->p->arena, bz_shape, 1);
    shape->n = r->members;
    for (int i = 0; i < r->members; i++)
        if (!isfinite(shape->x[i] = number(r)))
            return false;
    for (int m = 0; m < l->machines; m++)
        if (!isfinite(l->weight[l->n * l->machines + m] = number(r)))
            return false;
    l->point[l->n++] = shape;
    r->points--;
    return true;
}

static bool read_kinship(reading *r)
{
    int group;
    if (!whole(r, 0, BZ_GROUPS - 1, &group))
        return false;
    bz_kinship *k = &r->p->kinship[group];
    k->margin = number(r);
    k->generation = number(r);
    k->noise = number(r);
    return k->margin >= 1 && k->margin <= 100 && k->generation > 0 && k->noise > 0 &&
           isfinite(k->noise + k->generation + k->margin);
}

static bool read_line(reading *r, const char *line)
{
    static const struct {
        const char *word;
        bool (*read)(reading *r);
    } LINES[] = {{"kinship ", read_kinship},
                 {"machine ", read_machine},
                 {"cache ", read_cache},
                 {"kind ", read_kind},
                 {"point ", read_point}};
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        if (!strncmp(line, LINES[i].word, strlen(LINES[i].word))) {
            r->at = line + strlen(LINES[i].word);
            return LINES[i].read(r);
        }
    return !*line;
}

static void use_all(reading *r)
{
    bz_predictor *p = r->p;
    p->machine = bz_arena_dup(&p->arena, r->machine, (size_t)p->machines * sizeof *r->machine);
    p->use = BZ_NEW(&p->arena, bool, p->machines);
    for (int m = 0; m < p->machines; m++)
        p->use[m] = true;
    for (int kind = 0; kind < BZ_SHAPE_KINDS; kind++)
        if (!p->learned[kind].trained) {
            p->learned[kind].machines = p->machines;
            p->learned[kind].mean = BZ_NEW(&p->arena, double, p->machines);
            p->learned[kind].trained = BZ_NEW(&p->arena, int, p->machines);
        }
}

int bz_predictor_read(const char *text, const char *name, bz_predictor **out, bz_error *err)
{
    static const char FIRST[] = BZ_TRAINED_MARK "6 ";
    reading r = {.p = bz_zeroed(1, sizeof *r.p)};
    const char *at = text;
    int number = 0, rc = 0;
    *out = NULL;
    r.p->told = bz_zeroed(1, sizeof *r.p->told);
    memcpy(r.p->kinship, bz_kinships, sizeof r.p->kinship);
    if (strncmp(text, FIRST, strlen(FIRST)) != 0)
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: is no set of 'benanza predict --train' that this version reads", name);
    BZ_FREED char *line = NULL;
    for (; !rc && *at; number++) {
        size_t n = strcspn(at, "\n");
        line = bz_realloc(line, n + 1, 1);
        memcpy(line, at, n);
        line[n] = 0;
        if (number && !read_line(&r, line))
            rc = bz_fail(err, BZ_BAD_INPUT, "%s:%d: cannot be read: make the set anew with 'benanza predict --train'",
                         name, number + 1);
        at += n + (at[n] == '\n');
    }
    if (!rc && (r.points || !r.p->machines))
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: ends too early", name);
    if (rc) {
        bz_predictor_free(r.p);
        return -1;
    }
    use_all(&r);
    *out = r.p;
    return 0;
}

bz_predictor *bz_predictor_shipped(void)
{
    bz_predictor *p;
    return bz_predictor_read(bz_trained_text, "trained.txt", &p, NULL) ? NULL : p;
}

static bool teaches(const bz_samples *s, bool gpu)
{
    int machines = 0;
    for (int m = 0; m < s->machines; m++)
        machines += s->machine[m].gpu == gpu && bz_samples_of(s, m) >= (gpu ? ENOUGH : OF_PROCESSORS);
    return machines >= (gpu ? 2 : 1);
}

bz_predictor *bz_predictor_best(const bz_samples *s, bool gpu)
{
    return teaches(s, gpu) ? bz_predictor_new(s, NULL, NULL, NULL) : gpu ? bz_predictor_shipped() : NULL;
}
