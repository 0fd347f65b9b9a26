/* benanza system: what this machine is, and which systems the database knows. The libraries that know the machine live
 * in the program benanza-bench, which is run for it: benanza itself stays light. */
#include "bench/bench.h"
#include "cli/db.h"
#include "cli/planning.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct system_job {
    const char *dir, *wait;
    bool json, measure;
    int64_t threads;
    char *where;
    bz_perfdb *db; /* NULL: there is none yet */
    bz_arena arena;
    bz_line here[2]; /* this machine: the processor, and the GPU if there is one */
    int n_here;
} system_job;

static int look_here(system_job *s, bz_error *err)
{
    bz_error none;
    if (bz_bench_look(NULL, &s->arena, &s->here[0], err))
        return -1;
    s->n_here = 1;
    if (!bz_bench_look(bz_backend_of_device(), &s->arena, &s->here[1], &none))
        s->n_here = 2;
    return 0;
}

/* Only measuring writes: where there is no database, looking makes none. */
static int open_db(system_job *s, bz_error *err)
{
    s->where = bz_perfdb_where(s->dir);
    if (!s->measure && access(bz_arena_printf(&s->arena, "%s/data.mdb", s->where), F_OK))
        return 0;
    return bz_db_open(&bz_command_system, s->dir, !s->measure, &s->db, err);
}

/* The line of this machine that is the system's; NULL where it is another one. */
static const bz_line *find_here(const system_job *s, const char *name)
{
    for (int i = 0; i < s->n_here; i++)
        if (!strcmp(s->here[i].system, name))
            return &s->here[i];
    return NULL;
}

/* What the database knows comes with the peaks; it may know the name alone. */
static const char *pick_details(const bz_system *known, const bz_line *here)
{
    return here && (!known || !strcmp(known->details, "{}")) ? here->details : known->details;
}

static int find_details(const system_job *s, int i, const char **details, bz_error *err)
{
    const bz_system *known = NULL;
    if (s->db && bz_perfdb_system(s->db, s->here[i].system, &known, err))
        return -1;
    *details = pick_details(known, &s->here[i]);
    return 0;
}

/* ---- one known system ----------------------------------------------------------------------- */

typedef struct known {
    const bz_system *system;
    const char *details;
    bool here;
    db_count count;
    const bz_system_facts *facts;
    const char *peaks; /* "measured", "data sheet", NULL */
    int threads[BZ_MEASURED];
} known;

static void read_details(known *k, bz_arena *arena)
{
    bz_peaks peaks;
    k->facts = bz_system_facts_read(k->details, arena);
    for (int i = 0; i < k->facts->n_measured; i++)
        k->threads[i] = k->facts->measured[i].threads;
    bz_peaks_read(k->facts, &(bz_setting){k->facts->n_measured ? k->threads[0] : 1, BZ_CACHE_HOT, ""}, arena, &peaks);
    k->peaks = k->facts->n_measured ? "measured" : peaks.why ? NULL : peaks.source;
}

static void put_threads(bz_json *j, const int *threads, int n)
{
    bz_json_key(j, "threads");
    bz_json_array(j);
    for (int i = 0; i < n; i++)
        bz_json_int(j, threads[i]);
    bz_json_array_end(j);
}

static void known_json(bz_json *j, const known *k, bz_arena *arena)
{
    const char *name = k->system->name, *at = strchr(name, '@');
    bz_json_object(j);
    bz_json_key_str(j, "system", name);
    bz_json_key_str(j, "slug", at ? bz_arena_strn(arena, name, (size_t)(at - name)) : name);
    bz_json_key_str(j, "stack", at ? at + 1 : "");
    bz_json_key_bool(j, "here", k->here);
    bz_json_key_str(j, "device", *k->facts->device ? k->facts->device : NULL);
    bz_json_key_str(j, "name", *k->facts->name ? k->facts->name : NULL);
    db_count_json(j, &k->count);
    put_threads(j, k->count.threads, k->count.n_threads);
    bz_json_key(j, "peaks");
    if (k->peaks) {
        bz_json_object(j);
        bz_json_key_str(j, "source", k->peaks);
        put_threads(j, k->threads, k->facts->n_measured);
        bz_json_object_end(j);
    } else {
        bz_json_null(j);
    }
    bz_json_key_int(j, "date", k->system->date);
    bz_json_key(j, "details");
    bz_json_raw(j, k->details);
    bz_json_object_end(j);
}

/* "1, 2, 4" */
static const char *threads_text(const int *threads, int n, bz_arena *arena)
{
    const char *text = "";
    for (int i = 0; i < n; i++)
        text = bz_arena_printf(arena, "%s%s%d", text, i ? ", " : "", threads[i]);
    return text;
}

static const char *const TITLES[] = {"system", "here", "device", "records", "threads", "newest", "provenance", "peaks"};
enum { N_TITLES = sizeof TITLES / sizeof *TITLES, RECORDS = 3 };

static void known_row(bz_table *t, const known *k, bz_arena *arena)
{
    char day[32];
    const char *peaks = k->peaks ? k->peaks : "none";
    if (k->facts->n_measured)
        peaks =
            bz_arena_printf(arena, "measured with %s thread%s", threads_text(k->threads, k->facts->n_measured, arena),
                            k->facts->n_measured == 1 && k->threads[0] == 1 ? "" : "s");
    bz_table_cell(t, k->system->name, NULL);
    bz_table_cell(t, k->here ? "yes" : "", NULL);
    bz_table_cell(t, *k->facts->name ? k->facts->name : k->facts->device, NULL);
    bz_table_count(t, (int64_t)k->count.records);
    bz_table_cell(t, threads_text(k->count.threads, k->count.n_threads, arena), NULL);
    bz_table_cell(t, bz_db_day(day, k->count.newest), NULL);
    bz_table_cell(t, db_count_provenance(&k->count, arena), NULL);
    bz_table_cell(t, peaks, NULL);
}

/* Adds the systems of the database, if there is one: as members of the JSON, or as rows of the table. */
static int add_known(system_job *s, bz_json *j, bz_table *t, size_t *n, bz_error *err)
{
    const bz_system **list;
    *n = 0;
    if (!s->db || bz_perfdb_systems(s->db, &s->arena, &list, n, err))
        return s->db ? -1 : 0;
    for (size_t i = 0; i < *n; i++) {
        const bz_line *here = find_here(s, list[i]->name);
        known k = {.system = list[i], .here = here != NULL, .details = pick_details(list[i], here)};
        if (db_count_system(s->db, list[i], &k.count, err))
            return -1;
        read_details(&k, &s->arena);
        if (j)
            known_json(j, &k, &s->arena);
        else
            known_row(t, &k, &s->arena);
    }
    return 0;
}

/* ---- output --------------------------------------------------------------------------------- */

static int print_json(system_job *s, bz_buf *out, bz_error *err)
{
    size_t n;
    bz_json j = bz_json_to(out, true);
    j.flat = 3;
    bz_json_document(&j, "systems", 1);
    bz_json_key(&j, "here");
    bz_json_array(&j);
    for (int i = 0; i < s->n_here; i++) {
        const char *details;
        if (find_details(s, i, &details, err))
            return -1;
        bz_json_object(&j);
        bz_json_key_str(&j, "system", s->here[i].system);
        bz_json_key(&j, "details");
        bz_json_raw(&j, details);
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_json_key_str(&j, "database", s->db ? s->where : NULL);
    bz_json_key(&j, "systems");
    bz_json_array(&j);
    if (add_known(s, &j, NULL, &n, err))
        return -1;
    bz_json_array_end(&j);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
    return 0;
}

static int print_text(system_job *s, bz_buf *out, bz_error *err)
{
    size_t n;
    const char *details;
    bz_table *t = bz_table_new(&s->arena);
    if (find_details(s, 0, &details, err) || bz_bench_text(out, err))
        return -1;
    const bz_system_facts *facts = bz_system_facts_read(details, &s->arena);
    for (int i = 0; i < facts->n_measured; i++)
        bz_measured_print(&facts->measured[i], out);
    if (!facts->n_measured)
        bz_buf_puts(out, "peaks         not measured: 'benanza system --measure' does, and stores them\n");
    for (int i = 0; i < N_TITLES; i++)
        bz_table_column(t, TITLES[i], i == RECORDS ? BZ_RIGHT : BZ_LEFT);
    if (add_known(s, NULL, t, &n, err))
        return -1;
    bz_buf_puts(out, s->db ? "\n" : "\nno database in ");
    if (s->db)
        bz_buf_printf(out, "%zu system%s known in ", n, n == 1 ? "" : "s");
    bz_buf_clean(out, s->where);
    bz_buf_puts(out, s->db ? "\n" : " yet: 'benanza bound MODEL' and 'benanza db import FILE' make one\n");
    if (n)
        bz_table_print(t, out);
    return 0;
}

static int report(system_job *s, bz_buf *out, bz_error *err)
{
    const bz_system *system;
    if (s->threads > 4096)
        return bz_fail(err, BZ_USAGE, "--threads takes a number up to 4096, not %lld", (long long)s->threads);
    if (!s->measure && (s->wait || s->threads))
        return bz_fail(err, BZ_USAGE, "--%s is for measuring: it goes with --measure", s->wait ? "wait" : "threads");
    if (planning_seconds("wait", s->wait, true, err) || open_db(s, err) ||
        (s->measure && bz_bench_measure(s->db, (int)s->threads, s->wait, &system, err)) || look_here(s, err))
        return -1;
    return (s->json ? print_json : print_text)(s, out, err);
}

static int run(int argc, char **argv)
{
    system_job s = {0};
    const bz_option options[] = {
        {"measure", BZ_OPTION_FLAG, &s.measure, NULL,
         "measure the highest rates, the bandwidths and the cost of an empty call, and store them"},
        {"threads", BZ_OPTION_COUNT, &s.threads, "N", "measure with N threads (1)"},
        PLANNING_WAIT_OPTION(s.wait),
        {"json", BZ_OPTION_FLAG, &s.json, NULL, "print JSON, for programs"},
        {"db", BZ_OPTION_TEXT, &s.dir, "DIR", DB_HELP},
        {0},
    };
    bz_error err = {0};
    bz_list arguments = {0};
    bz_buf out = {0};
    int parsed = bz_options_parse(&bz_command_system, options, argc, argv, &arguments, &err), status = BZ_OK;
    if (!parsed && arguments.n)
        parsed = bz_fail(&err, BZ_USAGE, "takes no arguments, not '%s'", arguments.item[0]);
    if (parsed < 0 || (!parsed && (report(&s, &out, &err) || bz_output(NULL, &out, &err))))
        status = bz_report(&bz_command_system, &err);
    bz_perfdb_close(s.db);
    bz_list_free(&arguments);
    bz_buf_free(&out);
    bz_arena_free(&s.arena);
    free(s.where);
    return status;
}

const bz_command bz_command_system = {"system", "[OPTIONS]",
                                      "say what this machine is, and which systems the database knows", run};
