/* Operators one by one: a model of one node (or two in a chain) is written in memory and its result
 * types are held against what the operator's specification says. The table covers what the ONNX
 * package's own test models leave out: operator sets 18 to 23, com.microsoft, ai.onnx.ml. */
#include "modelproc/modelproc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modelproc_ops_model.h"

/* ---- the check ------------------------------------------------------------------------------------- */

static bool check_case(const op_case *c)
{
    bz_buf bytes = write_model(c), found = {0};
    bz_error err = {0};
    bz_model *m = NULL;
    bz_layers *l = NULL;
    int64_t macs = -1;
    bool fine;
    if (bz_model_parse(bytes.data, bytes.len, c->op, &m, &err) ||
        bz_layers_infer(m, &(bz_infer_options){0}, &l, &err)) {
        bz_buf_printf(&found, "!%s", err.text);
        fine = *c->out == '!' && strstr(err.text, c->out + 1);
    } else {
        const bz_layer *last = &l->layer[l->n - 1];
        for (int k = 0; k < last->n_out; k++) {
            bz_buf_puts(&found, k ? " " : "");
            if (last->out[k].kind == BZ_TYPE_TENSOR)
                bz_buf_printf(&found, "%s:", bz_dtype_name(last->out[k].dtype));
            bz_type_text(NULL, &last->out[k], &found);
        }
        macs = last->macs;
        fine = !strcmp(bz_buf_text(&found), c->out) && (c->macs < 0 || c->macs == macs);
        if (strstr(c->out, "!"))
            fine = false;
    }
    if (!fine)
        print_error("%s-%d(%s) {%s}\n    wanted %s, %lld MACs\n    found  %s, %lld MACs\n", c->op, c->opset, c->in,
                    c->attrs ? c->attrs : "", c->out, (long long)c->macs, bz_buf_text(&found), (long long)macs);
    bz_layers_free(l);
    bz_model_free(m);
    bz_buf_free(&bytes);
    bz_buf_free(&found);
    return fine;
}

static void check_all(const op_case *cases, size_t n)
{
    int wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += !check_case(&cases[i]);
    assert_int_equal(wrong, 0);
}

#define CHECK(table)                                                                                                   \
    static void test_##table(void **state)                                                                             \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_all((table), sizeof(table) / sizeof *(table));                                                           \
    }
CHECK(standard)
CHECK(microsoft)
CHECK(classical)
CHECK(hostile)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_standard),
        cmocka_unit_test(test_microsoft),
        cmocka_unit_test(test_classical),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
