/* What descriptors of cuDNN's say, kept for the calls of the stand-in that compute. */
#ifndef BZ_STANDIN_TENSORS_H
#define BZ_STANDIN_TENSORS_H

#include <cudnn.h>
#include <stdint.h>

/* Of a tensor or a filter; or of a convolution or a pooling, whose numbers are `pad`, `step`, `dilation` and `window`. */
typedef struct standin_desc {
    const void *of;
    cudnnDataType_t type;
    int n, dim[8], stride[8];
    int pad[8], step[8], dilation[8], window[8], group, mode;
} standin_desc;

/* The description of an object, made on its first use. */
standin_desc *standin_desc_of(const void *object);
void standin_desc_tensor(const void *object, cudnnDataType_t type, int n, const int *dims, const int *strides);
void standin_desc_filter(const void *object, cudnnDataType_t type, cudnnTensorFormat_t format, int n, const int *dims);

#endif
