/* What operators of PyTorch compute, by the shapes that its profiler wrote: products and convolutions. */
#include "tables/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 8, OPERANDS = 8 };

typedef struct shape {
    int n;
    double d[DIMS];
} shape;

typedef enum { RULE_PRODUCT, RULE_LINEAR, RULE_CONV } rule;
static const struct {
    const char *name;
    rule rule;
    int first; /* the operand that is multiplied */
} RULES[] = {{"^aten::mm$ ^aten::bmm$ ^aten::matmul$", RULE_PRODUCT, 0},
             {"^aten::addmm$ ^aten::baddbmm$", RULE_PRODUCT, 1},
             {"^aten::linear$", RULE_LINEAR, 0},
             {"^aten::conv1d$ ^aten::conv2d$ ^aten::conv3d$ ^aten::convolution$ ^aten::_convolution$", RULE_CONV, 0}};

/* The next list of numbers, "[8,64]", at or behind `p`; NULL: there is none, or it is no flat list. */
static const char *read_list(const char *p, shape *s)
{
    *s = (shape){0};
    if (*p != '[')
        return NULL;
    for (p++; *p && *p != ']';) {
        char *end;
        double v = strtod(p, &end);
        if (end == p || s->n == DIMS || !(v >= 0) || v > 1e12)
            return NULL;
        s->d[s->n++] = v;
        p = end + strspn(end, ",_ ");
    }
    return *p ? p + 1 : NULL;
}

/* "[[8,64],[64,64],[],…]": as many lists as can be read. */
static int read_shapes(const char *p, shape *s)
{
    int n = 0;
    if (!p || *p++ != '[')
        return 0;
    while (n < OPERANDS && (p = read_list(p, &s[n])) != NULL) {
        n++;
        if (*p++ != ',')
            break;
    }
    return n;
}

static const char *member(const char *detail, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = detail; (p = strstr(p, name)) != NULL; p += n)
        if ((p == detail || p[-1] == ' ') && p[n] == '=')
            return p + n + 1;
    return NULL;
}

static double elements(const shape *s)
{
    double n = 1;
    for (int i = 0; i < s->n; i++)
        n *= s->d[i];
    return s->n ? n : 0;
}

/* Stride, padding and dilation are the values 3 to 5: ",,,[2,_2],[3,_3],[1,_1],…". Those of aten::convolution go on with whether it is
 * transposed, and then how much longer the result is, and the number of groups: "True,[1,_1],2,…". */
static double conv_outputs(const char *values, const shape *x, const shape *w, double *products)
{
    shape of[3], longer = {0};
    const char *p = values && *values == '[' ? values + 1 : NULL;
    for (int skip = 0; p && skip < 3; skip++) {
        if (*p == '[') {
            shape ignored;
            p = read_list(p, &ignored);
        }
        p = p ? strchr(p, ',') : NULL;
        p = p ? p + 1 : NULL;
    }
    for (int k = 0; k < 3; k++) {
        p = p ? read_list(p, &of[k]) : NULL;
        if (!p || of[k].n != x->n - 2)
            return NAN;
        p += *p == ',';
    }
    bool transposed = !strncmp(p, "True,", 5);
    double n = x->d[0] * w->d[0];
    if (transposed) { /* weights: [channels read, channels made / groups, …] */
        p = read_list(p + 5, &longer);
        if (!p || longer.n != x->n - 2)
            return NAN;
        n = x->d[0] * w->d[1] * strtod(p + (*p == ','), NULL);
    }
    for (int i = 0; i < x->n - 2; i++) {
        double stride = of[0].d[i], padding = 2 * of[1].d[i], kernel = of[2].d[i] * (w->d[i + 2] - 1) + 1;
        if (stride < 1)
            return NAN;
        n *= transposed ? (x->d[i + 2] - 1) * stride - padding + kernel + longer.d[i]
                        : floor((x->d[i + 2] + padding - kernel) / stride) + 1;
    }
    *products = (transposed ? elements(x) : n) * elements(w) / w->d[0];
    return n;
}

/* Of a of […, M, K] and b of […, K, N]: what stands before M and K is repeated where it is 1. A list of one is a vector. */
static double product_outputs(const shape *a, const shape *b)
{
    double n = (a->n > 1 ? a->d[a->n - 2] : 1) * (b->n > 1 ? b->d[b->n - 1] : 1);
    for (int i = 3; i <= a->n || i <= b->n; i++) {
        double p = i <= a->n ? a->d[a->n - i] : 1, q = i <= b->n ? b->d[b->n - i] : 1;
        n *= p == 1 ? q : p;
    }
    return n;
}

static int bytes_of(const char *types)
{
    static const struct {
        const char *name;
        int bytes;
    } TYPES[] = {{"double", 8}, {"float", 4}, {"c10::Half", 2},  {"c10::BFloat16", 2},
                 {"long", 8},   {"int", 4},   {"signed_char", 1}};
    for (size_t i = 0; types && i < sizeof TYPES / sizeof *TYPES; i++)
        if (!strncmp(types + (*types == '['), TYPES[i].name, strlen(TYPES[i].name)))
            return TYPES[i].bytes;
    return 4;
}

bool layer_work_of(const bz_trace *t, size_t op, layer_work *w)
{
    const bz_events *e = &t->event[BZ_EVENT_OP];
    const char *name = bz_string(t, e->name[op]), *detail = e->detail[op] ? bz_string(t, e->detail[op]) : "";
    size_t r = 0;
    shape s[OPERANDS];
    if (strncmp(name, "aten::", 6) != 0)
        return false;
    while (r < sizeof RULES / sizeof *RULES && !bz_name_matches_any(RULES[r].name, name))
        r++;
    if (r == sizeof RULES / sizeof *RULES)
        return false;
    int n = read_shapes(member(detail, "inputs"), s), k = RULES[r].first;
    if (n < k + 2 || s[k].n < 1 || s[k + 1].n < 1)
        return false;
    const shape *a = &s[k], *b = &s[k + 1];
    double outputs, products = NAN;
    if (RULES[r].rule == RULE_CONV) {
        if (a->n < 3 || b->n != a->n)
            return false;
        outputs = conv_outputs(member(detail, "values"), a, b, &products);
    } else {
        double deep = a->d[a->n - 1];
        outputs = RULES[r].rule == RULE_PRODUCT ? product_outputs(a, b) : deep > 0 ? elements(a) / deep * b->d[0] : 0;
        products = outputs * deep;
    }
    int bytes = bytes_of(member(detail, "types"));
    *w = (layer_work){2 * products, (elements(a) + elements(b)) * bytes, outputs * bytes, bytes};
    return isfinite(w->flops) && w->flops > 0;
}
