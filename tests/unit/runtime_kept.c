#include "runtime/kept.h"

#include "base/folder.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

static char top[BZ_FOLDER_MAX], folder[BZ_FOLDER_MAX + 8];

static int begin(void **state)
{
    bz_error err;
    (void)state;
    if (bz_folder_make(top, &err))
        return -1;
    snprintf(folder, sizeof folder, "%s/kept", top);
    return 0;
}

static int end(void **state)
{
    (void)state;
    bz_folder_remove(top);
    return 0;
}

static bool takes(const char *key, const char *expected)
{
    bz_buf out = {0};
    bool found = bz_kept_take(folder, key, &out);
    bool same = found && !strcmp(bz_buf_text(&out), expected);
    assert_true(same || !out.len);
    bz_buf_free(&out);
    return same;
}

/* The one file that is there, but for those given. */
static void find_file(char *out, size_t size)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            snprintf(out, size, "%s/%s", folder, e->d_name);
    closedir(d);
}

static void test_comes_back(void **state)
{
    (void)state;
    assert_false(takes("first", "one"));
    bz_kept_put(folder, "first", "one", 3);
    bz_kept_put(folder, "second", "", 0);
    assert_true(takes("first", "one"));
    assert_true(takes("second", ""));
    bz_kept_put(folder, "first", "other", 5);
    assert_true(takes("first", "other"));
    assert_false(takes("third", ""));
}

static void test_of_another_key(void **state)
{
    char file[BZ_FOLDER_MAX + 300], other[BZ_FOLDER_MAX + 64];
    (void)state;
    bz_kept_put(folder, "a", "1", 1);
    find_file(file, sizeof file);
    bz_kept_put(folder, "b", "2", 1);
    unlink(file);
    find_file(other, sizeof other);
    assert_int_equal(rename(other, file), 0);
    assert_false(takes("a", "2")); /* it lies where a lay, and is b's */
}

static void test_not_ours(void **state)
{
    char file[BZ_FOLDER_MAX + 300], away[BZ_FOLDER_MAX + 64];
    (void)state;
    bz_kept_put(folder, "a", "1", 1);
    find_file(file, sizeof file);
    assert_true(takes("a", "1"));
    chmod(file, 0620);
    assert_false(takes("a", "1"));
    chmod(file, 0600);
    chmod(folder, 0777);
    assert_false(takes("a", "1"));
    bz_kept_put(folder, "c", "3", 1);
    chmod(folder, 0700);
    assert_true(takes("a", "1"));
    assert_false(takes("c", "3"));
    snprintf(away, sizeof away, "%s/away", top);
    assert_int_equal(rename(file, away), 0);
    assert_int_equal(symlink(away, file), 0);
    assert_false(takes("a", "1"));
}

static void test_damaged(void **state)
{
    static const char *const TEXTS[] = {
        "",
        "benanza kept 1 1 1 ",
        "benanza kept 1 1 1 0123456789abcdef0123456789abcdef\na",
        "benanza kept 1 1 18446744073709551615 0123456789abcdef0123456789abcdef\na1",
        "benanza kept 1 18446744073709551615 2 0123456789abcdef0123456789abcdef\na1",
        "benanza kept 1 1 1 0123456789abcdef0123456789abcdef\na1",
        "benanza kept 2 1 1 0123456789abcdef0123456789abcdef\na1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        bz_buf text = {0};
        const char *data;
        size_t size;
        bz_buf_puts(&text, TEXTS[i]);
        assert_false(bz_kept_read(&text, "a", &data, &size));
        bz_buf_free(&text);
    }
}

static void test_every_cut_and_flip(void **state)
{
    char file[BZ_FOLDER_MAX + 300];
    bz_buf whole = {0};
    const char *data;
    size_t size;
    (void)state;
    bz_kept_put(folder, "key", "value", 5);
    find_file(file, sizeof file);
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;)
        bz_buf_putc(&whole, (char)c);
    fclose(f);
    assert_true(bz_kept_read(&whole, "key", &data, &size));
    for (size_t i = 0; i < whole.len; i++) {
        bz_buf cut = {0};
        bz_buf_put(&cut, whole.data, i);
        assert_false(bz_kept_read(&cut, "key", &data, &size));
        bz_buf_free(&cut);
        whole.data[i] ^= 64;
        assert_false(bz_kept_read(&whole, "key", &data, &size));
        whole.data[i] ^= 64;
    }
    bz_buf_free(&whole);
}

static void test_trims_the_oldest(void **state)
{
    char file[BZ_FOLDER_MAX + 300], data[1000] = {0};
    (void)state;
    bz_kept_put(folder, "old", data, sizeof data);
    find_file(file, sizeof file);
    utimes(file, (struct timeval[]){{1000, 0}, {1000, 0}});
    bz_kept_put(folder, "new", data, sizeof data);
    bz_kept_trim(folder, 1e6);
    assert_int_equal(access(file, F_OK), 0);
    bz_kept_trim(folder, 1500);
    assert_int_not_equal(access(file, F_OK), 0);
    bz_buf out = {0};
    assert_true(bz_kept_take(folder, "new", &out));
    bz_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(test_of_another_key, begin, end),
        cmocka_unit_test_setup_teardown(test_not_ours, begin, end),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test_setup_teardown(test_every_cut_and_flip, begin, end),
        cmocka_unit_test_setup_teardown(test_trims_the_oldest, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
