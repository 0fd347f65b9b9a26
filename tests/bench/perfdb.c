/* How fast the performance database is: import, look-up, all variants of a problem, export, merge.
 *
 *   bench_perfdb [RECORDS [FOLDER]]
 *
 * Writes 64,000 records of 8,000 problems (8 variants each) unless told otherwise, in a folder that
 * it makes under FOLDER (the current one) and removes. Look-ups go to random places. */
#include "perfdb/perfdb.h"
#include "base/base.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VARIANTS = 8, LOOKUPS = 200000, GROUPS = LOOKUPS / VARIANTS };

static bz_error err;

static void need(int rc)
{
    if (rc) {
        fprintf(stderr, "bench_perfdb: %s\n", err.text);
        exit(1);
    }
}

static uint64_t seed = 88172645463325252u;

static size_t random_below(size_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % n);
}

static void problem_text(char out[200], size_t i)
{
    snprintf(out, 200, "conv x=1x%zux%zux%zu w=%zux%zux3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32",
             i % 100 + 1, i / 100 % 40 + 7, i / 100 % 40 + 7, i / 4000 + 16, i % 100 + 1);
}

static bz_record make_record(size_t i, char problem[200], char algorithm[64])
{
    problem_text(problem, i / VARIANTS);
    snprintf(algorithm, 64, "jit:avx512_core_%zu", i % VARIANTS);
    double t = 1e-6 * (double)(random_below(1000000) + 1);
    return (bz_record){
        .system = "xeon-8481c@onednn2.6.3",
        .problem = problem,
        .variant = {"onednn", algorithm, "any", "default"},
        .setting = {1, BZ_CACHE_HOT, ""},
        .median = t,
        .q25 = t * 0.99,
        .q75 = t * 1.01,
        .min = t * 0.98,
        .max = t * 1.1,
        .low = t * 0.999,
        .high = t * 1.001,
        .launch = NAN,
        .bytes = 123456,
        .flops = 1.5e9,
        .n = 37,
        .iterations = 1200,
        .checked = "ok",
        .date = 1790000000,
    };
}

static void write_text(const char *path, size_t n)
{
    FILE *f = fopen(path, "w");
    bz_buf line = {0};
    for (size_t i = 0; i < n; i++) {
        char problem[200], algorithm[64];
        bz_record r = make_record(i, problem, algorithm);
        bz_buf_clear(&line);
        bz_json j = bz_json_to(&line, false);
        bz_record_json(&j, &r);
        bz_buf_putc(&line, '\n');
        if (!f || fwrite(line.data, 1, line.len, f) != line.len)
            need(bz_fail(&err, BZ_FAILED, "%s: cannot be written", path));
    }
    fclose(f);
    bz_buf_free(&line);
}

static void report(const char *what, double seconds, double calls)
{
    bz_unit_text each, all;
    printf("%-34s %10s  %10s each\n", what, bz_units_time(all, seconds), bz_units_time(each, seconds / calls));
}

static void bench_reads(bz_perfdb *db, size_t n)
{
    const bz_system *system;
    bz_arena arena = {0};
    char problem[200], algorithm[64];
    need(bz_perfdb_system(db, "xeon-8481c", &system, &err));
    double start = bz_now();
    for (int i = 0; i < LOOKUPS; i++) {
        bz_record want = make_record(random_below(n), problem, algorithm), *found;
        need(bz_perfdb_find(db, system, problem, &want.variant, &want.setting, &arena, &found, &err));
        if (!found || found->n != 37)
            need(bz_fail(&err, BZ_FAILED, "a record is missing"));
        if (arena.used > 1 << 20)
            bz_arena_free(&arena);
    }
    double with_text = bz_now() - start;
    start = bz_now();
    for (int i = 0; i < LOOKUPS; i++)
        make_record(random_below(n), problem, algorithm);
    report("point look-up", with_text - (bz_now() - start), LOOKUPS);

    size_t got = 0;
    start = bz_now();
    for (int i = 0; i < GROUPS; i++) {
        bz_record *list;
        size_t m;
        problem_text(problem, random_below(n / VARIANTS));
        need(bz_perfdb_variants(db, system, problem, &arena, &list, &m, &err));
        got += m;
        if (arena.used > 1 << 20)
            bz_arena_free(&arena);
    }
    report("all 8 variants of a problem", bz_now() - start, GROUPS);
    if (got != LOOKUPS)
        need(bz_fail(&err, BZ_FAILED, "variants are missing"));
    bz_arena_free(&arena);
}

static int count(void *user, const bz_record *r)
{
    *(size_t *)user += r->status == BZ_RECORD_OK;
    return 0;
}

static void bench_all(size_t n, const char *text, const char *dir, const char *other)
{
    bz_perfdb *db, *copy;
    bz_perfdb_import_report r;
    size_t seen = 0;
    double start = bz_now();
    need(bz_perfdb_open(&db, dir, &(bz_perfdb_options){0}, &err));
    report("open, new", bz_now() - start, 1);
    start = bz_now();
    need(bz_perfdb_import(db, text, NULL, &r, &err));
    report("import from JSON lines", bz_now() - start, (double)n);
    if (r.count.added != n)
        need(bz_fail(&err, BZ_FAILED, "%zu of %zu records went in", r.count.added, n));
    start = bz_now();
    need(bz_perfdb_import(db, text, NULL, &r, &err));
    report("import once more, all known", bz_now() - start, (double)n);
    bench_reads(db, n);
    start = bz_now();
    need(bz_perfdb_scan(db, &(bz_perfdb_filter){.history = true}, count, &seen, &err));
    report("scan", bz_now() - start, (double)n);
    int null = open("/dev/null", O_WRONLY);
    start = bz_now();
    need(bz_perfdb_export(db, &(bz_perfdb_filter){.history = true}, null, false, NULL, &err));
    report("export", bz_now() - start, (double)n);
    start = bz_now();
    need(bz_perfdb_export(db, &(bz_perfdb_filter){.history = true}, null, true, NULL, &err));
    report("export, zstd", bz_now() - start, (double)n);
    close(null);
    need(bz_perfdb_open(&copy, other, &(bz_perfdb_options){0}, &err));
    start = bz_now();
    need(bz_perfdb_merge(copy, db, NULL, &err));
    report("merge into an empty one", bz_now() - start, (double)n);
    bz_perfdb_close(copy);
    char problem[200], algorithm[64];
    start = bz_now();
    for (int i = 0; i < 100; i++) {
        bz_record one = make_record((size_t)i, problem, algorithm);
        one.date += 1 + i;
        need(bz_perfdb_put(db, &one, 1, NULL, &err));
    }
    report("put, one by one", bz_now() - start, 100);
    bz_perfdb_close(db);
    start = bz_now();
    need(bz_perfdb_open(&db, dir, &(bz_perfdb_options){.read_only = true}, &err));
    report("open", bz_now() - start, 1);
    bz_perfdb_close(db);
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) / VARIANTS * VARIANTS : 64000;
    char base[512], text[600], dir[600], other[600], command[700];
    snprintf(base, sizeof base, "%s/bench_perfdb.XXXXXX", argc > 2 ? argv[2] : ".");
    if (n == 0 || n > 8000000 || !mkdtemp(base)) {
        fprintf(stderr, "usage: bench_perfdb [RECORDS [FOLDER]]\n");
        return 2;
    }
    snprintf(text, sizeof text, "%s/records.jsonl", base);
    snprintf(dir, sizeof dir, "%s/db", base);
    snprintf(other, sizeof other, "%s/other", base);
    write_text(text, n);
    printf("%zu records\n", n);
    bench_all(n, text, dir, other);
    static const char *const FILES[] = {"db/data.mdb",    "db/lock.mdb", "db",           "other/data.mdb",
                                        "other/lock.mdb", "other",       "records.jsonl"};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        snprintf(command, sizeof command, "%s/%s", base, FILES[i]);
        remove(command);
    }
    rmdir(base);
    return 0;
}
