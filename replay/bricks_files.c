/* Sequences of layers as files in a folder, and what a command of the user's takes for each. */
#include "base/progress.h"
#include "base/whole.h"
#include "bench/bench.h"
#include "replay/constants.h"
#include "replay/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_TIMES = 64 << 20 };

typedef struct timing {
    bz_brick_files *f;
    bz_bricks *b;
    bz_arena *arena;
    bz_map times; /* what was measured in the folder: "ID" or a model's path, of this command -> number of `seconds` */
    double *seconds;
    int n_seconds;
    bz_buf log; /* the file's lines */
} timing;

static const char *path_of(timing *j, const char *name)
{
    return bz_arena_printf(j->arena, "%s/%s", j->f->folder, name);
}

static const char *id_of(timing *j, int brick)
{
    char id[33];
    bz_hash_hex(j->b->brick[brick].hash, id);
    return bz_arena_str(j->arena, id);
}

int bz_bricks_write(bz_brick_files *f, bz_bricks *b, bz_arena *arena, bz_error *err)
{
    timing files = {.f = f, .b = b, .arena = arena}, *j = &files;
    if (mkdir(j->f->folder, 0777) && errno != EEXIST)
        return bz_fail(err, BZ_FAILED, "%s: cannot be made: %s", j->f->folder, strerror(errno));
    for (int i = 0; i < j->b->n; i++) {
        BZ_SCOPED(bz_buf) file = {0};
        bz_error why = {0};
        int rc = bz_bricks_save(j->b, i, &file, &why);
        if (rc)
            j->f->why[i] = bz_arena_str(j->arena, why.text);
        else
            rc = bz_whole_write(path_of(j, bz_arena_printf(j->arena, "%s.onnx", id_of(j, i))), &file, err);
        if (rc && !j->f->why[i])
            return -1;
    }
    return 0;
}

/* "SECONDS<TAB>WHAT<TAB>COMMAND" */
static void read_times(timing *j)
{
    bz_error none;
    if (bz_whole_read(path_of(j, "times.tsv"), MOST_TIMES, "is too long", &j->log, &none))
        return;
    char *text = bz_arena_strn(j->arena, bz_buf_text(&j->log), j->log.len), *line, *rest = text;
    int lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    j->seconds = BZ_NEW(j->arena, double, lines);
    while ((line = strsep(&rest, "\n"))) {
        char *command = line, *seconds = strsep(&command, "\t"), *what = command ? strsep(&command, "\t") : NULL, *end;
        double v = strtod(seconds, &end);
        if (!what || !command || strcmp(command, j->f->command) != 0 || end == seconds || !(v > 0) || !isfinite(v) ||
            j->n_seconds == lines)
            continue;
        bz_map_set(&j->times, what, strlen(what), (uint32_t)j->n_seconds);
        j->seconds[j->n_seconds++] = v;
    }
}

/* A file that the command is asked for. */
typedef struct asked {
    const char *what, *path;
    double *seconds; /* NAN until it is known */
    const char **why;
    bool known; /* it takes its turn for the others' sake */
} asked;

static void look_up(timing *j, asked *a)
{
    uint32_t known = bz_map_get(&j->times, a->what, strlen(a->what));
    a->known = known != BZ_MAP_NONE;
    if (a->known)
        *a->seconds = j->seconds[known];
}

static void write_command(const timing *j, const char *hole, const char *path, bz_buf *line)
{
    const char *rest = j->f->command, *at;
    for (; (at = strstr(rest, hole)); rest = at + strlen(hole)) {
        bz_buf_put(line, rest, (size_t)(at - rest));
        bz_buf_word(line, path);
    }
    bz_buf_puts(line, rest);
}

/* The last words of what was said are seconds, one for each file. */
static int read_said(bz_buf *said, asked *list, int n, bz_error *err)
{
    char *text = (char *)bz_buf_text(said);
    size_t at = said->len;
    for (int i = n - 1; i >= 0; i--) {
        while (at && strchr(" \t\r\n", text[at - 1]))
            text[--at] = 0;
        while (at && !strchr(" \t\r\n", text[at - 1]))
            at--;
        char *end;
        double v = strtod(&text[at], &end);
        if (end == &text[at] || *end || !(v > 0) || !isfinite(v))
            return n == 1 ? bz_fail(err, BZ_FAILED, "the command's last word is no number of seconds")
                          : bz_fail(err, BZ_FAILED, "the command's last %d words are no numbers of seconds", n);
        if (!list[i].known)
            *list[i].seconds = v;
    }
    return 0;
}

/* One file by its name, or several by a list, and each time is written down at once. */
static int measure(timing *j, asked *list, int n, bz_error *err)
{
    BZ_SCOPED(bz_buf) line = {0}, said = {0}, names = {0};
    const char *path = list->path;
    int rc = 0;
    if (j->f->in_turns) {
        for (int i = 0; i < n; i++)
            bz_buf_printf(&names, "%s\n", list[i].path);
        path = path_of(j, "list.txt");
        rc = bz_whole_write(path, &names, err);
    }
    write_command(j, j->f->in_turns ? "{list}" : "{model}", path, &line);
    rc = rc || bz_bench_output((char *[]){(char *)"sh", (char *)"-c", (char *)bz_buf_text(&line), NULL}, &said, err) ||
                 read_said(&said, list, n, err)
             ? -1
             : 0;
    for (int i = 0; i < n && !rc; i++)
        if (!list[i].known)
            bz_buf_printf(&j->log, "%.9g\t%s\t%s\n", *list[i].seconds, list[i].what, j->f->command);
    return rc || bz_whole_write(path_of(j, "times.tsv"), &j->log, err) ? -1 : 0;
}

/* What the folder lacks. One file may end the command for all: each is asked for by itself then. */
static void ask(timing *j, asked *list, int n)
{
    bool lacks = false;
    bz_error why;
    for (int i = 0; i < n; i++)
        lacks |= !list[i].known;
    if (!lacks || bz_bench_stopped() || !measure(j, list, n, &why))
        return;
    for (int i = 0; i < n && n > 1; i++)
        if (!list[i].known)
            ask(j, &list[i], 1);
    if (n == 1) {
        *list->seconds = NAN;
        *list->why = bz_arena_str(j->arena, why.text);
    }
}

static void add_asked(const timing *j, int brick, const asked *all, asked *list, int *n, int *lacking)
{
    if (j->f->why[brick])
        return;
    *lacking += !all[brick].known;
    list[(*n)++] = all[brick];
}

static bool is_asked(const asked *a, const asked *list, int n)
{
    while (n && list[n - 1].what != a->what)
        n--;
    return n;
}

/* Sequences that the model is the first to have, joints behind their first one, which leaves the caches as that one finds them, and the model. Where
 * few of them lack, others of the model take turns with them. */
static int gather(timing *j, int m, const asked *all, asked *list)
{
    const bz_bricks *b = j->b;
    const bz_brick_model *model = &b->model[m];
    int n = 0, lacking = !all[b->n + m].known;
    for (int i = 0; i < b->n; i++) {
        if (b->brick[i].layers == model->layers && b->brick[i].count)
            add_asked(j, i, all, list, &n, &lacking);
        for (int k = 0; k < b->n_joints; k++)
            if (b->joint[k].first == i && b->brick[i].layers == model->layers && !b->brick[b->joint[k].both].count)
                add_asked(j, b->joint[k].both, all, list, &n, &lacking);
    }
    for (int i = 0; i < model->n && lacking && n < FEWEST_IN_TURN; i++)
        if (!j->f->why[model->brick[i]] && !is_asked(&all[model->brick[i]], list, n)) {
            list[n] = all[model->brick[i]];
            list[n++].known = true;
        }
    list[n++] = all[b->n + m];
    return n;
}

void bz_bricks_time(bz_brick_files *f, bz_bricks *b, const char *const *path, int n, bz_arena *arena,
                    void (*warn)(void *user, const char *text), void *user)
{
    timing timed = {.f = f, .b = b, .arena = arena}, *j = &timed;
    asked *all = BZ_NEW(arena, asked, b->n + n), *list = BZ_NEW(arena, asked, b->n + FEWEST_IN_TURN + 1);
    const char **why = BZ_NEW(arena, const char *, n + 1);
    read_times(j);
    for (int i = 0; i < b->n + n; i++) {
        all[i] = i < b->n ? (asked){.what = id_of(j, i),
                                    .path = path_of(j, bz_arena_printf(arena, "%s.onnx", id_of(j, i))),
                                    .seconds = &b->brick[i].seconds,
                                    .why = &f->why[i]}
                          : (asked){.what = path[i - b->n],
                                    .path = path[i - b->n],
                                    .seconds = &b->model[i - b->n].measured,
                                    .why = &why[i - b->n]};
        look_up(j, &all[i]);
    }
    bz_progress progress = bz_progress_start("measuring", f->in_turns ? n : b->n + n);
    bz_bench_hold(); /* what the command started ends with it */
    for (int m = 0; m < n && f->in_turns; m++) {
        ask(j, list, gather(j, m, all, list));
        bz_progress_at(&progress, m + 1, path[m]);
    }
    for (int i = 0; i < b->n + n && !f->in_turns; i++) {
        if (!*all[i].why)
            ask(j, &all[i], 1);
        bz_progress_at(&progress, i + 1, i < b->n ? NULL : path[i - b->n]);
    }
    bz_progress_end(&progress);
    bz_bench_release();
    for (int i = 0; i < n; i++)
        if (why[i]) {
            bz_error said;
            bz_fail(&said, BZ_FAILED, "%s: %s", path[i], why[i]);
            warn(user, said.text);
        }
    bz_map_free(&timed.times);
    bz_buf_free(&timed.log);
}
