/* What is the same in both versions of oneDNN's interface, and the small differences. */
#include "runtime/onednn/dnn.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

bool dnn_dtype(bz_dtype t, dnnl_data_type_t *out)
{
    static const dnnl_data_type_t TYPES[] = {[BZ_F32] = dnnl_f32, [BZ_BF16] = dnnl_bf16, [BZ_F16] = dnnl_f16,
                                             [BZ_I8] = dnnl_s8,   [BZ_U8] = dnnl_u8,     [BZ_I32] = dnnl_s32};
    *out = t < sizeof TYPES / sizeof *TYPES ? TYPES[t] : dnnl_data_type_undef;
    return *out != dnnl_data_type_undef;
}

bool dnn_math(const char *name, dnnl_fpmath_mode_t *mode)
{
    if (!strcmp(name, "default"))
        *mode = dnnl_fpmath_mode_strict;
    else if (!strcmp(name, "bf16"))
        *mode = dnnl_fpmath_mode_bf16;
    else if (!strcmp(name, "f16"))
        *mode = dnnl_fpmath_mode_f16;
#if DNNL_VERSION_MAJOR >= 3
    else if (!strcmp(name, "tf32"))
        *mode = dnnl_fpmath_mode_tf32;
#endif
    else
        return false;
    return true;
}

/* Descriptors are made in the heap's next free place, so that they go with it whatever happens. */
static dnn_md *heap_place(dnn_heap *h)
{
    BZ_ROOM(h->md, h->n);
    h->md[h->n] = NULL;
    return &h->md[h->n++];
}

void dnn_row_major(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = 1;
    for (int i = rank; i--; step *= dims[i])
        strides[i] = step;
}

#if DNNL_VERSION_MAJOR >= 3
#define MD_DESTROY(md) dnnl_memory_desc_destroy(md)

static dnnl_status_t make_strided(dnn_md *md, int rank, const int64_t *dims, dnnl_data_type_t type,
                                  const int64_t *strides)
{
    return dnnl_memory_desc_create_with_strides(md, rank, dims, type, strides);
}

static dnnl_status_t make_tagged(dnn_md *md, int rank, const int64_t *dims, dnnl_data_type_t type,
                                 dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(md, rank, dims, type, tag);
}

static dnnl_status_t make_copy(dnn_md *md, const_dnnl_memory_desc_t of)
{
    return dnnl_memory_desc_clone(md, of);
}

static dnnl_status_t make_reshaped(dnn_md *md, dnn_md of, int rank, const int64_t *dims)
{
    return dnnl_memory_desc_reshape(md, of, rank, dims);
}

static int rank_of(dnn_md md)
{
    int rank = 0;
    dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &rank);
    return rank;
}

dnnl_data_type_t dnn_md_type(dnn_md md)
{
    dnnl_data_type_t type = dnnl_data_type_undef;
    dnnl_memory_desc_query(md, dnnl_query_data_type, &type);
    return type;
}

const int64_t *dnn_md_strides(dnn_md md)
{
    dnnl_format_kind_t kind;
    const dnnl_dims_t *strides;
    int blocks = 0;
    bool told = dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) == dnnl_success && kind == dnnl_blocked &&
                dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks) == dnnl_success && !blocks &&
                dnnl_memory_desc_query(md, dnnl_query_strides, &strides) == dnnl_success;
    return told ? *strides : NULL;
}

dnnl_status_t dnn_post_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(ops, alg, alpha, beta);
}

dnnl_status_t dnn_post_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
}

dnnl_status_t dnn_attr_scale(dnnl_primitive_attr_t attr, float scale, int *arg)
{
    *arg = scale == 1 ? 0 : DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC;
    return scale == 1 ? dnnl_success : dnnl_primitive_attr_set_scales_mask(attr, DNNL_ARG_SRC, 0);
}

bool dnn_bias_is_unscaled(void)
{
    return true;
}
#else
#define MD_DESTROY(md) free(md)

static dnnl_status_t make_strided(dnn_md *md, int rank, const int64_t *dims, dnnl_data_type_t type,
                                  const int64_t *strides)
{
    *md = bz_alloc(1, sizeof **md);
    return dnnl_memory_desc_init_by_strides(*md, rank, dims, type, strides);
}

static dnnl_status_t make_tagged(dnn_md *md, int rank, const int64_t *dims, dnnl_data_type_t type,
                                 dnnl_format_tag_t tag)
{
    *md = bz_alloc(1, sizeof **md);
    return dnnl_memory_desc_init_by_tag(*md, rank, dims, type, tag);
}

static dnnl_status_t make_copy(dnn_md *md, const dnnl_memory_desc_t *of)
{
    *md = bz_alloc(1, sizeof **md);
    **md = *of;
    return dnnl_success;
}

static dnnl_status_t make_reshaped(dnn_md *md, dnn_md of, int rank, const int64_t *dims)
{
    *md = bz_alloc(1, sizeof **md);
    return dnnl_memory_desc_reshape(*md, of, rank, dims);
}

static int rank_of(dnn_md md)
{
    return md->ndims;
}

dnnl_data_type_t dnn_md_type(dnn_md md)
{
    return md->data_type;
}

const int64_t *dnn_md_strides(dnn_md md)
{
    bool plain = md->format_kind == dnnl_blocked && !md->format_desc.blocking.inner_nblks;
    return plain ? md->format_desc.blocking.strides : NULL;
}

dnnl_status_t dnn_post_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(ops, 1, alg, alpha, beta);
}

dnnl_status_t dnn_post_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1);
}

dnnl_status_t dnn_attr_scale(dnnl_primitive_attr_t attr, float scale, int *arg)
{
    *arg = 0;
    return scale == 1 ? dnnl_success : dnnl_primitive_attr_set_output_scales(attr, 1, 0, &scale);
}

bool dnn_bias_is_unscaled(void)
{
    return false;
}
#endif

dnnl_status_t dnn_post_binary(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, dnn_md other)
{
    return dnnl_post_ops_append_binary(ops, alg, other);
}

dnnl_status_t dnn_md_strided(dnn_heap *h, int rank, const int64_t *dims, dnnl_data_type_t type, const int64_t *strides,
                             dnn_md *out)
{
    int64_t plain[DNN_MAX_RANK];
    dnn_row_major(rank, dims, plain);
    dnn_md *place = heap_place(h);
    dnnl_status_t status = make_strided(place, rank, dims, type, strides ? strides : plain);
    *out = *place;
    return status;
}

dnnl_status_t dnn_md_tagged(dnn_heap *h, int rank, const int64_t *dims, dnnl_data_type_t type, dnnl_format_tag_t tag,
                            dnn_md *out)
{
    dnn_md *place = heap_place(h);
    dnnl_status_t status = make_tagged(place, rank, dims, type, tag);
    *out = *place;
    return status;
}

dnnl_status_t dnn_md_reshaped(dnn_heap *h, dnn_md md, int rank, const int64_t *dims, dnn_md *out)
{
    dnn_md *place = heap_place(h);
    dnnl_status_t status = make_reshaped(place, md, rank, dims);
    *out = *place;
    return status;
}

dnn_md dnn_md_of(dnn_heap *h, const_dnnl_primitive_desc_t pd, int arg)
{
    dnn_md *place = heap_place(h);
    if (make_copy(place, dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg)) != dnnl_success)
        return NULL;
    return rank_of(*place) ? *place : NULL;
}

void dnn_heap_free(dnn_heap *h)
{
    for (int i = 0; i < h->n; i++)
        if (h->md[i])
            MD_DESTROY(h->md[i]);
    free(h->md);
    *h = (dnn_heap){0};
}

const_dnnl_primitive_desc_t dnn_hint(const dnn_impls *forward)
{
    return forward->n ? forward->pd[0] : NULL;
}

dnn_window dnn_window_of(int n, const int64_t *stride, const int64_t *kernel, const int64_t *dilation,
                         const int64_t *pad)
{
    dnn_window w = {.stride = stride, .kernel = kernel, .begin = pad, .end = pad + n};
    for (int i = 0; i < n; i++)
        w.skip[i] = dilation[i] - 1;
    return w;
}

dnnl_prop_kind_t dnn_prop(const dnn_impls *impls)
{
    return impls->training ? dnnl_forward_training : dnnl_forward_inference;
}

void dnn_impls_free(dnn_impls *impls)
{
    while (impls->n)
        dnnl_primitive_desc_destroy(impls->pd[--impls->n]);
}
