/* Options of plans by the names that people give them. */
#include "generator/generator.h"

#include <string.h>
#include <strings.h>

int bz_plan_dtype(const char *name, bz_dtype *out, bz_error *err)
{
    static const bz_dtype TYPES[] = {BZ_F32, BZ_BF16, BZ_F16, BZ_F64, BZ_I8, BZ_F8E4M3, BZ_F4E2M1};
    static const char *const NAMES[] = {"f32", "bf16", "f16", "f64", "s8", "f8e4m3", "f4e2m1"};
    static const struct {
        const char *name, *ours;
    } FOREIGN[] = {{"float32", "f32"}, {"float", "f32"},     {"fp32", "f32"},   {"single", "f32"},
                   {"float16", "f16"}, {"half", "f16"},      {"fp16", "f16"},   {"bfloat16", "bf16"},
                   {"float64", "f64"}, {"double", "f64"},    {"fp64", "f64"},   {"int8", "s8"},
                   {"fp8", "f8e4m3"},  {"float8", "f8e4m3"}, {"fp4", "f4e2m1"}, {"nvfp4", "f4e2m1"}};
    enum { N = sizeof TYPES / sizeof *TYPES };
    *out = BZ_UNDEFINED;
    for (int i = 0; name && i < N; i++)
        if (!strcmp(name, NAMES[i]) || !strcmp(name, bz_dtype_name(TYPES[i]))) /* i8 is s8 */
            *out = TYPES[i];
    for (size_t i = 0; name && !*out && i < sizeof FOREIGN / sizeof *FOREIGN; i++)
        if (!strcasecmp(name, FOREIGN[i].name))
            return bz_fail(err, BZ_USAGE, "--dtype has no '%s': that type is called %s here", name, FOREIGN[i].ours);
    return name && !*out ? bz_choice_fail(err, "--dtype", name, NAMES, N) : 0;
}

static const char *backend(int i)
{
    return bz_backends[i].name;
}

static const char *layout(int i)
{
    return i < BZ_N_LAYOUTS ? bz_layouts[i] : NULL;
}

static const char *math(int i)
{
    static const char *const MODES[] = {"tf32", "f16", NULL};
    return MODES[i];
}

int bz_plan_option(bz_plan_options *o, bz_plan_list which, const char *const *given, int n_given, bz_error *err)
{
    const struct {
        const char *option, *(*name)(int i), **list; /* name: of each value there is, and NULL behind the last */
        int *n;
    } LISTS[] = {[BZ_PLAN_BACKENDS] = {"--backend", backend, o->backend, &o->n_backends},
                 [BZ_PLAN_LAYOUTS] = {"--layout", layout, o->layout, &o->n_layouts},
                 [BZ_PLAN_MATHS] = {"--math", math, o->math, &o->n_maths}},
      *l = &LISTS[which];
    const char *names[BZ_PLAN_NAMES];
    int n = 0;
    for (; n < BZ_PLAN_NAMES && l->name(n); n++)
        names[n] = l->name(n);
    for (int i = 0; i < n_given; i++) {
        int k = 0;
        while (k < n && strcmp(given[i], names[k]) != 0)
            k++;
        if (k == n)
            return bz_choice_fail(err, l->option, given[i], names, n);
        if (*l->n == BZ_PLAN_NAMES)
            return bz_fail(err, BZ_USAGE, "%s may be given at most %d times", l->option, BZ_PLAN_NAMES);
        l->list[(*l->n)++] = names[k];
    }
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
