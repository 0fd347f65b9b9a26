/* What is left to run, of problems given as texts: those that have a part, or stand in a file with what is known of them. */
#include "runtime/pending.h"
#include "tests/unit/chance.h"
#include "tests/unit/perfdb_test.h"

enum { PROBLEMS = 6 };

static const char *text_of(int i)
{
    static char text[64];
    snprintf(text, sizeof text, "activation fn=relu x=1x%d dtype=f32", 10 + i);
    return text;
}

static bz_pending all(void)
{
    bz_pending p = {0};
    for (int i = 0; i < PROBLEMS; i++)
        assert_ok(bz_pending_add_text(&p, text_of(i), &err));
    assert_int_equal(p.n, PROBLEMS);
    for (int i = 0; i < PROBLEMS; i++) {
        assert_string_equal(p.item[i].text, text_of(i));
        assert_true(p.item[i].n > 0 && !p.item[i].n_known);
    }
    return p;
}

/* Lines of the file in any order, some twice, some of other problems; behind a problem's line lines of what is known of it, and some that say
 * nothing. What stands there stays in its own order. */
static void test_kept(void **state)
{
    const char *path = below(state, "only");
    for (int round = 0; round < 300; round++) {
        bool wanted[PROBLEMS] = {false};
        int known[PROBLEMS][8], n_known[PROBLEMS] = {0}, left = 0;
        bz_buf text = {0};
        for (int lines = (int)chance(8); lines > 0; lines--) {
            int i = (int)chance(PROBLEMS + 2);
            bool ours = i < PROBLEMS;
            bz_buf_printf(&text, "%s%s", ours ? text_of(i) : "another", chance(2) ? "\r\n" : "\n");
            if (ours)
                wanted[i] = true;
            for (int k = (int)chance(3); k > 0; k--) {
                int number = (int)chance(100);
                if (!chance(4)) {
                    bz_buf_puts(&text, "    onednn plain\n");
                } else if (ours && n_known[i] < 8) {
                    bz_buf_printf(&text, "    back%d plain default a %d\n", number, number);
                    known[i][n_known[i]++] = number;
                } else if (!ours) {
                    bz_buf_puts(&text, "    onednn plain default\n");
                }
            }
        }
        FILE *f = fopen(path, "w");
        assert_true(f && fwrite(bz_buf_text(&text), 1, text.len, f) == text.len && !fclose(f));
        bz_pending p = all();
        assert_ok(bz_pending_keep(&p, path, &err));
        for (int i = 0; i < PROBLEMS; i++) {
            if (!wanted[i])
                continue;
            assert_true(left < p.n);
            const bz_pending_item *w = &p.item[left++];
            assert_string_equal(w->text, text_of(i));
            assert_int_equal(w->n_known, n_known[i]);
            for (int k = 0; k < n_known[i]; k++) {
                char backend[16], algorithm[16];
                snprintf(backend, sizeof backend, "back%d", known[i][k]);
                snprintf(algorithm, sizeof algorithm, "a %d", known[i][k]);
                assert_string_equal(w->known[k].backend, backend);
                assert_string_equal(w->known[k].layout, "plain");
                assert_string_equal(w->known[k].math, "default");
                assert_string_equal(w->known[k].algorithm, algorithm);
            }
        }
        assert_int_equal(p.n, left);
        bz_pending_free(&p);
        bz_buf_free(&text);
    }
    bz_pending p = all();
    assert_fails(bz_pending_keep(&p, below(state, "nowhere"), &err), BZ_BAD_INPUT, "cannot be read");
    bz_pending_free(&p);
}

static void test_parts(void **state)
{
    (void)state;
    for (int i = 0; i < PROBLEMS; i++) {
        bz_pending p = all();
        char part[16];
        snprintf(part, sizeof part, "1x%d ", 10 + i);
        bz_pending_filter(&p, part);
        assert_int_equal(p.n, 1);
        assert_string_equal(p.item[0].text, text_of(i));
        bz_pending_filter(&p, "conv");
        assert_int_equal(p.n, 0);
        bz_pending_free(&p);
    }
}

/* Texts of a file, a line each; empty lines and those that begin with # are none. */
static void test_read(void **state)
{
    (void)state;
    char text[] = "# of a model\n\nactivation fn=relu x=1x10 dtype=f32\r\nactivation fn=relu x=1x11 dtype=f32";
    bz_pending p = {0};
    FILE *f = fmemopen(text, sizeof text - 1, "r");
    assert_ok(bz_pending_read(&p, f, &err));
    fclose(f);
    assert_int_equal(p.n, 2);
    for (int i = 0; i < 2; i++)
        assert_string_equal(p.item[i].text, text_of(i));
    assert_fails(bz_pending_add_text(&p, "frobnicate x=1", &err), BZ_BAD_INPUT, "");
    bz_pending_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_kept, make_folder, remove_folder),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
