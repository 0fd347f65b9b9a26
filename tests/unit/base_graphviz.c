/* DOT to SVG by the library, where it is installed; names from files cannot leave their place. */
#include "base/base.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/drawing.h"

/* Sockets here, also in the process that draws, take and give little at a time, and signals interrupt them. */
static bool interrupted(int fd, size_t *n)
{
    static unsigned calls;
    struct stat st;
    if (fstat(fd, &st) || !S_ISSOCK(st.st_mode))
        return false;
    *n = *n > 50000 ? 50000 : *n > 5 ? *n / 2 : *n;
    errno = EINTR;
    return ++calls % 3 == 0;
}

ssize_t read(int fd, void *to, size_t n)
{
    return interrupted(fd, &n) ? -1 : syscall(SYS_read, fd, to, n);
}

ssize_t send(int fd, const void *from, size_t n, int flags)
{
    return interrupted(fd, &n) ? -1 : syscall(SYS_sendto, fd, from, n, flags, NULL, 0);
}

static void draws_svg(void **state)
{
    (void)state;
    bz_buf dot = {0}, svg = {0};
    bz_error err = {0};
    bz_buf_puts(&dot, "digraph g { a [label=");
    bz_graphviz_quote(&dot, "</text><script>alert(1)</script>\" b -> c \\");
    bz_buf_puts(&dot, "] a -> d }");
    if (bz_graphviz_svg(bz_buf_text(&dot), &svg, &err)) {
        assert_int_equal(err.code, BZ_FAILED);
        assert_non_null(strstr(err.text, "libgvc6")); /* says what to install */
        bz_buf_free(&dot);
        skip();
    }
    assert_non_null(strstr(bz_buf_text(&svg), "<svg"));
    assert_non_null(strstr(bz_buf_text(&svg), "</svg>"));
    assert_non_null(strstr(bz_buf_text(&svg), "&lt;script&gt;"));
    assert_null(strstr(bz_buf_text(&svg), "<script"));
    bz_buf_free(&svg);
    bz_buf_free(&dot);
}

/* Each node is one, and each edge as many as there are rows from its node to the other one, which is as many as the longest way there has. */
static void what_is_too_big_is_told_in_nodes_and_rows(void **state)
{
    (void)state;
    enum { NODES = 110 };
    for (int apart = 1; apart < 3; apart++) {
        bz_buf dot = {0}, svg = {0};
        bz_error err = {0};
        char want[80];
        bz_buf_puts(&dot, "digraph g {");
        for (int to = 0; to < NODES; to++) {
            bz_buf_printf(&dot, "\n  n%d [label=\"a -> b\"]", to);
            for (int from = to - apart; from >= 0; from -= apart)
                bz_buf_printf(&dot, "\n  n%d -> n%d", from, to);
        }
        bz_buf_puts(&dot, "\n}\n");
        int rows = 0;
        for (int to = 0; to < NODES; to++)
            for (int from = to - apart; from >= 0; from -= apart)
                rows += (to - from) / apart;
        snprintf(want, sizeof want, "%d nodes and rows", NODES + rows);
        assert_int_equal(bz_graphviz_svg(bz_buf_text(&dot), &svg, &err), -1);
        assert_non_null(strstr(err.text, want));
        bz_buf_free(&dot);
        bz_buf_free(&svg);
    }
}

/* Graphviz remembers the last font by its address, over graphs. */
static void draws_one_after_the_other(void **state)
{
    (void)state;
    bz_buf first = {0}, second = {0};
    bz_error err = {0};
    static const char DOT[] = "digraph g { node [fontname=\"Helvetica\"] a -> b }";
    if (bz_graphviz_svg(DOT, &first, &err))
        skip();
    assert_int_equal(bz_graphviz_svg(DOT, &second, &err), 0);
    assert_string_equal(bz_buf_text(&first), bz_buf_text(&second));
    bz_buf_free(&first);
    bz_buf_free(&second);
}

/* A name of ten million characters, and one in letters of two bytes and quotes: drawn, cut, and still UTF-8. */
static void long_strings_are_cut(void **state)
{
    (void)state;
    static const char *const UNITS[] = {"x", "\xc3\xa4", "\"", "a\n"};
    for (size_t u = 0; u < sizeof UNITS / sizeof *UNITS; u++) {
        bz_buf name = {0}, dot = {0}, svg = {0};
        bz_error err = {0};
        for (int i = 0; i < (u ? 20000 : 10000000); i++)
            bz_buf_puts(&name, UNITS[u]);
        bz_buf_puts(&dot, "digraph { a [label=");
        bz_graphviz_quote(&dot, bz_buf_text(&name));
        assert_true(dot.len < 8100);
        assert_non_null(strstr(bz_buf_text(&dot), "…\""));
        assert_null(strstr(bz_buf_text(&dot), "\\xc3"));
        bz_buf_puts(&dot, "] }");
        if (!bz_graphviz_svg(bz_buf_text(&dot), &svg, &err))
            assert_non_null(strstr(bz_buf_text(&svg), "</svg>"));
        else
            assert_non_null(strstr(err.text, "libgvc6"));
        bz_buf_free(&name);
        bz_buf_free(&dot);
        bz_buf_free(&svg);
    }
}

static void put_dense(int n, bz_buf *dot)
{
    bz_buf_puts(dot, "digraph {\n");
    for (int i = 0; i < n; i++) {
        bz_buf_printf(dot, "  n%d [label=x]\n", i);
        for (int k = 0; k < i; k++)
            bz_buf_printf(dot, "  n%d -> n%d\n", k, i);
    }
    bz_buf_puts(dot, "}\n");
}

/* Each node has edges to all later ones: 60 of them took minutes, 700 take for ever. */
static void crowded_graphs_are_drawn_hastily_or_not_at_all(void **state)
{
    (void)state;
    for (int n = 40; n <= 700; n += 660) {
        bz_buf dot = {0}, svg = {0};
        bz_error err = {0};
        put_dense(n, &dot);
        if (n == 700 || bz_graphviz_svg(bz_buf_text(&dot), &svg, &err)) {
            assert_int_equal(bz_graphviz_svg(bz_buf_text(&dot), &svg, &err), -1);
            assert_non_null(strstr(err.text, n == 700 ? "too big to be drawn" : "libgvc6"));
        } else {
            assert_non_null(strstr(bz_buf_text(&svg), "</svg>"));
        }
        bz_buf_free(&dot);
        bz_buf_free(&svg);
    }
}

static void broken_dot_is_an_error(void **state)
{
    (void)state;
    bz_buf svg = {0};
    bz_error err = {0};
    assert_int_equal(bz_graphviz_svg("digraph {", &svg, &err), -1);
    assert_int_equal(err.code, BZ_FAILED);
    assert_int_equal(svg.len, 0);
    bz_buf_free(&svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_svg),
        cmocka_unit_test(what_is_too_big_is_told_in_nodes_and_rows),
        cmocka_unit_test(draws_one_after_the_other),
        cmocka_unit_test(long_strings_are_cut),
        cmocka_unit_test(crowded_graphs_are_drawn_hastily_or_not_at_all),
        cmocka_unit_test(broken_dot_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
