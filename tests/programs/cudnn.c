/* cuDNN's descriptors, which work without a device, and are logged. */
#include <cudnn.h>

int main(void)
{
    cudnnTensorDescriptor_t tensor;
    int bad = cudnnCreateTensorDescriptor(&tensor);
    bad |= cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 3, 224, 224);
    return bad | cudnnDestroyTensorDescriptor(tensor);
}
