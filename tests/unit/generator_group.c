/* What matches of fusion patterns become: every pattern of the built-in table, parameters that must be
 * kept, patterns of one's own, and what must not be fused. */
#include "generator/generator.h"
#include "model_lines.h"

#include <math.h>

static bz_patterns *table(const char *more)
{
    bz_patterns *patterns = NULL;
    bz_error err = {0};
    if (bz_patterns_parse(bz_patterns_text, "built in", &patterns, &err) ||
        (more && bz_patterns_parse(more, "more", &patterns, &err)))
        fail_msg("%s", err.text);
    return patterns;
}

/* "problem; problem | problem": alternatives; or "no: why". Of the match of this pattern that makes the value. */
static void lower_making(const char *value, const subject *s, const bz_patterns *patterns, const char *pattern,
                         bz_dtype dtype, bz_buf *out)
{
    const bz_match *match;
    bz_arena arena = {0};
    bz_lowering low;
    bz_spares spares;
    bz_spares_find(s->layers, &spares);
    int n = bz_patterns_find(patterns, s->layers, &spares, &match), k = 0;
    while (k < n && (strcmp(match[k].pattern, pattern) != 0 ||
                     strcmp(s->layers->layer[match[k].layer[match[k].n - 1]].name, value) != 0))
        k++;
    bz_buf_clear(out);
    if (k == n) {
        bz_buf_puts(out, "no match");
        return;
    }
    bz_lower_group(bz_lowered_new(s->layers, dtype, &arena), &match[k], &arena, &low);
    assert_true((low.n > 0) == !low.why);
    if (!low.n)
        bz_buf_printf(out, "no: %s", low.why);
    for (int a = 0; a < low.n; a++)
        for (int i = 0; i < low.alternative[a].n; i++)
            bz_buf_printf(out, "%s%s", !a && !i ? "" : i ? "; " : " | ", low.alternative[a].text[i]);
    bz_arena_free(&arena);
}

static void lower(const subject *s, const bz_patterns *patterns, const char *pattern, bz_dtype dtype, bz_buf *out)
{
    lower_making("y", s, patterns, pattern, dtype, out);
}

typedef struct {
    const char *pattern, *values, *nodes, *expected;
} lowered;

/* Rows of matches that make the value. */
static void check(const char *value, const lowered *rows, size_t n, const char *more)
{
    bz_patterns *patterns = table(more);
    bz_buf out = {0};
    for (size_t i = 0; i < n; i++) {
        subject s = infer(rows[i].values, rows[i].nodes);
        lower_making(value, &s, patterns, rows[i].pattern, BZ_UNDEFINED, &out);
        if (strcmp(bz_buf_text(&out), rows[i].expected) != 0)
            fail_msg("%s: %s\ngives    %s\nexpected %s", rows[i].pattern, rows[i].nodes, bz_buf_text(&out),
                     rows[i].expected);
        end(&s);
    }
    bz_buf_free(&out);
    bz_patterns_free(patterns);
}

#define CHECK(rows, more) check("y", rows, sizeof(rows) / sizeof *(rows), more)

#define CONV      "conv x=1x4x6x6 w=8x4x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 post="
#define IN_CONV   "X=1x4x6x6 w=8x4x1x1 b=8 c=8x1x1 Z=1x8x6x6 s=8 t=8 m=8 v=8 "
#define IN_NORMED "f=4 g=4 h=4 i=4 "
#define NORMED    "BatchNormalization X,f,g,h,i p; Relu p q; "
#define NORM_CONV "conv_norm x=1x4x6x6 w=8x4x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 before=1 behind=0"
#define BATCHNORM "Conv X,w a; BatchNormalization a,s,t,m,v n; "

static void convolutions(void **state)
{
    (void)state;
    static const lowered ROWS[] = {
        {"conv+bias", IN_CONV, "Conv X,w a; Add a,c y", CONV "bias dtype=f32"},
        {"conv+bias+act", IN_CONV, "Conv X,w a; Add a,c d; Relu d y", CONV "bias,relu dtype=f32"},
        {"conv+bias+act", IN_CONV, "Conv X,w,b a; LeakyRelu{alpha=0.3} a y", CONV "bias,leaky:0.3 dtype=f32"},
        {"conv+bias+act", IN_CONV, "Conv X,w,b a; Sigmoid a d; Mul a,d y", CONV "bias,swish:1 dtype=f32"},
        {"conv+bias+act", IN_CONV, "Conv X,w,b a; HardSigmoid{alpha=0.16666667} a d; Mul a,d y",
         CONV "bias,hardswish dtype=f32"},
        {"conv+act", IN_CONV, "Conv X,w a; Elu{alpha=0.5} a y", CONV "elu:0.5 dtype=f32"},
        {"conv+batchnorm", IN_CONV, "Conv X,w a; BatchNormalization a,s,t,m,v y", CONV "bias dtype=f32"},
        {"conv+batchnorm", IN_CONV, "Conv X,w,b a; BatchNormalization a,s,t,m,v y", CONV "bias dtype=f32"},
        {"conv+batchnorm+act", IN_CONV, BATCHNORM "Relu n y", CONV "bias,relu dtype=f32"},
        {"conv+batchnorm+act", IN_CONV "l=0.0 h=6.0", BATCHNORM "Clip n,l,h y", CONV "bias,clip:0:6 dtype=f32"},
        {"conv+batchnorm+act", IN_CONV "l=-1.0 h=1.0", BATCHNORM "Clip n,l,h y", CONV "bias,clip:-1:1 dtype=f32"},
        {"conv+batchnorm+act", IN_CONV, BATCHNORM "Sigmoid n d; Mul d,n y", CONV "bias,swish:1 dtype=f32"},
        {"batchnorm+act", IN_CONV, "BatchNormalization Z,s,t,m,v n; Relu n y",
         "batchnorm x=1x8x6x6 post=relu dtype=f32"},
        {"add+act", IN_CONV "C=1x8x1x1", "Add Z,C a; LeakyRelu{alpha=0.1} a y",
         "binary fn=add a=1x8x6x6 b=1x8x1x1 post=leaky:0.1 dtype=f32"},
        {"conv+add", IN_CONV, "Conv X,w a; Add Z,a y", CONV "add dtype=f32"},
        {"conv+add+act", IN_CONV, "Conv X,w,b a; Add a,Z d; Relu d y", CONV "bias,add,relu dtype=f32"},
        {"conv+batchnorm+add", IN_CONV, BATCHNORM "Add n,Z y", CONV "bias,add dtype=f32"},
        {"conv+batchnorm+add+act", IN_CONV, BATCHNORM "Add Z,n d; Relu d y", CONV "bias,add,relu dtype=f32"},
        /* in training the result of a convolution has other readers: behind the normalization, or nothing is known of an order */
        {"conv+statistics", IN_CONV, "Conv X,w a; BatchNormalization{training_mode=1} a,s,t,m,v y",
         "conv_norm x=1x4x6x6 w=8x4x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 before=0 behind=1 dtype=f32; "
         "batchnorm x=1x8x6x6 dtype=f32"},
        {"conv+statistics", IN_CONV, "Conv X,w a; Relu a r; BatchNormalization{training_mode=1} a,s,t,m,v y",
         "no match"},
        {"conv+statistics", IN_CONV, "Conv X,w a; BatchNormalization a,s,t,m,v y", "no match"},
        /* a convolution scales, shifts and cuts off what it reads, where nobody else reads that, and another function is another thing */
        {"batchnorm+relu+conv", IN_CONV IN_NORMED, NORMED "Conv q,w y", NORM_CONV " dtype=f32"},
        {"batchnorm+relu+conv", IN_CONV IN_NORMED, NORMED "Conv q,w,b y", NORM_CONV " post=bias dtype=f32"},
        {"batchnorm+relu+conv+act", IN_CONV IN_NORMED, NORMED "Conv q,w,b a; LeakyRelu{alpha=0.3} a y",
         NORM_CONV " post=bias,leaky:0.3 dtype=f32"},
        {"batchnorm+relu+conv+batchnorm+act", IN_CONV IN_NORMED,
         NORMED "Conv q,w a; BatchNormalization a,s,t,m,v n; Relu n y", NORM_CONV " post=bias,relu dtype=f32"},
        {"batchnorm+relu+conv+add", IN_CONV IN_NORMED, NORMED "Conv q,w a; Add Z,a y", NORM_CONV " post=add dtype=f32"},
        {"batchnorm+relu+conv+add", IN_CONV IN_NORMED, NORMED "ReduceMean q e; Conv q,w a; Add a,e y", "no match"},
        {"batchnorm+relu+conv", IN_CONV IN_NORMED,
         "BatchNormalization{training_mode=1} X,f,g,h,i p; Relu p q; Conv q,w y", "no: no call takes relu along"},
        {"batchnorm+relu+conv", "X=1x4x6x6 w=8x4x2x2 f=4 g=4 h=4 i=4", NORMED "Conv{auto_pad=SAME_UPPER} q,w y",
         "conv_norm x=1x4x6x6 w=8x4x2x2 stride=1x1 pad=0x0x1x1 dilation=1x1 group=1 before=1 behind=0 dtype=f32"},
        /* padding that differs between the ends: what follows goes along either way */
        {"conv+bias+act", "X=1x4x6x6 w=8x4x2x2 c=8x1x1", "Conv{auto_pad=SAME_UPPER} X,w a; Add a,c d; Relu d y",
         "conv x=1x4x6x6 w=8x4x2x2 stride=1x1 pad=0x0x1x1 dilation=1x1 group=1 post=bias,relu dtype=f32 | "
         "pad x=1x4x6x6 pad=0x0x1x1 dtype=f32; "
         "conv x=1x4x7x7 w=8x4x2x2 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 post=bias,relu dtype=f32"},
        {"conv+act", "X=1x4x6x6 w=8x4x2x2", "Conv{auto_pad=SAME_UPPER} X,w a; Relu a y",
         "conv x=1x4x6x6 w=8x4x2x2 stride=1x1 pad=0x0x1x1 dilation=1x1 group=1 post=relu dtype=f32 | "
         "pad x=1x4x6x6 pad=0x0x1x1 dtype=f32; "
         "conv x=1x4x7x7 w=8x4x2x2 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 post=relu dtype=f32"},
    };
    CHECK(ROWS, NULL);
}

/* What a call takes along past layers that need not run. */
static void past_layers_that_need_not_run(void **state)
{
    (void)state;
    static const lowered ROWS[] = {
        {"conv+act", IN_CONV, "Conv X,w a; Mul a,c d; Relu d y", CONV "relu dtype=f32"},
        {"conv+add", IN_CONV, "Conv X,w a; Identity a i; Add i,Z y", CONV "add dtype=f32"},
        {"conv+bias+act", IN_CONV, "Conv X,w a; Mul a,c d; Add d,c e; Relu e y", CONV "bias,relu dtype=f32"},
        {"conv+act", IN_CONV, "Conv X,w a; Tanh a d; Relu a y", CONV "relu dtype=f32"},
        {"conv+act", IN_CONV, "Conv X,w a; Transpose{perm=0x2x3x1} a p; Relu p y", CONV "relu dtype=f32"},
        {"conv+bias", IN_CONV, "Conv X,w a; Transpose{perm=0x2x3x1} a p; Add p,s y", CONV "bias dtype=f32"},
        {"conv+add", IN_CONV "W=1x6x6x8 ", "Conv X,w a; Transpose{perm=0x2x3x1} a p; Add p,W y", CONV "add dtype=f32"},
        /* but not what somebody else needs, also by another name */
        {"conv+add", IN_CONV, "Conv X,w a; Identity a i; Tanh a e; Add i,e y", "no match"},
        {"conv+add", IN_CONV, "Conv X,w a; Identity a i; Tanh i e; Add a,e y", "no match"},
        {"conv+add", IN_CONV, "Conv X,w a; Conv X,w p; Tanh p e; Add a,e y", "no match"},
        {"conv+add", IN_CONV, "Conv X,w a; Conv X,w p; Tanh Z e; Add a,e y", CONV "add dtype=f32"},
    };
    CHECK(ROWS, NULL);
}

#define GEMM "gemm m=6 n=8 k=4 batch=1 transa=0 transb=0 post="

#define IN_KEPT "X=2x3x4 w=4x8 b=8 B=8 I=1x4x6x6 k=8x4x1x1 h=0.5 r=1.4142135 o=1.0 s=6,4 "

/* What a function takes is written, too, where others read it; they come behind the function, which makes g. */
static void what_functions_take_is_kept(void **state)
{
    (void)state;
    static const lowered ROWS[] = {
        {"matmul+bias+kept+act", IN_KEPT, "MatMul X,w a; Add a,B d; Gelu d g; Mul g,d y",
         GEMM "bias,keep,gelu_erf dtype=f32"},
        {"matmul+bias+kept+act", IN_KEPT,
         "MatMul X,w a; Add a,B d; Div d,r e; Erf e f; Add f,o i; Mul d,h j; Mul j,i g; Mul g,d y",
         GEMM "bias,keep,gelu_erf dtype=f32"},
        {"matmul+bias+kept+act", IN_KEPT, "MatMul X,w a; Add a,B d; Sigmoid d e; Mul e,d g; Mul g,d y",
         GEMM "bias,keep,swish:1 dtype=f32"},
        {"gemm+kept+act", IN_KEPT, "Reshape X,s x; Gemm x,w,B d; Gelu{approximate=tanh} d g; Mul g,d y",
         GEMM "bias,keep,gelu_tanh dtype=f32"},
        {"conv+kept+act", IN_KEPT, "Conv I,k,B d; HardSwish d g; Mul g,d y",
         "conv x=1x4x6x6 w=8x4x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1 post=bias,keep,hardswish dtype=f32"},
        /* nobody else reads it; somebody does before the function runs; its gradient is told by the result */
        {"matmul+bias+kept+act", IN_KEPT, "MatMul X,w a; Add a,B d; Gelu d g; Mul g,b y", "no match"},
        {"matmul+bias+kept+act", IN_KEPT, "MatMul X,w a; Add a,B d; Tanh d e; Gelu d g; Mul g,e y", "no match"},
        {"matmul+bias+kept+act", IN_KEPT, "MatMul X,w a; Add a,B d; Tanh d g; Mul g,d y", "no match"},
    };
    check("g", ROWS, sizeof ROWS / sizeof *ROWS, NULL);
}

#define IN_BATCHNORM "X=6x4 w=4x8 b=8 v=8 "
#define IN_MAT       "X=2x3x4 w=4x8 b=8 Z=2x3x8 h=0.5 r=1.4142135 o=1.0 p=3.0 q=0.044715 k=0.7978846 "

static void products(void **state)
{
    (void)state;
    static const lowered ROWS[] = {
        {"gemm+act", "X=6x4 w=4x8 b=8", "Gemm X,w,b a; Relu a y", GEMM "bias,relu dtype=f32"},
        {"gemm+act", "X=6x4 w=4x8 b=8 h=0.5 r=1.4142135 o=1.0",
         "Gemm X,w,b a; Div a,r d; Erf d e; Add e,o f; Mul a,f g; Mul g,h y", GEMM "bias,gelu_erf dtype=f32"},
        {"gemm+act", "X=1x4 w=4x8 b=8", "Gemm X,w,b a; Tanh a y",
         "gemm m=1 n=8 k=4 batch=1 transa=0 transb=0 post=bias,tanh dtype=f32 | "
         "gemv m=8 k=4 trans=1 post=bias,tanh dtype=f32"},
        {"gemm+batchnorm", IN_BATCHNORM, "Gemm X,w,b a; BatchNormalization a,b,b,b,v y", GEMM "bias dtype=f32"},
        {"gemm+batchnorm+act", IN_BATCHNORM, "Gemm X,w a; BatchNormalization a,b,b,b,v n; Relu n y",
         GEMM "bias,relu dtype=f32"},
        {"matmul+batchnorm", IN_BATCHNORM, "MatMul X,w a; BatchNormalization a,b,b,b,v y", GEMM "bias dtype=f32"},
        {"matmul+batchnorm+act", IN_BATCHNORM, "MatMul X,w a; BatchNormalization a,b,b,b,v n; Tanh n y",
         GEMM "bias,tanh dtype=f32"},
        {"matmul+bias", IN_MAT, "MatMul X,w a; Add b,a y", GEMM "bias dtype=f32"},
        {"matmul+bias", IN_MAT "B=8", "MatMul X,w a; Add B,a y", GEMM "bias dtype=f32"},
        {"matmul+bias", IN_MAT "B=1", "MatMul X,w a; Add B,a y", "no match"},
        {"matmul+bias", IN_MAT "B=3x8", "MatMul X,w a; Add B,a y", "no match"},
        {"matmul+bias+act", IN_MAT "B=8", "MatMul X,w a; Add a,B d; Tanh d y", GEMM "bias,tanh dtype=f32"},
        {"matmul+bias+add", IN_MAT "B=8", "MatMul X,w a; Add a,B d; Add d,Z y", GEMM "bias,add dtype=f32"},
        {"matmul+bias+act", IN_MAT, "MatMul X,w a; Add a,b d; Gelu d y", GEMM "bias,gelu_erf dtype=f32"},
        {"matmul+bias+act", IN_MAT, "MatMul X,w a; Add a,b d; Gelu{approximate=tanh} d y",
         GEMM "bias,gelu_tanh dtype=f32"},
        {"matmul+bias+act", IN_MAT, "MatMul X,w a; Add a,b d; Div d,r e; Erf e f; Add f,o g; Mul d,h i; Mul i,g y",
         GEMM "bias,gelu_erf dtype=f32"},
        {"matmul+bias+act", IN_MAT,
         "MatMul X,w a; Add a,b d; Pow d,p e; Mul e,q f; Add d,f g; Mul g,k i; Tanh i j; Add j,o l; Mul d,h n; Mul n,l "
         "y",
         GEMM "bias,gelu_tanh dtype=f32"},
        {"matmul+bias+act", IN_MAT,
         "MatMul X,w a; Add a,b d; Mul d,d e; Mul e,d f; Mul f,q s; Add d,s g; Mul g,k i; Tanh i j; Add j,o l; "
         "Mul d,l n; Mul n,h y",
         GEMM "bias,gelu_tanh dtype=f32"},
        {"matmul+bias+add", IN_MAT, "MatMul X,w a; Add a,b d; Add d,Z y", GEMM "bias,add dtype=f32"},
    };
    CHECK(ROWS, NULL);
}

#define HEADS  "Q=1x2x5x4 K=1x2x4x5 V=1x2x5x4 M=1x1x1x5 F=1x2x5x5 r=2.0 "
#define SCALED "matmul a=2x5x4 b=2x4x5 constant=0 post=linear:0.5:0"
#define REST   "softmax x=1x2x5x5 axis=3 dtype=f32; matmul a=2x5x5 b=2x5x4 constant=0 dtype=f32"
#define WHOLE  "attention q=1x2x5x4 k=1x2x5x4 v=1x2x5x4"

static void attention(void **state)
{
    (void)state;
    static const lowered ROWS[] = {
        {"attention", HEADS, "MatMul Q,K a; Div a,r b; Softmax b c; MatMul c,V y",
         SCALED " dtype=f32; " REST " | " WHOLE " dtype=f32"},
        {"attention", HEADS, "MatMul Q,K a; Div a,r b; Add b,M c; Softmax c d; MatMul d,V y",
         SCALED " dtype=f32; binary fn=add a=1x2x5x5 b=1x1x1x5 dtype=f32; " REST " | " WHOLE " mask=1x1x1x5 dtype=f32"},
        {"attention", HEADS, "MatMul Q,K a; Mul a,r b; Add b,F c; Softmax c d; MatMul d,V y",
         "matmul a=2x5x4 b=2x4x5 constant=0 post=linear:2:0,add dtype=f32; " REST " | " WHOLE
         " mask=1x2x5x5 dtype=f32"},
        {"attention", HEADS, /* a choice has no call: a copy stands in, as it does by itself */
         "Greater F,M g; MatMul Q,K a; Div a,r b; Where g,b,F c; Softmax c d; MatMul d,V y",
         SCALED " dtype=f32; where c=1x2x5x5 a=1x2x5x5 b=1x2x5x5 dtype=f32; " REST},
        {"attention", HEADS, "MatMul Q,K a; Softmax a b; MatMul b,V y", WHOLE " dtype=f32"},
        {"attention", "Q=6x5x4 K=6x4x7 V=6x7x3 M=5x7 ", "MatMul Q,K a; Add M,a b; Softmax b c; MatMul c,V y",
         "attention q=6x1x5x4 k=6x1x7x4 v=6x1x7x3 mask=1x1x5x7 dtype=f32"},
        {"attention", "Q=2x6x5x4 K=2x1x4x7 V=2x1x7x3 ", "MatMul Q,K a; Softmax a b; MatMul b,V y",
         "attention q=2x6x5x4 k=2x1x7x4 v=2x1x7x3 dtype=f32"}, /* heads that share keys */
        {"attention", "Q=2x6x5x4 K=1x6x4x7 V=2x6x7x3 ", "MatMul Q,K a; Softmax a b; MatMul b,V y",
         "no: no call takes softmax along"}, /* batches that share keys are another thing */
        {"attention", HEADS, "MatMul Q,K a; Softmax{axis=2} a b; MatMul b,V y", "no: no call takes softmax along"},
        {"attention", HEADS, "MatMul Q,K a; Softmax a b; MatMul F,b y", "no match"},
        {"add+layernorm", "X=2x8 Z=2x8 s=8 b=8", "Add X,Z a; LayerNormalization a,s,b y",
         "no: no call takes layernorm along"},
    };
    CHECK(ROWS, NULL);
}

/* Six channels in three groups. */
#define IN_GROUPS "X=2x6x5x4 s=6x1x1 b=1x6x1x1 r=0,3,-1 q=2,6,5,4 "
#define GROUPS    "Reshape X,r a; InstanceNormalization{epsilon=0.001} a,o,z c; Reshape c,q d; Mul d,s e; Add b,e y"

#define IN_NORM "X=2x3x8 s=8 b=8 p=2.0 e=0.00001 "

static void written_out(void **state)
{
    (void)state;
    static const char *const RMS = "reduce fn=sumsquare x=2x3x8 y=2x3x1 dtype=f32; activation fn=linear x=2x3x1 "
                                   "alpha=0.125 beta=1e-05 dtype=f32; activation fn=pow x=2x3x1 alpha=1 beta=-0.5 "
                                   "dtype=f32; binary fn=mul a=2x3x8 b=2x3x1 dtype=f32; binary fn=mul a=2x3x8 b=1x1x8 "
                                   "dtype=f32";
    const lowered rows[] = {
        {"layernorm", IN_NORM,
         "ReduceMean{axes=-1} X a; Sub X,a d; Pow d,p c; ReduceMean{axes=-1} c f; Add f,e g; Sqrt g h; Div d,h i; "
         "Mul i,s j; Add j,b y",
         "layernorm x=2x3x8 axis=2 dtype=f32"},
        {"layernorm", IN_NORM,
         "ReduceMean{axes=-1} X a; Sub X,a d; Mul d,d c; ReduceMean{axes=-1} c f; Add f,e g; Sqrt g h; Div d,h i; "
         "Mul i,s j; Add b,j y",
         "layernorm x=2x3x8 axis=2 dtype=f32"},
        {"rmsnorm", IN_NORM,
         "Pow X,p c; ReduceMean{axes=-1} c f; Add f,e g; Sqrt g h; Reciprocal h i; Mul X,i j; Mul j,s y", RMS},
        {"rmsnorm", IN_NORM "o=1.0",
         "Mul X,X c; ReduceMean{axes=-1} c f; Add f,e g; Sqrt g h; Div o,h i; Mul X,i j; Mul s,j y", RMS},
        {"rmsnorm", IN_NORM, "Mul X,X c; ReduceMean{axes=-1} c f; Add f,e g; Sqrt g h; Div X,h j; Mul j,s y", RMS},
        {"groupnorm", IN_GROUPS "o=1.0,1.0,1.0 z=0.0,0.0,0.0", GROUPS, "groupnorm x=2x6x5x4 group=3 dtype=f32"},
        {"silu", "X=2x8", "Sigmoid X a; Mul X,a y", "activation fn=swish x=2x8 alpha=1 dtype=f32"},
        {"hardswish", "X=2x8", "HardSigmoid{alpha=0.16666667} X a; Mul a,X y",
         "activation fn=hardswish x=2x8 dtype=f32"},
        {"gelu", "X=2x8 h=0.5 r=1.4142135 o=1.0", "Div X,r a; Erf a b; Add b,o c; Mul X,c d; Mul d,h y",
         "activation fn=gelu_erf x=2x8 dtype=f32"},
    };
    CHECK(rows, NULL);
}

/* Looks like a GELU, a LayerNorm, a hard swish; is none. Nothing may be priced as what it is not. */
static void impostors(void **state)
{
    (void)state;
    bz_patterns *patterns = table(NULL);
    bz_buf out = {0};
    static const struct {
        const char *pattern, *values, *nodes, *absent;
    } ROWS[] = {
        {"gelu", "X=2x8 h=0.5 r=2.0 o=1.0", "Div X,r a; Erf a b; Add b,o c; Mul X,c d; Mul d,h y", "gelu"},
        {"gelu", "X=2x8 h=1.0 r=1.4142135 o=1.0", "Div X,r a; Erf a b; Add b,o c; Mul X,c d; Mul d,h y", "gelu"},
        {"gelu", "X=2x8 h=8 r=1.4142135 o=1.0", "Div X,r a; Erf a b; Add b,o c; Mul X,c d; Mul d,h y", "gelu"},
        {"hardswish", "X=2x8", "HardSigmoid{alpha=0.2} X a; Mul a,X y", "hardswish"},
        {"layernorm", "X=2x3x8 s=8 b=8 p=3.0 e=0.00001",
         "ReduceMean{axes=-1} X a; Sub X,a d; Pow d,p c; ReduceMean{axes=-1} c f; Add f,e g; Sqrt g h; Div d,h i; "
         "Mul i,s j; Add j,b y",
         "layernorm"},
        {"layernorm", "X=2x8x8 s=8 b=8 p=2.0 e=0.00001", /* over another dimension than its weights' */
         "ReduceMean{axes=1} X a; Sub X,a d; Pow d,p c; ReduceMean{axes=1} c f; Add f,e g; Sqrt g h; Div d,h i; "
         "Mul i,s j; Add j,b y",
         "layernorm"},
        /* each group has a scale or a shift of its own; weights along another dimension, or of which nothing is known */
        {"groupnorm", IN_GROUPS "o=1.0,2.0,1.0 z=0.0,0.0,0.0", GROUPS, "groupnorm"},
        {"groupnorm", IN_GROUPS "o=1.0,1.0,1.0 z=0.0,0.5,0.0", GROUPS, "groupnorm"},
        {"groupnorm", "X=2x6x6x4 s=6x1 b=6x1 r=0,3,-1 q=2,6,6,4 o=1.0,1.0,1.0 z=0.0,0.0,0.0", GROUPS, "groupnorm"},
        {"groupnorm", IN_GROUPS "o=3 z=3", GROUPS, "groupnorm"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        subject s = infer(ROWS[i].values, ROWS[i].nodes);
        lower(&s, patterns, ROWS[i].pattern, BZ_UNDEFINED, &out);
        assert_string_not_equal(bz_buf_text(&out), "no match");
        char call[40];
        snprintf(call, sizeof call, "%s x=", ROWS[i].absent);
        assert_null(strstr(bz_buf_text(&out), call));
        end(&s);
    }
    bz_buf_free(&out);
    bz_patterns_free(patterns);
}

static const char MORE[] = "[residual+bias]\nc = conv(x, w)\na = Add(c, z)\ny = Add(a, const)\n"
                           "[conv+mul]\nc = conv(x, w)\ny = Mul(c, const)\n"
                           "[conv+gate]\nc = conv(x, w)\ny = Mul(c, z)\n"
                           "[from]\nc = conv(x, w)\ny = Sub(c, z)\n"
                           "[to]\nc = conv(x, w)\ny = Sub(z, c)\n"
                           "[scaled]\nm = matmul(a, b)\ns = Mul(m, const)\nt = Add(s, const)\ny = Relu(t)\n"
                           "[dynamic]\nc = conv(x, w)\ny = BatchNormalization(c, const, const, const, const)\n"
                           "[add+relu]\na = Add(x, z)\ny = Relu(a)\n"
                           "[view]\nc = conv(x, w)\nr = Reshape(c)\ny = Relu(r)\n"
                           "[relu+silu]\nc = conv(x, w)\nr = Relu(c)\ny = [silu](r)\n";

static void by_structure(void **state)
{
    (void)state;
    static const lowered ROWS[] = {
        /* a bias can only come first: behind a residual it is a call */
        {"residual+bias", IN_CONV, "Conv X,w a; Add a,Z d; Add d,c y",
         CONV "add dtype=f32; binary fn=add a=1x8x6x6 b=1x8x1x1 dtype=f32"},
        {"conv+mul", IN_CONV, "Conv X,w,b a; Mul a,c y", CONV "bias dtype=f32"},               /* into the weights */
        {"conv+mul", IN_CONV "g=6", "Conv X,w,b a; Mul a,g y", "no: no call takes mul along"}, /* by column */
        {"conv+gate", IN_CONV, "Conv X,w,b a; Mul a,Z y", CONV "bias,mul dtype=f32"},
        {"conv+gate", IN_CONV "G=1x8x1x1", "Conv X,w,b a; Mul a,G y", "no: no call takes mul along"},
        {"from", IN_CONV, "Conv X,w a; Sub a,Z y", CONV "sub dtype=f32"},
        {"to", IN_CONV, "Conv X,w a; Sub Z,a y", "no: no call takes sub along"},
        {"scaled", "A=2x3x4 B=2x4x5 h=0.5 k=3.0", "MatMul A,B a; Mul a,h b; Add b,k c; Relu c y",
         "matmul a=2x3x4 b=2x4x5 constant=0 post=linear:0.5:0,linear:1:3,relu dtype=f32"},
        /* weights that come in while running cannot be scaled before */
        {"dynamic", "X=1x4x6x6 W=8x4x1x1 s=8 t=8 m=8 v=8", "Conv X,W a; BatchNormalization a,s,t,m,v y",
         "no: no call takes batchnorm along"},
        /* of a batch of matrices the channels are the rows */
        {"matmul+batchnorm", "X=2x8x4 w=4x8 b=8 v=8", "MatMul X,w a; BatchNormalization a,b,b,b,v y",
         "no: no call takes batchnorm along"},
        {"conv+mul", IN_CONV "B=8", "Conv X,w,B a; Mul a,c y", "no: no call takes mul along"},
        {"add+relu", "X=2x8 Z=2x8", "Add X,Z a; Relu a y", "binary fn=add a=2x8 b=2x8 post=relu dtype=f32"},
        {"relu+silu", IN_CONV, "Conv X,w a; Relu a d; Sigmoid d e; Mul d,e y", CONV "relu,swish:1 dtype=f32"},
    };
    CHECK(ROWS, MORE);
}

/* A residual that is the product itself is no residual: it would be read after it was overwritten. */
static void itself_is_no_residual(void **state)
{
    (void)state;
    static const lowered ROWS[] = {
        {"twice", IN_CONV, "Conv X,w a; Add a,a y", "no: no call takes add along"},
    };
    CHECK(ROWS, "[twice]\nc = conv(x, w)\ny = Add(c, c)\n");
}

static void data_types(void **state)
{
    (void)state;
    bz_patterns *patterns = table(NULL);
    bz_buf out = {0};
    subject s = infer(IN_CONV, BATCHNORM "Add n,Z d; Relu d y");
    lower(&s, patterns, "conv+batchnorm+add+act", BZ_BF16, &out);
    assert_string_equal(bz_buf_text(&out), CONV "bias,add,relu dtype=bf16");
    lower(&s, patterns, "conv+batchnorm+add+act", BZ_U8, &out);
    assert_string_equal(bz_buf_text(&out), CONV "bias,add,relu dtype=u8:i8:u8");
    end(&s);
    bz_buf_free(&out);
    bz_patterns_free(patterns);
}

/* Two blocks of a residual network that come to the same calls are one group with one file; a problem
 * that a layer has already is not written again. */
static void plan_of_groups(void **state)
{
    (void)state;
    subject s = infer("X=1x8x6x6 w=8x8x1x1 b=8 s=8 t=8 m=8 v=8",
                      "Conv X,w a; BatchNormalization a,s,t,m,v n; Add n,X d; Relu d r; Conv r,w e; "
                      "BatchNormalization e,s,t,m,v f; Add f,r g; Relu g h; Conv h,w,b y");
    bz_patterns *patterns = table(NULL);
    bz_plan *plan = bz_plan_new(&(bz_plan_options){.patterns = patterns});
    const bz_plan_layer *item;
    const bz_plan_place *place;
    bz_plan_add(plan, s.layers, "m.onnx");
    int n = bz_plan_layers(plan, &item), places = bz_plan_places(plan, 0, &place), whole = 0, folded = 0;
    for (int i = 0; i < n; i++) {
        bz_buf text = {0};
        if (!item[i].pattern)
            continue;
        bz_generate_source(plan, &item[i], &text);
        if (!strcmp(item[i].pattern, "conv+batchnorm+add+act")) {
            assert_int_equal(item[i].count, 2);
            assert_int_equal(item[i].n_problems, 1);
            assert_non_null(strstr(bz_buf_text(&text), "m.onnx: 2 groups (first ends in r)"));
            assert_non_null(strstr(bz_buf_text(&text), ".post = {{.fn = BZ_FN_BIAS}, {.fn = BZ_FN_ADD}"));
            whole++;
        }
        if (!strcmp(item[i].pattern, "conv+batchnorm")) {
            assert_null(strstr(bz_buf_text(&text), ".kind")); /* it is the last layer's */
            folded++;
        }
        bz_buf_free(&text);
    }
    assert_int_equal(whole, 1);
    assert_int_equal(folded, 1);
    assert_int_equal(places, 8); /* conv+batchnorm, with add, with add and act; add+act; twice */
    for (int i = 0; i < places; i++)
        for (int k = 1; k < place[i].n; k++)
            assert_true(place[i].layer[k - 1] < place[i].layer[k]);
    bz_plan_free(plan);
    bz_patterns_free(patterns);
    end(&s);
}

/* A pattern may be called anything: the file's name and the comment stay what they are. */
static void hostile_pattern(void **state)
{
    (void)state;
    subject s = infer("X=2x8 Z=2x8", "Add X,Z a; Relu a y");
    bz_patterns *patterns = table("[9..+X--x]\na = Add(x, z)\ny = Relu(a)\n");
    bz_plan *plan = bz_plan_new(&(bz_plan_options){.patterns = patterns});
    const bz_plan_layer *item;
    bz_buf text = {0};
    bz_plan_add(plan, s.layers, "m.onnx");
    int n = bz_plan_layers(plan, &item);
    assert_true(n > 0 && item[n - 1].pattern);
    assert_true(strspn(item[n - 1].file, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(item[n - 1].file));
    bz_generate_source(plan, &item[n - 1], &text);
    assert_ptr_equal(strstr(bz_buf_text(&text), "*/") + 3, strstr(bz_buf_text(&text), "#include \"runtime"));
    bz_buf_free(&text);
    bz_plan_free(plan);
    bz_patterns_free(patterns);
    end(&s);
}

/* Groups that share no layer, contracted to one node each, leave a graph without cycles: edges go from
 * results to later layers only, so that ordering nodes by their last layer is a topological order. */
static void choices_stay_acyclic(void **state)
{
    (void)state;
    subject s = infer("X=1x8x6x6 w=8x8x1x1 s=8 t=8 m=8 v=8",
                      "Conv X,w a; Conv X,w b; BatchNormalization a,s,t,m,v c; BatchNormalization b,s,t,m,v d; "
                      "Add c,d e; Relu e f; Conv f,w g; Add g,f h; Relu h i; Conv i,w j; Add j,f y");
    bz_patterns *patterns = table(NULL);
    const bz_match *match;
    int n = bz_patterns_find(patterns, s.layers, NULL, &match), tried = 0;
    for (int p = 0; p < n; p++)
        for (int q = 0; q < n; q++) {
            int end_of[32];
            bool clash = false;
            for (int i = 0; i < s.layers->n; i++)
                end_of[i] = i;
            for (int k = 0; k < match[p].n; k++)
                end_of[match[p].layer[k]] = match[p].layer[match[p].n - 1];
            for (int k = 0; k < match[q].n; k++)
                for (int m = 0; m < match[p].n; m++)
                    clash |= match[q].layer[k] == match[p].layer[m];
            if (clash)
                continue;
            for (int k = 0; k < match[q].n; k++)
                end_of[match[q].layer[k]] = match[q].layer[match[q].n - 1];
            const bz_dag *dag = bz_dag_build(s.layers);
            for (int i = 0; i < dag->n; i++)
                for (int e = dag->first[i]; e < dag->first[i + 1]; e++)
                    assert_true(end_of[dag->pred[e]] == end_of[i] || end_of[dag->pred[e]] < end_of[i]);
            tried++;
        }
    assert_true(tried > 10);
    bz_patterns_free(patterns);
    end(&s);
}

/* A number may be written out in steps: what they compute is what C's library says. NAN: no number that is known, or none of one element. */
static void numbers_are_computed_from_how_they_are_written(void **state)
{
    (void)state;
    const struct {
        const char *nodes;
        double a;
    } ROWS[] = {
        {"Sqrt h a", sqrt(0.25)},
        {"Erf h a", erf(0.25)},
        {"Reciprocal h a", 4},
        {"Identity h a", 0.25},
        {"Unsqueeze h,zero b; Squeeze b,zero a", 0.25},
        {"Reshape h,list a", 0.25},
        {"Pow h,k a", pow(0.25, 1.5)},
        {"Add h,k a", 1.75},
        {"Sub h,k a", -1.25},
        {"Sub k,h a", 1.25},
        {"Mul h,k a", 0.375},
        {"Div h,k a", 0.25 / 1.5},
        {"Sqrt h b; Add b,k c; Erf c d; Mul d,h a", erf(2) * 0.25},
        {"Constant{value_float=0.75} _ a", 0.75},
        {"Constant{value_int=3} _ a", 3},
        {"Constant{value_float=0.75} _ b; Add b,h a", 1},
        {"Constant{value_float=0.75} _ b; Sub h,b a", -0.5},
        {"Identity three a", 3},
        {"Cast{to=1} three a", 3},
        {"Cast{to=11} h a", 0.25},
        {"Cast{to=10} h a", NAN},
        {"Cast{to=7} h a", NAN},
        {"Identity pair a", NAN},
        {"Relu h a", NAN},
        {"Sqrt X a", NAN},
        {"Add h,X a", NAN},
        {"Add X,h a", NAN},
        {"Sqrt h b; Sqrt b c; Sqrt c d; Sqrt d e; Sqrt e f; Sqrt f g; Sqrt g i; Sqrt i a", pow(0.25, 1.0 / 256)},
        {"Sqrt h b; Sqrt b c; Sqrt c d; Sqrt d e; Sqrt e f; Sqrt f g; Sqrt g i; Sqrt i j; Sqrt j a", NAN}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        bz_buf nodes = {0};
        bz_buf_printf(&nodes, "%s; Relu X y", ROWS[i].nodes);
        subject s = infer("X=1x1 h=0.25 k=1.5 three=3, pair=3,4 zero=0, list=1,1", bz_buf_text(&nodes));
        double found;
        int a = 0;
        while (strcmp(s.model->values[a].name, "a") != 0)
            a++;
        if (!bz_lower_scalar(s.layers, a, s.layers->n, &found))
            found = NAN;
        if (isnan(ROWS[i].a) ? !isnan(found) : !(fabs(found - ROWS[i].a) < 1e-15))
            fail_msg("%s: %.17g, not %.17g", ROWS[i].nodes, found, ROWS[i].a);
        bz_buf_free(&nodes);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(past_layers_that_need_not_run),
        cmocka_unit_test(products),
        cmocka_unit_test(what_functions_take_is_kept),
        cmocka_unit_test(attention),
        cmocka_unit_test(written_out),
        cmocka_unit_test(impostors),
        cmocka_unit_test(by_structure),
        cmocka_unit_test(data_types),
        cmocka_unit_test(itself_is_no_residual),
        cmocka_unit_test(plan_of_groups),
        cmocka_unit_test(hostile_pattern),
        cmocka_unit_test(numbers_are_computed_from_how_they_are_written),
        cmocka_unit_test(choices_stay_acyclic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
