/* What is looked for by a short way is what the long way finds: numbers of runs that come again, names that patterns match, calls whose
 * numbers ascend. */
#include "profile/cuts.h"
#include "profile/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants the headers above before itself
#include <cmocka.h>

static uint64_t seed = 20261129;

static uint32_t below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

enum { LONGEST = 700 };

/* By their first appearance. */
static void widen_plainly(uint32_t *gram, size_t n, size_t width)
{
    static uint32_t part[LONGEST][4];
    uint32_t count = 0, number[LONGEST];
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 4; k++)
            part[i][k] = i + k * width < n ? gram[i + k * width] + 1 : 0;
        size_t same = 0;
        while (same < i && memcmp(part[same], part[i], sizeof part[i]) != 0)
            same++;
        number[i] = same < i ? number[same] : count++;
    }
    memcpy(gram, number, n * sizeof *gram);
}

/* Pieces of what came before, with symbols that differ here and there. */
static void make_symbols(uint32_t *symbol, size_t n)
{
    uint32_t kinds = 2 + below(12), odd = 1 + below(300);
    for (size_t i = 0; i < n;) {
        size_t length = 1 + below(200), from = i && below(4) ? below((uint32_t)i) : n;
        for (size_t k = 0; k < length && i < n; k++, i++)
            symbol[i] = from < n && below(odd) ? symbol[from + k] : below(kinds);
    }
}

static void runs(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        uint32_t finest[LONGEST], gram[LONGEST], plain[LONGEST];
        size_t n = 4 + below(LONGEST - 4);
        make_symbols(finest, n);
        for (size_t i = 0; i < n; i++)
            gram[i] = plain[i] = round % 2 ? finest[i] : finest[i] / 2;
        for (size_t width = 1; width <= 64; width *= 4) {
            bz_widen_symbols(gram, finest, n, width);
            widen_plainly(plain, n, width);
            assert_memory_equal(gram, plain, n * sizeof *gram);
        }
    }
}

static void make_word(char *out, size_t most, const char *letters)
{
    size_t n = 1 + below((uint32_t)most);
    for (size_t i = 0; i < n; i++)
        out[i] = letters[below((uint32_t)strlen(letters))];
    out[n] = 0;
}

static void patterns(void **state)
{
    (void)state;
    int matched = 0;
    for (int round = 0; round < 20000; round++) {
        char name[40], pattern[3][8], all[40];
        make_word(name, 30, "abcA_");
        for (int i = 0; i < 3; i++)
            make_word(pattern[i], 6, "abcA_*");
        snprintf(all, sizeof all, "%s%s %s%s %s", below(4) ? "" : "^", pattern[0], pattern[1], below(4) ? "" : "$",
                 pattern[2]);
        const bz_paired_name paired = bz_name_paired(name);
        bool plain = bz_name_matches_any(all, name);
        assert_int_equal(bz_paired_name_matches_any(all, &paired), plain);
        matched += plain;
    }
    assert_in_range(matched, 2000, 18000);
}

static void ascending(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        bz_trace *t = bz_trace_new();
        uint32_t source = bz_trace_source(t, "test", "test"), thread = bz_trace_thread(t, source, 1, 1),
                 stream = bz_trace_stream(t, source, 1, 0, 1, 7), number = 0, calls = below(60);
        bz_events *api = &t->event[BZ_EVENT_API], *kernel = &t->event[BZ_EVENT_KERNEL];
        for (uint32_t i = 0; i < calls; i++) {
            size_t row = bz_trace_add(t, BZ_EVENT_API, i, i + 1, 0, thread);
            api->correlation[row] = number += 1 + below(round % 3 ? 3 : 1);
        }
        for (uint32_t i = 0, next = 0; i < 80; i++) { /* mostly in their order */
            size_t row = bz_trace_add(t, BZ_EVENT_KERNEL, i, i + 1, 0, stream);
            next = below(5) ? next + 1 : below(number + 3);
            kernel->correlation[row] = next;
        }
        bz_trace_find_causes(t);
        for (size_t i = 0; i < kernel->n; i++) {
            uint32_t cause = 0;
            while (cause < calls && api->correlation[cause] != kernel->correlation[i])
                cause++;
            assert_int_equal(kernel->cause[i], cause < calls ? cause : BZ_NONE);
        }
        bz_trace_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs), cmocka_unit_test(patterns), cmocka_unit_test(ascending)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
