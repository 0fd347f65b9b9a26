/* An edition's file. */
#include "suite/suite.h"

#include "base/whole.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1000, WORDS = 64, LONGEST = 1 << 20 };
#define TOO_LONG "is longer than any table of training runs"

static const char *const SIZES[BZ_SUITE_SIZES] = {"ci", "full"};

const char *bz_suite_size_name(bz_suite_size size)
{
    return SIZES[size];
}

static bool is_name(const char *text)
{
    size_t n = strlen(text);
    return n && n < 64 && text[0] != '-' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == n;
}

static bool is_plain(const char *line)
{
    while (*line == '\t' || *line == '\r' || (unsigned char)*line >= ' ')
        line++;
    return !*line;
}

/* The text up to the next | without blanks around it; ends it there, and moves on behind. NULL: there is none. */
static char *next_cell(char **rest)
{
    char *cell = strsep(rest, "|"), *end;
    if (!cell)
        return NULL;
    cell += strspn(cell, " \t");
    for (end = cell + strlen(cell); end > cell && strchr(" \t\r", end[-1]); end--)
        ;
    *end = 0;
    return cell;
}

static int read_batches(const char *text, int *batch, int *n)
{
    for (const char *p = text;; p++) {
        char *end;
        long v = strtol(p, &end, 10);
        if (end == p || v < 1 || v > 1000000 || *n == BZ_SUITE_BATCHES)
            return -1;
        batch[(*n)++] = (int)v;
        p = end;
        if (!*p)
            return 0;
        if (*p != ',')
            return -1;
    }
}

/* Words that begin with ./ lie in the folder. */
static int read_words(char *text, const char *folder, bz_arena *arena, bz_suite_entry *e)
{
    char *rest = NULL;
    e->word = BZ_NEW(arena, const char *, WORDS);
    for (char *w = strtok_r(text, " \t", &rest); w; w = strtok_r(NULL, " \t", &rest)) {
        if (e->n_words == WORDS)
            return -1;
        e->word[e->n_words++] =
            strncmp(w, "./", 2) ? bz_arena_str(arena, w) : bz_arena_printf(arena, "%s/%s", folder, w + 2);
    }
    return e->n_words ? 0 : -1;
}

static int read_entry(char *line, const char *folder, bz_arena *arena, bz_suite *out, const char **why)
{
    bz_suite_entry e = {0};
    const char **const TEXTS[] = {&e.name, &e.application, &e.model, &e.layers, &e.dominant, &e.data, &e.unit};
    char *rest = line;
    *why = "has fewer cells than name | application | model | layers | dominant | data | unit | batches of ci | of "
           "full | command";
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        const char *cell = next_cell(&rest);
        if (!cell)
            return -1;
        *TEXTS[i] = bz_arena_str(arena, cell);
    }
    for (int s = 0; s < BZ_SUITE_SIZES; s++) {
        const char *cell = next_cell(&rest);
        if (!cell)
            return -1;
        if (read_batches(cell, e.batch[s], &e.n_batches[s])) {
            *why = "wants one to eight batches, as 1,2,4";
            return -1;
        }
    }
    if (!rest)
        return -1;
    if (read_words(next_cell(&rest), folder, arena, &e) || rest) {
        *why = "wants a command of 1 to 64 words in its last cell";
        return -1;
    }
    if (!is_name(e.name) || bz_suite_find(out, e.name)) {
        *why =
            is_name(e.name) ? "has a name that stands further up already" : "wants a name of letters, digits, - and _";
        return -1;
    }
    out->entry[out->n++] = e;
    return 0;
}

int bz_suite_parse(const char *text, const char *path, bz_arena *arena, bz_suite *out, bz_error *err)
{
    const char *name = bz_file_name(path), *dot = strrchr(name, '.'), *why;
    *out = (bz_suite){0};
    char *rest = bz_arena_str(arena, text);
    const char *folder = name > path ? bz_arena_printf(arena, "%.*s", (int)(name - path - 1), path) : ".";
    char *edition = bz_arena_printf(arena, "%.*s", (int)(dot ? dot - name : (long)strlen(name)), name);
    out->edition = edition;
    if (!is_name(edition))
        return bz_fail(err, BZ_BAD_INPUT, "%s: the file's name is the edition's: letters, digits, - and _", path);
    out->entry = BZ_NEW(arena, bz_suite_entry, MOST);
    int line = 1;
    for (char *p; (p = strsep(&rest, "\n")); line++) {
        p += strspn(p, " \t\r");
        if (!*p || *p == '#')
            continue;
        if (out->n == MOST)
            return bz_fail(err, BZ_BAD_INPUT, "%s: has more than %d runs", path, MOST);
        if (!is_plain(p))
            return bz_fail(err, BZ_BAD_INPUT, "%s: line %d is no plain text", path, line);
        if (read_entry(p, folder, arena, out, &why))
            return bz_fail(err, BZ_BAD_INPUT, "%s: line %d %s", path, line, why);
    }
    return out->n ? 0 : bz_fail(err, BZ_BAD_INPUT, "%s: has no runs", path);
}

static bool find_bundled(const char *name, char path[PATH_MAX])
{
    char folder[BZ_FOLDER_MAX];
    return bz_folder_bundled("suite", folder) &&
           (size_t)snprintf(path, PATH_MAX, "%s/%s.txt", folder, name) < PATH_MAX && !access(path, R_OK);
}

int bz_suite_read(const char *name, bz_arena *arena, bz_suite *out, bz_error *err)
{
    char path[PATH_MAX];
    BZ_SCOPED(bz_buf) text = {0};
    bool bundled = is_name(name) && access(name, R_OK) && find_bundled(name, path);
    int rc = bz_whole_read(bundled ? path : name, LONGEST, TOO_LONG, &text, err) ||
             bz_suite_parse(bz_buf_text(&text), bundled ? path : name, arena, out, err);
    return rc ? -1 : 0;
}

const bz_suite_entry *bz_suite_find(const bz_suite *suite, const char *name)
{
    for (int i = 0; i < suite->n; i++)
        if (!strcmp(suite->entry[i].name, name))
            return &suite->entry[i];
    return NULL;
}

bz_sheet *bz_suite_list(const bz_suite *suite, bz_suite_size size, bz_arena *arena)
{
    static const char COLUMNS[] =
        "name=run|application|model|layers|dominant=mostly|data=data (made up here)|unit=counted in|batches"
        "|command:-";
    bz_sheet *s = bz_sheet_new(arena, "suite", "Training runs", COLUMNS);
    for (int i = 0; i < suite->n; i++) {
        const bz_suite_entry *e = &suite->entry[i];
        bz_buf batches = {0}, command = {0};
        for (int k = 0; k < e->n_batches[size]; k++)
            bz_buf_printf(&batches, "%s%d", k ? " " : "", e->batch[size][k]);
        for (int k = 0; k < e->n_words; k++)
            bz_buf_printf(&command, "%s%s", k ? " " : "", bz_file_name(e->word[k]));
        BZ_SHEET_ADD(s, BZ_TEXT(e->name), BZ_TEXT(e->application), BZ_TEXT(e->model), BZ_TEXT(e->layers),
                     BZ_TEXT(e->dominant), BZ_TEXT(e->data), BZ_TEXT(e->unit), BZ_TEXT(bz_buf_keep(&batches, arena)),
                     BZ_TEXT(bz_buf_keep(&command, arena)));
    }
    return s;
}
