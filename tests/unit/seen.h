/* Texts of what a test saw, too long to be kept: kept are how many things were tried and taken, and a hash. Where something else is seen, "print
 * NAME" before and after the change shows what; where that is right, tests/seen writes the lists anew. */
#ifndef BZ_SEEN_H
#define BZ_SEEN_H

#include "base/base.h"

typedef struct {
    bz_buf text;
    int tried, taken;
} seen;

typedef void seen_fn(const char *name, seen *s);

/* "NAME taken/tried HASH" */
static void seen_line(const char *name, seen_fn *f, char line[200])
{
    seen s = {0};
    char hex[33];
    f(name, &s);
    bz_hash_hex(bz_hash_bytes(bz_buf_text(&s.text), s.text.len), hex);
    snprintf(line, 200, "%s %d/%d %.16s\n", name, s.taken, s.tried, hex);
    bz_buf_free(&s.text);
}

/* "print NAME": all that is seen; "list": the file's lines for all names. Else 0 where the file has just these lines. */
static int seen_main(int argc, char **argv, const char *const *names, int n, seen_fn *f, const char *path)
{
    char line[200], all[200000];
    seen s = {0};
    if (argc == 3 && !strcmp(argv[1], "print")) {
        f(argv[2], &s);
        fputs(bz_buf_text(&s.text), stdout);
        bz_buf_free(&s.text);
        return 0;
    }
    bool list = argc == 2 && !strcmp(argv[1], "list");
    FILE *file = list ? NULL : fopen(path, "r");
    size_t size = file ? fread(all, 1, sizeof all - 1, file) : 0;
    int wrong = 0, lines = 0;
    all[size] = '\0';
    for (const char *at = all; *at; at++)
        lines += *at == '\n';
    for (int i = 0; i < n; i++) {
        seen_line(names[i], f, line);
        if (list) {
            fputs(line, stdout), fflush(stdout);
        } else if (!strstr(all, line)) {
            if (wrong++ < 10)
                fprintf(stderr, "%s has another line than this, see tests/seen: %s", path, line);
        }
    }
    if (file)
        fclose(file);
    return wrong || (!list && lines != n);
}

#endif
