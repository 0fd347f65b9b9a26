/* Which batch of an iteration of training fits into memory. */
#include "report/parts.h"
#include "training/training.h"

#include <math.h>

void bz_report_training_fit(const bz_fit_report *f, bool json, bz_buf *out)
{
    static const char COLUMNS[] =
        "parts:n|peak:B=memory at most|flops_more:%=more operations|bytes_more:%=more bytes moved"
        "|batch:n=largest batch";
    BZ_SCOPED(bz_arena) arena = {0};
    const bz_memory_fit *row = f->row;
    bz_sheet *sheet = bz_sheet_new(&arena, "memory", "Memory of an iteration, modelled", COLUMNS);
    for (int i = 0; i < f->n; i++)
        BZ_SHEET_ADD(sheet, BZ_NUMBER(row[i].parts), BZ_NUMBER(row[i].peak),
                     BZ_NUMBER((double)row[i].flops / (double)row[0].flops - 1),
                     BZ_NUMBER((double)row[i].bytes / (double)row[0].bytes - 1),
                     BZ_NUMBER(row[i].batch < 0 ? (double)NAN : (double)row[i].batch));
    sheet->note = row[0].batch < 0
                      ? bz_arena_printf(&arena, "There is no largest batch: %s", f->why)
                      : bz_arena_printf(&arena,
                                        "The largest batch fits %s; 0: not even one does. Parts as for --checkpoint: "
                                        "activations within a part are computed again.",
                                        f->text);
    if (json) {
        bz_json j = bz_json_document_to(out, 0, "training-memory", 1);
        BZ_JSON(&j, BZ_TELL("model", f->model), BZ_TELL("memory", f->memory));
        report_sheets_json((const bz_sheet *const[]){sheet}, 1, &j);
        bz_json_document_end(&j);
    } else {
        bz_sheet_text(sheet, f->n, out);
    }
}
