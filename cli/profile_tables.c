/* benanza profile tables: what recordings tell by themselves, a table for each question. */
#include "cli/profile.h"
#include "report/report.h"

#include <string.h>

static int find_table(const char *name, const bz_table_kind **kind, bz_error *err)
{
    enum { MOST = 64 };
    const char *names[MOST];
    int n = bz_n_tables < MOST ? bz_n_tables : MOST;
    *kind = bz_table_find(name);
    for (int i = 0; i < n; i++)
        names[i] = bz_table_list[i].name;
    return *kind ? 0 : bz_choice_fail(err, "--table", name, names, n);
}

static void print(bz_tables *m, const profile_job *p, const bz_table_kind *kind, const char *file, bz_buf *out)
{
    enum { OVERVIEW = 4, ONE = 40 };
    if (p->job.json)
        bz_report_tables_json(m, kind, file, out);
    else if (p->job.csv)
        bz_report_tables_csv(m, kind, out);
    else if (kind)
        bz_report_tables_text(m, kind, p->top >= 0 ? (int)p->top : ONE, out);
    else
        bz_report_tables_overview(m, p->top >= 0 ? (int)p->top : OVERVIEW, out);
}

int profile_tables(profile_job *p, bz_buf *out, bz_error *err)
{
    const bz_list *files = &p->job.arguments;
    const bz_table_kind *kind = NULL;
    bz_trace *t = bz_job_trace(&p->job), *other = p->against ? bz_job_trace(&p->job) : NULL;
    if (p->table && !strcmp(p->table, "help")) {
        (p->job.json ? bz_report_tables_names_json : bz_report_tables_names)(out);
        return 0;
    }
    if (p->table && find_table(p->table, &kind, err))
        return -1;
    if (files->n < 2)
        return bz_fail(err, BZ_USAGE, "no file given: benanza profile tables FILE...");
    if (p->job.csv && !kind)
        return bz_fail(err, BZ_USAGE, "--csv prints one table: name it with --table, or take --json");
    profile_return_memory(1 << 20); /* tables take many more arrays, some at once */
    t->summary = true;
    if (other)
        other->summary = true;
    if (bz_trace_read(t, files->item + 1, files->n - 1, p->iterations, err) ||
        (other && bz_trace_read(other, &p->against, 1, p->iterations, err)))
        return -1;
    bz_tables *m = bz_tables_new(t, p->range, other, &p->job.arena, err);
    if (!m)
        return -1;
    print(m, p, kind, files->item[1], out);
    bz_job_cut(&p->job, t);
    if (other)
        bz_job_cut(&p->job, other);
    return 0;
}
