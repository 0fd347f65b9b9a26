/* Nights, stacks, shards and attempts as files. */
#include "fleet/fleet.h"

#include "fleet/document.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const int64_t LAST_DATE = 253402300799; /* of the year 9999 */
enum { MOST = 1000000 };

void bz_night_id(int64_t date, char out[32])
{
    time_t t = (time_t)date;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || !strftime(out, 32, "%Y%m%dT%H%M%SZ", &tm))
        snprintf(out, 32, "00000000T000000Z");
}

bool bz_night_is_id(const char *text)
{
    return strlen(text) == 16 && strspn(text, "0123456789") == 8 && text[8] == 'T' &&
           strspn(text + 9, "0123456789") == 6 && text[15] == 'Z';
}

int bz_night_round(const bz_night_system *s, int round)
{
    int n = 0;
    for (int i = 0; i < s->n_shards; i++)
        n += s->shard[i].round == round;
    return n;
}

/* ---- nights --------------------------------------------------------------------------------- */

static void put_names(bz_json *j, const char *key, const bz_fleet_names *names)
{
    bz_json_key(j, key);
    bz_json_array(j);
    for (int i = 0; i < names->n; i++)
        bz_json_str(j, names->item[i]);
    bz_json_array_end(j);
}

static void put_system(bz_json *j, const bz_night_system *s)
{
    bz_json_object(j);
    bz_json_key_str(j, "name", s->name);
    bz_json_key_str(j, "system", s->system);
    bz_json_key_str(j, "before", s->before);
    bz_json_key_int(j, "until", s->until);
    bz_json_key_num(j, "pace", s->pace);
    bz_json_key_str(j, "note", s->note);
    bz_json_key(j, "families");
    bz_json_object(j);
    for (int w = 0; w < BZ_WANTS; w++)
        bz_json_key_int(j, bz_want_id((bz_want_why)w), s->families[w]);
    bz_json_object_end(j);
    bz_json_key(j, "jobs");
    bz_json_array(j);
    for (int i = 0; i < s->n_jobs; i++) {
        bz_json_object(j);
        bz_json_key_int(j, "round", s->job[i].round);
        bz_json_key_int(j, "id", s->job[i].id);
        bz_json_key_int(j, "begin", s->job[i].begin);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_key(j, "shards");
    bz_json_array(j);
    for (int i = 0; i < s->n_shards; i++) {
        const bz_night_shard *h = &s->shard[i];
        bz_json_object(j);
        bz_json_key_int(j, "round", h->round);
        bz_json_key_int(j, "index", h->index);
        bz_json_key_int(j, "problems", h->problems);
        bz_json_key_int(j, "families", h->families);
        bz_json_key_num(j, "estimate", h->estimate);
        bz_json_object_end(j);
    }
    bz_json_array_end(j);
    bz_json_object_end(j);
}

void bz_night_print(const bz_night *night, bz_buf *out)
{
    bz_json j = bz_json_to(out, true);
    j.flat = 5;
    bz_json_document(&j, "night", 1);
    bz_json_key_str(&j, "id", night->id);
    bz_json_key_int(&j, "begin", night->begin);
    bz_json_key_str(&j, "fleet", night->fleet);
    bz_json_key_str(&j, "benanza", night->program);
    bz_json_key_int(&j, "merge_job", night->merge_job);
    put_names(&j, "models", &night->models);
    bz_json_key(&j, "systems");
    bz_json_array(&j);
    for (int i = 0; i < night->n_systems; i++)
        put_system(&j, &night->system[i]);
    bz_json_array_end(&j);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
}

static int array_size(const cJSON *object, const char *key, const cJSON **list)
{
    *list = cJSON_GetObjectItemCaseSensitive(object, key);
    *list = cJSON_IsArray(*list) ? *list : NULL;
    return *list ? cJSON_GetArraySize(*list) : 0;
}

static void read_names(const cJSON *root, const char *key, bz_arena *arena, bz_fleet_names *out)
{
    const cJSON *list, *item;
    *out = (bz_fleet_names){BZ_NEW(arena, const char *, array_size(root, key, &list)), 0};
    cJSON_ArrayForEach(item, list) if (cJSON_IsString(item) && document_is_line(item->valuestring))
        out->item[out->n++] = bz_arena_str(arena, item->valuestring);
}

static int read_system(const cJSON *v, const char *path, bz_arena *arena, bz_night_system *s, bz_error *err)
{
    const cJSON *list, *item, *families = cJSON_GetObjectItemCaseSensitive(v, "families");
    s->name = document_text(v, "name", arena);
    s->system = document_text(v, "system", arena);
    s->before = document_text(v, "before", arena);
    s->note = document_text(v, "note", arena);
    s->until = document_int(v, "until", 0, LAST_DATE, 0);
    s->pace = document_number(v, "pace", 1);
    for (int w = 0; w < BZ_WANTS; w++)
        s->families[w] = (int)document_int(families, bz_want_id((bz_want_why)w), 0, INT32_MAX, 0);
    if (!bz_fleet_is_name(s->name))
        return bz_fail(err, BZ_BAD_INPUT, "%s: a system has no proper name", path);
    s->job = BZ_NEW(arena, bz_night_job, array_size(v, "jobs", &list));
    cJSON_ArrayForEach(item, list) s->job[s->n_jobs++] =
        (bz_night_job){(int)document_int(item, "round", 0, 99, 0), document_int(item, "id", 0, INT32_MAX, 0),
                       document_int(item, "begin", 0, LAST_DATE, 0)};
    s->shard = BZ_NEW(arena, bz_night_shard, array_size(v, "shards", &list));
    cJSON_ArrayForEach(item, list) s->shard[s->n_shards++] =
        (bz_night_shard){(int)document_int(item, "round", 0, 99, 0), (int)document_int(item, "index", 0, 99999, 0),
                         (int)document_int(item, "problems", 0, MOST, 0),
                         (int)document_int(item, "families", 0, MOST, 0), document_number(item, "estimate", 0)};
    return 0;
}

int bz_night_parse(const char *text, const char *path, bz_arena *arena, bz_night *out, bz_error *err)
{
    cJSON *root;
    const cJSON *list, *item;
    int rc = 0;
    *out = (bz_night){0};
    if (document_open(text, path, "night", &root, err))
        return -1;
    out->id = document_text(root, "id", arena);
    out->fleet = document_text(root, "fleet", arena);
    out->program = document_text(root, "benanza", arena);
    out->begin = document_int(root, "begin", 0, LAST_DATE, 0);
    out->merge_job = document_int(root, "merge_job", 0, INT32_MAX, 0);
    read_names(root, "models", arena, &out->models);
    if (!bz_night_is_id(out->id))
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: its \"id\" is none: 20261121T020000Z", path);
    out->system = BZ_NEW(arena, bz_night_system, array_size(root, "systems", &list));
    cJSON_ArrayForEach(item, list) if (!rc) rc = read_system(item, path, arena, &out->system[out->n_systems++], err);
    cJSON_Delete(root);
    return rc;
}

void bz_merged_print(const bz_merged *m, bz_buf *out)
{
    bz_json j = bz_json_to(out, true);
    bz_json_document(&j, "merge", 1);
    bz_json_key_int(&j, "files", m->files);
    bz_json_key_int(&j, "added", m->added);
    bz_json_key_int(&j, "known", m->known);
    bz_json_key_int(&j, "bad", m->bad);
    put_names(&j, "notes", &m->note);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
}

int bz_merged_parse(const char *text, const char *path, bz_arena *arena, bz_merged *out, bz_error *err)
{
    cJSON *root;
    *out = (bz_merged){0};
    if (document_open(text, path, "merge", &root, err))
        return -1;
    out->files = document_int(root, "files", 0, LAST_DATE, 0);
    out->added = document_int(root, "added", 0, LAST_DATE, 0);
    out->known = document_int(root, "known", 0, LAST_DATE, 0);
    out->bad = document_int(root, "bad", 0, LAST_DATE, 0);
    read_names(root, "notes", arena, &out->note);
    cJSON_Delete(root);
    return 0;
}

/* ---- stacks --------------------------------------------------------------------------------- */

void bz_fleet_stacks_print(const bz_fleet_stacks *stacks, bz_buf *out)
{
    bz_json j = bz_json_to(out, true);
    j.flat = 3;
    bz_json_document(&j, "stacks", 1);
    bz_json_key(&j, "stacks");
    bz_json_array(&j);
    for (int i = 0; i < stacks->n; i++) {
        const bz_fleet_stack *s = &stacks->item[i];
        bz_json_object(&j);
        bz_json_key_str(&j, "name", s->name);
        bz_json_key_str(&j, "system", s->system);
        bz_json_key_str(&j, "before", s->before);
        bz_json_key_int(&j, "seen", s->seen);
        bz_json_key_num(&j, "pace", s->pace);
        bz_json_object_end(&j);
    }
    bz_json_array_end(&j);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
}

int bz_fleet_stacks_parse(const char *text, const char *path, bz_arena *arena, bz_fleet_stacks *out, bz_error *err)
{
    cJSON *root;
    const cJSON *list, *item;
    *out = (bz_fleet_stacks){0};
    if (document_open(text, path, "stacks", &root, err))
        return -1;
    out->item = BZ_NEW(arena, bz_fleet_stack, array_size(root, "stacks", &list));
    cJSON_ArrayForEach(item, list)
    {
        bz_fleet_stack s = {document_text(item, "name", arena), document_text(item, "system", arena),
                            document_text(item, "before", arena), document_int(item, "seen", 0, LAST_DATE, 0),
                            document_number(item, "pace", 0)};
        if (bz_fleet_is_name(s.name))
            out->item[out->n++] = s;
    }
    cJSON_Delete(root);
    return 0;
}

bz_fleet_stack *bz_fleet_stacks_find(const bz_fleet_stacks *stacks, const char *name)
{
    for (int i = 0; i < stacks->n; i++)
        if (!strcmp(stacks->item[i].name, name))
            return &stacks->item[i];
    return NULL;
}

bz_fleet_stack *bz_fleet_stacks_add(bz_fleet_stacks *stacks, const char *name, bz_arena *arena)
{
    bz_fleet_stack *s = bz_fleet_stacks_find(stacks, name);
    if (s)
        return s;
    stacks->item = bz_arena_grow(arena, stacks->item, (size_t)stacks->n, (size_t)stacks->n + 1, sizeof *stacks->item);
    s = &stacks->item[stacks->n++];
    *s = (bz_fleet_stack){.name = name, .system = "", .before = ""};
    return s;
}

/* ---- shards --------------------------------------------------------------------------------- */

const bz_yardstick bz_yardsticks[] = {
    {"onednn", "gemm m=256 n=256 k=256 dtype=f32", false},
    {"memory", "copy read=33554432 write=33554432 dtype=u8", false},
    {"cublas", "gemm m=2048 n=2048 k=2048 dtype=f32", true},
    {"cudnn", "copy read=268435456 write=268435456 dtype=u8", true},
};
const int bz_n_yardsticks = BZ_YARDSTICKS;

void bz_work_print(const bz_work *w, bz_buf *out)
{
    bz_json j = bz_json_to(out, false);
    bz_json_document(&j, "shard", 1);
    bz_json_key_int(&j, "threads", w->threads);
    bz_json_key_bool(&j, "cold", w->cold);
    bz_json_key_bool(&j, "peaks", w->peaks);
    bz_json_key_num(&j, "time_limit", w->time_limit);
    bz_json_key_str(&j, "device", w->device);
    bz_json_key_str(&j, "system", w->system);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
}

int bz_work_parse(const char *text, const char *path, bz_arena *arena, bz_work *out, bz_error *err)
{
    cJSON *root;
    if (document_open(text, path, "shard", &root, err))
        return -1;
    const char *device = document_text(root, "device", arena);
    *out = (bz_work){.threads = (int)document_int(root, "threads", 1, 4096, 1),
                     .cold = document_bool(root, "cold"),
                     .peaks = document_bool(root, "peaks"),
                     .time_limit = document_number(root, "time_limit", 0),
                     .device = "",
                     .system = document_text(root, "system", arena)};
    int rc = 0;
    if (bz_backend_is_on(device, true))
        out->device = bz_backend_named(device)->name;
    if (strcmp(out->device, device) != 0)
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: knows a device backend that this benanza has not", path);
    cJSON_Delete(root);
    return rc;
}

/* ---- attempts ------------------------------------------------------------------------------- */

static const char *const STATES[] = {"running", "done", "failed"};

void bz_attempt_print(const bz_attempt *a, bz_buf *out)
{
    bz_json j = bz_json_to(out, false);
    bz_json_document(&j, "attempt", 1);
    bz_json_key_str(&j, "id", a->id);
    bz_json_key_str(&j, "state", STATES[a->state]);
    bz_json_key_str(&j, "reason", a->reason);
    bz_json_key_str(&j, "node", a->node);
    bz_json_key_str(&j, "system", a->system);
    bz_json_key_str(&j, "benanza", a->program);
    bz_json_key_int(&j, "job", a->job);
    bz_json_key_int(&j, "begin", a->begin);
    bz_json_key_int(&j, "end", a->end);
    bz_json_key_int(&j, "skew", a->skew);
    bz_json_key_int(&j, "records", a->records);
    bz_json_key_int(&j, "failed", a->failed);
    bz_json_key_int(&j, "bad", a->bad);
    bz_json_key_int(&j, "throttled", a->throttled);
    bz_json_key_int(&j, "noisy", a->noisy);
    bz_json_key_num(&j, "seconds", a->seconds);
    bz_json_key(&j, "yardsticks");
    bz_json_array(&j);
    for (int i = 0; i < BZ_YARDSTICKS; i++)
        bz_json_num(&j, a->yardstick[i]);
    bz_json_array_end(&j);
    bz_json_object_end(&j);
    bz_buf_putc(out, '\n');
}

int bz_attempt_parse(const char *text, const char *path, bz_arena *arena, bz_attempt *out, bz_error *err)
{
    cJSON *root;
    const cJSON *list, *item;
    if (document_open(text, path, "attempt", &root, err))
        return -1;
    const char *state = document_text(root, "state", arena);
    *out = (bz_attempt){.id = document_text(root, "id", arena),
                        .node = document_text(root, "node", arena),
                        .system = document_text(root, "system", arena),
                        .program = document_text(root, "benanza", arena),
                        .reason = document_text(root, "reason", arena),
                        .job = document_int(root, "job", 0, INT32_MAX, 0),
                        .begin = document_int(root, "begin", 0, LAST_DATE, 0),
                        .end = document_int(root, "end", 0, LAST_DATE, 0),
                        .skew = document_int(root, "skew", -LAST_DATE, LAST_DATE, 0),
                        .records = (int)document_int(root, "records", 0, INT32_MAX, 0),
                        .failed = (int)document_int(root, "failed", 0, INT32_MAX, 0),
                        .bad = (int)document_int(root, "bad", 0, INT32_MAX, 0),
                        .throttled = (int)document_int(root, "throttled", 0, INT32_MAX, 0),
                        .noisy = (int)document_int(root, "noisy", 0, INT32_MAX, 0),
                        .seconds = document_number(root, "seconds", 0)};
    for (int i = 0; i < BZ_YARDSTICKS; i++)
        out->yardstick[i] = NAN;
    for (int i = 0; i < 3; i++)
        if (!strcmp(state, STATES[i]))
            out->state = (bz_attempt_state)i;
    int n = 0;
    array_size(root, "yardsticks", &list);
    cJSON_ArrayForEach(item, list) if (n < BZ_YARDSTICKS) out->yardstick[n++] =
        cJSON_IsNumber(item) && item->valuedouble > 0 ? item->valuedouble : NAN;
    cJSON_Delete(root);
    return 0;
}
