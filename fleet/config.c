/* fleet.json. Its members are tables: what there is, what it becomes. */
#include "fleet/fleet.h"

#include "fleet/document.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum { TEXT, NUMBER, SWITCH, NAMES, OPTIONS, PAIRS, NUMBERS, SYSTEM, SYSTEMS } member_kind;

typedef struct member {
    const char *name;
    member_kind kind;
    size_t offset;
    double least, most; /* of a number */
} member;

#define OF(field) offsetof(bz_fleet_system, field)
static const member SYSTEM_MEMBERS[] = {
    {"partition", TEXT, OF(partition), 0, 0},
    {"gres", TEXT, OF(gres), 0, 0},
    {"constraint", TEXT, OF(constraint), 0, 0},
    {"account", TEXT, OF(account), 0, 0},
    {"qos", TEXT, OF(qos), 0, 0},
    {"nodelist", TEXT, OF(nodelist), 0, 0},
    {"slug", TEXT, OF(slug), 0, 0},
    {"scratch", TEXT, OF(scratch), 0, 0},
    {"shared", SWITCH, OF(shared), 0, 0},
    {"shards", NUMBER, OF(shards), 1, 1000},
    {"minutes", NUMBER, OF(minutes), 1, 10080},
    {"threads", NUMBER, OF(threads), 1, 4096},
    {"cache", TEXT, OF(cache), 0, 0},
    {"dtype", TEXT, OF(dtype), 0, 0},
    {"fuse", SWITCH, OF(fuse), 0, 0},
    {"peaks", SWITCH, OF(peaks), 0, 0},
    {"time_limit", NUMBER, OF(time_limit), 1e-4, 3600},
    {"backends", NAMES, OF(backends), 0, 0},
    {"layouts", NAMES, OF(layouts), 0, 0},
    {"maths", NAMES, OF(maths), 0, 0},
    {"environment", PAIRS, OF(environment), 0, 0},
    {"modules", NAMES, OF(modules), 0, 0},
    {"options", OPTIONS, OF(options), 0, 0},
    {0},
};
#undef OF

#define OF(field) offsetof(bz_fleet, field)
static const member FLEET_MEMBERS[] = {
    {"folder", TEXT, OF(folder), 0, 0},
    {"benanza", TEXT, OF(benanza), 0, 0},
    {"models", NAMES, OF(models), 0, 0},
    {"dims", NAMES, OF(dims), 0, 0},
    {"batches", NUMBERS, OF(batch), 1, 1e6},
    {"max_age_days", NUMBER, OF(max_age), 0, 36500},
    {"retries", NUMBER, OF(retries), 0, 100},
    {"tolerance", NUMBER, OF(tolerance), 0, 10},
    {"deviation", NUMBER, OF(deviation), 0, 10},
    {"shard_minutes", NUMBER, OF(shard_minutes), 0.01, 1440},
    {"rounds", NUMBER, OF(rounds), 1, 9},
    {"hours", NUMBER, OF(hours), 0.001, 168},
    {"poll_seconds", NUMBER, OF(poll), 0.1, 3600},
    {"merge", SYSTEM, OF(merge), 0, 0},
    {"systems", SYSTEMS, OF(system), 0, 0},
    {0},
};
#undef OF

bool bz_fleet_is_name(const char *text)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(text);
    return n && n < 64 && strspn(text, LETTERS) == n && text[0] != '-' && text[0] != '.';
}

/* Names of variables, as the `export` of a shell takes them. */
static bool is_variable(const char *text)
{
    size_t n = strlen(text);
    return n && n < 256 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == n &&
           !(text[0] >= '0' && text[0] <= '9');
}

typedef struct reading {
    const char *path;
    bz_arena *arena;
    bz_error *err;
} reading;

static int read_names(const reading *r, const cJSON *v, const char *name, bz_fleet_names *out)
{
    int n = cJSON_GetArraySize(v);
    out->item = BZ_NEW(r->arena, const char *, n);
    const cJSON *item;
    cJSON_ArrayForEach(item, v)
    {
        if (!cJSON_IsString(item) || !document_is_line(item->valuestring))
            return bz_fail(r->err, BZ_BAD_INPUT, "%s: \"%s\" takes texts, each on one line", r->path, name);
        out->item[out->n++] = bz_arena_str(r->arena, item->valuestring);
    }
    return 0;
}

/* What does not begin with -- would be the script that sbatch submits. */
static int read_options(const reading *r, const cJSON *v, const char *name, bz_fleet_names *out)
{
    if (read_names(r, v, name, out))
        return -1;
    for (int i = 0; i < out->n; i++)
        if (strncmp(out->item[i], "--", 2) != 0 || !out->item[i][2])
            return bz_fail(r->err, BZ_BAD_INPUT, "%s: \"%s\" takes options as \"--mem=32G\", not '%s'", r->path, name,
                           out->item[i]);
    return 0;
}

static int read_pairs(const reading *r, const cJSON *v, bz_fleet_names *names)
{
    int n = cJSON_GetArraySize(v);
    bz_fleet_names *values = names + 1; /* environment, values */
    names->item = BZ_NEW(r->arena, const char *, n);
    values->item = BZ_NEW(r->arena, const char *, n);
    const cJSON *item;
    cJSON_ArrayForEach(item, v)
    {
        if (!cJSON_IsString(item) || !document_is_line(item->valuestring) || !is_variable(item->string))
            return bz_fail(r->err, BZ_BAD_INPUT, "%s: \"environment\" takes \"NAME\": \"value\", each on one line",
                           r->path);
        names->item[names->n++] = bz_arena_str(r->arena, item->string);
        values->item[values->n++] = bz_arena_str(r->arena, item->valuestring);
    }
    return 0;
}

static int read_numbers(const reading *r, const cJSON *v, const member *m, double *out, int *n)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, v)
    {
        if (*n == 16 || !cJSON_IsNumber(item) || !(item->valuedouble >= m->least && item->valuedouble <= m->most))
            return bz_fail(r->err, BZ_BAD_INPUT, "%s: \"%s\" takes at most 16 numbers from %g to %g", r->path, m->name,
                           m->least, m->most);
        out[(*n)++] = item->valuedouble;
    }
    return 0;
}

static int read_object(const reading *r, const cJSON *object, const member *members, const char *where, void *out);

static int read_systems(const reading *r, const cJSON *v, bz_fleet *fleet)
{
    int n = cJSON_GetArraySize(v);
    fleet->system = BZ_NEW(r->arena, bz_fleet_system, n);
    const cJSON *item;
    cJSON_ArrayForEach(item, v)
    {
        if (!item->string || !bz_fleet_is_name(item->string))
            return bz_fail(r->err, BZ_BAD_INPUT,
                           "%s: '%s' cannot name a system: letters, digits, '-', '_' and '.' can, up to 63", r->path,
                           item->string ? item->string : "");
        for (const cJSON *earlier = v->child; earlier != item; earlier = earlier->next)
            if (!strcmp(earlier->string, item->string))
                return bz_fail(r->err, BZ_BAD_INPUT, "%s: \"systems\" has \"%s\" twice", r->path, item->string);
        bz_fleet_system *s = &fleet->system[fleet->n_systems++];
        *s = (bz_fleet_system){.name = bz_arena_str(r->arena, item->string), .shards = 8, .peaks = true};
        if (read_object(r, item, SYSTEM_MEMBERS, s->name, s))
            return -1;
    }
    return 0;
}

static int wrong(const reading *r, const char *where, const member *m, const char *what)
{
    return bz_fail(r->err, BZ_BAD_INPUT, "%s: \"%s\" of %s takes %s", r->path, m->name, where, what);
}

static int read_member(const reading *r, const cJSON *v, const member *m, const char *where, char *out)
{
    switch (m->kind) {
    case TEXT:
        if (!cJSON_IsString(v) || !*v->valuestring || !document_is_line(v->valuestring))
            return wrong(r, where, m, "a text on one line");
        *(const char **)(out + m->offset) = bz_arena_str(r->arena, v->valuestring);
        return 0;
    case NUMBER:
        if (!cJSON_IsNumber(v) || !(v->valuedouble >= m->least && v->valuedouble <= m->most))
            return bz_fail(r->err, BZ_BAD_INPUT, "%s: \"%s\" of %s takes a number from %g to %g", r->path, m->name,
                           where, m->least, m->most);
        *(double *)(out + m->offset) = v->valuedouble;
        return 0;
    case SWITCH:
        if (!cJSON_IsBool(v))
            return wrong(r, where, m, "true or false");
        *(bool *)(out + m->offset) = cJSON_IsTrue(v);
        return 0;
    case NAMES:
        return cJSON_IsArray(v) ? read_names(r, v, m->name, (bz_fleet_names *)(out + m->offset))
                                : wrong(r, where, m, "an array of texts");
    case OPTIONS:
        return cJSON_IsArray(v) ? read_options(r, v, m->name, (bz_fleet_names *)(out + m->offset))
                                : wrong(r, where, m, "an array of texts");
    case PAIRS:
        return cJSON_IsObject(v) ? read_pairs(r, v, (bz_fleet_names *)(out + m->offset))
                                 : wrong(r, where, m, "an object");
    case NUMBERS:
        return cJSON_IsArray(v) ? read_numbers(r, v, m, ((bz_fleet *)out)->batch, &((bz_fleet *)out)->n_batches)
                                : wrong(r, where, m, "an array of numbers");
    case SYSTEM:
        ((bz_fleet_system *)(out + m->offset))->name = "merge";
        return cJSON_IsObject(v) ? read_object(r, v, SYSTEM_MEMBERS, m->name, out + m->offset)
                                 : wrong(r, where, m, "an object");
    case SYSTEMS:
        return cJSON_IsObject(v) ? read_systems(r, v, (bz_fleet *)out) : wrong(r, where, m, "an object");
    }
    return 0;
}

static int read_object(const reading *r, const cJSON *object, const member *members, const char *where, void *out)
{
    const cJSON *v;
    if (!cJSON_IsObject(object)) /* elements of an array have no names */
        return bz_fail(r->err, BZ_BAD_INPUT, "%s: %s is no object, {…}", r->path, where);
    cJSON_ArrayForEach(v, object)
    {
        const member *m = members;
        while (m->name && strcmp(m->name, v->string) != 0)
            m++;
        for (const cJSON *earlier = object->child; earlier != v; earlier = earlier->next)
            if (!strcmp(earlier->string, v->string))
                return bz_fail(r->err, BZ_BAD_INPUT, "%s: %s has \"%s\" twice", r->path, where, v->string);
        if (!m->name)
            return bz_fail(r->err, BZ_BAD_INPUT, "%s: %s has no member \"%s\": see benanza-fleet(1)", r->path, where,
                           v->string);
        if (read_member(r, v, m, where, out))
            return -1;
    }
    return 0;
}

void bz_fleet_defaults(bz_fleet *out)
{
    *out = (bz_fleet){.retries = 2,
                      .tolerance = 0.05,
                      .deviation = 0.1,
                      .shard_minutes = 20,
                      .rounds = 2,
                      .hours = 8,
                      .poll = 15,
                      .batch = {0},
                      .n_batches = 0};
}

int bz_fleet_parse(const char *text, const char *path, bz_fleet *out, bz_error *err)
{
    cJSON *root;
    bz_fleet_defaults(out);
    if (document_open(text, path, NULL, &root, err))
        return -1;
    reading r = {path, &out->arena, err};
    int rc = read_object(&r, root, FLEET_MEMBERS, "the file", out);
    if (!rc && !out->n_systems)
        rc = bz_fail(err, BZ_BAD_INPUT, "%s: names no systems: \"systems\": {\"v100\": {\"partition\": …}}", path);
    if (!rc && out->folder && out->folder[0] != '/')
        rc =
            bz_fail(err, BZ_BAD_INPUT, "%s: \"folder\" must begin with '/': all machines see it under that name", path);
    cJSON_Delete(root);
    return rc;
}

int bz_fleet_read(const char *path, bz_fleet *out, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    bz_fleet_defaults(out);
    return bz_whole_read(path, 4 << 20, BZ_FLEET_TOO_LONG, &text, err) ||
                   bz_fleet_parse(bz_buf_text(&text), path, out, err)
               ? -1
               : 0;
}

void bz_fleet_free(bz_fleet *fleet)
{
    bz_arena_free(&fleet->arena);
}
