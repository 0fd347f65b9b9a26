/* The progress line on a terminal of the test's own, and its absence in a pipe. */
#include "base/progress.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What a piece of work writes to stderr, which is `fd`: it reports once, works for a moment longer than a second without a
 * word, is interrupted by a question, and goes on. */
static void work(int fd)
{
    dup2(fd, STDERR_FILENO);
    bz_progress outer = bz_progress_start("outer work", 0);
    bz_progress inner = bz_progress_start("inner work", 40);
    bz_progress_at(&inner, 7, "conv with a name that is much too long for a terminal of sixty columns\033[2J");
    usleep(1500000);
    bz_progress_hold(true);
    if (write(STDERR_FILENO, "<question>", 10) != 10)
        _exit(1);
    usleep(500000);
    if (write(STDERR_FILENO, "<answer>", 8) != 8)
        _exit(1);
    bz_progress_hold(false);
    bz_progress_end(&inner);
    usleep(500000);
    bz_progress_end(&outer);
    if (write(STDERR_FILENO, "<end>", 5) != 5)
        _exit(1);
    usleep(500000);
    _exit(0);
}

static void run(int ours, int theirs, char *said, size_t size)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        work(theirs);
    close(theirs);
    size_t n = 0;
    for (ssize_t got; n + 1 < size && (got = read(ours, said + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    said[n] = 0;
    close(ours);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_terminal(void **state)
{
    (void)state;
    char said[20000], *question, *answer, *end;
    int ours = posix_openpt(O_RDWR | O_NOCTTY);
    if (ours < 0 || grantpt(ours) || unlockpt(ours))
        skip();
    int theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
    assert_true(theirs >= 0);
    assert_int_equal(ioctl(theirs, TIOCSWINSZ, &(struct winsize){.ws_col = 60, .ws_row = 10}), 0);
    run(ours, theirs, said, sizeof said);
    assert_non_null(question = strstr(said, "<question>"));
    assert_non_null(answer = strstr(said, "<answer>"));
    assert_non_null(end = strstr(said, "<end>"));
    assert_non_null(strstr(said, "inner work 7/40"));
    assert_null(strstr(said, "\033[2J"));                      /* names do not reach the terminal as they are */
    assert_int_equal(strncmp(question - 4, "\r\033[K", 4), 0); /* the line was wiped before */
    assert_int_equal(answer - question, 10);                   /* nothing was drawn while held */
    assert_non_null(strstr(answer, "outer work, "));           /* it has taken more than a second */
    assert_int_equal(strlen(end), 5);                          /* nothing behind the end */
    char *first = strstr(said, "benanza: inner work"), *next = strchr(first, '\r');
    assert_non_null(next);
    assert_true(next - first <= 59 + 2); /* in the terminal's width; the ellipsis has three bytes */
}

static void test_pipe(void **state)
{
    (void)state;
    char said[1000];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    run(ends[0], ends[1], said, sizeof said);
    assert_string_equal(said, "<question><answer><end>");
}

/* What is left follows from what is done; what is not known is not told. */
static void test_lines(void **state)
{
    static const struct {
        int64_t done, total;
        double passed;
        int columns;
        const char *item, *line;
    } LINES[] = {{0, 0, 3.4, 80, "", "benanza: work, 3 s"},
                 {0, 1, 3, 80, "", "benanza: work, 3 s"},
                 {1, 2, 3, 80, "", "benanza: work 1/2, 3 s left"},
                 {0, 2, 3, 80, "", "benanza: work 0/2, 3 s"},
                 {2, 2, 3, 80, "", "benanza: work 2/2, 3 s"},
                 {10, 40, 2, 80, "a", "benanza: work 10/40, 6 s left  a"},
                 {10, 40, 2, 80, "a\nb\033", "benanza: work 10/40, 6 s left  a\\x0ab\\x1b"},
                 {0, 0, 1, 29, "abcdefgh", "benanza: work, 1 s  abcdefgh"},  /* 28 columns: all of it */
                 {0, 0, 1, 28, "abcdefgh", "benanza: work, 1 s"},            /* less than eight are no item */
                 {0, 0, 1, 29, "abcdefghi", "benanza: work, 1 s  abcd…ghi"}, /* it is cut */
                 {0, 0, 1, 10, "", "bena… 1 s"}};
    (void)state;
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        bz_buf out = {0};
        bz_progress_line("work", LINES[i].done, LINES[i].total, LINES[i].item, LINES[i].passed, LINES[i].columns, &out);
        assert_string_equal(bz_buf_text(&out), LINES[i].line);
        bz_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_terminal), cmocka_unit_test(test_pipe),
                                       cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
