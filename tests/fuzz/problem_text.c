/* Any text either is refused with a reason, or is a problem whose own text reads back as the same. */
#include "runtime/problem.h"

#include "tests/fuzz/fuzz.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_problem p, again;
    bz_error err = {0};
    bz_operand list[BZ_PROBLEM_OPERANDS];
    bz_buf text = {0}, second = {0}, c = {0};
    char *copy = malloc(size + 1);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    copy[size] = 0;
    if (bz_problem_parse(copy, &p, &err)) {
        if (!err.code || !err.text[0])
            abort();
    } else {
        bz_problem_print(&p, &text);
        if (bz_problem_parse(bz_buf_text(&text), &again, &err))
            abort();
        bz_problem_print(&again, &second);
        if (strcmp(bz_buf_text(&text), bz_buf_text(&second)) != 0)
            abort();
        int n = bz_problem_operands(&p, list);
        if (n < 2 || n > BZ_PROBLEM_OPERANDS || list[n - 1].role != BZ_ROLE_Y)
            abort();
        if (!(bz_problem_bytes(&p) > 0) || !(bz_problem_flops(&p) >= 0) || !(bz_problem_scale(&p) > 0))
            abort();
        bz_problem_print_c(&p, 4, &c);
        bz_buf_printf(&c, "%.9g %.9g", bz_problem_bytes(&p), bz_problem_flops(&p));
        SAW(text.data, text.len);
        SAW(c.data, c.len);
    }
    bz_buf_free(&text);
    bz_buf_free(&second);
    bz_buf_free(&c);
    free(copy);
    return 0;
}
