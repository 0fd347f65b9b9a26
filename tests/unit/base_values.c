/* What the room promises of numbers, and of what holds them, by its definition, over random inputs, as base_definitions does of texts. */
#include "base/arena.h"
#include "base/load.h"
#include "base/screen.h"
#include "base/sheet.h"
#include "base/sort.h"
#include "base/table.h"
#include "base/units.h"
#include "base/whole.h"
#include "tests/unit/chance.h"
#include "tests/unit/open_files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Read back, a number is at most half of its last digit away, has three digits or is whole, and no smaller number before its unit. */
static void units_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *(*put)(bz_unit_text out, double v);
        const char *units[6];
        double factor[5], largest;
    } KINDS[] = {{bz_units_time, {" ns", " µs", " ms", " s"}, {1e-9, 1e-6, 1e-3, 1}, 1},
                 {bz_units_bytes, {" B", " kB", " MB", " GB", " TB"}, {1, 1e3, 1e6, 1e9, 1e12}, 1e12},
                 {bz_units_count, {"", " k", " M", " G", " T"}, {1, 1e3, 1e6, 1e9, 1e12}, 1e12}};
    for (int i = 0; i < 60000; i++) {
        int kind = (int)chance(3), unit = 0;
        double v = pow(10, chance(24000) / 1000.0 - (kind ? 1 : 10)) * (chance(2) ? 1 : -1);
        bz_unit_text text;
        char *end;
        KINDS[kind].put(text, v);
        double shown = strtod(text, &end), factor;
        while (strcmp(KINDS[kind].units[unit], end) != 0)
            assert_true(++unit < 5);
        factor = KINDS[kind].factor[unit];
        int decimals = strchr(text, '.') ? (int)(end - strchr(text, '.')) - 1 : 0;
        assert_true(fabs(shown * factor - v) <= factor * pow(10, -decimals) * 0.5000001);
        size_t digits = strspn(text + (v < 0), "0123456789.") - (decimals > 0);
        assert_true(digits == 3 || (digits > 3 && factor == KINDS[kind].largest) || decimals == 2 || v == floor(v) ||
                    (kind == 2 && factor == 1 && fabs(v) < 10000));
        assert_true(fabs(shown) < 1000 || factor == KINDS[kind].largest || (kind == 2 && v == floor(v)));
        assert_true(fabs(v) >= factor * 0.99949 || !unit);
        double back;
        if (kind == 1) {
            assert_int_equal(bz_units_parse_bytes(text, &back), 0);
            assert_true(fabs(back - v) <= factor * pow(10, -decimals) * 0.5000001);
        }
    }
}

static void sizes_have_the_units_of_other_programs(void **state)
{
    static const struct {
        const char *text;
        double bytes;
    } CASES[] = {{"16GB", 16e9},  {"16 GB", 16e9},   {"16G", 16e9},       {"16g", 16e9}, {"1.5T", 1.5e12},
                 {"512k", 512e3}, {"16GiB", 0x1p34}, {"0.5 mib", 0x1p19}, {"7", 7},      {"7B", 7},
                 {"16GG", -1},    {"16Gi", -1},      {"G", -1},           {"16 q", -1}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double bytes = -1;
        assert_int_equal(bz_units_parse_bytes(CASES[i].text, &bytes), CASES[i].bytes < 0 ? -1 : 0);
        assert_true(bytes == CASES[i].bytes);
    }
}

static void times_have_units_and_an_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds; /* 0: none */
    } TIMES[] = {{"60s", 60}, {"5min", 300}, {"1h", 3600}, {"60", 60}, {"0.5", 0.5},       {"0", 0},       {"-1", 0},
                 {"", 0},     {"s", 0},      {"1m", 0},    {"1 h", 0}, {"999999", 999999}, {"1000000", 0}, {"nan", 0}};
    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
        double s = 0;
        assert_int_equal(bz_units_parse_time(TIMES[i].text, &s), TIMES[i].seconds > 0 ? 0 : -1);
        assert_true(s == TIMES[i].seconds);
    }
}

/* As many are smaller, and as many larger, as the quantile says; between two of them it lies on their line. */
static void quantiles_are_on_the_line(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        double v[20], sum = 0, after = 0;
        int64_t t[20];
        size_t n = 1 + chance(19);
        for (size_t k = 0; k < n; k++)
            sum += v[k] = (double)(t[k] = (int64_t)chance(50) - 25);
        bz_sort_numbers(v, n);
        bz_sort_times(t, n);
        for (size_t k = 0; k < n; k++) {
            assert_true(v[k] == (double)t[k] && (!k || v[k - 1] <= v[k]));
            after += v[k];
            assert_true(n == 1 || fabs(bz_quantile(v, n, (double)k / (double)(n - 1)) - v[k]) < 1e-9);
            if (k + 1 < n)
                assert_true(fabs(bz_quantile(v, n, ((double)k + 0.25) / (double)(n - 1)) -
                                 (0.75 * v[k] + 0.25 * v[k + 1])) < 1e-9);
        }
        assert_true(sum == after);
        assert_true(bz_quantile(v, n, 1) == v[n - 1] && bz_quantile(v, n, 0) == v[0]);
    }
}

static int by_size(const void *a, const void *b)
{
    const double *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

/* Many numbers: by chance, few different ones, rising, falling, up and down. */
static void many_numbers_are_sorted(void **state)
{
    (void)state;
    enum { MOST = 20000, SHAPES = 5 };
    double *v = bz_alloc(MOST, sizeof *v), *w = bz_alloc(MOST, sizeof *w);
    for (int shape = 0; shape < SHAPES; shape++)
        for (size_t n = 1; n <= MOST; n = 3 * n + chance(3)) {
            for (size_t i = 0; i < n; i++)
                v[i] = shape == 0   ? (double)chance(1000000)
                       : shape == 1 ? (double)chance(3)
                       : shape == 2 ? (double)i
                       : shape == 3 ? -(double)i
                                    : (double)(i < n / 2 ? i : n - i);
            memcpy(w, v, n * sizeof *v);
            bz_sort_numbers(v, n);
            qsort(w, n, sizeof *w, by_size);
            assert_memory_equal(v, w, n * sizeof *v);
        }
    free(v);
    free(w);
}

static bool before(const bz_sheet_cell *a, const bz_sheet_cell *b, int column)
{
    return column ? (isnan(b->number) && !isnan(a->number)) || a->number > b->number
                  : strcmp(a->text ? a->text : "", b->text ? b->text : "") < 0;
}

/* By exchanging neighbours: equal rows stay as they came. */
static void sheets_are_sorted_stably(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {NULL, "a", "b", "c"};
    for (int i = 0; i < 300; i++) {
        bz_arena arena = {0};
        bz_sheet *s = bz_sheet_new(&arena, "id", "Title", "name|count:n|row:n");
        int n = (int)chance(40), column = (int)chance(2);
        bz_sheet_cell naive[40][3], swap[3];
        for (int k = 0; k < n; k++) {
            double count = chance(4) ? (double)chance(5) : (double)NAN;
            naive[k][0].text = TEXTS[chance(4)], naive[k][1].number = count, naive[k][2].number = k;
            bz_sheet_add(s, naive[k], 3);
        }
        for (int pass = 0; pass < n; pass++)
            for (int k = 1; k < n; k++)
                if (before(&naive[k][column], &naive[k - 1][column], column)) {
                    memcpy(swap, naive[k], sizeof swap);
                    memcpy(naive[k], naive[k - 1], sizeof swap);
                    memcpy(naive[k - 1], swap, sizeof swap);
                }
        bz_sheet_sort(s, column);
        for (int k = 0; k < n; k++)
            assert_true(s->cell[3 * k + 2].number == naive[k][2].number);
        bz_buf text = {0}, more = {0};
        bz_sheet_text(s, 10, &text);
        bz_buf_printf(&more, "… and %d more\n", n - 10);
        assert_int_equal(strstr(bz_buf_text(&text), bz_buf_text(&more)) != NULL, n > 10);
        int lines = 0;
        for (const char *p = bz_buf_text(&text); (p = strchr(p, '\n')); p++)
            lines++;
        assert_int_equal(lines, n > 10 ? 12 : n + 1);
        bz_buf_free(&text);
        bz_buf_free(&more);
        bz_arena_free(&arena);
    }
}

/* One cell of CSV as RFC 4180 has it. Returns what follows. */
static const char *read_cell(const char *p, char *out)
{
    if (*p != '"')
        for (; *p != ',' && *p != '\n'; p++)
            *out++ = *p;
    else
        for (p++; *p != '"' || *++p == '"'; p++)
            *out++ = *p;
    *out = 0;
    assert_true(*p == ',' || *p == '\n');
    return p + 1;
}

/* Random cells: CSV reads back; text is aligned; on a narrow screen no line is wider, numbers are whole, and the note names what is left out. */
static void tables_hold_what_was_put(void **state)
{
    (void)state;
    for (int i = 0; i < 1500; i++) {
        bz_arena arena = {0};
        int n_columns = 1 + (int)chance(8), rows = (int)chance(6), columns = chance(2) ? 0 : 40 + (int)chance(60);
        static char cell[6][8][60];
        char title[8][4] = {{0}}, got[80];
        bool right[8];
        bz_table *t = bz_table_new(&arena);
        for (int c = 0; c < n_columns; c++) {
            snprintf(title[c], sizeof title[c], "T%c", 'a' + c);
            right[c] = c && chance(2);
            bz_table_column(t, title[c], right[c] ? BZ_RIGHT : BZ_LEFT);
        }
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < n_columns; c++) {
                random_text(cell[r][c], right[c] ? 8 : 60, right[c] ? "0123456789." : "abcdefg,\";:=+-");
                if (!right[c] && chance(4) == 0)
                    strcpy(cell[r][c], chance(2) ? "-" : "");
                bz_table_cell(t, cell[r][c], NULL);
            }
        assert_int_equal(bz_table_rows(t), rows);
        bz_buf csv = {0}, text = {0};
        bz_table_csv(t, &csv);
        const char *p = bz_buf_text(&csv);
        for (int r = -1; r < rows; r++)
            for (int c = 0; c < n_columns; c++) {
                const char *put = r < 0 ? title[c] : cell[r][c];
                char *end;
                strtod(put, &end);
                bool formula = *put && strchr("=+-@", *put) && put[1] && *end;
                p = read_cell(p, got);
                assert_int_equal(p[-1] == '\n', c + 1 == n_columns);
                assert_string_equal(got + formula, put);
                assert_true(!formula || *got == '\'');
            }
        assert_int_equal(*p, 0);
        bz_screen_set((bz_screen){columns, false});
        bz_table_print(t, &text);
        bz_screen_set((bz_screen){0, false});
        const char *note = strstr(bz_buf_text(&text), "(--wide"), *head = bz_buf_text(&text);
        int starts[9] = {0}, shown = 0, lines = 0;
        for (int c = 0; c < n_columns; c++) {
            const char *at = strstr(head, title[c]);
            bool here = at && at < head + strcspn(head, "\n");
            assert_true(c || here);
            assert_true(here || (note && strstr(note, title[c])) || (note && strstr(note, "…")));
            assert_false(here && note && strstr(note, title[c]));
            if (here)
                starts[shown++] = c;
        }
        assert_true(columns || shown == n_columns);
        assert_int_equal(note != NULL, shown < n_columns);
        for (const char *line = head; line < (note ? note : head + text.len);
             line += strcspn(line, "\n") + 1, lines++) {
            char one[1000];
            size_t length = strcspn(line, "\n");
            snprintf(one, sizeof one, "%.*s", (int)length, line);
            assert_true(!columns || bz_text_width(one) <= columns);
            assert_true(!length || line[length - 1] != ' ');
            for (int k = 0; k < shown && lines; k++)
                assert_true(!right[starts[k]] || strstr(one, cell[lines - 1][starts[k]]));
        }
        assert_int_equal(lines, rows + 1);
        bz_buf_free(&csv);
        bz_buf_free(&text);
        bz_arena_free(&arena);
    }
}

/* No two pieces overlap, all are aligned and zero, and `used` is what was handed out. */
static void arenas_give_each_its_own(void **state)
{
    (void)state;
    bz_arena arena = {0};
    enum { N = 3000 };
    static unsigned char *piece[N];
    static size_t size[N];
    for (int i = 0; i < N; i++) {
        size[i] = chance(20) ? chance(200) : chance(100000);
        size_t before = arena.used;
        piece[i] = bz_arena_alloc(&arena, size[i]);
        assert_true(arena.used - before >= size[i] && arena.used - before < size[i] + 16);
        assert_true(!size[i] || (uintptr_t)piece[i] % 16 == 0);
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(piece[i][k], 0);
        memset(piece[i], i % 255 + 1, size[i]);
    }
    for (int i = 0; i < N; i++)
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(piece[i][k], i % 255 + 1);
    bz_arena_free(&arena);
    assert_null(arena.block);
    int *list = NULL;
    for (int n = 0; n < 1000; n++) {
        BZ_ARENA_ROOM(&arena, list, n);
        list[n] = n;
    }
    for (int n = 0; n < 1000; n++)
        assert_int_equal(list[n], n);
    bz_arena_free(&arena);
}

static void put_file(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bz_buf b = {0};
    bz_buf_puts(&b, text);
    assert_int_equal(bz_whole_write(path, &b, NULL), 0);
    bz_buf_free(&b);
}

/* proc(5): what a machine's load is, from files whose content is chosen here. */
static void load_is_what_the_kernel_says(void **state)
{
    (void)state;
    char root[] = "/tmp/benanza-load-XXXXXX", path[300], text[1000];
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    bz_load l, now;
    assert_non_null(mkdtemp(root));
    bz_processor_name(root, text, sizeof text);
    assert_string_equal(text, "");
    bz_load_read(root, &l);
    assert_true(l.processors == 1 && l.runnable == -1 && isnan(l.average) && isnan(l.pressure) && isnan(l.total) &&
                isnan(l.steal));
    assert_true(bz_load_has_room(&l, 9));
    for (int i = 0; i < 3; i++) {
        static const char *const FOLDERS[] = {"proc", "proc/pressure"};
        for (int k = 0; k < 2 && !i; k++) {
            snprintf(path, sizeof path, "%s/%s", root, FOLDERS[k]);
            assert_int_equal(mkdir(path, 0700), 0);
        }
        snprintf(text, sizeof text,
                 "cpu  1 2 4 8 16 32 64 %d 256 512\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 0 0\ncpu2 0 0\nintr 5\n", 100 * i);
        put_file(root, "proc/stat", text);
        snprintf(text, sizeof text, "%d.25 2.5 3.5 %d/700 12345\n", i, i + 1);
        put_file(root, "proc/loadavg", text);
        put_file(root, "proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=7.00\n");
        bz_load_read(root, &now);
        assert_int_equal(now.processors, 3);
        assert_int_equal(now.runnable, i);
        assert_true(now.average == i + 0.25 && now.pressure == 0.125);
        assert_true(fabs(now.total - (127 + 100 * i) * tick) < 1e-9 && fabs(now.steal - 100 * i * tick) < 1e-9);
        for (int threads = 1; threads < 6; threads++)
            assert_int_equal(bz_load_has_room(&now, threads), !i || i + threads <= 3);
        if (i)
            assert_true(fabs(bz_load_stolen(&l, &now) - 1) < 1e-9); /* all that passed was stolen */
        l = now;
    }
    assert_true(bz_load_stolen(&l, &now) == 0);
    now.total += 100, now.steal += 0.014;
    assert_true(bz_load_stolen(&l, &now) == 0); /* one tick is chance */
    now.steal += 0.002;
    assert_true(fabs(bz_load_stolen(&l, &now) - 0.016 / 100) < 1e-9);
    static const char *const NAMES[][2] = {
        {"processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC \nstepping\t: 1\n", "AMD EPYC"},
        {"processor\t: 0\nCPU part\t: 0xd0c\n", ""},
        {"model name", ""}};
    for (int i = 0; i < 3; i++) {
        put_file(root, "proc/cpuinfo", NAMES[i][0]);
        bz_processor_name(root, text, sizeof text);
        assert_string_equal(text, NAMES[i][1]);
    }
    snprintf(text, sizeof text, "rm -r %s", root);
    assert_int_equal(system(text), 0);
}

/* A new file or the old one, never half; the mode is umask's; nothing lies beside it; a limit holds to the byte. */
static void files_are_whole_or_not_there(void **state)
{
    (void)state;
    char folder[] = "/tmp/benanza-whole-XXXXXX", path[300], text[400];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f", folder);
    for (int i = 0; i < 40; i++) {
        bz_buf put = {0}, got = {0};
        bz_error err = {0};
        struct stat st;
        bz_whole w;
        for (unsigned n = chance(2) ? chance(50000) : chance(20); put.len < n;)
            bz_buf_putc(&put, (char)chance(256));
        mode_t mask = chance(2) ? 022 : 077, old = umask(mask);
        assert_int_equal((chance(2) ? bz_whole_open : bz_whole_open_named)(&w, path, &err), 0);
        assert_true(bz_write_all(w.fd, bz_buf_text(&put), put.len));
        bool good = !i || chance(3);
        assert_int_equal(bz_whole_close(&w, good, &err), good ? 0 : -1);
        umask(old);
        if (good) {
            assert_int_equal(stat(path, &st), 0);
            assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
            assert_int_equal(bz_whole_read(path, put.len, "is too long", &got, &err), 0);
            assert_int_equal(got.len, put.len);
            assert_memory_equal(bz_buf_text(&got), bz_buf_text(&put), put.len);
            if (put.len)
                assert_int_equal(bz_whole_read(path, put.len - 1, "is too long", &got, &err), -1);
        }
        snprintf(text, sizeof text, "test \"$(ls -A %s)\" = f", folder);
        assert_int_equal(system(text), 0);
        bz_buf_free(&put);
        bz_buf_free(&got);
    }
    snprintf(text, sizeof text, "rm -r %s", folder);
    assert_int_equal(system(text), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_read_back),
        cmocka_unit_test(sizes_have_the_units_of_other_programs),
        cmocka_unit_test(times_have_units_and_an_end),
        cmocka_unit_test(quantiles_are_on_the_line),
        cmocka_unit_test(many_numbers_are_sorted),
        cmocka_unit_test(sheets_are_sorted_stably),
        cmocka_unit_test(tables_hold_what_was_put),
        cmocka_unit_test(arenas_give_each_its_own),
        cmocka_unit_test(load_is_what_the_kernel_says),
        cmocka_unit_test(files_are_whole_or_not_there),
    };
    int before = open_files(), failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed || open_files() != before;
}
