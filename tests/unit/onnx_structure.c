/* How much of a big file is read for its structure. */
#include "onnx/structure.h"
#include "writer.h"

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

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved */
ssize_t pread(int fd, void *out, size_t n, off_t from)
{
    ssize_t got = syscall(SYS_pread64, fd, out, n, from);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_that_repeat_are_read_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
