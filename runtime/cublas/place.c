/* Operands of a replay, in memory of the caller's. They lie row by row: the library reads them in the order that suits it. */
#include "runtime/cublas/cublas.h"

void cublas_matrices(const call *c, matrix *out[CUBLAS_MATRICES])
{
    product *p = (product *)c->p; /* the session's; no other variant of it is run */
    matrix *const all[] = {&p->left, &p->right, &p->other, &p->bias, &p->kept, &p->result};
    memcpy(out, all, sizeof all);
}

matrix *cublas_find(const call *c, int operand)
{
    matrix *all[CUBLAS_MATRICES];
    cublas_matrices(c, all);
    for (int i = 0; i < CUBLAS_MATRICES; i++)
        if (all[i]->operand == operand)
            return all[i];
    return NULL;
}

int cublas_wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err)
{
    const session *s = v->session;
    const bz_operand *o = &s->job->operand[operand];
    *out = (bz_place_wanted){0};
    if (!cublas_find(v->state, operand))
        return 0;
    /* their places are part of what the library's algorithms were asked for */
    if (o->role == BZ_ROLE_BIAS || o->role == BZ_ROLE_BEFORE)
        return bz_fail(err, BZ_INCOMPLETE, "%s: its %s is to be constant", v->algorithm, bz_role_name(o->role));
    out->bytes = ((size_t)o->count * (size_t)bz_dtype_bits(o->dtype) + 7) / 8;
    return 0;
}

int cublas_bind(bz_variant *v, int operand, void *at)
{
    session *s = v->session;
    matrix *m = cublas_find(v->state, operand);
    if (operand == BZ_OPERAND_SCRATCH) {
        s->cuda.workspace = at; /* the session's, though the rest of its device is the replay's */
        s->cuda.workspace_size = ((call *)v->state)->workspace;
        return 0;
    }
    if (m)
        m->data = at;
    return 0;
}
