/* A recursive descent over fractions: "(s0 + 1)/2" is whole where s0 is odd, and only the end tells. */
#include "modelproc/dimension.h"

#include "onnx/onnx.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH = 32 };

typedef struct {
    int64_t n, d; /* d > 0; no common factor */
} fraction;

typedef struct {
    const char *at, *missing;
    dimension_known *known;
    void *context;
    int depth;
} reader;

static bool sum(reader *r, fraction *out);

static void skip_blanks(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

static bool accept(reader *r, const char *sign)
{
    skip_blanks(r);
    size_t n = strlen(sign);
    if (strncmp(r->at, sign, n) != 0)
        return false;
    r->at += n;
    return true;
}

size_t dimension_name(const char *text)
{
    size_t n = 0;
    if (!isalpha((unsigned char)*text) && *text != '_')
        return 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_' || text[n] == '.')
        n++;
    return n;
}

static bool reduce(int64_t n, int64_t d, fraction *out)
{
    if (d == 0 || n == INT64_MIN || d == INT64_MIN)
        return false;
    if (d < 0)
        n = -n, d = -d;
    int64_t a = n < 0 ? -n : n, b = d;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    *out = (fraction){n / a, d / a};
    return true;
}

static bool times(fraction a, fraction b, fraction *out)
{
    int64_t n, d;
    return !__builtin_mul_overflow(a.n, b.n, &n) && !__builtin_mul_overflow(a.d, b.d, &d) && reduce(n, d, out);
}

static bool plus(fraction a, fraction b, fraction *out)
{
    int64_t left, right, n, d;
    return !__builtin_mul_overflow(a.n, b.d, &left) && !__builtin_mul_overflow(b.n, a.d, &right) &&
           !__builtin_add_overflow(left, right, &n) && !__builtin_mul_overflow(a.d, b.d, &d) && reduce(n, d, out);
}

static int64_t floor_of(fraction a)
{
    return a.n / a.d - (a.n % a.d < 0);
}

/* a / b, floored; then what is left of a. */
static bool divide_whole(fraction a, fraction b, bool rest, fraction *out)
{
    fraction whole, back;
    if (b.n == 0 || !times(a, (fraction){b.n < 0 ? -b.d : b.d, b.n < 0 ? -b.n : b.n}, out))
        return false;
    whole = (fraction){floor_of(*out), 1};
    if (!rest) {
        *out = whole;
        return true;
    }
    return times(whole, (fraction){-b.n, b.d}, &back) && plus(a, back, out);
}

static bool less(fraction a, fraction b)
{
    fraction difference;
    return plus(a, (fraction){-b.n, b.d}, &difference) && difference.n < 0;
}

/* What is behind a name and "(": floor and ceiling of one, Max and Min of several. */
static bool call_of(reader *r, const char *name, size_t length, fraction *out)
{
    static const struct {
        const char *name;
        int kind;
    } CALLS[] = {{"Max", 0}, {"max", 0}, {"Min", 1}, {"min", 1}, {"floor", 2}, {"ceiling", 3}, {"ceil", 3}};
    int kind = -1;
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (strlen(CALLS[i].name) == length && !strncmp(CALLS[i].name, name, length))
            kind = CALLS[i].kind;
    if (kind < 0 || !sum(r, out))
        return false;
    while (kind < 2 && accept(r, ",")) {
        fraction next;
        if (!sum(r, &next))
            return false;
        *out = less(next, *out) == (kind == 1) ? next : *out;
    }
    if (kind >= 2)
        *out = (fraction){floor_of(*out) + (kind == 3 && out->d > 1), 1};
    return accept(r, ")");
}

static bool number(reader *r, fraction *out)
{
    *out = (fraction){0, 1};
    for (; isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(out->n, 10, &out->n) || __builtin_add_overflow(out->n, *r->at - '0', &out->n))
            return false;
    return true;
}

static bool factor(reader *r, fraction *out)
{
    skip_blanks(r);
    if (isdigit((unsigned char)*r->at))
        return number(r, out);
    if (accept(r, "-")) {
        if (++r->depth > DEPTH || !factor(r, out))
            return false;
        r->depth--;
        out->n = -out->n;
        return true;
    }
    if (accept(r, "("))
        return sum(r, out) && accept(r, ")");
    const char *name = r->at;
    size_t length = dimension_name(name);
    r->at += length;
    if (length && accept(r, "("))
        return call_of(r, name, length, out);
    int64_t value;
    if (!length || !r->known(r->context, name, length, &value)) {
        r->missing = length ? name : NULL;
        return false;
    }
    *out = (fraction){value, 1};
    return true;
}

static bool product(reader *r, fraction *out)
{
    if (!factor(r, out))
        return false;
    for (;;) {
        fraction next;
        bool whole = accept(r, "//"), rest = !whole && accept(r, "%"), exact = !whole && !rest && accept(r, "/");
        if (!whole && !rest && !exact && !accept(r, "*"))
            return true;
        if (!factor(r, &next))
            return false;
        if (exact && (!reduce(next.d, next.n, &next)))
            return false;
        if (whole || rest ? !divide_whole(*out, next, rest, out) : !times(*out, next, out))
            return false;
    }
}

static bool sum(reader *r, fraction *out)
{
    if (++r->depth > DEPTH || !product(r, out))
        return false;
    for (;;) {
        fraction next;
        bool minus = accept(r, "-");
        if (!minus && !accept(r, "+"))
            break;
        if (!product(r, &next))
            return false;
        next.n = minus ? -next.n : next.n;
        if (!plus(*out, next, out))
            return false;
    }
    r->depth--;
    return true;
}

bool dimension_compute(const char *text, dimension_known *known, void *context, int64_t *number_out,
                       const char **missing)
{
    reader r = {.at = text, .known = known, .context = context};
    fraction result;
    bool done = sum(&r, &result);
    skip_blanks(&r);
    if (missing)
        *missing = done ? NULL : r.missing;
    if (!done || *r.at || result.d != 1 || result.n < 0 || result.n > BZ_MAX_DIM)
        return false;
    *number_out = result.n;
    return true;
}
