/* Operands of a replay, in memory of the caller's. They lie row by row: the library reads them in the order that suits it. */
#include "runtime/cublas/cublas.h"

/* The matrices that may be operands. */
enum { MATRICES = 5 };

static void matrices_of(const bz_variant *v, matrix *out[MATRICES])
{
    product *p = (product *)((call *)v->state)->p; /* the session's; no other variant of it is run */
    matrix *const all[MATRICES] = {&p->left, &p->right, &p->other, &p->bias, &p->result};
    for (int i = 0; i < MATRICES; i++)
        out[i] = all[i];
}

int cublas_wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err)
{
    const session *s = v->session;
    const bz_operand *o = &s->job->operand[operand];
    matrix *all[MATRICES];
    matrices_of(v, all);
    *out = (bz_place_wanted){0};
    for (int i = 0; i < MATRICES; i++) {
        if (all[i]->operand != operand)
            continue;
        if (o->role == BZ_ROLE_BIAS) /* its place is part of what the library's algorithms were asked for */
            return bz_fail(err, BZ_INCOMPLETE, "%s: its bias is to be constant", v->algorithm);
        out->bytes = (size_t)o->count * (size_t)bz_dtype_bits(o->dtype) / 8;
    }
    return 0;
}

int cublas_bind(bz_variant *v, int operand, void *at)
{
    session *s = v->session;
    matrix *all[MATRICES];
    matrices_of(v, all);
    if (operand == BZ_OPERAND_SCRATCH) {
        s->cuda.workspace = at; /* the session's, though the rest of its device is the replay's */
        s->cuda.workspace_size = ((call *)v->state)->workspace;
        return 0;
    }
    for (int i = 0; i < MATRICES; i++)
        if (all[i]->operand == operand)
            all[i]->data = at;
    return 0;
}

int cublas_residual(const bz_variant *v)
{
    (void)v;
    return -1;
}

bool cublas_same(const void *format, const void *other)
{
    return format == other;
}
