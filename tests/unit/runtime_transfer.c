/* Ways to move bytes: each runs here and brings what it should, and the ring of loads that wait is one ring. */
#include "runtime/memory/transfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* From any line all others are met, and then itself again. */
static void test_ring(void **unused)
{
    (void)unused;
    for (size_t lines = 2; lines < 5000; lines = lines * 3 / 2 + 1) {
        size_t size = lines * TRANSFER_LINE, met = 0;
        char *memory = aligned_alloc(TRANSFER_LINE, size), *seen = calloc(lines, 1);
        transfer_ring(memory, size);
        void **at = (void **)(void *)memory;
        do {
            size_t line = (size_t)((char *)at - memory) / TRANSFER_LINE;
            assert_true(line < lines && !seen[line]++);
            met++;
            at = *at;
        } while ((char *)at != memory);
        assert_int_equal(met, lines);
        free(seen);
        free(memory);
    }
}

/* Every element counts once, whatever is left over behind whole vectors, and bytes behind whole words. */
static void test_sums(void **unused)
{
    enum { MOST = 300 };
    double x[MOST];
    unsigned char place[MOST + 1], *byte = place + 1; /* wherever words begin */
    (void)unused;
    for (size_t n = 0; n < MOST; n++) {
        double sum = 0;
        uint64_t bytes = 0;
        x[n] = (double)(n + 1) * 3;
        byte[n] = (unsigned char)(n * 7 + 1);
        for (size_t i = 0; i <= n; i++)
            sum += x[i];
        assert_true(memory_sum(x, n + 1) == sum);
        for (size_t at = 0; at <= n / 8; at++) {
            uint64_t word = 0;
            memcpy(&word, byte + 8 * at, n + 1 - 8 * at < 8 ? 0 : 8);
            bytes += word;
        }
        for (size_t i = (n + 1) / 8 * 8; i <= n; i++)
            bytes += byte[i];
        assert_true(memory_read(byte, n + 1) == bytes);
    }
}

typedef struct tally {
    int right, refused, wrong;
    char last[900];
} tally;

static void count(void *context, const bz_outcome *r)
{
    tally *t = context;
    if (r->status == BZ_STATUS_OK) {
        assert_string_equal(r->checked, "ok");
        t->right++;
    } else if (r->status == BZ_STATUS_UNSUPPORTED) {
        t->refused++;
    } else {
        t->wrong++;
        snprintf(t->last, sizeof t->last, "%s: %s", r->algorithm, r->reason);
    }
}

static tally run(const char *text, int threads)
{
    bz_problem p;
    bz_error err;
    tally t = {0};
    if (bz_problem_parse(text, &p, &err))
        fail_msg("%s: %s", text, err.text);
    bz_family family = {&p, "memory", "plain", "default"};
    bz_run_options o = {.setting = {.threads = threads}, .check_only = true, .emit = count, .context = &t};
    assert_int_equal(bz_run(&family, 1, &o, &err), 0);
    if (t.wrong)
        fail_msg("%s: %s", text, t.last);
    return t;
}

/* Sizes that are no whole vectors and no whole lines, and such as do not go through a pipe at once. */
static void test_ways(void **unused)
{
    static const struct {
        const char *text;
        int variants;
        bool shared; /* several threads may do it */
    } WAYS[] = {
        {"transfer way=read x=1003 dtype=f64", 1, true},      {"transfer way=write x=1003 dtype=f64", 3, true},
        {"transfer way=copy x=1003 dtype=f64", 3, true},      {"transfer way=scale x=1003 dtype=f64", 3, true},
        {"transfer way=add x=1003 dtype=f64", 3, true},       {"transfer way=triad x=1003 dtype=f64", 3, true},
        {"transfer way=strided x=1008 dtype=f64", 1, true},   {"transfer way=scattered x=1024 dtype=f64", 1, true},
        {"transfer way=chase x=4096 dtype=u8", 1, false},     {"transfer way=chase_huge x=5000 dtype=u8", 1, false},
        {"transfer way=touch x=100001 dtype=u8", 2, false},   {"transfer way=touch_huge x=4194304 dtype=u8", 1, false},
        {"transfer way=shared x=1001 dtype=u8", 1, false},    {"transfer way=wake x=1001 dtype=u8", 1, false},
        {"transfer way=pipe x=1 dtype=u8", 1, false},         {"transfer way=pipe x=300001 dtype=u8", 1, false},
        {"transfer way=socket x=1000001 dtype=u8", 1, false}, {"transfer way=tcp x=1000001 dtype=u8", 1, false},
        {"transfer way=file x=100001 dtype=u8", 1, false},    {"transfer way=mapped x=100001 dtype=u8", 2, false},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        assert_int_equal(run(WAYS[i].text, 1).right, WAYS[i].variants);
        tally two = run(WAYS[i].text, 3);
        assert_int_equal(two.right, WAYS[i].shared ? WAYS[i].variants : 0);
        assert_int_equal(two.refused, WAYS[i].shared ? 0 : 1);
    }
    static const char *const FOUND[] = {"zlib", "unzlib", "zstd", "unzstd", "lz4", "unlz4", "far", "far_chase"};
    for (size_t i = 0; i < sizeof FOUND / sizeof *FOUND; i++) { /* refused without the library, or a second node */
        char text[80];
        snprintf(text, sizeof text, "transfer way=%s x=70001 dtype=u8", FOUND[i]);
        tally one = run(text, 1);
        assert_int_equal(one.right + one.refused, 1);
        assert_true(one.right || i > 3); /* zlib and zstd are benanza's own */
        assert_int_equal(run(text, 2).refused, 1);
    }
    tally cold = run("transfer way=file_cold x=100001 dtype=u8", 1); /* refused where temporary files lie in memory */
    assert_int_equal(cold.right + cold.refused, 1);
}

static void test_refused(void **unused)
{
    static const char *const TEXTS[] = {
        "transfer way=copy x=100 dtype=f32",         "transfer way=pipe x=100 dtype=f64",
        "transfer way=strided x=1001 dtype=f64",     "transfer way=scattered x=1000 dtype=f64",
        "transfer way=chase x=64 dtype=u8",          "transfer way=copy x=10x10 dtype=f64",
        "transfer way=swim x=100 dtype=u8",          "transfer way=copy x=100 post=relu dtype=f64",
        "transfer way=copy x=100 dtype=f64:f64:f32",
    };
    (void)unused;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        bz_problem p;
        bz_error err;
        if (!bz_problem_parse(TEXTS[i], &p, &err))
            fail_msg("%s is taken", TEXTS[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ring), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_ways), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
