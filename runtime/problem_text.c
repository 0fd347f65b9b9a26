/* Problem texts: printing, reading, writing as C. */
#include "base/choice.h"
#include "runtime/kind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_numbers(bz_buf *out, const int64_t *v, int n, const char *between)
{
    for (int i = 0; i < n; i++) {
        if (i)
            bz_buf_puts(out, between);
        bz_buf_int(out, v[i]);
    }
}

/* The shortest decimal that reads back as the same float. */
static void put_real(bz_buf *out, float v)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (strtof(text, NULL) == v)
            break;
    }
    bz_buf_puts(out, text);
}

static void put_post(const bz_problem *p, bz_buf *out)
{
    for (int i = 0; p->post[i].fn; i++) {
        bz_buf_puts(out, i ? "," : " post=");
        bz_buf_puts(out, bz_fn_name(p->post[i].fn));
        if (bz_fn_parameters(p->post[i].fn) > 0) {
            bz_buf_putc(out, ':');
            put_real(out, p->post[i].alpha);
        }
        if (bz_fn_parameters(p->post[i].fn) > 1) {
            bz_buf_putc(out, ':');
            put_real(out, p->post[i].beta);
        }
    }
}

static bool is_function(const bz_problem *p)
{
    return p->kind == BZ_PROBLEM_ACTIVATION || p->kind == BZ_PROBLEM_ACTIVATION_GRAD;
}

/* alpha and beta of an activation are printed where the function has them. */
static bool is_printed(const bz_problem *p, const bz_member *m)
{
    if (!m->optional)
        return true;
    if (m->at == offsetof(bz_problem, activation.alpha) && is_function(p))
        return bz_fn_parameters(p->activation.fn) > 0;
    if (m->at == offsetof(bz_problem, activation.beta) && is_function(p))
        return bz_fn_parameters(p->activation.fn) > 1;
    if (m->form == BZ_FORM_FLAG)
        return BZ_CONST_FIELD(bool, p, m) != (m->usual != 0);
    if (m->form == BZ_FORM_EXTENT)
        return bz_member_given(p, m);
    if (m->form == BZ_FORM_INT)
        return *bz_member_numbers(p, m) != (int64_t)m->usual;
    return BZ_CONST_FIELD(float, p, m) != (float)m->usual;
}

void bz_problem_print(const bz_problem *p, bz_buf *out)
{
    bz_buf_puts(out, bz_kinds[p->kind]->name);
    for (const bz_member *m = bz_kinds[p->kind]->member; m->form; m++) {
        if (!is_printed(p, m))
            continue;
        bz_buf_putc(out, ' ');
        bz_buf_puts(out, m->name);
        bz_buf_putc(out, '=');
        if (m->form == BZ_FORM_FLAG)
            bz_buf_putc(out, BZ_CONST_FIELD(bool, p, m) ? '1' : '0');
        else if (m->form == BZ_FORM_REAL)
            put_real(out, BZ_CONST_FIELD(float, p, m));
        else if (m->form == BZ_FORM_FN)
            bz_buf_puts(out, bz_fn_name(BZ_CONST_FIELD(bz_fn, p, m)));
        else if (m->form == BZ_FORM_NAME)
            bz_buf_puts(out, m->names[BZ_CONST_FIELD(unsigned, p, m)]);
        else
            put_numbers(out, bz_member_numbers(p, m), bz_member_given(p, m), "x");
    }
    put_post(p, out);
    bz_buf_puts(out, " dtype=");
    bz_buf_puts(out, bz_dtype_name(p->dtype));
    if (p->dtype_w != p->dtype || p->dtype_y != p->dtype)
        bz_buf_printf(out, ":%s:%s", bz_dtype_name(p->dtype_w), bz_dtype_name(p->dtype_y));
}

const char *bz_problem_text(const bz_problem *p, bz_arena *arena)
{
    bz_buf text = {0};
    bz_problem_print(p, &text);
    return bz_buf_keep(&text, arena);
}

static void put_upper(bz_buf *out, const char *prefix, const char *name)
{
    bz_buf_puts(out, prefix);
    for (; *name; name++)
        bz_buf_putc(out, (char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name));
}

static void put_c_real(bz_buf *out, float v)
{
    size_t from = out->len;
    put_real(out, v);
    if (!strpbrk(bz_buf_text(out) + from, ".e"))
        bz_buf_puts(out, ".0");
    bz_buf_putc(out, 'f');
}

/* .post = {{.fn = BZ_FN_BIAS}, {.fn = BZ_FN_CLIP, .alpha = 0.0f, .beta = 6.0f}}, */
static void put_c_post(const bz_problem *p, int indent, bz_buf *out)
{
    if (!p->post[0].fn)
        return;
    bz_buf_printf(out, "%*s.post = {", indent, "");
    for (int i = 0; p->post[i].fn; i++) {
        put_upper(out, i ? ", {.fn = BZ_FN_" : "{.fn = BZ_FN_", bz_fn_name(p->post[i].fn));
        if (bz_fn_parameters(p->post[i].fn) > 0) {
            bz_buf_puts(out, ", .alpha = ");
            put_c_real(out, p->post[i].alpha);
        }
        if (bz_fn_parameters(p->post[i].fn) > 1) {
            bz_buf_puts(out, ", .beta = ");
            put_c_real(out, p->post[i].beta);
        }
        bz_buf_putc(out, '}');
    }
    bz_buf_puts(out, "},\n");
}

void bz_problem_print_c(const bz_problem *p, int indent, bz_buf *out)
{
    const bz_kind *kind = bz_kinds[p->kind];
    bz_buf_printf(out, "%*s.kind = ", indent, "");
    put_upper(out, "BZ_PROBLEM_", kind->name);
    bz_buf_printf(out, ",\n%*s.%s = {\n", indent, "", kind->field ? kind->field : kind->name);
    for (const bz_member *m = kind->member; m->form; m++) {
        if (!is_printed(p, m) && m->form != BZ_FORM_INT) /* a number that is not written would be 0 */
            continue;
        bz_buf_printf(out, "%*s.%s = ", indent + 4, "", m->name);
        if (m->form == BZ_FORM_INT) {
            bz_buf_int(out, *bz_member_numbers(p, m));
        } else if (m->form == BZ_FORM_FLAG) {
            bz_buf_puts(out, BZ_CONST_FIELD(bool, p, m) ? "true" : "false");
        } else if (m->form == BZ_FORM_REAL) {
            put_c_real(out, BZ_CONST_FIELD(float, p, m));
        } else if (m->form == BZ_FORM_FN) {
            put_upper(out, "BZ_FN_", bz_fn_name(BZ_CONST_FIELD(bz_fn, p, m)));
        } else if (m->form == BZ_FORM_NAME) {
            put_upper(out, m->prefix, m->names[BZ_CONST_FIELD(unsigned, p, m)]);
        } else {
            bz_buf_putc(out, '{');
            put_numbers(out, bz_member_numbers(p, m), bz_member_given(p, m), ", ");
            bz_buf_putc(out, '}');
        }
        bz_buf_puts(out, ",\n");
    }
    bz_buf_printf(out, "%*s},\n", indent, "");
    put_c_post(p, indent, out);
    bz_buf_printf(out, "%*s", indent, "");
    put_upper(out, ".dtype = BZ_", bz_dtype_name(p->dtype));
    if (p->dtype_w != p->dtype || p->dtype_y != p->dtype) {
        put_upper(out, ", .dtype_w = BZ_", bz_dtype_name(p->dtype_w));
        put_upper(out, ", .dtype_y = BZ_", bz_dtype_name(p->dtype_y));
    }
    bz_buf_puts(out, ",\n");
}

/* A piece of the text, not terminated. */
typedef struct piece {
    const char *s;
    int n;
} piece;

static bool piece_is(piece p, const char *text)
{
    return (int)strlen(text) == p.n && !memcmp(p.s, text, (size_t)p.n);
}

/* Splits off what stands before the first `c`; the whole where there is none. */
static piece piece_until(piece *rest, char c)
{
    const char *end = memchr(rest->s, c, (size_t)rest->n);
    piece head = {rest->s, end ? (int)(end - rest->s) : rest->n};
    int skip = end ? head.n + 1 : head.n;
    rest->s += skip;
    rest->n -= skip;
    return head;
}

static int read_int(piece p, int64_t *v)
{
    *v = 0;
    if (p.n < 1 || p.n > 16)
        return -1;
    for (int i = 0; i < p.n; i++) {
        if (p.s[i] < '0' || p.s[i] > '9')
            return -1;
        *v = *v * 10 + (p.s[i] - '0');
    }
    return 0;
}

static int read_real(piece p, float *v)
{
    char text[40], *end;
    if (p.n < 1 || p.n >= (int)sizeof text)
        return -1;
    memcpy(text, p.s, (size_t)p.n);
    text[p.n] = 0;
    if (strspn(text, "0123456789+-.e") != (size_t)p.n) /* no hex, no inf, no locale's marks */
        return -1;
    *v = strtof(text, &end);
    return *end || !isfinite(*v) ? -1 : 0;
}

static int read_numbers(piece p, int64_t *v, int n_max)
{
    int n = 0;
    do {
        if (n >= n_max || read_int(piece_until(&p, 'x'), &v[n++]))
            return -1;
    } while (p.n);
    return p.s[-1] == 'x' ? -1 : n;
}

static int read_dtype(piece p, bz_dtype *t)
{
    /* what oneDNN and many tools call i8 and i32 */
    if (p.n > 1 && p.s[0] == 's' && p.s[1] != 't') {
        *t = piece_is(p, "s8") ? BZ_I8 : piece_is(p, "s32") ? BZ_I32 : BZ_UNDEFINED;
        return *t ? 0 : -1;
    }
    for (bz_dtype d = BZ_UNDEFINED + 1; d < BZ_N_DTYPES; d++)
        if (bz_dtype_bits(d) && piece_is(p, bz_dtype_name(d))) {
            *t = d;
            return 0;
        }
    return -1;
}

static int read_dtypes(piece p, bz_problem *out)
{
    if (read_dtype(piece_until(&p, ':'), &out->dtype))
        return -1;
    if (!p.n)
        return 0;
    if (read_dtype(piece_until(&p, ':'), &out->dtype_w) || !p.n)
        return -1;
    return read_dtype(p, &out->dtype_y);
}

static int read_post(piece p, bz_problem *out)
{
    for (int i = 0; p.n; i++) {
        piece one = piece_until(&p, ',');
        piece name = piece_until(&one, ':');
        bz_fn fn = bz_fn_find(name.s, (size_t)name.n);
        if (i == BZ_PROBLEM_POST || !fn || !bz_fn_is_post(fn))
            return -1;
        out->post[i].fn = fn;
        if (one.n && (bz_fn_parameters(fn) < 1 || read_real(piece_until(&one, ':'), &out->post[i].alpha)))
            return -1;
        if (one.n && (bz_fn_parameters(fn) < 2 || read_real(one, &out->post[i].beta)))
            return -1;
    }
    return 0;
}

static int read_member(piece value, const bz_member *m, bz_problem *p)
{
    int64_t v;
    int64_t *target = (int64_t *)(void *)((char *)p + m->at);
    switch (m->form) {
    case BZ_FORM_INT:
        return read_int(value, target);
    case BZ_FORM_FLAG:
        if (read_int(value, &v) || v > 1)
            return -1;
        BZ_FIELD(bool, p, m) = v;
        return 0;
    case BZ_FORM_REAL:
        return read_real(value, &BZ_FIELD(float, p, m));
    case BZ_FORM_FN:
        BZ_FIELD(bz_fn, p, m) = bz_fn_find(value.s, (size_t)value.n);
        return BZ_FIELD(bz_fn, p, m) ? 0 : -1;
    case BZ_FORM_NAME:
        for (unsigned i = 0; m->names[i]; i++)
            if (piece_is(value, m->names[i])) {
                BZ_FIELD(unsigned, p, m) = i;
                return 0;
            }
        return -1;
    case BZ_FORM_EXTENT:
    case BZ_FORM_SIZES:
        return value.n && read_numbers(value, target, bz_member_length(p, m)) > 0 ? 0 : -1;
    default:
        return value.n && read_numbers(value, target, bz_member_length(p, m)) == bz_member_length(p, m) ? 0 : -1;
    }
}

/* Reads the members of one form class: shapes in a first pass, the rest in a second. */
static int read_pass(piece rest, bz_problem *p, bool shapes, unsigned *seen, bz_error *err)
{
    while (rest.n) {
        piece value = piece_until(&rest, ' ');
        if (!value.n)
            continue;
        piece whole = value, name = piece_until(&value, '=');
        if (piece_is(name, "post") || piece_is(name, "dtype")) {
            unsigned bit = piece_is(name, "post") ? 1U << 31 : 1U << 30;
            if (!shapes)
                continue;
            if ((*seen & bit) || (bit >> 31 ? read_post(value, p) : read_dtypes(value, p)))
                return bz_fail(err, BZ_BAD_INPUT, "problem: '%.*s' cannot be read", whole.n, whole.s);
            *seen |= bit;
            continue;
        }
        const bz_member *m = bz_kinds[p->kind]->member;
        while (m->form && !piece_is(name, m->name))
            m++;
        if (!m->form)
            return bz_fail(err, BZ_BAD_INPUT, "problem: a %s has no '%.*s'", bz_kinds[p->kind]->name, name.n, name.s);
        if ((m->form == BZ_FORM_EXTENT) != shapes)
            continue;
        unsigned bit = 1U << (m - bz_kinds[p->kind]->member);
        if ((*seen & bit) || read_member(value, m, p))
            return bz_fail(err, BZ_BAD_INPUT, "problem: '%.*s' cannot be read%s", whole.n, whole.s,
                           *seen & bit ? ": it is there twice" : "");
        *seen |= bit;
    }
    return 0;
}

static void set_usual(bz_problem *p, const bz_member *m)
{
    int64_t *target = (int64_t *)(void *)((char *)p + m->at);
    switch (m->form) {
    case BZ_FORM_INT:
    case BZ_FORM_SPATIAL:
    case BZ_FORM_PADS:
        for (int i = 0; i < bz_member_length(p, m); i++)
            target[i] = (int64_t)m->usual;
        break;
    case BZ_FORM_FLAG:
        BZ_FIELD(bool, p, m) = m->usual != 0;
        break;
    case BZ_FORM_REAL:
        BZ_FIELD(float, p, m) = (float)m->usual;
        break;
    case BZ_FORM_FN:
        BZ_FIELD(bz_fn, p, m) = (bz_fn)m->usual;
        break;
    default:
        break;
    }
}

static int no_kind(piece typed, bz_error *err)
{
    const char *names[BZ_PROBLEM_N_KINDS];
    char name[40];
    int n = 0;
    for (bz_problem_kind k = BZ_PROBLEM_NONE + 1; k < BZ_PROBLEM_N_KINDS; k++)
        names[n++] = bz_kinds[k]->name;
    snprintf(name, sizeof name, "%.*s", typed.n, typed.s);
    const char *meant = bz_choice_meant(name, names, n);
    return bz_fail(err, BZ_BAD_INPUT, "problem: there is no kind '%.*s'%s%s%s", typed.n, typed.s,
                   meant ? ": did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

int bz_problem_parse(const char *text, bz_problem *p, bz_error *err)
{
    size_t n = strlen(text);
    if (n > 4096)
        return bz_fail(err, BZ_BAD_INPUT, "problem: the text is longer than 4096 bytes");
    piece rest = {text, (int)n};
    piece name = piece_until(&rest, ' ');
    *p = (bz_problem){0};
    for (bz_problem_kind k = BZ_PROBLEM_NONE + 1; k < BZ_PROBLEM_N_KINDS; k++)
        if (piece_is(name, bz_kinds[k]->name))
            p->kind = k;
    if (!p->kind)
        return no_kind(name, err);
    unsigned seen = 0;
    if (read_pass(rest, p, true, &seen, err))
        return -1;
    if (bz_problem_rank(p) > 2 + BZ_PROBLEM_SPATIAL)
        for (const bz_member *m = bz_kinds[p->kind]->member; m->form; m++)
            if (m->form == BZ_FORM_SPATIAL || m->form == BZ_FORM_PADS)
                return bz_fail(err, BZ_BAD_INPUT, "problem: a %s has at most three spatial dimensions",
                               bz_kinds[p->kind]->name);
    for (const bz_member *m = bz_kinds[p->kind]->member; m->form; m++)
        if (m->form != BZ_FORM_EXTENT && !isnan(m->usual))
            set_usual(p, m);
    if (read_pass(rest, p, false, &seen, err))
        return -1;
    for (const bz_member *m = bz_kinds[p->kind]->member; m->form; m++)
        if (isnan(m->usual) && !(seen & 1U << (m - bz_kinds[p->kind]->member)))
            return bz_fail(err, BZ_BAD_INPUT, "problem: a %s needs '%s='", bz_kinds[p->kind]->name, m->name);
    if (!p->dtype) /* as in keys of layers, which tables print */
        p->dtype = BZ_F32;
    return bz_problem_normalize(p, err);
}
