/* The calls of a network: tensors, primitives, the way back and the update. */
#include "net.h"
#include "loops.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return;
    fprintf(stderr, "stream: oneDNN refuses %s: status %d\n", what, (int)status);
    exit(1);
}

static void *zeroed(size_t n, size_t size)
{
    void *at = calloc(n ? n : 1, size);
    if (!at)
        abort();
    return at;
}

net *net_new(const net_options *options)
{
    net *n = zeroed(1, sizeof *n);
    n->options = *options;
    n->call = zeroed(DEVICE_CALLS, sizeof *n->call);
    n->tape = zeroed(NET_LAYERS * 4, sizeof *n->tape);
    n->loss = zeroed(16, sizeof *n->loss);
    check(dnnl_engine_create(&n->engine, dnnl_cpu, 0), "an engine");
    return n;
}

void net_layer(net *n, const char *name, ...)
{
    char text[128];
    va_list args;
    va_start(args, name);
    vsnprintf(text, sizeof text, name, args);
    va_end(args);
    if (n->n_layers == NET_LAYERS)
        abort();
    n->layer[n->n_layers++] = strdup(text);
}

static void call_add(net *n, device_kernel *run, void *argument, const char *name, size_t bytes)
{
    if (n->n == DEVICE_CALLS)
        abort();
    n->call[n->n++] = (call){name, run, argument, bytes, n->n_layers - 1, n->phase};
}

void net_call(net *n, device_kernel *run, void *argument, const char *name, ...)
{
    char text[256];
    va_list args;
    va_start(args, name);
    vsnprintf(text, sizeof text, name, args);
    va_end(args);
    call_add(n, run, argument, strdup(text), 0);
}

void net_fill(net *n, void *at, size_t bytes)
{
    call_add(n, NULL, at, "fill", bytes);
}

size_t net_bytes(const tensor *t)
{
    return dnnl_memory_desc_get_size(&t->md);
}

size_t net_elements(const tensor *t)
{
    return net_bytes(t) / dnnl_data_type_size(t->md.data_type);
}

/* Small numbers of both signs: what training sees, and neither zeros nor denormals. */
static void randomize(tensor *t)
{
    static uint64_t seed = 1;
    size_t elements = net_elements(t);
    for (size_t i = 0; i < elements; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        float v = ((float)(seed >> 40) / (float)(1 << 24) - 0.5f) * 0.1f;
        store(t->data, t->md.data_type == dnnl_bf16, i, v);
    }
}

tensor *tensor_view(net *n, const tensor *of, const dnnl_memory_desc_t *md)
{
    tensor *t = zeroed(1, sizeof *t);
    t->md = *md;
    t->data = of->data;
    check(dnnl_memory_create(&t->memory, md, n->engine, t->data), "memory");
    return t;
}

tensor *tensor_like(net *n, const dnnl_memory_desc_t *md)
{
    size_t bytes = (dnnl_memory_desc_get_size(md) + 4096) / 4096 * 4096;
    tensor t = {.data = aligned_alloc(4096, bytes)};
    if (!t.data)
        abort();
    memset(t.data, 0, bytes);
    tensor *made = tensor_view(n, &t, md);
    if (md->data_type == dnnl_f32 || md->data_type == dnnl_bf16)
        randomize(made);
    return made;
}

dnnl_memory_desc_t described(int rank, const int64_t *dims, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t all = {0}; /* the library takes whole arrays */
    memcpy(all, dims, (size_t)rank * sizeof *dims);
    check(dnnl_memory_desc_init_by_tag(&md, rank, all, type, tag), "a layout");
    return md;
}

tensor *tensor_new(net *n, int rank, const int64_t *dims, dnnl_format_tag_t tag, dnnl_data_type_t type)
{
    dnnl_memory_desc_t md = described(rank, dims, type, tag);
    return tensor_like(n, &md);
}

tensor *parameter_add(net *n, const dnnl_memory_desc_t *md)
{
    if (n->n_parameters == NET_PARAMETERS)
        abort();
    parameter *p = &n->parameter[n->n_parameters++];
    p->value = tensor_like(n, md);
    p->grad = p->value->grad = tensor_like(n, md);
    p->layer = n->n_layers - 1;
    size_t elements = net_elements(p->value);
    p->first = zeroed(elements, sizeof *p->first);
    p->second = zeroed(elements, sizeof *p->second);
    p->work = zeroed(elements, sizeof *p->work);
    for (size_t i = 0; i < elements; i++)
        p->second[i] = 1e-4f;
    return p->value;
}

const char *shape_of(const tensor *t)
{
    static char text[8][96];
    static int turn;
    char *at = text[turn++ % 8];
    size_t used = 0;
    for (int i = 0; i < t->md.ndims; i++)
        used += (size_t)snprintf(at + used, sizeof text[0] - used, "%s%lld", i ? "x" : "", (long long)t->md.dims[i]);
    return at;
}

typedef struct primitive {
    dnnl_primitive_t primitive;
    int n;
    dnnl_exec_arg_t argument[12];
    dnnl_engine_t engine;
} primitive;

static void primitive_run(void *argument)
{
    static _Thread_local dnnl_stream_t stream;
    const primitive *p = argument;
    if (!stream)
        check(dnnl_stream_create(&stream, p->engine, dnnl_stream_default_flags), "a stream");
    check(dnnl_primitive_execute(p->primitive, stream, p->n, p->argument), "a call");
    check(dnnl_stream_wait(stream), "a wait");
}

dnnl_primitive_desc_t primitive_describe(net *n, const void *desc, const_dnnl_primitive_attr_t attr,
                                         const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t pd = NULL;
    check(dnnl_primitive_desc_create(&pd, desc, attr, n->engine, hint), n->layer[n->n_layers - 1]);
    return pd;
}

const dnnl_memory_desc_t *primitive_wants(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(pd, what, 0);
}

void primitive_call(net *n, const_dnnl_primitive_desc_t pd, const char *name, ...)
{
    primitive *p = zeroed(1, sizeof *p);
    p->engine = n->engine;
    check(dnnl_primitive_create(&p->primitive, pd), name);
    va_list args;
    va_start(args, name);
    for (int what; (what = va_arg(args, int)) != 0;) {
        const tensor *t = va_arg(args, tensor *);
        if (t)
            p->argument[p->n++] = (dnnl_exec_arg_t){what, t->memory};
    }
    va_end(args);
    call_add(n, primitive_run, p, strdup(name), 0);
    const char *how = NULL;
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &how);
    if (getenv("STREAM_VERBOSE"))
        fprintf(stderr, "%s: %s\n", name, how);
}

void tensor_reorder(net *n, tensor *from, tensor *to, const char *what)
{
    dnnl_primitive_desc_t pd;
    char name[128];
    check(dnnl_reorder_primitive_desc_create(&pd, &from->md, n->engine, &to->md, n->engine, NULL), "a reorder");
    snprintf(name, sizeof name, "%s %s", what, shape_of(from));
    primitive_call(n, pd, name, DNNL_ARG_FROM, from, DNNL_ARG_TO, to, 0);
    dnnl_primitive_desc_destroy(pd);
}

tensor *tensor_as(net *n, tensor *t, const dnnl_memory_desc_t *md)
{
    if (dnnl_memory_desc_equal(&t->md, md))
        return t;
    tensor *to = tensor_like(n, md);
    tensor_reorder(n, t, to, "reorder_transpose");
    return to;
}

struct layer *tape_add(net *n, void (*backward)(net *, struct layer *), tensor *x, tensor *y)
{
    if (n->n_tape == NET_LAYERS * 4)
        abort();
    struct layer *l = &n->tape[n->n_tape++];
    *l = (struct layer){.backward = backward, .layer = n->n_layers - 1, .x = x, .y = y};
    return l;
}

tensor *grad_begin(net *n, tensor *x)
{
    if (!x->grad)
        x->grad = tensor_like(n, &x->md);
    return x->grads++ ? tensor_like(n, &x->md) : x->grad;
}

void grad_done(net *n, tensor *x, tensor *written)
{
    if (written == x->grad)
        return;
    dnnl_binary_desc_t d;
    char name[128];
    check(dnnl_binary_desc_init(&d, dnnl_binary_add, &x->md, &x->md, &x->md), "a sum");
    dnnl_primitive_desc_t pd = primitive_describe(n, &d, NULL, NULL);
    snprintf(name, sizeof name, "elementwise_add %s", shape_of(x));
    primitive_call(n, pd, name, DNNL_ARG_SRC_0, x->grad, DNNL_ARG_SRC_1, written, DNNL_ARG_DST, x->grad, 0);
    dnnl_primitive_desc_destroy(pd);
}

void net_backward(net *n)
{
    int layers = n->n_layers;
    n->phase = BACKWARD;
    loss *l = zeroed(1, sizeof *l);
    tensor *y = n->output;
    y->grad = tensor_like(n, &y->md);
    y->grads = 1;
    *l = (loss){y->data, y->grad->data, n->loss, (int)y->md.dims[0], (int)y->md.dims[1], y->md.data_type == dnnl_bf16};
    net_call(n, loss_run, l, "cross_entropy_loss %s", shape_of(y));
    for (int i = n->n_tape; i-- > 0;) {
        n->n_layers = n->tape[i].layer + 1; /* so that its calls are the layer's */
        n->tape[i].backward(n, &n->tape[i]);
    }
    n->n_layers = layers;
}

static update *update_new(net *n, const parameter *p, update_step step)
{
    update *u = zeroed(1, sizeof *u);
    *u = (update){step,      p->value->data, p->grad->data,          p->first,
                  p->second, p->work,        net_elements(p->value), p->value->md.data_type == dnnl_bf16};
    (void)n;
    return u;
}

void net_update(net *n)
{
    int layers = n->n_layers;
    n->phase = UPDATE;
    if (n->options.fuse_optimizer) {
        fused_update *f = zeroed(1, sizeof *f);
        f->n = n->n_parameters;
        f->update = zeroed((size_t)f->n, sizeof *f->update);
        for (int i = 0; i < f->n; i++)
            f->update[i] = *update_new(n, &n->parameter[i], UPDATE_STEPS);
        net_call(n, fused_update_run, f, "multi_tensor_apply adam %d", f->n);
        return;
    }
    for (int i = 0; i < n->n_parameters; i++) {
        const parameter *p = &n->parameter[i];
        n->n_layers = p->layer + 1;
        for (update_step s = 0; s < UPDATE_STEPS; s++)
            net_call(n, update_run, update_new(n, p, s), "elementwise_%s %zu", update_names[s], net_elements(p->value));
    }
    n->n_layers = layers;
}
