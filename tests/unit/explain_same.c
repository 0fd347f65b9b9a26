/* What PyTorch records of an operator, and the same operator in ONNX, are layers of the same keys: of random sizes, for each letter one. */
#include "chance.h"
#include "explain/explain.h"
#include "model_lines.h"

static const struct {
    const char *name, *detail, *values, *nodes;
} OPERATORS[] = {
    {"aten::conv2d", "inputs=[[N,C,H,W],[K,C,3,3],[K],[],[],[],[]] values=[,,,[2,_1],[1,_0],[1,_2],1]",
     "X=NxCxHxW w=KxCx3x3 b=K", "Conv{strides=2x1;pads=1x0x1x0;dilations=1x2} X,w,b y"},
    {"aten::conv2d", "inputs=[[N,C,H,W],[C,1,3,3],[],[],[],[],[]] values=[,,,[1,_1],[1,_1],[1,_1],C]",
     "X=NxCxHxW w=Cx1x3x3", "Conv{pads=1x1x1x1;group=C} X,w y"},
    {"aten::conv1d", "inputs=[[N,C,H],[K,C,5],[K],[],[],[],[]] values=[,,,[3],[2],[1],1]", "X=NxCxH w=KxCx5 b=K",
     "Conv{strides=3;pads=2x2} X,w,b y"},
    {"aten::conv_transpose2d",
     "inputs=[[N,C,H,W],[C,K,3,3],[K],[],[],[],[],[]] values=[,,,[2,_1],[1,_0],[0,_0],1,[1,_2]]",
     "X=NxCxHxW w=CxKx3x3 b=K", "ConvTranspose{strides=2x1;pads=1x0x1x0;dilations=1x2} X,w,b y"},
    {"aten::linear", "inputs=[[N,C],[K,C],[K]]", "X=NxC w=KxC b=K", "Gemm{transB=1} X,w,b y"},
    {"aten::addmm", "inputs=[[K],[N,C],[C,K],[],[]]", "X=NxC w=CxK b=K", "Gemm X,w,b y"},
    {"aten::mm", "inputs=[[N,C],[C,K]]", "X=NxC Z=CxK", "MatMul X,Z y"},
    {"aten::bmm", "inputs=[[N,C,H],[N,H,W]]", "X=NxCxH Z=NxHxW", "MatMul X,Z y"},
    {"aten::matmul", "inputs=[[N,C,H,W],[W,K]]", "X=NxCxHxW Z=WxK", "MatMul X,Z y"},
    {"aten::batch_norm", "inputs=[[N,C,H,W],[C],[C],[C],[C]]", "X=NxCxHxW s=C b=C m=C v=C",
     "BatchNormalization X,s,b,m,v y"},
    {"aten::instance_norm", "inputs=[[N,C,H,W],[C],[C],[],[]]", "X=NxCxHxW s=C b=C", "InstanceNormalization X,s,b y"},
    {"aten::layer_norm", "inputs=[[N,H,W],[],[W],[W],[],[]]", "X=NxHxW s=W b=W", "LayerNormalization{axis=-1} X,s,b y"},
    {"aten::softmax", "inputs=[[N,C,H],[],[]] values=[,1,]", "X=NxCxH", "Softmax{axis=1} X y"},
    {"aten::log_softmax", "inputs=[[N,C,H],[],[]] values=[,-1,]", "X=NxCxH", "LogSoftmax{axis=-1} X y"},
    {"aten::max_pool2d", "inputs=[[N,C,H,W],[],[],[],[],[]] values=[,[3,_2],[2,_2],[1,_0],[1,_1],False]", "X=NxCxHxW",
     "MaxPool{kernel_shape=3x2;strides=2x2;pads=1x0x1x0} X y"},
    {"aten::relu", "inputs=[[N,C,H,W]]", "X=NxCxHxW", "Relu X y"},
    {"aten::sigmoid_", "inputs=[[N,C]]", "X=NxC", "Sigmoid X y"},
    {"aten::tanh", "inputs=[[N,C,H]]", "X=NxCxH", "Tanh X y"},
    {"aten::mish", "inputs=[[N,C,H]]", "X=NxCxH", "Mish X y"},
    {"aten::softplus", "inputs=[[N,C,H],[],[]]", "X=NxCxH", "Softplus X y"},
    {"aten::exp", "inputs=[[N,C,H]]", "X=NxCxH", "Exp X y"},
    {"aten::log", "inputs=[[N,C,H]]", "X=NxCxH", "Log X y"},
    {"aten::sqrt", "inputs=[[N,C,H]]", "X=NxCxH", "Sqrt X y"},
    {"aten::abs", "inputs=[[N,C,H]]", "X=NxCxH", "Abs X y"},
    {"aten::neg", "inputs=[[N,C,H]]", "X=NxCxH", "Neg X y"},
    {"aten::erf", "inputs=[[N,C,H]]", "X=NxCxH", "Erf X y"},
    {"aten::hardswish_", "inputs=[[N,C,H]]", "X=NxCxH", "HardSwish X y"},
    {"aten::silu", "inputs=[[N,C,H]]", "X=NxCxH", "Sigmoid X s; Mul X,s y"},
    {"aten::add", "inputs=[[N,C,H,W],[C,1,1],[]]", "X=NxCxHxW Z=Cx1x1", "Add X,Z y"},
    {"aten::sub", "inputs=[[N,C,H,W],[N,C,H,W],[]]", "X=NxCxHxW Z=NxCxHxW", "Sub X,Z y"},
    {"aten::mul_", "inputs=[[N,C,H,W],[N,C,1,1]]", "X=NxCxHxW Z=NxCx1x1", "Mul X,Z y"},
    {"aten::div", "inputs=[[N,C],[N,1]]", "X=NxC Z=Nx1", "Div X,Z y"},
    {"aten::maximum", "inputs=[[N,C],[C]]", "X=NxC Z=C", "Max X,Z y"},
    {"aten::minimum", "inputs=[[N,C],[C]]", "X=NxC Z=C", "Min X,Z y"},
    {"aten::cat", "inputs=[[[N,C,H,W],[N,K,H,W]],[]]", "X=NxCxHxW Z=NxKxHxW", "Concat{axis=1} X,Z y"},
};

/* The text with a number for each of the letters. */
static const char *sized(const char *text, const int size[5], char *out, size_t room)
{
    static const char LETTERS[] = "NCHWK";
    size_t n = 0;
    for (; *text && n + 8 < room; text++) {
        const char *letter = strchr(LETTERS, *text);
        n += (size_t)snprintf(out + n, room - n, letter ? "%d" : "%c", letter ? size[letter - LETTERS] : *text);
    }
    return out;
}

static void put_keys(const bz_layers *l, bz_buf *out)
{
    for (int i = 0; l && i < l->n; i++)
        if (l->layer[i].class != BZ_VIEW)
            bz_buf_printf(out, "%s%s", out->len ? " + " : "", l->layer[i].key);
}

static void of_both(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++)
        for (int round = 0; round < 4; round++) {
            int size[5];
            char detail[256], values[256], group[160];
            bz_buf is = {0}, must = {0};
            bz_arena arena = {0};
            bz_error err;
            bz_rebuilt r;
            for (int k = 0; k < 5; k++)
                size[k] = 8 + (int)chance(40);
            bz_trace *t = bz_trace_new();
            uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
            size_t op = bz_trace_add(t, BZ_EVENT_OP, 0, 10, bz_trace_text(t, OPERATORS[i].name), lane);
            t->event[BZ_EVENT_OP].detail[op] =
                bz_trace_text(t, sized(OPERATORS[i].detail, size, detail, sizeof detail));
            assert_int_equal(bz_trace_finish(t, NULL, &err), 0);
            bz_rebuild(t, &arena, &r);
            put_keys(r.layers, &is);
            const char *nodes = OPERATORS[i].nodes, *grouped = strstr(nodes, "group=C"); /* names keep their letters */
            if (grouped)
                snprintf(group, sizeof group, "%.*s%d%s", (int)(grouped - nodes) + 6, nodes, size[1], grouped + 7);
            subject s = infer(sized(OPERATORS[i].values, size, values, sizeof values), grouped ? group : nodes);
            put_keys(s.layers, &must);
            if (!must.len || strcmp(bz_buf_text(&is), bz_buf_text(&must)) != 0)
                fail_msg("%s %s: '%s' is not '%s'", OPERATORS[i].name, detail, bz_buf_text(&is), bz_buf_text(&must));
            bz_buf_free(&is);
            bz_buf_free(&must);
            end(&s);
            bz_trace_free(t);
            bz_arena_free(&arena);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_both)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
