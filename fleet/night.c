/* Nights, stacks, shards and attempts as files. */
#include "fleet/fleet.h"

#include "fleet/document.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LAST_DATE 253402300799.0 /* of the year 9999 */
#define MOST      1e6
#define ANY       1e30

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

static const bz_member JOB[] = {
    BZ_MEMBER_WITHIN(bz_night_job, round, 0, 99, 0),
    BZ_MEMBER_WITHIN(bz_night_job, id, 0, INT32_MAX, 0),
    BZ_MEMBER_WITHIN(bz_night_job, begin, 0, LAST_DATE, 0),
};
static const bz_member SHARD[] = {
    BZ_MEMBER_WITHIN(bz_night_shard, round, 0, 99, 0),      BZ_MEMBER_WITHIN(bz_night_shard, index, 0, 99999, 0),
    BZ_MEMBER_WITHIN(bz_night_shard, problems, 0, MOST, 0), BZ_MEMBER_WITHIN(bz_night_shard, families, 0, MOST, 0),
    BZ_MEMBER_WITHIN(bz_night_shard, estimate, 0, ANY, 0),
};
static const bz_member SYSTEM[] = {
    BZ_FIELDS(bz_night_system, name, system, before),
    BZ_MEMBER_WITHIN(bz_night_system, until, 0, LAST_DATE, 0),
    BZ_MEMBER_WITHIN(bz_night_system, pace, 0, ANY, 1),
    BZ_MEMBER(bz_night_system, note),
};
static const bz_member NIGHT[] = {
    BZ_MEMBER(bz_night, id),
    BZ_MEMBER_WITHIN(bz_night, begin, 0, LAST_DATE, 0),
    BZ_MEMBER(bz_night, fleet),
    BZ_MEMBER_AS(bz_night, program, "benanza"),
    BZ_MEMBER_WITHIN(bz_night, merge_job, 0, INT32_MAX, 0),
};

static void put_system(bz_json *j, const bz_night_system *s)
{
    bz_members_json(BZ_MEMBERS(SYSTEM), s, j);
    BZ_JSON_NAMED(j, "families", int, w, BZ_WANTS, bz_want_id((bz_want_why)w), s->families[w]);
    bz_members_rows("jobs", BZ_MEMBERS(JOB), s->job, sizeof *s->job, s->n_jobs, j);
    bz_members_rows("shards", BZ_MEMBERS(SHARD), s->shard, sizeof *s->shard, s->n_shards, j);
}

void bz_night_print(const bz_night *night, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, 5, "night", 1);
    bz_members_json(BZ_MEMBERS(NIGHT), night, &j);
    bz_json_key_strs(&j, "models", night->models.item, night->models.n);
    BZ_JSON_EACH (&j, "systems", i, night->n_systems)
        put_system(&j, &night->system[i]);
    bz_json_document_end(&j);
}

static int read_system(const cJSON *v, const char *path, bz_arena *arena, bz_night_system *s, bz_error *err)
{
    const cJSON *families = cJSON_GetObjectItemCaseSensitive(v, "families");
    for (int w = 0; w < BZ_WANTS; w++) {
        bz_member want = BZ_MEMBER_LIKE(bz_want_id((bz_want_why)w), 0, BZ_MEMBER_INT, .most = INT32_MAX);
        document_members(&want, 1, families, arena, &s->families[w]);
    }
    if (!bz_fleet_is_name(s->name))
        return bz_fail(err, BZ_BAD_INPUT, "%s: a system has no proper name", path);
    s->n_jobs = document_rows("jobs", BZ_MEMBERS(JOB), sizeof *s->job, v, arena, (void **)&s->job);
    s->n_shards = document_rows("shards", BZ_MEMBERS(SHARD), sizeof *s->shard, v, arena, (void **)&s->shard);
    return 0;
}

int bz_night_parse(const char *text, const char *path, bz_arena *arena, bz_night *out, bz_error *err)
{
    cJSON *root;
    const cJSON *item;
    int rc = 0, n = 0;
    *out = (bz_night){0};
    if (document_open(text, path, "night", &root, err))
        return -1;
    document_members(BZ_MEMBERS(NIGHT), root, arena, out);
    out->models.n = document_lines("models", root, arena, &out->models.item);
    if (!bz_night_is_id(out->id))
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: its \"id\" is none: 20261121T020000Z", path);
    out->n_systems =
        document_rows("systems", BZ_MEMBERS(SYSTEM), sizeof *out->system, root, arena, (void **)&out->system);
    const cJSON *list = out->n_systems ? cJSON_GetObjectItemCaseSensitive(root, "systems") : NULL;
    cJSON_ArrayForEach(item, list) if (!rc) rc = read_system(item, path, arena, &out->system[n++], err);
    cJSON_Delete(root);
    return rc;
}

static const bz_member MERGED[] = {
    BZ_MEMBER_WITHIN(bz_merged, files, 0, LAST_DATE, 0),
    BZ_MEMBER_WITHIN(bz_merged, added, 0, LAST_DATE, 0),
    BZ_MEMBER_WITHIN(bz_merged, known, 0, LAST_DATE, 0),
    BZ_MEMBER_WITHIN(bz_merged, bad, 0, LAST_DATE, 0),
};

void bz_merged_print(const bz_merged *m, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, 0, "merge", 1);
    bz_members_json(BZ_MEMBERS(MERGED), m, &j);
    bz_json_key_strs(&j, "notes", m->note.item, m->note.n);
    bz_json_document_end(&j);
}

int bz_merged_parse(const char *text, const char *path, bz_arena *arena, bz_merged *out, bz_error *err)
{
    cJSON *root;
    *out = (bz_merged){0};
    if (document_open(text, path, "merge", &root, err))
        return -1;
    document_members(BZ_MEMBERS(MERGED), root, arena, out);
    out->note.n = document_lines("notes", root, arena, &out->note.item);
    cJSON_Delete(root);
    return 0;
}

static const bz_member STACK[] = {
    BZ_FIELDS(bz_fleet_stack, name, system, before),
    BZ_MEMBER_WITHIN(bz_fleet_stack, seen, 0, LAST_DATE, 0),
    BZ_MEMBER_WITHIN(bz_fleet_stack, pace, 0, ANY, 0),
};

void bz_fleet_stacks_print(const bz_fleet_stacks *stacks, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, 3, "stacks", 1);
    bz_members_rows("stacks", BZ_MEMBERS(STACK), stacks->item, sizeof *stacks->item, stacks->n, &j);
    bz_json_document_end(&j);
}

int bz_fleet_stacks_parse(const char *text, const char *path, bz_arena *arena, bz_fleet_stacks *out, bz_error *err)
{
    cJSON *root;
    *out = (bz_fleet_stacks){0};
    if (document_open(text, path, "stacks", &root, err))
        return -1;
    int n = document_rows("stacks", BZ_MEMBERS(STACK), sizeof *out->item, root, arena, (void **)&out->item);
    for (int i = 0; i < n; i++)
        if (bz_fleet_is_name(out->item[i].name))
            out->item[out->n++] = out->item[i];
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

const bz_yardstick bz_yardsticks[BZ_YARDSTICKS] = {
    {"onednn", "gemm m=256 n=256 k=256 dtype=f32", false},
    {"memory", "copy read=33554432 write=33554432 dtype=u8", false},
    {"cublas", "gemm m=2048 n=2048 k=2048 dtype=f32", true},
    {"cudnn", "copy read=268435456 write=268435456 dtype=u8", true},
};

static const bz_member WORK[] = {
    BZ_MEMBER_WITHIN(bz_work, threads, 1, 4096, 1),
    BZ_FIELDS(bz_work, cold, peaks),
    BZ_MEMBER_WITHIN(bz_work, time_limit, 0, ANY, 0),
    BZ_FIELDS(bz_work, device, system),
};

void bz_work_print(const bz_work *w, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, -1, "shard", 1);
    bz_members_json(BZ_MEMBERS(WORK), w, &j);
    bz_json_document_end(&j);
}

int bz_work_parse(const char *text, const char *path, bz_arena *arena, bz_work *out, bz_error *err)
{
    cJSON *root;
    if (document_open(text, path, "shard", &root, err))
        return -1;
    *out = (bz_work){0};
    document_members(BZ_MEMBERS(WORK), root, arena, out);
    const char *device = out->device;
    int rc = 0;
    out->device = bz_backend_is_on(device, true) ? bz_backend_named(device)->name : "";
    if (strcmp(out->device, device) != 0)
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: knows a device backend that this benanza has not", path);
    cJSON_Delete(root);
    return rc;
}

static const char *const STATES[] = {"running", "done", "failed"};

static const bz_member ATTEMPT[] = {
    BZ_FIELDS(bz_attempt, reason, node, system),
    BZ_MEMBER_AS(bz_attempt, program, "benanza"),
    BZ_MEMBER_WITHIN(bz_attempt, job, 0, INT32_MAX, 0),
    BZ_MEMBER_WITHIN(bz_attempt, begin, 0, LAST_DATE, 0),
    BZ_MEMBER_WITHIN(bz_attempt, end, 0, LAST_DATE, 0),
    BZ_MEMBER_WITHIN(bz_attempt, skew, -LAST_DATE, LAST_DATE, 0),
    BZ_MEMBER_WITHIN(bz_attempt, records, 0, INT32_MAX, 0),
    BZ_MEMBER_WITHIN(bz_attempt, failed, 0, INT32_MAX, 0),
    BZ_MEMBER_WITHIN(bz_attempt, bad, 0, INT32_MAX, 0),
    BZ_MEMBER_WITHIN(bz_attempt, throttled, 0, INT32_MAX, 0),
    BZ_MEMBER_WITHIN(bz_attempt, noisy, 0, INT32_MAX, 0),
    BZ_MEMBER_WITHIN(bz_attempt, seconds, 0, ANY, 0),
};

void bz_attempt_print(const bz_attempt *a, bz_buf *out)
{
    bz_json j = bz_json_document_to(out, -1, "attempt", 1);
    BZ_JSON(&j, BZ_TELL("id", a->id), BZ_TELL("state", STATES[a->state]));
    bz_members_json(BZ_MEMBERS(ATTEMPT), a, &j);
    BZ_JSON_LIST(&j, "yardsticks", num, i, BZ_YARDSTICKS, a->yardstick[i]);
    bz_json_document_end(&j);
}

int bz_attempt_parse(const char *text, const char *path, bz_arena *arena, bz_attempt *out, bz_error *err)
{
    cJSON *root;
    if (document_open(text, path, "attempt", &root, err))
        return -1;
    const char *state = document_text(root, "state", arena);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "yardsticks");
    *out = (bz_attempt){.id = document_text(root, "id", arena)};
    document_members(BZ_MEMBERS(ATTEMPT), root, arena, out);
    for (int i = 0; i < 3; i++)
        if (!strcmp(state, STATES[i]))
            out->state = (bz_attempt_state)i;
    for (int i = 0; i < BZ_YARDSTICKS; i++) {
        const cJSON *item = cJSON_IsArray(list) ? cJSON_GetArrayItem(list, i) : NULL;
        out->yardstick[i] = cJSON_IsNumber(item) && item->valuedouble > 0 ? item->valuedouble : NAN;
    }
    cJSON_Delete(root);
    return 0;
}
