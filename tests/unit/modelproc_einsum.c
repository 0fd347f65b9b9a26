/* Einsum: drawn equations, whose results have the sizes of their letters, and whose products are those of the cheapest order in which pairs can be
 * multiplied, found here by trying all. */
#include "chance.h"
#include "model_lines.h"

enum { LETTERS = 6, TERMS = 5 };

typedef struct {
    int n, size[LETTERS];
    char term[TERMS][LETTERS + 1], result[LETTERS + 1];
    bool said, dots; /* the result is written; a dimension of 2 that has no letter is in each */
} equation;

static equation draw(void)
{
    equation e = {.n = 1 + (int)chance(TERMS), .said = chance(2), .dots = chance(4) == 0};
    int times[LETTERS] = {0}, n = 0;
    for (int l = 0; l < LETTERS; l++)
        e.size[l] = 2 + (int)chance(9);
    for (int k = 0; k < e.n; k++) {
        int used = 0, first = (int)chance(LETTERS);
        for (int l = 0; l < LETTERS; l++)
            if (chance(2) && used < 4)
                e.term[k][used++] = (char)('a' + (first + l) % LETTERS);
        for (const char *p = e.term[k]; *p; p++)
            times[*p - 'a']++;
    }
    for (int l = 0; l < LETTERS; l++) /* where it is not written: those that stand once, in their order */
        if (e.said ? times[l] && chance(2) : times[l] == 1)
            e.result[n++] = (char)('a' + l);
    if (e.said && n > 1 && chance(2)) {
        char last = e.result[n - 1];
        e.result[n - 1] = e.result[0];
        e.result[0] = last;
    }
    return e;
}

static unsigned set_of(const char *letters)
{
    unsigned set = 0;
    for (; *letters; letters++)
        set |= 1u << (*letters - 'a');
    return set;
}

static int64_t product(const equation *e, unsigned set)
{
    int64_t n = e->dots ? 2 : 1;
    for (int l = 0; l < LETTERS; l++)
        n *= set >> l & 1 ? e->size[l] : 1;
    return n;
}

/* Any two at once; a letter that neither another term nor the result has is summed away with them. */
static int64_t cheapest(const equation *e, const unsigned *term, int n, unsigned result)
{
    int64_t best = n < 2 ? 0 : INT64_MAX;
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            unsigned rest[TERMS], wanted = result;
            int left = 0;
            for (int k = 0; k < n; k++)
                if (k != a && k != b)
                    wanted |= rest[left++] = term[k];
            rest[left++] = (term[a] | term[b]) & wanted;
            int64_t cost = product(e, term[a] | term[b]) + cheapest(e, rest, left, result);
            best = cost < best ? cost : best;
        }
    return best;
}

static void results_and_products_are_those_of_the_letters(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        equation e = draw();
        char values[400] = "", operands[40] = "", written[80] = "", nodes[160];
        unsigned term[TERMS], all = 0;
        for (int k = 0; k < e.n; k++) {
            sprintf(values + strlen(values), "X%d=", k);
            if (e.dots)
                strcat(values, "2");
            for (const char *p = e.term[k]; *p; p++)
                sprintf(values + strlen(values), "%s%d", p > e.term[k] || e.dots ? "x" : "", e.size[*p - 'a']);
            if (!*e.term[k] && !e.dots)
                break;
            strcat(values, " ");
            sprintf(operands + strlen(operands), "%sX%d", k ? "," : "", k);
            sprintf(written + strlen(written), "%s%s%s", k ? "," : "", e.dots ? "..." : "", e.term[k]);
            all |= term[k] = set_of(e.term[k]);
        }
        if (values[strlen(values) - 1] != ' ') /* a scalar, which model_lines.h cannot write */
            continue;
        if (e.said)
            sprintf(written + strlen(written), "->%s%s", e.dots ? "..." : "", e.result);
        snprintf(nodes, sizeof nodes, "Einsum{equation=%s} %s y", written, operands);
        subject s = infer(values, nodes);
        const bz_layer *l = &s.layers->layer[0];
        int at = 0;
        assert_int_equal(l->out[0].rank, strlen(e.result) + e.dots);
        if (e.dots)
            assert_int_equal(l->out[0].dims[at++], 2);
        for (const char *p = e.result; *p; p++)
            assert_int_equal(l->out[0].dims[at++], e.size[*p - 'a']);
        unsigned result = set_of(e.result);
        int64_t macs = cheapest(&e, term, e.n, result);
        if (l->macs != macs)
            fail_msg("%s: %lld products, not %lld", written, (long long)l->macs, (long long)macs);
        if (e.n == 1)
            assert_int_equal(l->flops, all & ~result ? product(&e, all) : 0);
        end(&s);

        uint64_t wide[TERMS];
        int64_t size[64], sum = 0;
        bz_einsum_pair pair[TERMS];
        for (int i = 0; i < 64; i++)
            size[i] = i < LETTERS ? e.size[i] : 1;
        for (int k = 0; k < e.n; k++)
            wide[k] = term[k];
        assert_true(bz_einsum_pairs(wide, e.n, result, size, pair) * (e.dots ? 2 : 1) == macs);
        for (int k = 0; k < e.n - 1; k++) { /* each reads terms, or what an earlier one made */
            sum += product(&e, (unsigned)(pair[k].a | pair[k].b));
            for (int side = 0; side < 2; side++) {
                uint64_t read = side ? pair[k].a : pair[k].b;
                bool found = false;
                for (int i = 0; i < e.n; i++)
                    found |= wide[i] == read;
                for (int i = 0; i < k; i++)
                    found |= pair[i].y == read;
                assert_true(found);
            }
        }
        assert_true(sum == macs);
        assert_true(e.n < 2 || pair[e.n - 2].y == (all & result));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_and_products_are_those_of_the_letters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
