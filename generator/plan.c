/* Plans: every layer of every model, lowered once; every problem once. */
#include "generator/plan.h"
#include "generator/lower.h"

#include <stdlib.h>
#include <string.h>

void bz_plan_free(bz_plan *p)
{
    if (!p)
        return;
    bz_map_free(&p->layer_map);
    bz_map_free(&p->problem_map);
    bz_arena_free(&p->arena);
    bz_buf_free(&p->key);
    free(p->layer);
    free(p->problem);
    free(p->model);
    free(p->places);
    free(p);
}

BZ_ENDS(free_plan, bz_plan_free)

bz_plan *bz_plan_keep(bz_plan *plan, bz_arena *arena)
{
    bz_arena_keep(arena, plan, free_plan);
    return plan;
}

static bool takes(const char *const *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i], name))
            return true;
    return !n;
}

static bool moves_bytes(const char *backend)
{
    const bz_backend_row *b = bz_backend_named(backend);
    return b && b->bytes;
}

static bool allows(const bz_plan_options *o, const bz_problem *p, const char *backend, const char *layout)
{
    return takes(o->backend, o->n_backends, backend) && (!layout || takes(o->layout, o->n_layouts, layout) ||
                                                         bz_problem_has(p, BZ_TRAIT_BYTES) || moves_bytes(backend));
}

bool bz_plan_allows(const bz_plan *plan, const bz_problem *p, const char *backend, const char *layout)
{
    return allows(&plan->options, p, backend, layout);
}

bool plan_allows_math(const bz_plan_options *o, const char *math)
{
    for (int i = 0; i < o->n_maths; i++)
        if (!strcmp(o->math[i], math))
            return true;
    return !bz_has_word("tf32 f16 bf16", math);
}

bool bz_plan_options_take(const bz_plan_options *o, const bz_record *r)
{
    bz_problem p;
    if (!plan_allows_math(o, r->variant.math))
        return false;
    return (!o->n_backends && !o->n_layouts) ||
           (!bz_problem_parse(r->problem, &p, NULL) && allows(o, &p, r->variant.backend, r->variant.layout));
}

const bz_plan_options *bz_plan_asked(const bz_plan *plan)
{
    return &plan->options;
}

bool plan_has_space(const bz_problem *p)
{
    bz_operand list[BZ_PROBLEM_OPERANDS];
    bz_problem_operands(p, list);
    return list[0].rank >= 3 && list[0].rank <= 5;
}

/* Whether the user named a backend of the device's, or of the processor's. */
static bool names_backend(const bz_plan_options *o, bool device)
{
    bool found = false;
    for (int i = 0; i < o->n_backends; i++)
        found |= bz_backend_is_on(o->backend[i], device);
    return found;
}

bz_plan *bz_plan_new(const bz_plan_options *options)
{
    bz_plan *p = bz_alloc(1, sizeof *p);
    *p = (bz_plan){.options = *options};
    if (options->dtype == BZ_I8 && (!options->n_backends || names_backend(options, false)))
        p->options.dtype = BZ_U8;
    return p;
}

static void add_family(bz_plan_problem *p, const char *backend, const char *layout, const char *math)
{
    if (p->n_families < BZ_PLAN_FAMILIES)
        p->family[p->n_families++] = (bz_plan_family){backend, layout, math, true};
}

/* f32 is computed in fewer bits; sums of f16 are f16 instead of f32. */
static bool plan_has_math(const bz_problem *p, const char *math)
{
    return p->dtype == BZ_F32 || (p->dtype == BZ_F16 && !strcmp(math, "f16"));
}

/* The families that a backend has of such problems; NULL: it is not asked for them. */
static const bz_backend_family *family_of(const bz_backend_row *b, const bz_problem *p)
{
    const char *kind = bz_problem_kind_name(p->kind);
    for (int i = 0; p->post[i].fn; i++)
        if (p->post[i].fn == BZ_FN_KEEP && !b->keeps)
            return NULL;
    for (const bz_backend_family *f = b->family; f->kinds; f++)
        if (bz_has_word(f->kinds, kind))
            return f;
    return NULL;
}

/* What cuDNN's own layout is for: bytes in blocks of 32 channels. */
static bool fills_blocks(const bz_problem *p)
{
    return p->dtype == BZ_I8 && p->conv.w[0] % 32 == 0 && p->conv.w[1] % 32 == 0;
}

static void choose_families(const bz_plan *plan, bz_plan_problem *p)
{
    const bz_plan_options *o = &plan->options;
    bool space = plan_has_space(p->problem), product = bz_problem_has(p->problem, BZ_TRAIT_PRODUCT);
    for (const bz_backend_row *b = bz_backends; b->name; b++) {
        const bz_backend_family *f = family_of(b, p->problem);
        if (!f || (b->device && !o->n_backends))
            continue;
        for (int k = 0; k < BZ_N_LAYOUTS; k++) {
            if (!bz_has_word(f->layouts, bz_layouts[k]) || (!product && k >= 2 && !space) ||
                (p->problem->kind == BZ_PROBLEM_MATMUL && k == 1 && !p->problem->matmul.constant))
                continue;
            if (b->device && !strcmp(bz_layouts[k], "any") && !fills_blocks(p->problem))
                continue;
            if (!bz_plan_allows(plan, p->problem, b->name, bz_layouts[k]))
                continue;
            add_family(p, b->name, bz_layouts[k], "default");
            for (int m = 0; m < o->n_maths; m++)
                if (bz_has_word(f->maths, o->math[m]) && plan_has_math(p->problem, o->math[m]))
                    add_family(p, b->name, bz_layouts[k], o->math[m]);
        }
    }
}

static int add_problem(bz_plan *plan, const bz_problem *problem, const char *text, int layer, bool wanted)
{
    uint32_t k = bz_map_add(&plan->problem_map, text, strlen(text), (uint32_t)plan->n_problems);
    bool made = k == (uint32_t)plan->n_problems;
    if (made)
        BZ_ADD(plan->problem, plan->n_problems) = (bz_plan_problem){.problem = problem, .text = text, .layer = layer};
    bz_plan_problem *p = &plan->problem[k];
    if (wanted && !p->n_families) {
        p->layer = layer;
        choose_families(plan, p);
    }
    return (int)k;
}

/* Whether there is a library for each call, on the processor or on the device, wherever the plan is for. Where one call has
 * none, nobody runs the others for this. */
bool bz_plan_offers(const bz_plan *plan, const bz_alternative *a)
{
    const bz_plan_options *o = &plan->options;
    bool processor = !o->n_backends || names_backend(o, false), device = names_backend(o, true);
    if (!device && a->n > 1 && a->problem[0].kind == BZ_PROBLEM_PAD)
        return false; /* libraries of the processor take any padding in the call behind it */
    for (int i = 0; i < a->n; i++) {
        const bz_backend_row *b = bz_backends;
        while (b->name && !((b->device ? device : processor) && family_of(b, &a->problem[i])))
            b++;
        if (!b->name)
            return false;
    }
    return true;
}

/* On the processor our loops run whatever there is an alternative for: a copy need not stand in. */
static bool runs_anyway(const bz_plan *plan, const bz_lowering *low)
{
    const bz_plan_options *o = &plan->options;
    if (o->n_backends)
        return false;
    for (int a = 0; a < low->n; a++)
        if (!low->alternative[a].fallback && bz_plan_offers(plan, &low->alternative[a]) &&
            !lower_is_narrow(low->alternative[a].problem[0].dtype))
            return true;
    return false;
}

static void add_problems(bz_plan *plan, bz_plan_layer *item, int layer)
{
    const bz_lowering *low = &item->lowering;
    int most = 0, n = 0;
    for (int a = 0; a < low->n; a++)
        most += low->alternative[a].n;
    int *list = BZ_NEW(&plan->arena, int, most);
    for (int a = 0; a < low->n; a++) {
        bz_alternative *alternative = &low->alternative[a];
        int *number = BZ_NEW(&plan->arena, int, alternative->n);
        bool offered = bz_plan_offers(plan, alternative) && !(alternative->fallback && runs_anyway(plan, low));
        for (int i = 0; i < alternative->n; i++) {
            int k = add_problem(plan, &alternative->problem[i], alternative->text[i], layer, offered), j = 0;
            number[i] = k;
            while (j < n && list[j] != k)
                j++;
            if (j == n)
                list[n++] = k;
        }
        alternative->number = number;
    }
    item->problem = list;
    item->n_problems = n;
}

/* Besides its key, what lowering looks at: types, and whether weights are constant. */
static void layer_key(const bz_layer *layer, bz_buf *key)
{
    bz_buf_clear(key);
    bz_buf_puts(key, layer->key);
    bz_buf_puts(key, layer->n_in > 1 && layer->in_constant[1] ? " constant" : "");
    for (int i = 0; i < layer->n_in + layer->n_out; i++) {
        const bz_type *t = i < layer->n_in ? &layer->in[i] : &layer->out[i - layer->n_in];
        if (t->dtype != BZ_F32) {
            bz_buf_putc(key, ' ');
            bz_buf_int(key, i);
            bz_buf_putc(key, '=');
            bz_buf_int(key, (int)t->dtype);
        }
    }
}

/* "conv", "conv+batchnorm" -> conv_batchnorm: names of patterns are their author's. */
static void name_file(const char *what, const bz_buf *key, char out[64])
{
    char hex[33];
    size_t n = 0;
    for (const char *k = what; *k && n < 40; k++) {
        if ((*k >= 'a' && *k <= 'z') || (*k >= '0' && *k <= '9' && n))
            out[n++] = *k;
        else if (n && out[n - 1] != '_')
            out[n++] = '_';
    }
    if (!n)
        out[n++] = 'x';
    bz_hash_hex(bz_hash_bytes(key->data, key->len), hex);
    if (out[n - 1] != '_')
        out[n++] = '_';
    memcpy(out + n, hex, 16);
    out[n + 16] = 0;
}

static void count_use(bz_plan *plan, bz_plan_layer *item, int model)
{
    item->count++;
    bz_uses_add(&item->uses, &plan->arena, model);
}

/* The item of this name (in plan->key), which is made if need be: then *made is set. */
static uint32_t add_item(bz_plan *plan, const bz_layer *layer, const char *what, bool *made)
{
    uint32_t k = bz_map_number(&plan->layer_map, &plan->arena, plan->key.data, plan->key.len);
    *made = k == (uint32_t)plan->n_layers;
    if (!*made)
        return k;
    BZ_ROOM(plan->layer, plan->n_layers);
    bz_plan_layer *item = &plan->layer[plan->n_layers++];
    *item = (bz_plan_layer){.layer = layer};
    if (layer)
        item->key = layer->key, item->first_name = layer->name;
    name_file(what, &plan->key, item->file);
    return k;
}

static const bz_lowering *add_layer(bz_plan *plan, const bz_layer *layer, int model)
{
    bool made;
    layer_key(layer, &plan->key);
    uint32_t k = add_item(plan, layer, layer->kind, &made);
    if (made) {
        bz_lower(layer, plan->options.dtype, &plan->arena, &plan->layer[k].lowering);
        add_problems(plan, &plan->layer[k], (int)k);
    }
    count_use(plan, &plan->layer[k], model);
    return &plan->layer[k].lowering;
}

/* Groups of one pattern that come to the same calls are one. */
static void group_key(const bz_match *match, const bz_lowering *low, bz_buf *key)
{
    bz_buf_clear(key);
    bz_buf_printf(key, "[%s] %s", match->pattern, low->why ? low->why : "");
    for (int a = 0; a < low->n; a++)
        for (int i = 0; i < low->alternative[a].n; i++)
            bz_buf_printf(key, "%s%s", i ? "; " : " | ", low->alternative[a].text[i]);
}

static const char *member_keys(bz_plan *plan, const bz_layers *layers, const bz_match *match)
{
    bz_buf_clear(&plan->key);
    bz_buf_puts(&plan->key, match->pattern);
    for (int i = 0; i < match->n; i++)
        bz_buf_printf(&plan->key, "%s %s", i ? ";" : ":", layers->layer[match->layer[i]].key);
    return bz_arena_strn(&plan->arena, plan->key.data, plan->key.len);
}

/* What patterns find, and layers that need not run at all. */
static void add_groups(bz_plan *plan, bz_layers *layers, int model)
{
    const bz_match *match;
    bz_spares spare;
    bz_spares_find(layers, &spare);
    int n = bz_patterns_find(plan->options.patterns, layers, &spare, &match);
    bz_plan_place *place = BZ_NEW(&plan->arena, bz_plan_place, n + spare.n);
    for (int i = 0; i < n; i++) {
        const bz_layer *result = &layers->layer[match[i].layer[match[i].n - 1]];
        bz_lowering low;
        bool made;
        bz_lower_group(plan->places[model].lowered, &match[i], &plan->arena, &low);
        group_key(&match[i], &low, &plan->key);
        uint32_t k = add_item(plan, result, match[i].pattern, &made);
        if (made) {
            plan->layer[k].pattern = bz_arena_str(&plan->arena, match[i].pattern);
            plan->layer[k].key = member_keys(plan, layers, &match[i]);
            plan->layer[k].lowering = low;
            add_problems(plan, &plan->layer[k], (int)k);
        }
        count_use(plan, &plan->layer[k], model);
        place[i] =
            (bz_plan_place){match[i].layer, match[i].n, (int)k, BZ_RUNS, match[i].shared, match[i].stands != NULL};
    }
    for (int i = 0; i < spare.n; i++)
        place[n + i] =
            (bz_plan_place){.layer = spare.match[i].layer, .n = 1, .group = -1, .spare = spare.match[i].spare};
    plan->places[model].place = place, plan->places[model].n_places = n + spare.n;
}

/* Layers of one key are lowered once; `lowered`, of the main graph where groups are looked for, gets that. */
static void add_graph(bz_plan *plan, const bz_layer *layers, int n, int model, bz_lowered *lowered)
{
    for (int i = 0; i < n; i++) {
        for (int b = 0; b < layers[i].n_bodies; b++)
            add_graph(plan, layers[i].bodies[b].layers, layers[i].bodies[b].n, model, NULL);
        if (layers[i].class == BZ_VIEW || layers[i].class == BZ_CONSTANT || layers[i].n_bodies)
            continue;
        const bz_lowering *low = add_layer(plan, &layers[i], model);
        if (lowered)
            lowered->wanted[i] = *low;
    }
}

static int add_model(bz_plan *plan, const char *name)
{
    int model = plan->n_models++;
    plan->model = bz_realloc(plan->model, (size_t)model + 1, sizeof *plan->model);
    plan->model[model] = bz_arena_str(&plan->arena, name);
    plan->places = bz_realloc(plan->places, (size_t)model + 1, sizeof *plan->places);
    plan->places[model] = (plan_model){0};
    return model;
}

static bz_lowering lower_to(bz_plan *plan, const bz_problem *problem)
{
    bz_alternative *a = BZ_NEW(&plan->arena, bz_alternative, 1);
    const char **text = BZ_NEW(&plan->arena, const char *, 1);
    bz_buf_clear(&plan->key);
    bz_problem_print(problem, &plan->key);
    *text = bz_arena_strn(&plan->arena, plan->key.data, plan->key.len);
    *a = (bz_alternative){.n = 1, .problem = bz_arena_dup(&plan->arena, problem, sizeof *problem), .text = text};
    return (bz_lowering){.alternative = a, .n = 1};
}

void bz_plan_add_problems(bz_plan *plan, const bz_layers *layers, const bz_problem *const *problem, const char *name)
{
    int model = add_model(plan, name);
    for (int i = 0; i < layers->n; i++) {
        bool made;
        layer_key(&layers->layer[i], &plan->key);
        uint32_t k = add_item(plan, &layers->layer[i], layers->layer[i].kind, &made);
        if (made) {
            plan->layer[k].lowering = lower_to(plan, problem[i]);
            add_problems(plan, &plan->layer[k], (int)k);
        }
        count_use(plan, &plan->layer[k], model);
    }
}

void bz_plan_add(bz_plan *plan, bz_layers *layers, const char *name)
{
    int model = add_model(plan, name);
    if (plan->options.patterns)
        plan->places[model].lowered = bz_lowered_new(layers, plan->options.dtype, &plan->arena);
    add_graph(plan, layers->layer, layers->n, model, plan->places[model].lowered);
    if (plan->options.patterns)
        add_groups(plan, layers, model);
}

int bz_plan_add_text(bz_plan *plan, const char *text, bz_error *err)
{
    bz_problem problem;
    bool made;
    if (bz_problem_parse(text, &problem, err))
        return -1;
    bz_lowering low = lower_to(plan, &problem); /* its canonical text is in plan->key */
    uint32_t k = add_item(plan, NULL, bz_problem_kind_name(problem.kind), &made);
    bz_plan_layer *item = &plan->layer[k];
    if (made) {
        item->key = item->first_name = low.alternative->text[0];
        item->lowering = low;
        add_problems(plan, item, (int)k);
        if (!plan->problem[item->problem[0]].n_families)
            return bz_fail(err, BZ_USAGE, "no backend is asked for '%s': name one that has it", item->key);
    }
    item->count++;
    return 0;
}

int bz_plan_places(const bz_plan *plan, int model, const bz_plan_place **place)
{
    *place = plan->places[model].place;
    return plan->places[model].n_places;
}

bz_lowered *bz_plan_lowered(const bz_plan *plan, int model)
{
    return plan->places[model].lowered;
}

int bz_plan_layers(const bz_plan *plan, const bz_plan_layer **layer)
{
    *layer = plan->layer;
    return plan->n_layers;
}

int bz_plan_problems(const bz_plan *plan, const bz_plan_problem **problem)
{
    *problem = plan->problem;
    return plan->n_problems;
}

int bz_plan_measurable(const bz_plan *plan)
{
    int n = 0;
    for (int i = 0; i < plan->n_problems; i++)
        n += plan->problem[i].n_families > 0;
    return n;
}

const bz_plan_problem *bz_plan_find_problem(const bz_plan *plan, const char *text)
{
    uint32_t k = bz_map_get(&plan->problem_map, text, strlen(text));
    return k == BZ_MAP_NONE ? NULL : &plan->problem[k];
}

int bz_plan_models(const bz_plan *plan, const char *const **name)
{
    *name = plan->model;
    return plan->n_models;
}

const bz_plan_layer *bz_plan_find(const bz_plan *plan, const bz_layer *layer)
{
    BZ_SCOPED(bz_buf) key = {0};
    layer_key(layer, &key);
    uint32_t k = bz_map_get(&plan->layer_map, key.data, key.len);
    return k == BZ_MAP_NONE ? NULL : &plan->layer[k];
}

int bz_plan_skip(bz_plan *plan, bz_perfdb *db, const bz_system *system, const bz_setting *setting,
                 const bz_remeasure *again, bz_error *err)
{
    BZ_SCOPED(bz_arena) arena = {0};
    int rc = 0;
    for (int i = 0; i < plan->n_problems && !rc; i++) {
        bz_plan_problem *p = &plan->problem[i];
        bz_record *records;
        size_t n;
        rc = bz_perfdb_variants(db, system, p->text, &arena, &records, &n, err);
        n = rc ? 0 : bz_records_keep(records, n, again);
        for (int f = 0; f < p->n_families && !rc; f++) {
            const bz_variant family = {p->family[f].backend, "", p->family[f].layout, p->family[f].math};
            p->family[f].wanted &= !bz_records_complete(records, n, &family, setting);
        }
    }
    return rc;
}

void bz_plan_choose(bz_plan *plan, bool (*wanted)(void *user, int problem, int family), void *user)
{
    for (int i = 0; i < plan->n_problems; i++)
        for (int f = 0; f < plan->problem[i].n_families; f++)
            plan->problem[i].family[f].wanted = wanted(user, i, f);
}

int bz_plan_wanted(const bz_plan *plan, int *families)
{
    int problems = 0, all = 0;
    for (int i = 0; i < plan->n_problems; i++) {
        int before = all;
        for (int f = 0; f < plan->problem[i].n_families; f++)
            all += plan->problem[i].family[f].wanted;
        problems += all > before;
    }
    if (families)
        *families = all;
    return problems;
}
