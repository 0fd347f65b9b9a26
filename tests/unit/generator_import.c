/* What the database imports from the original tool is spelled as problems are: whatever a problem can say
 * reads as one and prints back the same. */
#include "generator/generator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int check(void *user, const bz_record *r)
{
    bz_problem p;
    bz_error err;
    bz_buf text = {0};
    bool known = false;
    for (bz_problem_kind k = BZ_PROBLEM_NONE + 1; k < BZ_PROBLEM_N_KINDS; k++)
        known |= strcspn(r->problem, " ") == strlen(bz_problem_kind_name(k)) &&
                 !strncmp(r->problem, bz_problem_kind_name(k), strlen(bz_problem_kind_name(k)));
    if (!known || strchr(r->problem, '?')) /* kinds without a benchmark; parameters that the file does not tell */
        return 0;
    if (bz_problem_parse(r->problem, &p, &err))
        fail_msg("%s: %s", r->problem, err.text);
    bz_problem_print(&p, &text);
    assert_string_equal(bz_buf_text(&text), r->problem);
    bz_buf_free(&text);
    ++*(int *)user;
    return 0;
}

static void test_published(void **state)
{
    static const char NAME[] = "LAYER_CUDNN_%s__BatchSize_1__1%s/input[0]:1/input[1]:64/input[2]:9/input[3]:9"
                               "/filter_height:3/filter_width:3/pad_height:1/pad_width:1/stride_height:2/stride_width:2"
                               "/manual_time";
    static const char *const CALLS[][2] = {
        {"ACTIVATION_FWD_FLOAT32", "<CUDNN_ACTIVATION_RELU>"},
        {"POOLING_FWD_FLOAT32", "<CUDNN_POOLING_MAX>"},
        {"POOLING_FWD_FLOAT16", "<CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING>"},
        {"BATCHNORM_FWD_INFERENCE_FLOAT32", "<CUDNN_BATCHNORM_SPATIAL>"},
        {"OP_TENSOR_ADD_FWD_FLOAT32", ""},
    };
    char folder[] = "/tmp/benanza-test-XXXXXX", path[80], command[120];
    bz_perfdb *db;
    bz_error err = {0};
    int n = 0;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/published.json", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"context\": {\"date\": \"2019-01-01 00:00:00\"}, \"benchmarks\": [", f);
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
        fprintf(f, "%s{\"name\": \"", i ? ",\n" : "");
        fprintf(f, NAME, CALLS[i][0], CALLS[i][1]);
        fputs("\", \"iterations\": 10, \"real_time\": 5.0, \"cpu_time\": 5.0, \"time_unit\": \"us\"}", f);
    }
    fputs("]}\n", f);
    fclose(f);
    snprintf(command, sizeof command, "%s/db", folder);
    assert_int_equal(bz_perfdb_open(&db, command, &(bz_perfdb_options){0}, &err), 0);
    bz_perfdb_import_report report;
    if (bz_perfdb_import(db, path, "v100@cudnn7.6.3", &report, &err))
        fail_msg("%s", err.text);
    assert_int_equal(bz_perfdb_scan(db, &(bz_perfdb_filter){0}, check, &n, &err), 0);
    assert_int_equal(n, (int)(sizeof CALLS / sizeof *CALLS));
    bz_perfdb_close(db);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
