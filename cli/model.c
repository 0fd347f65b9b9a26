#include "cli/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* "N=8" -> name and value, in one copy that starts with the name. */
static int split_dims(const bz_list *dims, bz_bind *binds, char **copies, bz_error *err)
{
    for (int i = 0; i < dims->n; i++) {
        copies[i] = strdup(dims->item[i]);
        char *equals = copies[i] ? strrchr(copies[i], '=') : NULL;
        if (!equals || equals == copies[i] || !equals[1])
            return bz_fail(err, BZ_USAGE, "--dim takes NAME=N, not '%s'", dims->item[i]);
        *equals = 0;
        binds[i] = (bz_bind){copies[i], equals + 1};
    }
    return 0;
}

/* Models with weights stay open, each of them; the usual limit is 1,024. */
static void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int load_one(const bz_command *command, const char *path, const bz_infer_options *options, loaded_models *m,
                    bz_error *err)
{
    if (bz_model_load(path, &m->model[m->n], err))
        return -1;
    if (bz_layers_infer(m->model[m->n], options, &m->layers[m->n], err)) {
        bz_model_free(m->model[m->n]);
        return -1;
    }
    const bz_layers *l = m->layers[m->n++];
    for (int i = 0; i < l->n_warnings; i++)
        bz_warn(command, "%s: %s", path, l->warnings[i]);
    return 0;
}

int models_load(const bz_command *command, const bz_list *paths, const model_settings *s, loaded_models *m,
                bz_error *err)
{
    bz_bind *binds = bz_alloc((size_t)s->dims.n, sizeof *binds);
    char **copies = bz_alloc((size_t)s->dims.n, sizeof *copies);
    memset(copies, 0, (size_t)s->dims.n * sizeof *copies);
    bz_infer_options options = {.batch = s->batch,
                                .binds = binds,
                                .n_binds = s->dims.n,
                                .trips = s->trips,
                                .ignore_declared = s->ignore_declared};
    m->model = bz_alloc((size_t)paths->n, sizeof *m->model);
    m->layers = bz_alloc((size_t)paths->n, sizeof(bz_layers *));
    allow_many_files();
    int failed = split_dims(&s->dims, binds, copies, err);
    for (int i = 0; i < paths->n && !failed; i++)
        failed = load_one(command, paths->item[i], &options, m, err);
    for (int i = 0; i < s->dims.n; i++)
        free(copies[i]);
    free(copies);
    free(binds);
    return failed;
}

void models_free(loaded_models *m)
{
    for (int i = 0; i < m->n; i++) {
        bz_layers_free(m->layers[i]);
        bz_model_free(m->model[i]);
    }
    free(m->layers);
    free(m->model);
    *m = (loaded_models){0};
}

/* Tables are small: read whole, with a limit in case somebody names the wrong file. */
static int read_text(const char *path, bz_buf *text, bz_error *err)
{
    enum { LIMIT = 1 << 20 };
    FILE *f = fopen(path, "r");
    char block[4096];
    size_t n;
    if (!f)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    while (text->len <= LIMIT && (n = fread(block, 1, sizeof block, f)) > 0)
        bz_buf_put(text, block, n);
    bool bad = ferror(f) != 0;
    fclose(f);
    if (bad)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read", path);
    return text->len > LIMIT ? bz_fail(err, BZ_BAD_INPUT, "%s: is too long for a table of patterns", path) : 0;
}

int patterns_load(const char *path, bz_patterns **patterns, bz_error *err)
{
    *patterns = NULL;
    if (bz_patterns_parse(bz_patterns_text, "the built-in patterns", patterns, err))
        return -1;
    if (!path)
        return 0;
    bz_buf text = {0};
    int failed = read_text(path, &text, err);
    if (failed) {
        bz_patterns_free(*patterns);
        *patterns = NULL;
    } else {
        failed = bz_patterns_parse(bz_buf_text(&text), path, patterns, err);
    }
    bz_buf_free(&text);
    return failed;
}
