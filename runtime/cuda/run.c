/* What a prepared variant does on the device, whatever library its calls are of: backends' tables name these functions. */
#include "runtime/cuda/cuda.h"

int bz_cuda_run_ready(bz_variant *v, bz_cuda_run *r, bz_error *err)
{
    if (bz_cuda_wait(r->cuda))
        return bz_fail(err, BZ_FAILED, "the device failed in the first call");
    v->timing = bz_cuda_timing(r->cuda, &r->pace);
    v->state = r;
    return 0;
}

int bz_cuda_run_execute(bz_variant *v, int copy)
{
    bz_cuda_run *r = v->state;
    (void)copy; /* one copy: cold means that the device's cache is flushed */
    if (!r->call(r))
        return 0;
    bz_cuda_settle(r->cuda);
    return -1;
}

int bz_cuda_run_wait(bz_variant *v)
{
    const bz_cuda_run *r = v->state;
    return bz_cuda_wait(r->cuda);
}

int bz_cuda_run_measure(bz_variant *v, int64_t n, int first_copy, double *seconds)
{
    bz_cuda_run *r = v->state;
    (void)first_copy;
    int result = bz_cuda_measure(r->cuda, &r->pace, r->call, r, n, seconds);
    v->timing = bz_cuda_timing(r->cuda, &r->pace);
    return result;
}

int bz_cuda_run_count(bz_variant *v, const char *list, bz_counted *out, bz_error *err)
{
    const bz_cuda_run *r = v->state;
    return bz_cuda_count(r->cuda, v, list, out, err);
}

int bz_cuda_run_poison(bz_variant *v)
{
    const bz_cuda_run *r = v->state;
    return bz_cuda_operand_poison(r->cuda, r->layout, *r->data);
}

int bz_cuda_run_read(bz_variant *v, float *values, bz_error *err)
{
    const bz_cuda_run *r = v->state;
    return bz_cuda_operand_read(r->cuda, r->result, r->layout, *r->data, values, err);
}

int bz_cuda_run_probe(bz_variant *v, const int64_t *element, int n, float *values, bz_error *err)
{
    const bz_cuda_run *r = v->state;
    return bz_cuda_operand_probe(r->cuda, r->result, r->layout, *r->data, element, n, values, err);
}

/* Operands and descriptors live as long as what was opened for the problem. */
void bz_cuda_run_release(bz_variant *v)
{
    v->state = NULL;
}
