/* How much of a big file is read for its structure. */
#include "onnx/structure.h"
#include "writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

/* What was read by pread, as the room reads models, in bytes. */
static size_t read_bytes;

/* How pread behaves: it gives no more than so many bytes at once, is interrupted so many times, and then fails for good. */
static size_t most_bytes = SIZE_MAX;
static int interruptions, failure;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved */
ssize_t pread(int fd, void *out, size_t n, off_t from)
{
    if (interruptions > 0 || failure) {
        errno = interruptions-- > 0 ? EINTR : failure;
        return -1;
    }
    ssize_t got = syscall(SYS_pread64, fd, out, n < most_bytes ? n : most_bytes, from);
    read_bytes += got > 0 ? (size_t)got : 0;
    return got;
}

/* Layers repeat themselves: once that is known, little more is read than what stands between their payloads. */
static void layers_that_repeat_are_read_once(void **state)
{
    (void)state;
    static const uint8_t ZEROS[70000]; /* more than is ever read ahead */
    static const int BETWEEN[] = {1500, 6000, 3000, 9000};
    enum { LAYERS = 40 };
    for (int tensors = 1; tensors <= 4; tensors++) {
        bz_buf graph = {0};
        char name[9001];
        for (int i = 0; i < LAYERS * tensors; i++) {
            snprintf(name, sizeof name, "%0*d", BETWEEN[i % tensors], i);
            bz_buf t = a_tensor(name, BZ_U8, "70000");
            put_bytes(&t, TENSOR_RAW, ZEROS, sizeof ZEROS);
            put_message(&graph, GRAPH_INIT, t);
        }
        bz_buf bytes = a_model(8, 17, graph);
        FILE *f = tmpfile();
        assert_true(f && fwrite(bytes.data, 1, bytes.len, f) == bytes.len && !fflush(f));
        wire_bytes part;
        bz_error err = {0};
        read_bytes = 0;
        assert_int_equal(structure_read(fileno(f), bytes.len, 100, &(bz_buf){0}, &part, &err), 0);
        /* 64 kB until it is known, and 1 kB behind each guess */
        assert_in_range(read_bytes, part.size, part.size + (64 << 10) + LAYERS * (size_t)tensors * 1100);
        free((void *)part.data);
        free((void *)part.cuts);
        fclose(f);
        bz_buf_free(&bytes);
    }
}

/* A read is whole however the system cuts it up, and fails where the file ends or the system says so. */
static void reads_are_whole(void **state)
{
    (void)state;
    enum { SIZE = 40 };
    uint8_t bytes[SIZE], got[SIZE + 1];
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i + 1);
    FILE *f = tmpfile();
    assert_true(f && fwrite(bytes, 1, SIZE, f) == SIZE && !fflush(f));
    bz_error err = {0};
    for (most_bytes = 1; most_bytes <= SIZE; most_bytes += 3)
        for (size_t from = 0; from <= SIZE; from += 5)
            for (size_t n = 0; n <= SIZE - from; n += 7) {
                memset(got, 0, sizeof got);
                interruptions = (int)(n % 3);
                assert_int_equal(wire_read(fileno(f), from, got, n, &err), 0);
                assert_memory_equal(got, bytes + from, n);
                assert_int_equal(got[n], 0);
                interruptions = 0;
                assert_int_equal(wire_read(fileno(f), from, got, SIZE - from + 1, &err), -1);
                assert_string_equal(err.text, "byte 40: the file was cut short meanwhile");
            }
    most_bytes = SIZE_MAX;
    interruptions = 2;
    failure = EIO;
    assert_int_equal(wire_read(fileno(f), 7, got, 9, &err), -1);
    assert_string_equal(err.text, "byte 7 cannot be read: Input/output error");
    assert_int_equal(err.code, BZ_BAD_INPUT);
    interruptions = failure = 0;
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_that_repeat_are_read_once),
                                       cmocka_unit_test(reads_are_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
