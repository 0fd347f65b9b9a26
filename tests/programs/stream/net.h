/* A network as the calls that train it: forward, backward and update, each call a kernel for the device. Layers are added
 * one after the other (zoo.c); net_backward then adds what goes back through them, net_update what changes the parameters.
 *
 * Kernels are oneDNN's, or loops of ours (loops.c); the name of one says what it does and with which shapes, and not in which
 * data type: so the same kernel of two programs has one name. */
#ifndef STREAM_NET_H
#define STREAM_NET_H

#include "device.h"

#include <oneapi/dnnl/dnnl.h>

typedef enum { FORWARD, BACKWARD, UPDATE } phase;

/* Memory on the device with a layout. */
typedef struct tensor {
    dnnl_memory_desc_t md;
    dnnl_memory_t memory;
    void *data;
    struct tensor *grad; /* NULL: none */
    int grads;           /* that were written on the way back: the second one is added to the first */
} tensor;

typedef struct parameter {
    tensor *value, *grad;         /* in the same layout */
    float *first, *second, *work; /* moments; memory for an update in many steps */
    int layer;
} parameter;

/* One call of the host: a kernel, or a fill where `run` is NULL. */
typedef struct call {
    const char *name;
    device_kernel *run;
    void *argument;
    size_t bytes;
    int layer;
    phase phase;
} call;

typedef struct net_options {
    dnnl_data_type_t type;
    int items;           /* times as many images as the network usually has */
    bool fuse;           /* convolution, bias and activation as one call */
    bool fuse_norm;      /* batch normalization and activation as one call */
    bool fuse_optimizer; /* the update of all parameters as one call */
} net_options;

enum { NET_LAYERS = 512, NET_PARAMETERS = 1024 };

struct layer;
typedef struct net {
    net_options options;
    dnnl_engine_t engine;
    call *call;
    int n;
    const char *layer[NET_LAYERS];
    int n_layers;
    parameter parameter[NET_PARAMETERS];
    int n_parameters;
    struct layer *tape;
    int n_tape;
    phase phase;   /* of the calls that are added now */
    tensor *input; /* what each step copies to the device */
    tensor *output;
    float *loss;
} net;

net *net_new(const net_options *options);
size_t net_bytes(const tensor *t);
size_t net_elements(const tensor *t);
void net_backward(net *n); /* from the last layer's result; with the loss */
void net_update(net *n);
/* Adds a kernel to the current layer and phase; the name is copied. */
void net_call(net *n, device_kernel *run, void *argument, const char *name, ...) __attribute__((format(printf, 4, 5)));

void net_fill(net *n, void *at, size_t bytes); /* with zeros */

/* Layers. Images are N, C, H, W; sequences are [tokens, features]. */
tensor *net_image(net *n, int batch, int channels, int size);
tensor *net_tokens(net *n, int tokens, int features);
void net_layer(net *n, const char *name, ...) __attribute__((format(printf, 2, 3))); /* of what comes now */
tensor *net_conv(net *n, tensor *x, int channels, int kernel, int stride, int groups);
tensor *net_conv_bias_relu(net *n, tensor *x, int channels, int kernel, int stride);
tensor *net_norm(net *n, tensor *x);      /* batch normalization */
tensor *net_norm_relu(net *n, tensor *x); /* and ReLU */
tensor *net_relu(net *n, tensor *x);
tensor *net_gelu(net *n, tensor *x);
tensor *net_pool(net *n, tensor *x, bool max, int kernel, int stride, int pad);
tensor *net_flat(net *n, tensor *x); /* after a pooling to one pixel, or of any image */
tensor *net_linear(net *n, tensor *x, int features);
tensor *net_add(net *n, tensor *x, tensor *y);
tensor *net_layer_norm(net *n, tensor *x);
tensor *net_attention(net *n, tensor *q, tensor *k, tensor *v, int batch, int heads);
tensor *net_lstm(net *n, tensor *x, int steps, int hidden);

/* zoo.c: builds a network by its name; false: there is none. */
bool zoo_build(net *n, const char *name);
void zoo_list(void);

tensor *tensor_new(net *n, int rank, const int64_t *dims, dnnl_format_tag_t tag, dnnl_data_type_t type);
tensor *tensor_like(net *n, const dnnl_memory_desc_t *md);
tensor *tensor_view(net *n, const tensor *of, const dnnl_memory_desc_t *md); /* the same memory */
tensor *parameter_add(net *n, const dnnl_memory_desc_t *md);                 /* with its gradient */
/* Runs a primitive on these: argument, tensor, argument, tensor …, 0. */
void primitive_call(net *n, const_dnnl_primitive_desc_t pd, const char *name, ...);
dnnl_primitive_desc_t primitive_describe(net *n, const void *desc, const_dnnl_primitive_attr_t attr,
                                         const_dnnl_primitive_desc_t hint);
const dnnl_memory_desc_t *primitive_wants(const_dnnl_primitive_desc_t pd, dnnl_query_t what);
/* The tensor in that layout: itself, or a new one and a call that brings it there. */
tensor *tensor_as(net *n, tensor *t, const dnnl_memory_desc_t *md);
void tensor_reorder(net *n, tensor *from, tensor *to, const char *what); /* "reorder_transpose" */
/* Where the gradient of x is to be written; grad_done adds it where another layer has written one before. */
tensor *grad_begin(net *n, tensor *x);
void grad_done(net *n, tensor *x, tensor *written);
const char *shape_of(const tensor *t); /* "4x64x56x56"; one of a few buffers in turn */
struct layer *tape_add(net *n, void (*backward)(net *, struct layer *), tensor *x, tensor *y);
void check(dnnl_status_t status, const char *what);
dnnl_memory_desc_t described(int rank, const int64_t *dims, dnnl_data_type_t type, dnnl_format_tag_t tag);

struct layer {
    void (*backward)(net *, struct layer *);
    int layer;
    tensor *x, *y, *z, *weights, *bias;
    tensor *kept[10];
    dnnl_primitive_desc_t forward;
    dnnl_alg_kind_t kind;
    int64_t number[6];
};

#endif
