/* Operands: from plain floats to the device in the wanted data type and layout, and back. */
#include "runtime/cuda/cuda.h"

#include "base/arena.h"
#include "runtime/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bz_cuda_layout bz_cuda_plain(const bz_operand *o)
{
    bz_cuda_layout l = {.dtype = o->dtype, .elements = o->count};
    int64_t step = 1;
    for (int d = o->rank; d--; step *= o->dim[d])
        l.stride[d] = step;
    return l;
}

bz_cuda_layout bz_cuda_channels_last(const bz_operand *o)
{
    bz_cuda_layout l = {.dtype = o->dtype, .elements = o->count};
    int64_t step = o->dim[1];
    l.stride[1] = 1;
    for (int d = o->rank; --d > 1; step *= o->dim[d])
        l.stride[d] = step;
    l.stride[0] = step;
    return l;
}

/* How far from the first element of dimension d its element i lies. */
static int64_t reach(const bz_cuda_layout *l, int d, int64_t i)
{
    return l->split_size && d == l->split ? i / l->split_size * l->stride[d] + i % l->split_size * l->split_stride
                                          : i * l->stride[d];
}

/* The dimension whose elements lie one behind the other; else the last. */
static int nearest(const bz_operand *o, const bz_cuda_layout *l)
{
    for (int d = 0; d < o->rank; d++)
        if (l->stride[d] == 1 && !(l->split_size && d == l->split))
            return d;
    return o->rank - 1;
}

/* Copies the operand's elements to where they lie, or back from there. Where those of the last dimension lie apart, a few of the one that lie together go along
 * with each: a line of the cache is written once, and not by each element of it again. */
static void place(const bz_operand *o, const bz_cuda_layout *l, float *laid, float *plain, bool back)
{
    enum { TOGETHER = 16 };
    const bz_cuda_layout rows = bz_cuda_plain(o);
    int last = o->rank - 1, near = nearest(o, l);
    int64_t at[BZ_PROBLEM_RANK] = {0}, n = o->dim[last], beside = near < last ? o->dim[near] : 1;
    for (int64_t i = 0; i < o->count; i += n * beside) {
        int64_t there = l->offset, here = 0;
        for (int d = 0; d < last; d++) {
            there += reach(l, d, at[d]);
            here += at[d] * rows.stride[d];
        }
        for (int64_t from = 0; from < beside; from += TOGETHER) {
            int64_t some = beside - from < TOGETHER ? beside - from : TOGETHER;
            for (int64_t k = 0; k < n; k++) {
                float *x = laid + there + from + reach(l, last, k), *y = plain + here + from * rows.stride[near] + k;
                for (int64_t c = 0; c < some; c++)
                    if (back)
                        y[c * rows.stride[near]] = x[c];
                    else
                        x[c] = y[c * rows.stride[near]];
            }
        }
        for (int d = last; d--;) {
            if (d == near)
                continue;
            if (++at[d] < o->dim[d])
                break;
            at[d] = 0;
        }
    }
}

static size_t bytes_of(const bz_cuda_layout *l)
{
    return ((size_t)l->elements * (size_t)bz_dtype_bits(l->dtype) + 7) / 8;
}

/* Whether the operand lies as its values do, which then need no copy in another order. */
static bool lies_plainly(const bz_operand *o, const bz_cuda_layout *l)
{
    const bz_cuda_layout plain = bz_cuda_plain(o);
    return !l->offset && l->elements == o->count && !l->split_size && l->factor == 0 && !(l->root > 0) &&
           !memcmp(l->stride, plain.stride, sizeof l->stride);
}

static void lay(const bz_operand *o, const bz_cuda_layout *l, const float *value, float *laid)
{
    for (int64_t i = 0; i < l->elements && (!value || l->elements != o->count); i++)
        laid[i] = l->fill;
    if (value)
        place(o, l, laid, (float *)value, false);
    for (int64_t i = 0; i < l->elements && l->factor != 0; i++)
        laid[i] *= l->factor;
    for (int64_t i = 0; i < l->elements && l->root > 0; i++)
        laid[i] = 1 / sqrtf(laid[i] + l->root);
}

static int upload(const bz_operand *o, const bz_cuda_layout *l, const float *value, void *data, bz_error *err)
{
    bool plain = value && lies_plainly(o, l), empty = !value && l->fill == 0;
    float *laid = plain || empty ? NULL : malloc((size_t)l->elements * sizeof *laid + 64);
    void *encoded = empty ? NULL : malloc(bytes_of(l) + 64);
    cudaError_t status = cudaSuccess;
    int result = 0;
    if (empty)
        status = cudaMemset(data, 0, bytes_of(l));
    else if (!encoded || !(laid || plain))
        result = bz_fail(err, BZ_FAILED, "out of memory for bringing %.3g GB to the device", (double)bytes_of(l) / 1e9);
    else {
        if (laid)
            lay(o, l, value, laid);
        bz_values_encode(l->dtype, laid ? laid : value, encoded, l->elements);
        status = cudaMemcpy(data, encoded, bytes_of(l), cudaMemcpyHostToDevice);
    }
    free(laid);
    free(encoded);
    return status == cudaSuccess ? result : bz_cuda_failed(err, "bringing an operand to the device", status);
}

static bool same_layout(const bz_cuda_layout *a, const bz_cuda_layout *b)
{
    return a->dtype == b->dtype && a->offset == b->offset && a->elements == b->elements && a->fill == b->fill &&
           a->factor == b->factor && a->root == b->root && a->split_size == b->split_size && a->split == b->split &&
           a->split_stride == b->split_stride && !memcmp(a->stride, b->stride, sizeof a->stride);
}

int bz_cuda_operand_get(bz_cuda_operands *set, int operand, const bz_cuda_layout *layout, void **data, bz_error *err)
{
    for (int i = 0; i < set->n; i++)
        if (set->item[i].operand == operand && same_layout(&set->item[i].layout, layout)) {
            *data = set->item[i].data;
            return 0;
        }
    bz_cuda_operand own = {operand, *layout, NULL};
    if (bz_cuda_alloc(bytes_of(layout), &own.data, err))
        return -1;
    if (upload(&set->job->operand[operand], layout, set->job->value[operand], own.data, err)) {
        bz_cuda_free(own.data);
        return -1;
    }
    BZ_ADD(set->item, set->n) = own;
    *data = own.data;
    return 0;
}

int bz_cuda_operand_poison(bz_cuda *c, const bz_cuda_layout *layout, void *data)
{
    cudaError_t status = cudaMemsetAsync(data, 0xff, bytes_of(layout), c->stream);
    return status == cudaSuccess ? 0 : bz_cuda_failed(NULL, "overwriting the result", status);
}

int bz_cuda_operand_poison_part(const bz_operand *part, const bz_cuda_layout *layout, void *data)
{
    float *value = malloc((size_t)part->count * sizeof *value + 64);
    for (int64_t i = 0; value && i < part->count; i++)
        value[i] = 1e9f; /* the largest of small types */
    int result = value ? upload(part, layout, value, data, NULL) : -1;
    free(value);
    return result;
}

/* Brings the whole to the host as it lies, into memory that the device writes to by itself: into other memory the driver copies each byte once more. */
static int fetch(bz_cuda *c, const bz_cuda_layout *layout, const void *data, bz_error *err)
{
    if (c->host_size < bytes_of(layout)) {
        cudaFreeHost(c->host);
        c->host = NULL;
        c->host_size = 0;
        if (cudaHostAlloc(&c->host, bytes_of(layout) + 64, cudaHostAllocDefault) != cudaSuccess) {
            cudaGetLastError();
            c->host = NULL;
            return bz_fail(err, BZ_FAILED, "out of memory for the result");
        }
        c->host_size = bytes_of(layout);
    }
    if (bz_cuda_wait(c))
        return -1;
    cudaError_t status = cudaMemcpy(c->host, data, bytes_of(layout), cudaMemcpyDeviceToHost);
    return status == cudaSuccess ? 0 : bz_cuda_failed(err, "bringing the result back", status);
}

int bz_cuda_operand_probe(bz_cuda *c, const bz_operand *o, const bz_cuda_layout *layout, const void *data,
                          const int64_t *element, int n, float *values, bz_error *err)
{
    size_t size = (size_t)bz_dtype_bits(layout->dtype) / 8;
    if (layout->elements != o->count || layout->offset || layout->split_size) /* around it lies what nobody writes */
        return 1;
    if (fetch(c, layout, data, err))
        return -1;
    if (!bz_values_are_numbers(layout->dtype, c->host, layout->elements))
        return 1;
    for (int i = 0; i < n; i++) {
        int64_t where = 0, rest = element[i];
        for (int d = o->rank; d--; rest /= o->dim[d])
            where += rest % o->dim[d] * layout->stride[d];
        bz_values_decode(layout->dtype, (const char *)c->host + (size_t)where * size, &values[i], 1);
    }
    return 0;
}

int bz_cuda_operand_read(bz_cuda *c, const bz_operand *o, const bz_cuda_layout *layout, const void *data, float *values,
                         bz_error *err)
{
    float *laid = malloc((size_t)layout->elements * sizeof *laid + 64);
    int result = laid ? fetch(c, layout, data, err) : bz_fail(err, BZ_FAILED, "out of memory for the result");
    if (!result) {
        bz_values_decode(layout->dtype, c->host, laid, layout->elements);
        place(o, layout, laid, values, true);
        for (int64_t i = 0; i < o->count && layout->root > 0; i++)
            values[i] = 1 / (values[i] * values[i]) - layout->root;
    }
    free(laid);
    return result;
}

void bz_cuda_operands_free(bz_cuda_operands *set)
{
    for (int i = 0; i < set->n; i++)
        bz_cuda_free(set->item[i].data);
    free(set->item);
    *set = (bz_cuda_operands){.job = set->job};
}
