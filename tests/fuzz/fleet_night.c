/* The files of a night, told apart by the first byte: what is taken is written, and reads as the same again. */
#include "fleet/fleet.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void same(bz_buf *first, bz_buf *second)
{
    if (first->len != second->len || (first->len && memcmp(first->data, second->data, first->len) != 0))
        abort();
}

/* Reads, writes, reads and writes. */
#define ROUND_TRIP(type, parse, print)                                                                                 \
    do {                                                                                                               \
        type a, b;                                                                                                     \
        if (!parse(text, "fuzz", &arena, &a, &err)) {                                                                  \
            print(&a, &first);                                                                                         \
            if (parse(bz_buf_text(&first), "fuzz", &arena, &b, &err))                                                  \
                abort();                                                                                               \
            print(&b, &second);                                                                                        \
            same(&first, &second);                                                                                     \
            SAW(first.data, first.len);                                                                                \
        }                                                                                                              \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_buf first = {0}, second = {0};
    bz_error err;
    const bz_queued *list;
    char *text = bz_arena_alloc(&arena, size + 1);
    memcpy(text, data, size);
    switch (size ? *text++ : 0) {
    case 'n':
        ROUND_TRIP(bz_night, bz_night_parse, bz_night_print);
        break;
    case 's':
        ROUND_TRIP(bz_fleet_stacks, bz_fleet_stacks_parse, bz_fleet_stacks_print);
        break;
    case 'w':
        ROUND_TRIP(bz_work, bz_work_parse, bz_work_print);
        break;
    case 'a':
        ROUND_TRIP(bz_attempt, bz_attempt_parse, bz_attempt_print);
        break;
    case 'm':
        ROUND_TRIP(bz_merged, bz_merged_parse, bz_merged_print);
        break;
    default:
        for (int n = bz_slurm_queue(text, &arena, &list); n-- > 0;) {
            SAW(&list[n].job, sizeof list[n].job);
            SAW(&list[n].task, sizeof list[n].task);
            if (list[n].job <= 0 || list[n].task < -1)
                abort();
        }
    }
    bz_buf_free(&first);
    bz_buf_free(&second);
    bz_arena_free(&arena);
    return 0;
}
