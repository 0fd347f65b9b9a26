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

static const char *backend_named(const char *name)
{
    const bz_backend_row *b = bz_backend_named(name);
    return b ? b->name : NULL;
}

static const char *math_named(const char *name)
{
    return !strcmp(name, "tf32") ? "tf32" : !strcmp(name, "f16") ? "f16" : NULL;
}

int bz_plan_option(bz_plan_options *o, const char *option, const char *name, bz_error *err)
{
    const struct {
        const char *option, *(*named)(const char *name), **list;
        int *n;
    } LISTS[] = {{"backend", backend_named, o->backend, &o->n_backends},
                 {"layout", bz_layout_named, o->layout, &o->n_layouts},
                 {"math", math_named, o->math, &o->n_maths}};
    size_t i = 0;
    while (strcmp(LISTS[i].option, option) != 0)
        i++;
    const char *known = LISTS[i].named(name);
    if (!known || *LISTS[i].n == BZ_PLAN_NAMES)
        return bz_fail(err, BZ_USAGE, "--%s: there is no '%s'; see --help", option, name);
    LISTS[i].list[(*LISTS[i].n)++] = known;
    return 0;
}

const char *bz_plan_device(const bz_plan_options *o)
{
    for (int i = 0; i < o->n_backends; i++)
        if (bz_backend_is_on(o->backend[i], true))
            return o->backend[i];
    return NULL;
}

bz_plan *bz_plan_of(const bz_plan_options *o, bz_layers *const *layers, const char *const *path, int n)
{
    bz_plan *plan = bz_plan_new(o);
    for (int i = 0; i < n; i++)
        bz_plan_add(plan, layers[i], bz_file_name(path[i]));
    return plan;
}
