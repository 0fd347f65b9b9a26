/* Sequences, held against a list that is changed as ONNX says: drawn ones are constructed or split, grow and shrink, and then each element, their
 * number, and what they make when put together must be those of the list. */
#include "chance.h"
#include "model_lines.h"

enum { MOST = 12, RANK = 3 };

typedef struct {
    int rank, dim[RANK + 1];
} sizes;

typedef struct {
    int n;
    sizes of[MOST];
} elements;

typedef struct {
    bz_buf graph;
    int values; /* "s3" is the newest sequence */
} program;

static void put_whole(program *p, const char *name, const char *dims, int n, const int64_t *v)
{
    put_message(&p->graph, GRAPH_INIT, a_raw_tensor(name, BZ_I64, dims, v, (size_t)n * sizeof *v));
}

static void put_input(program *p, const char *name, sizes s)
{
    char text[60] = "";
    for (int i = 0; i < s.rank; i++)
        sprintf(text + strlen(text), "%s%d", i ? "x" : "", s.dim[i]);
    put_message(&p->graph, GRAPH_INPUT, a_value(name, BZ_F32, text));
}

static int number(int low, int high)
{
    return low + (int)chance((unsigned)(high - low + 1));
}

static sizes drawn_sizes(int rank)
{
    sizes s = {.rank = rank};
    for (int i = 0; i < rank; i++)
        s.dim[i] = number(1, 5);
    return s;
}

static void constructed(program *p, elements *e, int rank)
{
    char nodes[120] = "SequenceConstruct ";
    e->n = number(1, 4);
    for (int k = 0; k < e->n; k++) {
        char name[16];
        e->of[k] = drawn_sizes(rank);
        sprintf(name, "X%d", k);
        put_input(p, name, e->of[k]);
        sprintf(nodes + strlen(nodes), "%s%s", k ? "," : "", name);
    }
    put_nodes(&p->graph, strcat(nodes, " s0"));
}

/* Into pieces of one size, the last of which may be smaller; into listed ones; or into single slices, with the axis or without. */
static void split(program *p, elements *e, int rank)
{
    sizes whole = drawn_sizes(rank), piece = whole;
    int axis = number(0, rank - 1), how = number(0, 3), said = chance(2) ? axis : axis - rank;
    char nodes[80];
    int64_t list[MOST];
    whole.dim[axis] = number(1, 9);
    if (how == 0)
        for (int left = whole.dim[axis], size = number(1, 4); left > 0; left -= size, e->n++) {
            e->of[e->n] = piece;
            e->of[e->n].dim[axis] = left < size ? left : size;
            list[0] = size;
        }
    else if (how == 1)
        for (int left = whole.dim[axis]; left > 0; left -= (int)list[e->n], e->n++) {
            list[e->n] = number(1, left);
            e->of[e->n] = piece;
            e->of[e->n].dim[axis] = (int)list[e->n];
        }
    else
        for (; e->n < whole.dim[axis]; e->n++) {
            piece.dim[axis] = 1;
            e->of[e->n] = piece;
            if (how == 3) {
                memmove(e->of[e->n].dim + axis, e->of[e->n].dim + axis + 1, (size_t)(RANK - axis) * sizeof *piece.dim);
                e->of[e->n].rank--;
            }
        }
    put_input(p, "X", whole);
    if (how < 2) {
        char dims[16] = "";
        if (how == 1)
            sprintf(dims, "%d", e->n);
        put_whole(p, "split", dims, how == 1 ? e->n : 1, list);
        sprintf(nodes, "SplitToSequence{axis=%d} X,split s0", said);
    } else {
        sprintf(nodes, "SplitToSequence{axis=%d;keepdims=%d} X s0", said, how == 2);
    }
    put_nodes(&p->graph, nodes);
}

/* One more or one less, at a place that may count from the end, or at the end when nothing is said. */
static void change(program *p, elements *e, int step)
{
    char nodes[80], name[16], at_name[16] = "";
    int from = p->values++;
    bool grows = e->n < 2 || (e->n < MOST - 1 && chance(2)), said = chance(3) > 0;
    int at = said ? number(0, grows ? e->n : e->n - 1) : grows ? e->n : e->n - 1;
    if (said) {
        int64_t v = at < e->n && chance(2) ? at - e->n : at;
        sprintf(at_name, ",at%d", step);
        put_whole(p, at_name + 1, "", 1, &v);
    }
    if (grows) {
        sizes more = drawn_sizes(e->of[0].rank);
        memmove(e->of + at + 1, e->of + at, (size_t)(e->n++ - at) * sizeof *e->of);
        e->of[at] = more;
        sprintf(name, "N%d", step);
        put_input(p, name, more);
        sprintf(nodes, "SequenceInsert s%d,%s%s s%d", from, name, at_name, p->values);
    } else {
        memmove(e->of + at, e->of + at + 1, (size_t)(--e->n - at) * sizeof *e->of);
        sprintf(nodes, "SequenceErase s%d%s s%d", from, at_name, p->values);
    }
    put_nodes(&p->graph, nodes);
}

static void assert_sizes(const bz_type *t, const sizes *want)
{
    assert_int_equal(t->rank, want->rank);
    for (int i = 0; i < want->rank; i++)
        assert_int_equal(t->dims[i], want->dim[i]);
}

/* All elements put together, along an axis that they have or a new one; false where they cannot be. */
static bool together(const elements *e, int axis, bool stack, sizes *out)
{
    *out = e->of[0];
    int total = 0;
    for (int k = 0; k < e->n; k++) {
        total += stack ? 1 : e->of[k].dim[axis];
        for (int i = 0; i < out->rank; i++)
            if ((stack || i != axis) && e->of[k].dim[i] != out->dim[i])
                return false;
    }
    if (stack) {
        memmove(out->dim + axis + 1, out->dim + axis, (size_t)(RANK - axis) * sizeof *out->dim);
        out->rank++;
    }
    out->dim[axis] = total;
    return true;
}

static void elements_are_those_of_a_list(void **state)
{
    (void)state;
    for (int round = 0; round < 600; round++) {
        program p = {0};
        elements e = {0};
        char nodes[160], name[16];
        int rank = number(1, RANK - 1);
        if (chance(2))
            constructed(&p, &e, rank);
        else
            split(&p, &e, rank);
        for (int k = 0, n = number(0, 4); k < n; k++)
            change(&p, &e, k);
        for (int k = 0; k < e.n; k++) {
            sprintf(name, "place%d", k);
            int64_t at = chance(2) ? k : k - e.n;
            put_whole(&p, name, "", 1, &at);
            sprintf(nodes, "SequenceAt s%d,%s e%d; Relu e%d y%d", p.values, name, k, k, k);
            put_nodes(&p.graph, nodes);
        }
        put_whole(&p, "one", "1", 1, &(int64_t){1});
        sprintf(nodes, "SequenceLength s%d n; Reshape n,one l; ConstantOfShape l c", p.values);
        put_nodes(&p.graph, nodes);
        bool stack = chance(2);
        int places = e.of[0].rank + stack, axis = places ? number(0, places - 1) : 0;
        sizes whole;
        bool fits = places && together(&e, axis, stack, &whole);
        sprintf(nodes, "ConcatFromSequence{axis=%d;new_axis=%d} s%d t", chance(2) ? axis : axis - places, stack,
                p.values);
        if (fits)
            put_nodes(&p.graph, nodes);
        put_result(&p.graph, "y0");
        subject s = infer_file(a_model(9, 17, p.graph), "a sequence");
        for (int k = 0; k < e.n; k++) {
            sprintf(name, "y%d", k);
            assert_sizes(result_of(&s, name), &e.of[k]);
        }
        assert_int_equal(result_of(&s, "c")->dims[0], e.n);
        if (fits)
            assert_sizes(result_of(&s, "t"), &whole);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(elements_are_those_of_a_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
