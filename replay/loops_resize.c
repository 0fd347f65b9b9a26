/* Resizing and padding by any rule: along one axis after the other, each element of the result is made of elements of the operand by numbers that are known. */
#include "replay/bind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *word(const bz_layer *l, const char *name, const char *otherwise)
{
    const bz_param *p = bz_layer_param(l, name);
    return p && p->text ? p->text : otherwise;
}

enum {
    MOST_TAPS = 4,
    MOST_ALONG = 1 << 22
}; /* elements of an axis: the table of a longer one is larger than what it makes */

/* Elements of an axis, [m][taps] numbers and weights. */
typedef struct axis_rule {
    int axis, taps;
    int64_t n, m;
    double *number, *weight;
} axis_rule;

static axis_rule new_rule(binder *b, int axis, int taps, int64_t n, int64_t m)
{
    return (axis_rule){axis, taps, n, m, BZ_NEW(b->arena, double, m *taps), BZ_NEW(b->arena, double, m *taps)};
}

static int64_t clamp(double v, int64_t n)
{
    return v < 0 ? 0 : v >= (double)n ? n - 1 : (int64_t)v;
}

/* The value with this axis made anew, a new value of the plan's or `out`. Moved elements keep their bytes. */
static int apply(binder *b, const axis_rule *r, int from, int out)
{
    const bz_replay_value x = b->plan->value[from];
    bz_replay_loop loop = {
        .kind = BZ_LOOP_LANES, .function = "taps", .rank = 4, .dim = {1, r->n, 1, r->m}, .length = r->taps};
    bz_extent dims;
    memcpy(dims, x.dim, sizeof dims);
    dims[r->axis] = r->m;
    for (int i = 0; i < x.rank; i++)
        loop.dim[i < r->axis ? 0 : i == r->axis ? 1 : 2] *= i == r->axis ? 1 : x.dim[i];
    const int64_t n = r->m * r->taps, shape[3] = {r->m, r->taps, 2};
    double *number = BZ_NEW(b->arena, double, 2 * n + 1);
    for (int64_t i = 0; i < n && r->taps > 1; i++)
        number[2 * i] = r->number[i], number[2 * i + 1] = r->weight[i];
    if (r->taps == 1) {
        const int64_t inner = loop.dim[2];
        memcpy(number, r->number, (size_t)n * sizeof *number);
        loop = (bz_replay_loop){.kind = BZ_LOOP_GATHER,
                                .rank = 3,
                                .dim = {loop.dim[0], r->m, inner},
                                .stride = {{r->n * inner, 0, 1}, {0, 1, 0}},
                                .length = 1,
                                .extent = {r->n},
                                .step = {inner}};
    }
    int table = bind_numbers(b, r->taps > 1 ? BZ_F64 : BZ_I64, r->taps > 1 ? 3 : 1, shape, number);
    out = out >= 0 ? out : bind_new(b, r->taps > 1 && !bz_dtype_is_float(x.dtype) ? BZ_F32 : x.dtype, x.rank, dims);
    bind_loop(b, &loop, (int[]){from, table}, 2, out);
    return out;
}

/* The rules one after the other, from the first operand to the result. */
static int apply_all(binder *b, const bz_layer *l, const axis_rule *r, int n)
{
    int at = bind_in(b, 0), out = bind_result(b, 0);
    if (n == 0)
        return bind_cast(b, l);
    for (int i = 0; i < n && !bind_done(b); i++) /* a rank that is too large ends here */
        at = apply(b, &r[i], at, i + 1 == n ? out : -1);
    return bind_done(b);
}

/* What lies at place i, counted from where the operand begins: it goes on as at its edge, turned round, or from its other end. */
static int64_t beyond(const char *mode, int64_t i, int64_t n)
{
    int64_t period = !strcmp(mode, "reflect") ? 2 * (n - 1) : n;
    if (!strcmp(mode, "edge") || n == 1)
        return clamp((double)i, n);
    i = (i % period + period) % period;
    return i < n ? i : period - i;
}

int bind_pad_by_rule(binder *b, const bz_layer *l, const int64_t *pad)
{
    axis_rule rule[BZ_MAX_RANK];
    int n = 0, rank = l->in[0].rank;
    const char *mode = word(l, "mode", "");
    if (strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0)
        return bind_no(b, "how it pads is not known");
    for (int i = 0; i < rank; i++) {
        if (!pad[i] && !pad[rank + i])
            continue;
        if (bz_type_elements(&l->in[0]) < 1 || l->out[0].dims[i] > MOST_ALONG)
            return bind_no(b, "it is empty, or too long");
        rule[n] = new_rule(b, i, 1, l->in[0].dims[i], l->out[0].dims[i]);
        for (int64_t k = 0; k < rule[n].m; k++)
            rule[n].number[k] = (double)beyond(mode, k - pad[i], rule[n].n);
        n++;
    }
    return apply_all(b, l, rule, n);
}

/* Where in the operand element j lies; NAN: nobody can tell. */
static double source(const char *mode, double j, double scale, double n, double m)
{
    double center = (j + 0.5) / scale - 0.5;
    if (!strcmp(mode, "half_pixel"))
        return center;
    if (!strcmp(mode, "pytorch_half_pixel"))
        return m > 1 ? center : 0;
    if (!strcmp(mode, "half_pixel_symmetric"))
        return n / 2 * (1 - m / (scale * n)) + center;
    if (!strcmp(mode, "align_corners"))
        return m > 1 ? j * (n - 1) / (m - 1) : 0;
    return !strcmp(mode, "asymmetric") ? j / scale : (double)NAN;
}

static double rounded(const char *mode, double s)
{
    return !strcmp(mode, "floor")                ? floor(s)
           : !strcmp(mode, "ceil")               ? ceil(s)
           : !strcmp(mode, "round_prefer_ceil")  ? floor(s + 0.5)
           : !strcmp(mode, "round_prefer_floor") ? ceil(s - 0.5)
                                                 : (double)NAN;
}

/* Keys' piecewise cubic at distance d. */
static double cubic(double a, double d)
{
    d = fabs(d);
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* The scale of an axis: where the result was cut that is not the ratio of sizes. 0: it is not known. */
static double scale_of(const bz_layer *l, int axis)
{
    const char *at = word(l, "scales", NULL);
    for (int i = 0; i < axis && at; i++)
        at = strchr(at, 'x') ? strchr(at, 'x') + 1 : NULL;
    if (word(l, "scales", NULL))
        return at && !bz_node_attr(l->node, "axes") ? strtod(at, NULL) : 0;
    return (double)l->out[0].dims[axis] / (double)l->in[0].dims[axis];
}

static int fill_rule(const bz_layer *l, axis_rule *r)
{
    const char *at = word(l, "coordinates", "half_pixel"), *rounding = word(l, "round", "round_prefer_floor");
    const bz_param *number = bz_layer_param(l, "a");
    double a = number && number->text ? strtod(number->text, NULL) : -0.75;
    bool exclude = bz_layer_param(l, "exclude_outside");
    for (int64_t j = 0; j < r->m; j++) {
        double s = source(at, (double)j, scale_of(l, r->axis), (double)r->n, (double)r->m), first = floor(s), sum = 0;
        double *weight = r->weight + j * r->taps;
        if (!isfinite(r->taps > 1 ? s : rounded(rounding, s)))
            return -1;
        first = r->taps == 1 ? rounded(rounding, s) : r->taps == 4 ? first - 1 : first;
        for (int k = 0; k < r->taps; k++) {
            double d = s - first - k;
            bool out = first + k < 0 || first + k >= (double)r->n;
            r->number[j * r->taps + k] = (double)clamp(first + k, r->n);
            weight[k] = exclude && out ? 0 : r->taps == 1 ? 1 : r->taps == 2 ? 1 - fabs(d) : cubic(a, d);
            sum += weight[k];
        }
        for (int k = 0; k < r->taps && exclude && sum != 0; k++)
            weight[k] /= sum;
    }
    return 0;
}

/* Its rules for the axes that change; -1 with a sentence. */
static int find_rules(binder *b, const bz_layer *l, axis_rule *rule)
{
    const char *mode = word(l, "mode", "nearest");
    int n = 0, taps = !strcmp(mode, "nearest") ? 1 : strstr(mode, "linear") ? 2 : strstr(mode, "cubic") ? MOST_TAPS : 0;
    int scales = !strcmp(l->node->op, "Upsample") || l->node->opset <= 10 ? 1 : 2;
    bool sizes = scales == 2 && l->n_in > 3 && bz_type_elements(&l->in[3]) > 0;
    if (!sizes && scales < l->n_in && l->node->in[scales] >= 0 && !l->in_constant[scales])
        return bind_no(b, "by how much it resizes depends on data");
    if (!taps || bz_layer_param(l, "antialias") || l->in[0].rank != l->out[0].rank || bz_type_elements(&l->in[0]) < 1 ||
        bz_type_elements(&l->out[0]) < 1)
        return bind_no(b, "resizing with antialiasing is not replayed");
    for (int i = 0; i < l->in[0].rank; i++) {
        int64_t from = l->in[0].dims[i], to = l->out[0].dims[i];
        if (from == to && scale_of(l, i) == 1)
            continue;
        if (to > MOST_ALONG)
            return bind_no(b, "it is too long");
        rule[n] = new_rule(b, i, taps, from, to);
        if (fill_rule(l, &rule[n++]))
            return bind_no(b, "where it samples is not known, or depends on data");
    }
    return n;
}

int bind_resize(binder *b, const bz_layer *l)
{
    axis_rule rule[BZ_MAX_RANK];
    int n = l->in[0].rank > BZ_MAX_RANK ? -1 : find_rules(b, l, rule);
    return n < 0 ? -1 : apply_all(b, l, rule, n);
}

/* Libraries round halves up, and know only the ratio of sizes. */
int bind_resize_as_libraries(binder *b, const bz_layer *l)
{
    axis_rule rule[BZ_MAX_RANK];
    bool same = true;
    const char *at = word(l, "coordinates", "half_pixel");
    int n = l->in[0].rank > BZ_MAX_RANK ? -1 : find_rules(b, l, rule);
    for (int i = 0; i < n; i++)
        for (int64_t j = 0; j < rule[i].m; j++) {
            double s = ((double)j + 0.5) * (double)rule[i].n / (double)rule[i].m - 0.5;
            bool half = strstr(at, "half_pixel") != NULL;
            if (rule[i].taps == 1)
                same = same && (!half || rule[i].number[j] == (double)clamp(round(s), rule[i].n));
            else
                same = same && rule[i].number[2 * j] == (double)clamp(floor(s), rule[i].n);
        }
    return n < 0 ? -1 : same ? 0 : bind_no(b, "libraries sample at other places");
}
