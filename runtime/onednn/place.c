/* Operands in memory of the caller's: how an implementation wants them to lie, where they are, and what brings a
 * tensor from one format to another. A format is a buffer of a session: a memory descriptor, and how the tensor's
 * row-major values are seen in its dimensions. */
#include "runtime/onednn/onednn.h"

#include "base/arena.h"
#include "runtime/loops/loops.h"

#include <stdlib.h>

struct bz_converter {
    dnn_heap heap;
    dnnl_stream_t stream;
    dnn_impls impls;
    dnnl_primitive_t primitive;
    dnnl_memory_t from, to;
    bz_replay_loop loop; /* where `width`, bytes of an element, is above 0: instead of the primitive */
    size_t width;
};

static bool is_row_major(session *s, const buffer *b)
{
    dnn_md plain;
    return dnn_md_strided(&s->heap, b->seen.rank, b->seen.dims, dnn_md_type(b->md), b->seen.strides, &plain) ==
               dnnl_success &&
           dnnl_memory_desc_equal(plain, b->md);
}

int bz_onednn_wants(bz_variant *v, int operand, bz_place_wanted *out, bz_error *err)
{
    session *s = v->session;
    const buffer *found = NULL;
    *out = (bz_place_wanted){0};
    for (int i = 0; i < s->n_buffers; i++) {
        const buffer *b = &s->buffers[i];
        if (b->seen.operand != operand)
            continue;
        if (found && !dnnl_memory_desc_equal(found->md, b->md))
            return bz_fail(err, BZ_INCOMPLETE, "%s: wants an operand in two formats at once", v->algorithm);
        found = b;
    }
    if (!found)
        return 0;
    out->bytes = found->size;
    out->format = is_row_major(s, found) ? NULL : found;
    return 0;
}

int bz_onednn_bind(bz_variant *v, int operand, void *at)
{
    session *s = v->session;
    int wanted = operand == BZ_OPERAND_SCRATCH ? SCRATCHPAD : operand;
    for (int i = 0; i < s->n_buffers; i++)
        if (s->buffers[i].seen.operand == wanted &&
            dnnl_memory_set_data_handle(s->buffers[i].memory[0], at) != dnnl_success)
            return -1;
    return 0;
}

/* The operand of the first addition, where it is made in the memory of the result. */
int bz_onednn_residual(const bz_variant *v)
{
    const session *s = v->session;
    const prepared *p = v->state;
    int i = 0;
    if (!p->alternative->in_place)
        return -1;
    while (s->job->operand[i].role != BZ_ROLE_OTHER || s->job->problem->post[s->job->operand[i].post].fn != BZ_FN_ADD)
        i++;
    return i;
}

/* The next dimension that is not 1; the rank behind the last. */
static int next_dimension(const argument *a, int i)
{
    while (i < a->rank && a->dims[i] == 1)
        i++;
    return i;
}

/* Whether both see the same tensor: a dimension of 1 that only one of them has makes no difference. */
static bool same_view(const argument *a, const argument *b)
{
    int i = next_dimension(a, 0), k = next_dimension(b, 0);
    while (i < a->rank && k < b->rank && a->dims[i] == b->dims[k] && a->strides[i] == b->strides[k])
        i = next_dimension(a, i + 1), k = next_dimension(b, k + 1);
    return i == a->rank && k == b->rank;
}

/* The descriptor of a format as one whose tensors have `rank` dimensions has it. What a forward pass kept is described as bytes, whatever it is
 * seen as: it stays as it is. */
static dnnl_status_t seen_as(dnn_heap *h, const buffer *own, int rank, const int64_t *dims, dnn_md *out)
{
    *out = own->md;
    return own->seen.rank == rank ? dnnl_success : dnn_md_reshaped(h, own->md, rank, dims, out);
}

bool bz_onednn_same(const void *format, const void *other)
{
    const buffer *a = format, *b = other;
    dnn_heap heap = {0};
    dnn_md md;
    if (!a || !b)
        return a == b;
    bool same = same_view(&a->seen, &b->seen) && seen_as(&heap, a, b->seen.rank, b->seen.dims, &md) == dnnl_success &&
                dnnl_memory_desc_equal(md, b->md);
    dnn_heap_free(&heap);
    return same;
}

/* The descriptor of one end in the dimensions of `seen`; row-major where the end has no format. */
static dnnl_status_t end_of(bz_converter *c, const buffer *own, const buffer *seen, dnn_md *out)
{
    const argument *a = &seen->seen;
    return own ? seen_as(&c->heap, own, a->rank, a->dims, out)
               : dnn_md_strided(&c->heap, a->rank, a->dims, dnn_md_type(seen->md), a->strides, out);
}

/* Without blocks elements only change places. A loop of ours then takes a third to a half of the library's time, as it writes whole lines.
 * Elements of any type are copied by their width. */
static bool make_loop(bz_converter *c, const argument *seen, dnn_md from, dnn_md to)
{
    const int64_t *x = dnn_md_strides(from), *y = dnn_md_strides(to);
    size_t n = 1, width, bytes = dnnl_memory_desc_get_size(to);
    if (!x || !y || dnn_md_type(from) != dnn_md_type(to) || dnnl_memory_desc_get_size(from) != bytes)
        return false;
    c->loop = (bz_replay_loop){.kind = BZ_LOOP_COPY};
    for (int i = 0; i < seen->rank; i++) { /* in the order in which the result is written */
        int k = c->loop.rank++;
        for (; k && c->loop.stride[1][k - 1] < y[i]; k--) {
            c->loop.dim[k] = c->loop.dim[k - 1];
            c->loop.stride[0][k] = c->loop.stride[0][k - 1], c->loop.stride[1][k] = c->loop.stride[1][k - 1];
        }
        c->loop.dim[k] = seen->dims[i], c->loop.stride[0][k] = x[i], c->loop.stride[1][k] = y[i];
        n *= (size_t)seen->dims[i];
    }
    width = bytes % n ? 0 : bytes / n; /* what lies behind the elements, or between them, only the library knows */
    c->width = width == 1 || width == 2 || width == 4 || width == 8 ? width : 0;
    return c->width > 0;
}

static int run_loop(const bz_converter *c, void *from, void *to)
{
    static const bz_dtype BY_WIDTH[] = {[1] = BZ_I8, [2] = BZ_I16, [4] = BZ_I32, [8] = BZ_I64};
    bz_dtype dtype = BY_WIDTH[c->width];
    return bz_loop_run(&c->loop, (void *[]){from, to}, (bz_dtype[]){dtype, dtype}, NULL, 2, 0);
}

static dnnl_status_t make_reorder(bz_converter *c, dnn_md from, dnn_md to)
{
    dnnl_status_t status = dnnl_engine_create(&c->impls.engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&c->stream, c->impls.engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = dnn_reorder(&c->impls, from, to);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&c->primitive, c->impls.pd[0]);
    if (status == dnnl_success)
        status = dnnl_memory_create(&c->from, from, c->impls.engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_memory_create(&c->to, to, c->impls.engine, DNNL_MEMORY_NONE);
    return status;
}

int bz_onednn_converter(const void *from, const void *to, void *stream, bz_converter **out, bz_error *err)
{
    const buffer *a = from, *b = to;
    dnn_md md[2];
    (void)stream;
    if ((!a && !b) || (a && b && !same_view(&a->seen, &b->seen)))
        return bz_fail(err, BZ_INCOMPLETE, "the formats see the tensor in other dimensions");
    const buffer *seen = b ? b : a;
    bz_converter *c = bz_zeroed(1, sizeof *c);
    dnnl_status_t status = end_of(c, a, seen, &md[0]);
    if (status == dnnl_success)
        status = end_of(c, b, seen, &md[1]);
    if (status == dnnl_success && !make_loop(c, &seen->seen, md[0], md[1]))
        status = make_reorder(c, md[0], md[1]);
    *out = c;
    if (status == dnnl_success)
        return 0;
    bz_onednn_converter_free(c);
    *out = NULL;
    return bz_fail(err, BZ_FAILED, "reorder: %s", dnnl_status2str(status));
}

int bz_onednn_convert(bz_converter *c, void *from, void *to)
{
    if (c->width)
        return run_loop(c, from, to);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, c->from}, {DNNL_ARG_TO, c->to}};
    return dnnl_memory_set_data_handle(c->from, from) != dnnl_success ||
                   dnnl_memory_set_data_handle(c->to, to) != dnnl_success ||
                   dnnl_primitive_execute(c->primitive, c->stream, 2, args) != dnnl_success ||
                   dnnl_stream_wait(c->stream) != dnnl_success
               ? -1
               : 0;
}

void bz_onednn_converter_free(bz_converter *c)
{
    if (!c)
        return;
    if (c->from)
        dnnl_memory_destroy(c->from);
    if (c->to)
        dnnl_memory_destroy(c->to);
    if (c->primitive)
        dnnl_primitive_destroy(c->primitive);
    dnn_impls_free(&c->impls);
    dnn_heap_free(&c->heap);
    if (c->stream)
        dnnl_stream_destroy(c->stream);
    if (c->impls.engine)
        dnnl_engine_destroy(c->impls.engine);
    free(c);
}
