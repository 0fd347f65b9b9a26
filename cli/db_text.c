/* benanza db export, db import and db merge. */
#include "cli/db.h"
#include "predict/published.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* export */

typedef struct export_job {
    bz_job job;
    const char *path, *system;
    bz_perfdb_filter filter;
    bool newest;
} export_job;

static const bz_option EXPORT[] = {
    BZ_DB_OPTION,
    BZ_VALUE("o|output", export_job, path, "FILE", "write to FILE; a name that ends in .zst is compressed"),
    BZ_VALUE("system", export_job, system, "NAME",
             "only this system; a name without @ means its newest library version"),
    BZ_VALUE("dtype", export_job, filter.dtype, "TYPE", "only problems of this data type"),
    BZ_FLAG("newest", export_job, newest, "write only the newest measurement of each"),
    {0},
};

/* To a terminal the lines themselves show how far it is. */
static void hold_progress(const char *path)
{
    if (!path && isatty(STDOUT_FILENO))
        bz_progress_hold(true);
}

static int export(void *job, bz_buf *out, bz_error *err)
{
    export_job *j = job;
    bz_perfdb *db;
    size_t n = 0;
    (void)out;
    if (bz_job_takes(&j->job, 0, 0, err) || bz_db_open(&j->job, true, &db, err) ||
        bz_perfdb_known(db, j->system, &j->filter.system, err))
        return -1;
    j->filter.history = !j->newest;
    hold_progress(j->path);
    int rc = j->path ? bz_perfdb_export_file(db, &j->filter, j->path, &n, err)
                     : bz_perfdb_export(db, &j->filter, STDOUT_FILENO, false, &n, err);
    bz_progress_hold(true);
    if (!rc && j->path)
        fprintf(stderr, "%zu record%s written to %s\n", n, n == 1 ? "" : "s", j->path);
    return rc;
}

const bz_command bz_command_db_export =
    BZ_COMMAND("db export", "[OPTIONS]", "write systems and records as JSON lines", EXPORT, export_job, export);

/* salvage */

typedef struct salvage_job {
    bz_job job;
    const char *path;
} salvage_job;

static const bz_option SALVAGE[] = {
    BZ_DB_OPTION,
    BZ_VALUE("o|output", salvage_job, path, "FILE", "write there; with .zst at the end, packed"),
    {0},
};

static int salvage(void *job, bz_buf *out, bz_error *err)
{
    salvage_job *j = job;
    bz_perfdb_salvage_report report;
    BZ_SCOPED(bz_buf) told = {0};
    (void)out;
    if (bz_job_takes(&j->job, 0, 0, err))
        return -1;
    BZ_FREED char *where = bz_perfdb_where(j->job.db);
    hold_progress(j->path);
    int rc = j->path ? bz_perfdb_salvage_file(where, j->path, &report, err)
                     : bz_perfdb_salvage(where, STDOUT_FILENO, false, &report, err);
    if (rc)
        return -1;
    bz_progress_hold(true);
    bz_report_salvage(&report, &told);
    fputs(bz_buf_text(&told), stderr);
    j->job.status = bz_perfdb_salvaged_all(&report) ? BZ_OK : BZ_INCOMPLETE;
    return 0;
}

const bz_command bz_command_db_salvage = BZ_COMMAND(
    "db salvage", "[OPTIONS]",
    "write every intact system and record of a damaged database as JSON lines\n'benanza db import --db NEW FILE' makes "
    "a new database of these lines. The damaged one is not changed;\nno process should write to it meanwhile.",
    SALVAGE, salvage_job, salvage);

/* import and merge */

typedef struct import_job {
    bz_job job;
    const char *system, *reference, *models;
} import_job;

/* A failure comes before that of its output. */
static int put_out(bz_buf *out, int rc, bz_error *err)
{
    bz_error unsaid;
    if (out->len && bz_output(NULL, out, rc ? &unsaid : err))
        rc = -1;
    bz_progress_hold(false); /* the next source has one */
    bz_buf_clear(out);
    return rc;
}

/* Whether a source can be read a second time: what came through a pipe is gone. */
static bool can_return(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && !stat(path, &st) && S_ISREG(st.st_mode);
}

static int take_source(import_job *job, bz_perfdb *db, const char *from, bz_perfdb_import_report *r, bz_error *err)
{
    if (job->models && bz_published_is(from))
        return bz_published_import(db, from, job->models, job->system, r, err);
    int rc = job->system ? bz_perfdb_import(db, from, job->system, r, err) : bz_perfdb_take(db, from, r, err);
    if (rc && can_return(from) && bz_published_is(from))
        return bz_fail(err, BZ_USAGE, "%s: is a table of times per layer: name the folder of its models with --models",
                       from);
    return rc;
}

/* Both commands: one source after the other; what went in before a failure stays. For people each source's line is printed when
 * it is in, so that who is stopped between two sources has told what is in the database by then. A file of counters whose records may be in a
 * later source waits: it is read again behind all others. */
static int take_in(import_job *job, const bz_list *from, bz_error *err)
{
    bz_perfdb *db;
    BZ_SCOPED(bz_buf) out = {0};
    bz_json j = bz_json_to(&out, true);
    bz_list all = {0};
    size_t bad = 0;
    int rc = bz_db_open(&job->job, false, &db, err);
    j.flat = 3;
    if (job->job.json) {
        bz_json_document(&j, "import", 1);
        bz_json_key_array(&j, "sources");
    }
    for (int i = 0; i < from->n; i++)
        bz_list_add(&job->job.arena, &all, from->item[i]);
    for (int i = 0; i < all.n && !rc; i++) {
        bz_perfdb_import_report r = {0};
        const char *path = all.item[i];
        rc = take_source(job, db, path, &r, err);
        if (!rc && r.uncounted && i + 1 < from->n && can_return(path)) {
            bz_list_add(&job->job.arena, &all, path);
            continue;
        }
        if (job->job.json && (!rc || r.count.added))
            bz_report_import_json(path, &r, &j);
        else if (!rc || r.count.added)
            bz_report_import_text(path, &r, &out);
        rc = job->job.json ? rc : put_out(&out, rc, err);
        bad += r.bad;
    }
    if (job->job.json) {
        bz_json_array_end(&j);
        bz_json_document_end(&j);
    }
    rc = put_out(&out, rc, err);
    job->job.status = bad ? BZ_INCOMPLETE : BZ_OK;
    return rc;
}

static const bz_option IMPORT[] = {
    BZ_DB_OPTION,
    BZ_VALUE("system", import_job, system, "NAME", "give records that name no system this one"),
    BZ_VALUE("reference", import_job, reference, "NAME",
             "read records that come with benanza: those of the machine NAME"),
    BZ_VALUE("models", import_job, models, "DIR",
             "tables of times per layer (batch, model, layer, type, ms) are of the models in this folder"),
    BZ_JSON_OPTION,
    {0},
};

static int import(void *job, bz_buf *out, bz_error *err)
{
    import_job *j = job;
    char path[3400];
    bz_list all = {0};
    (void)out;
    if (bz_job_takes(&j->job, !j->reference, 100000, err) ||
        (j->reference && bz_perfdb_reference(j->reference, path, sizeof path, err)))
        return -1;
    if (j->reference)
        bz_list_add(&j->job.arena, &all, path);
    for (int i = 0; i < j->job.arguments.n; i++)
        bz_list_add(&j->job.arena, &all, j->job.arguments.item[i]);
    return take_in(j, &all, err);
}

const bz_command bz_command_db_import = BZ_COMMAND(
    "db import", "[OPTIONS] FILE...",
    "add records from text files\nThe files hold JSON lines, or the original tool's Google Benchmark JSON; plain, zstd "
    "or gzip.\n'-' is standard input. With --reference, records that come with benanza are added.",
    IMPORT, import_job, import);

static const bz_option MERGE[] = {BZ_DB_OPTION, BZ_JSON_OPTION, {0}};

static int merge(void *job, bz_buf *out, bz_error *err)
{
    import_job *j = job;
    (void)out;
    return bz_job_takes(&j->job, 1, 100000, err) || take_in(j, &j->job.arguments, err) ? -1 : 0;
}

const bz_command bz_command_db_merge =
    BZ_COMMAND("db merge", "[OPTIONS] SOURCE...",
               "add what other databases or exports have\nFolders are databases, files are exports. Of two versions of "
               "one measurement one stays: measured before\nimported before modelled, then ok before failed, then more "
               "samples, then the narrower interval.",
               MERGE, import_job, merge);
