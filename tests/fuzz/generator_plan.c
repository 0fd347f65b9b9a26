/* Any bytes through load, inference and a plan with groups, to sources. The first byte chooses options.
 * Promised: a layer or group has alternatives, or is free, or says why not; what is planned are valid
 * problems whose text is canonical; places are in
 * range; a source's first comment ends before its first include; the cover is a legal one. */
#include "generator/generator.h"

#include "fuzz.h"

#include <math.h>
#include <string.h>

const size_t fuzz_header_size = 1;

static void check_lowering(const bz_lowering *low)
{
    PROMISE(low->free ? !low->n : low->n || (low->why && *low->why));
    for (int a = 0; a < low->n; a++) {
        PROMISE(low->alternative[a].n > 0);
        for (int i = 0; i < low->alternative[a].n; i++) {
            bz_problem p;
            bz_error err = {0};
            bz_buf text = {0};
            PROMISE(!bz_problem_parse(low->alternative[a].text[i], &p, &err));
            bz_problem_print(&p, &text);
            PROMISE(!strcmp(bz_buf_text(&text), low->alternative[a].text[i]));
            SAW(text.data, text.len);
            bz_buf_free(&text);
        }
    }
}

/* Each layer costs 1, each group a little less for each layer in it. */
static void check_cover(const bz_layers *l, const bz_plan_place *place, int n)
{
    bz_arena arena = {0};
    double *seconds = BZ_NEW(&arena, double, l->n);
    bool *taken = BZ_NEW(&arena, bool, n), *covered = BZ_NEW(&arena, bool, l->n);
    bz_cover_group *group = BZ_NEW(&arena, bz_cover_group, n);
    for (int i = 0; i < l->n; i++)
        seconds[i] = 1;
    for (int g = 0; g < n; g++)
        group[g] = (bz_cover_group){place[g].layer, place[g].n, 0.5 * place[g].n + g % 3};
    PROMISE(bz_cover(l->n, seconds, n, group, taken, &arena) <= l->n);
    for (int g = 0; g < n; g++)
        for (int i = 0; taken[g] && i < group[g].n; i++) {
            PROMISE(!covered[group[g].node[i]]);
            covered[group[g].node[i]] = true;
        }
    bz_arena_free(&arena);
}

static void plan_it(bz_layers *l, bz_dtype dtype)
{
    static bz_patterns *patterns; /* parsed once */
    bz_error err = {0};
    const bz_plan_layer *item;
    const bz_plan_place *place;
    PROMISE(patterns || !bz_patterns_parse(bz_patterns_text, "patterns", &patterns, &err));
    bz_plan *plan = bz_plan_new(&(bz_plan_options){.dtype = dtype, .patterns = patterns});
    bz_plan_add(plan, l, "fuzz");
    int n = bz_plan_layers(plan, &item), places = bz_plan_places(plan, 0, &place);
    for (int i = 0; i < n; i++) {
        bz_buf text = {0};
        check_lowering(&item[i].lowering);
        bz_generate_source(plan, &item[i], &text);
        const char *end = strstr(bz_buf_text(&text), "*/"), *include = strstr(bz_buf_text(&text), "\n#include");
        PROMISE(end && include && end < include && !memchr(bz_buf_text(&text), 0, text.len));
        bz_buf_free(&text);
    }
    for (int i = 0; i < places; i++) {
        SAW(place[i].layer, (size_t)place[i].n * sizeof *place[i].layer);
        if (place[i].spare)
            PROMISE(place[i].group < 0 && place[i].n == 1);
        else
            PROMISE(place[i].group >= 0 && place[i].group < n && item[place[i].group].pattern);
        for (int k = 0; k < place[i].n; k++)
            PROMISE(place[i].layer[k] >= 0 && place[i].layer[k] < l->n &&
                    (!k || place[i].layer[k - 1] < place[i].layer[k]));
    }
    check_cover(l, place, places);
    bz_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const bz_dtype TYPES[] = {BZ_UNDEFINED, BZ_BF16, BZ_I8, BZ_F64};
    bz_model *m;
    bz_layers *l;
    bz_error err = {0};
    if (size < fuzz_header_size || bz_model_parse(data + 1, size - 1, "fuzz", &m, &err))
        return 0;
    if (!bz_layers_infer(m, &(bz_infer_options){.batch = data[0] & 4 ? 3 : 0, .open_inputs = data[0] & 8}, &l, &err)) {
        plan_it(l, TYPES[data[0] & 3]);
        bz_layers_free(l);
    }
    bz_model_free(m);
    return 0;
}
