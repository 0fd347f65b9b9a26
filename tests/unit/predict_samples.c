/* Records as a table: what a GPU counted decides how much of a problem is memory's. */
#include "tests/unit/perfdb_test.h"

#include "predict/predict.h"

#define POOL "pool mode=max x=1x64x112x112 kernel=3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 dtype=f32"

enum { OPERATIONS = 64 * 56 * 56 * 9, BYTES = 4 * 64 * (112 * 112 + 56 * 56) };

static void put_pool(bz_perfdb *db, const char *system, const char *algorithm, double seconds, const char *meta)
{
    bz_record r = sample_record();
    r.system = system;
    r.problem = POOL;
    r.variant = (bz_variant){"cudnn", algorithm, "plain", "default"};
    r.setting = (bz_setting){1, BZ_CACHE_HOT, ""};
    r.median = seconds;
    r.meta = meta;
    put(db, r);
}

/* Of the cheapest record of each machine; where nothing was counted, by the definition. */
static void intensity_is_counted(void **state)
{
    static const struct {
        const char *system, *gpu, *meta;
        double is;
    } AT[] = {
        {"a@x1", "Tesla V100-SXM2-16GB", "", (double)OPERATIONS / BYTES},
        {"b@x1", "Tesla T4", "{\"counted\":{\"flops\":1000,\"dram_read\":300,\"dram_write\":200}}", 2},
        {"c@x1", "Tesla P4", "{\"counted\":{\"flops\":4014080}}", 4014080.0 / BYTES},
        {"d@x1", "Tesla K80", "{\"counted\":{\"dram_read\":300,\"dram_write\":200}}", (double)OPERATIONS / BYTES},
        {"e@x1", "Tesla M60", "{\"counted\":{\"flops\":null,\"dram_read\":1}}", (double)OPERATIONS / BYTES},
    };
    enum { N = sizeof AT / sizeof *AT };
    bz_perfdb *db = open_new(state, "db");
    bz_samples s;
    for (int i = 0; i < N; i++) {
        char details[100];
        snprintf(details, sizeof details, "{\"gpu\":\"%s\"}", AT[i].gpu);
        assert_ok(bz_perfdb_put_system(db, AT[i].system, details, 1, &err));
        put_pool(db, AT[i].system, "slower", 30e-6, "{\"counted\":{\"flops\":7,\"dram_read\":1,\"dram_write\":0}}");
        put_pool(db, AT[i].system, "fastest", 20e-6, AT[i].meta);
        put_pool(db, AT[i].system, "the slowest", 40e-6,
                 "{\"counted\":{\"flops\":9,\"dram_read\":1,\"dram_write\":0}}");
    }
    assert_ok(bz_samples_load(db, &(bz_setting){1, BZ_CACHE_HOT, ""}, NULL, &s, &err));
    assert_int_equal(s.n, 1);
    assert_int_equal(s.machines, N);
    for (int m = 0; m < N; m++) {
        assert_string_equal(s.machine[m].name, AT[m].system);
        assert_true(fabs(bz_samples_intensity(&s, 0, m) / AT[m].is - 1) < 1e-9);
    }
    /* A T4 does 25 operations a byte: where 2 were counted nearly all is the memory's, where 1000 were nearly nothing. */
    double few = bz_scaling_of(BZ_SCALING_WAVES, &s.shape[0], 2, &s.machine[0], &s.machine[1]),
           many = bz_scaling_of(BZ_SCALING_WAVES, &s.shape[0], 1000, &s.machine[0], &s.machine[1]);
    assert_true(fabs(log(few * s.machine[1].bandwidth / s.machine[0].bandwidth)) < fabs(log(few / many)) / 10);
    bz_samples_free(&s);
    bz_perfdb_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(intensity_is_counted, make_folder, remove_folder)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    return failed;
}
