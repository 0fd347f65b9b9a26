/* Operands of a replay, in memory of the caller's: in which layout a call wants them, where they are, and what brings a
 * tensor from one layout to another: cudnnTransformTensor. */
#include "runtime/cudnn/graph.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(CUDNN_MOST_TENSORS >= 24 + BZ_PROBLEM_PARTS + GRAPH_TENSORS, "all tensors of a call");

int cudnn_own_tensors(call *c, tensor **out)
{
    tensor *const own[] = {&c->x,     &c->b,    &c->w,        &c->bias,    &c->other,   &c->scale,
                           &c->shift, &c->mean, &c->variance, &c->more[0], &c->more[1], &c->y};
    int n = (int)(sizeof own / sizeof *own);
    memcpy(out, own, sizeof own);
    for (int i = 0; i < c->n_parts; i++)
        out[n++] = &c->part[2 * i];
    return n;
}

int cudnn_tensors_of(call *c, tensor **out)
{
    int n = cudnn_own_tensors(c, out);
    n += cudnn_rnn_states(c, out + n);
    for (int i = 0; c->graph && i < c->graph->n_tensors; i++)
        if (!c->graph->tensor[i].number)
            out[n++] = &c->graph->tensor[i].memory;
    return n;
}

/* Whether elements lie in the same places: the stride of a dimension of 1 says nothing. */
static bool lies_as(const bz_operand *o, const bz_cuda_layout *a, const bz_cuda_layout *b)
{
    bool same = a->dtype == b->dtype && a->offset == b->offset && a->elements == b->elements;
    for (int d = 0; d < o->rank && same; d++)
        same = o->dim[d] == 1 || a->stride[d] == b->stride[d];
    return same;
}

int cudnn_wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err)
{
    call *c = v->state;
    const bz_operand *o = &c->operand[operand];
    const bz_cuda_layout plain = bz_cuda_plain(o), *found = NULL;
    tensor *all[CUDNN_MOST_TENSORS];
    int n = cudnn_tensors_of(c, all);
    *out = (bz_place_wanted){0};
    for (int i = 0; i < n; i++) {
        if (all[i]->operand != operand)
            continue;
        if (found && !lies_as(o, found, &all[i]->layout))
            return bz_fail(err, BZ_INCOMPLETE, "%s: wants an operand in two layouts at once", v->algorithm);
        found = &all[i]->layout;
    }
    if (!found)
        return 0;
    if (found->root > 0)
        return bz_fail(err, BZ_INCOMPLETE, "%s: wants the root of a variance, inverted", v->algorithm);
    if (found->dtype != o->dtype || found->elements != o->count || found->offset || found->split_size)
        return bz_fail(err, BZ_INCOMPLETE, "%s: wants an operand in another type, in blocks, or with a border",
                       v->algorithm);
    session *s = v->session;
    s->format[operand] = (format){o, *found};
    out->bytes = (size_t)o->count * (size_t)bz_dtype_bits(o->dtype) / 8;
    out->format = lies_as(o, found, &plain) ? NULL : &s->format[operand];
    return 0;
}

int cudnn_bind(bz_variant *v, int operand, void *at)
{
    call *c = v->state;
    tensor *all[CUDNN_MOST_TENSORS];
    int n = cudnn_tensors_of(c, all);
    if (operand == BZ_OPERAND_SCRATCH) {
        c->cuda->workspace = at; /* the session's, though the rest of its device is the replay's */
        c->cuda->workspace_size = c->workspace;
        return 0;
    }
    for (int i = 0; i < n; i++)
        if (all[i]->operand == operand)
            all[i]->data = at;
    return 0;
}

static bool same_dims(const bz_operand *a, const bz_operand *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

bool cudnn_same(const void *one, const void *other)
{
    const format *a = one, *b = other;
    if (!a || !b)
        return a == b;
    return same_dims(a->operand, b->operand) && lies_as(a->operand, &a->layout, &b->layout);
}

struct bz_converter {
    cudnnHandle_t handle;
    tensor from, to;
    bool wide; /* f64 */
};

static cudnnStatus_t describe(tensor *t, const bz_operand *o, const format *f)
{
    *t = (tensor){.layout = f ? f->layout : bz_cuda_plain(o)};
    return cudnn_set_whole(&(call){.operand = o}, t);
}

int cudnn_converter(const void *from, const void *to, void *stream, bz_converter **out, bz_error *err)
{
    const format *a = from, *b = to;
    bz_cuda_stream *shared = stream;
    const bz_operand *o = a ? a->operand : b ? b->operand : NULL;
    if (!o || (a && b && !same_dims(a->operand, b->operand)))
        return bz_fail(err, BZ_INCOMPLETE, "the layouts see the tensor in other dimensions");
    bz_converter *c = bz_zeroed(1, sizeof *c);
    c->wide = o->dtype == BZ_F64;
    if (bz_cudnn_handle(shared, &shared->cuda, &c->handle, err)) {
        free(c);
        return -1;
    }
    cudnnStatus_t status = describe(&c->from, o, a);
    status = status ? status : describe(&c->to, o, b);
    *out = c;
    if (status == CUDNN_STATUS_SUCCESS)
        return 0;
    cudnn_converter_free(c);
    *out = NULL;
    return bz_cudnn_failed(err, "describing a conversion", status);
}

int cudnn_convert(bz_converter *c, void *from, void *to)
{
    static const scalar ONE = {1, 1}, ZERO = {0, 0};
    const void *one = c->wide ? (const void *)&ONE.d : (const void *)&ONE.f;
    const void *zero = c->wide ? (const void *)&ZERO.d : (const void *)&ZERO.f;
    return cudnnTransformTensor(c->handle, one, c->from.desc, from, zero, c->to.desc, to) == CUDNN_STATUS_SUCCESS ? 0
                                                                                                                  : -1;
}

void cudnn_converter_free(bz_converter *c)
{
    if (!c)
        return;
    if (c->from.desc)
        cudnnDestroyTensorDescriptor(c->from.desc);
    if (c->to.desc)
        cudnnDestroyTensorDescriptor(c->to.desc);
    free(c);
}
