/* The models that were analysed before, beside a database. */
#include "analysis/analysis.h"

#include "base/whole.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILES = 260, REMEMBERED = 200 };

/* Of the models that were analysed the last 200 are remembered, each once, in the order in which they were met first. */
static void the_last_are_remembered(void **state)
{
    (void)state;
    char folder[] = "/tmp/benanza-test-XXXXXX", path[FILES][64], memory[64];
    int list[REMEMBERED + 1], n = 0;
    uint32_t seed = 1;
    bz_error err;
    assert_non_null(mkdtemp(folder));
    snprintf(memory, sizeof memory, "%s/models.txt", folder);
    for (int i = 0; i < FILES; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d.onnx", folder, i);
        FILE *f = fopen(path[i], "w");
        assert_non_null(f);
        fclose(f);
    }
    for (int round = 0; round < 60; round++) {
        const char *model[20];
        int models = 1 + round % 20;
        for (int k = 0; k < models; k++) {
            seed = seed * 1664525 + 1013904223;
            int i = (int)((seed >> 8) % FILES), at = 0;
            model[k] = path[i];
            while (at < n && list[at] != i)
                at++;
            if (at < n)
                continue;
            list[n++] = i;
            if (n > REMEMBERED)
                memmove(list, list + 1, (size_t)--n * sizeof *list);
        }
        bz_candidates_remember(model, models, folder);
        bz_buf expected = {0}, found = {0};
        for (int k = 0; k < n; k++)
            bz_buf_printf(&expected, "%s\n", path[list[k]]);
        assert_int_equal(bz_whole_read(memory, 1 << 20, "is long", &found, &err), 0);
        assert_string_equal(bz_buf_text(&found), bz_buf_text(&expected));
        bz_buf_free(&expected);
        bz_buf_free(&found);
    }
    assert_int_equal(n, REMEMBERED);
    for (int i = 0; i < FILES; i++)
        unlink(path[i]);
    unlink(memory);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_are_remembered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
