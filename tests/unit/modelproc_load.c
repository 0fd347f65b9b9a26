/* Models from their files, all or none of them; and the points of --dim a=1,2 b=3,4: each choice of one value for each, once. */
#include "modelproc/modelproc.h"
#include "open_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#define MODELS BENANZA_SOURCE "/models/"

static void models_are_loaded_and_freed(void **state)
{
    (void)state;
    const char *const path[] = {MODELS "squeezenet1_1.onnx", MODELS "resnet18.onnx", MODELS "is-not-there.onnx"};
    struct rlimit limit;
    int before = open_files();
    bz_models m = {0};
    bz_error err = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_int_equal(bz_models_load(path, 2, &(bz_infer_options){0}, &m, &err), 0);
    assert_int_equal(bz_models_load(path + 1, 1, &(bz_infer_options){0}, &m, &err), 0); /* more, behind the others */
    assert_int_equal(m.n, 3);
    for (int i = 0; i < m.n; i++) {
        assert_string_equal(m.name[i], path[i < 2 ? i : 1]);
        assert_true(m.layers[i]->n > 10 && m.layers[i]->model == m.model[i]);
    }
    assert_true(m.layers[1]->n == m.layers[2]->n && m.layers[0]->n != m.layers[1]->n);
    getrlimit(RLIMIT_NOFILE, &limit);
    assert_true(limit.rlim_cur == limit.rlim_max);
    bz_models_free(&m);
    assert_int_equal(m.n, 0);
    assert_int_equal(bz_models_load(path + 1, 2, &(bz_infer_options){0}, &m, &err), -1);
    assert_non_null(strstr(err.text, "is-not-there.onnx"));
    assert_int_equal(m.n, 1);
    bz_bind odd[] = {{"no-such-input", "7"}};
    assert_int_equal(bz_models_load(path, 1, &(bz_infer_options){.binds = odd, .n_binds = 1}, &m, &err), -1);
    assert_int_equal(m.n, 1);
    bz_models_free(&m);
    assert_int_equal(open_files(), before);
}

static void points_are_all_choices(void **state)
{
    (void)state;
    static const char *const DIMS[] = {"a=1,22,3", "b=5", "c=7,8"};
    bz_arena arena = {0};
    const bz_bind *list;
    bz_error err = {0};
    assert_int_equal(bz_binds_parse(DIMS, 3, &arena, &list, &err), 0);
    assert_int_equal(bz_binds_points(DIMS, 3, 6), 6);
    assert_int_equal(bz_binds_points(DIMS, 3, 5), 0);
    assert_int_equal(bz_binds_points(DIMS, 0, 1), 1);
    int number = 0;
    static const char *const A[] = {"1", "22", "3"}, *const C[] = {"7", "8"};
    for (int a = 0; a < 3; a++)
        for (int c = 0; c < 2; c++, number++) { /* the last one changes first */
            bz_bind point[3];
            bz_buf name = {0};
            char want[40];
            bz_binds_choose(list, 3, number, &arena, point, &name);
            snprintf(want, sizeof want, ", a=%s, c=%s", A[a], C[c]);
            assert_string_equal(bz_buf_text(&name), want);
            assert_string_equal(point[0].value, A[a]);
            assert_string_equal(point[1].value, "5");
            assert_string_equal(point[2].value, C[c]);
            assert_string_equal(point[1].name, "b");
            bz_buf_free(&name);
        }
    static const char *const BAD[] = {"a", "=1", "a=", ""};
    for (int i = 0; i < 4; i++)
        assert_int_equal(bz_binds_parse(&BAD[i], 1, &arena, &list, &err), -1);
    static const char *const TWO[] = {"x=y=3"}; /* names may have one */
    assert_int_equal(bz_binds_parse(TWO, 1, &arena, &list, &err), 0);
    assert_string_equal(list->name, "x=y");
    assert_string_equal(list->value, "3");
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_are_loaded_and_freed),
                                       cmocka_unit_test(points_are_all_choices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
