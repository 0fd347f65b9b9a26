/* Layers that run as one compute what they compute one by one: plans of small networks, with groups and without, run here. */
#include "model_lines.h"
#include "plan_run.h"

/* `same` spells the network in another way, without what may go into weights. */
static const struct network {
    const char *values, *nodes, *same;
} NETWORKS[] = {
    {"X=2x3x6x6 w=4x3x3x3 b=4", "Conv X,w,b c; Relu c y", NULL},
    {"X=2x3x6x6 w=4x3x3x3", "Conv X,w c; Tanh c y", NULL},
    {"X=2x3x6x6 w=4x3x3x3 k=4x1x1", "Conv X,w c; Add c,k y", NULL},
    {"X=2x3x6x6 w=4x3x3x3 k=4x1x1", "Conv X,w c; Add c,k d; LeakyRelu{alpha=0.3} d y", NULL},
    {"X=2x3x6x6 w=4x3x3x3 b=4", "Conv X,w,b c; Sigmoid c d; Mul c,d y", NULL},
    {"X=2x3x6x6 w=4x3x3x3 b=4", "Conv X,w,b c; HardSigmoid{alpha=0.166667;beta=0.5} c d; Mul c,d y", NULL},
    {"X=2x3x6x6 w=4x3x3x3 s=4 o=4 m=4 v=4",
     "Conv{pads=1x1x1x1;strides=2x2} X,w c; BatchNormalization{epsilon=0.1} c,s,o,m,v y", NULL},
    {"X=2x3x6x6 w=4x3x3x3 b=4 s=4 o=4 m=4 v=4", "Conv X,w,b c; BatchNormalization c,s,o,m,v n; Relu n y", NULL},
    {"X=2x4x6x6 w=4x1x3x3 s=4 o=4 m=4 v=4", "Conv{group=4} X,w c; BatchNormalization c,s,o,m,v n; Clip n,lo,hi y",
     NULL},
    {"X=2x3x6x6 w=4x3x3x3 b=4 s=4 o=4 m=4 v=4", "Conv X,w,b c; BatchNormalization c,s,o,m,v n; Sigmoid n g; Mul n,g y",
     NULL},
    {"X=2x3x6x6 w=4x3x3x3 b=4 s=4 o=4 m=4 v=4 R=2x4x4x4", "Conv X,w,b c; BatchNormalization c,s,o,m,v n; Add n,R y",
     NULL},
    {"X=2x3x6x6 w=4x3x3x3 b=4 s=4 o=4 m=4 v=4 R=2x4x4x4",
     "Conv X,w,b c; BatchNormalization c,s,o,m,v n; Add R,n a; Relu a y", NULL},
    {"X=2x3x6x6 w=4x3x3x3 b=4 R=2x4x4x4", "Conv X,w,b c; Add c,R d; Relu d y", NULL},
    {"X=2x3x6x6 s=3 o=3 m=3 v=3 w=4x3x3x3",
     "BatchNormalization X,s,o,m,v n; Relu n r; Conv X,w c; Conv r,w d; Add c,d y", NULL},
    {"X=2x3x6x6 s=3 o=3 m=3 v=3", "BatchNormalization X,s,o,m,v n; Relu n y", NULL},
    {"X=3x4 Z=3x4", "Add X,Z a; Sigmoid a y", NULL},
    {"X=3x4 w=4x5 b=5", "Gemm X,w,b a; Tanh a y", NULL},
    {"X=3x4 w=5x4 b=5 s=5 o=5 m=5 v=5", "Gemm{transB=1} X,w,b a; BatchNormalization a,s,o,m,v y", NULL},
    {"X=3x4 w=4x5 s=5 o=5 m=5 v=5", "MatMul X,w a; BatchNormalization a,s,o,m,v n; Relu n y", NULL},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; Add a,b y", NULL},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; Add b,a c; Relu c y", NULL},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; Add a,b c; Gelu c y", NULL},
    {"X=2x3x4 w=4x5 b=5 Z=2x3x5", "MatMul X,w a; Add a,b c; Add c,Z y", NULL},
    {"Q=2x3x4 K=2x4x5 V=2x5x4", "MatMul Q,K s; Mul s,half d; Softmax{axis=-1} d p; MatMul p,V y", NULL},
    {"Q=2x3x4 K=2x4x5 V=2x5x4", "MatMul Q,K s; Div s,half d; Softmax{axis=-1} d p; MatMul p,V y", NULL},
    {"X=3x4 w=4x5 b=5", "Gemm{alpha=0.5;beta=2.0} X,w,b y", "MatMul X,w a; Mul a,half c; Mul b,two d; Add c,d y"},
    {"X=4x3 w=5x4 b=5", "Gemm{transA=1;transB=1} X,w,b y",
     "Transpose{perm=1x0} X x; Transpose{perm=1x0} w v; MatMul x,v a; Add a,b y"},
};

/* The same by other operators. */
static const struct network IDENTITIES[] = {
    {"X=3x4 Z=3x4", "Sub X,Z y", "Neg Z n; Add X,n y"},
    {"X=3x4 Z=1x4", "Div X,Z y", "Reciprocal Z n; Mul X,n y"},
    {"X=3x4 Z=3x1", "Max X,Z y", "Sub X,Z d; Abs d a; Add X,Z b; Add a,b c; Mul c,half y"},
    {"X=3x4 Z=3x1", "Min X,Z y", "Neg X a; Neg Z b; Max a,b c; Neg c y"},
    {"X=3x4 Z=3x4 W=4", "Sum X,Z,W y", "Add X,Z a; Add a,W y"},
    {"X=3x4 Z=3x4", "Mean X,Z y", "Add X,Z a; Mul a,half y"},
    {"X=3x4", "Pow X,two y", "Mul X,X y"},
    {"X=3x4", "Abs X a; Sqrt a y", "Abs X a; Pow a,half y"},
    {"X=3x4", "Clip X,lo,hi y", "Max X,lo a; Min a,hi y"},
    {"X=3x4", "Relu X y", "Max X,zero y"},
    {"X=3x4", "LeakyRelu{alpha=0.5} X y", "Mul X,half a; Max X,a y"},
    {"X=3x4", "LeakyRelu{alpha=0.5} X y", "Less X,zero c; Mul X,half a; Where c,a,X y"},
    {"X=3x4", "HardSigmoid{alpha=0.5;beta=0.5} X y", "Mul X,half a; Add a,half b; Clip b,zero,one y"},
    {"X=3x4", "Softplus X y", "Exp X e; Add e,one a; Log a y"},
    {"X=3x4", "Sigmoid X y", "Neg X n; Exp n e; Add e,one a; Reciprocal a y"},
    {"X=3x4", "Tanh X y", "Mul X,two a; Sigmoid a s; Mul s,two b; Sub b,one y"},
    {"X=3x4", "LogSoftmax{axis=1} X y", "Softmax{axis=1} X s; Log s y"},
    {"X=3x4", "Softmax{axis=0} X y", "Transpose{perm=1x0} X t; Softmax{axis=1} t s; Transpose{perm=1x0} s y"},
    {"X=3x4 ax=1,", "Softmax{axis=1} X y", "Exp X e; ReduceSum e,ax s; Div e,s y"},
    {"X=3x4x2 ax=1,", "ReduceMean X,ax y", "ReduceSum X,ax s; Div s,four y"},
    {"X=3x4x2 ax=0,2", "ReduceSumSquare X,ax y", "Mul X,X q; ReduceSum q,ax y"},
    {"X=3x4x2 ax=-1,", "ReduceL2 X,ax y", "Mul X,X q; ReduceSum q,ax s; Sqrt s y"},
    {"X=3x4x2 ax=1,", "ReduceL1 X,ax y", "Abs X a; ReduceSum a,ax y"},
    {"X=3x4x2 ax=1,", "ReduceMax X,ax y", "Neg X n; ReduceMin n,ax m; Neg m y"},
    {"X=3x4x2 ax=2,", "ReduceProd{keepdims=0} X,ax y", "Split{axis=2;num_outputs=2} X p,q; Mul p,q m; Squeeze m,ax y"},
    {"X=2x3x4x5 ax=2,3", "GlobalAveragePool X y", "ReduceMean X,ax y"},
    {"X=2x3x4x5 ax=2,3", "GlobalMaxPool X y", "ReduceMax X,ax y"},
    {"X=2x3x4x4", "AveragePool{kernel_shape=2x2;strides=2x2} X y",
     "AveragePool{kernel_shape=2x1;strides=2x1} X a; AveragePool{kernel_shape=1x2;strides=1x2} a y"},
    {"X=2x3x5x5", "MaxPool{kernel_shape=3x3;pads=1x1x1x1} X y",
     "MaxPool{kernel_shape=3x1;pads=1x0x1x0} X a; MaxPool{kernel_shape=1x3;pads=0x1x0x1} a y"},
    {"X=2x3x4x5 w=6x3x1x1 sw=6,3", "Conv X,w y",
     "Transpose{perm=0x2x3x1} X x; Reshape w,sw v; Transpose{perm=1x0} v u; MatMul x,u z; Transpose{perm=0x3x1x2} z y"},
    {"X=2x4x5x5 w=6x2x3x3 xs=2,2 ws=3,3", "Conv{group=2} X,w y",
     "Split{axis=1;num_outputs=2} X a,b; Split{axis=0;num_outputs=2} w v,u; Conv a,v c; Conv b,u d; Concat{axis=1} c,d "
     "y"},
    {"X=2x3x5x5 w=4x3x3x3 p=0,0,1,1,0,0,1,1", "Conv{pads=1x1x1x1} X,w y", "Pad X,p x; Conv x,w y"},
    {"X=3x4 w=4x5 b=5", "Gemm X,w,b y", "MatMul X,w a; Add a,b y"},
    {"X=3x4 w=4x5", "Einsum{equation=ij,jk->ik} X,w y", "MatMul X,w y"},
    {"X=2x3x4 W=2x4x5", "Einsum{equation=bij,bjk->bki} X,W y", "MatMul X,W a; Transpose{perm=0x2x1} a y"},
    {"X=2x3x4 s=6,4", "Flatten{axis=2} X y", "Reshape X,s y"},
    {"X=3x4", "Split{axis=1;num_outputs=2} X a,b; Concat{axis=1} a,b y", "Identity X y"},
    {"X=3x6 from=0,1 to=3,4", "Slice X,from,to y", "Split{axis=1;num_outputs=6} X a,b,c,d,e,f; Concat{axis=1} b,c,d y"},
    {"X=3x4 times=1,2", "Tile X,times y", "Concat{axis=1} X,X y"},
    {"X=3x1 s=3,4", "Expand X,s y", "Concat{axis=1} X,X,X,X y"},
    {"X=3x4 at=1,2 from=0,1 to=3,3", "Gather{axis=1} X,at y", "Slice X,from,to y"},
    {"X=3x4 p=0,1,0,1", "Pad X,p y", "Split{axis=1;num_outputs=4} X a,b,c,d; Sub a,a z; Concat{axis=1} z,a,b,c,d,z y"},
    {"X=2x8x2x2 s=2,2,2,2,2,2 t=2,2,4,4", "DepthToSpace{blocksize=2} X y",
     "Reshape X,s a; Transpose{perm=0x3x4x1x5x2} a b; Reshape b,t y"},
    {"X=2x2x4x4 s=2,2,2,2,2,2 t=2,8,2,2", "SpaceToDepth{blocksize=2} X y",
     "Reshape X,s a; Transpose{perm=0x3x5x1x2x4} a b; Reshape b,t y"},
    {"X=2x3x4 s=4 o=4 ax=-1,", "LayerNormalization{axis=-1;epsilon=0.5} X,s,o y",
     "ReduceMean X,ax m; Sub X,m d; Mul d,d q; ReduceMean q,ax v; Add v,half e; Sqrt e r; Div d,r n; Mul n,s g; Add "
     "g,o y"},
    {"X=2x3x4x4 s=3 o=3 m=3 v=3 k=3,1,1", "BatchNormalization{epsilon=0.5} X,s,o,m,v y",
     "Reshape m,k a; Sub X,a b; Add v,half c; Sqrt c d; Div s,d e; Reshape e,k f; Mul b,f g; Reshape o,k h; Add g,h y"},
    {"X=2x4x3x3 s=4 o=4", "InstanceNormalization X,s,o y", "GroupNormalization{num_groups=4} X,s,o y"},
    {"X=2x3x4x4 up=1.0,1.0,2.0,2.0 at=0,0,1,1,2,2,3,3",
     "Resize{mode=nearest;coordinate_transformation_mode=asymmetric;nearest_mode=floor} X,_,up y",
     "Gather{axis=2} X,at a; Gather{axis=3} a,at y"},
};

#define NUMBERS " lo=-0.5 hi=0.8 half=0.5 zero=0.0 one=1.0 two=2.0 four=4.0"

typedef struct planned {
    subject s;
    bz_plan *plan;
    bz_replay_plan *replay;
} planned;

static void make(planned *t, const char *values, const char *nodes, const bz_patterns *patterns)
{
    bz_error err;
    const char *name = "m";
    t->s = infer(values, nodes);
    t->plan = bz_plan_of(&(bz_plan_options){.patterns = patterns, .backend = {"onednn", "cblas"}, .n_backends = 2},
                         &t->s.layers, &name, 1);
    bz_replay_input in = {.model = name,
                          .layers = t->s.layers,
                          .plan = t->plan,
                          .fuse = patterns != NULL,
                          .setting = {1, BZ_CACHE_HOT, ""}};
    if (bz_replay_make(&in, &t->replay, &err))
        fail_msg("%s: %s", nodes, err.text);
}

static void end_plan(planned *t)
{
    bz_replay_free(t->replay);
    bz_plan_free(t->plan);
    end(&t->s);
}

/* The same of a name in each plan; a variance is positive. */
static void fill(plan_values *all)
{
    const bz_replay_plan *p = all->plan;
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].source != BZ_VALUE_STORED || !plan_stored(all, v))
            for (int64_t i = 0; i < plan_count(p, v); i++) {
                unsigned mixed = (unsigned)(*p->value[v].name * 7919 + i * 104729 + i * i * 31) % 2003;
                all->value[v][i] = (float)(mixed / 1000. + 0.1) * (*p->value[v].name == 'v' || mixed % 2 ? 1 : -1);
            }
}

static void same_results(const planned *a, const planned *b, const char *nodes)
{
    plan_values x = plan_values_new(a->replay), y = plan_values_new(b->replay);
    int from = -1, to = -1;
    fill(&x);
    fill(&y);
    plan_run(&x);
    plan_run(&y);
    for (int v = 0; v < a->replay->n_values; v++)
        from = a->replay->value[v].output ? v : from;
    for (int v = 0; v < b->replay->n_values; v++)
        to = b->replay->value[v].output ? v : to;
    assert_int_equal(plan_count(a->replay, from), plan_count(b->replay, to));
    for (int64_t i = 0; i < plan_count(a->replay, from); i++)
        if (!(fabsf(x.value[from][i] - y.value[to][i]) <= 1e-4f * (1 + fabsf(y.value[to][i]))))
            fail_msg("%s: element %d is %g, and %g one by one", nodes, (int)i, (double)x.value[from][i],
                     (double)y.value[to][i]);
    plan_values_free(&x);
    plan_values_free(&y);
}

static void as_one_by_one(void **state)
{
    (void)state;
    bz_error err;
    bz_patterns *patterns = NULL;
    assert_int_equal(bz_patterns_parse(bz_patterns_text, "patterns", &patterns, &err), 0);
    for (size_t i = 0; i < sizeof NETWORKS / sizeof *NETWORKS; i++) {
        const struct network *n = &NETWORKS[i];
        char values[160];
        snprintf(values, sizeof values, "%s" NUMBERS, n->values);
        planned fused, plain;
        make(&fused, values, n->nodes, patterns);
        make(&plain, values, n->same ? n->same : n->nodes, NULL);
        int groups = 0;
        for (int k = 0; k < fused.replay->n_units; k++)
            groups += fused.replay->unit[k].pattern != NULL;
        if (!n->same && !groups)
            fail_msg("%s: no group", n->nodes);
        same_results(&fused, &plain, n->nodes);
        end_plan(&fused);
        end_plan(&plain);
    }
    bz_patterns_free(patterns);
}

static void by_other_operators(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof IDENTITIES / sizeof *IDENTITIES; i++) {
        char values[200];
        snprintf(values, sizeof values, "%s" NUMBERS, IDENTITIES[i].values);
        planned one, other;
        make(&one, values, IDENTITIES[i].nodes, NULL);
        make(&other, values, IDENTITIES[i].same, NULL);
        same_results(&one, &other, IDENTITIES[i].nodes);
        end_plan(&one);
        end_plan(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_one_by_one), cmocka_unit_test(by_other_operators)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
