/* A stranger's report, held against itself and against a small one. */
#include "report/report.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>

static const char OTHER[] = "{\"record\":\"analysis\",\"v\":1,\"models\":[{\"model\":\"m\",\"batch\":1,\"layers\":"
                            "[{\"key\":\"a\",\"seconds\":1,\"low\":0.5,\"high\":2,\"times\":1}]}]}";

static void print(const bz_report_file *a, const bz_report_file *b, bz_arena *arena, bool same)
{
    bz_compare_set set;
    bz_error err;
    bz_buf out = {0};
    if (bz_compare_reports(a, b, arena, &set, &err))
        return;
    set.name_a = "a";
    set.name_b = "b";
    for (int i = 0; i < set.n_parts && same; i++)
        PROMISE(!set.part[i].compare.count[BZ_FASTER] && !set.part[i].compare.count[BZ_SLOWER]);
    for (int form = BZ_FORM_TEXT; form <= BZ_FORM_CSV; form++)
        bz_report_set(&set, 20, (bz_form)form, &out);
    SAW(out.data, out.len);
    bz_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_report_file *a, *b;
    bz_error err = {0};
    if (!bz_report_read((const char *)data, size, "fuzz", &arena, &a, &err) &&
        !bz_report_read(OTHER, strlen(OTHER), "other", &arena, &b, &err)) {
        print(a, b, &arena, false);
        print(b, a, &arena, false);
        print(a, a, &arena, true);
    }
    bz_arena_free(&arena);
    return 0;
}
