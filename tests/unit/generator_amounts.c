/* What a layer is lowered to does the layer's work, whatever its sizes: as many products, counted here by the definition of each kind of
 * problem; a result of as many elements; numbers of the type that was asked for. Layers come from operators by letters and from the
 * table of operators. */
#include "chance.h"
#include "generator/constants.h"
#include "generator/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "modelproc_letters.h"

static int64_t product(const int64_t *v, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= v[i];
    return n;
}

/* Multiply-adds. */
static int64_t products_of(const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    const bz_operand *y = &list[bz_problem_operands(p, list) - 1];
    int rank;
    int64_t n = 0;
    switch (p->kind) {
    case BZ_PROBLEM_CONV: /* each result is a sum over a filter */
        return y->count * product(p->conv.w, 1, bz_extent_rank(p->conv.w));
    case BZ_PROBLEM_DECONV: /* each element of x goes into the results below a filter */
        return bz_extent_count(p->conv.x) * product(p->conv.w, 1, bz_extent_rank(p->conv.w));
    case BZ_PROBLEM_CONV_DATA:
    case BZ_PROBLEM_CONV_WEIGHTS:
        for (int i = 0; i < bz_problem_operands(p, list); i++)
            n = list[i].role == BZ_ROLE_DY ? list[i].count : n;
        return n * product(p->conv.w, 1, bz_extent_rank(p->conv.w));
    case BZ_PROBLEM_GEMM:
        return p->gemm.batch * p->gemm.m * p->gemm.n * p->gemm.k;
    case BZ_PROBLEM_GEMV:
        return p->gemv.m * p->gemv.k;
    case BZ_PROBLEM_GROUPED:
        for (int i = 0; p->grouped.sizes[i]; i++)
            n += p->grouped.sizes[i];
        return n * p->grouped.n * p->grouped.k;
    case BZ_PROBLEM_MATMUL:
        rank = bz_extent_rank(p->matmul.a);
        return y->count * p->matmul.a[rank - 1];
    case BZ_PROBLEM_ATTENTION:
        n = p->attention.window ? p->attention.window : p->attention.k[2]; /* keys of a query, whichever are hidden */
        return product(p->attention.q, 0, 3) * n * (p->attention.q[3] + p->attention.v[3]);
    case BZ_PROBLEM_ATTENTION_GRAD:
        return product(p->attention.q, 0, 3) * p->attention.k[2] * (3 * p->attention.q[3] + 2 * p->attention.v[3]);
    case BZ_PROBLEM_LSTM:
    case BZ_PROBLEM_GRU:
    case BZ_PROBLEM_RNN:
    case BZ_PROBLEM_LSTM_GRAD: /* of operands, and of weights: twice as many */
    case BZ_PROBLEM_GRU_GRAD:
    case BZ_PROBLEM_RNN_GRAD:
        n = strstr(bz_problem_kind_name(p->kind), "lstm") ? 4 : strstr(bz_problem_kind_name(p->kind), "gru") ? 3 : 1;
        n *= bz_problem_has(p, BZ_TRAIT_GRADIENT) ? 2 : 1;
        return n * p->rnn.hidden * (p->rnn.input + p->rnn.hidden) * p->rnn.seq * p->rnn.batch *
               (p->rnn.dir == BZ_BIDIRECTIONAL ? 2 : 1);
    default:
        return 0;
    }
}

static int say(const bz_layer *l, const bz_alternative *a, const char *what)
{
    print_error("%s: %s\n", l->key, what);
    for (int i = 0; a && i < a->n; i++)
        print_error("    %s\n", a->text[i]);
    return 1;
}

/* Each text says its problem completely. */
static bool reads_back(const bz_alternative *a, int i)
{
    bz_problem p;
    bz_error err;
    bz_buf again = {0};
    bool same = !bz_problem_parse(a->text[i], &p, &err);
    if (same)
        bz_problem_print(&p, &again);
    same = same && !strcmp(bz_buf_text(&again), a->text[i]);
    bz_buf_free(&again);
    return same;
}

static int check_copy(const bz_layer *l, const bz_alternative *a, bz_dtype wanted)
{
    const bz_problem *p = a->problem;
    int64_t written = 0;
    if (a->n != 1 || p->kind != BZ_PROBLEM_COPY)
        return 0;
    for (int k = 0; k < l->n_out; k++)
        written += bz_type_bytes(&l->out[k]) > 0 ? bz_type_bytes(&l->out[k]) : 0;
    if (l->macs && (!a->modelled || bz_type_elements(&l->in[0]) > FEW_ROWS * l->in[0].dims[l->in[0].rank - 1]))
        return say(l, a, "a copy is no product, where rows are not few");
    if (!wanted && (p->copy.read + p->copy.write != (l->bytes ? l->bytes : 1) ||
                    (l->bytes && p->copy.write != (written < l->bytes ? written : l->bytes))))
        return say(l, a, "it moves other bytes than the layer");
    return 0;
}

static bool has_elements(const bz_type *types, int n, int64_t elements)
{
    for (int k = 0; k < n; k++)
        if (bz_type_elements(&types[k]) == elements)
            return true;
    return false;
}

/* One call, whose operands are the layer's: places, and heads that lie in one tensor, become others. */
static bool reads_as_they_are(const bz_alternative *a)
{
    const bz_problem *p = a->problem;
    return a->n == 1 && p->kind != BZ_PROBLEM_ATTENTION && p->kind != BZ_PROBLEM_SAMPLE &&
           p->kind != BZ_PROBLEM_SAMPLE_GRAD && !bz_problem_has(p, BZ_TRAIT_RECURRENT);
}

static int check_alternative(const bz_layer *l, const bz_alternative *a, bz_dtype wanted)
{
    int wrong = 0;
    int64_t products = 0;
    bz_operand list[BZ_PROBLEM_OPERANDS];
    for (int i = 0; i < a->n; i++) {
        products += products_of(&a->problem[i]);
        if (!reads_back(a, i))
            wrong += say(l, a, "its text is another problem");
    }
    if (a->problem[0].kind == BZ_PROBLEM_COPY)
        return wrong + check_copy(l, a, wanted);
    int n = bz_problem_operands(&a->problem[a->n - 1], list);
    const bz_operand *y = &list[n - 1];
    bool lengths =
        bz_layer_param(l, "lengths"); /* a library takes all sequences as long as the shortest: that is a bound */
    if (lengths ? products > l->macs : products != l->macs)
        wrong += say(l, a, "other products than the layer's");
    if (lengths ||
        bz_has_word("lstm gru rnn lstm_training gru_training rnn_training lstm_grad gru_grad rnn_grad sgd momentum "
                    "adam adamw moe "
                    "qmoe",
                    l->kind)) /* in steps, of all tensors at once, or of each expert that a token goes through */
        return wrong;
    if (!has_elements(l->out, l->n_out, y->count))
        wrong += say(l, a, "its result has not as many elements as the layer's");
    for (int i = 0; reads_as_they_are(a) && i < l->n_in && i < n - 1; i++)
        if (list[i].role <= BZ_ROLE_W && !list[i].result && !has_elements(l->in, l->n_in, list[i].count))
            wrong += say(l, a, "it reads what the layer does not");
    return wrong;
}

/* Layers that multiply, and that no library of ours computes; of the last four only some forms. */
static const char *const WITHOUT_CALL =
    "affinegrid attentionlstm causalconv decoderattention distance flexattention "
    "linearattention longformerattention matmulfpq4 matmulnbitsmlp matmulnbitsqkv "
    "moe qmoe orderedmatmul pagedattention qlstm sparseattention svmregressor wordconv "
    "packedattention qattention matmulnbits rnn";

static int check_call(const bz_layer *l, const bz_lowering *low, bz_dtype wanted)
{
    bool call = false, unsigned_weights = false;
    for (int a = 0; a < low->n; a++)
        call |= low->alternative[a].problem[0].kind != BZ_PROBLEM_COPY;
    for (int k = 1; k < l->n_in; k++)
        unsigned_weights |= l->in[k].rank > 2 && l->in[k].dtype == BZ_U8;
    bool none = bz_has_word(WITHOUT_CALL, l->kind) || unsigned_weights || l->macs == INT64_MAX / 4;
    if (wanted || !l->macs || none || call)
        return 0;
    return say(l, NULL, low->why ? low->why : "no call computes it");
}

static int check_layer(const bz_layer *l, bz_dtype wanted)
{
    bz_arena arena = {0};
    bz_lowering low;
    int wrong = 0;
    bz_lower(l, wanted, &arena, &low);
    if (low.free ? low.n != 0 : !low.n != (low.why && !low.n))
        wrong += say(l, NULL, "neither free nor lowered, and without a reason");
    wrong += check_call(l, &low, wanted);
    for (int a = 0; a < low.n; a++)
        wrong += check_alternative(l, &low.alternative[a], wanted);
    bz_arena_free(&arena);
    return wrong;
}

static int check_types(const bz_layer *l)
{
    static const bz_dtype TYPES[] = {BZ_UNDEFINED, BZ_F32, BZ_BF16, BZ_U8, BZ_F8E4M3};
    int wrong = 0;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        wrong += check_layer(l, TYPES[i]);
    return wrong;
}

static void rows_do_their_work(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof LETTER_ROWS / sizeof *LETTER_ROWS; i++)
        for (int draw = 0; draw < 3; draw++) {
            int64_t v[LETTERS];
            for (int k = 0; k < LETTERS; k++)
                v[k] = 1 + chance(9);
            tried t;
            try_row(&t, &LETTER_ROWS[i], v, NONE);
            assert_non_null(t.model.layers);
            wrong += check_types(last_layer(&t.model));
            end_try(&t);
        }
    assert_int_equal(wrong, 0);
}

static int check_table(const op_case *cases, size_t n)
{
    int wrong = 0;
    for (size_t i = 0; i < n; i++) {
        inferred m;
        if (infer_case(&m, &cases[i], false))
            for (int k = 0; k < m.layers->n; k++)
                wrong += check_types(&m.layers->layer[k]);
        end_case(&m);
    }
    return wrong;
}

static void operators_do_their_work(void **state)
{
    (void)state;
    assert_int_equal(check_table(standard, sizeof standard / sizeof *standard) +
                         check_table(microsoft, sizeof microsoft / sizeof *microsoft) +
                         check_table(gradients, sizeof gradients / sizeof *gradients) +
                         check_table(classical, sizeof classical / sizeof *classical),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_do_their_work), cmocka_unit_test(operators_do_their_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
