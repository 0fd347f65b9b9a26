/* Models that a recording may be of. */
#include "analysis/analysis.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REMEMBERED = 200, MOST = 600 };

typedef struct loading {
    bz_candidates *out;
    bz_candidate *item; /* [MOST] */
    bz_arena *arena;
    bz_map known; /* paths */
} loading;

/* A pipe or a device would keep us waiting. */
static bool is_file(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

BZ_ENDS(free_model, bz_model_free)

BZ_ENDS(free_layers, bz_layers_free)

static int read_model(loading *l, const char *path, bz_layers **layers, bz_error *err)
{
    const bz_infer_options options = {0};
    bz_model *model;
    if (bz_model_load(path, &model, err))
        return -1;
    bz_arena_keep(l->arena, model, free_model);
    if (bz_layers_infer(model, &options, layers, err))
        return -1;
    bz_arena_keep(l->arena, *layers, free_layers);
    return 0;
}

static void load(loading *l, const char *path, const char *name, const char *from, const char **complaint)
{
    bz_layers *layers;
    bz_error err = {0};
    char real[PATH_MAX];
    if (l->out->n == MOST || (!complaint && !is_file(path)))
        return;
    const char *key = bz_arena_str(l->arena, realpath(path, real) ? real : path);
    if (bz_map_add(&l->known, key, strlen(key), 1) != 1)
        return;
    if (!read_model(l, path, &layers, &err))
        l->item[l->out->n++] = (bz_candidate){bz_arena_str(l->arena, name), from, layers};
    else if (complaint)
        *complaint = bz_arena_str(l->arena, err.text);
}

static bool is_model(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && !strcmp(name + n - 5, ".onnx");
}

static void load_bundled(loading *l)
{
    const char **files;
    char folder[BZ_FOLDER_MAX], path[PATH_MAX];
    int n = bz_folder_bundled("models", folder) ? bz_folder_list(folder, is_model, l->arena, &files) : 0;
    for (int k = 0; k < n; k++)
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, files[k]) < sizeof path)
            load(l, path, files[k], "bundled", NULL);
}

static const char *memory_of(const char *db, bz_arena *arena)
{
    BZ_FREED char *where = bz_perfdb_where(db);
    return bz_arena_printf(arena, "%s/models.txt", where);
}

/* The paths in the file, oldest first; at most REMEMBERED. */
static int read_memory(const char *path, bz_arena *arena, const char *list[REMEMBERED])
{
    char line[PATH_MAX + 2];
    int n = 0;
    FILE *f = is_file(path) ? fopen(path, "r") : NULL;
    while (f && n < REMEMBERED && fgets(line, sizeof line, f)) {
        size_t length = strcspn(line, "\n");
        line[length] = 0;
        if (*line == '/')
            list[n++] = bz_arena_str(arena, line);
    }
    if (f)
        fclose(f);
    return n;
}

void bz_candidates_remember(const char *const *model, int n_models, const char *db)
{
    BZ_SCOPED(bz_arena) arena = {0};
    const char *list[REMEMBERED], *file = memory_of(db, &arena);
    const char *fresh = bz_arena_printf(&arena, "%s.%ld", file, (long)getpid());
    int n = read_memory(file, &arena, list), before = n;
    for (int i = 0; i < n_models; i++) {
        char real[PATH_MAX];
        int known = 0;
        if (!realpath(model[i], real) || strchr(real, '\n'))
            continue;
        while (known < n && strcmp(list[known], real) != 0)
            known++;
        if (known < n)
            continue;
        if (n == REMEMBERED)
            memmove(list, list + 1, (size_t)--n * sizeof *list);
        list[n++] = bz_arena_str(&arena, real);
        before = -1;
    }
    FILE *f = before == n ? NULL : fopen(fresh, "wx");
    for (int i = 0; f && i < n; i++)
        fprintf(f, "%s\n", list[i]);
    if (f && (fclose(f) || rename(fresh, file)))
        unlink(fresh);
}

void bz_candidates_load(const char *const *given, int n_given, const char *db, bz_arena *arena, bz_candidates *out)
{
    const char *list[REMEMBERED];
    *out = (bz_candidates){.complaint = BZ_NEW(arena, const char *, n_given)};
    loading l = {.out = out, .item = BZ_NEW(arena, bz_candidate, MOST), .arena = arena};
    for (int i = 0; i < n_given; i++)
        load(&l, given[i], given[i], "given", &out->complaint[i]);
    load_bundled(&l);
    int n = read_memory(memory_of(db, arena), arena, list);
    for (int i = 0; i < n; i++)
        load(&l, list[i], list[i], "analysed before", NULL);
    bz_map_free(&l.known);
    out->item = l.item;
}
