/* Recordings of training runs side by side. */
#include "suite/suite.h"

#include "base/sort.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char RUNS[] =
    "run|size|system=on|batch:n|step:s=an iteration|variation:%=varies by|samples:n=units a second|unit=units"
    "|by_batch:n=by the batch before|by_system:n=by the first system|busy_share:%=busy"
    "|flops_rate:M=operations a second|peak_share:%=of the peak|processors:n=processors used"
    "|memory:B=allocated at most|file:-=recording|failed=why there is nothing";
static const char CHECKS[] = "run|system=on|batch:n|check=observed elsewhere|verdict=here|found:%|limit=holds where";
static const char KERNELS[] = "run|system=on|batch:n|name=kernel|count:n=times an iteration|time:s=time of an iteration"
                              "|share:%=of kernel time|flops_rate:M=operations a second|peak_share:%=of the peak";

typedef struct recording {
    bz_trace *t; /* NULL: there is none */
    const char *folder, *run, *size;
} recording;

static int column_of(const bz_sheet *s, const char *key)
{
    for (int k = 0; k < s->n_columns; k++)
        if (!strcmp(s->column[k].key, key))
            return k;
    return -1;
}

static bz_sheet_cell *cell(const bz_sheet *s, int row, const char *key)
{
    return &s->cell[row * s->n_columns + column_of(s, key)];
}

/* Into the last row, columns of the same key. */
static void copy_row(const bz_sheet *from, int row, bz_arena *arena, bz_sheet *to)
{
    for (int k = 0; k < from->n_columns; k++) {
        int at = column_of(to, from->column[k].key);
        bool text = from->column[k].type == BZ_SHEET_TEXT || from->column[k].type == BZ_SHEET_DETAIL;
        bz_sheet_cell v = from->cell[row * from->n_columns + k];
        if (at >= 0)
            to->cell[(to->n - 1) * to->n_columns + at] =
                text ? (bz_sheet_cell){.text = v.text ? bz_arena_str(arena, v.text) : NULL} : v;
    }
}

static const char *told(const bz_trace *t, const char *key, const char *otherwise, bz_arena *arena)
{
    const char *text = bz_trace_told(t, key);
    return text ? bz_arena_str(arena, text) : otherwise;
}

/* The rows of a table of the recording; each begins with who it is of. */
static void add_rows(bz_tables *m, const char *table, const bz_sheet *runs, bz_arena *arena, bz_sheet *out)
{
    const bz_sheet *s = bz_tables_fill(m, bz_table_find(table));
    int which = column_of(s, "recording"), found = column_of(s, "found");
    for (int i = 0; i < s->n; i++) {
        if ((which >= 0 && strcmp(cell(s, i, "recording")->text, "this") != 0) ||
            (found >= 0 && isnan(cell(s, i, "found")->number)))
            continue;
        bz_sheet_cell *row = bz_sheet_row(out);
        row[0] = *cell(runs, runs->n - 1, "run");
        row[1] = *cell(runs, runs->n - 1, "system");
        row[2] = *cell(runs, runs->n - 1, "batch");
        copy_row(s, i, arena, out);
    }
}

/* Units a second of the last row by those of another one. */
static double ratio(const bz_sheet *s, int other)
{
    return cell(s, s->n - 1, "samples")->number / cell(s, other, "samples")->number;
}

static bool same(const bz_sheet *s, int other, const char *key)
{
    const char *a = cell(s, s->n - 1, key)->text, *b = cell(s, other, key)->text;
    return !strcmp(a ? a : "", b ? b : "");
}

static void hold_against_others(bz_sheet *s)
{
    double batch = cell(s, s->n - 1, "batch")->number;
    for (int i = 0, found = 0; i < s->n - 1; i++) {
        if (!same(s, i, "run") || !same(s, i, "size"))
            continue;
        double other = cell(s, i, "batch")->number;
        if (same(s, i, "system") && other < batch)
            cell(s, s->n - 1, "by_batch")->number = ratio(s, i);
        if (!same(s, i, "system") && other == batch && !found++)
            cell(s, s->n - 1, "by_system")->number = ratio(s, i);
    }
}

static void add_recording(recording *r, const recording *before, const char *file, bz_arena *arena,
                          bz_suite_report *out)
{
    bz_error ignored;
    const bz_trace *t = r->t;
    bool smaller = before->t && !strcmp(before->folder, r->folder) && !strcmp(before->run, r->run) &&
                   !strcmp(before->size, r->size);
    bz_tables *m = bz_tables_new(t, NULL, smaller ? before->t : NULL, arena, &ignored);
    const bz_sheet *training = bz_tables_fill(m, bz_table_find("training"));
    bz_sheet *s = out->runs;
    for (int i = 0; i < training->n; i++) {
        if (strcmp(cell(training, i, "recording")->text, "this") != 0)
            continue;
        bz_sheet_row(s);
        copy_row(training, i, arena, s);
        cell(s, s->n - 1, "run")->text = r->run;
        cell(s, s->n - 1, "size")->text = r->size;
        cell(s, s->n - 1, "system")->text = told(t, "gpu", told(t, "cpu", NULL, arena), arena);
        cell(s, s->n - 1, "unit")->text = told(t, "unit", "samples", arena);
        cell(s, s->n - 1, "file")->text = file;
        hold_against_others(s);
    }
    if (training->n) {
        add_rows(m, "training-checks", s, arena, out->checks);
        add_rows(m, "training-kernels", s, arena, out->kernels);
    }
}

static void add_file(const char *path, const char *folder, recording *before, bz_arena *arena, bz_suite_report *out)
{
    const char *name = bz_file_name(path), *dot = strchr(name, '.');
    const char *stem = bz_arena_printf(arena, "%.*s", (int)(dot ? dot - name : (long)strlen(name)), name);
    recording r = {.t = bz_trace_new(), .folder = folder};
    bz_error err;
    int rows = out->runs->n;
    r.t->summary = true;
    bool read = !bz_profile_read(r.t, path, &err) && !bz_trace_finish(r.t, NULL, &err);
    if (read) {
        r.run = told(r.t, "run", stem, arena), r.size = told(r.t, "size", "", arena);
        add_recording(&r, before, path, arena, out);
        bz_trace_free(before->t);
        *before = r;
    } else {
        bz_trace_free(r.t);
    }
    if (out->runs->n > rows)
        return;
    bz_sheet_row(out->runs);
    cell(out->runs, rows, "run")->text = stem;
    cell(out->runs, rows, "file")->text = path;
    cell(out->runs, rows, "failed")->text = read ? "no work in it" : bz_arena_str(arena, err.text);
    out->failed++;
}

/* "a.sqlite.Xy12" is one whose writer was killed. */
static bool is_shown(const char *name)
{
    return name[0] != '.' && !strstr(name, ".sqlite.");
}

/* "b2" before "b16" */
static int by_version(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

int bz_suite_report_make(const char *const *path, int n, bz_arena *arena, bz_suite_report *out, bz_error *err)
{
    recording before = {0};
    *out =
        (bz_suite_report){.runs = bz_sheet_new(arena, "runs", "Training runs", RUNS),
                          .checks = bz_sheet_new(arena, "checks", "What was observed of other training runs", CHECKS),
                          .kernels = bz_sheet_new(arena, "kernels", "Kernels worth optimizing", KERNELS)};
    for (int i = 0; i < n; i++) {
        const char **files;
        int found = bz_folder_list(path[i], is_shown, arena, &files);
        if (found < 0 && errno != ENOTDIR && errno != ENOENT)
            return bz_fail(err, BZ_FAILED, "%s: cannot be read: %s", path[i], strerror(errno));
        if (found < 0)
            add_file(path[i], path[i], &before, arena, out);
        else
            BZ_QSORT(files, found, by_version);
        for (int k = 0; k < found; k++)
            add_file(bz_arena_printf(arena, "%s/%s", path[i], files[k]), path[i], &before, arena, out);
    }
    bz_trace_free(before.t);
    if (out->runs->n && out->failed == out->runs->n)
        return bz_fail(err, BZ_BAD_INPUT, "%s", cell(out->runs, 0, "failed")->text);
    return out->runs->n ? 0 : bz_fail(err, BZ_BAD_INPUT, "%s: has no recordings", path[0]);
}
