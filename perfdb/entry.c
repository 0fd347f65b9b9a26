#include "perfdb/entry.h"

#include <math.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct {
    uint16_t version, fixed;
    uint32_t payload;
    uint64_t checksum;
} entry_header;
_Static_assert(sizeof(entry_header) == ENTRY_HEADER, "the header has no padding");

static uint64_t checksum(const void *key, size_t key_len, const entry_header *h, const void *payload)
{
    uint64_t seed = XXH3_64bits(key, key_len) + h->version * UINT64_C(0x10000) + h->fixed;
    return XXH3_64bits_withSeed(payload, h->payload, seed);
}

void bz_entry_seal(bz_buf *out, const void *key, size_t key_len, uint16_t version, const void *payload, size_t len,
                   size_t fixed)
{
    entry_header h = {.version = version, .fixed = (uint16_t)fixed, .payload = (uint32_t)len};
    h.checksum = checksum(key, key_len, &h, payload);
    bz_buf_clear(out);
    bz_buf_put(out, &h, sizeof h);
    bz_buf_put(out, payload, len);
}

/* The checksum comes first: only then is a strange version number a version and not damage. */
static bz_entry_state open_entry(const void *key, size_t key_len, const void *value, size_t len, const char **payload,
                                 size_t *payload_len, size_t *fixed)
{
    entry_header h;
    if (len < sizeof h)
        return ENTRY_DAMAGED;
    memcpy(&h, value, sizeof h);
    *payload = (const char *)value + sizeof h;
    if (h.payload != len - sizeof h || h.fixed > h.payload || h.checksum != checksum(key, key_len, &h, *payload))
        return ENTRY_DAMAGED;
    if (h.version > ENTRY_VERSION)
        return ENTRY_NEWER;
    *payload_len = h.payload;
    *fixed = h.fixed;
    return h.version == 0 ? ENTRY_DAMAGED : ENTRY_GOOD;
}

/* Keys */

static void big_endian(unsigned char *out, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (unsigned char)(v >> 8 * (bytes - 1 - i));
}

static void put_hash(unsigned char *out, bz_hash h)
{
    big_endian(out, h.high, 8);
    big_endian(out + 8, h.low, 8);
}

void bz_key_hash(const char *text, unsigned char out[HASH_SIZE])
{
    put_hash(out, bz_hash_bytes(text, strlen(text)));
}

/* What stands behind " dtype=" in a problem, or "". */
static const char *dtype_of(const char *problem, size_t *len)
{
    static const char MARK[] = " dtype=";
    const char *found = NULL;
    for (const char *p = problem; (p = strstr(p, MARK)); p++)
        found = p + strlen(MARK);
    *len = found ? strcspn(found, " ") : 0;
    return found ? found : "";
}

static void put_type(bz_record_key *key, uint32_t system, const char *dtype, size_t len)
{
    big_endian(key->byte, system, 4);
    big_endian(key->byte + KEY_SYSTEM, bz_hash_bytes(dtype, len).low, 4);
}

void bz_key_type(bz_record_key *key, uint32_t system, const char *dtype)
{
    put_type(key, system, dtype, strlen(dtype));
}

void bz_key_problem(bz_record_key *key, uint32_t system, const char *problem)
{
    size_t len;
    const char *dtype = dtype_of(problem, &len);
    put_type(key, system, dtype, len);
    bz_key_hash(problem, key->byte + KEY_TYPE);
}

void bz_key_identity(bz_record_key *key, const bz_variant *variant, const bz_setting *setting)
{
    const char *part[] = {bz_text_or_empty(variant->backend), bz_text_or_empty(variant->algorithm),
                          bz_text_or_empty(variant->layout), bz_text_or_empty(variant->math),
                          bz_text_or_empty(setting->clock)};
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        XXH3_128bits_update(&state, part[i], strlen(part[i]) + 1);
    int32_t number[] = {setting->threads, (int32_t)setting->cache};
    XXH3_128bits_update(&state, number, sizeof number);
    XXH128_hash_t h = XXH3_128bits_digest(&state);
    put_hash(key->byte + KEY_PROBLEM, (bz_hash){.high = h.high64, .low = h.low64});
}

void bz_key_date(bz_record_key *key, int64_t date)
{
    big_endian(key->byte + KEY_IDENTITY, ~(uint64_t)date, 8);
}

uint32_t bz_key_system_of(const void *key)
{
    const unsigned char *b = key;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Records */

enum { FLAG_CHOSEN = 1, FLAG_NOISY = 2, FLAG_THROTTLED = 4, FLAG_CHOSEN_TRAINING = 8, FLAG_BUSY = 16 };

typedef struct {
    double number[BZ_RECORD_NUMBERS];
    int64_t n, iterations, workspace, date;
    int32_t threads;
    uint8_t cache, status, timing, provenance;
    uint8_t flags, unused[3];
    uint32_t variants;
} fixed_part;
_Static_assert(sizeof(fixed_part) == 128, "the fixed part has no padding");

void bz_record_strings(bz_record *r, const char **out[N_STRINGS])
{
    const char **const all[N_STRINGS] = {
        &r->variant.backend, &r->variant.algorithm, &r->variant.layout, &r->variant.math, &r->setting.clock,
        &r->reason,          &r->checked,           &r->meta,
    };
    memcpy(out, all, sizeof all);
}

/* One NAN, whatever its sign and payload were: equal records must be equal bytes. */
static double known(double x)
{
    return isnan(x) ? NAN : x;
}

void bz_record_encode(const bz_record_key *key, const bz_record *r, bz_buf *out)
{
    fixed_part f = {
        .n = r->n,
        .iterations = r->iterations,
        .workspace = r->workspace,
        .date = r->date,
        .threads = r->setting.threads,
        .cache = (uint8_t)r->setting.cache,
        .status = (uint8_t)r->status,
        .timing = (uint8_t)r->timing,
        .provenance = (uint8_t)r->provenance,
        .flags =
            (uint8_t)((r->chosen ? FLAG_CHOSEN : 0) | (r->chosen_training ? FLAG_CHOSEN_TRAINING : 0) |
                      (r->noisy ? FLAG_NOISY : 0) | (r->throttled ? FLAG_THROTTLED : 0) | (r->busy ? FLAG_BUSY : 0)),
        .variants = (uint32_t)r->variants,
    };
    bz_record copy = *r;
    const char **string[N_STRINGS];
    bz_record_strings(&copy, string);
    for (int i = 0; i < BZ_RECORD_NUMBERS; i++)
        f.number[i] = known(r->number[i]);
    bz_buf_clear(out);
    entry_header h = {.version = ENTRY_VERSION, .fixed = sizeof f};
    bz_buf_put(out, &h, sizeof h);
    bz_buf_put(out, &f, sizeof f);
    for (int i = 0; i < N_STRINGS; i++) {
        const char *s = bz_text_or_empty(*string[i]);
        bz_buf_put(out, s, strlen(s) + 1);
    }
    h.payload = (uint32_t)(out->len - sizeof h);
    h.checksum = checksum(key->byte, sizeof key->byte, &h, out->data + sizeof h);
    memcpy(out->data, &h, sizeof h);
}

/* Splits the zero-terminated strings behind the fixed part; what an older entry lacks is "". */
static bool split_strings(const char *p, const char *end, const char **string[], int n)
{
    for (int i = 0; i < n; i++) {
        if (p == end) {
            *string[i] = "";
            continue;
        }
        const char *zero = memchr(p, 0, (size_t)(end - p));
        if (!zero)
            return false;
        *string[i] = p;
        p = zero + 1;
    }
    return true;
}

bz_entry_state bz_record_decode(const void *key, size_t key_len, const void *value, size_t len, bz_record *r)
{
    const char *payload;
    size_t payload_len, fixed;
    if (key_len != KEY_RECORD)
        return ENTRY_DAMAGED;
    bz_entry_state state = open_entry(key, key_len, value, len, &payload, &payload_len, &fixed);
    if (state != ENTRY_GOOD)
        return state;
    fixed_part f = {0};
    memcpy(&f, payload, fixed < sizeof f ? fixed : sizeof f);
    if (fixed < offsetof(fixed_part, flags) || f.cache > BZ_CACHE_COLD || f.status > BZ_RECORD_DROPPED ||
        f.timing > BZ_TIMING_WALL || f.provenance > BZ_PROVENANCE_IMPORTED)
        return ENTRY_DAMAGED;
    *r = (bz_record){
        .system = r->system,
        .problem = r->problem,
        .setting = {.threads = f.threads, .cache = (bz_record_cache)f.cache},
        .status = (bz_record_status)f.status,
        .n = f.n,
        .iterations = f.iterations,
        .workspace = f.workspace,
        .variants = f.variants,
        .chosen = f.flags & FLAG_CHOSEN,
        .chosen_training = f.flags & FLAG_CHOSEN_TRAINING,
        .noisy = f.flags & FLAG_NOISY,
        .throttled = f.flags & FLAG_THROTTLED,
        .busy = f.flags & FLAG_BUSY,
        .timing = (bz_record_timing)f.timing,
        .provenance = (bz_record_provenance)f.provenance,
        .date = f.date,
    };
    memcpy(r->number, f.number, sizeof r->number);
    const char **string[N_STRINGS];
    bz_record_strings(r, string);
    return split_strings(payload + fixed, payload + payload_len, string, N_STRINGS) ? ENTRY_GOOD : ENTRY_DAMAGED;
}

/* Systems and problems */

typedef struct {
    int64_t date;
    uint32_t id, unused;
} system_part;

void bz_system_encode(const char *name, uint32_t id, const char *details, int64_t date, bz_buf *out)
{
    system_part f = {.date = date, .id = id};
    BZ_SCOPED(bz_buf) payload = {0};
    bz_buf_put(&payload, &f, sizeof f);
    bz_buf_put(&payload, name, strlen(name) + 1);
    bz_buf_put(&payload, details, strlen(details) + 1);
    bz_entry_seal(out, name, strlen(name), ENTRY_VERSION, payload.data, payload.len, sizeof f);
}

bz_entry_state bz_system_decode(const void *key, size_t key_len, const void *value, size_t len, bz_system *s)
{
    const char *payload;
    size_t payload_len, fixed;
    bz_entry_state state = open_entry(key, key_len, value, len, &payload, &payload_len, &fixed);
    if (state != ENTRY_GOOD)
        return state;
    system_part f;
    if (fixed < sizeof f)
        return ENTRY_DAMAGED;
    memcpy(&f, payload, sizeof f);
    *s = (bz_system){.id = f.id, .date = f.date};
    if (!split_strings(payload + fixed, payload + payload_len, (const char **[]){&s->name, &s->details}, 2))
        return ENTRY_DAMAGED;
    bool good = s->id > 0 && s->id < LAST_SYSTEM && strlen(s->name) == key_len && !memcmp(s->name, key, key_len) &&
                !bz_system_check(s->name, NULL);
    return good ? ENTRY_GOOD : ENTRY_DAMAGED;
}

void bz_problem_encode(const char *problem, bz_buf *out)
{
    unsigned char key[HASH_SIZE];
    bz_key_hash(problem, key);
    bz_entry_seal(out, key, sizeof key, ENTRY_VERSION, problem, strlen(problem) + 1, 0);
}

bz_entry_state bz_problem_decode(const void *key, size_t key_len, const void *value, size_t len, const char **problem)
{
    const char *payload;
    size_t payload_len, fixed;
    bz_entry_state state = open_entry(key, key_len, value, len, &payload, &payload_len, &fixed);
    if (state != ENTRY_GOOD)
        return state;
    return split_strings(payload + fixed, payload + payload_len, (const char **[]){problem}, 1) ? ENTRY_GOOD
                                                                                                : ENTRY_DAMAGED;
}
