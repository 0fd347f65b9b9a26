/* Version 2 of oneDNN has no questions for what its structs show. Built beside another version, its structs are not
 * known, and its primitives told without parameters. */
#include "profile/inject/onednn.h"

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR == 2
const bool bzi_onednn2_known = true;

bool bzi_onednn2_tensor(const void *of, bzi_tensor *out)
{
    const dnnl_memory_desc_t *md = of;
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    if (md->ndims < 0 || md->ndims > BZI_RANK)
        return false;
    out->rank = md->ndims;
    out->type = (int)md->data_type;
    out->form = md->format_kind <= dnnl_format_kind_rnn_packed ? (bzi_form)md->format_kind : BZI_FORM_OTHER;
    out->moved = md->offset0 != 0;
    out->extra = md->extra.flags;
    out->dims = md->dims;
    out->padded = md->padded_dims;
    if (out->form != BZI_FORM_BLOCKED)
        return true;
    out->strides = b->strides;
    out->n_blocks = b->inner_nblks;
    out->blocks = b->inner_blks;
    out->indexes = b->inner_idxs;
    return b->inner_nblks >= 0 && b->inner_nblks <= BZI_RANK;
}

static void windows(const void *of, dnnl_primitive_kind_t kind, bzi_facts *f)
{
    if (kind == dnnl_convolution || kind == dnnl_deconvolution) {
        const dnnl_convolution_desc_t *d = of;
        f->alg = (int)d->alg_kind;
        f->strides = d->strides;
        f->dilations = d->dilates;
        f->padding = d->padding[0];
    } else {
        const dnnl_pooling_v2_desc_t *d = of; /* begins as the first one does */
        f->alg = (int)d->alg_kind;
        f->strides = d->strides;
        f->kernel = d->kernel;
        f->padding = d->padding[0];
        f->dilations = kind == dnnl_pooling_v2 ? d->dilation : NULL;
    }
}

static void numbers(const void *of, dnnl_primitive_kind_t kind, bzi_facts *f)
{
    if (kind == dnnl_eltwise) {
        const dnnl_eltwise_desc_t *d = of;
        f->alg = (int)d->alg_kind;
        f->alpha = d->alpha;
        f->beta = d->beta;
    } else if (kind == dnnl_softmax || kind == dnnl_logsoftmax || kind == dnnl_softmax_v2) {
        const dnnl_softmax_v2_desc_t *d = of;
        f->axis = d->softmax_axis;
        f->alg = kind == dnnl_softmax_v2 ? (int)d->alg_kind : 0;
    } else if (kind == dnnl_lrn) {
        const dnnl_lrn_desc_t *d = of;
        f->alg = (int)d->alg_kind;
        f->local = d->local_size;
        f->alpha = d->lrn_alpha;
        f->beta = d->lrn_beta;
    } else if (kind == dnnl_batch_normalization || kind == dnnl_layer_normalization) {
        const dnnl_batch_normalization_desc_t *d = of; /* those of layers are the same struct */
        f->flags = d->flags;
    } else if (kind == dnnl_binary) {
        f->alg = (int)((const dnnl_binary_desc_t *)of)->alg_kind;
    } else if (kind == dnnl_resampling) {
        f->alg = (int)((const dnnl_resampling_desc_t *)of)->alg_kind;
    } else if (kind == dnnl_reduction) {
        const dnnl_reduction_desc_t *d = of;
        f->alg = (int)d->alg_kind;
        f->p = d->p;
        f->epsilon = d->eps;
    } else if (kind == dnnl_shuffle) {
        const dnnl_shuffle_desc_t *d = of;
        f->axis = d->axis;
        f->group = d->group_size;
    } else if (kind == dnnl_rnn) {
        const dnnl_rnn_desc_t *d = of;
        f->cell = (int)d->cell_kind;
        f->direction = (int)d->direction;
        f->activation = (int)d->activation_kind;
        f->flags = d->flags;
    }
}

void bzi_onednn2_parameters(const void *pd, bzi_facts *f)
{
    dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
    const void *of = NULL;
    bzi_dnn.query(pd, dnnl_query_primitive_kind, 0, &kind);
    if (kind == dnnl_reorder || kind == dnnl_concat || kind == dnnl_sum ||
        bzi_dnn.query(pd, dnnl_query_op_d, 0, (void *)&of) || !of)
        return;
    if (kind == dnnl_convolution || kind == dnnl_deconvolution || kind == dnnl_pooling || kind == dnnl_pooling_v2)
        windows(of, kind, f);
    else
        numbers(of, kind, f);
}

#else
const bool bzi_onednn2_known = false;

bool bzi_onednn2_tensor(const void *md, bzi_tensor *out)
{
    (void)md, (void)out;
    return false;
}

void bzi_onednn2_parameters(const void *pd, bzi_facts *f)
{
    (void)pd, (void)f;
}

#endif
