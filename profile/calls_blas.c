/* Products of matrices by BLAS and cuBLAS as problems. Both count columns first, unless told otherwise: a product of
 * theirs is the transposed one, with its factors exchanged, to who counts rows first. */
#include "profile/calls.h"

#include <string.h>

/* "N", "T", "CUBLAS_OP_T". */
static bool transposed(const bz_trace *t, size_t call, const char *name, bool *out)
{
    char text[32];
    if (!bz_call_parameter(t, call, name, text, sizeof text) || !*text)
        return false;
    char last = text[strlen(text) - 1];
    *out = last != 'N' && last != 'n';
    return true;
}

static bool by_rows(const bz_trace *t, size_t call)
{
    char text[16];
    return bz_call_parameter(t, call, "order", text, sizeof text) && !strcmp(text, "row");
}

/* By the letter in the name; where there is none by a parameter. */
static bool type_of(const bz_trace *t, size_t call, bz_dtype *out)
{
    static const struct {
        const char *text;
        bz_dtype dtype;
    } LETTERS[] = {{"cblas_s", BZ_F32}, {"cblas_d", BZ_F64}, {"cublasS", BZ_F32}, {"cublasD", BZ_F64},
                   {"cublasH", BZ_F16}, {"sge", BZ_F32},     {"dge", BZ_F64}};
    const char *name = bz_string(t, t->event[BZ_EVENT_CALL].name[call]);
    if (bz_call_dtype(t, call, "Atype", out) || bz_call_dtype(t, call, "aType", out))
        return true;
    for (size_t i = 0; i < sizeof LETTERS / sizeof *LETTERS; i++)
        if (!strncmp(name, LETTERS[i].text, strlen(LETTERS[i].text))) {
            *out = LETTERS[i].dtype;
            return true;
        }
    return false;
}

bool bz_call_blas_gemm(const bz_trace *t, size_t call, bz_problem *p)
{
    int64_t m, n, k, batch = 1;
    bool a, b, rows = by_rows(t, call);
    p->kind = BZ_PROBLEM_GEMM;
    if (!transposed(t, call, "transa", &a) || !transposed(t, call, "transb", &b) || !bz_call_int(t, call, "m", &m) ||
        !bz_call_int(t, call, "n", &n) || !bz_call_int(t, call, "k", &k) || !type_of(t, call, &p->dtype))
        return false;
    if (!bz_call_int(t, call, "batchSize", &batch) && !bz_call_int(t, call, "batchCount", &batch))
        batch = 1;
    p->gemm.m = rows ? m : n;
    p->gemm.n = rows ? n : m;
    p->gemm.k = k;
    p->gemm.batch = batch;
    p->gemm.transa = rows ? a : b;
    p->gemm.transb = rows ? b : a;
    return true;
}

/* The matrix of m rows and n columns; the result has as many values as op(A) has rows. */
bool bz_call_blas_gemv(const bz_trace *t, size_t call, bz_problem *p)
{
    int64_t m, n;
    bool trans;
    p->kind = BZ_PROBLEM_GEMV;
    if ((!transposed(t, call, "trans", &trans) && !transposed(t, call, "transa", &trans)) ||
        !bz_call_int(t, call, "m", &m) || !bz_call_int(t, call, "n", &n) || !type_of(t, call, &p->dtype))
        return false;
    p->gemv.m = trans ? n : m;
    p->gemv.k = trans ? m : n;
    p->gemv.trans = by_rows(t, call) ? trans : !trans;
    return true;
}
