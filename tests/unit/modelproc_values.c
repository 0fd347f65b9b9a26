/* Numbers that are known while shapes are inferred: drawn whole numbers go through an operator, and each element of its result must be what
 * ONNX's specification says, computed here one element after the other. Elements are read as sizes: four of them are the shape of a ConstantOfShape. */
#include "chance.h"
#include "model_lines.h"

#include <math.h>

enum { MOST = 240, READ = 4 };

typedef struct {
    int rank;
    int64_t dim[4], n, v[MOST];
} numbers;

static int64_t between(int64_t low, int64_t high)
{
    return low + chance((unsigned)(high - low + 1));
}

static numbers sized(int rank, const int64_t *dim)
{
    numbers t = {.rank = rank, .n = 1};
    for (int i = 0; i < rank; i++)
        t.n *= t.dim[i] = dim[i];
    assert_true(t.n <= MOST);
    return t;
}

static numbers drawn(int rank, int64_t low, int64_t high)
{
    int64_t dim[4];
    for (int i = 0; i < rank; i++)
        dim[i] = between(1, 4);
    numbers t = sized(rank, dim);
    for (int64_t k = 0; k < t.n; k++)
        t.v[k] = between(low, high);
    return t;
}

static numbers listed(int n, const int64_t *v)
{
    numbers t = sized(1, (int64_t[]){n});
    memcpy(t.v, v, (size_t)n * sizeof *v);
    return t;
}

/* Where element k is, and which element is there; a size of 1 stands for any place. */
static void place_of(const numbers *t, int64_t k, int64_t *at)
{
    for (int i = t->rank - 1; i >= 0; k /= t->dim[i--])
        at[i] = k % t->dim[i];
}

static int64_t number_at(const numbers *t, const int64_t *at)
{
    int64_t k = 0;
    for (int i = 0; i < t->rank; i++)
        k = k * t->dim[i] + (t->dim[i] == 1 ? 0 : at[i]);
    return t->v[k];
}

static bool reals; /* what operators compute with are real numbers, which have the same values */

static void put_numbers(bz_buf *g, const char *name, const numbers *t, bz_dtype dtype)
{
    float real[MOST];
    char dims[32] = "", bits[MOST];
    for (int i = 0; i < t->rank; i++)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%s%d", i ? "x" : "", (int)t->dim[i]);
    for (int64_t k = 0; k < t->n; k++)
        bits[k] = (char)t->v[k];
    for (int64_t k = 0; k < t->n; k++)
        real[k] = (float)t->v[k];
    bool narrow = dtype == BZ_BOOL;
    if (reals && (!name[1] || !strcmp(name, "zero")))
        put_message(g, GRAPH_INIT, a_raw_tensor(name, BZ_F32, dims, real, (size_t)t->n * sizeof *real));
    else
        put_message(
            g, GRAPH_INIT,
            a_raw_tensor(name, dtype, dims, narrow ? (void *)bits : (void *)t->v, (size_t)t->n * (narrow ? 1 : 8)));
}

static void put_list(bz_buf *g, const char *name, int n, const int64_t *v)
{
    numbers t = listed(n, v);
    put_numbers(g, name, &t, BZ_I64);
}

/* The nodes make r of what is in the graph, which is freed. */
static void check(bz_buf g, const char *nodes, const numbers *want)
{
    char more[120], name[16];
    int64_t least = 0;
    put_nodes(&g, nodes);
    for (int64_t k = 0; k < want->n; k++)
        least = want->v[k] < least ? want->v[k] : least;
    put_list(&g, "flat", 1, (int64_t[]){-1});
    put_list(&g, "offset", 1, (int64_t[]){1 - least});
    if (want->n)
        put_nodes(&g, reals ? "Cast{to=7} r q; Reshape q,flat f; Add f,offset o" : "Reshape r,flat f; Add f,offset o");
    for (int64_t k = 0; k < want->n; k += READ) {
        int64_t pick[READ];
        for (int i = 0; i < READ; i++)
            pick[i] = k + i < want->n ? k + i : want->n - 1;
        snprintf(name, sizeof name, "pick%d", (int)k);
        put_list(&g, name, READ, pick);
        snprintf(more, sizeof more, "Gather o,pick%d p%d; ConstantOfShape p%d y%d", (int)k, (int)k, (int)k, (int)k);
        put_nodes(&g, more);
    }
    put_result(&g, want->n ? "y0" : "r");
    subject s = infer_file(a_model(9, 20, g), nodes);
    const bz_type *t = result_of(&s, "r");
    assert_int_equal(t->rank, want->rank);
    for (int i = 0; i < t->rank; i++)
        assert_int_equal(t->dims[i], want->dim[i]);
    for (int64_t k = 0; k < want->n; k++) {
        snprintf(name, sizeof name, "y%d", (int)(k - k % READ));
        if (result_of(&s, name)->dims[k % READ] != want->v[k] + 1 - least)
            fail_msg("%s: element %d is %lld, not %lld", nodes, (int)k,
                     (long long)(result_of(&s, name)->dims[k % READ] - 1 + least), (long long)want->v[k]);
    }
    end(&s);
}

static int64_t clamped(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* numpy's slices, by walking along each axis; a start before the first element is the first one also backwards, as ONNX wants. */
static void slices(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        numbers x = drawn(1 + (int)chance(3), 0, 90);
        int64_t start[4], end[4], step[4], axis[4], picked[4][8], dim[4];
        int n = 0;
        bool steps = chance(3) > 0;
        for (int i = 0; i < x.rank; i++) {
            dim[i] = 0;
            if (chance(4) == 0) {
                for (; dim[i] < x.dim[i]; dim[i]++)
                    picked[i][dim[i]] = dim[i];
                continue;
            }
            start[n] = between(-x.dim[i] - 2, x.dim[i] + 2), end[n] = between(-x.dim[i] - 2, x.dim[i] + 2);
            step[n] = !steps ? 1 : chance(2) ? between(1, 3) : between(-3, -1);
            axis[n] = chance(2) ? i : i - x.rank;
            int64_t from = start[n] < 0 ? start[n] + x.dim[i] : start[n], to = end[n] < 0 ? end[n] + x.dim[i] : end[n];
            if (step[n] > 0)
                for (int64_t k = clamped(from, 0, x.dim[i]); k < clamped(to, 0, x.dim[i]); k += step[n])
                    picked[i][dim[i]++] = k;
            else
                for (int64_t k = clamped(from, 0, x.dim[i] - 1); k > clamped(to, -1, x.dim[i] - 1); k += step[n])
                    picked[i][dim[i]++] = k;
            n++;
        }
        if (!n)
            continue;
        numbers want = sized(x.rank, dim);
        for (int64_t k = 0; k < want.n; k++) {
            int64_t at[4];
            place_of(&want, k, at);
            for (int i = 0; i < x.rank; i++)
                at[i] = picked[i][at[i]];
            want.v[k] = number_at(&x, at);
        }
        bz_buf g = {0};
        put_numbers(&g, "x", &x, BZ_I64);
        put_list(&g, "start", n, start);
        put_list(&g, "end", n, end);
        put_list(&g, "axis", n, axis);
        put_list(&g, "step", n, step);
        check(g, steps ? "Slice x,start,end,axis,step r" : "Slice x,start,end,axis r", &want);
    }
}

static void gathers(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        numbers x = drawn(1 + (int)chance(2), -40, 40);
        int axis = (int)chance((unsigned)x.rank), rank = 0;
        numbers at = drawn((int)chance(3), -x.dim[axis], x.dim[axis] - 1);
        int64_t dim[4];
        for (int i = 0; i < axis; i++)
            dim[rank++] = x.dim[i];
        for (int i = 0; i < at.rank; i++)
            dim[rank++] = at.dim[i];
        for (int i = axis + 1; i < x.rank; i++)
            dim[rank++] = x.dim[i];
        numbers want = sized(rank, dim);
        for (int64_t k = 0; k < want.n; k++) {
            int64_t place[4], from[4];
            place_of(&want, k, place);
            memcpy(from, place, sizeof from);
            from[axis] = (number_at(&at, place + axis) + x.dim[axis]) % x.dim[axis];
            for (int i = axis + 1; i < x.rank; i++)
                from[i] = place[i - 1 + at.rank];
            want.v[k] = number_at(&x, from);
        }
        bz_buf g = {0};
        char nodes[60];
        put_numbers(&g, "x", &x, BZ_I64);
        put_numbers(&g, "at", &at, BZ_I64);
        snprintf(nodes, sizeof nodes, "Gather{axis=%d} x,at r", chance(2) ? axis : axis - x.rank);
        check(g, nodes, &want);
    }
}

static void arrangements(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        numbers x = drawn(1 + (int)chance(3), -40, 40);
        char perm[40] = "";
        int order[4];
        int64_t dim[4];
        for (int i = 0; i < x.rank; i++)
            order[i] = i;
        for (int i = x.rank - 1; i > 0; i--) {
            int k = (int)chance((unsigned)i + 1), was = order[i];
            order[i] = order[k];
            order[k] = was;
        }
        bool given = chance(4) > 0;
        for (int i = 0; i < x.rank; i++) {
            order[i] = given ? order[i] : x.rank - 1 - i;
            dim[i] = x.dim[order[i]];
            snprintf(perm + strlen(perm), sizeof perm - strlen(perm), "%s%d", i ? "x" : "Transpose{perm=", order[i]);
        }
        snprintf(perm + strlen(perm), sizeof perm - strlen(perm), "} x r");
        numbers want = sized(x.rank, dim);
        for (int64_t k = 0; k < want.n; k++) {
            int64_t place[4], from[4] = {0};
            place_of(&want, k, place);
            for (int i = 0; i < x.rank; i++)
                from[order[i]] = place[i];
            want.v[k] = number_at(&x, from);
        }
        bz_buf g = {0};
        put_numbers(&g, "x", &x, BZ_I64);
        check(g, given ? perm : "Transpose x r", &want);
    }
}

/* x laid out over `want`, from its last dimension on. */
static void spread(const numbers *x, numbers *want)
{
    for (int64_t k = 0; k < want->n; k++) {
        int64_t place[4];
        place_of(want, k, place);
        want->v[k] = number_at(x, place + want->rank - x->rank);
    }
}

static void repetitions(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        numbers x = drawn((int)chance(3), -40, 40);
        int rank = x.rank + (int)chance(2);
        int64_t dim[4], shape[4], times[4];
        for (int i = 0; i < rank; i++) {
            int64_t own = i < rank - x.rank ? 1 : x.dim[i - rank + x.rank];
            dim[i] = own > 1 ? own : between(1, 4);
            shape[i] = chance(2) ? dim[i] : own > 1 ? 1 : dim[i];
        }
        bz_buf g = {0};
        if (rank) {
            numbers want = sized(rank, dim);
            spread(&x, &want);
            put_numbers(&g, "x", &x, BZ_I64);
            put_list(&g, "shape", rank, shape);
            check(g, "Expand x,shape r", &want);
        }
        if (!x.rank || reals) /* Tile is followed for whole numbers alone */
            continue;
        for (int i = 0; i < x.rank; i++)
            dim[i] = x.dim[i] * (times[i] = between(0, 3));
        numbers want = sized(x.rank, dim);
        for (int64_t k = 0; k < want.n; k++) {
            int64_t place[4];
            place_of(&want, k, place);
            for (int i = 0; i < x.rank; i++)
                place[i] %= x.dim[i];
            want.v[k] = number_at(&x, place);
        }
        g = (bz_buf){0};
        put_numbers(&g, "x", &x, BZ_I64);
        put_list(&g, "times", x.rank, times);
        check(g, "Tile x,times r", &want);
    }
}

/* Two tensors side by side, and each of them out of it again. */
static void pieces(void **state)
{
    (void)state;
    for (int round = 0; round < 150; round++) {
        numbers part[2] = {drawn(1 + (int)chance(3), -40, 40)};
        int rank = part[0].rank, axis = (int)chance((unsigned)rank), said = chance(2) ? axis : axis - rank;
        int64_t dim[4], first = part[0].dim[axis];
        char nodes[80];
        memcpy(dim, part[0].dim, sizeof dim);
        dim[axis] = between(1, 3);
        part[1] = sized(rank, dim);
        for (int64_t k = 0; k < part[1].n; k++)
            part[1].v[k] = between(-40, 40);
        dim[axis] += first;
        numbers whole = sized(rank, dim);
        for (int64_t k = 0; k < whole.n; k++) {
            int64_t place[4];
            place_of(&whole, k, place);
            int of = place[axis] >= first;
            place[axis] -= of ? first : 0;
            whole.v[k] = number_at(&part[of], place);
        }
        bz_buf g = {0};
        put_numbers(&g, "a", &part[0], BZ_I64);
        put_numbers(&g, "b", &part[1], BZ_I64);
        snprintf(nodes, sizeof nodes, "Concat{axis=%d} a,b r", said);
        check(g, nodes, &whole);
        for (int k = 0; k < 2; k++) {
            g = (bz_buf){0};
            put_numbers(&g, "x", &whole, BZ_I64);
            put_list(&g, "sizes", 2, (int64_t[]){first, dim[axis] - first});
            snprintf(nodes, sizeof nodes, "Split{axis=%d} x,sizes s,t; Identity %s r", said, k ? "t" : "s");
            check(g, nodes, &part[k]);
        }
    }
}

static const char *const FOLDS[] = {"ReduceSum", "ReduceProd", "ReduceMin", "ReduceMax"};

static int64_t folded(int f, int64_t a, int64_t b)
{
    return f == 0 ? a + b : f == 1 ? a * b : f == 2 ? (a < b ? a : b) : (a > b ? a : b);
}

static void reductions(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        int f = (int)chance(4), n = 0, rank = 0;
        numbers x = drawn(1 + (int)chance(2), f == 1 ? -1 : -20, f == 1 ? 2 : 20);
        bool keep = chance(2), gone[4] = {0}, none = chance(5) == 0;
        int64_t axes[4], dim[4], at[4] = {0};
        for (int i = 0; i < x.rank && !none; i++)
            if (chance(2)) {
                axes[n++] = chance(2) ? i : i - x.rank;
                gone[i] = true;
            }
        for (int i = 0; i < x.rank; i++) {
            gone[i] |= !n; /* no axes: all of them */
            if (!gone[i] || keep)
                dim[rank++] = gone[i] ? 1 : x.dim[i];
        }
        numbers want = sized(rank, dim);
        bool some[MOST] = {0};
        for (int64_t k = 0; k < x.n; k++) {
            int64_t to = 0;
            place_of(&x, k, at);
            for (int i = 0; i < x.rank; i++)
                to = gone[i] ? to : to * x.dim[i] + at[i];
            want.v[to] = some[to] ? folded(f, want.v[to], x.v[k]) : x.v[k];
            some[to] = true;
        }
        bz_buf g = {0};
        char nodes[60];
        put_numbers(&g, "x", &x, BZ_I64);
        put_list(&g, "axes", n, axes);
        snprintf(nodes, sizeof nodes, "%s{keepdims=%d} x%s r", FOLDS[f], keep, n || chance(2) ? ",axes" : "");
        check(g, nodes, &want);
    }
}

static int64_t computed(int f, int64_t a, int64_t b)
{
    switch (f) {
    case 0:
        return a + b;
    case 1:
        return a - b;
    case 2:
        return a * b;
    case 3:
        return a / b;
    case 4:
        return ((a % b) + b) % b; /* the sign of b, as in Python */
    case 5:
        return a % b;
    case 6:
        return a < b ? a : b;
    case 7:
        return a > b ? a : b;
    case 8:
        return a == b;
    case 9:
        return a < b;
    case 10:
        return a > b;
    case 11:
        return a <= b;
    default:
        return a >= b;
    }
}

/* Two operands, either of which is laid out over the other. */
static void pairs(void **state)
{
    static const char *const NODES[] = {
        "Add a,b r",         "Sub a,b r",         "Mul a,b r",           "Div a,b r",   "Mod a,b r",
        "Mod{fmod=1} a,b r", "Min a,b r",         "Max a,b r",           "Equal a,b c", "Less a,b c",
        "Greater a,b c",     "LessOrEqual a,b c", "GreaterOrEqual a,b c"};
    (void)state;
    for (int round = 0; round < 520; round++) {
        int f = round % 13;
        if (reals && (f == 3 || f == 4)) /* of whole numbers alone */
            continue;
        numbers operand[2], wide[2];
        int64_t dim[4];
        int rank = (int)chance(3);
        for (int i = 0; i < rank; i++)
            dim[i] = between(1, 3);
        for (int k = 0; k < 2; k++) {
            int64_t own[4];
            int less = k == (int)chance(3) ? (int)chance((unsigned)rank + 1) : 0;
            for (int i = less; i < rank; i++)
                own[i - less] = chance(4) ? dim[i] : 1;
            operand[k] = sized(rank - less, own);
            for (int64_t i = 0; i < operand[k].n; i++)
                do
                    operand[k].v[i] = between(-6, 6);
                while (k && !operand[k].v[i]);
        }
        rank = operand[0].rank > operand[1].rank ? operand[0].rank : operand[1].rank;
        for (int i = 0; i < rank; i++) {
            dim[i] = 1;
            for (int k = 0; k < 2; k++) {
                int at = i - rank + operand[k].rank;
                dim[i] = at >= 0 && operand[k].dim[at] > 1 ? operand[k].dim[at] : dim[i];
            }
        }
        for (int k = 0; k < 2; k++) {
            wide[k] = sized(rank, dim);
            spread(&operand[k], &wide[k]);
        }
        numbers want = wide[0];
        for (int64_t k = 0; k < want.n; k++)
            want.v[k] = computed(f, wide[0].v[k], wide[1].v[k]);
        bz_buf g = {0};
        char nodes[60];
        put_numbers(&g, "a", &operand[0], BZ_I64);
        put_numbers(&g, "b", &operand[1], BZ_I64);
        snprintf(nodes, sizeof nodes, "%s%s", NODES[f], f < 8 ? "" : "; Cast{to=7} c r");
        check(g, nodes, &want);
        for (int64_t k = 0; k < want.n; k++)
            want.v[k] = wide[0].v[k] > 0 ? wide[0].v[k] : wide[1].v[k];
        g = (bz_buf){0};
        put_numbers(&g, "a", &operand[0], BZ_I64);
        put_numbers(&g, "b", &operand[1], BZ_I64);
        put_numbers(&g, "zero", &(numbers){.n = 1}, BZ_I64);
        check(g, "Greater a,zero c; Where c,a,b r", &want);
    }
}

static void single(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        numbers x = drawn((int)chance(3), -9, 9), want[4] = {x, x, x, x};
        for (int64_t k = 0; k < x.n; k++) {
            want[0].v[k] = -x.v[k];
            want[1].v[k] = x.v[k] < 0 ? -x.v[k] : x.v[k];
            want[2].v[k] = x.v[k] < 0 ? -1 : x.v[k] > 0;
            want[3].v[k] = x.v[k] != 0;
        }
        static const char *const NODES[] = {"Neg x r", "Abs x r", "Sign x r", "Cast{to=9} x b; Cast{to=7} b r"};
        for (int f = 0; f < 4; f++) {
            bz_buf g = {0};
            if (reals && f == 2) /* likewise */
                continue;
            put_numbers(&g, "x", &x, BZ_I64);
            check(g, NODES[f], &want[f]);
        }
    }
}

static void runs(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        numbers x = drawn(1, -9, 9), sum = x, set = x, at = drawn(1, -x.n, x.n - 1), to = at,
                some = drawn(1 + (int)chance(2), 0, 1);
        bz_buf g = {0};
        for (int64_t k = 1; k < x.n; k++)
            sum.v[k] += sum.v[k - 1];
        put_numbers(&g, "x", &x, BZ_I64);
        put_numbers(&g, "zero", &(numbers){.n = 1}, BZ_I64);
        check(g, "CumSum x,zero r", &sum);

        for (int64_t k = 0; k < at.n; k++) {
            to.v[k] = between(20, 40);
            set.v[(at.v[k] + x.n) % x.n] = to.v[k];
        }
        g = (bz_buf){0};
        put_numbers(&g, "x", &x, BZ_I64);
        put_numbers(&g, "at", &at, BZ_I64);
        put_numbers(&g, "to", &to, BZ_I64);
        check(g, "ScatterElements x,at,to r", &set);

        int64_t n = 0, place[4];
        for (int64_t k = 0; k < some.n; k++)
            n += some.v[k];
        numbers found = sized(2, (int64_t[]){some.rank, n});
        n = 0;
        for (int64_t k = 0; k < some.n; k++) {
            place_of(&some, k, place);
            for (int i = 0; i < some.rank && some.v[k]; i++)
                found.v[i * found.dim[1] + n] = place[i];
            n += some.v[k];
        }
        g = (bz_buf){0};
        put_numbers(&g, "x", &some, BZ_I64);
        check(g, "NonZero x r", &found);

        int64_t from = between(-9, 9), end = between(-9, 9), step = between(1, 4) * (end < from ? -1 : 1), counted = 0,
                v[20];
        for (int64_t k = from; step > 0 ? k < end : k > end; k += step)
            v[counted++] = k;
        numbers row = listed((int)counted, v);
        g = (bz_buf){0};
        put_numbers(&g, "from", &(numbers){.n = 1, .v = {from}}, BZ_I64);
        put_numbers(&g, "end", &(numbers){.n = 1, .v = {end}}, BZ_I64);
        put_numbers(&g, "step", &(numbers){.n = 1, .v = {step}}, BZ_I64);
        check(g, "Range from,end,step r", &row);
    }
}

/* Three operands, each of which may be laid out over the others; and sizes of a tensor, counted from either end. */
static void several(void **state)
{
    static const char *const NODES[] = {"Max a,b,c r", "Min a,b,c r", "Sum a,b,c r"};
    (void)state;
    for (int round = 0; round < 150; round++) {
        int f = round % 3, rank = 1 + (int)chance(3);
        int64_t dim[4];
        numbers operand[3], wide[3];
        for (int i = 0; i < rank; i++)
            dim[i] = between(1, 4);
        int whole = (int)chance(3);
        for (int k = 0; k < 3; k++) {
            int64_t own[4];
            int less = k == whole ? 0 : (int)chance((unsigned)rank + 1);
            for (int i = less; i < rank; i++)
                own[i - less] = k == whole || chance(2) ? dim[i] : 1;
            operand[k] = sized(rank - less, own);
            for (int64_t i = 0; i < operand[k].n; i++)
                operand[k].v[i] = between(-20, 20);
            wide[k] = sized(rank, dim);
            spread(&operand[k], &wide[k]);
        }
        numbers want = sized(rank, dim);
        for (int64_t k = 0; k < want.n; k++) {
            want.v[k] = wide[0].v[k];
            for (int i = 1; i < 3; i++)
                want.v[k] = computed((int[]){7, 6, 0}[f], want.v[k], wide[i].v[k]);
        }
        bz_buf g = {0};
        for (int k = 0; k < 3; k++)
            put_numbers(&g, (const char[]){(char)('a' + k), 0}, &operand[k], BZ_I64);
        check(g, NODES[f], &want);

        char shape[40] = "", nodes[60];
        int64_t start = between(-rank - 1, rank + 1), end = between(-rank - 1, rank + 1), all[4], n = 0;
        bool ends = chance(3) > 0;
        for (int i = 0; i < rank; i++) {
            sprintf(shape + strlen(shape), "%s%d", i ? "x" : "", (int)dim[i]);
            if (i >= (start < 0 ? start + rank : start) && (!ends || i < (end < 0 ? end + rank : end)))
                all[n++] = dim[i];
        }
        numbers some = listed((int)n, all);
        g = (bz_buf){0};
        put_message(&g, GRAPH_INPUT, a_value("X", BZ_F32, shape));
        snprintf(nodes, sizeof nodes, ends ? "Shape{start=%d;end=%d} X r" : "Shape{start=%d} X r", (int)start,
                 (int)end);
        if (!reals)
            check(g, nodes, &some);
        else
            bz_buf_free(&g);
    }
}

static void real_numbers(void **state)
{
    reals = true;
    slices(state);
    gathers(state);
    arrangements(state);
    repetitions(state);
    pieces(state);
    reductions(state);
    pairs(state);
    single(state);
    several(state);
    reals = false;
}

/* Quarters, which numbers of any precision hold: results times 16 are whole. */
static void quarters(void **state)
{
    static const char *const NODES[] = {"Floor x", "Ceil x",  "Round x", "Div x,y",         "Mul x,y",
                                        "Sub x,y", "Min x,y", "Max x,y", "Mod{fmod=1} x,y", "Pow x,two"};
    (void)state;
    for (int round = 0; round < 300; round++) {
        int f = round % 10, type = (int)chance(3);
        numbers x = drawn(1, -12, 12), want = x;
        float real[4], y = chance(2) ? .5f : -2, two = 2;
        bz_buf g = {0};
        char nodes[120], dims[16];
        for (int64_t k = 0; k < x.n; k++) {
            double v = real[k] = (float)x.v[k] / 4;
            double made[] = {floor(v), ceil(v),    nearbyint(v), v / y,      v * y,
                             v - y,    fmin(v, y), fmax(v, y),   fmod(v, y), v * v};
            want.v[k] = (int64_t)(16 * made[f]);
        }
        snprintf(dims, sizeof dims, "%d", (int)x.n);
        put_message(&g, GRAPH_INIT, a_raw_tensor("real", BZ_F32, dims, real, (size_t)x.n * sizeof *real));
        put_message(&g, GRAPH_INIT, a_raw_tensor("ratio", BZ_F32, "", &y, sizeof y));
        put_message(&g, GRAPH_INIT, a_raw_tensor("square", BZ_F32, "", &two, sizeof two));
        put_message(&g, GRAPH_INIT, a_raw_tensor("much", BZ_F32, "", &(float){16}, sizeof(float)));
        int to = (int[]){BZ_F32, BZ_F16, BZ_F64}[type];
        snprintf(nodes, sizeof nodes,
                 "Cast{to=%d} real x; Cast{to=%d} ratio y; Cast{to=%d} square two; Cast{to=%d} much m", to, to, to, to);
        put_nodes(&g, nodes);
        snprintf(nodes, sizeof nodes, "%s s; Mul s,m t; Cast{to=7} t r", NODES[f]);
        check(g, nodes, &want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices),      cmocka_unit_test(gathers),      cmocka_unit_test(arrangements),
        cmocka_unit_test(repetitions), cmocka_unit_test(pieces),       cmocka_unit_test(reductions),
        cmocka_unit_test(pairs),       cmocka_unit_test(single),       cmocka_unit_test(runs),
        cmocka_unit_test(several),     cmocka_unit_test(real_numbers), cmocka_unit_test(quarters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
