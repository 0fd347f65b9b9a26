/* Operators by letters: a row says sizes of operands and results as expressions of letters, as the operator's specification does. Letters get
 * numbers, several times; then types, products and bytes must be what the row says. Each size that is another one makes another key. What
 * does not fit is refused, where the row says that the operator looks. */
#include "chance.h"
#include "modelproc/modelproc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "modelproc_letters.h"

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
