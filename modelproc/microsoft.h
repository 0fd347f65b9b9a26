/* Rules of the com.microsoft operators, by file; the rows are in ops_microsoft.c. Private to modelproc/. */
#ifndef BZ_MICROSOFT_H
#define BZ_MICROSOFT_H

#include "modelproc/geometry.h"
#include "modelproc/rule.h"

#define MICROSOFT "com.microsoft"

/* ops_microsoft_attention.c */
int ms_head_count(call *c, const char *name, int64_t *heads); /* fails where the attribute is no number of heads */
/* Cost rules read these: `kv` keys for each token, both products over a width of qk + v. */
void ms_note_attention(call *c, int64_t heads, bz_dim kv, bz_dim qk, bz_dim v);
/* Of attention whose n caches are the operands from `past` on; `table`: its cosines and sines, or 0. */
void ms_cached_cost(call *c, int past, int n, int table);
rule ms_attention_shape, ms_qattention_shape, ms_packed_attention_shape, ms_multihead_shape, ms_decoder_multihead_shape,
    ms_group_query_shape, ms_rotary_shape, ms_relative_bias_shape, ms_gated_bias_shape, ms_remove_padding_shape,
    ms_restore_padding_shape, ms_moe_shape;
costs ms_attention_cost, ms_stacked_cost, ms_qattention_cost, ms_multihead_cost, ms_decoder_multihead_cost,
    ms_group_query_cost, ms_rotary_cost, ms_moe_cost;

/* ops_microsoft_product.c */
void ms_note_activation(call *c);
void ms_unpack(call *c, int k, int64_t bits, int rank, const bz_dim *dims);
rule ms_matmul_shape, ms_gemm_shape, ms_qgemm_shape, ms_nbits_shape, ms_integer_to_float_shape, ms_dynamic_matmul_shape,
    ms_conv_shape, ms_nhwc_conv_shape, ms_nhwc_pool_shape, ms_dynamic_deconv_shape, ms_qlinear_conv_shape,
    ms_qlinear_pool_shape, ms_qlinear_global_pool_shape;
costs ms_conv_cost, ms_nhwc_conv_cost, ms_qlinear_conv_cost;

/* ops_microsoft_move.c: normalizations, element-wise work, moving bytes */
rule ms_layernorm_shape, ms_skip_norm_shape, ms_embed_norm_shape, ms_groupnorm_shape, ms_bias_shape,
    ms_quick_gelu_shape, ms_split_gelu_shape, ms_softmax_shape, ms_dropout_shape, ms_binary_shape, ms_where_shape,
    ms_reduce_mean_shape, ms_concat_shape, ms_second_shape, ms_unique_shape, ms_rfft_shape, ms_irfft_shape,
    ms_pad_shape, ms_expand_dims_shape, ms_crop_resize_shape, ms_hash_shape, ms_inverse_shape;
costs ms_rfft_cost, ms_inverse_cost;

/* ops_microsoft_search.c */
rule ms_search_shape;

/* A number that the shape rule noted, for the cost rule; 0 where it is not there. */
static inline int64_t noted(const call *c, const char *name)
{
    for (int i = 0; i < c->n_params; i++)
        if (!strcmp(c->params[i].name, name) && c->params[i].n == 1)
            return c->params[i].v[0];
    return 0;
}

#endif
