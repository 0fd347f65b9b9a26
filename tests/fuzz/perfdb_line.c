/* Lines of text: whatever is taken must come out as a line that reads the same again. */
#include "perfdb/entry.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void need(bool good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_error err;
    bz_line line, again;
    char *text = bz_arena_dup(&arena, data, size); /* its end is the end of the memory, more or less */
    if (!bz_line_parse(text, size, &arena, &line, &err)) {
        bz_buf out = {0};
        bz_json j = bz_json_to(&out, false);
        if (line.is_system) {
            if (!bz_system_check(line.system, &err))
                bz_system_encode(line.system, 1, line.details, line.date, &out);
        } else if (!bz_record_check(&line.record, &err)) {
            bz_record_json(&j, &line.record);
            need(!bz_line_parse(out.data, out.len, &arena, &again, &err));
            need(bz_record_same_identity(&line.record, &again.record));
            need(bz_record_prefer(&line.record, &again.record) == 0);
        }
        SAW(out.data, out.len);
        bz_buf_free(&out);
    }
    bz_arena_free(&arena);
    return 0;
}
