/* How operands of all kinds of types are told: tensors by element and shape, others by their type in words, left-out ones by nothing. */
#include "report/report.h"
#include "writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cJSON.h>

/* Kinds of types by their fields in ONNX's TypeProto. */
enum { TENSOR = 1, SEQUENCE = 4, MAP = 5, SPARSE = 8, OPTIONAL = 9 };

/* "4:9:1": a sequence of optional tensors, of f32 and 2x3. The keys of a map are i64. */
static bz_buf type_of(const char *kinds, const char *dims)
{
    char *behind;
    long kind = strtol(kinds, &behind, 10);
    bz_buf type = {0}, inside = {0};
    if (kind == TENSOR)
        return a_type(BZ_F32, dims);
    if (kind == SPARSE) { /* as a tensor but for the number of its field, which stands first */
        type = a_type(BZ_F32, dims);
        type.data[0] = (char)(SPARSE * 8 + 2);
        return type;
    }
    if (kind == MAP)
        put_int(&inside, 1, BZ_I64);
    put_message(&inside, kind == MAP ? 2 : 1, type_of(behind + 1, dims));
    put_message(&type, (uint32_t)kind, inside);
    return type;
}

static const struct {
    const char *kinds, *dims, *told; /* NULL: left out */
} OPERANDS[] = {
    {"1", "2x3", "\"dtype\":\"f32\",\"shape\":[2,3]"},
    {"1", "", "\"dtype\":\"f32\",\"shape\":[]"},
    {"1", "Nx3", "\"dtype\":\"f32\",\"shape\":[\"N\",3]"},
    {"8", "2x3", "\"dtype\":\"f32\",\"shape\":[2,3]"},
    {NULL, NULL, "\"dtype\":null,\"shape\":null"},
    {"4:1", "2x3", "\"dtype\":null,\"type\":\"seq(2x3)\",\"shape\":null"},
    {"9:1", "2x3", "\"dtype\":null,\"type\":\"optional(2x3)\",\"shape\":null"},
    {"5:1", "2", "\"dtype\":null,\"type\":\"map(2)\",\"shape\":null"},
    {"9:4:1", "7", "\"dtype\":null,\"type\":\"optional(seq(7))\",\"shape\":null"},
    {"4:5:1", "", "\"dtype\":null,\"type\":\"seq(map(scalar))\",\"shape\":null"},
};
enum { N = sizeof OPERANDS / sizeof *OPERANDS };

static void operands_are_told(void **state)
{
    (void)state;
    bz_buf graph = {0}, in = {0}, out = {0};
    bz_model *model;
    bz_layers *layers = NULL;
    bz_error err;
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        bz_buf_printf(&in, i ? " %s" : "%s", OPERANDS[i].kinds ? name : "_");
        if (!OPERANDS[i].kinds)
            continue;
        bz_buf value = {0};
        put_text(&value, 1, name);
        put_message(&value, 2, type_of(OPERANDS[i].kinds, OPERANDS[i].dims));
        put_message(&graph, GRAPH_INPUT, value);
    }
    put_message(&graph, GRAPH_NODE, a_node("FooBar", "f", bz_buf_text(&in), "y"));
    bz_buf bytes = a_model(8, 17, graph);
    if (bz_model_parse(bytes.data, bytes.len, "test", &model, &err) ||
        bz_layers_infer(model, &(bz_infer_options){.open_inputs = true}, &layers, &err))
        fail_msg("%s", err.text);
    bz_report_layers(&layers, 1, &(bz_layers_view){.json = true}, &out);
    cJSON *all = cJSON_ParseWithLength(out.data, out.len);
    const cJSON *layer = cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetArrayItem(all, 0), "layers"), 0);
    const cJSON *told = cJSON_GetObjectItem(layer, "inputs");
    assert_int_equal(cJSON_GetArraySize(told), N);
    for (int i = 0; i < N; i++) {
        char wanted[200], name[16];
        char *text = cJSON_PrintUnformatted(cJSON_GetArrayItem(told, i));
        snprintf(name, sizeof name, OPERANDS[i].kinds ? "\"v%d\"" : "null", i);
        snprintf(wanted, sizeof wanted, "{\"name\":%s,%s,\"constant\":false}", name, OPERANDS[i].told);
        assert_string_equal(text, wanted);
        cJSON_free(text);
    }
    cJSON_Delete(all);
    bz_layers_free(layers);
    bz_model_free(model);
    bz_buf_free(&bytes);
    bz_buf_free(&in);
    bz_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operands_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
