/* The same problem with another number of items. A time at one batch tells that at another better than any other shape does: what
 * libraries make of a shape changes with the batch alike on all machines. */
#include "predict/predictor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "x=8x3x224x224" with a first number that is so many times as great. False where that is no whole number. */
static bool grow_first(const char *value, double times, bz_buf *out)
{
    char *end;
    double first = strtod(value, &end), grown = first * times;
    if (end == value || grown < 0.5 || grown > 1e9 || fabs(grown - floor(grown + 0.5)) > 1e-6 * grown)
        return false;
    bz_buf_printf(out, "%.0f%s", floor(grown + 0.5), end);
    return true;
}

/* Members that begin with how many items there are, or are that number. A second operand does where it is as large as the
 * first one; else it is broadcast. */
static bool counts_items(const bz_problem *p, const char *name, const char *value, const char *first)
{
    if (p->kind == BZ_PROBLEM_GEMM)
        return !strcmp(name, p->gemm.batch > 1 ? "batch" : "m");
    if (bz_problem_has(p, BZ_TRAIT_RECURRENT))
        return !strcmp(name, "batch");
    if (!strcmp(name, "b") && p->kind == BZ_PROBLEM_MATMUL)
        return !p->matmul.constant && bz_extent_rank(p->matmul.b) > 2 && p->matmul.a[0] == p->matmul.b[0];
    if (p->kind == BZ_PROBLEM_EXPAND) /* what is repeated for each item is a constant */
        return !strcmp(name, "y");
    if (!strcmp(name, "b"))
        return !strcmp(value, first);
    return bz_has_word("x a y q k v c", name) && strchr(value, 'x') != NULL;
}

bool bz_problem_batched(const bz_problem *p, double times, bz_problem *out)
{
    BZ_SCOPED(bz_buf) text = {0}, grown = {0};
    bz_problem whole = *p;
    char first[128] = "";
    bool good = true;
    bz_error err;
    if (p->kind == BZ_PROBLEM_GEMV) /* of several items it is a product of matrices */
        whole = (bz_problem){.kind = BZ_PROBLEM_GEMM,
                             .gemm = {.m = 1, .n = p->gemv.m, .k = p->gemv.k, .transb = !p->gemv.trans},
                             .dtype = p->dtype,
                             .dtype_w = p->dtype_w,
                             .dtype_y = p->dtype_y};
    if (bz_problem_normalize(&whole, &err))
        return false;
    bz_problem_print(&whole, &text);
    char *rest = text.data;
    for (char *word; good && (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');
        bz_buf_puts(&grown, grown.len ? " " : "");
        if (!value) {
            bz_buf_puts(&grown, word);
            continue;
        }
        *value++ = 0;
        bz_buf_printf(&grown, "%s=", word);
        if (!strcmp(word, "a"))
            snprintf(first, sizeof first, "%s", value);
        if (counts_items(&whole, word, value, first))
            good = grow_first(value, times, &grown);
        else
            bz_buf_puts(&grown, value);
    }
    good = good && !bz_problem_parse(bz_buf_text(&grown), out, &err);
    double before = bz_problem_flops(&whole), after = good ? bz_problem_flops(out) : 0;
    /* a problem whose items stand somewhere else has not become so many times the work */
    return good && fabs(after - times * before) <= 1e-3 * after;
}

double bz_problem_items(const bz_problem *p)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    if (p->kind == BZ_PROBLEM_GEMV)
        return 1;
    if (p->kind == BZ_PROBLEM_GEMM)
        return (double)(p->gemm.batch > 1 ? p->gemm.batch : p->gemm.m);
    if (bz_problem_has(p, BZ_TRAIT_RECURRENT))
        return (double)p->rnn.batch;
    return bz_problem_operands(p, operand) && operand[0].rank ? (double)operand[0].dim[0] : 0;
}

/* What all problems have in common that differ in their items alone: the text of one item. false: it cannot be told. */
static bool family_text(const bz_problem *p, double *items, bz_buf *out)
{
    bz_problem one;
    *items = bz_problem_items(p);
    if (!(*items >= 1) || !bz_problem_batched(p, 1 / *items, &one))
        return false;
    bz_problem_print(&one, out);
    return true;
}

void bz_samples_join(bz_samples *s, int row, const bz_problem *p)
{
    BZ_SCOPED(bz_buf) text = {0};
    s->family[row] = s->next[row] = -1;
    if (family_text(p, &s->items[row], &text)) {
        uint32_t at = bz_map_get(&s->families, bz_buf_text(&text), text.len);
        if (at == BZ_MAP_NONE)
            bz_map_add(&s->families, bz_arena_str(&s->arena, bz_buf_text(&text)), text.len, (uint32_t)row);
        s->family[row] = at == BZ_MAP_NONE ? row : (int)at;
        if (at != BZ_MAP_NONE) {
            s->next[row] = s->next[at];
            s->next[at] = row;
        }
    }
}

int bz_samples_family(const bz_samples *s, const char *problem, double *items)
{
    bz_problem p;
    BZ_SCOPED(bz_buf) text = {0};
    uint32_t at = BZ_MAP_NONE;
    if (s->family && !bz_problem_parse(problem, &p, NULL) && family_text(&p, items, &text))
        at = bz_map_get(&s->families, bz_buf_text(&text), text.len);
    return at == BZ_MAP_NONE ? -1 : (int)at;
}

static double residual(const bz_predictor *p, int row, int machine)
{
    const bz_machine *m = &p->machine[machine];
    return bz_predictor_log(p, row, machine) - bz_predictor_roofline(p, &p->samples->shape[row], m, m->floor);
}

/* By how much the residual changes from one row to another, as the machines tell that have both. */
static double change(const bz_predictor *p, const bool *use, int from, int to)
{
    double sum = 0;
    int n = 0;
    for (int m = 0; m < p->machines; m++) {
        double by = use[m] ? residual(p, to, m) - residual(p, from, m) : NAN;
        if (!isnan(by))
            sum += by, n++;
    }
    return n ? sum / n : 0;
}

double bz_predictor_batches(const bz_predictor *p, const bool *use, int family, double items, int row, int machine)
{
    const bz_samples *s = p->samples;
    int side[2] = {-1, -1}; /* the nearest with fewer items, and with more */
    for (int i = family; i >= 0; i = s->next[i]) {
        int more = s->items[i] > items;
        if (i == row || (p->known && !p->known[i]) || isnan(bz_predictor_log(p, i, machine)))
            continue;
        if (side[more] < 0 || fabs(log(s->items[i] / items)) < fabs(log(s->items[side[more]] / items)))
            side[more] = i;
    }
    double told[2], far[2];
    for (int k = 0; k < 2; k++) {
        if (side[k] < 0)
            continue;
        told[k] = residual(p, side[k], machine) + (row >= 0 ? change(p, use, side[k], row) : 0);
        far[k] = fabs(log(s->items[side[k]] / items));
    }
    if (side[0] < 0 || side[1] < 0)
        return side[0] >= 0 ? told[0] : side[1] >= 0 ? told[1] : NAN;
    return far[0] + far[1] > 0 ? (told[0] * far[1] + told[1] * far[0]) / (far[0] + far[1]) : told[0];
}
