/* What a database has: its systems, and records. */
#include "base/member.h"
#include "report/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *report_provenance(const bz_stock *c, bz_arena *arena)
{
    const char *text = "";
    for (int p = 0; p <= BZ_PROVENANCE_IMPORTED; p++)
        if (c->from[p])
            text = bz_arena_printf(arena, "%s%s%s", text, *text ? ", " : "",
                                   bz_record_provenance_name((bz_record_provenance)p));
    return text;
}

static const bz_member STOCK[] = {BZ_FIELDS(bz_stock, problems, variants, ok, records, newest)};

void report_stock_json(bz_json *j, const bz_stock *c)
{
    bz_members_json(BZ_MEMBERS(STOCK), c, j);
    BZ_JSON_EACH_VALUE (j, "provenance", p, BZ_PROVENANCE_IMPORTED + 1)
        if (c->from[p])
            bz_json_str(j, bz_record_provenance_name((bz_record_provenance)p));
}

static void ls_json(bz_json *j, const bz_stock *c)
{
    bz_json_key_str(j, "system", c->system->name);
    report_stock_json(j, c);
    bz_json_key(j, "details");
    bz_json_raw(j, c->system->details);
}

static void ls_row(bz_table *t, const bz_stock *c, bz_arena *arena)
{
    char text[32], seconds[32];
    snprintf(seconds, sizeof seconds, "%lld", (long long)c->newest);
    BZ_ROW(t, BZ_SHOW(c->system->name), BZ_SHOW_COUNT((int64_t)c->problems), BZ_SHOW_COUNT((int64_t)c->variants),
           BZ_SHOW_COUNT((int64_t)c->ok), BZ_SHOW_COUNT((int64_t)c->records));
    bz_table_cell(t, bz_units_date(text, c->newest), seconds);
    bz_table_cell(t, report_provenance(c, arena), NULL);
}

void bz_report_database(const char *dir, const bz_stock *list, size_t n, bz_form form, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "system|>problems|>variants|>ok|>records|newest|provenance");
    for (size_t i = 0; i < n; i++)
        ls_row(t, &list[i], &arena);
    if (form == BZ_FORM_JSON) {
        bz_json j = bz_json_document_to(out, 3, "database", 1);
        bz_json_key_str(&j, "folder", dir);
        BZ_JSON_EACH (&j, "systems", i, n)
            ls_json(&j, &list[i]);
        bz_json_document_end(&j);
    } else if (form == BZ_FORM_CSV) {
        bz_table_csv(t, out);
    } else {
        bz_buf_printf(out, "%zu system%s in %s\n", n, BZ_PLURAL(n), dir);
        if (n)
            bz_table_print(t, out);
    }
}

static void time_cell(bz_table *t, double seconds)
{
    char plain[32];
    snprintf(plain, sizeof plain, "%.9g", seconds);
    if (isnan(seconds))
        bz_table_cell(t, "", NULL);
    else
        bz_table_cell(t, BZ_SAY_TIME(seconds), plain);
}

static void show_row(bz_table *t, const bz_record *r)
{
    char text[64], seconds[32];
    BZ_ROW(t, BZ_SHOW(r->variant.backend), BZ_SHOW(r->variant.algorithm), BZ_SHOW(r->variant.layout),
           BZ_SHOW(r->variant.math), BZ_SHOW_INT(r->setting.threads), BZ_SHOW(bz_record_cache_name(r->setting.cache)));
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
    bz_table_cell(t, bz_units_date(text, r->date), seconds);
    bz_table_cell(t, r->reason, NULL);
}

static bz_table *show_table(bz_arena *arena, bool csv)
{
    bz_table *t = bz_table_new(arena);
    if (csv)
        bz_table_columns(t, "system|problem");
    bz_table_columns(t, "backend|algorithm|layout|math|>threads|cache|>median|>low|>high|>n|status|source|date|reason");
    return t;
}

static void show_for_people(const char *dir, const bz_record *list, size_t n, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    size_t problems = 0;
    for (size_t i = 0; i < n; i++)
        problems += i == 0 || strcmp(list[i].problem, list[i - 1].problem) != 0;
    bz_buf_printf(out, "%zu record%s of %zu problem%s in %s\n", n, BZ_PLURAL(n), problems, BZ_PLURAL(problems), dir);
    for (size_t i = 0, end; i < n; i = end) {
        const bz_record *first = &list[i];
        bz_table *t = show_table(&arena, false);
        for (end = i; end < n && !strcmp(list[end].problem, first->problem) && !strcmp(list[end].system, first->system);
             end++)
            show_row(t, &list[end]);
        bz_buf_say(out, "\n%s\non %s\n", first->problem, first->system);
        bz_table_print(t, out);
    }
}

static void show_for_programs(const bz_record *list, size_t n, bool json, bz_buf *out)
{
    if (json) {
        bz_json j = bz_json_document_to(out, 3, "records", 1);
        BZ_JSON_EACH_VALUE (&j, "records", i, n)
            bz_record_json(&j, &list[i]);
        bz_json_document_end(&j);
        return;
    }
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = show_table(&arena, true);
    for (size_t i = 0; i < n; i++) {
        BZ_ROW(t, BZ_SHOW(list[i].system), BZ_SHOW(list[i].problem));
        show_row(t, &list[i]);
    }
    bz_table_csv(t, out);
}

void bz_report_records(const char *dir, const bz_record *list, size_t n, bz_form form, bz_buf *out)
{
    if (form == BZ_FORM_TEXT)
        show_for_people(dir, list, n, out);
    else
        show_for_programs(list, n, form == BZ_FORM_JSON, out);
}

static bool is_clean(const void *check)
{
    const bz_perfdb_check_report *r = check;
    return !r->damaged && !r->orphans;
}

static const bz_member CHECKED[] = {
    BZ_MEMBER_HOLDS("clean", is_clean),
    BZ_FIELDS(bz_perfdb_check_report, systems, problems, records, damaged, orphans, newer, unused, bytes,
              stale_readers),
};

void bz_report_check(const bz_perfdb_check_report *r, const char *dir, bool json, bz_buf *out)
{
    size_t defects = r->damaged + r->orphans;
    if (json) {
        bz_members_document("database-check", 1, BZ_MEMBERS(CHECKED), r, 0, out);
        return;
    }
    if (defects)
        bz_buf_printf(out, "%zu damaged and %zu orphaned entries in %s\n", r->damaged, r->orphans, dir);
    else
        bz_buf_printf(out, "clean: %s\n", dir);
    bz_buf_printf(out, "%zu system%s, %zu problem%s, %zu record%s, %s\n", r->systems, BZ_PLURAL(r->systems),
                  r->problems, BZ_PLURAL(r->problems), r->records, BZ_PLURAL(r->records),
                  BZ_SAY_BYTES((double)r->bytes));
    if (r->newer)
        bz_buf_printf(out, "%zu entries were written by a newer benanza and are passed over\n", r->newer);
    if (r->unused)
        bz_buf_printf(out, "%zu problems have no records: 'benanza db gc' removes them\n", r->unused);
    if (defects)
        bz_buf_puts(out, "save what is left: 'benanza db salvage -o FILE', then 'benanza db import --db NEW FILE'\n");
}

void bz_report_salvage(const bz_perfdb_salvage_report *r, bz_buf *out)
{
    const struct {
        size_t n;
        const char *what;
    } lost[] = {
        {r->damaged, "damaged: left out"},
        {r->newer, "written by a newer benanza: left out, salvage them with that one"},
        {r->nameless, "intact, but the text of their problem is lost: left out"},
        {r->lost_systems, "intact, but the name of their system is lost: written as of 'lost-NUMBER'"},
    };
    bz_buf_printf(out, "%zu system%s and %zu record%s written\n", r->systems, BZ_PLURAL(r->systems), r->records,
                  BZ_PLURAL(r->records));
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        if (lost[i].n)
            bz_buf_printf(out, "%zu record%s %s\n", lost[i].n, BZ_PLURAL(lost[i].n), lost[i].what);
    if (r->pages)
        bz_buf_printf(out, "%zu page%s of the file %s damaged: what was on %s cannot be told\n", r->pages,
                      BZ_PLURAL(r->pages), r->pages == 1 ? "is" : "are", r->pages == 1 ? "it" : "them");
    if (r->old)
        bz_buf_puts(out, "the list of free pages cannot be read: records that were replaced or deleted may be among "
                         "them\n");
}

void bz_report_import_text(const char *from, const bz_perfdb_import_report *r, bz_buf *out)
{
    bz_buf_say(out, "%s: %zu records: %zu added, %zu replaced, %zu known already", from, r->records, r->count.added,
               r->count.replaced, r->count.kept);
    if (r->counted)
        bz_buf_printf(out, "; %zu with CUPTI's counters", r->counted);
    if (r->bad)
        bz_buf_printf(out, "; %zu of %zu lines left out", r->bad, r->lines);
    if (r->uncounted)
        bz_buf_printf(out, ", %zu of them counters of calls that have no record here", r->uncounted);
    if (r->unknown)
        bz_buf_printf(out, "; %zu unknown members passed over", r->unknown);
    bz_buf_putc(out, '\n');
}

static const bz_member IMPORTED[] = {
    BZ_FIELDS(bz_perfdb_import_report, lines, records, systems),
    BZ_MEMBER_AS(bz_perfdb_import_report, count.added, "added"),
    BZ_MEMBER_AS(bz_perfdb_import_report, count.replaced, "replaced"),
    BZ_MEMBER_AS(bz_perfdb_import_report, count.kept, "kept"),
    BZ_FIELDS(bz_perfdb_import_report, counted, uncounted, bad, unknown),
};

void bz_report_import_json(const char *from, const bz_perfdb_import_report *r, bz_json *j)
{
    bz_json_object(j);
    bz_json_key_str(j, "from", from);
    bz_members_json(BZ_MEMBERS(IMPORTED), r, j);
    bz_json_object_end(j);
}
