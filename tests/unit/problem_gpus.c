/* The table of known GPUs: every row can be read, and names find the row that is meant. */
#include "runtime/gpus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a multiprocessor does in one clock, by generation: operations, a multiply-add counted as two. */
static const struct {
    int cc;
    double f64, f32, f16; /* f16: 0 where it has no unit for it */
} UNITS[] = {
    {30, 16, 384, 0},   {35, 128, 384, 0},    {37, 128, 384, 0},     {52, 8, 256, 0},      {60, 64, 128, 256},
    {61, 8, 256, 0},    {70, 64, 128, 1024},  {75, 4, 128, 1024},    {80, 128, 128, 2048}, {86, 4, 256, 1024},
    {89, 4, 256, 1024}, {90, 256, 256, 4096}, {100, 128, 256, 8192}, {120, 4, 256, 1024},
};

static bool is_near(double rate, double expected, double least, double most)
{
    return rate >= least * expected && rate <= most * expected;
}

/* Multiprocessors, units and clock make the rates. Data sheets round, f64 of small ones to one digit; tensor cores of
 * Hopper and Blackwell are quoted at up to 15 % less than the boost clock. */
static void rates_follow_from_units(void **state)
{
    (void)state;
    bz_gpu row;
    for (int n = 0; bz_gpu_row(n, &row); n++) {
        size_t i = 0;
        while (i < sizeof UNITS / sizeof *UNITS && UNITS[i].cc != row.major * 10 + row.minor)
            i++;
        assert_true(i < sizeof UNITS / sizeof *UNITS);
        double ticks = row.multiprocessors * row.clock, f16 = row.rate[3];
        bool good = is_near(row.rate[1], ticks * UNITS[i].f32, 0.98, 1.02) &&
                    is_near(row.rate[0], ticks * UNITS[i].f64, 0.95, 1.05);
        if (UNITS[i].f16 > 0) /* some products compute at half the rate of their chip */
            good = good &&
                   (is_near(f16, ticks * UNITS[i].f16, 0.85, 1.02) || is_near(f16, ticks * UNITS[i].f16, 0.49, 0.51));
        else
            good = good && f16 == 0;
        if (row.rate[2] > 0)
            good = good && (is_near(row.rate[2], f16, 0.49, 0.51) || is_near(row.rate[2], f16, 0.245, 0.255));
        if (row.rate[4] > 0)
            good = good && (is_near(row.rate[4], f16, 0.99, 1.01) || is_near(row.rate[4], f16, 0.49, 0.51));
        if (row.rate[5] > 0) /* without tensor cores: four products at once in each unit for f32 */
            good = good && is_near(row.rate[5], row.major < 7 ? 4 * row.rate[1] : 2 * f16, 0.98, 1.02);
        if (row.rate[6] > 0)
            good = good && is_near(row.rate[6], 2 * f16, 0.98, 1.02);
        if (!good)
            print_error("%s: its rates are not those of its units\n", row.slug);
        assert_true(good);
    }
}

static void rows_are_whole(void **state)
{
    (void)state;
    bz_gpu row, other;
    int n = 0;
    for (; bz_gpu_row(n, &row); n++) {
        assert_true(row.major >= 3 && row.major <= 12 && row.multiprocessors >= 8);
        assert_true(row.memory >= 4e9 && row.memory < 3e11 && row.bandwidth > 1e11 && row.bandwidth < 1e13);
        assert_true(row.rate[0] > 0 && row.rate[1] >= row.rate[0]);
        assert_true(strlen(row.name) > 3 && strlen(row.ram) > 2 && (row.base == 0 || row.base <= row.clock));
        assert_true(row.watts == 0 || (row.watts >= 60 && row.watts <= 1200));
        assert_true(row.source[0] && strspn(row.source, "dwtxm") == strlen(row.source));
        /* units that came with a generation */
        assert_int_equal(row.rate[2] > 0, row.major >= 8);
        assert_int_equal(row.rate[6] > 0, row.major * 10 + row.minor >= 89);
        for (int k = 0; k < n; k++) {
            bz_gpu_row(k, &other);
            assert_string_not_equal(row.slug, other.slug);
        }
    }
    assert_true(n >= 45);
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
        {"NVIDIA GeForce GTX 1080 Ti", "gtx-1080-ti"},
        {"NVIDIA TITAN Xp", "titan-xp"},
        {"TITAN X (Pascal)", "titan-x-pascal"},
        {"GeForce GTX TITAN X", "gtx-titan-x"},
        {"GeForce GTX 1080", "gtx-1080"},
        {"GeForce RTX 2080", "rtx-2080"},
        {"GeForce RTX 2080 Ti", "rtx-2080-ti"},
        {"GeForce RTX 2080 SUPER", "rtx-2080-super"},
        {"Quadro RTX 8000", "rtx-8000"},
        {"NVIDIA A2", "a2"},
        {"NVIDIA GH200 480GB", "gh200"},
        {"NVIDIA GH200 144G HBM3e", "gh200-144"},
        {"NVIDIA B100", "b100"},
        {"NVIDIA B200", "b200"},
        {"NVIDIA GB200", "gb200"},
        {"Quadro RTX 6000", "rtx-6000"},
        {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
        {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"},
        {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q"},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server"},
    };
    bz_gpu found;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        assert_true(bz_gpu_find(NAMES[i].name, &found));
        assert_string_equal(found.slug, NAMES[i].slug);
    }
    assert_false(bz_gpu_find("NVIDIA A100X", &found));
    assert_false(bz_gpu_find("NVIDIA GeForce RTX 3080 Ti", &found));
    assert_false(bz_gpu_find("NVIDIA GeForce RTX 3080 Laptop GPU", &found));
    assert_false(bz_gpu_find("GeForce RTX 2080 with Max-Q Design", &found));
    assert_false(bz_gpu_find("NVIDIA A100-SXM4-40GB MIG 1g.5gb", &found));
    assert_false(bz_gpu_find("NVIDIA H100 80GB HBM3 MIG 3g.40gb", &found));
    assert_false(bz_gpu_find("AMD Instinct MI300X", &found));
    assert_true(bz_gpu_slug("a100", &found)); /* the first of the four */
    assert_string_equal(found.slug, "a100-40");
    assert_true(bz_gpu_slug("V100", &found));
    assert_string_equal(found.slug, "v100");
    assert_false(bz_gpu_slug("rtx", &found)); /* of six generations */
    assert_false(bz_gpu_slug("v10", &found));
    assert_false(bz_gpu_slug("", &found));
    assert_true(bz_gpu_find("NVIDIA H200", &found));
    assert_int_equal(found.multiprocessors, 132);
    assert_true(fabs(found.bandwidth - 4.8e12) < 1);
    assert_true(fabs(found.rate[0] - 67e12) < 1); /* its tensor cores compute in f64 */
    assert_true(fabs(found.rate[4] - 989e12) < 1);
}

/* The chosen one comes first; the others stay, for copies between two. */
static void one_is_chosen(void **state)
{
    static const struct {
        const char *visible, *number, *left;
    } CASES[] = {
        {"5", "0", "5"},
        {"2,3", "0", "2,3"},
        {"2,3", "1", "3,2"},
        {"GPU-aa,GPU-bb,MIG-cc", "1", "GPU-bb,GPU-aa,MIG-cc"},
        {"GPU-aa,GPU-bb,MIG-cc", "2", "MIG-cc,GPU-aa,GPU-bb"},
    };
    bz_error err;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int again = 0; again < 2; again++) { /* a program that starts itself anew has the option still */
            if (!again) {
                unsetenv("BENANZA_DEVICE");
                setenv("CUDA_VISIBLE_DEVICES", CASES[i].visible, 1);
            }
            assert_int_equal(bz_gpu_choose(CASES[i].number, &err), 0);
            assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), CASES[i].left);
            assert_string_equal(bz_gpu_chosen(), CASES[i].number);
        }
    static const char *const REFUSED[] = {"3", "-1", "1x", "", " 1", "32", "99999999999999999999"};
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        unsetenv("BENANZA_DEVICE");
        setenv("CUDA_VISIBLE_DEVICES", "2,3,4", 1);
        assert_int_equal(bz_gpu_choose(REFUSED[i], &err), -1);
        assert_int_equal(err.code, BZ_USAGE);
        assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "2,3,4");
        assert_null(bz_gpu_chosen());
    }
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* leaves none */
    assert_int_equal(bz_gpu_choose("0", &err), -1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(bz_gpu_choose("2", &err), 0);
    assert_int_equal(strncmp(getenv("CUDA_VISIBLE_DEVICES"), "2,0,1,3,4,", 10), 0);
    assert_string_equal(getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
    unsetenv("BENANZA_DEVICE");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_whole), cmocka_unit_test(rates_follow_from_units),
                                       cmocka_unit_test(names_find_rows), cmocka_unit_test(one_is_chosen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
