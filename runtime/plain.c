/* Row-major operands in host memory. */
#include "runtime/plain.h"

#include "runtime/values.h"

#include <stdlib.h>
#include <string.h>

int bz_plain_make(bz_plain *p, const bz_job *job, bz_error *err)
{
    *p = (bz_plain){.job = job};
    for (int i = 0; i < job->n_operands; i++) {
        const bz_operand *o = &job->operand[i];
        p->size[i] = (size_t)o->count * (size_t)bz_dtype_bits(o->dtype) / 8;
        p->step[i] = (p->size[i] + 127) / 64 * 64;
        size_t whole = p->step[i] * (size_t)job->copies;
        p->data[i] = aligned_alloc(4096, (whole + 4095) / 4096 * 4096);
        if (!p->data[i]) {
            bz_plain_free(p);
            return bz_fail(err, BZ_FAILED, "out of memory: %.3g GB for an operand", (double)whole / 1e9);
        }
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

void bz_plain_poison(const bz_plain *p)
{
    int y = p->job->n_operands - 1;
    memset(p->data[y], 0xff, p->size[y]);
}

void bz_plain_read(const bz_plain *p, float *values)
{
    int y = p->job->n_operands - 1;
    bz_values_decode(p->job->operand[y].dtype, p->data[y], values, p->job->operand[y].count);
}

void bz_plain_free(bz_plain *p)
{
    for (int i = 0; i < BZ_PROBLEM_OPERANDS; i++)
        free(p->data[i]);
    *p = (bz_plain){0};
}
