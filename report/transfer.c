/* What moving data costs. */
#include "report/parts.h"

#include "base/units.h"

#include <math.h>

/* "One thread reads memory at 25 GB/s and copies it at 12 GB/s; …": the first things that people ask. */
static void answer(const bz_transfers *t, bz_buf *out)
{
    static const struct {
        const char *way, *level, *words;
    } ASKED[] = {{"read", "memory", "reads memory at %s/s"},
                 {"copy", "memory", "copies it at %s/s, read and written bytes together"},
                 {"chase", "L1", "waits %s for a load from L1"},
                 {"chase", "memory", "%s for one from memory"},
                 {"to_device_pinned", "large", "copies to the GPU at %s/s"},
                 {"to_host_pinned", "large", "back at %s/s"},
                 {"launch_wait", "small", "starts a kernel and waits for its end in %s"}};
    int said = 0;
    bz_style_begin(out, BZ_STYLE_STRONG);
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++) {
        const bz_transfer_fit *f = bz_transfer_level(bz_transfer_find(t, ASKED[i].way), ASKED[i].level);
        if (!f)
            continue;
        if (said++)
            bz_buf_puts(out, i == 3 || i == 5 ? " and " : ", ");
        else
            bz_buf_printf(out, t->setting.threads == 1 ? "One thread " : "%d threads ", t->setting.threads);
        /* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): one of those above */
        bz_buf_printf(out, ASKED[i].words, isnan(f->rate) ? BZ_SAY_TIME(f->start) : BZ_SAY_BYTES(f->rate));
    }
    bz_buf_puts(out, said ? "." : "Nothing of this is measured yet: 'benanza transfer' measures it.");
    bz_style_end(out, BZ_STYLE_STRONG);
    bz_buf_puts(out, "\n\n");
}

void bz_report_transfers_text(const bz_transfers *t, bool points, double bytes, bz_arena *arena, bz_buf *out)
{
    int marked = 0;
    answer(t, out);
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->curve[i].n; k++)
            marked += t->curve[i].point[k].marked;
    const bz_sheet *sheet = bytes > 0 ? bz_transfers_asked(t, bytes, arena)
                            : points  ? bz_transfers_points(t, arena)
                                      : bz_transfers_fits(t, arena);
    if (sheet->n)
        bz_sheet_text(sheet, sheet->n, out);
    if (t->threads) {
        bz_buf_printf(out, "\n%s\n\n", t->threads->title);
        bz_sheet_text(t->threads, t->threads->n, out);
    }
    bz_buf_printf(out, "%s%s, %d thread%s, %s caches: %d transfers measured", sheet->n || t->threads ? "\n" : "",
                  t->system ? t->system->name : "?", t->setting.threads, t->setting.threads > 1 ? "s" : "",
                  bz_record_cache_name(t->setting.cache), t->points);
    if (marked)
        bz_buf_printf(out, ", %d of them noisy or on a busy machine (--points says which)", marked);
    if (t->missing)
        bz_buf_printf(out, ", %d not measured", t->missing);
    if (t->failed)
        bz_buf_say(out, ", %d that failed here: %s", t->failed, t->why);
    bz_buf_puts(out, ".\n");
}

void bz_report_transfers_json(const bz_transfers *t, double bytes, bz_arena *arena, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, -1, "transfer", 1);
    BZ_JSON(&j, BZ_TELL("system", t->system ? t->system->name : NULL), BZ_TELL("threads", t->setting.threads),
            BZ_TELL("cache", bz_record_cache_name(t->setting.cache)), BZ_TELL("measured", t->points),
            BZ_TELL("missing", t->missing), BZ_TELL("failed", t->failed));
    bz_json_key_array(&j, "sheets");
    bz_sheet_json(bz_transfers_fits(t, arena), &j);
    bz_sheet_json(bz_transfers_points(t, arena), &j);
    if (bytes > 0)
        bz_sheet_json(bz_transfers_asked(t, bytes, arena), &j);
    if (t->threads)
        bz_sheet_json(t->threads, &j);
    bz_json_array_end(&j);
    bz_json_document_end(&j);
}

void bz_report_transfers_page(const bz_transfers *t, bool points, double bytes, bz_arena *arena, bz_buf *out)
{
    BZ_SCOPED(bz_buf) text = {0}, json = {0};
    bz_report_transfers_text(t, points, bytes, arena, &text);
    bz_report_transfers_json(t, bytes, arena, &json);
    bz_report_document_page("What moving data costs", bz_buf_text(&json), bz_buf_text(&text), out);
}
