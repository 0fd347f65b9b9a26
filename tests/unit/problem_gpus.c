/* The table of known GPUs: every row can be read, and names find the row that is meant. */
#include "runtime/gpus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Units for f32 in a multiprocessor. */
static int cores(const bz_gpu *row)
{
    int cc = row->major * 10 + row->minor;
    return cc < 50 ? 192 : cc == 60 || (cc >= 70 && cc <= 80) ? 64 : 128;
}

static void rows_are_whole(void **state)
{
    (void)state;
    bz_gpu row, other;
    int n = 0;
    for (; bz_gpu_row(n, &row); n++) {
        assert_true(row.major >= 3 && row.major <= 12 && row.multiprocessors > 10);
        assert_true(row.memory >= 8e9 && row.memory < 3e11 && row.bandwidth > 1e11 && row.bandwidth < 1e13);
        assert_true(row.rate[0] > 0 && row.rate[1] >= row.rate[0]);
        double clock = row.rate[1] / (2.0 * cores(&row) * row.multiprocessors);
        assert_true(clock > 0.85e9 && clock < 2.6e9);
        assert_true(strlen(row.name) > 3);
        /* units that came with a generation */
        assert_int_equal(row.rate[2] > 0, row.major >= 8);
        assert_int_equal(row.rate[6] > 0, row.major * 10 + row.minor >= 89);
        for (int k = 0; k < n; k++) {
            bz_gpu_row(k, &other);
            assert_string_not_equal(row.slug, other.slug);
        }
    }
    assert_true(n >= 30);
}

static void names_find_rows(void **state)
{
    (void)state;
    static const struct {
        const char *name, *slug;
    } NAMES[] = {
        {"NVIDIA H200", "h200"},
        {"NVIDIA H200 NVL", "h200-nvl"},
        {"NVIDIA H100 80GB HBM3", "h100"},
        {"NVIDIA H100 PCIe", "h100-pcie"},
        {"Tesla V100-SXM2-16GB", "v100"},
        {"Tesla V100-SXM3-32GB", "v100-sxm3"},
        {"Tesla V100S-PCIE-32GB", "v100s"},
        {"Tesla P100-PCIE-16GB", "p100-pcie"},
        {"Tesla P100-PCIE-12GB", "p100-pcie-12"},
        {"Tesla T4", "t4"},
        {"NVIDIA L40S", "l40s"},
        {"NVIDIA L40", "l40"},
        {"NVIDIA L4", "l4"},
        {"Tesla P40", "p40"},
        {"NVIDIA A100-SXM4-80GB", "a100-80"},
        {"NVIDIA A10", "a10"},
        {"NVIDIA GeForce RTX 4090", "rtx-4090"},
    };
    bz_gpu found;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        assert_true(bz_gpu_find(NAMES[i].name, &found));
        assert_string_equal(found.slug, NAMES[i].slug);
    }
    assert_false(bz_gpu_find("NVIDIA A100X", &found));
    assert_false(bz_gpu_find("AMD Instinct MI300X", &found));
    assert_true(bz_gpu_find("NVIDIA H200", &found));
    assert_int_equal(found.multiprocessors, 132);
    assert_true(fabs(found.bandwidth - 4.8e12) < 1);
    assert_true(fabs(found.rate[0] - 67e12) < 1); /* its tensor cores compute in f64 */
    assert_true(fabs(found.rate[4] - 989e12) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_whole), cmocka_unit_test(names_find_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
