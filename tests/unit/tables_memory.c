/* What a large recording takes of memory, by event: columns, and what looking for iterations and filling tables takes besides. */
#include "tables/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <malloc.h>

#if defined __SANITIZE_ADDRESS__
#define KEEPS_BOOKS true
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define KEEPS_BOOKS true
#endif
#endif
#ifndef KEEPS_BOOKS
#define KEEPS_BOOKS false
#endif

/* Pages have two megabytes, which a million events feel. Rows that tables show are as many of any large recording. */
enum { PAIRS = 500000, KERNELS = 100, BYTES_EACH = 50, ROWS = 32000000 };

/* "VmHWM:    12345 kB": in bytes; 0: the system does not tell. */
static long told(const char *key)
{
    char line[256];
    long kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            kilobytes = strtol(line + strlen(key) + 1, NULL, 10);
    if (f)
        fclose(f);
    return kilobytes * 1024;
}

/* As PyTorch's profiler writes it: a launch and a kernel, again and again, 200 MB. */
static void write_trace(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"schemaVersion\":1,\"traceEvents\":[", f);
    for (int k = 0; k < PAIRS; k++)
        fprintf(
            f,
            "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"kernel_%d\",\"pid\":0,\"tid\":7,\"ts\":%d.125,\"dur\":3.5,"
            "\"args\":{\"External id\":%d,\"device\":0,\"context\":1,\"stream\":7,\"correlation\":%d,"
            "\"registers per thread\":47,\"shared memory\":0,\"grid\":[864,1,1],\"block\":[256,1,1]}},\n"
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":5,\"tid\":6,\"ts\":%d,"
            "\"dur\":2,\"args\":{\"cbid\":211,\"correlation\":%d}}",
            k ? ",\n" : "", k % KERNELS, k * 5 + 3, k, k + 1, k * 5, k + 1);
    fputs("]}", f);
    assert_int_equal(fclose(f), 0);
}

static void memory_follows_events(void **state)
{
    (void)state;
    char folder[BZ_FOLDER_MAX], path[BZ_FOLDER_MAX + 16];
    bz_error err;
    bz_arena arena = {0};
    bz_trace *t = bz_trace_new();
    assert_int_equal(bz_folder_make(folder, &err), 0);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    write_trace(path);
    const char *file = path;
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* as benanza profile does */
    long before = told("VmRSS");
    t->summary = true;
    int failed = bz_trace_read(t, &file, 1, NULL, &err);
    bz_folder_remove(folder);
    assert_int_equal(failed, 0);
    assert_int_equal(t->event[BZ_EVENT_KERNEL].n, PAIRS);
    assert_int_equal(t->n_iterations, PAIRS / KERNELS);
    long found = told("VmHWM");
    bz_tables *m = bz_tables_new(t, NULL, NULL, &arena, &err);
    for (int i = 0; i < bz_n_tables; i++)
        bz_tables_fill(m, &bz_table_list[i]);
    long filled = told("VmHWM");
    printf("%.1f bytes an event to find iterations, %.1f to fill all tables\n",
           (double)(found - before) / (2.0 * PAIRS), (double)(filled - before) / (2.0 * PAIRS));
    assert_true(found - before < 2L * PAIRS * BYTES_EACH);
    assert_true(filled - before < 2L * PAIRS * BYTES_EACH + ROWS);
    bz_arena_free(&arena);
    bz_trace_free(t);
}

int main(void)
{
    if (KEEPS_BOOKS || !told("VmHWM")) {
        printf("the system does not tell what the trace takes of memory, or sanitizers take some, too\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_follows_events)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
