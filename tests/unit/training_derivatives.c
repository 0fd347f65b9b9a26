/* Derivatives by their definition: an iteration of training of a small network runs as its plan says, and each gradient is what the loss changes by
 * where a weight changes a little. So operators and their derivatives agree, and are bound to the right operands. */
#include "chance.h"
#include "model_lines.h"
#include "plan_run.h"
#include "training/training.h"

#include <unistd.h>

typedef struct network {
    const char *values, *nodes, *out; /* as of model_lines.h; the result's sizes */
} network;

/* Behind weights and in front of the loss, which is of classes where the result is one of two dimensions, else of squares. */
static const network NETWORKS[] = {
    {"X=3x4 w=4x5 b=5", "Gemm X,w,b y", "3x5"},
    {"X=2x3x4x4 w=4x3x1x1 up=1.0,1.0,2.0,2.0", "Conv X,w a; Resize{mode=nearest} a,_,up y", "2x4x8x8"},
    {"X=3x4 w=4x6", "MatMul X,w a; ReduceL2{keepdims=0} a y", ""},
    {"X=3x4 w=4x6", "MatMul X,w a; ReduceProd{keepdims=0} a y", ""},
    {"X=3x4 w=4x6", "MatMul X,w a; Swish a y", "3x6"},
    {"X=3x4 w=5x4 b=5", "Gemm{transB=1} X,w,b y", "3x5"},
    {"X=4x3 w=4x5 b=3x5", "Gemm{transA=1} X,w,b y", "3x5"},
    {"X=3x4 w=4x6 v=6x5", "MatMul X,w a; Relu a r; MatMul r,v y", "3x5"},
    {"X=2x3x4 w=2x4x5", "MatMul X,w y", "2x3x5"},
    {"X=2x3x4 w=4x5", "MatMul X,w y", "2x3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; LeakyRelu{alpha=0.3} a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Elu{alpha=0.7} a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Sigmoid a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Tanh a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Softplus a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Softsign a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Erf a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Exp a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Abs a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Neg a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Exp a e; Sqrt e y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Exp a e; Log e y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; HardSigmoid{alpha=0.25;beta=0.4} a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; HardSwish a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Mish a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Gelu a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Gelu{approximate=tanh} a y", "3x5"},
    {"X=3x4 w=4x5 two=2.0", "MatMul X,w a; Pow a,two y", "3x5"},
    {"X=3x4 w=4x5 lo=-0.5 hi=0.8", "MatMul X,w a; Clip a,lo,hi y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Softmax{axis=1} a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; Softmax{axis=0} a y", "3x5"},
    {"X=3x4 w=4x5", "MatMul X,w a; LogSoftmax{axis=1} a y", "3x5"},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; Add a,b y", "3x5"},
    {"X=3x4 w=4x5 b=3x1", "MatMul X,w a; Sub b,a y", "3x5"},
    {"X=3x4 w=4x5 b=3x1", "MatMul X,w a; Mul a,b y", "3x5"},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; Div a,b y", "3x5"},
    {"X=3x4 w=4x5 b=3x5", "MatMul X,w a; Exp a e; Div b,e y", "3x5"},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; Max a,b y", "3x5"},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; Min a,b y", "3x5"},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; Sum a,b,a y", "3x5"},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; Mean a,b,a y", "3x5"},
    {"X=3x4 w=4x5 b=5", "MatMul X,w a; PRelu a,b y", "3x5"},
    {"X=2x3x6x5 w=4x3x3x3 b=4", "Conv{pads=1x1x1x1} X,w,b y", "2x4x6x5"},
    {"X=2x3x6x5 w=4x3x3x2 b=4", "Conv{strides=2x1;pads=1x0x0x1} X,w,b y", "2x4x3x5"},
    {"X=2x4x6x6 w=4x2x3x3", "Conv{group=2;dilations=2x2;pads=2x2x2x2} X,w y", "2x4x6x6"},
    {"X=2x4x6x6 w=4x1x3x3", "Conv{group=4} X,w y", "2x4x4x4"},
    {"X=2x3x7 w=4x3x3", "Conv{strides=2} X,w y", "2x4x3"},
    {"X=2x3x4x4 w=3x4x3x3", "ConvTranspose{strides=2x2} X,w y", "2x4x9x9"},
    {"X=2x3x4x4 w=3x4x2x2 u=3x3x1x1", "Conv X,u a; ConvTranspose{pads=1x1x1x1} a,w y", "2x4x3x3"},
    {"X=2x3x6x6 w=4x3x1x1", "Conv X,w a; MaxPool{kernel_shape=2x2;strides=2x2} a y", "2x4x3x3"},
    {"X=2x3x6x6 w=4x3x1x1", "Conv X,w a; MaxPool{kernel_shape=3x3;strides=2x2;pads=1x1x1x1} a y", "2x4x3x3"},
    {"X=2x3x6x6 w=4x3x1x1", "Conv X,w a; AveragePool{kernel_shape=2x2;strides=2x2} a y", "2x4x3x3"},
    {"X=2x3x6x6 w=4x3x1x1", "Conv X,w a; AveragePool{kernel_shape=3x3;strides=2x2;pads=1x1x1x1} a y", "2x4x3x3"},
    {"X=2x3x6x6 w=4x3x1x1",
     "Conv X,w a; AveragePool{kernel_shape=3x3;strides=2x2;pads=1x1x1x1;count_include_pad=1} a y", "2x4x3x3"},
    {"X=2x3x6x6 w=4x3x1x1", "Conv X,w a; GlobalAveragePool a y", "2x4x1x1"},
    {"X=2x3x4x4 w=4x3x1x1 s=4 o=4 m=4 v=4", "Conv X,w a; BatchNormalization a,s,o,m,v y", "2x4x4x4"},
    {"X=2x3x4 w=4x6 s=6 o=6", "MatMul X,w a; LayerNormalization{axis=-1} a,s,o y", "2x3x6"},
    {"X=2x3x4 w=4x6 s=6", "MatMul X,w a; RMSNormalization{axis=-1} a,s y", "2x3x6"},
    {"X=2x3x4x4 w=4x3x1x1 s=4 o=4", "Conv X,w a; InstanceNormalization a,s,o y", "2x4x4x4"},
    {"X=2x3x4x4 w=4x3x1x1 s=4 o=4", "Conv X,w a; GroupNormalization{num_groups=2} a,s,o y", "2x4x4x4"},
    {"X=2x3x4x4 w=4x3x1x1", "Conv X,w a; Flatten a y", "2x64"},
    {"X=2x3x4x4 w=4x3x1x1", "Conv X,w a; Transpose{perm=0x2x3x1} a y", "2x4x4x4"},
    {"X=2x3x4x4 w=4x3x1x1 u=2x3x1x1", "Conv X,w a; Concat{axis=1} X,a,X y", "2x10x4x4"},
    {"X=2x3x4x4 w=4x3x1x1", "Conv X,w a; DepthToSpace{blocksize=2} a y", "2x1x8x8"},
    {"X=2x3x4x4 w=4x3x1x1", "Conv X,w a; SpaceToDepth{blocksize=2} a y", "2x16x2x2"},
    {"X=3x4 w=4x6", "MatMul X,w a; ReduceSum{keepdims=0} a y", ""},
    {"X=2x3x4 w=4x6 n=2,12", "MatMul X,w a; ReduceMean{keepdims=0} a y", ""},
    {"X=3x4 w=4x6 to=2,9", "MatMul X,w a; Reshape a,to y", "2x9"},
    {"X=3x4 w=4x6 from=1,1 to=3,5", "MatMul X,w a; Slice a,from,to y", "2x4"},
    {"X=3x4 w=4x6 pads=1,0,0,2", "MatMul X,w a; Pad a,pads y", "4x8"},
    {"X=2x3x4 w=4x1 to=2,3,5", "MatMul X,w a; Expand a,to y", "2x3x5"},
    {"X=3x4 w=4x2 times=2,3", "MatMul X,w a; Tile a,times y", "6x6"},
    {"X=3x4 w=4x6 at=1,3,1", "MatMul X,w a; Gather{axis=1} a,at y", "3x3"},
    {"X=3x4 w=4x6 at=1,3,1", "Gather{axis=0} w,at g; MatMul X,w a; Add a,g y", "3x6"},
    {"X=3x4 w=4x6 c0=0, c3=3, c6=6, along=1,", "MatMul X,w a; Slice a,c3,c6,along p; Slice a,c0,c3,along q; Sub p,q y",
     "3x3"},
    {"X=3x4 w=4x6 c0=0, c3=3, c6=6, along=1,", "MatMul X,w a; Slice a,c0,c3,along p; Slice a,c3,c6,along q; Exp q y",
     "3x3"},
    {"X=3x4 w=4x6 c0=0, c3=3, c6=6, along=1,",
     "MatMul X,w a; Slice a,c0,c3,along p; Slice a,c3,c6,along q; Mul p,q r; Slice a,c0,c3,along s; Mul r,s y", "3x3"},
    {"X=3x4 w=4x6",
     "MatMul X,w a; ReduceMean{axes=1;keepdims=1} a m; Sub a,m d; Mul d,d q; ReduceMean{axes=1;keepdims=1} q v; "
     "Mul a,v y",
     "3x6"},
    {"X=3x4 w=4x6",
     "MatMul X,w a; ReduceMean{axes=0;keepdims=1} a m; Sub a,m d; Mul d,d q; ReduceMean{axes=0;keepdims=0} q v; "
     "Mul a,v p; Mul p,m y",
     "3x6"},
    {"X=3x4 w=4x6 s=6 o=6 e=0.01",
     "MatMul X,w a; ReduceMean{axes=1} a m; Sub a,m d; ReduceMean{axes=1} a n; Sub a,n f; Mul f,f q; "
     "ReduceMean{axes=1} q v; Add v,e g; Sqrt g k; Div d,k h; Mul h,s i; Add i,o y",
     "3x6"},
    {"X=3x4 w=4x5 b=5 to=1,5", "MatMul X,w a; Reshape b,to c; PRelu a,c y", "3x5"},
    {"X=3x4 w=4x5 b=5 to=1,5", "MatMul X,w a; Reshape b,to c; Identity c d; Mul a,d e; Add e,b y", "3x5"},
    {"X=4x2x3 w=1x2x3 r=1x2x2 b=1x4", "RNN{hidden_size=2} X,w,r,b y", "4x1x2x2"},
    {"X=4x2x3 w=1x8x3 r=1x8x2 b=1x16", "LSTM{hidden_size=2} X,w,r,b y", "4x1x2x2"},
    {"X=4x2x3 w=1x6x3 r=1x6x2 b=1x12", "GRU{hidden_size=2;linear_before_reset=1} X,w,r,b y", "4x1x2x2"},
};

typedef struct iteration {
    bz_models models;
    bz_plan *plan;
    bz_replay_plan *replay;
    const bz_training *training;
} iteration;

static void make(iteration *t, const network *n, bz_optimizer optimizer, const char *path)
{
    bz_error err;
    bz_buf g = {0};
    const char *name = "m";
    put_values(&g, n->values);
    put_nodes(&g, n->nodes);
    put_message(&g, GRAPH_OUTPUT, a_value("y", BZ_F32, n->out));
    bz_buf bytes = a_model(9, 20, g);
    FILE *f = fopen(path, "w");
    assert_int_equal(fwrite(bytes.data, 1, bytes.len, f), bytes.len);
    assert_int_equal(fclose(f), 0);
    bz_buf_free(&bytes);
    *t = (iteration){0};
    if (bz_models_load(&path, 1, &(bz_infer_options){.as_written = true}, &t->models, &err) ||
        bz_training_replace(&t->models, 0, &(bz_training_options){.optimizer = optimizer}, &err))
        fail_msg("%s: %s", n->nodes, err.text);
    t->training = t->models.layers[0]->training;
    t->plan = bz_plan_of(&(bz_plan_options){0}, t->models.layers, &name, 1);
    bz_replay_input in = {.model = name,
                          .layers = t->models.layers[0],
                          .plan = t->plan,
                          .rate = 0.125,
                          .gradients = true,
                          .setting = {1, BZ_CACHE_HOT, ""}};
    if (bz_replay_make(&in, &t->replay, &err))
        fail_msg("%s: %s", n->nodes, err.text);
}

/* Numbers that are far from the corners of functions: weights are moved by less. */
static void fill(plan_values *all)
{
    const bz_replay_plan *p = all->plan;
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].source != BZ_VALUE_STORED || !plan_stored(all, v))
            for (int64_t i = 0; i < plan_count(p, v); i++)
                all->value[v][i] = p->value[v].dtype == BZ_I64
                                       ? (p->value[v].source == BZ_VALUE_INPUT ? (float)chance(3) : 1)
                                       : (float)((chance(2) ? 1 : -1) * (0.1 + chance(1000) / 1000.));
}

/* By how much the loss changes with one element of a value. */
static double slope_of(plan_values *all, float *x, double step)
{
    const float was = *x, *loss = all->value[all->plan->loss - 1];
    *x = (float)(was + step);
    plan_run(all);
    double above = loss[0];
    *x = (float)(was - step);
    plan_run(all);
    *x = was;
    return (above - loss[0]) / (2 * step);
}

static bool close_to(double is, double must)
{
    return fabs(is - must) <= 0.02 * fabs(must) + 2e-4;
}

static void check_gradients(const iteration *t, const char *nodes)
{
    enum { ELEMENTS = 8 };
    const bz_replay_plan *p = t->replay;
    plan_values all = plan_values_new(p);
    int checked = 0;
    fill(&all);
    for (int i = 0; i < t->training->n_weights; i++) {
        const bz_weight *w = &t->training->weight[i];
        int v = plan_value_named(p, w->name);
        int g = w->gradient < 0 ? -1 : plan_value_named(p, t->training->model->values[w->gradient].name);
        if (v < 0 || g < 0)
            continue;
        assert_int_equal(plan_count(p, v), plan_count(p, g));
        for (int k = 0; k < ELEMENTS; k++) {
            int64_t at = chance((unsigned)plan_count(p, v));
            plan_run(&all);
            double told = all.value[g][at], is = NAN;
            for (double step = 1. / 64; step > 1e-4 && !close_to(told, is); step /= 8) /* a corner may lie between */
                is = slope_of(&all, &all.value[v][at], step);
            if (!close_to(told, is))
                fail_msg("%s: the gradient of %s[%d] is %g, not %g", nodes, w->name, (int)at, told, is);
            checked += is != 0;
        }
    }
    if (!checked)
        fail_msg("%s: no gradient was looked at", nodes);
    plan_values_free(&all);
}

static void end_iteration(iteration *t)
{
    bz_replay_free(t->replay);
    bz_plan_free(t->plan);
    bz_models_free(&t->models);
}

static void by_differences(void **state)
{
    (void)state;
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof NETWORKS / sizeof *NETWORKS; i++) {
        iteration t;
        make(&t, &NETWORKS[i], BZ_SGD, path);
        check_gradients(&t, NETWORKS[i].nodes);
        end_iteration(&t);
    }
    unlink(path);
}

/* Iteration 1 of each optimizer, as their papers have it: a new weight, and its new states. */
static double updated(bz_optimizer o, double w, double g, double rate, const double *state, double *next)
{
    if (o == BZ_SGD)
        return w - rate * g;
    if (o == BZ_MOMENTUM) {
        next[0] = 0.9 * state[0] + g;
        return w - rate * next[0];
    }
    next[0] = 0.9 * state[0] + 0.1 * g;
    next[1] = 0.999 * state[1] + 0.001 * g * g;
    return w * (o == BZ_ADAMW ? 1 - rate * 0.01 : 1) - rate * (next[0] / (1 - 0.9)) / sqrt(next[1] / (1 - 0.999));
}

static void by_papers(void **state)
{
    (void)state;
    static const char *const STATES[BZ_OPTIMIZERS][2] = {
        [BZ_MOMENTUM] = {"w/velocity"}, [BZ_ADAM] = {"w/first", "w/second"}, [BZ_ADAMW] = {"w/first", "w/second"}};
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    for (int o = 0; o < BZ_OPTIMIZERS; o++) {
        iteration t;
        make(&t, &NETWORKS[0], (bz_optimizer)o, path);
        const bz_replay_plan *p = t.replay;
        plan_values all = plan_values_new(p);
        int w = plan_value_named(p, "w"), rate = plan_value_named(p, "rate"), n = bz_optimizer_states((bz_optimizer)o),
            g = -1, v[2];
        for (int i = 0; i < t.training->n_weights; i++)
            if (!strcmp(t.training->weight[i].name, "w"))
                g = plan_value_named(p, t.training->model->values[t.training->weight[i].gradient].name);
        fill(&all);
        all.value[rate][0] = 0.125f;
        for (int k = 0; k < n; k++)
            v[k] = plan_value_named(p, STATES[o][k]);
        for (int64_t i = 0; n > 1 && i < plan_count(p, v[1]); i++)
            all.value[v[1]][i] = fabsf(all.value[v[1]][i]);
        plan_run(&all);
        for (int64_t i = 0; i < plan_count(p, w); i++) {
            double before[2] = {0}, next[2] = {0};
            for (int k = 0; k < n; k++)
                before[k] = all.value[v[k]][i];
            double must = updated((bz_optimizer)o, all.value[w][i], all.value[g][i], 0.125, before, next);
            assert_true(fabs(all.value[p->value[w].next - 1][i] - must) < 1e-5);
            for (int k = 0; k < n; k++)
                assert_true(fabs(all.value[p->value[v[k]].next - 1][i] - next[k]) < 1e-5);
        }
        plan_values_free(&all);
        end_iteration(&t);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_differences), cmocka_unit_test(by_papers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
