/* benanza db ls and db show: what the database knows. */
#include "cli/db.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ls */

static void count_threads(db_count *c, int threads)
{
    int at = c->n_threads;
    for (int i = 0; i < c->n_threads; i++)
        if (c->threads[i] == threads)
            return;
    if (at == DB_MOST_THREADS)
        return;
    for (c->n_threads++; at && c->threads[at - 1] > threads; at--)
        c->threads[at] = c->threads[at - 1];
    c->threads[at] = threads;
}

static int count_newest(void *user, const bz_record *r)
{
    db_count *c = user;
    c->variants++;
    c->ok += r->status == BZ_RECORD_OK;
    c->from[r->provenance] = true;
    count_threads(c, r->setting.threads);
    if (r->date > c->newest)
        c->newest = r->date;
    if (!c->problem || strcmp(c->problem, r->problem) != 0) {
        free(c->problem);
        c->problem = strdup(r->problem);
        c->problems++;
    }
    return 0;
}

static int count_record(void *user, const bz_record *r)
{
    (void)r;
    ((db_count *)user)->records++;
    return 0;
}

int db_count_system(bz_perfdb *db, const bz_system *system, db_count *c, bz_error *err)
{
    *c = (db_count){0};
    bz_perfdb_filter f = {.system = system};
    int rc = bz_perfdb_scan(db, &f, count_newest, c, err);
    f.history = true;
    if (!rc)
        rc = bz_perfdb_scan(db, &f, count_record, c, err);
    free(c->problem);
    c->problem = NULL;
    return rc;
}

const char *db_count_provenance(const db_count *c, bz_arena *arena)
{
    const char *text = "";
    for (int p = 0; p <= BZ_PROVENANCE_IMPORTED; p++)
        if (c->from[p])
            text = bz_arena_printf(arena, "%s%s%s", text, *text ? ", " : "",
                                   bz_record_provenance_name((bz_record_provenance)p));
    return text;
}

void db_count_json(bz_json *j, const db_count *c)
{
    bz_json_key_int(j, "problems", (int64_t)c->problems);
    bz_json_key_int(j, "variants", (int64_t)c->variants);
    bz_json_key_int(j, "ok", (int64_t)c->ok);
    bz_json_key_int(j, "records", (int64_t)c->records);
    bz_json_key_int(j, "newest", c->newest);
    bz_json_key(j, "provenance");
    bz_json_array(j);
    for (int p = 0; p <= BZ_PROVENANCE_IMPORTED; p++)
        if (c->from[p])
            bz_json_str(j, bz_record_provenance_name((bz_record_provenance)p));
    bz_json_array_end(j);
}

static void ls_json(bz_json *j, const bz_system *s, const db_count *c)
{
    bz_json_object(j);
    bz_json_key_str(j, "system", s->name);
    db_count_json(j, c);
    bz_json_key(j, "details");
    bz_json_raw(j, s->details);
    bz_json_object_end(j);
}

static void ls_row(bz_table *t, const bz_system *s, const db_count *c, bz_arena *arena)
{
    char text[32], seconds[32];
    snprintf(seconds, sizeof seconds, "%lld", (long long)c->newest);
    bz_table_cell(t, s->name, NULL);
    bz_table_count(t, (int64_t)c->problems);
    bz_table_count(t, (int64_t)c->variants);
    bz_table_count(t, (int64_t)c->ok);
    bz_table_count(t, (int64_t)c->records);
    bz_table_cell(t, bz_db_day(text, c->newest), seconds);
    bz_table_cell(t, db_count_provenance(c, arena), NULL);
}

static int print_systems(bz_perfdb *db, bool json, bool csv, bz_buf *out, bz_error *err)
{
    bz_arena arena = {0};
    const bz_system **list;
    size_t n;
    int rc = bz_perfdb_systems(db, &arena, &list, &n, err);
    bz_table *t = bz_table_new(&arena);
    bz_json j = bz_json_to(out, true);
    j.flat = 3;
    static const char *const TITLES[] = {"system", "problems", "variants", "ok", "records", "newest", "provenance"};
    for (int i = 0; i < 7; i++)
        bz_table_column(t, TITLES[i], i >= 1 && i <= 4 ? BZ_RIGHT : BZ_LEFT);
    if (json) {
        bz_json_document(&j, "database", 1);
        bz_json_key_str(&j, "folder", bz_perfdb_dir(db));
        bz_json_key(&j, "systems");
        bz_json_array(&j);
    }
    for (size_t i = 0; i < n && !rc; i++) {
        db_count c;
        rc = db_count_system(db, list[i], &c, err);
        if (json)
            ls_json(&j, list[i], &c);
        else
            ls_row(t, list[i], &c, &arena);
    }
    if (json) {
        bz_json_array_end(&j);
        bz_json_object_end(&j);
        bz_buf_putc(out, '\n');
    } else if (csv) {
        bz_table_csv(t, out);
    } else {
        bz_buf_printf(out, "%zu system%s in %s\n", n, n == 1 ? "" : "s", bz_perfdb_dir(db));
        if (n)
            bz_table_print(t, out);
    }
    bz_arena_free(&arena);
    return rc;
}

static int run_ls(int argc, char **argv);
const bz_command bz_command_db_ls = {"db ls", "[OPTIONS]", "list the systems that the database knows", run_ls};

static int run_ls(int argc, char **argv)
{
    const char *dir = NULL;
    bool json = false, csv = false;
    const bz_option options[] = {{"db", BZ_OPTION_TEXT, &dir, "DIR", DB_HELP},
                                 {"json", BZ_OPTION_FLAG, &json, NULL, "print JSON, for programs"},
                                 {"csv", BZ_OPTION_FLAG, &csv, NULL, "print comma-separated values"},
                                 {0}};
    bz_list arguments = {0};
    int status;
    if (bz_db_parse(&bz_command_db_ls, options, argc, argv, &arguments, 0, 0, &status))
        return status;
    bz_perfdb *db = NULL;
    bz_buf out = {0};
    bz_error err;
    int rc = bz_db_open(&bz_command_db_ls, dir, true, &db, &err);
    if (!rc)
        rc = print_systems(db, json, csv, &out, &err);
    status = bz_db_finish(&bz_command_db_ls, rc, &out, &err);
    bz_perfdb_close(db);
    bz_buf_free(&out);
    return status;
}

/* show */

typedef struct {
    const bz_list *words;
    const char *backend;
    bool failed; /* show records that are not ok */
    bz_arena arena;
    bz_record *list;
    size_t n, cap;
} selection;

static int select_record(void *user, const bz_record *r)
{
    selection *s = user;
    if ((s->backend && strcmp(s->backend, r->variant.backend) != 0) || (!s->failed && r->status != BZ_RECORD_OK))
        return 0;
    for (int i = 0; i < s->words->n; i++)
        if (!strstr(r->problem, s->words->item[i]))
            return 0;
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 256;
        s->list = bz_realloc(s->list, s->cap, sizeof *s->list);
    }
    bz_record *copy = &s->list[s->n++];
    *copy = *r;
    const char **string[] = {&copy->problem,        &copy->variant.backend, &copy->variant.algorithm,
                             &copy->variant.layout, &copy->variant.math,    &copy->setting.clock,
                             &copy->reason,         &copy->checked,         &copy->meta};
    for (size_t i = 0; i < sizeof string / sizeof *string; i++)
        *string[i] = bz_arena_str(&s->arena, *string[i]);
    return 0;
}

/* By problem, then system, then the fastest first; what failed comes last. */
static int by_problem_and_time(const void *a, const void *b)
{
    const bz_record *x = a, *y = b;
    int order = strcmp(x->problem, y->problem);
    if (!order)
        order = bz_system_compare(x->system, y->system);
    bool ok_x = x->status == BZ_RECORD_OK, ok_y = y->status == BZ_RECORD_OK;
    if (!order && ok_x != ok_y)
        order = ok_x ? -1 : 1;
    if (!order && ok_x && x->median != y->median)
        order = x->median < y->median ? -1 : 1;
    if (!order)
        order = strcmp(x->variant.algorithm, y->variant.algorithm);
    return order ? order : x->date > y->date ? -1 : x->date < y->date;
}

static void time_cell(bz_table *t, double seconds)
{
    bz_unit_text text;
    char plain[32];
    snprintf(plain, sizeof plain, "%.9g", seconds);
    if (isnan(seconds))
        bz_table_cell(t, "", NULL);
    else
        bz_table_cell(t, bz_units_time(text, seconds), plain);
}

static void show_row(bz_table *t, const bz_record *r)
{
    char text[64], seconds[32];
    bz_table_cell(t, r->variant.backend, NULL);
    bz_table_cell(t, r->variant.algorithm, NULL);
    bz_table_cell(t, r->variant.layout, NULL);
    bz_table_cell(t, r->variant.math, NULL);
    bz_table_int(t, r->setting.threads);
    bz_table_cell(t, bz_record_cache_name(r->setting.cache), NULL);
    time_cell(t, r->median);
    time_cell(t, r->low);
    time_cell(t, r->high);
    bz_table_int(t, r->n);
    snprintf(text, sizeof text, "%s%s%s%s%s", bz_record_status_name(r->status),
             r->chosen            ? " chosen"
             : r->chosen_training ? " chosen in training"
                                  : "",
             r->noisy ? " noisy" : "", r->throttled ? " throttled" : "", r->busy ? " busy" : "");
    bz_table_cell(t, text, NULL);
    snprintf(text, sizeof text, "%s %s", bz_record_provenance_name(r->provenance), bz_record_timing_name(r->timing));
    bz_table_cell(t, text, NULL);
    snprintf(seconds, sizeof seconds, "%lld", (long long)r->date);
    bz_table_cell(t, bz_db_day(text, r->date), seconds);
    bz_table_cell(t, r->reason, NULL);
}

static const char *const SHOW_TITLES[] = {"backend", "algorithm", "layout", "math",   "threads", "cache", "median",
                                          "low",     "high",      "n",      "status", "source",  "date",  "reason"};

static bz_table *show_table(bz_arena *arena, bool csv)
{
    bz_table *t = bz_table_new(arena);
    if (csv) {
        bz_table_column(t, "system", BZ_LEFT);
        bz_table_column(t, "problem", BZ_LEFT);
    }
    for (int i = 0; i < (int)(sizeof SHOW_TITLES / sizeof *SHOW_TITLES); i++)
        bz_table_column(t, SHOW_TITLES[i], i == 4 || (i >= 6 && i <= 9) ? BZ_RIGHT : BZ_LEFT);
    return t;
}

static void show_for_people(const selection *s, const char *dir, bz_buf *out)
{
    bz_arena arena = {0};
    size_t problems = 0;
    for (size_t i = 0; i < s->n; i++)
        problems += i == 0 || strcmp(s->list[i].problem, s->list[i - 1].problem) != 0;
    bz_buf_printf(out, "%zu record%s of %zu problem%s in %s\n", s->n, s->n == 1 ? "" : "s", problems,
                  problems == 1 ? "" : "s", dir);
    for (size_t i = 0, end; i < s->n; i = end) {
        const bz_record *first = &s->list[i];
        bz_table *t = show_table(&arena, false);
        for (end = i;
             end < s->n && !strcmp(s->list[end].problem, first->problem) && !strcmp(s->list[end].system, first->system);
             end++)
            show_row(t, &s->list[end]);
        bz_buf_putc(out, '\n');
        bz_buf_clean(out, first->problem);
        bz_buf_printf(out, "\non %s\n", first->system);
        bz_table_print(t, out);
    }
    bz_arena_free(&arena);
}

static void show_for_programs(const selection *s, bool json, bz_buf *out)
{
    if (json) {
        bz_json j = bz_json_to(out, true);
        j.flat = 3;
        bz_json_document(&j, "records", 1);
        bz_json_key(&j, "records");
        bz_json_array(&j);
        for (size_t i = 0; i < s->n; i++)
            bz_record_json(&j, &s->list[i]);
        bz_json_array_end(&j);
        bz_json_object_end(&j);
        bz_buf_putc(out, '\n');
        return;
    }
    bz_arena arena = {0};
    bz_table *t = show_table(&arena, true);
    for (size_t i = 0; i < s->n; i++) {
        bz_table_cell(t, s->list[i].system, NULL);
        bz_table_cell(t, s->list[i].problem, NULL);
        show_row(t, &s->list[i]);
    }
    bz_table_csv(t, out);
    bz_arena_free(&arena);
}

static int run_show(int argc, char **argv);
const bz_command bz_command_db_show = {"db show", "[OPTIONS] [WORD...]",
                                       "show the records of problems that contain all the words, fastest first",
                                       run_show};

static int run_show(int argc, char **argv)
{
    const char *dir = NULL, *system = NULL;
    bool json = false, csv = false;
    bz_list words = {0};
    bz_perfdb_filter filter = {0};
    selection s = {.words = &words};
    const bz_option options[] = {
        {"db", BZ_OPTION_TEXT, &dir, "DIR", DB_HELP},
        {"system", BZ_OPTION_TEXT, &system, "NAME",
         "only this system; a name without @ means its newest library version"},
        {"dtype", BZ_OPTION_TEXT, &filter.dtype, "TYPE", "only problems of this data type"},
        {"backend", BZ_OPTION_TEXT, &s.backend, "NAME", "only this backend"},
        {"history", BZ_OPTION_FLAG, &filter.history, NULL, "show every measurement, not only the newest"},
        {"failed", BZ_OPTION_FLAG, &s.failed, NULL, "also show what failed or was not supported"},
        {"json", BZ_OPTION_FLAG, &json, NULL, "print JSON, for programs"},
        {"csv", BZ_OPTION_FLAG, &csv, NULL, "print comma-separated values"},
        {0},
    };
    int status;
    if (bz_db_parse(&bz_command_db_show, options, argc, argv, &words, 0, 1000, &status))
        return status;
    bz_perfdb *db = NULL;
    bz_buf out = {0};
    bz_error err;
    int rc = bz_db_open(&bz_command_db_show, dir, true, &db, &err);
    if (!rc)
        rc = bz_perfdb_known(db, system, &filter.system, &err);
    if (!rc)
        rc = bz_perfdb_scan(db, &filter, select_record, &s, &err);
    if (!rc && s.n)
        qsort(s.list, s.n, sizeof *s.list, by_problem_and_time);
    if (!rc && (json || csv))
        show_for_programs(&s, json, &out);
    else if (!rc)
        show_for_people(&s, bz_perfdb_dir(db), &out);
    status = bz_db_finish(&bz_command_db_show, rc, &out, &err);
    bz_perfdb_close(db);
    bz_buf_free(&out);
    bz_arena_free(&s.arena);
    free(s.list);
    bz_list_free(&words);
    return status;
}
