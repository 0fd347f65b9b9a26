/* Layers that framework's operators are rebuilt as, alone and with an operator behind that reads the result, and operators that differ in a number, a
 * type, or lack an operand. explain_neighbours.txt has a hash for each name of an operator (seen.h). */
#include "explain/explain.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seen.h"

/* Operators that take the same arguments, and arguments; several with | between them. */
static const struct {
    const char *names, *arguments;
} ROWS[] = {
    {"aten::conv2d aten::convolution aten::_convolution aten::cudnn_convolution aten::mkldnn_convolution",
     "inputs=[[1,3,14,14],[6,3,5,5],[6]]|inputs=[[2,8,9,7],[8,1,3,3],[]]|"
     "inputs=[[1,8,16,16],[8,8,3,3],[],[],[],[],[]] "
     "types=[c10::Half,c10::Half,,ScalarList,ScalarList,ScalarList,Scalar] "
     "values=[,,,[2,_2],[2,_2],[2,_2],1]|"
     "inputs=[[1,8,16,16],[8,4,2,2],[],[],[],[],[],[],[]] values=[,,,[2,_2],[0,_0],[1,_1],False,[0,_0],2]"},
    {"aten::conv1d", "inputs=[[2,8,16],[4,8,3]]|inputs=[[2,8,16],[4,4,3],[4],[],[],[],[]] values=[,,,[2],[1],[3],2]"},
    {"aten::conv3d", "inputs=[[1,2,6,6,6],[4,2,3,3,3],[4]] types=[float,float,float]"},
    {"aten::conv_transpose1d", "inputs=[[2,8,16],[8,4,2],[4]]"},
    {"aten::conv_transpose2d",
     "inputs=[[1,8,16,16],[8,4,3,3],[4]]|"
     "inputs=[[1,8,16,16],[8,4,3,3],[],[],[],[],[],[]] values=[,,,[2,_2],[1,_1],[1,_1],2,[2,_2]]"},
    {"aten::conv_transpose3d", "inputs=[[1,4,3,3,3],[4,2,2,2,2]]"},
    {"aten::linear", "inputs=[[4,48],[10,48],[10]]|inputs=[[1,5,48],[10,48],[]]|inputs=[[2,3,5,8],[6,8]]"},
    {"aten::addmm aten::_addmm_activation", "inputs=[[10],[4,48],[48,10],[],[]]|inputs=[[4,10],[4,48],[48,10]]"},
    {"aten::mm aten::bmm aten::matmul aten::mv aten::dot",
     "inputs=[[4,8],[8,6]]|inputs=[[3,4,8],[3,8,6]]|inputs=[[2,3,4,8],[8,6]]|inputs=[[4,8],[8]]|inputs=[[8],[8]]"},
    {"aten::baddbmm aten::addbmm", "inputs=[[3,4,6],[3,4,8],[3,8,6]]|inputs=[[4,6],[3,4,8],[3,8,6],[],[]]"},
    {"aten::scaled_dot_product_attention aten::_scaled_dot_product_flash_attention "
     "aten::_scaled_dot_product_efficient_attention",
     "inputs=[[1,2,5,8],[1,2,7,8],[1,2,7,4]]|inputs=[[1,4,5,8],[1,2,7,8],[1,2,7,8],[1,1,5,7]]|"
     "inputs=[[1,2,5,8],[1,2,5,8],[1,2,5,8],[],[],[],[]] values=[,,,,0.,True,]"},
    {"aten::batch_norm aten::native_batch_norm aten::cudnn_batch_norm aten::instance_norm",
     "inputs=[[2,8,4,4],[8],[8],[8],[8],[],[],[],[]]|inputs=[[2,8],[],[],[8],[8]]"},
    {"aten::layer_norm aten::native_layer_norm",
     "inputs=[[1,5,48],[],[48],[48],[],[]] values=[,[48],,,1e-5,True]|inputs=[[2,5,6,4],[],[6,4],[6,4]]|"
     "inputs=[[2,5,6],[],[],[]] values=[,[5,_6],,,]"},
    {"aten::group_norm aten::native_group_norm",
     "inputs=[[2,8,4,4],[],[8],[8],[]] values=[,2,,,]|inputs=[[2,8,4],[8],[8],[],[],[],[],[]] values=[,,,2,8,4,4,]"},
    {"aten::softmax aten::_softmax aten::log_softmax aten::_log_softmax",
     "inputs=[[2,5,7],[],[]] values=[,1,]|inputs=[[2,5,7],[],[]] values=[,-1,False]|inputs=[[2,5]]"},
    {"aten::embedding",
     "inputs=[[100,16],[2,7],[],[],[]] types=[float,long_int]|inputs=[[100,16],[3]] types=[c10::Half,int]"},
    {"aten::max_pool2d aten::avg_pool2d",
     "inputs=[[1,8,16,16],[],[],[],[],[]] values=[,[3,_3],[2,_2],[1,_1],[1,_1],False]|"
     "inputs=[[1,8,15,15],[],[],[],[],[]] values=[,[3,_2],[],[0,_1],[1,_1],True]|inputs=[[1,8,16,16]]"},
    {"aten::max_pool1d aten::avg_pool1d", "inputs=[[1,8,16],[],[],[],[],[]] values=[,[3],[2],[1],[1],False]"},
    {"aten::max_pool3d aten::avg_pool3d", "inputs=[[1,2,8,8,8],[],[],[]] values=[,[2,_2,_2],[2,_2,_2],[0,_0,_0]]"},
    {"aten::adaptive_avg_pool2d aten::adaptive_max_pool2d",
     "inputs=[[1,8,12,12],[]] values=[,[1,_1]]|inputs=[[1,8,12,12],[]] values=[,[3,_4]]|inputs=[[1,8,12,12],[]]"},
    {"aten::adaptive_avg_pool1d aten::adaptive_avg_pool3d",
     "inputs=[[1,8,12],[]] values=[,[1]]|inputs=[[1,8,4,4,4],[]]"},
    {"aten::mean", "inputs=[[2,8,4,4],[],[],[]] values=[,[2,_3],True,]|inputs=[[2,8,4],[],[],[]] values=[,[-1],False,]|"
                   "inputs=[[2,8]]"},
    {"aten::relu_ aten::clamp aten::sigmoid aten::gelu aten::hardtanh_ aten::silu aten::rsqrt aten::mish aten::cos "
     "aten::erf",
     "inputs=[[2,8,4,4]]|inputs=[[2,8],[],[]] types=[c10::BFloat16,Scalar,Scalar] values=[,0,6]"},
    {"aten::add aten::sub aten::rsub aten::mul aten::div aten::pow aten::maximum aten::minimum",
     "inputs=[[2,8,4],[8,1],[]]|inputs=[[2,8,4],[]] values=[,2]|inputs=[[8],[2,8,8],[]] "
     "types=[float,c10::Half,Scalar]"},
    {"aten::cat", "inputs=[[[1,8,4,4],[1,4,4,4]],[]] values=[,1]|inputs=[[[2,3],[2,3],[4,3]],[]]|inputs=[[[2,3]],[]]"},
    {"aten::copy_", "inputs=[[2,3],[2,3],[]] types=[c10::Half,float,Scalar]|inputs=[[2,3,4],[2,3,4],[]] "
                    "strides=[[12,_4,_1],[12,_1,_3],[]]|"
                    "inputs=[[4,6],[4,6],[]] types=[float,float,Scalar]"},
    {"Conv FusedConv", "inputs=[{float:[1,3,8,8]},{float:[4,3,3,3]}] outputs=[{float:[1,4,4,4]}]|"
                       "inputs=[{float:[1,4,20]},{float:[8,2,3]},{float:[8]}] outputs=[{float:[1,8,9]}]"},
    {"Gemm FusedGemm", "inputs=[{float:[4,48]},{float:[10,48]},{float:[10]}] outputs=[{float:[4,10]}]|"
                       "inputs=[{float:[4,48]},{float:[48,10]}] outputs=[{float:[4,10]}]"},
    {"MatMul FusedMatMul", "inputs=[{float16:[1,5,48]},{float16:[48,10]}] outputs=[{float16:[1,5,10]}]"},
    {"MaxPool AveragePool GlobalAveragePool GlobalMaxPool", "inputs=[{float:[1,4,9,9]}] outputs=[{float:[1,4,4,4]}]|"
                                                            "inputs=[{float:[1,4,9,9]}] outputs=[{float:[1,4,1,1]}]"},
    {"BatchNormalization InstanceNormalization LayerNormalization",
     "inputs=[{float:[2,4,6]},{float:[4]},{float:[4]},{float:[4]},{float:[4]}] outputs=[{float:[2,4,6]}]|"
     "inputs=[{float:[2,4,6]},{float:[6]},{float:[6]}] outputs=[{float:[2,4,6]}]"},
    {"Softmax LogSoftmax Relu Clip Gelu Sqrt", "inputs=[{float:[2,4,6]}] outputs=[{float:[2,4,6]}]"},
    {"Add Sub Mul Div Pow", "inputs=[{float:[2,4,6]},{float:[6]}] outputs=[{float:[2,4,6]}]"},
    {"Concat", "inputs=[{float:[2,4,6]},{float:[2,3,6]}] outputs=[{float:[2,7,6]}]"},
};

/* One iteration of the operator; what reads its result is a sum of [1,4,7,7] or of other sizes, or there is none. */
static void say_operator(const char *name, const char *arguments, const char *reads, seen *s)
{
    bz_arena arena = {0};
    bz_rebuilt r;
    bz_error err;
    bz_trace *t = bz_trace_new();
    uint32_t lane = bz_trace_thread(t, bz_trace_source(t, "made up", "test"), 1, 1);
    size_t op = bz_trace_add(t, BZ_EVENT_OP, 0, 10, bz_trace_text(t, name), lane);
    t->event[BZ_EVENT_OP].detail[op] = bz_trace_text(t, arguments);
    if (reads) {
        op = bz_trace_add(t, BZ_EVENT_OP, 10, 20, bz_trace_text(t, "aten::relu"), lane);
        t->event[BZ_EVENT_OP].detail[op] = bz_trace_text(t, reads);
    }
    s->tried++;
    if (bz_trace_finish(t, NULL, &err))
        fail_msg("%s", err.text);
    bz_rebuild(t, &arena, &r);
    bz_buf_printf(&s->text, "%s %s:", name, arguments);
    for (int i = 0; r.layers && i < r.layers->n; i++) {
        const bz_layer *l = &r.layers->layer[i];
        bz_buf_printf(&s->text, " + %s %s %lld %lld", bz_dtype_name(l->in[0].dtype), l->key, (long long)l->macs,
                      (long long)l->bytes);
        s->taken += i == 0;
    }
    bz_buf_putc(&s->text, '\n');
    bz_arena_free(&arena);
    bz_trace_free(t);
}

static void say_replaced(const char *name, const char *text, const char *at, size_t n, const char *instead, seen *s)
{
    bz_buf other = {0};
    bz_buf_put(&other, text, (size_t)(at - text));
    bz_buf_puts(&other, instead);
    bz_buf_puts(&other, at + n);
    say_operator(name, bz_buf_text(&other), NULL, s);
    bz_buf_free(&other);
}

static void say_neighbours(const char *name, const char *text, seen *s)
{
    static const char *const READS[] = {NULL, "inputs=[[1,4,7,7]]", "inputs=[[1,6,12,12]]", "inputs=[[2,4,16]]",
                                        "inputs=[[1,4,1,1]]"};
    for (size_t i = 0; i < sizeof READS / sizeof *READS; i++)
        say_operator(name, text, READS[i], s);
    for (const char *at = text; *at; at++) {
        if (isdigit((unsigned char)*at) && strchr("[,_-", at[-1])) {
            char number[32], *end;
            long long n = strtoll(at, &end, 10);
            const long long OTHER[] = {n - 1, n + 1, 2 * n, 0};
            for (int i = 0; i < 4; i++) {
                snprintf(number, sizeof number, "%lld", OTHER[i]);
                say_replaced(name, text, at, (size_t)(end - at), number, s);
            }
            say_replaced(name, text, at, (size_t)(end - at) + (*end == ','), "", s);
            at = end - 1;
        } else if (!strncmp(at, "float", 5)) {
            say_replaced(name, text, at, 5, "c10::Half", s);
        } else if (*at == ' ') {
            say_replaced(name, text, at, strlen(at), "", s);
        }
    }
}

static void say_name(const char *name, seen *s)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (bz_has_word(ROWS[i].names, name)) {
            char copy[800], *save = NULL;
            snprintf(copy, sizeof copy, "%s", ROWS[i].arguments);
            for (char *one = strtok_r(copy, "|", &save); one; one = strtok_r(NULL, "|", &save))
                say_neighbours(name, one, s);
        }
}

int main(int argc, char **argv)
{
    enum { MOST = 200 };
    static char all[8000];
    const char *names[MOST];
    char *save = NULL;
    int n = 0;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", ROWS[i].names);
    for (char *name = strtok_r(all, " ", &save); name && n < MOST; name = strtok_r(NULL, " ", &save))
        names[n++] = name;
    return seen_main(argc, argv, names, n, say_name, BENANZA_SOURCE "/tests/unit/explain_neighbours.txt");
}
