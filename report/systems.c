/* The machine at hand, and the systems that a database knows. */
#include "report/parts.h"

#include <string.h>

/* The line of this machine that is the system's; NULL where it is another one. */
static const bz_line *find_here(const bz_systems *s, const char *name)
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

static const char *details_here(const bz_systems *s, const bz_line *here)
{
    const bz_system *known = NULL;
    for (size_t i = 0; i < s->n && !known; i++)
        known = strcmp(s->stock[i].system->name, here->system) == 0 ? s->stock[i].system : NULL;
    return pick_details(known, here);
}

typedef struct known {
    const bz_stock *stock;
    const char *details;
    bool here;
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
    BZ_JSON_LIST(j, "threads", int, i, n, threads[i]);
}

static void known_json(bz_json *j, const known *k, bz_arena *arena)
{
    const char *name = k->stock->system->name, *at = strchr(name, '@');
    BZ_JSON(j, BZ_TELL("system", name), BZ_TELL("slug", at ? bz_arena_strn(arena, name, (size_t)(at - name)) : name),
            BZ_TELL("stack", at ? at + 1 : ""), BZ_TELL("here", k->here),
            BZ_TELL("device", *k->facts->device ? k->facts->device : NULL),
            BZ_TELL("name", *k->facts->name ? k->facts->name : NULL));
    report_stock_json(j, k->stock);
    put_threads(j, k->stock->threads, k->stock->n_threads);
    bz_json_key(j, "peaks");
    if (k->peaks) {
        bz_json_object(j);
        bz_json_key_str(j, "source", k->peaks);
        put_threads(j, k->threads, k->facts->n_measured);
        bz_json_object_end(j);
    } else {
        bz_json_null(j);
    }
    bz_json_key_int(j, "date", k->stock->system->date);
    bz_json_key(j, "details");
    bz_json_raw(j, k->details);
}

/* "1, 2, 4" */
static const char *threads_text(const int *threads, int n, bz_arena *arena)
{
    const char *text = "";
    for (int i = 0; i < n; i++)
        text = bz_arena_printf(arena, "%s%s%d", text, i ? ", " : "", threads[i]);
    return text;
}

static void known_row(bz_table *t, const known *k, bz_arena *arena)
{
    char day[32];
    const char *peaks = k->peaks ? k->peaks : "none";
    if (k->facts->n_measured)
        peaks =
            bz_arena_printf(arena, "measured with %s thread%s", threads_text(k->threads, k->facts->n_measured, arena),
                            k->facts->n_measured == 1 && k->threads[0] == 1 ? "" : "s");
    BZ_ROW(t, BZ_SHOW(k->stock->system->name), BZ_SHOW(k->here ? "yes" : ""),
           BZ_SHOW(*k->facts->name ? k->facts->name : k->facts->device), BZ_SHOW_COUNT((int64_t)k->stock->records),
           BZ_SHOW(threads_text(k->stock->threads, k->stock->n_threads, arena)),
           BZ_SHOW(bz_units_date(day, k->stock->newest)), BZ_SHOW(report_provenance(k->stock, arena)), BZ_SHOW(peaks));
}

static known look_at(const bz_systems *s, size_t i, bz_arena *arena)
{
    const bz_line *here = find_here(s, s->stock[i].system->name);
    known k = {.stock = &s->stock[i], .here = here, .details = pick_details(s->stock[i].system, here)};
    read_details(&k, arena);
    return k;
}

void bz_report_systems_json(const bz_systems *s, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_json j = bz_json_document_to(out, 3, "systems", 1);
    BZ_JSON_EACH (&j, "here", i, s->n_here) {
        bz_json_key_str(&j, "system", s->here[i].system);
        bz_json_key(&j, "details");
        bz_json_raw(&j, details_here(s, &s->here[i]));
    }
    bz_json_key_str(&j, "database", s->database ? s->where : NULL);
    BZ_JSON_EACH (&j, "systems", i, s->n) {
        known k = look_at(s, i, &arena);
        known_json(&j, &k, &arena);
    }
    bz_json_document_end(&j);
}

void bz_report_systems_text(const bz_systems *s, bz_buf *out)
{
    BZ_SCOPED(bz_arena) arena = {0};
    bz_table *t = bz_table_of(&arena, "system|here|device|>records|threads|newest|provenance|peaks");
    const bz_system_facts *facts =
        s->facts && s->facts->n_measured ? s->facts : bz_system_facts_read(details_here(s, s->here), &arena);
    for (int i = 0; i < facts->n_measured; i++)
        bz_measured_print(&facts->measured[i], out);
    if (!facts->n_measured)
        bz_buf_puts(out, "peaks         not measured: 'benanza system --measure' does, and stores them\n");
    for (size_t i = 0; i < s->n; i++) {
        known k = look_at(s, i, &arena);
        known_row(t, &k, &arena);
    }
    bz_buf_puts(out, s->database ? "\n" : "\nno database in ");
    if (s->database)
        bz_buf_printf(out, "%zu system%s known in ", s->n, BZ_PLURAL(s->n));
    bz_buf_clean(out, s->where);
    bz_buf_puts(out, s->database ? "\n" : " yet: 'benanza bound MODEL' and 'benanza db import FILE' make one\n");
    if (s->n)
        bz_table_print(t, out);
}
