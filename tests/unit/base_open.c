/* What may be opened to be read, and what that says of the rest. */
#include "base/base.h"
#include "base/mapped.h"
#include "base/open.h"
#include "base/whole.h"
#include "tests/unit/open_files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[BZ_FOLDER_MAX], pipe_path[BZ_FOLDER_MAX + 8];

/* What waits for the other end of a pipe asks the system by these two. Time passes so many times as fast, and what was asked for is counted. */
static int times_as_fast = 1;
static int64_t asked_ns;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    int64_t ns = time->tv_sec * INT64_C(1000000000) + time->tv_nsec, real = ns / times_as_fast;
    asked_ns += ns;
    return ppoll(NULL, 0, &(struct timespec){real / 1000000000, real % 1000000000}, NULL);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
    if (ms < 0) /* who keeps the folder waits for the end of this process */
        return ppoll(fds, n, NULL, NULL);
    int64_t ns = ms * INT64_C(1000000), real = ns / times_as_fast;
    asked_ns += ns;
    return ppoll(fds, n, &(struct timespec){real / 1000000000, real % 1000000000}, NULL);
}

/* Nobody is there: it is known after the 5 s that a pipe has. */
static void hurry(void)
{
    times_as_fast = 50;
    asked_ns = 0;
}

static void waited_seconds(int seconds)
{
    assert_true(asked_ns == seconds * INT64_C(1000000000));
    times_as_fast = 1;
}

static void says(const char *path, const char *part)
{
    bz_error err = {0};
    assert_int_equal(bz_open_input(path, &err), -1);
    assert_int_equal(err.code, BZ_BAD_INPUT);
    if (strncmp(err.text, path, strlen(path)) != 0 || !strstr(err.text, part))
        fail_msg("%s", err.text);
    assert_null(bz_open_input_file(path, NULL));
}

static void what_never_ends_is_refused(void **state)
{
    (void)state;
    says("/dev/zero", "is a device: give a file");
    says("/nonesuch/file", "cannot be opened: No such file or directory");
    int fd = bz_open_input("/dev/null", NULL);
    char c;
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &c, 1), 0);
    close(fd);
}

static void *write_late(void *text)
{
    usleep(300000);
    int fd = open(pipe_path, O_WRONLY | O_CLOEXEC);
    usleep(300000); /* a reader that does not wait would find nothing, and take that for the end */
    if (write(fd, text, strlen(text)) < 0)
        abort();
    close(fd);
    return NULL;
}

static void a_pipe_has_time_to_find_its_writer(void **state)
{
    (void)state;
    bz_buf text = {0};
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_late, "some text"), 0);
    assert_int_equal(bz_whole_read(pipe_path, 100, "is too long", &text, NULL), 0);
    assert_string_equal(bz_buf_text(&text), "some text");
    pthread_join(writer, NULL);
    bz_buf_free(&text);
    hurry();
    says(pipe_path, "is a pipe that nobody writes to");
    waited_seconds(2 * 5);
    hurry();
    int busy = open(pipe_path, O_RDWR | O_CLOEXEC), fd = bz_open_input(pipe_path, NULL); /* he will write later */
    assert_true(busy >= 0 && fd >= 0);
    waited_seconds(5);
    close(busy);
    close(fd);
}

static void *read_late(void *got)
{
    usleep(300000);
    int fd = open(pipe_path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n, at = 0; (n = read(fd, (char *)got + at, 10)) > 0;)
        at += n;
    close(fd);
    return NULL;
}

static void what_is_written_waits_for_its_reader(void **state)
{
    (void)state;
    char got[40] = "";
    bz_buf text = {0};
    bz_error err = {0};
    pthread_t reader;
    bz_buf_puts(&text, "some text");
    assert_int_equal(pthread_create(&reader, NULL, read_late, got), 0);
    assert_int_equal(bz_whole_write(pipe_path, &text, &err), 0);
    pthread_join(reader, NULL);
    assert_string_equal(got, "some text");
    hurry();
    assert_int_equal(bz_whole_write(pipe_path, &text, &err), -1);
    waited_seconds(5);
    assert_non_null(strstr(err.text, "pipe: is a pipe that nobody reads"));
    bz_buf_free(&text);
}

static int make_pipe(void **state)
{
    (void)state;
    if (bz_folder_make(folder, NULL))
        return -1;
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    return mkfifo(pipe_path, 0600);
}

static int remove_pipe(void **state)
{
    (void)state;
    bz_folder_remove(folder);
    return 0;
}

/* A process that reads behind the end of a mapped file says which one it was, with nothing in the name that a terminal obeys, and not the
 * one that is mapped beside it; a signal that somebody sent ends it as ever. */
static void what_becomes_shorter_is_named(void **state)
{
    (void)state;
    static const char *const NAMES[][2] = {{"plain ~", "plain ~"},
                                           {"\x01 \x1f\x7f~", "? ??~"},
                                           {"a\xc2\x9b"
                                            "b",
                                            "a?\x9b"
                                            "b"},
                                           {"\xc3\xa9\xc1", "\xc3\xa9\xc1"},
                                           {NULL, NULL}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char path[2][BZ_FOLDER_MAX + 20], said[BZ_FOLDER_MAX + 200] = "", want[BZ_FOLDER_MAX + 200] = "";
        int line[2], status;
        snprintf(path[0], sizeof path[0], "%s/%s", folder, NAMES[i][0] ? NAMES[i][0] : "sent");
        snprintf(path[1], sizeof path[1], "%s/beside", folder);
        if (NAMES[i][0])
            snprintf(want, sizeof want,
                     "benanza: %s/%s: became shorter while it was read, or its disk cannot be read: try again\n",
                     folder, NAMES[i][1]);
        assert_int_equal(pipe(line), 0);
        pid_t child = fork();
        if (child == 0) {
            const volatile char *at[2] = {NULL, NULL};
            dup2(line[1], STDERR_FILENO);
            bz_mapped_watch();
            for (int k = 0; k < 2; k++) {
                int fd = open(path[k], O_RDWR | O_CREAT, 0600);
                at[k] = ftruncate(fd, 8192) ? NULL : mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
                (void)!ftruncate(fd, 4096);
            }
            if (!NAMES[i][0])
                raise(SIGBUS);
            _exit(at[0][4095] + at[0][4096]);
        }
        close(line[1]);
        for (ssize_t n = 0, some; (some = read(line[0], said + n, sizeof said - 1 - (size_t)n)) > 0; n += some)
            ;
        close(line[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_string_equal(said, want);
        assert_true(NAMES[i][0] ? WIFEXITED(status) && WEXITSTATUS(status) == BZ_BAD_INPUT
                                : WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    }
}

static bool begins_with_a(const char *name)
{
    return *name == 'a';
}

/* In the order of their letters, whatever the file system's is; names with a dot in front only where they are asked for. */
static void folders_are_listed_in_order(void **state)
{
    (void)state;
    static const char *const MADE[] = {"b", "a9", ".a", "Z", "a10"}, *const SORTED[] = {"Z", "a10", "a9", "b"};
    BZ_SCOPED(bz_arena) arena = {0};
    char inside[BZ_FOLDER_MAX];
    bz_error err = {0};
    const char **names;
    assert_int_equal(bz_folder_make(inside, &err), 0);
    for (size_t i = 0; i < sizeof MADE / sizeof *MADE; i++)
        close(open(bz_arena_printf(&arena, "%s/%s", inside, MADE[i]), O_WRONLY | O_CREAT, 0600));
    assert_int_equal(bz_folder_list(inside, NULL, &arena, &names), 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(names[i], SORTED[i]);
    assert_int_equal(bz_folder_list(inside, begins_with_a, &arena, &names), 2);
    assert_string_equal(names[0], "a10");
    assert_string_equal(names[1], "a9");
    bz_folder_remove(inside);
    errno = 0;
    assert_int_equal(bz_folder_list(inside, NULL, &arena, &names), -1);
    assert_int_equal(errno, ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_never_ends_is_refused),           cmocka_unit_test(a_pipe_has_time_to_find_its_writer),
        cmocka_unit_test(what_is_written_waits_for_its_reader), cmocka_unit_test(what_becomes_shorter_is_named),
        cmocka_unit_test(folders_are_listed_in_order),
    };
    int before = open_files(), failed = cmocka_run_group_tests(tests, make_pipe, remove_pipe);
    return failed || open_files() != before;
}
