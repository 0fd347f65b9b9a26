/* What names of calls and operators mean; profile/kernels.c has the kernels. The first row whose text occurs counts. */
#include "explain/align.h"

typedef struct row {
    const char *text; /* as for bz_name_matches */
    bz_align_rule rule;
} row;

/* Library calls, where their parameters are not known or make no problem. */
static const row CALLS[] = {
    {"^reorder$", {NULL, BZ_CAUSE_ACTIVATIONS_REORDERED}}, /* or weights: align_steps.c tells them apart */
    {"^cudnnTransform ^cudnnIm2Col", {NULL, BZ_CAUSE_LAYOUT_CHANGED}},
    {"^cudnnSetTensor", {NULL, BZ_CAUSE_FILLED}},
    {"^cudnnConvolutionBackwardData ^deconvolution$", {"deconv", BZ_CAUSE_NONE}},
    {"^cudnnConvolution ^cudnnBackendExecute ^convolution$", {"conv", BZ_CAUSE_NONE}},
    {"^cudnnAddTensor", {"bias", BZ_CAUSE_NONE}},
    {"^cudnnPooling ^pooling", {"pool", BZ_CAUSE_NONE}},
    {"^cudnnActivation", {"relu", BZ_CAUSE_NONE}},
    {"^cudnnBatchNormalization ^cudnnNormalization ^batch_normalization", {"batchnorm", BZ_CAUSE_NONE}},
    {"^cudnnSoftmax ^softmax", {"softmax", BZ_CAUSE_NONE}},
    {"^cudnnLRN ^lrn$", {"lrn", BZ_CAUSE_NONE}},
    {"^cudnnOpTensor ^sum$", {"add", BZ_CAUSE_NONE}},
    {"^cudnnReduce ^reduction$", {"reduce", BZ_CAUSE_NONE}},
    {"^cudnnRNN ^rnn$", {"lstm", BZ_CAUSE_NONE}},
    {"^cublas gemm gemv ^matmul$ ^inner_product$", {"product", BZ_CAUSE_NONE}},
    {"^layer_normalization", {"layernorm", BZ_CAUSE_NONE}},
    {"^logsoftmax", {"logsoftmax", BZ_CAUSE_NONE}},
    {"^concat$", {"concat", BZ_CAUSE_NONE}},
    {"^prelu$", {"prelu", BZ_CAUSE_NONE}},
    {"^resampling", {"resample", BZ_CAUSE_NONE}},
};

/* Operators of PyTorch and of ONNX Runtime that compute, where neither calls nor kernels were recorded. The outermost one
 * that is known counts. */
static const row OPERATORS[] = {
    {"^Optimizer.zero_grad#", {NULL, BZ_CAUSE_FILLED}}, /* PyTorch's, with whatever they do inside */
    {"^Optimizer.step#", {"update", BZ_CAUSE_NONE}},
    {"^torch::autograd::AccumulateGrad$", {NULL, BZ_CAUSE_GRADIENTS_ADDED}},
    {"^aten::fake_quantize ^aten::_fake_quantize ^aten::fused_moving_avg_obs_fake_quant ^aten::_fused_moving_avg_obs",
     {NULL, BZ_CAUSE_FAKE_QUANTIZED}},
    {"ReorderInput ReorderOutput", {NULL, BZ_CAUSE_ACTIVATIONS_REORDERED}},
    /* of a backward pass; one operator does both gradients of a convolution, and that of its bias */
    {"^aten::*convolution_backward_input", {"conv_data", BZ_CAUSE_NONE}},
    {"^aten::*convolution_backward_weight", {"conv_weights", BZ_CAUSE_NONE}},
    {"^aten::*convolution_backward ^aten::*conv2d_backward", {"conv_data conv_weights reduce?", BZ_CAUSE_NONE}},
    {"^aten::*batch_norm_backward", {"batchnorm_grad", BZ_CAUSE_NONE}},
    {"^aten::*layer_norm_backward", {"layernorm_grad", BZ_CAUSE_NONE}},
    {"^aten::*group_norm_backward", {"groupnorm_grad", BZ_CAUSE_NONE}},
    {"^aten::*pool*_backward", {"pool_grad", BZ_CAUSE_NONE}},
    {"^aten::_softmax_backward", {"softmax_grad", BZ_CAUSE_NONE}},
    {"^aten::_log_softmax_backward", {"softmax_loss_grad", BZ_CAUSE_NONE}},
    {"^aten::upsample_*_backward", {"resize_grad", BZ_CAUSE_NONE}},
    {"^aten::grid_sampler_*_backward", {"gridsample_grad", BZ_CAUSE_NONE}},
    {"^aten::slice_backward", {"slice_grad", BZ_CAUSE_NONE}},
    {"^aten::reflection_pad*_backward ^aten::replication_pad*_backward", {"pad_grad", BZ_CAUSE_NONE}},
    {"^aten::*dropout_backward", {"dropout_grad", BZ_CAUSE_NONE}},
    {"^aten::embedding_backward ^aten::embedding_dense_backward ^aten::index_select_backward "
     "^aten::select_backward",
     {"scatter_add", BZ_CAUSE_NONE}},
    {"^aten::glu_backward$", {"mul? mul? activation_grad? concat", BZ_CAUSE_NONE}},
    {"^aten::*dot_product*attention_backward", {"attention_grad", BZ_CAUSE_NONE}},
    {"^aten::threshold_backward ^aten::hardtanh_backward ^aten::leaky_relu_backward ^aten::elu_backward "
     "^aten::gelu_backward ^aten::silu_backward ^aten::sigmoid_backward ^aten::tanh_backward ^aten::hardswish_backward "
     "^aten::hardsigmoid_backward ^aten::softplus_backward ^aten::log_sigmoid_backward",
     {"activation_grad", BZ_CAUSE_NONE}},
    /* nodes of autograd whose formula takes other operators than the derivative of the layer */
    {"^DivBackward", {"div mul? neg?", BZ_CAUSE_NONE}},
    {"^PowBackward", {"pow? mul? mul", BZ_CAUSE_NONE}},
    {"^RsqrtBackward", {"div? mul? neg? activation_grad? activation_grad", BZ_CAUSE_NONE}},
    {"^SqrtBackward ^ReciprocalBackward ^ExpBackward ^LogBackward ^ErfBackward ^AbsBackward ^SinBackward ^CosBackward "
     "^TanBackward ^AtanBackward ^AsinBackward ^AcosBackward ^ClampBackward ^ClampMinBackward ^ClampMaxBackward",
     {"activation_grad", BZ_CAUSE_NONE}},
    {"^NormBackward ^LinalgVectorNormBackward", {"div? mul", BZ_CAUSE_NONE}},
    {"^MaxBackward0 ^MinBackward0 ^AmaxBackward ^AminBackward", {"equal? cast? mul", BZ_CAUSE_NONE}},
    {"^PixelShuffleBackward ^PixelUnshuffleBackward", {"transpose", BZ_CAUSE_NONE}},
    {"^aten::prelu_backward$ ^aten::_prelu_kernel_backward$",
     {"greater? mul where? relu? sub? mul? reduce?", BZ_CAUSE_NONE}},
    {"^aten::mish_backward$", {"mul? mul? activation_grad activation_grad? add?", BZ_CAUSE_NONE}},
    {"^WeightNormInterfaceBackward", {"mul mul? reduce? div? mul? neg? reduce? div? mul? add?", BZ_CAUSE_NONE}},
    {"^VarBackward", {"div? mul? mul? mul", BZ_CAUSE_NONE}}, /* of a sample it is scaled */
    {"^StdBackward", {"activation_grad? div? mul? mul? mul", BZ_CAUSE_NONE}},
    {"^VarMeanBackward", {"div? mul? mul? mul expand?", BZ_CAUSE_NONE}},
    {"^MeanBackward", {"pool_grad? mul? expand?", BZ_CAUSE_NONE}}, /* also of a pooling of all there is */
    {"^aten::mse_loss_backward$", {"mul", BZ_CAUSE_NONE}},
    {"^aten::mse_loss$", {"sub mul reduce mul", BZ_CAUSE_NONE}},
    {"^aten::cross_entropy_loss$", {"softmax_loss", BZ_CAUSE_NONE}},
    {"^aten::conv_transpose ^ConvTranspose$", {"deconv", BZ_CAUSE_NONE}},
    {"^aten::conv ^aten::_convolution ^FusedConv$ ^Conv$", {"conv", BZ_CAUSE_NONE}},
    {"^aten::baddbmm$", {"product bias? add?", BZ_CAUSE_NONE}},        /* of attention, with its mask */
    {"^aten::linear$ ^aten::addmm$", {"product bias", BZ_CAUSE_NONE}}, /* where it has one */
    {"^aten::_addmm_activation$", {"product bias relu? gelu_erf?", BZ_CAUSE_NONE}},
    {"^aten::_transform_bias_rescale_qkv$", {"bias div? mul?", BZ_CAUSE_NONE}}, /* of attention, before its products */
    {"^aten::matmul$ ^aten::mm$ ^aten::bmm$ ^aten::mv$ ^aten::dot$ ^aten::addbmm$ ^FusedGemm$ ^Gemm$ ^FusedMatMul$ "
     "^MatMul$",
     {"product", BZ_CAUSE_NONE}},
    {"^aten::scaled_dot_product_attention$ ^aten::_scaled_dot_product", {"attention", BZ_CAUSE_NONE}},
    {"^aten::lstm$", {"lstm", BZ_CAUSE_NONE}},
    {"^aten::gru$", {"gru", BZ_CAUSE_NONE}},
    {"^aten::rnn_tanh$ ^aten::rnn_relu$", {"rnn", BZ_CAUSE_NONE}},
    {"^aten::lstm.backward$", {"lstm_grad", BZ_CAUSE_NONE}}, /* made of many: align_back.c */
    {"^aten::gru.backward$", {"gru_grad", BZ_CAUSE_NONE}},
    {"^aten::rnn_*.backward$", {"rnn_grad", BZ_CAUSE_NONE}},
    {"^aten::batch_norm ^BatchNormalization$", {"batchnorm", BZ_CAUSE_NONE}},
    {"^aten::layer_norm ^aten::native_layer_norm$ ^LayerNormalization$", {"layernorm", BZ_CAUSE_NONE}},
    {"^aten::group_norm ^aten::instance_norm", {"groupnorm", BZ_CAUSE_NONE}},
    {"^aten::relu ^Relu$", {"relu", BZ_CAUSE_NONE}},
    {"^aten::hardtanh ^aten::clamp ^Clip$", {"clip", BZ_CAUSE_NONE}},
    {"^aten::gelu ^Gelu$", {"gelu_erf", BZ_CAUSE_NONE}},
    {"^aten::silu", {"swish", BZ_CAUSE_NONE}},
    {"^aten::hardswish", {"hardswish", BZ_CAUSE_NONE}},
    {"^aten::hardsigmoid", {"hardsigmoid", BZ_CAUSE_NONE}},
    {"^aten::leaky_relu", {"leaky", BZ_CAUSE_NONE}},
    {"^aten::elu", {"elu", BZ_CAUSE_NONE}},
    {"^aten::dropout ^aten::feature_dropout ^aten::native_dropout$", {"dropout", BZ_CAUSE_NONE}},
    {"^aten::glu$", {"split? slice? slice? sigmoid mul", BZ_CAUSE_NONE}},
    {"^aten::mish$", {"mish? softplus? tanh? mul?", BZ_CAUSE_NONE}}, /* older models write it out */
    {"^aten::_weight_norm$", {"reduce? div? mul", BZ_CAUSE_NONE}},
    {"^aten::softplus", {"softplus", BZ_CAUSE_NONE}},
    {"^aten::prelu", {"prelu", BZ_CAUSE_NONE}},
    {"^aten::sigmoid ^Sigmoid$", {"sigmoid", BZ_CAUSE_NONE}},
    {"^aten::tanh ^Tanh$", {"tanh", BZ_CAUSE_NONE}},
    {"^aten::add_$ ^aten::add$ ^Add$ ^Sum$", {"add", BZ_CAUSE_NONE}},
    {"^aten::mul ^Mul$", {"mul", BZ_CAUSE_NONE}},
    {"^aten::sub$ ^aten::sub_$ ^aten::rsub$ ^Sub$", {"sub", BZ_CAUSE_NONE}},
    {"^aten::div ^aten::true_divide$ ^Div$", {"div", BZ_CAUSE_NONE}},
    {"^aten::pow", {"pow", BZ_CAUSE_NONE}},
    {"^aten::rsqrt", {"sqrt div? reciprocal?", BZ_CAUSE_NONE}},
    {"^aten::sqrt", {"sqrt", BZ_CAUSE_NONE}},
    {"^aten::exp$ ^aten::exp_$", {"exp", BZ_CAUSE_NONE}},
    {"^aten::erf$ ^aten::erf_$", {"erf", BZ_CAUSE_NONE}},
    {"^aten::log$ ^aten::log_$", {"log", BZ_CAUSE_NONE}},
    {"^aten::neg$ ^aten::neg_$", {"neg", BZ_CAUSE_NONE}},
    {"^aten::abs$ ^aten::abs_$", {"abs", BZ_CAUSE_NONE}},
    {"^aten::sin$ ^aten::sin_$", {"sin", BZ_CAUSE_NONE}},
    {"^aten::cos$ ^aten::cos_$", {"cos", BZ_CAUSE_NONE}},
    {"^aten::reciprocal", {"reciprocal", BZ_CAUSE_NONE}},
    {"^aten::maximum$", {"max", BZ_CAUSE_NONE}},
    {"^aten::minimum$", {"min", BZ_CAUSE_NONE}},
    {"^aten::cumsum", {"cumsum", BZ_CAUSE_NONE}},
    {"^aten::topk$", {"topk", BZ_CAUSE_NONE}},
    {"^aten::max_pool ^aten::adaptive_max_pool ^MaxPool$ ^GlobalMaxPool$", {"maxpool", BZ_CAUSE_NONE}},
    {"^aten::avg_pool ^aten::adaptive_avg_pool ^AveragePool$ ^GlobalAveragePool$", {"avgpool", BZ_CAUSE_NONE}},
    {"^aten::var$", {"reduce? sub? mul? reduce mul? div?", BZ_CAUSE_NONE}},
    {"^aten::std$", {"reduce? sub? mul? reduce mul? div? sqrt", BZ_CAUSE_NONE}},
    {"^aten::var_mean$", {"reduce? reduce? sub? mul? reduce mul? div?", BZ_CAUSE_NONE}},
    {"^aten::std_mean$", {"reduce? reduce? sub? mul? reduce mul? div? sqrt", BZ_CAUSE_NONE}},
    {"^aten::max$ ^aten::min$ ^aten::amax$ ^aten::amin$ ^aten::prod$ ^aten::logsumexp$", {"reduce", BZ_CAUSE_NONE}},
    {"^aten::argmax$", {"argmax", BZ_CAUSE_NONE}},
    {"^aten::argmin$", {"argmin", BZ_CAUSE_NONE}},
    {"^aten::pixel_shuffle$", {"depthtospace", BZ_CAUSE_NONE}},
    {"^aten::pixel_unshuffle$", {"spacetodepth", BZ_CAUSE_NONE}},
    {"^aten::norm$ ^aten::linalg_vector_norm$ ^aten::frobenius_norm$", {"reduce", BZ_CAUSE_NONE}},
    {"^aten::mean$ ^aten::sum$", {"reduce", BZ_CAUSE_NONE}},
    {"^aten::log_softmax ^aten::_log_softmax", {"logsoftmax", BZ_CAUSE_NONE}},
    {"^aten::softmax ^aten::_softmax ^Softmax$", {"softmax", BZ_CAUSE_NONE}},
    {"^aten::cat$ ^aten::stack$ ^Concat$", {"concat", BZ_CAUSE_NONE}},
    {"^aten::upsample_", {"resample", BZ_CAUSE_NONE}},
    {"^aten::embedding$ ^aten::index_select$ ^Gather$", {"gather", BZ_CAUSE_NONE}},
    {"^aten::index$", {"gather", BZ_CAUSE_NONE}},
    {"^aten::gather$", {"gatherelements", BZ_CAUSE_NONE}},
    {"^aten::scatter ^aten::index_add ^aten::index_put ^aten::_index_put", {"scatterelements", BZ_CAUSE_NONE}},
    {"^aten::where ^aten::masked_fill", {"where", BZ_CAUSE_NONE}},
    {"^aten::pad ^aten::constant_pad", {NULL, BZ_CAUSE_INPUT_PADDED}},
    {"^aten::to$", {NULL, BZ_CAUSE_CONVERTED}},
    {"^aten::contiguous$", {NULL, BZ_CAUSE_LAYOUT_CHANGED}},
    {"^aten::copy_$", {NULL, BZ_CAUSE_COPIED}},
    {"^LRN$", {"lrn", BZ_CAUSE_NONE}},
    {"^Transpose$", {"transpose", BZ_CAUSE_NONE}},
};

/* Operators of PyTorch by which it looks at the same memory in another way, and the layers that are no more than that. */
static const struct {
    const char *layers, *operators;
} VIEWS[BZ_ALIGN_VIEWS] = {
    {"transpose",
     "^aten::transpose ^aten::permute ^aten::t$ ^aten::numpy_T ^aten::swapaxes ^aten::swapdims ^aten::movedim "
     "^aten::mT$ ^aten::adjoint"},
    {"slice split gather", "^aten::slice$ ^aten::narrow$ ^aten::split ^aten::chunk$ ^aten::tensor_split ^aten::unbind$ "
                           "^aten::select$"},
    {"expand", "^aten::expand$ ^aten::expand_as$ ^aten::broadcast_to$"},
};

/* Calls of CUDA's runtime and driver; other ones are "runtime". */
static const row APIS[] = {
    {"Synchronize EventQuery StreamQuery", {NULL, BZ_CAUSE_WAITS}},
    {"Launch", {NULL, BZ_CAUSE_LAUNCHES}},
    {"Malloc Free MemAlloc MemFree HostAlloc HostRegister", {NULL, BZ_CAUSE_ALLOCATES}},
};

static const struct {
    const char *id, *name;
} CAUSES[BZ_CAUSES] = {
    [BZ_CAUSE_WEIGHTS_REORDERED] = {"weights-reordered", "weights brought into another layout"},
    [BZ_CAUSE_ACTIVATIONS_REORDERED] = {"activations-reordered", "activations brought into another layout"},
    [BZ_CAUSE_LAYOUT_CHANGED] = {"layout-changed", "data brought into another layout"},
    [BZ_CAUSE_INPUT_PADDED] = {"input-padded", "inputs padded by the program"},
    [BZ_CAUSE_EDGES_REPEATED] = {"edges-repeated", "inputs padded by the program with their edges"},
    [BZ_CAUSE_NORMALIZED] = {"normalized", "batch normalization that the model has in its weights"},
    [BZ_CAUSE_CONSTANTS_COMPUTED] = {"constants-computed", "work on constants alone"},
    [BZ_CAUSE_CONVERTED] = {"converted", "data converted to another type"},
    [BZ_CAUSE_FILLED] = {"filled", "buffers filled"},
    [BZ_CAUSE_GRADIENTS_ADDED] = {"gradients-added", "gradients kept, or added to those that are there"},
    [BZ_CAUSE_RECOMPUTED] = {"recomputed", "layers computed once more for the way back"},
    [BZ_CAUSE_FAKE_QUANTIZED] = {"fake-quantized", "values rounded to what integers could hold, while training"},
    [BZ_CAUSE_COPIED] = {"copied", "copies"},
    [BZ_CAUSE_COPIED_TO_DEVICE] = {"copied-to-device", "copies to the device"},
    [BZ_CAUSE_COPIED_FROM_DEVICE] = {"copied-from-device", "copies from the device"},
    [BZ_CAUSE_COPIED_ON_DEVICE] = {"copied-on-device", "copies on the device"},
    [BZ_CAUSE_CALLS_EXTRA] = {"calls-extra", "library calls that belong to no layer"},
    [BZ_CAUSE_KERNELS_EXTRA] = {"kernels-extra", "kernels that belong to no layer"},
    [BZ_CAUSE_OPERATORS_EXTRA] = {"operators-extra", "operators that belong to no layer"},
    [BZ_CAUSE_QUEUED] = {"queued", "the device goes from one kernel to the next, which is queued"},
    [BZ_CAUSE_WAITS] = {"waits", "the device is done, and the host still waits for it"},
    [BZ_CAUSE_LAUNCHES] = {"launches", "the device waits for launches"},
    [BZ_CAUSE_ALLOCATES] = {"allocates", "the device waits while memory is allocated or freed"},
    [BZ_CAUSE_RUNTIME] = {"runtime", "the device waits for other calls of its runtime"},
    [BZ_CAUSE_LIBRARY] = {"library", "the device waits while a library call works on the host"},
    [BZ_CAUSE_LAYERS_OUTSIDE] = {"layers-outside", "layers that the framework does between two library calls"},
    [BZ_CAUSE_OTHER_ITERATION] = {"other-iteration", "work of another iteration"},
    [BZ_CAUSE_START] = {"start", "before the first call"},
    [BZ_CAUSE_END] = {"end", "behind the last call"},
    [BZ_CAUSE_GAPS] = {"gaps", "time between calls that nothing explains"},
};

static bz_align_rule find(const row *rows, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (bz_name_matches_any(rows[i].text, name))
            return rows[i].rule;
    return (bz_align_rule){NULL, BZ_CAUSE_NONE};
}

bz_align_rule bz_align_call_rule(const char *name)
{
    return find(CALLS, sizeof CALLS / sizeof *CALLS, name);
}

bz_align_rule bz_align_operator_rule(const char *name)
{
    return find(OPERATORS, sizeof OPERATORS / sizeof *OPERATORS, name);
}

int bz_align_view_row(const char *name)
{
    for (int i = 0; i < BZ_ALIGN_VIEWS; i++)
        if (bz_name_matches_any(VIEWS[i].operators, name))
            return i;
    return -1;
}

int bz_align_view_of(const char *kind)
{
    for (int i = 0; i < BZ_ALIGN_VIEWS; i++)
        if (bz_has_word(VIEWS[i].layers, kind))
            return i;
    return -1;
}

bz_cause_kind bz_align_api_cause(const char *name)
{
    bz_align_rule rule = find(APIS, sizeof APIS / sizeof *APIS, name);
    return rule.cause ? rule.cause : BZ_CAUSE_RUNTIME;
}

const char *bz_cause_id(bz_cause_kind cause)
{
    return CAUSES[cause].id;
}

const char *bz_cause_name(bz_cause_kind cause)
{
    return CAUSES[cause].name;
}
