/* The plan as a file: what was chosen, by layer. */
#include "base/member.h"
#include "replay/bind.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static const char *const STEPS[] = {"call", "view", "loop"};

static void put_step(const bz_replay_plan *p, int i, bz_json *j)
{
    const bz_replay_step *s = &p->step[i];
    const bz_replay_choice *c = &p->choice[i];
    bz_json_key_str(j, "step", s->once ? "constant" : STEPS[s->kind]);
    if (s->kind == BZ_STEP_CALL && !s->once) {
        const bz_replay_option *o = &c->option[c->taken];
        bz_json_key_str(j, "problem", c->text);
        BZ_PUT(j, bz_replay_option, o, backend, algorithm, layout, math);
        if (isfinite(o->seconds) && o->seconds > 0)
            bz_json_key_num(j, "seconds", o->seconds);
        bz_json_key_str(j, "provenance", bz_record_provenance_name(o->provenance));
    }
}

static void put_unit(const bz_replay_plan *p, const bz_replay_unit *u, bz_json *j)
{
    bz_json_object(j);
    bz_json_key_str(j, "name", u->name);
    if (u->pattern)
        bz_json_key_str(j, "pattern", u->pattern);
    BZ_JSON_LIST(j, "layers", str, i, u->n, p->layers->layer[u->layer[i]].name);
    BZ_JSON_EACH (j, "steps", i, u->n_steps)
        put_step(p, u->first + i, j);
    bz_json_object_end(j);
}

void bz_replay_json(const bz_replay_plan *p, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, 4, "replay-plan", 2);
    BZ_JSON(&j, BZ_TELL("model", p->model), BZ_TELL("dtype", p->dtype ? bz_dtype_name(p->dtype) : ""),
            BZ_TELL("system", p->system), BZ_TELL("threads", p->setting.threads), BZ_TELL("seconds", p->seconds),
            BZ_TELL("modelled", p->modelled));
    bz_json_key_array(&j, "units");
    for (int i = 0; i < p->n_units; i++)
        if (p->unit[i].n_steps)
            put_unit(p, &p->unit[i], &j);
    bz_json_array_end(&j);
    bz_json_document_end(&j);
}

/* A short word of printable characters; NULL where it is none. */
static const char *word(const cJSON *object, const char *key, size_t most)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    const char *s = cJSON_GetStringValue(item);
    if (!s || strlen(s) >= most)
        return NULL;
    for (const char *c = s; *c; c++)
        if (*c < ' ' || *c > '~')
            return NULL;
    return s;
}

static int follow_call(bz_replay_plan *p, int i, const cJSON *step, bz_error *err)
{
    bz_replay_choice *c = &p->choice[i];
    const char *name = p->step[i].name;
    const cJSON *problem = cJSON_GetObjectItemCaseSensitive(step, "problem");
    const char *text = cJSON_GetStringValue(problem), *backend = word(step, "backend", 16),
               *algorithm = word(step, "algorithm", 160), *layout = word(step, "layout", 16),
               *math = word(step, "math", 16);
    if (!text || strcmp(text, c->text) != 0)
        return bz_fail(err, BZ_BAD_INPUT, "the plan has another problem at '%s' than the model; expected '%s'", name,
                       c->text);
    if (!backend || !algorithm || !layout || !math || !bz_backend_is_on(backend, p->device) ||
        !bz_layout_named(layout) || !bz_has_word("default bf16 f16 tf32", math))
        return bz_fail(err, BZ_BAD_INPUT,
                       "the plan names no variant at '%s': it takes backend, algorithm, layout, math", name);
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(step, "seconds");
    double v = cJSON_IsNumber(seconds) ? seconds->valuedouble : 0;
    const char *provenance = word(step, "provenance", 16);
    bool measured = provenance && strcmp(provenance, "modelled") != 0;
    c->option[0] = (bz_replay_option){
        .backend = bz_arena_str(&p->arena, backend),
        .algorithm = bz_arena_str(&p->arena, algorithm),
        .layout = bz_arena_str(&p->arena, layout),
        .math = bz_arena_str(&p->arena, math),
        .seconds = isfinite(v) && v > 0 ? v : 0,
        .provenance = measured ? BZ_PROVENANCE_MEASURED : BZ_PROVENANCE_MODELLED,
    };
    c->n = 1;
    c->taken = 0;
    return 0;
}

static int follow_unit(bz_replay_plan *p, const bz_replay_unit *u, const cJSON *unit, bz_error *err)
{
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(unit, "steps");
    const cJSON *step = cJSON_IsArray(steps) ? steps->child : NULL;
    for (int i = u->first; i < u->first + u->n_steps; i++, step = step->next) {
        if (!step)
            return bz_fail(err, BZ_BAD_INPUT, "the plan has fewer steps at '%s' than the model", u->name);
        const char *kind = word(step, "step", 16);
        if (!kind || strcmp(kind, p->step[i].once ? "constant" : STEPS[p->step[i].kind]) != 0)
            return bz_fail(err, BZ_BAD_INPUT, "the plan has another step at '%s' than the model", u->name);
        if (p->step[i].kind == BZ_STEP_CALL && !p->step[i].once && follow_call(p, i, step, err))
            return -1;
    }
    return step ? bz_fail(err, BZ_BAD_INPUT, "the plan has more steps at '%s' than the model", u->name) : 0;
}

static int follow(bz_replay_plan *p, const cJSON *root, bz_error *err)
{
    const char *record = word(root, "record", 16);
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(root, "v"),
                *units = cJSON_GetObjectItemCaseSensitive(root, "units");
    if (!record || strcmp(record, "replay-plan") != 0 || !cJSON_IsNumber(v) || v->valueint < 1 || v->valueint > 2 ||
        !cJSON_IsArray(units))
        return bz_fail(err, BZ_BAD_INPUT, "it is no plan; 'benanza replay MODEL --plan FILE' writes one");
    const cJSON *unit = units->child;
    for (int i = 0; i < p->n_units; i++) {
        if (!p->unit[i].n_steps)
            continue;
        if (!unit)
            return bz_fail(err, BZ_BAD_INPUT, "the plan ends before '%s': it is of another model, or fuses otherwise",
                           p->unit[i].name);
        if (follow_unit(p, &p->unit[i], unit, err))
            return -1;
        unit = unit->next;
    }
    return unit ? bz_fail(err, BZ_BAD_INPUT, "the plan has more layers than the model, or fuses otherwise") : 0;
}

int bz_replay_follow(bz_replay_plan *p, const char *text, size_t n, bz_error *err)
{
    cJSON *root = cJSON_ParseWithLength(text, n);
    int rc = root ? follow(p, root, err) : bz_fail(err, BZ_BAD_INPUT, "it is no JSON");
    cJSON_Delete(root);
    if (rc)
        return -1;
    p->seconds = p->conversions = 0;
    p->modelled = p->followed = 0;
    for (int i = 0; i < p->n_steps; i++) {
        p->choice[i].conversion = 0;
        p->seconds += p->choice[i].n ? p->choice[i].option[0].seconds : 0;
        p->modelled += p->choice[i].n && p->choice[i].option[0].provenance == BZ_PROVENANCE_MODELLED;
    }
    replay_take(p);
    return 0;
}
