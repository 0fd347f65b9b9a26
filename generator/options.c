/* Options of plans by the names that people give them. */
#include "generator/generator.h"

#include <string.h>

int bz_plan_dtype(const char *name, bz_dtype *out, bz_error *err)
{
    static const bz_dtype TYPES[] = {BZ_F32, BZ_BF16, BZ_F16, BZ_F64, BZ_I8, BZ_F8E4M3};
    *out = BZ_UNDEFINED;
    for (size_t i = 0; name && i < sizeof TYPES / sizeof *TYPES; i++)
        if (!strcmp(name, bz_dtype_name(TYPES[i])) || (TYPES[i] == BZ_I8 && !strcmp(name, "s8")))
            *out = TYPES[i];
    return name && !*out ? bz_fail(err, BZ_USAGE, "--dtype takes f32, bf16, f16, f64, s8 or f8e4m3, not '%s'", name)
                         : 0;
}

static const char *find(const char *const *known, const char *name)
{
    while (*known && strcmp(*known, name) != 0)
        known++;
    return *known;
}

int bz_plan_option(bz_plan_options *o, const char *option, const char *name, bz_error *err)
{
    static const char *const LAYOUTS[] = {"plain", "packed", "nhwc", "any", NULL}, *const MATHS[] = {"tf32", "f16",
                                                                                                     NULL};
    const struct {
        const char *option, *const *known, *const *more;
        const char **list;
        int *n;
    } LISTS[] = {{"backend", bz_processor_backends, bz_device_backends, o->backend, &o->n_backends},
                 {"layout", LAYOUTS, LAYOUTS, o->layout, &o->n_layouts},
                 {"math", MATHS, MATHS, o->math, &o->n_maths}};
    size_t i = 0;
    while (strcmp(LISTS[i].option, option) != 0)
        i++;
    const char *known = find(LISTS[i].known, name);
    known = known ? known : find(LISTS[i].more, name);
    if (!known || *LISTS[i].n == BZ_PLAN_NAMES)
        return bz_fail(err, BZ_USAGE, "--%s: there is no '%s'; see --help", option, name);
    LISTS[i].list[(*LISTS[i].n)++] = known;
    return 0;
}

const char *bz_plan_device(const bz_plan_options *o)
{
    for (int i = 0; i < o->n_backends; i++)
        if (find(bz_device_backends, o->backend[i]))
            return o->backend[i];
    return NULL;
}

bz_plan *bz_plan_of(const bz_plan_options *o, bz_layers *const *layers, const char *const *path, int n)
{
    bz_plan *plan = bz_plan_new(o);
    for (int i = 0; i < n; i++) {
        const char *slash = strrchr(path[i], '/');
        bz_plan_add(plan, layers[i], slash ? slash + 1 : path[i]);
    }
    return plan;
}
