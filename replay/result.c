/* What a replay program reported. */
#include "replay/replay.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

static int whole(const cJSON *object, const char *key)
{
    double v = number(object, key);
    return v >= -1 && v < 1e9 ? (int)v : -1;
}

static void read_action(const cJSON *item, bz_replay_action *a)
{
    static const char *const KINDS[] = {"call", "loop", "convert", "copy"};
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "kind"));
    const cJSON *check = cJSON_GetObjectItemCaseSensitive(item, "check");
    for (int k = 0; k < 4 && kind; k++)
        if (!strcmp(KINDS[k], kind))
            a->kind = (bz_replay_kind)k;
    a->step = whole(item, "step");
    a->stream = whole(item, "stream");
    a->seconds = number(item, "median");
    a->hot = number(item, "hot");
    a->flushed = number(item, "cold");
    if (!cJSON_IsObject(check))
        return;
    a->elements = whole(check, "elements");
    a->wrong = whole(check, "wrong");
    a->worst = number(check, "worst");
    a->value = number(check, "value");
    a->expected = number(check, "expected");
}

/* A number for each action of each pass; NULL where they are not as many. */
static double *read_passes(const cJSON *passes, bz_replay_result *out)
{
    const cJSON *first = cJSON_IsArray(passes) ? passes->child : NULL;
    size_t n = 0;
    for (const cJSON *pass = first; pass; pass = pass->next, n++)
        if (!cJSON_IsArray(pass) || cJSON_GetArraySize(pass) != out->n)
            return NULL;
    double *all = BZ_NEW(&out->arena, double, n *(size_t)out->n + 1), *at = all;
    for (const cJSON *pass = first; pass; pass = pass->next)
        for (const cJSON *item = pass->child; item; item = item->next)
            *at++ = cJSON_IsNumber(item) && item->valuedouble >= 0 ? item->valuedouble : 0;
    return all;
}

static int read_all_passes(const cJSON *root, bz_replay_result *out)
{
    const cJSON *passes = cJSON_GetObjectItemCaseSensitive(root, "passes"),
                *starts = cJSON_GetObjectItemCaseSensitive(root, "starts");
    out->n_passes = cJSON_IsArray(passes) ? cJSON_GetArraySize(passes) : 0;
    out->pass = read_passes(passes, out);
    if (!starts)
        return out->pass ? 0 : -1;
    out->start = cJSON_GetArraySize(starts) == out->n_passes ? read_passes(starts, out) : NULL;
    return out->pass && out->start ? 0 : -1;
}

static int read_result(const bz_replay_plan *p, const cJSON *root, bz_replay_result *out, bz_error *err)
{
    const cJSON *latency = cJSON_GetObjectItemCaseSensitive(root, "latency"),
                *actions = cJSON_GetObjectItemCaseSensitive(root, "actions");
    const char *record = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "record"));
    if (!record || strcmp(record, "replay") != 0 || !cJSON_IsArray(actions))
        return bz_fail(err, BZ_FAILED, "the program's report is none");
    out->median = number(latency, "median");
    out->low = number(latency, "low");
    out->high = number(latency, "high");
    out->min = number(latency, "min");
    out->samples = latency ? whole(latency, "samples") : 0;
    out->runs = latency ? whole(latency, "runs") : 0;
    out->throttled = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(latency, "throttled"));
    out->opened = number(root, "opened");
    out->graph = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "graph"));
    out->peak = number(root, "peak");
    out->least = number(root, "least");
    out->ends = number(root, "ends");
    out->weights = number(root, "weights");
    out->scratch = number(root, "scratch");
    const cJSON *losses = cJSON_GetObjectItemCaseSensitive(root, "losses");
    out->loss = BZ_NEW(&out->arena, double, (size_t)cJSON_GetArraySize(losses) + 1);
    for (const cJSON *loss = cJSON_IsArray(losses) ? losses->child : NULL; loss; loss = loss->next)
        out->loss[out->steps++] = cJSON_IsNumber(loss) ? loss->valuedouble : (double)NAN;
    out->n = cJSON_GetArraySize(actions);
    out->action = BZ_NEW(&out->arena, bz_replay_action, (size_t)out->n + 1);
    int i = 0;
    for (const cJSON *item = actions->child; item; item = item->next, i++) {
        read_action(item, &out->action[i]);
        if (out->action[i].step >= p->n_steps)
            return bz_fail(err, BZ_FAILED, "the program's report is of another plan");
        if (out->action[i].step >= 0)
            out->action[i].step = p->order[out->action[i].step];
        out->checked += out->action[i].elements > 0;
        out->wrong += out->action[i].wrong > 0;
    }
    return read_all_passes(root, out) ? bz_fail(err, BZ_FAILED, "the program's report is broken") : 0;
}

int bz_replay_read(const bz_replay_plan *p, const char *text, size_t n, bz_replay_result *out, bz_error *err)
{
    *out = (bz_replay_result){0};
    cJSON *root = cJSON_ParseWithLength(text, n);
    int rc = root ? read_result(p, root, out, err) : bz_fail(err, BZ_FAILED, "the program reported no JSON");
    cJSON_Delete(root);
    return rc;
}

int bz_replay_cold(bz_replay_plan *p, bz_perfdb *db, const bz_system *system, double **out, bz_error *err)
{
    double *cold = BZ_NEW(&p->arena, double, (size_t)p->n_steps + 1);
    bz_setting setting = p->setting;
    setting.cache = BZ_CACHE_COLD;
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_choice *c = &p->choice[i];
        bz_record *r = NULL;
        cold[i] = (double)NAN;
        if (!c->n)
            continue;
        const bz_replay_option *o = &c->option[c->taken];
        const bz_variant v = {o->backend, o->algorithm, o->layout, o->math};
        if (bz_perfdb_find(db, system, c->text, &v, &setting, &p->arena, &r, err))
            return -1;
        if (r && r->status == BZ_RECORD_OK)
            cold[i] = r->median;
    }
    *out = cold;
    return 0;
}
