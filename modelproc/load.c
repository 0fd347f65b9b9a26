/* Models from their files to their layers; options that people give, and tables of patterns. */
#include "base/whole.h"
#include "modelproc/modelproc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int bz_binds_parse(const char *const *dims, int n, bz_arena *arena, const bz_bind **binds, bz_error *err)
{
    bz_bind *list = BZ_NEW(arena, bz_bind, n);
    *binds = list;
    for (int i = 0; i < n; i++) {
        char *name = bz_arena_str(arena, dims[i]), *equals = strrchr(name, '=');
        if (!equals || equals == name || !equals[1])
            return bz_fail(err, BZ_USAGE, "--dim takes NAME=N, not '%s'", dims[i]);
        *equals = 0;
        list[i] = (bz_bind){name, equals + 1};
    }
    return 0;
}

/* The k-th value of "0,1024,4096". */
static const char *value_at(const char *list, int k, bz_arena *arena)
{
    for (; k > 0; k--)
        list = strchr(list, ',') + 1;
    return bz_arena_strn(arena, list, strcspn(list, ","));
}

static int count_values(const char *list)
{
    int n = 1;
    for (; (list = strchr(list, ',')); list++)
        n++;
    return n;
}

int bz_binds_points(const char *const *dims, int n, int most)
{
    int points = 1;
    for (int i = 0; i < n && points <= most; i++)
        points *= count_values(strrchr(dims[i], '=') ? strrchr(dims[i], '=') : "");
    return points <= most ? points : 0;
}

void bz_binds_choose(const bz_bind *list, int n, int number, bz_arena *arena, bz_bind *point, bz_buf *name)
{
    for (int i = n; i-- > 0;) {
        int values = count_values(list[i].value);
        point[i] = list[i];
        point[i].value = value_at(list[i].value, number % values, arena);
        number /= values;
    }
    for (int i = 0; i < n; i++)
        if (count_values(list[i].value) > 1)
            bz_buf_printf(name, ", %s=%s", list[i].name, point[i].value);
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

int bz_models_load(const char *const *path, int n, const bz_infer_options *options, bz_models *m, bz_error *err)
{
    size_t room = (size_t)m->n + (size_t)n;
    m->model = bz_realloc(m->model, room, sizeof *m->model);
    m->layers = bz_realloc(m->layers, room, sizeof(bz_layers *));
    m->name = bz_realloc((void *)m->name, room, sizeof *m->name);
    allow_many_files();
    for (int i = 0; i < n; i++) {
        if (bz_model_load(path[i], &m->model[m->n], err))
            return -1;
        if (bz_layers_infer(m->model[m->n], options, &m->layers[m->n], err)) {
            bz_model_free(m->model[m->n]);
            return -1;
        }
        m->name[m->n] = bz_arena_str(&m->arena, path[i]);
        m->n++;
    }
    return 0;
}

void bz_models_free(bz_models *m)
{
    for (int i = 0; i < m->n; i++) {
        bz_layers_free(m->layers[i]);
        bz_model_free(m->model[i]);
    }
    bz_arena_free(&m->arena);
    free((void *)m->name);
    free(m->layers);
    free(m->model);
    *m = (bz_models){0};
}

int bz_patterns_load(const char *path, bz_patterns **patterns, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    *patterns = NULL;
    if (bz_patterns_parse(bz_patterns_text, "the built-in patterns", patterns, err))
        return -1;
    int failed = path ? bz_whole_read(path, 1 << 20, "is too long for a table of patterns", &text, err) ||
                            bz_patterns_parse(bz_buf_text(&text), path, patterns, err)
                      : 0;
    if (failed) {
        bz_patterns_free(*patterns);
        *patterns = NULL;
    }
    return failed ? -1 : 0;
}
