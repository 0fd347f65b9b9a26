/* What the tests of the performance database share: a folder that goes away, and a record to vary. */
#ifndef PERFDB_TEST_H
#define PERFDB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "base/base.h"
#include "perfdb/perfdb.h"
#include "tests/unit/open_files.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bz_error err;

#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        if (call)                                                                                                      \
            fail_msg("%s: %s", #call, err.text);                                                                       \
    } while (0)

/* A call must fail, and its message must hold this. */
#define assert_fails(call, code_, words)                                                                               \
    do {                                                                                                               \
        assert_int_equal((call), -1);                                                                                  \
        if (!strstr(err.text, (words)) || err.code != (code_))                                                         \
            fail_msg("%s: '%s' (%d)", #call, err.text, err.code);                                                      \
    } while (0)

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int files_before;

static inline int make_folder(void **state)
{
    files_before = open_files();
    const char *tmp = getenv("TMPDIR");
    char *path = bz_alloc(4096, 1);
    snprintf(path, 4096, "%s/perfdb_test.XXXXXX", tmp ? tmp : "/tmp");
    *state = mkdtemp(path);
    return *state ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    nftw(*state, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(*state);
    if (open_files() == files_before)
        return 0;
    print_error("%d files were open before the test, %d are behind it\n", files_before, open_files());
    return -1;
}

/* A path below the test's folder; the arena of paths lives as long as the program. */
static inline const char *below(void **state, const char *name)
{
    static bz_arena paths;
    return bz_arena_printf(&paths, "%s/%s", (const char *)*state, name);
}

static bz_buf warnings; /* all of them, a line each */

static inline void keep_warning(void *user, const char *text)
{
    (void)user;
    bz_buf_puts(&warnings, text);
    bz_buf_putc(&warnings, '\n');
}

static inline size_t warnings_with(const char *words)
{
    size_t n = 0;
    for (const char *p = bz_buf_text(&warnings); (p = strstr(p, words)); p++)
        n++;
    return n;
}

static inline bz_perfdb *open_with(const char *dir, bz_perfdb_options options)
{
    bz_perfdb *db;
    options.warn = keep_warning;
    bz_buf_clear(&warnings);
    assert_ok(bz_perfdb_open(&db, dir, &options, &err));
    return db;
}

static inline bz_perfdb *open_new(void **state, const char *name)
{
    return open_with(below(state, name), (bz_perfdb_options){0});
}

#define PROBLEM "conv x=1x64x56x56 w=64x64x3x3 stride=1x1 pad=1x1x1x1 dilation=1x1 group=1 dtype=f32"

static inline bz_record sample_record(void)
{
    return (bz_record){
        .system = "xeon-8481c@onednn2.6.3",
        .problem = PROBLEM,
        .variant = {"onednn", "jit:avx512_core", "any", "default"},
        .setting = {1, BZ_CACHE_HOT, ""},
        .status = BZ_RECORD_OK,
        .reason = "",
        .median = 1.5e-4,
        .q25 = 1.4e-4,
        .q75 = 1.6e-4,
        .min = 1.3e-4,
        .max = 2e-4,
        .low = 1.49e-4,
        .high = 1.51e-4,
        .launch = NAN,
        .bytes = 1753088,
        .flops = 231211008,
        .n = 37,
        .iterations = 1200,
        .workspace = 4096,
        .chosen = true,
        .chosen_training = true,
        .checked = "ok",
        .timing = BZ_TIMING_DEVICE,
        .provenance = BZ_PROVENANCE_MEASURED,
        .date = 1790000000,
        .meta = "{\"build\":\"Ω 3\"}",
    };
}

static inline void put(bz_perfdb *db, bz_record r)
{
    assert_ok(bz_perfdb_put(db, &r, 1, NULL, &err));
}

/* The newest record of r's identity, or NULL. */
static inline bz_record *find(bz_perfdb *db, bz_record r, bz_arena *arena)
{
    const bz_system *system;
    bz_record *found = NULL;
    assert_ok(bz_perfdb_system(db, r.system, &system, &err));
    if (system)
        assert_ok(bz_perfdb_find(db, system, r.problem, &r.variant, &r.setting, arena, &found, &err));
    return found;
}

static inline int count_one(void *user, const bz_record *r)
{
    (void)r;
    ++*(size_t *)user;
    return 0;
}

static inline size_t count_records(bz_perfdb *db)
{
    size_t n = 0;
    assert_ok(bz_perfdb_scan(db, &(bz_perfdb_filter){.history = true}, count_one, &n, &err));
    return n;
}

static inline void assert_clean(bz_perfdb *db)
{
    bz_perfdb_check_report r;
    assert_ok(bz_perfdb_check(db, &r, &err));
    assert_int_equal(r.damaged + r.orphans + r.newer, 0);
}

#endif
