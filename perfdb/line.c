/* The text form: a record or a system as one line of JSON.
 *
 * The members of a record are one table, for writing and for reading. */

#include "perfdb/entry.h"

#include "base/member.h"
#include "base/yajl_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

enum { LINE_VERSION = 1 };

#define TEXT(key, field) BZ_MEMBER_LIKE(key, offsetof(bz_record, field), BZ_MEMBER_TEXT)
#define WORD(key, field, names, n)                                                                                     \
    BZ_MEMBER_LIKE(key, offsetof(bz_record, field), BZ_MEMBER_WORD, .word = (names), .n_of = (n))
static const bz_member MEMBERS[] = {
    TEXT("problem", problem),
    TEXT("backend", variant.backend),
    TEXT("algorithm", variant.algorithm),
    TEXT("layout", variant.layout),
    TEXT("math", variant.math),
    BZ_MEMBER_AS(bz_record, setting.threads, "threads"),
    WORD("cache", setting.cache, bz_record_cache_name, BZ_CACHE_COLD + 1),
    TEXT("clock", setting.clock),
    WORD("status", status, bz_record_status_name, BZ_RECORD_DROPPED + 1),
    TEXT("reason", reason),
    BZ_FIELDS(bz_record, median, q25, q75, min, max, low, high, n, iterations, launch, workspace, variants, bytes,
              flops),
    BZ_FIELDS(bz_record, chosen, chosen_training, noisy, throttled, busy),
    TEXT("checked", checked),
    WORD("timing", timing, bz_record_timing_name, BZ_TIMING_WALL + 1),
    WORD("provenance", provenance, bz_record_provenance_name, BZ_PROVENANCE_IMPORTED + 1),
    BZ_MEMBER(bz_record, date),
    TEXT("system", system),
    BZ_MEMBER_LIKE("meta", offsetof(bz_record, meta), BZ_MEMBER_RAW),
};
enum { N_MEMBERS = sizeof MEMBERS / sizeof *MEMBERS };

_Static_assert(sizeof(bz_record_status) == sizeof(int) && sizeof(bz_record_cache) == sizeof(int),
               "words are read and written as int");

void bz_record_json(bz_json *j, const bz_record *r)
{
    bz_json_object(j);
    bz_json_key_int(j, "v", LINE_VERSION);
    bz_members_json(MEMBERS, N_MEMBERS, r, j);
    bz_json_object_end(j);
}

/* Reading */

typedef enum { VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_STRING, VALUE_OBJECT } value_kind;

/* A scalar of the line, or the text of an object that was copied out. */
typedef struct {
    value_kind kind;
    bool truth;
    double number;
    const char *text;
    size_t len;
} value;

typedef struct {
    bz_line *line;
    bz_arena *arena;
    bz_error *err;
    int depth;
    const bz_member *current;  /* member whose value comes next; NULL: one that is not a record's */
    const bz_member *expected; /* members mostly come in the order of the table */
    char key[32];              /* name of that value */
    int64_t version;
    bool failed;

    /* an object that is copied out: meta, or a system's details */
    bool system_pass;
    bz_json copy;
    int copy_depth; /* depth at which the copy began, 0 for none */
} parse;

/* Remembers the first thing wrong and reads on: where "record" says so at the line's end, it was a
 * system all along, whose "cache" may well be an object. */
static int refuse(parse *p, const char *what)
{
    if (!p->failed)
        bz_fail(p->err, BZ_BAD_INPUT, "'%s' %s", p->key, what);
    p->failed = true;
    return 1;
}

static bool key_is(const parse *p, const char *name)
{
    return !strcmp(p->key, name);
}

static int store_text(parse *p, const char **field, const value *v)
{
    if (v->kind != VALUE_STRING && v->kind != VALUE_NULL)
        return refuse(p, "wants a string");
    if (v->kind == VALUE_STRING && memchr(v->text, 0, v->len))
        return refuse(p, "has a zero byte");
    *field = bz_arena_strn(p->arena, v->text, v->kind == VALUE_STRING ? v->len : 0);
    return 1;
}

static int store_count(parse *p, int64_t *field, const value *v)
{
    if (v->kind == VALUE_NULL)
        return 1;
    if (v->kind != VALUE_NUMBER || !(fabs(v->number) <= 9007199254740992.0) || v->number != floor(v->number))
        return refuse(p, "wants a whole number");
    *field = (int64_t)v->number;
    return 1;
}

static int store_word(parse *p, const bz_member *m, int *field, const value *v)
{
    for (int i = 0; v->kind == VALUE_STRING && i < m->n_of; i++)
        if (strlen(m->word(i)) == v->len && !memcmp(m->word(i), v->text, v->len)) {
            *field = i;
            return 1;
        }
    return refuse(p, "has a value that this version does not know");
}

static int store_member(parse *p, const bz_member *m, const value *v)
{
    void *field = (char *)&p->line->record + m->offset;
    int64_t count = 0;
    switch (m->type) {
    case BZ_MEMBER_TEXT:
        return store_text(p, field, v);
    case BZ_MEMBER_NUMBER:
        if (v->kind != VALUE_NUMBER && v->kind != VALUE_NULL)
            return refuse(p, "wants a number");
        *(double *)field = v->kind == VALUE_NUMBER ? v->number : NAN;
        return 1;
    case BZ_MEMBER_COUNT:
        return store_count(p, field, v);
    case BZ_MEMBER_INT:
        store_count(p, &count, v);
        if (count < 0 || count > INT32_MAX)
            return refuse(p, "is out of range");
        *(int *)field = (int)count;
        return 1;
    case BZ_MEMBER_BOOL:
        if (v->kind != VALUE_BOOL)
            return refuse(p, "wants true or false");
        *(bool *)field = v->truth;
        return 1;
    case BZ_MEMBER_WORD:
        return store_word(p, m, field, v);
    case BZ_MEMBER_RAW:
        if (v->kind != VALUE_OBJECT && v->kind != VALUE_NULL)
            return refuse(p, "wants an object");
        *(const char **)field = v->kind == VALUE_OBJECT && v->len > 2 ? bz_arena_strn(p->arena, v->text, v->len) : "";
        return 1;
    default:
        return 0;
    }
}

/* Members of a line that are neither a record's nor part of a system's details. */
static int store_envelope(parse *p, const value *v)
{
    if (key_is(p, "v"))
        return store_count(p, &p->version, v);
    if (key_is(p, "record") && v->kind == VALUE_STRING) {
        if (v->len != 6 || memcmp(v->text, "system", 6) != 0)
            return refuse(p, "is of a kind that this version does not know");
        p->line->is_system = true;
        return 1;
    }
    if (p->system_pass && key_is(p, "slug"))
        return store_text(p, &p->line->system, v);
    if (p->system_pass && key_is(p, "stack"))
        return store_text(p, &p->line->details, v); /* joined to the slug at the end */
    if (p->system_pass && key_is(p, "date"))
        return store_count(p, &p->line->date, v);
    p->line->unknown++;
    return 1;
}

static bool in_envelope(const char *key)
{
    return !strcmp(key, "v") || !strcmp(key, "record") || !strcmp(key, "slug") || !strcmp(key, "stack") ||
           !strcmp(key, "date");
}

static int got_value(parse *p, const value *v)
{
    if (p->depth == 0) {
        strcpy(p->key, "line");
        return refuse(p, "is no JSON object");
    }
    if (p->depth > 1)
        return 1; /* inside something unknown */
    bool of_record = p->current && !p->system_pass;
    return of_record ? store_member(p, p->current, v) : store_envelope(p, v);
}

static int on_null(void *ctx)
{
    parse *p = ctx;
    if (p->copy_depth)
        bz_json_null(&p->copy);
    return p->copy_depth ? 1 : got_value(p, &(value){.kind = VALUE_NULL});
}

static int on_bool(void *ctx, int truth)
{
    parse *p = ctx;
    if (p->copy_depth)
        bz_json_bool(&p->copy, truth != 0);
    return p->copy_depth ? 1 : got_value(p, &(value){.kind = VALUE_BOOL, .truth = truth != 0});
}

/* Whole numbers are common, and exact up to 15 digits without strtod's trouble. */
static double to_number(const char *digits, size_t len)
{
    int64_t whole = 0;
    for (size_t i = 0; i < len; i++) {
        if (digits[i] < '0' || digits[i] > '9' || len > 15)
            return strtod(digits, NULL);
        whole = whole * 10 + (digits[i] - '0');
    }
    return (double)whole;
}

static int on_number(void *ctx, const char *text, size_t len)
{
    parse *p = ctx;
    char digits[64];
    if (len >= sizeof digits)
        return refuse(p, "has a number with too many digits");
    memcpy(digits, text, len);
    digits[len] = 0;
    if (p->copy_depth)
        bz_json_raw(&p->copy, digits);
    return p->copy_depth ? 1 : got_value(p, &(value){.kind = VALUE_NUMBER, .number = to_number(digits, len)});
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    parse *p = ctx;
    if (!p->copy_depth)
        return got_value(p, &(value){.kind = VALUE_STRING, .text = (const char *)text, .len = len});
    if (memchr(text, 0, len))
        return refuse(p, "has a zero byte");
    char *copy = bz_arena_strn(p->arena, (const char *)text, len);
    bz_json_str(&p->copy, copy);
    return 1;
}

static const bz_member *find_member(parse *p)
{
    if (key_is(p, "v")) /* first in every line, and no member of a record */
        return NULL;
    for (int i = 0; i < N_MEMBERS; i++) {
        const bz_member *m = MEMBERS + ((p->expected - MEMBERS) + i) % N_MEMBERS;
        if (key_is(p, m->name)) {
            p->expected = m + 1 == MEMBERS + N_MEMBERS ? MEMBERS : m + 1;
            return m;
        }
    }
    return NULL;
}

static int on_key(void *ctx, const unsigned char *text, size_t len)
{
    parse *p = ctx;
    if (p->copy_depth && p->depth >= p->copy_depth && !(p->system_pass && p->depth == 1)) {
        if (memchr(text, 0, len))
            return refuse(p, "has a zero byte");
        bz_json_key(&p->copy, bz_arena_strn(p->arena, (const char *)text, len));
        return 1;
    }
    if (p->depth != 1)
        return 1;
    size_t n = len < sizeof p->key ? len : sizeof p->key - 1;
    memcpy(p->key, text, n);
    p->key[n] = 0;
    if (!p->system_pass) {
        p->current = find_member(p);
        return 1;
    }
    /* what is not of the envelope becomes part of the details */
    p->copy_depth = in_envelope(p->key) ? 0 : 1;
    if (p->copy_depth)
        bz_json_key(&p->copy, bz_arena_strn(p->arena, (const char *)text, len));
    return 1;
}

static int open_nested(parse *p, bool object)
{
    bool meta = object && p->depth == 1 && p->current && p->current->type == BZ_MEMBER_RAW && !p->system_pass;
    if (p->depth == 0 && !object)
        return got_value(p, &(value){.kind = VALUE_NULL});
    if (meta) {
        bz_buf_clear(p->copy.out);
        p->copy = bz_json_to(p->copy.out, false);
        p->copy_depth = 2;
    } else if (p->depth == 1 && !p->copy_depth) {
        if (p->current && !p->system_pass)
            refuse(p, "is not of the right type");
        else
            p->line->unknown++;
    }
    p->depth++;
    if (p->copy_depth && object)
        bz_json_object(&p->copy);
    else if (p->copy_depth)
        bz_json_array(&p->copy);
    return 1;
}

static int close_nested(parse *p, bool object)
{
    p->depth--;
    if (!p->copy_depth || p->depth == 0)
        return 1;
    if (object)
        bz_json_object_end(&p->copy);
    else
        bz_json_array_end(&p->copy);
    if (p->system_pass || p->depth >= p->copy_depth)
        return 1;
    p->copy_depth = 0;
    return got_value(p, &(value){.kind = VALUE_OBJECT, .text = bz_buf_text(p->copy.out), .len = p->copy.out->len});
}

static int on_map(void *ctx)
{
    return open_nested(ctx, true);
}

static int on_map_end(void *ctx)
{
    return close_nested(ctx, true);
}

static int on_array(void *ctx)
{
    return open_nested(ctx, false);
}

static int on_array_end(void *ctx)
{
    return close_nested(ctx, false);
}

static const yajl_callbacks CALLBACKS = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_map_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

static int run(parse *p, const char *text, size_t len)
{
    yajl_handle h = yajl_alloc(&CALLBACKS, &bz_yajl_memory, p);
    yajl_status status = yajl_parse(h, (const unsigned char *)text, len);
    if (status == yajl_status_ok)
        status = yajl_complete_parse(h);
    if (status != yajl_status_ok) {
        unsigned char *why = yajl_get_error(h, 0, (const unsigned char *)text, len);
        why[strcspn((char *)why, "\n")] = 0;
        p->line->not_json = true;
        bz_fail(p->err, BZ_BAD_INPUT, "not JSON: %s", (char *)why);
        yajl_free_error(h, why);
    }
    yajl_free(h);
    return status == yajl_status_ok && (!p->failed || (p->line->is_system && !p->system_pass)) ? 0 : -1;
}

/* A system's line is read once more, now that it is known to be one, to gather its details. */
static int parse_system(parse *p, const char *text, size_t len)
{
    p->system_pass = true;
    p->failed = false;
    p->line->unknown = 0;
    p->line->system = p->line->details = "";
    p->copy_depth = 0;
    bz_buf_clear(p->copy.out);
    p->copy = bz_json_to(p->copy.out, false);
    bz_json_object(&p->copy);
    if (run(p, text, len))
        return -1;
    bz_json_object_end(&p->copy);
    const char *stack = p->line->details;
    p->line->details = bz_arena_strn(p->arena, p->copy.out->data, p->copy.out->len);
    if (*stack)
        p->line->system = bz_arena_printf(p->arena, "%s@%s", p->line->system, stack);
    return 0;
}

int bz_line_parse(const char *text, size_t len, bz_arena *arena, bz_line *line, bz_error *err)
{
    bz_error scratch;
    BZ_SCOPED(bz_buf) copy = {0};
    parse p = {.line = line, .arena = arena, .err = err ? err : &scratch, .expected = MEMBERS};
    *line = (bz_line){.record = bz_record_blank()};
    p.copy = bz_json_to(&copy, false);
    int rc = run(&p, text, len);
    line->newer = p.version > LINE_VERSION;
    if (!rc && p.version != LINE_VERSION)
        rc = p.version > LINE_VERSION
                 ? bz_fail(err, BZ_BAD_INPUT, "written by a newer benanza (version %lld)", (long long)p.version)
                 : bz_fail(err, BZ_BAD_INPUT, "there is no version 'v'");
    if (!rc && line->is_system)
        rc = parse_system(&p, text, len);
    return rc;
}
