/* What each kind of problem is: its text, its C, its operands, work and bytes, and elements of its results by the definition, of problems that
 * tests run and of those that differ from them in a number or their types, or lack a
 * member. problem_neighbours.txt has a hash for each kind (seen.h). */
#include "runtime/values.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "problem_texts.h"
#include "seen.h"

enum {
    SMALL = 20000,
    ELEMENTS = 5
}; /* of operands of so many numbers together results are computed, so many of each */

static void say_results(const bz_problem *p, const bz_operand *operand, int n, bz_buf *out)
{
    float *value[BZ_PROBLEM_OPERANDS] = {NULL};
    for (int i = 0; i < n; i++)
        if (!operand[i].result) {
            value[i] = bz_alloc((size_t)operand[i].count + 16, sizeof(float));
            bz_values_fill(p, &operand[i], i, value[i]);
        }
    bz_reference r = bz_reference_of(p, n, operand, (const float *const *)value);
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < ELEMENTS && operand[i].result; k++) {
            r.result = i;
            bz_expected e = bz_reference_at(&r, (operand[i].count - 1) * k / (ELEMENTS - 1));
            bz_buf_printf(out, " %.5g", e.value);
        }
    bz_reference_free(&r);
    for (int i = 0; i < n; i++)
        free(value[i]);
}

static void say_problem(const char *text, seen *s)
{
    bz_problem p;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    bz_error err;
    s->tried++;
    if (bz_problem_parse(text, &p, &err)) {
        bz_buf_printf(&s->text, "%s: %s\n", text, err.text);
        return;
    }
    s->taken++;
    bz_problem_print(&p, &s->text);
    bz_buf_putc(&s->text, '\n');
    bz_problem_print_c(&p, 0, &s->text);
    int64_t all = 0;
    int n = bz_problem_operands(&p, operand);
    for (int i = 0; i < n; i++) {
        bz_buf_printf(&s->text, "  %d %s %s of %d, %d%s%s:", (int)operand[i].role, bz_role_name(operand[i].role),
                      bz_dtype_name(operand[i].dtype), operand[i].post, operand[i].alias,
                      operand[i].constant ? " constant" : "", operand[i].result ? " result" : "");
        for (int k = 0; k < operand[i].rank; k++)
            bz_buf_printf(&s->text, " %lld", (long long)operand[i].dim[k]);
        bz_buf_putc(&s->text, '\n');
        all += operand[i].count < SMALL ? operand[i].count : SMALL;
    }
    bz_buf_printf(&s->text, "  %.9g %.9g %lld %.9g", bz_problem_flops(&p), bz_problem_bytes(&p),
                  (long long)bz_problem_hops(&p), bz_problem_scale(&p));
    if (all < SMALL && bz_reference_exists(&p) && bz_reference_cost(&p) < SMALL)
        say_results(&p, operand, n, &s->text);
    bz_buf_putc(&s->text, '\n');
}

static void say_replaced(const char *text, const char *at, size_t n, const char *instead, seen *s)
{
    bz_buf other = {0};
    bz_buf_put(&other, text, (size_t)(at - text));
    bz_buf_puts(&other, instead);
    bz_buf_puts(&other, at + n);
    say_problem(bz_buf_text(&other), s);
    bz_buf_free(&other);
}

static void say_neighbours(const char *text, seen *s)
{
    static const char *const TYPES[] = {"f32", "f16", "bf16", "f64", "i8", "u8:i8:u8", "f32:f32:u8"};
    const char *type = strstr(text, "dtype=");
    say_problem(text, s);
    for (int i = 0; i < 7; i++)
        say_replaced(text, type + 6, strlen(type + 6), TYPES[i], s);
    for (const char *at = text; *at; at++) {
        if (*at == ' ') {
            say_replaced(text, at, 1 + strcspn(at + 1, " "), "", s);
        } else if (isdigit((unsigned char)*at) && strchr("=x:", at[-1])) {
            char number[32], *end;
            long long n = strtoll(at, &end, 10);
            const long long OTHER[] = {n - 1, n + 1, 2 * n};
            for (int i = 0; i < 3 && *end != '.'; i++) {
                snprintf(number, sizeof number, "%lld", OTHER[i]);
                say_replaced(text, at, (size_t)(end - at), number, s);
            }
            at = end - 1;
        }
    }
}

static void say_kind(const char *kind, seen *s)
{
    size_t n = strlen(kind);
    for (size_t i = 0; i < sizeof PROBLEMS / sizeof *PROBLEMS; i++)
        if (!strncmp(PROBLEMS[i], kind, n) && PROBLEMS[i][n] == ' ')
            say_neighbours(PROBLEMS[i], s);
    for (size_t i = 0; i < sizeof MORE_PROBLEMS / sizeof *MORE_PROBLEMS; i++)
        if (!strncmp(MORE_PROBLEMS[i], kind, n) && MORE_PROBLEMS[i][n] == ' ')
            say_neighbours(MORE_PROBLEMS[i], s);
}

int main(int argc, char **argv)
{
    const char *kinds[BZ_PROBLEM_N_KINDS];
    int n = 0;
    for (int k = BZ_PROBLEM_NONE + 1; k < BZ_PROBLEM_N_KINDS; k++)
        kinds[n++] = bz_problem_kind_name((bz_problem_kind)k);
    return seen_main(argc, argv, kinds, n, say_kind, BENANZA_SOURCE "/tests/unit/problem_neighbours.txt");
}
