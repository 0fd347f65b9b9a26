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

static int check_costs(const by_letters *row, const tried *t, const int64_t *v)
{
    const bz_layer *l = last_layer(&t->model);
    const int64_t found[] = {l->macs, l->flops, l->bytes};
    static const char *const WHAT[] = {"products", "operations", "bytes"};
    char copy[400], text[100], *save = NULL;
    int wrong = 0, k = 0;
    snprintf(copy, sizeof copy, "%s", row->macs ? row->macs : "");
    for (char *told = strtok_r(copy, "; ", &save); told; told = strtok_r(NULL, "; ", &save), k++)
        if (found[k] != value_of(told, v)) {
            snprintf(text, sizeof text, "%lld %s, not %lld", (long long)found[k], WHAT[k],
                     (long long)value_of(told, v));
            wrong += say(row, t, text);
        }
    return wrong;
}

static int check_result(const by_letters *row, const tried *t, const int64_t *v)
{
    if (!t->model.layers)
        return say(row, t, t->model.err.text);
    const bz_layer *l = last_layer(&t->model);
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
    wrong += check_costs(row, t, v);
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
    if (t.model.layers)
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
    for (int one = 0; one < LETTERS && as_is.model.layers; one++)
        for (int other = one; other < LETTERS; other++) {
            memcpy(w, v, sizeof w);
            w[one] = one == other ? v[one] + 1 : v[other];
            w[other] = one == other ? w[one] : v[one];
            if (!strchr(row->in, 'A' + one) && !(row->attrs && strchr(row->attrs, 'A' + one)))
                continue;
            try_row(&t, row, w, NONE);
            bool same = !strcmp(bz_buf_text(&as_is.in), bz_buf_text(&t.in)) &&
                        !strcmp(bz_buf_text(&as_is.attrs), bz_buf_text(&t.attrs));
            if (t.model.layers && !same && !strcmp(last_layer(&as_is.model)->key, last_layer(&t.model)->key))
                wrong += say(row, &t, last_layer(&t.model)->key);
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

/* The operands with dimension `open` a name instead of its size, or with all of them so where it is -1. Returns how many dimensions there are. */
static int put_open(bz_buf *out, const char *in, int open)
{
    int n = 0;
    bool sizes = false;
    for (const char *at = in; *at;) {
        if (*at == ' ')
            sizes = false;
        if (*at == '=') /* values: up to the next operand */
            for (; *at && *at != ' '; at++)
                bz_buf_putc(out, *at);
        else if (sizes && isdigit((unsigned char)*at)) {
            if (open < 0 || n == open)
                bz_buf_printf(out, "?%d", n);
            for (; isdigit((unsigned char)*at); at++)
                if (open >= 0 && n != open)
                    bz_buf_putc(out, *at);
            n++;
        } else {
            sizes |= *at == ':' && at[1 + strcspn(at + 1, ": ")] != ':'; /* not behind "seq" */
            bz_buf_putc(out, *at++);
        }
    }
    return n;
}

/* What is said of a type although sizes are open must hold with them. */
static bool agrees(const bz_type *with_open, const bz_type *whole)
{
    if (whole->kind != BZ_TYPE_TENSOR)
        return true;
    if (with_open->kind != BZ_TYPE_TENSOR || with_open->dtype != whole->dtype)
        return false;
    if (with_open->rank < 0 || whole->rank < 0)
        return true;
    bool same = with_open->rank == whole->rank;
    for (int i = 0; same && i < whole->rank; i++)
        same = bz_is_symbol(with_open->dims[i]) || bz_is_symbol(whole->dims[i]) || with_open->dims[i] == whole->dims[i];
    return same;
}

static int check_open(const op_case *c, const bz_layer *whole, int open)
{
    bz_buf in = {0}, said = {0};
    inferred m;
    int wrong = 0;
    put_open(&in, c->in, open);
    op_case other = *c;
    other.in = bz_buf_text(&in);
    bool taken = infer_case(&m, &other, true);
    if (!taken) {
        print_error("%s-%d(%s) {%s}: %s\n", c->op, c->opset, other.in, c->attrs, m.err.text);
        wrong = 1;
    }
    for (int k = 0; taken && k < whole->n_out; k++)
        if (!agrees(&last_layer(&m)->out[k], &whole->out[k])) {
            bz_type_text(m.model, &last_layer(&m)->out[k], &said);
            print_error("%s-%d(%s) {%s}: its result %d is %s, says %s\n", c->op, c->opset, c->in, c->attrs, k,
                        bz_buf_text(&said), other.in);
            wrong = 1;
        }
    end_case(&m);
    bz_buf_free(&in);
    bz_buf_free(&said);
    return wrong;
}

static int check_all_open(const op_case *c)
{
    bz_buf in = {0};
    inferred m;
    int wrong = 0, n = put_open(&in, c->in, 0);
    /* how weights lie, and where they are filled, their own sizes and the last of the input's tell */
    bool lies = !strcmp(c->op, MS "NhwcConv") || !strcmp(c->op, NCHWC "Conv");
    bool taken = infer_case(&m, c, true);
    for (int i = lies ? 0 : -1; taken && i < (lies ? 3 : n); i++)
        wrong += check_open(c, last_layer(&m), i);
    end_case(&m);
    bz_buf_free(&in);
    return wrong;
}

/* No size that is open is refused, and what is told of results holds whatever it is. */
static void open_sizes_promise_nothing_wrong(void **state)
{
    (void)state;
    static const struct {
        const op_case *c;
        size_t n;
    } TABLES[] = {{standard, sizeof standard / sizeof *standard},
                  {microsoft, sizeof microsoft / sizeof *microsoft},
                  {classical, sizeof classical / sizeof *classical},
                  {gradients, sizeof gradients / sizeof *gradients}};
    int wrong = 0;
    static const op_case FILLED = {NCHWC "Conv", 1, "f32:1x?72x8x8 f32:80x1x3x3", "group=i:80", "f32:1x?72x6x6", -1};
    inferred m;
    assert_true(infer_case(&m, &FILLED, true));
    assert_true(m.layers->layer[0].out[0].dims[1] == m.layers->layer[0].in[0].dims[1]);
    end_case(&m);
    for (size_t t = 0; t < sizeof TABLES / sizeof *TABLES; t++)
        for (size_t i = 0; i < TABLES[t].n; i++)
            wrong += check_all_open(&TABLES[t].c[i]);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_hold), cmocka_unit_test(open_sizes_promise_nothing_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
