/* Row-major operands in host memory. */
#include "runtime/plain.h"

#include "runtime/values.h"

#include <string.h>

/* Allocates, converts, and touches every page. */
static int make(bz_plain *p, bz_error *err)
{
    const bz_job *job = p->job;
    for (int i = 0; i < job->n_operands; i++) {
        const bz_operand *o = &job->operand[i];
        p->size[i] = (size_t)o->count * (size_t)bz_dtype_bits(o->dtype) / 8;
        p->step[i] = (p->size[i] + 127) / 64 * 64;
        if (job->placed && !job->value[i])
            continue;
        if (o->alias >= 0) { /* made in the memory of an input */
            p->data[i] = p->data[o->alias];
            continue;
        }
        size_t whole = p->step[i] * (size_t)job->copies;
        p->data[i] = bz_place(whole, i);
        if (!p->data[i])
            return bz_fail(err, BZ_FAILED, "out of memory: %.3g GB for an operand", (double)whole / 1e9);
        memset(p->data[i], 0, whole);
        if (!job->value[i])
            continue;
        bz_values_encode(o->dtype, job->value[i], p->data[i], o->count);
        for (int c = 1; c < job->copies; c++)
            memcpy(p->data[i] + p->step[i] * (size_t)c, p->data[i], p->size[i]);
    }
    return 0;
}

void *bz_plain_at(const bz_plain *p, int operand, int copy)
{
    return p->data[operand] + p->step[operand] * (size_t)copy;
}

void bz_plain_free(bz_plain *p)
{
    for (int i = 0; i < BZ_PROBLEM_OPERANDS; i++)
        if (i < p->job->n_operands && p->job->operand[i].alias < 0 && (!p->job->placed || p->job->value[i]))
            bz_unplace(p->data[i]);
    *p = (bz_plain){.job = p->job};
}

int bz_plain_prepare(bz_variant *v, bz_error *err)
{
    bz_plain *p = v->session;
    if (!p->made && make(p, err)) {
        bz_plain_free(p);
        return -1;
    }
    p->made = true;
    v->state = p;
    return 0;
}

int bz_plain_poison(bz_variant *v)
{
    const bz_plain *p = v->session;
    for (int i = 0; i < p->job->n_operands; i++) {
        const bz_operand *o = &p->job->operand[i];
        if (o->result && o->alias < 0)
            memset(p->data[i], 0xff, p->size[i]);
        else if (o->result)
            bz_values_encode(o->dtype, p->job->value[o->alias], p->data[i], o->count);
    }
    return 0;
}

int bz_plain_read_operand(bz_variant *v, int operand, float *values, bz_error *err)
{
    const bz_plain *p = v->session;
    (void)err;
    bz_values_decode(p->job->operand[operand].dtype, p->data[operand], values, p->job->operand[operand].count);
    return 0;
}

int bz_plain_read(bz_variant *v, float *values, bz_error *err)
{
    const bz_plain *p = v->session;
    return bz_plain_read_operand(v, p->job->n_operands - 1, values, err);
}

void bz_plain_release(bz_variant *v)
{
    v->state = NULL; /* operands are the session's */
}

int bz_plain_wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err)
{
    const bz_plain *p = v->session;
    (void)err;
    *out = (bz_place_wanted){.bytes = p->size[operand]};
    return 0;
}

int bz_plain_bind(bz_variant *v, int operand, void *at)
{
    bz_plain *p = v->session;
    if (operand >= 0)
        p->data[operand] = at;
    return 0;
}
