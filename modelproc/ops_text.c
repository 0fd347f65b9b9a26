/* Strings, and counts of n-grams. */
#include "modelproc/rule.h"

/* Stop words go, so how many strings remain depends on them. */
static int normalizer_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    if ((x->rank != 1 && x->rank != 2) || (x->rank == 2 && !dims_fit(x->dims[0], 1)))
        return call_fail(c, "it wants [words] or [1, words]");
    bz_dim remain = attr_length(c, "stopwords") ? new_symbol(c) : last_dim(x, 1);
    return set_out(c, 0, BZ_STRING, x->rank, x->rank == 1 ? &remain : (bz_dim[]){1, remain});
}

/* One count for each number in ngram_indexes. */
static int tfidf_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    int n;
    const int64_t *index = attr_ints(c, "ngram_indexes", &n);
    if (x->rank != 1 && x->rank != 2)
        return call_fail(c, "it wants [words] or [batch, words]");
    int64_t most = -1;
    for (int i = 0; i < n; i++) {
        if (index[i] < 0 || index[i] == INT64_MAX)
            return call_fail(c, "ngram_indexes holds %lld", (long long)index[i]);
        most = index[i] > most ? index[i] : most;
    }
    if (n == 0)
        return call_fail(c, "ngram_indexes is missing");
    bz_dim dims[2] = {x->dims[0], most + 1};
    param_text(c, "mode", attr_text(c, "mode", "TF"));
    param_int(c, "min_length", attr_int(c, "min_gram_length", 1));
    param_int(c, "max_length", attr_int(c, "max_gram_length", 1));
    param_int(c, "skip", attr_int(c, "max_skip_count", 0));
    return set_out(c, 0, BZ_F32, x->rank, x->rank == 1 ? dims + 1 : dims);
}

static int concat_shape(call *c)
{
    const bz_type *a = need_any(c, 0), *b = need_any(c, 1);
    bz_dim dims[BZ_MAX_RANK];
    int rank;
    if (broadcast(c, a, b, &rank, dims))
        return -1;
    return set_out(c, 0, BZ_STRING, rank, dims);
}

static int split_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    if (x->rank == BZ_MAX_RANK)
        return call_fail(c, "its result has more than %d dimensions", BZ_MAX_RANK);
    bz_dim dims[BZ_MAX_RANK];
    copy_dims(dims, x);
    dims[x->rank] = new_symbol(c); /* the most substrings of any */
    set_out(c, 0, BZ_STRING, x->rank + 1, dims);
    return set_out(c, 1, BZ_I64, x->rank, dims);
}

static int match_shape(call *c)
{
    const bz_type *x = need_any(c, 0);
    return set_out(c, 0, BZ_BOOL, x->rank, x->dims);
}

static const op ROWS[] = {
    {"StringNormalizer", NULL, "stringnormalizer", BZ_MEMORY, normalizer_shape, .flags = OP_KEEPS, .labels = "x"},
    {"TfIdfVectorizer", NULL, "tfidf", BZ_COMPUTE, tfidf_shape, .flops = 1, .labels = "x > y"},
    {"StringConcat", NULL, "stringconcat", BZ_MEMORY, concat_shape, .labels = "a b"},
    {"StringSplit", NULL, "stringsplit", BZ_MEMORY, split_shape, .labels = "x"},
    {"RegexFullMatch", NULL, "regexmatch", BZ_COMPUTE, match_shape, .labels = "x"},
};
const op_table ops_text = OP_TABLE(ROWS);
