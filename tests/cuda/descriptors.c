/* What the real cuDNN makes of our descriptors; no device is needed for that.
 *
 *   descriptors MODEL...
 *
 * For every convolution and pooling that the models have: the dimensions that the library computes for the result
 * are ours, in f32 plain and f16 channels last. And the library's own log of these calls, where it prints every field
 * of every descriptor, says what the problem says: this program runs itself with the log switched on, and compares. */
#include "runtime/cudnn/graph.h"
#include "tests/cuda/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void put_list(bz_buf *out, const char *name, int n, const int64_t *v)
{
    bz_buf_printf(out, "%s=[", name);
    for (int i = 0; i < n; i++)
        bz_buf_printf(out, i ? ",%lld" : "%lld", (long long)v[i]);
    bz_buf_puts(out, "]\n");
}

static void put_strides(bz_buf *out, int rank, const int64_t *dim, bool nhwc, int given)
{
    int64_t stride[8] = {1, 1, 1, 1, 1, 1, 1, 1}, step = 1;
    for (int k = 0; k < given; k++) { /* innermost first: channels, or the last dimension */
        int d = !nhwc ? given - 1 - k : k == 0 ? 1 : k == given - 1 ? 0 : given - k;
        stride[d] = step;
        step *= dim[d];
    }
    put_list(out, "strideA", rank, stride);
}

static void put_expected(bz_buf *out, const bz_problem *p, bool f16)
{
    int given = bz_extent_rank(p->conv.x), n = given - 2, rank = given < 4 ? 4 : given, flat = n < 2 ? 2 : n;
    int64_t x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, w[8] = {1, 1, 1, 1, 1, 1, 1, 1}, pad[3] = {0}, stride[3] = {1, 1, 1},
            dilation[3] = {1, 1, 1};
    for (int i = 0; i < given; i++) {
        x[i] = p->conv.x[i];
        w[i] = p->conv.w[i];
    }
    for (int i = 0; i < n; i++) {
        pad[i] = p->conv.pad[i];
        stride[i] = p->conv.stride[i];
        dilation[i] = p->conv.dilation[i];
    }
    const char *type = f16 ? "CUDNN_DATA_HALF (2)" : "CUDNN_DATA_FLOAT (0)";
    bz_buf_printf(out, "mode=CUDNN_CROSS_CORRELATION (1)\ndataType=CUDNN_DATA_FLOAT (0)\nmathType=%s\n",
                  f16 ? "CUDNN_TENSOR_OP_MATH (1)" : "CUDNN_FMA_MATH (3)");
    bz_buf_printf(out, "reorderType=0\narrayLength=%d\n", flat);
    put_list(out, "padA", flat, pad);
    put_list(out, "strideA", flat, stride);
    put_list(out, "dilationA", flat, dilation);
    bz_buf_printf(out, "groupCount=%lld\ndataType=%s\nnbDims=%d\n", (long long)p->conv.group, type, rank);
    put_list(out, "dimA", rank, x);
    put_strides(out, rank, x, f16, given);
    bz_buf_printf(out, "dataType=%s\nvect=0\nnbDims=%d\n", type, rank);
    put_list(out, "dimA", rank, w);
    bz_buf_printf(out, "format=%s\n", f16 ? "CUDNN_TENSOR_NHWC (1)" : "CUDNN_TENSOR_NCHW (0)");
}

static int same_dims(const bz_operand *y, const int *dim, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (dim[i] != (i < y->rank ? y->dim[i] : 1)) {
            printf("%s: dimension %d of the result is %lld, cuDNN says %d\n", text, i,
                   (long long)(i < y->rank ? y->dim[i] : 1), dim[i]);
            return 0;
        }
    return 1;
}

static int uneven; /* problems whose padding the library cannot take */

static int check_conv(const call *c, const bz_operand *y, const char *text)
{
    int dim[8] = {0}, n = y->rank < 4 ? 4 : y->rank;
    cudnnStatus_t status = n == 4 ? cudnnGetConvolution2dForwardOutputDim(c->conv, c->x.desc, c->filter, &dim[0],
                                                                          &dim[1], &dim[2], &dim[3])
                                  : cudnnGetConvolutionNdForwardOutputDim(c->conv, c->x.desc, c->filter, n, dim);
    if (status != CUDNN_STATUS_SUCCESS) {
        printf("%s: %s\n", text, cudnnGetErrorString(status));
        return 0;
    }
    return same_dims(y, dim, n, text);
}

static int check_pool(const call *c, const bz_operand *y, const char *text)
{
    int dim[8] = {0}, n = y->rank < 4 ? 4 : y->rank;
    cudnnStatus_t status = cudnnGetPoolingNdForwardOutputDim(c->pooling, c->x.desc, n, dim);
    if (status != CUDNN_STATUS_SUCCESS) {
        printf("%s: %s\n", text, cudnnGetErrorString(status));
        return 0;
    }
    return same_dims(y, dim, n, text);
}

/* The library accepts every tensor and every operation of as many graphs of the problem: shapes are checked then. */
static int check_graphs_of(const bz_problem *p, const char *layout, int wanted)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, operand), made = 0;
    bz_error why = {0};
    for (const cudnn_kind *kind = bz_cudnn_kinds; kind->kind; kind++) {
        if (kind->kind != p->kind || kind->release != cudnn_release_graph)
            continue;
        call *c = bz_cudnn_describe(kind, p, operand, n, layout, "default", &why);
        made += c != NULL;
        if (c)
            bz_cudnn_free(c);
    }
    if (made != wanted) {
        bz_buf text = {0};
        bz_problem_print(p, &text);
        printf("%s: %d graphs, not %d: %s\n", bz_buf_text(&text), made, wanted, why.text);
        bz_buf_free(&text);
    }
    return made != wanted;
}

/* One problem in one layout. `expected`: what the log must say of it is appended. */
static int check(const bz_problem *given, bool f16, bz_buf *expected)
{
    bz_problem p = *given;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    bz_error why = {0};
    bz_buf text = {0};
    memset(p.post, 0, sizeof p.post);
    p.dtype = p.dtype_w = p.dtype_y = f16 ? BZ_F16 : BZ_F32;
    bz_problem_print(&p, &text);
    int n = bz_problem_operands(&p, operand), good = 0;
    const cudnn_kind *kind = bz_cudnn_kinds;
    while (kind->kind != p.kind)
        kind++;
    call *c = bz_cudnn_describe(kind, &p, operand, n, f16 ? "nhwc" : "plain", "default", &why);
    if (!c && why.code == BZ_INCOMPLETE &&
        (p.kind == BZ_PROBLEM_POOL || (p.kind == BZ_PROBLEM_CONV && !bz_problem_pads_evenly(&p)))) {
        good = 1; /* a convolution is also a pad and another convolution then, both of which are among the problems */
        uneven += p.kind == BZ_PROBLEM_CONV;
    } else if (!c) {
        printf("%s: %s\n", bz_buf_text(&text), why.text);
    } else if (p.kind == BZ_PROBLEM_PAD) {
        good = 1; /* the library took x and its place in the border */
    } else if (p.kind == BZ_PROBLEM_CONV) {
        good = check_conv(c, &operand[n - 1], bz_buf_text(&text));
        if (operand[n - 1].rank <= 4)
            put_expected(expected, &p, f16);
    } else {
        good = check_pool(c, &operand[n - 1], bz_buf_text(&text));
    }
    if (c)
        bz_cudnn_free(c);
    if (p.kind == BZ_PROBLEM_CONV)
        good &= !check_graphs_of(&p, f16 ? "nhwc" : "plain", 1);
    bz_buf_free(&text);
    return !good;
}

/* Queries, keys, values and results of sequences of 3, 1 and 5 tokens: where each begins, by the width of a token. */
static int check_ragged(void)
{
    static const int32_t WIDTH[] = {64, 32, 48, 96}, TOKENS[] = {0, 3, 4, 9};
    bz_problem p;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    bz_error why = {0};
    const cudnn_kind *kind = bz_cudnn_kinds;
    int found = 0, bad = 0;
    if (bz_problem_parse("attention q=1x4x9x16 k=1x2x9x16 v=1x2x9x24 lengths=3x1x5 dtype=f16", &p, &why))
        return printf("%s\n", why.text);
    while (kind->kind != p.kind)
        kind++;
    call *c = bz_cudnn_describe(kind, &p, operand, bz_problem_operands(&p, operand), "plain", "default", &why);
    for (int i = 0; c && i < c->graph->n_tensors; i++) {
        const graph_tensor *t = &c->graph->tensor[i];
        if (!t->ragged)
            continue;
        const graph_tensor *from = &c->graph->tensor[t->ragged - 1];
        bad += from->wholes != 4 || found == 4 || t->memory.layout.stride[2] != WIDTH[found];
        for (int k = 0; k < 4 && !bad; k++)
            bad += from->whole[k] != TOKENS[k] * WIDTH[found];
        found++;
    }
    if (c)
        bz_cudnn_free(c);
    if (bad || found != 4)
        printf("sequences begin elsewhere: %d of %d operands %s\n", bad, found, why.text);
    return bad || found != 4;
}

/* The library sees the same convolution in bytes that lie in blocks of 32 channels. */
static int check_x32(bz_buf *expected)
{
    static const char TEXT[] = "conv x=2x64x14x15 w=96x64x3x3 pad=1x1x1x1 stride=2x1 dtype=i8";
    bz_problem p;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    bz_error why = {0};
    if (bz_problem_parse(TEXT, &p, &why))
        return printf("%s\n", why.text);
    int n = bz_problem_operands(&p, operand);
    call *c = bz_cudnn_describe(bz_cudnn_kinds, &p, operand, n, "any", "default", &why);
    bool good = c && check_conv(c, &operand[n - 1], TEXT);
    if (c)
        bz_cudnn_free(c);
    else
        printf("%s: %s\n", TEXT, why.text);
    bz_buf_puts(expected,
                "mode=CUDNN_CROSS_CORRELATION (1)\ndataType=CUDNN_DATA_INT32 (4)\nmathType=CUDNN_TENSOR_OP_MATH (1)\n"
                "reorderType=0\narrayLength=2\npadA=[1,1]\nstrideA=[2,1]\ndilationA=[1,1]\ngroupCount=1\n"
                "dataType=CUDNN_DATA_INT8x32 (8)\nnbDims=4\ndimA=[2,2,14,15]\nstrideA=[420,210,15,1]\n"
                "dataType=CUDNN_DATA_INT8x32 (8)\nvect=1\nnbDims=4\ndimA=[96,2,3,3]\n"
                "format=CUDNN_TENSOR_NCHW_VECT_C (2)\n");
    return !good;
}

/* The library takes the descriptors of sequences and states. What makes the network itself wants a device. */
static int check_recurrent(void)
{
    static const char *const PROBLEMS[] = {
        "lstm seq=5 batch=3 input=10 hidden=12 dir=bidirectional dtype=f32",
        "lstm seq=5 batch=3 input=10 hidden=12 training=1 dtype=f16",
        "lstm_grad seq=5 batch=3 input=10 hidden=12 dir=bidirectional dtype=f32",
        "gru_grad seq=5 batch=3 input=10 hidden=12 lbr=1 dtype=bf16",
        "rnn_grad seq=5 batch=3 input=10 hidden=12 fn=relu dtype=f32",
    };
    int bad = 0;
    for (size_t i = 0; i < sizeof PROBLEMS / sizeof *PROBLEMS; i++) {
        bz_problem p;
        bz_operand operand[BZ_PROBLEM_OPERANDS];
        bz_error why = {0};
        const cudnn_kind *kind = bz_cudnn_kinds;
        if (bz_problem_parse(PROBLEMS[i], &p, &why))
            return printf("%s\n", why.text);
        while (kind->kind != p.kind)
            kind++;
        call *c = bz_cudnn_describe(kind, &p, operand, bz_problem_operands(&p, operand), "plain", "default", &why);
        bad += !c;
        if (c)
            bz_cudnn_free(c);
        else
            printf("%s: %s\n", PROBLEMS[i], why.text);
    }
    return bad;
}

/* Graphs of all kinds, and of what may follow a convolution or a product. A 2 in front: as so many graphs. */
static int check_graphs(void)
{
    static const char *const PROBLEMS[] = {
        "conv x=1x4x8x8 w=8x4x3x3 pad=1x1x1x1 post=bias,relu dtype=f16",
        "conv x=1x4x8x8 w=4x4x3x3 pad=1x1x1x1 post=bias,add,clip:0:6 dtype=f32",
        "conv x=1x4x8x8 w=4x4x3x3 pad=0x0x1x1 stride=2x2 post=leaky,mul dtype=bf16",
        "gemm m=4 n=6 k=8 transa=1 transb=1 post=bias,gelu_erf dtype=f16",
        "gemm m=4 n=6 k=8 batch=3 dtype=f32",
        "matmul a=5x6 b=6x7 post=bias,gelu_tanh dtype=bf16",
        "matmul a=2x3x4x5 b=2x1x5x6 dtype=f16",
        "layernorm x=2x3x8 axis=2 dtype=f16",
        "layernorm x=2x3x8 axis=1 dtype=f32",
        "rmsnorm x=2x3x8 axis=2 dtype=f16",
        "rmsnorm x=2x3x8 axis=1 dtype=f32",
        "activation fn=gelu_tanh x=4x64 dtype=f32",
        "activation fn=elu alpha=0.5 x=1x4x8x8 dtype=f16",
        "binary fn=div a=2x3x4 b=1x3x1 dtype=f32",
        "activation fn=hardswish x=4x64 dtype=f32",
        "activation fn=hardsigmoid x=4x64 dtype=bf16",
        "activation fn=mish x=2x3x4x5 dtype=f16",
        "activation fn=linear alpha=1 beta=3 x=2x3x4x5x6 dtype=f16",
        "activation fn=pow alpha=2 beta=3 x=100 dtype=f32",
        "deconv x=1x8x5x5 w=8x4x3x3 stride=2x2 pad=0x1x1x1 group=2 post=bias,relu dtype=f16",
        "deconv x=1x8x5 w=8x4x3 stride=2 dtype=f32",
        "conv x=1x16x8x8 w=16x16x3x3 post=bias,relu dtype=f8e4m3:f8e4m3:f16",
        "2attention q=1x12x384x64 k=1x12x384x64 v=1x12x384x64 dtype=f16",
        "2attention q=2x8x128x64 k=2x2x256x64 v=2x2x256x32 dtype=bf16",
        "attention q=1x12x384x64 k=1x12x384x64 v=1x12x384x64 mask=1x1x1x384 dtype=f16",
        "attention q=2x12x64x64 k=2x12x64x64 v=2x12x64x64 mask=1x12x64x64 causal=1 dtype=bf16",
        "attention q=2x8x128x64 k=2x2x128x64 v=2x2x128x64 causal=1 dtype=f16",
    };
    int bad = 0;
    for (size_t i = 0; i < sizeof PROBLEMS / sizeof *PROBLEMS; i++) {
        bz_problem p;
        bz_error err = {0};
        int wanted = PROBLEMS[i][0] == '2' ? 2 : 1;
        bad += bz_problem_parse(PROBLEMS[i] + wanted - 1, &p, &err) || check_graphs_of(&p, "plain", wanted);
    }
    return bad;
}

/* Padding that differs between the ends, which exporters from TensorFlow leave: for the library two problems each. */
static const char UNEVEN[] = "conv x=1x3x224x224 w=32x3x3x3 stride=2x2 pad=0x0x1x1 dtype=f32\n"
                             "pad x=1x3x224x224 pad=0x0x1x1 dtype=f32\n"
                             "conv x=1x3x225x225 w=32x3x3x3 stride=2x2 dtype=f32\n"
                             "conv x=1x8x9x9 w=16x4x3x3 stride=2x1 pad=1x2x0x1 dilation=2x2 group=2 dtype=f32\n"
                             "pad x=1x8x9x9 pad=1x1x0x0 dtype=f32\n"
                             "conv x=1x8x10x10 w=16x4x3x3 stride=2x1 pad=0x1x0x1 dilation=2x2 group=2 dtype=f32\n"
                             "pad x=1x8x6x8x8 pad=1x0x0x0x1x1 dtype=f32\n"
                             "pad x=1x8x9 pad=1x0 dtype=f32\n";

/* Problems are lines of text here: what knows models and what knows backends do not go into one file. */
static int check_models(char **paths, int n, bz_buf *expected, int *convs, int *pools, int *pads)
{
    bz_buf lines = {0};
    char *rest = NULL;
    int bad = 0;
    problems_of(paths, n, &lines);
    bz_buf_puts(&lines, UNEVEN);
    for (char *line = strtok_r(lines.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        bz_problem p;
        bz_error err = {0};
        if (bz_problem_parse(line, &p, &err)) {
            printf("%s: %s\n", line, err.text);
            bad++;
            continue;
        }
        ++*(p.kind == BZ_PROBLEM_CONV ? convs : p.kind == BZ_PROBLEM_POOL ? pools : pads);
        bad += check(&p, false, expected);
        bad += check(&p, true, expected);
    }
    bz_buf_free(&lines);
    return bad;
}

/* "i!         padA: type=int; val=[1,1];" → "padA=[1,1]", of the calls that matter. */
static int read_log(const char *path, bz_buf *out)
{
    char line[4096];
    bool inside = false;
    FILE *f = fopen(path, "r");
    if (!f)
        return -1;
    while (fgets(line, sizeof line, f)) {
        if (strstr(line, " function "))
            inside = strstr(line, " cudnnGetConvolution2dForwardOutputDim() ");
        char *colon = strchr(line, ':'), *value = strstr(line, "; val="), *end = value ? strrchr(value, ';') : NULL;
        if (!inside || !value || !colon || !end)
            continue;
        char *name = colon;
        while (name > line && name[-1] != ' ')
            name--;
        bz_buf_put(out, name, (size_t)(colon - name));
        bz_buf_putc(out, '=');
        bz_buf_put(out, value + 6, (size_t)(end - value - 6));
        bz_buf_putc(out, '\n');
    }
    fclose(f);
    return 0;
}

static int compare_texts(const bz_buf *log, const bz_buf *expected)
{
    const char *a = log->data, *b = expected->data;
    int lines = 1;
    size_t i = 0;
    for (; i < log->len && i < expected->len && a[i] == b[i]; i++)
        lines += a[i] == '\n';
    if (log->len && i == log->len && i == expected->len)
        return 0;
    printf("the log differs from what the problems say, in line %d: '%.40s', not '%.40s'\n", lines,
           i < log->len ? a + i : "its end", i < expected->len ? b + i : "its end");
    return 1;
}

int main(int argc, char **argv)
{
    char log_path[] = "cudnn-log-XXXXXX", expected_path[64];
    int status = 1, convs = 0, pools = 0, pads = 0;
    bz_buf expected = {0}, log = {0};
    if (argc > 2 && !strcmp(argv[1], "--child")) { /* --child EXPECTED MODEL... */
        int bad = check_models(argv + 3, argc - 3, &expected, &convs, &pools, &pads) + check_graphs() +
                  check_recurrent() + check_x32(&expected) + check_ragged();
        FILE *f = fopen(argv[2], "w");
        if (!f || fwrite(expected.data, 1, expected.len, f) != expected.len || fclose(f))
            bad++;
        printf("%d convolutions, %d poolings and %d pads in two layouts, %d of the convolutions padded unevenly, %d "
               "differ\n",
               convs, pools, pads, uneven / 2, bad);
        bz_buf_free(&expected);
        return bad || !convs;
    }
    int fd = mkstemp(log_path);
    snprintf(expected_path, sizeof expected_path, "%s.expected", log_path);
    char **args = calloc((size_t)argc + 4, sizeof *args);
    args[0] = argv[0];
    args[1] = "--child";
    args[2] = expected_path;
    memcpy(args + 3, argv + 1, (size_t)argc * sizeof *args);
    pid_t child = fork();
    if (!child) {
        setenv("CUDNN_LOGLEVEL_DBG", "3", 1);
        setenv("CUDNN_LOGDEST_DBG", log_path, 1);
        execv(argv[0], args);
        _exit(127);
    }
    waitpid(child, &status, 0);
    int bad = !WIFEXITED(status) || WEXITSTATUS(status);
    FILE *f = fopen(expected_path, "r");
    char chunk[65536];
    for (size_t n; f && (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        bz_buf_put(&expected, chunk, n);
    if (f)
        fclose(f);
    bad |= read_log(log_path, &log) || compare_texts(&log, &expected);
    printf("%zu bytes of fields in the log, %s\n", log.len, bad ? "not as they should be" : "each as it should be");
    close(fd);
    unlink(log_path);
    unlink(expected_path);
    bz_buf_free(&expected);
    bz_buf_free(&log);
    free(args);
    return bad;
}
