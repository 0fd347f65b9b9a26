/* All tables of the small recordings of tests/cases, of a range of them, against the recording as it was, and of recordings a number or a byte beside
 * it. tables_neighbours.txt has a hash for each (seen.h). */
#include "tables/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "near_recordings.h"

enum { NUMBERS = 11, BYTES = 2 };

static void say_tables(const bz_trace *t, const char *range, seen *s)
{
    bz_arena arena = {0};
    bz_error err;
    bz_tables *m = bz_tables_new(t, range, t, &arena, &err);
    for (int i = 0; m && i < bz_n_tables; i++) {
        bz_sheet *sheet = bz_tables_fill(m, &bz_table_list[i]);
        bz_sheet_csv(sheet, &s->text);
        bz_sheet_text(sheet, 12, &s->text);
    }
    bz_arena_free(&arena);
}

static void say(bz_trace *t, seen *s, void *user)
{
    (void)user;
    say_tables(t, NULL, s);
    say_tables(t, "ProfilerStep:1", s);
}

static void say_recording(const char *name, seen *s)
{
    near_recordings(name, NUMBERS, BYTES, s, say, NULL);
}

int main(int argc, char **argv)
{
    static const char *const NAMES[] = {
        "profile-tables/run.json",
        "profile-tables-memory/run.json",
        "profile-tables-peaks/run.json",
        "profile-devices/run.json",
        "profile-rpd/run.json",
        "profile-ascend/trace_view.json",
        "profile-tokens/tokens.log",
        "profile-mkl/run.log",
        "profile-marks-alone/trace.json",
        "analyze-recording/run.json",
        "analyze-tf32/run.json",
        "analyze-allocates/run.json",
        "analyze-loads/trace.json",
        "analyze-optimizer-step/trace.json",
        "analyze-wait-for-all/run.json",
        "analyze-rebuilt-gpu/run.log",
        "analyze-profile/slow.log",
        "whatif/steps.json",
        "whatif-operators/trace.json",
        "whatif-unrecorded/slowed.json",
        "program-2",
        "program-5",
        "program-8",
        "program-11",
        "program-14",
        "program-17",
        "program-20",
        "program-23",
        "program-26",
        "program-29",
    };
    return seen_main(argc, argv, NAMES, sizeof NAMES / sizeof *NAMES, say_recording,
                     BENANZA_SOURCE "/tests/unit/tables_neighbours.txt");
}
