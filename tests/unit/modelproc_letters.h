/* Models of one node from a row of letters: sizes as expressions, to which a test gives numbers. */
#ifndef BZ_MODELPROC_LETTERS_H
#define BZ_MODELPROC_LETTERS_H

#include "modelproc/modelproc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modelproc_ops_model.h"

#include "modelproc_gradient_cases.h"

/* As op_case, but dimensions are expressions: "f32:Bx(H*D)". In attributes and values they stand in braces: "num_heads=i:{H}". A dimension
 * behind "!" is looked at: one larger is refused. Before an operand: "!" its rank is looked at, and that it is there; "?" it may be left
 * out, and nothing else changes. Before results: "~" not all of the operands are read, or it writes in place: bytes are not looked at. */
typedef struct {
    const char *op;
    int opset;
    const char *in, *attrs, *out, *macs; /* products; "products; operations; bytes" where they are told, too */
} by_letters;

#include "modelproc_letters_rows.h"

enum { LETTERS = 26, MAX_SIZES = 64 };

static int64_t sum_of(const char **at, const int64_t *v);

static int64_t factor_of(const char **at, const int64_t *v)
{
    if (isdigit((unsigned char)**at)) {
        char *end;
        int64_t n = strtoll(*at, &end, 10);
        *at = end;
        return n;
    }
    char c = *(*at)++;
    if (c != '(') {
        assert_true(isupper((unsigned char)c));
        return v[c - 'A'];
    }
    int64_t n = sum_of(at, v);
    assert_int_equal(*(*at)++, ')');
    return n;
}

static int64_t product_of(const char **at, const int64_t *v)
{
    int64_t n = factor_of(at, v);
    while (**at == '*' || **at == '/') {
        char op = *(*at)++;
        int64_t by = factor_of(at, v);
        n = op == '*' ? n * by : n / by;
    }
    return n;
}

static int64_t sum_of(const char **at, const int64_t *v)
{
    int64_t n = product_of(at, v);
    while (**at == '+' || **at == '-') {
        char op = *(*at)++;
        int64_t by = product_of(at, v);
        n = op == '+' ? n + by : n - by;
    }
    return n;
}

static int64_t value_of(const char *text, const int64_t *v)
{
    int64_t n = sum_of(&text, v);
    assert_int_equal(*text, 0);
    return n;
}

/* A change of one thing: dimension `size`, counted over all operands, is one larger; operand `rank` has a dimension more, or less; operand
 * `gone` is left out. -1: none. */
typedef struct {
    int size, rank, gone;
    bool less;
} change;

static const change NONE = {-1, -1, -1, false};

/* What the row says of its dimensions and operands. */
typedef struct {
    int n, n_operands;
    bool strict[MAX_SIZES];
    struct {
        bool optional, strict;
        int rank;
    } operand[MAX_SIZES];
} marks;

static void put_braces(bz_buf *out, const char *text, const int64_t *v)
{
    while (*text) {
        const char *end = *text == '{' ? strchr(text, '}') : NULL;
        if (!end) {
            bz_buf_putc(out, *text++);
            continue;
        }
        char expression[64];
        snprintf(expression, sizeof expression, "%.*s", (int)(end - text - 1), text + 1);
        bz_buf_int(out, value_of(expression, v));
        text = end + 1;
    }
}

static void put_sizes(bz_buf *out, char *dims, const int64_t *v, const change *c, marks *m)
{
    int k = m->n_operands, rank = 0;
    char *save = NULL;
    for (char *d = strtok_r(dims, "x", &save); d; d = strtok_r(NULL, "x", &save), rank++, m->n++) {
        m->strict[m->n] = *d == '!';
        d += *d == '!';
        if (c->rank == k && c->less && !save[0]) /* the last one */
            continue;
        bz_buf_puts(out, rank ? "x" : "");
        bz_buf_int(out, value_of(d, v) + (c->size == m->n));
    }
    if (c->rank == k && !c->less)
        bz_buf_puts(out, rank ? "x1" : "1");
    m->operand[k].rank = rank;
}

static void put_in(bz_buf *out, const by_letters *row, const int64_t *v, const change *c, marks *m)
{
    char copy[512], *save = NULL;
    snprintf(copy, sizeof copy, "%s", row->in);
    *m = (marks){0};
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save), m->n_operands++) {
        int k = m->n_operands;
        m->operand[k].optional = *word == '?';
        m->operand[k].strict = *word == '!';
        word += *word == '?' || *word == '!';
        bz_buf_puts(out, k ? " " : "");
        char *colon = strchr(word, ':');
        if (c->gone == k || *word == '-') {
            bz_buf_putc(out, '-');
            continue;
        }
        if (strchr(word, '=')) {
            put_braces(out, word, v);
            continue;
        }
        bz_buf_put(out, word, (size_t)(colon + 1 - word));
        put_sizes(out, colon + 1, v, c, m);
    }
}

static void put_out(bz_buf *out, const by_letters *row, const int64_t *v)
{
    char copy[512], *save = NULL, *inner = NULL;
    snprintf(copy, sizeof copy, "%s", row->out + (*row->out == '~'));
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        bz_buf_puts(out, out->len ? " " : "");
        char *colon = strchr(word, ':');
        bz_buf_put(out, word, (size_t)(colon + 1 - word));
        if (!strcmp(colon + 1, "scalar")) {
            bz_buf_puts(out, "scalar");
            continue;
        }
        int rank = 0;
        for (char *d = strtok_r(colon + 1, "x", &inner); d; d = strtok_r(NULL, "x", &inner), rank++) {
            bz_buf_puts(out, rank ? "x" : "");
            bz_buf_int(out, value_of(d, v));
        }
    }
}

typedef struct {
    bz_buf in, attrs, out;
    inferred model;
    marks marks;
} tried;

static void try_row(tried *t, const by_letters *row, const int64_t *v, change c)
{
    *t = (tried){0};
    put_in(&t->in, row, v, &c, &t->marks);
    put_braces(&t->attrs, row->attrs, v);
    put_out(&t->out, row, v);
    const op_case plain = {row->op, row->opset, bz_buf_text(&t->in), bz_buf_text(&t->attrs), bz_buf_text(&t->out), -1};
    infer_case(&t->model, &plain, false);
}

static void end_try(tried *t)
{
    end_case(&t->model);
    bz_buf_free(&t->in);
    bz_buf_free(&t->attrs);
    bz_buf_free(&t->out);
}

#endif
