/* Operators by letters: a row says sizes of operands and results as expressions of letters, as the operator's specification does. Letters get
 * numbers, several times; then types, products and bytes must be what the row says. Each size that is another one makes another key. What
 * does not fit is refused, where the row says that the operator looks. */
#include "chance.h"
#include "modelproc/modelproc.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_ops_model.h"

#include "modelproc_gradient_cases.h"

/* As op_case, but dimensions are expressions: "f32:Bx(H*D)". In attributes and values they stand in braces: "num_heads=i:{H}". A dimension
 * behind "!" is looked at: one larger is refused. Before an operand: "!" its rank is looked at, and that it is there; "?" it may be left
 * out, and nothing else changes. Before results: "~" not all of the operands are read, or it writes in place: bytes are not looked at. */
typedef struct {
    const char *op;
    int opset;
    const char *in, *attrs, *out, *macs;
} by_letters;

#include "modelproc_letters_rows.h"

enum { LETTERS = 26, MAX_SIZES = 64 };

/* ---- expressions ---------------------------------------------------------------------------------- */

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

/* ---- rows with numbers ------------------------------------------------------------------------------ */

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

/* ---- the check -------------------------------------------------------------------------------------- */

typedef struct {
    bz_buf in, attrs, out, bytes;
    bz_model *model;
    bz_layers *layers; /* NULL: refused */
    bz_error err;
    marks marks;
} tried;

static void try_row(tried *t, const by_letters *row, const int64_t *v, change c)
{
    *t = (tried){0};
    put_in(&t->in, row, v, &c, &t->marks);
    put_braces(&t->attrs, row->attrs, v);
    put_out(&t->out, row, v);
    const op_case plain = {row->op, row->opset, bz_buf_text(&t->in), bz_buf_text(&t->attrs), bz_buf_text(&t->out), -1};
    t->bytes = write_model(&plain);
    if (!bz_model_parse(t->bytes.data, t->bytes.len, row->op, &t->model, &t->err) &&
        bz_layers_infer(t->model, &(bz_infer_options){0}, &t->layers, &t->err))
        t->layers = NULL;
}

static void end_try(tried *t)
{
    bz_layers_free(t->layers);
    bz_model_free(t->model);
    bz_buf_free(&t->in);
    bz_buf_free(&t->attrs);
    bz_buf_free(&t->out);
    bz_buf_free(&t->bytes);
}

static const bz_layer *last_of(const tried *t)
{
    return &t->layers->layer[t->layers->n - 1];
}

/* Each tensor once, a byte for what is begun of one. */
static int64_t bytes_of(const bz_layer *l)
{
    int64_t sum = 0;
    for (int k = 0; k < l->n_in + l->n_out; k++) {
        const bz_type *t = k < l->n_in ? &l->in[k] : &l->out[k - l->n_in];
        int64_t bits = t->kind == BZ_TYPE_TENSOR ? bz_dtype_bits(t->dtype) : 0;
        for (int i = 0; bits && i < t->rank; i++)
            bits *= t->dims[i];
        sum += (bits + 7) / 8;
    }
    return sum;
}

static int say(const by_letters *row, const tried *t, const char *what)
{
    print_error("%s-%d(%s) {%s}: %s\n", row->op, row->opset, bz_buf_text(&t->in), bz_buf_text(&t->attrs), what);
    return 1;
}

static int check_result(const by_letters *row, const tried *t, const int64_t *v)
{
    if (!t->layers)
        return say(row, t, t->err.text);
    const bz_layer *l = last_of(t);
    bz_buf found = {0};
    char text[400];
    int wrong = 0;
    for (int k = 0; k < l->n_out; k++) {
        bz_buf_printf(&found, "%s%s:", k ? " " : "",
                      l->out[k].kind == BZ_TYPE_TENSOR ? bz_dtype_name(l->out[k].dtype) : "");
        bz_type_text(NULL, &l->out[k], &found);
    }
    if (strcmp(bz_buf_text(&found), bz_buf_text(&t->out)) != 0) {
        snprintf(text, sizeof text, "%s, not %s", bz_buf_text(&found), bz_buf_text(&t->out));
        wrong += say(row, t, text);
    }
    bz_buf_free(&found);
    if (row->macs && l->macs != value_of(row->macs, v)) {
        snprintf(text, sizeof text, "%lld products, not %lld", (long long)l->macs, (long long)value_of(row->macs, v));
        wrong += say(row, t, text);
    }
    if (*row->out != '~' && l->class != BZ_VIEW && l->bytes != bytes_of(l)) {
        snprintf(text, sizeof text, "%lld bytes, not %lld", (long long)l->bytes, (long long)bytes_of(l));
        wrong += say(row, t, text);
    }
    return wrong;
}

static int expect_refusal(const by_letters *row, const int64_t *v, change c, const char *what)
{
    tried t;
    int wrong = 0;
    try_row(&t, row, v, c);
    if (t.layers)
        wrong = say(row, &t, what);
    end_try(&t);
    return wrong;
}

static int check_refusals(const by_letters *row, const int64_t *v)
{
    tried t;
    int wrong = 0;
    try_row(&t, row, v, NONE);
    marks m = t.marks;
    end_try(&t);
    for (int i = 0; i < m.n; i++)
        if (m.strict[i])
            wrong += expect_refusal(row, v, (change){i, -1, -1, false}, "a dimension does not fit, and nobody says so");
    for (int k = 0; k < m.n_operands; k++) {
        for (int less = 0; less < 2; less++)
            if (m.operand[k].strict && (m.operand[k].rank || !less))
                wrong += expect_refusal(row, v, (change){-1, k, -1, less}, "a wrong number of dimensions is not seen");
        if (m.operand[k].strict)
            wrong += expect_refusal(row, v, (change){-1, -1, k, false}, "it does without an operand that it needs");
        if (!m.operand[k].optional)
            continue;
        try_row(&t, row, v, (change){-1, -1, k, false});
        wrong += check_result(row, &t, v);
        end_try(&t);
    }
    return wrong;
}

/* Other numbers are another layer: its key says so, unless operands and attributes are the same text. `one` and `other` are letters whose
 * numbers change places, which leaves products of both as they were. */
static int check_keys(const by_letters *row, const int64_t *v)
{
    tried as_is, t;
    int wrong = 0;
    int64_t w[LETTERS];
    try_row(&as_is, row, v, NONE);
    for (int one = 0; one < LETTERS && as_is.layers; one++)
        for (int other = one; other < LETTERS; other++) {
            memcpy(w, v, sizeof w);
            w[one] = one == other ? v[one] + 1 : v[other];
            w[other] = one == other ? w[one] : v[one];
            if (!strchr(row->in, 'A' + one) && !(row->attrs && strchr(row->attrs, 'A' + one)))
                continue;
            try_row(&t, row, w, NONE);
            bool same = !strcmp(bz_buf_text(&as_is.in), bz_buf_text(&t.in)) &&
                        !strcmp(bz_buf_text(&as_is.attrs), bz_buf_text(&t.attrs));
            if (t.layers && !same && !strcmp(last_of(&as_is)->key, last_of(&t)->key))
                wrong += say(row, &t, last_of(&t)->key);
            end_try(&t);
        }
    end_try(&as_is);
    return wrong;
}

static void rows_hold(void **state)
{
    (void)state;
    static const int64_t FIRST[LETTERS] = {3,  5,  7,  2,  11, 13, 17, 3,  19, 23, 5,  29, 31,
                                           37, 41, 43, 47, 53, 7,  59, 61, 5,  67, 71, 73, 79};
    int wrong = 0;
    for (size_t i = 0; i < sizeof LETTER_ROWS / sizeof *LETTER_ROWS; i++) {
        int64_t v[LETTERS];
        memcpy(v, FIRST, sizeof v);
        for (int draw = 0; draw < 4; draw++) {
            tried t;
            try_row(&t, &LETTER_ROWS[i], v, NONE);
            wrong += check_result(&LETTER_ROWS[i], &t, v);
            end_try(&t);
            if (!draw)
                wrong += check_refusals(&LETTER_ROWS[i], v) + check_keys(&LETTER_ROWS[i], v);
            for (int k = 0; k < LETTERS; k++)
                v[k] = 1 + chance(9);
        }
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
