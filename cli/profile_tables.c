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

static int read_all(bz_trace *t, const char *const *file, int n, const char *iterations, bz_error *err)
{
    t->summary = true;
    for (int i = 0; i < n; i++)
        if (bz_profile_read(t, file[i], err))
            return -1;
    return bz_trace_finish(t, &(bz_finish_options){.iterations = iterations}, err);
}

static void print(bz_tables *m, const profile_tables *p, const bz_table_kind *kind, const char *file, bz_buf *out)
{
    enum { OVERVIEW = 4, ONE = 40 };
    if (p->json)
        bz_report_tables_json(m, kind, file, out);
    else if (p->csv)
        bz_report_tables_csv(m, kind, out);
    else if (kind)
        bz_report_tables_text(m, kind, p->top ? (int)p->top : ONE, out);
    else
        bz_report_tables_overview(m, p->top ? (int)p->top : OVERVIEW, out);
}

int profile_tables_run(const bz_list *files, const profile_tables *p)
{
    bz_error err = {0};
    bz_buf out = {0};
    bz_arena arena = {0};
    const bz_table_kind *kind = NULL;
    bz_trace *t = bz_trace_new(), *other = p->against ? bz_trace_new() : NULL;
    int status = BZ_OK;
    bool help = p->table && !strcmp(p->table, "help");
    if (help && p->json)
        bz_report_tables_names_json(&out);
    else if (help)
        bz_report_tables_names(&out);
    if (help)
        goto print;
    if (p->table && find_table(p->table, &kind, &err))
        goto failed;
    if (files->n < 2) {
        bz_fail(&err, BZ_USAGE, "no file given: benanza profile tables FILE...");
        goto failed;
    }
    if (p->csv && !kind) {
        bz_fail(&err, BZ_USAGE, "--csv prints one table: name it with --table, or take --json");
        goto failed;
    }
    if (read_all(t, files->item + 1, files->n - 1, p->iterations, &err) ||
        (other && read_all(other, &p->against, 1, p->iterations, &err)))
        goto failed;
    bz_tables *m = bz_tables_new(t, p->range, other, &arena, &err);
    if (!m)
        goto failed;
    print(m, p, kind, files->item[1], &out);
    for (uint32_t i = 0; i < t->n_sources; i++)
        if (t->source[i].truncated)
            status = BZ_INCOMPLETE;
print:
    if (!bz_output(NULL, &out, &err))
        goto done;
failed:
    status = bz_report(&bz_command_profile, &err);
done:
    bz_arena_free(&arena);
    bz_trace_free(t);
    bz_trace_free(other);
    bz_buf_free(&out);
    return status;
}
