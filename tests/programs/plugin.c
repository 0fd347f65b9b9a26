/* What a Python extension is to Python: a library that brings oneDNN and BLAS along in a local scope. */
#include <oneapi/dnnl/dnnl.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
__attribute__((visibility("default"))) int plugin_run(int iterations, void (*begin)(void), void (*end)(void));

static float x[64], y[64], z[64];

#if DNNL_VERSION_MAJOR < 3
typedef dnnl_memory_desc_t *descriptor;

static dnnl_status_t describe(descriptor md, dnnl_engine_t engine, dnnl_primitive_desc_t *pd)
{
    dnnl_eltwise_desc_t op;
    const dnnl_dims_t dims = {4, 4};
    dnnl_status_t bad = dnnl_memory_desc_init_by_tag(md, 2, dims, dnnl_f32, dnnl_ab);
    bad = bad ? bad : dnnl_eltwise_forward_desc_init(&op, dnnl_forward_inference, dnnl_eltwise_relu, md, 0, 0);
    return bad ? bad : dnnl_primitive_desc_create(pd, &op, 0, engine, 0);
}
#define DESCRIPTOR(md)                                                                                                 \
    dnnl_memory_desc_t md##_is;                                                                                        \
    descriptor md = &md##_is
#define FORGET(md) (void)(md)
#else
typedef dnnl_memory_desc_t descriptor;

static dnnl_status_t describe_3(descriptor *md, dnnl_engine_t engine, dnnl_primitive_desc_t *pd)
{
    const dnnl_dims_t dims = {4, 4};
    dnnl_status_t bad = dnnl_memory_desc_create_with_tag(md, 2, dims, dnnl_f32, dnnl_ab);
    return bad ? bad
               : dnnl_eltwise_forward_primitive_desc_create(pd, engine, dnnl_forward_inference, dnnl_eltwise_relu, *md,
                                                            *md, 0, 0, NULL);
}
#define describe(md, engine, pd) describe_3(&(md), engine, pd)
#define DESCRIPTOR(md)           descriptor md = NULL
#define FORGET(md)               dnnl_memory_desc_destroy(md)
#endif

/* One ReLU over 4 by 4, created anew each time as frameworks do. */
static int relu(dnnl_engine_t engine, dnnl_stream_t stream)
{
    DESCRIPTOR(md);
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    dnnl_memory_t src, dst;
    if (describe(md, engine, &pd) || dnnl_primitive_create(&primitive, pd) || dnnl_memory_create(&src, md, engine, x) ||
        dnnl_memory_create(&dst, md, engine, y))
        return 1;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}};
    int bad = dnnl_primitive_execute(primitive, stream, 2, args) || dnnl_stream_wait(stream);
    dnnl_memory_destroy(src);
    dnnl_memory_destroy(dst);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
    FORGET(md);
    return bad;
}

int plugin_run(int iterations, void (*begin)(void), void (*end)(void))
{
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) || dnnl_stream_create(&stream, engine, dnnl_stream_default_flags))
        return 1;
    const int m = 4, n = 3, k = 5, m2 = 2;
    const float one = 1, zero = 0;
    int bad = 0;
    for (int i = 0; i < iterations && !bad; i++) {
        begin();
        sgemm_("N", "N", &m, &n, &k, &one, x, &m, y, &k, &zero, z, &m);
        bad = relu(engine, stream);
        sgemm_("N", "N", &m2, &n, &k, &one, x, &m2, y, &k, &zero, z, &m2);
        end();
    }
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    return bad;
}
