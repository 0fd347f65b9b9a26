/* The neighbours of the tables' rows: models of one node that differ from a row in one thing. A number is one less, one more, nothing, -1,
 * twice as much, or at the end of 32 bits; an operand is gone, has a dimension more or less, or another type; an attribute is gone, or has a value that it has in another
 * row, or is one that another row of the operator has; the operator's set is another one. Most are what hardly any file holds. */
#ifndef BZ_MODELPROC_NEIGHBOURS_H
#define BZ_MODELPROC_NEIGHBOURS_H

#include <ctype.h>

#include "modelproc_ops_model.h"

#include "modelproc_gradient_cases.h"
#include "modelproc_limits_cases.h"

#define TABLE(t)                                                                                                       \
    {                                                                                                                  \
        t, sizeof(t) / sizeof *(t)                                                                                     \
    }
static const struct {
    const op_case *c;
    size_t n;
} NEAR[] = {TABLE(standard), TABLE(microsoft), TABLE(classical), TABLE(gradients), TABLE(limits)};
enum { N_NEAR = sizeof NEAR / sizeof *NEAR, MAX_OPERATORS = 1100 };
#undef TABLE

typedef void neighbour_fn(const op_case *c, void *user);

/* The row with another text in place of `n` bytes of its operands or attributes. */
static void replace(const op_case *row, bool in, const char *at, size_t n, const char *instead, neighbour_fn *f,
                    void *user)
{
    op_case c = *row;
    bz_buf text = {0};
    const char *whole = in ? row->in : row->attrs;
    bz_buf_put(&text, whole, (size_t)(at - whole));
    bz_buf_puts(&text, instead);
    bz_buf_puts(&text, at + n);
    *(in ? &c.in : &c.attrs) = bz_buf_text(&text);
    f(&c, user);
    bz_buf_free(&text);
}

static void change_numbers(const op_case *row, bool in, neighbour_fn *f, void *user)
{
    const char *text = in ? row->in : row->attrs;
    for (const char *at = text; *at; at++) {
        char before = at == text ? ' ' : at[-1], *end;
        if (!(isdigit((unsigned char)*at) || *at == '-') || !strchr(":x=,", before))
            continue;
        long long n = strtoll(at, &end, 10);
        if (end == at || *end == '.' || *end == 'e') /* an operand that is left out, a float */
            continue;
        const long long OTHER[] = {n - 1, n + 1, 0, -1, 2 * n, INT32_MAX, INT32_MAX + 1LL};
        for (int i = 0; i < 7; i++) {
            char number[32];
            snprintf(number, sizeof number, "%lld", OTHER[i]);
            replace(row, in, at, (size_t)(end - at), number, f, user);
        }
        at = end - 1;
    }
}

static void change_operands(const op_case *row, neighbour_fn *f, void *user)
{
    static const char *const TYPES[] = {"f32", "f16", "i64", "i32", "bool", "u8"};
    for (const char *at = row->in, *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, " ");
        size_t n = (size_t)(end - at), type = strcspn(at, ":=");
        if (!n || *at == '-' || *at == '>' || isupper((unsigned char)*at))
            continue;
        replace(row, true, at, n, "-", f, user);
        while (!strncmp(at, "seq:", 4))
            at += 4, n -= 4, type = strcspn(at, ":=");
        for (int t = 0; t < 6; t++)
            replace(row, true, at, type, TYPES[t], f, user);
        if (memchr(at, '=', n)) {
            replace(row, true, at, n, "i64:3", f, user); /* no constant */
            replace(row, true, end, 0, isdigit((unsigned char)end[-1]) ? ",1" : "1", f, user);
            continue;
        }
        replace(row, true, end, 0, end[-1] == ':' ? "1" : "x1", f, user);
        size_t shorter = n;
        while (at[shorter - 1] != 'x' && at[shorter - 1] != ':')
            shorter--;
        replace(row, true, at + shorter - (at[shorter - 1] == 'x'), n - shorter + (at[shorter - 1] == 'x'), "", f,
                user);
    }
}

/* Attributes of other rows: other values of `name`; of another name only where the operator is the same. */
static void borrow(const op_case *row, const char *at, size_t n, neighbour_fn *f, void *user)
{
    size_t name = n ? strcspn(at, "=") + 1 : 0;
    for (int t = 0; t < N_NEAR; t++)
        for (size_t i = 0; i < NEAR[t].n; i++) {
            const op_case *other = &NEAR[t].c[i];
            if (!other->attrs || (!name && strcmp(other->op, row->op) != 0))
                continue;
            for (const char *word = other->attrs, *end; *word; word = *end ? end + 1 : end) {
                end = word + strcspn(word, " ");
                bz_buf text = {0};
                bz_buf_puts(&text, !name && *row->attrs ? " " : "");
                bz_buf_put(&text, word, (size_t)(end - word));
                bool has = name ? !strncmp(word, at, name) && strchr("sS", word[name]) : true;
                for (const char *own = row->attrs; !name && *own && has; own += strcspn(own, " "), own += *own == ' ')
                    has = strncmp(own, word, strcspn(word, "=") + 1) != 0;
                if (has)
                    replace(row, false, at, n, bz_buf_text(&text), f, user);
                bz_buf_free(&text);
            }
        }
}

static void change_attributes(const op_case *row, neighbour_fn *f, void *user)
{
    for (const char *at = row->attrs, *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, " ");
        size_t n = (size_t)(end - at), value = strcspn(at, "=") + 1;
        replace(row, false, at, n + (*end == ' '), "", f, user);
        if (strchr("sS", at[value]))
            borrow(row, at, n, f, user);
        if (at[value] == 'I')
            replace(row, false, end, 0, ",1", f, user);
    }
    borrow(row, row->attrs + strlen(row->attrs), 0, f, user);
}

/* Calls f with the row and each of its neighbours. */
static void visit_neighbours(const op_case *of, neighbour_fn *f, void *user)
{
    op_case row = *of, c;
    if (!row.attrs)
        row.attrs = "";
    if (*row.out == '!')
        row.out = "f32:1";
    f(&row, user);
    change_numbers(&row, true, f, user);
    change_numbers(&row, false, f, user);
    change_operands(&row, f, user);
    change_attributes(&row, f, user);
    c = row;
    for (c.opset = 1; c.opset < 25 && !strchr(row.op, '.'); c.opset++)
        f(&c, user);
}

/* Each operator of the tables once; returns how many. */
static int near_operators(const char **ops)
{
    int n = 0;
    for (int t = 0; t < N_NEAR; t++)
        for (size_t i = 0; i < NEAR[t].n; i++) {
            int k = 0;
            while (k < n && strcmp(ops[k], NEAR[t].c[i].op) != 0)
                k++;
            assert_true(k < MAX_OPERATORS);
            ops[n] = NEAR[t].c[i].op;
            n += k == n;
        }
    return n;
}

#endif
