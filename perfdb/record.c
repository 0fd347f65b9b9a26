/* What a record may be, which records are the same, and which of two is kept. */
#include "perfdb/entry.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const STATUS[] = {"ok", "failed", "unsupported", "crashed", "timeout", "dropped"};
static const char *const TIMING[] = {"device", "event-pair", "cupti", "wall"};
static const char *const PROVENANCE[] = {"measured", "modelled", "imported"};
static const char *const CACHE[] = {"hot", "cold"};

enum { LONGEST_NAME = 1000, LONGEST_PROBLEM = 64 * 1024, LONGEST_SYSTEM = 100, MOST_THREADS = 1 << 20 };

const char *bz_record_status_name(int s)
{
    return STATUS[s];
}

const char *bz_record_timing_name(int t)
{
    return TIMING[t];
}

const char *bz_record_provenance_name(int p)
{
    return PROVENANCE[p];
}

const char *bz_record_cache_name(int c)
{
    return CACHE[c];
}

const char *bz_text_or_empty(const char *s)
{
    return s ? s : "";
}

bool bz_text_is_plain(const char *s, size_t limit)
{
    size_t n = strnlen(s, limit + 1);
    if (n > limit)
        return false;
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        if (*p >= 0x20 && *p < 0x7f) {
            p++;
            continue;
        }
        int more = *p < 0x80                 ? 0
                   : *p >= 0xc2 && *p < 0xe0 ? 1
                   : (*p & 0xf0) == 0xe0     ? 2
                   : *p >= 0xf0 && *p < 0xf5 ? 3
                                             : -1;
        /* U+0080 to U+009F are control characters too; then what is longer than it need be, surrogates,
         * and what lies beyond the last character */
        if (more < 0 || *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0) || (*p == 0xe0 && p[1] < 0xa0) ||
            (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
            return false;
        p++;
        for (; more > 0; more--)
            if ((*p++ & 0xc0) != 0x80)
                return false;
    }
    return true;
}

/* One half of slug@stack: no slash, no leading dot, so that it may name a file. */
static bool name_part_good(const char *s, size_t n)
{
    if (n == 0 || s[0] == '.' || s[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= '0' && s[i] <= '9') && !strchr("._+-", s[i]))
            return false;
    return true;
}

int bz_system_check(const char *name, bz_error *err)
{
    const char *at = strchr(name, '@');
    size_t slug = at ? (size_t)(at - name) : strlen(name);
    if (strnlen(name, LONGEST_SYSTEM + 1) > LONGEST_SYSTEM || !name_part_good(name, slug) ||
        (at && !name_part_good(at + 1, strlen(at + 1))))
        return bz_fail(err, BZ_BAD_INPUT,
                       "'%.100s' is no name for a system: wanted is slug@stack, as v100@cudnn7.6.3, of small letters, "
                       "digits and . _ + -",
                       name);
    return 0;
}

static int check_texts(const bz_record *r, bz_error *err)
{
    /* A backend that has nothing for a problem says so without naming an algorithm. */
    const struct {
        const char *what, *text;
        size_t limit;
        bool wanted;
    } texts[] = {
        {"backend", r->variant.backend, 64, true},
        {"algorithm", r->variant.algorithm, LONGEST_NAME, r->status == BZ_RECORD_OK},
        {"layout", r->variant.layout, 64, true},
        {"math", r->variant.math, 64, true},
        {"clock", r->setting.clock, 200, false},
        {"reason", r->reason, 4000, false},
        {"checked", r->checked, 4000, false},
        {"meta", r->meta, LONGEST_PROBLEM, false},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = bz_text_or_empty(texts[i].text);
        if (texts[i].wanted && !*text)
            return bz_fail(err, BZ_BAD_INPUT, "there is no %s", texts[i].what);
        if (!bz_text_is_plain(text, texts[i].limit))
            return bz_fail(err, BZ_BAD_INPUT, "the %s is longer than %zu bytes, or no plain text", texts[i].what,
                           texts[i].limit);
    }
    if (r->meta && *r->meta && *r->meta != '{')
        return bz_fail(err, BZ_BAD_INPUT, "meta is no JSON object");
    return 0;
}

static int check_numbers(const bz_record *r, bz_error *err)
{
    for (size_t i = 0; i < sizeof r->number / sizeof *r->number; i++)
        if (r->number[i] < 0 || isinf(r->number[i]))
            return bz_fail(err, BZ_BAD_INPUT, "a time or an amount is negative or infinite");
    if (r->n < 0 || r->iterations < 0 || r->workspace < 0 || r->variants < 0 || r->variants > INT32_MAX)
        return bz_fail(err, BZ_BAD_INPUT, "a count is negative, or too large");
    if (r->date < 0)
        return bz_fail(err, BZ_BAD_INPUT,
                       "a record is dated before 1970: the clock of the machine that it was measured on is wrong");
    if (r->setting.threads < 0 || r->setting.threads > MOST_THREADS)
        return bz_fail(err, BZ_BAD_INPUT, "%d is no number of threads", r->setting.threads);
    return 0;
}

bz_record bz_record_blank(void)
{
    bz_record r = {0};
    for (size_t i = 0; i < sizeof r.number / sizeof *r.number; i++)
        r.number[i] = NAN;
    return r;
}

void bz_record_variant(const bz_record *r, bz_buf *out)
{
    if (strncmp(r->variant.algorithm, r->variant.backend, strlen(r->variant.backend)) != 0)
        bz_buf_printf(out, "%s ", r->variant.backend);
    bz_buf_puts(out, r->variant.algorithm);
    if (strcmp(r->variant.layout, "plain") != 0)
        bz_buf_printf(out, " %s", r->variant.layout);
}

bz_record bz_record_copy(const bz_record *r, bz_arena *arena)
{
    bz_record copy = *r;
    const char **string[N_STRINGS + 1] = {&copy.problem};
    bz_record_strings(&copy, string + 1);
    for (size_t i = 0; i < sizeof string / sizeof *string; i++)
        *string[i] = **string[i] ? bz_arena_str(arena, *string[i]) : "";
    return copy;
}

int bz_record_check(const bz_record *r, bz_error *err)
{
    const char *problem = bz_text_or_empty(r->problem);
    if (!*problem)
        return bz_fail(err, BZ_BAD_INPUT, "there is no problem");
    if (!bz_text_is_plain(problem, LONGEST_PROBLEM))
        return bz_fail(err, BZ_BAD_INPUT, "the problem is longer than %d bytes, or no plain text", LONGEST_PROBLEM);
    return bz_system_check(bz_text_or_empty(r->system), err) || bz_record_check_content(r, err) ? -1 : 0;
}

int bz_record_check_content(const bz_record *r, bz_error *err)
{
    if (check_texts(r, err) || check_numbers(r, err))
        return -1;
    if (r->status == BZ_RECORD_OK && !(r->median > 0))
        return bz_fail(err, BZ_BAD_INPUT, "an ok record needs a median above 0");
    if (r->status != BZ_RECORD_OK && !*bz_text_or_empty(r->reason))
        return bz_fail(err, BZ_BAD_INPUT, "a record that is %s needs a reason", STATUS[r->status]);
    return 0;
}

static bool same(const char *a, const char *b)
{
    return !strcmp(bz_text_or_empty(a), bz_text_or_empty(b));
}

bool bz_record_marked(const bz_record *r)
{
    return r->noisy || r->throttled || r->busy;
}

bool bz_record_failed(const bz_record *r)
{
    return r->status == BZ_RECORD_FAILED || r->status == BZ_RECORD_CRASHED || r->status == BZ_RECORD_TIMEOUT;
}

/* Libraries and systems say why in words: theirs are read here, and nowhere else. */
static const struct {
    const char *word;
    bz_record_cause cause;
} CAUSES[] = {
    {"SIGTERM", BZ_CAUSE_STOPPED},
    {"SIGINT", BZ_CAUSE_STOPPED},
    {"SIGHUP", BZ_CAUSE_PASSING},
    {"SIGKILL", BZ_CAUSE_PASSING},
    {"SIGXCPU", BZ_CAUSE_PASSING},
    {"out of memory", BZ_CAUSE_PASSING}, /* others had it */
    {"no memory", BZ_CAUSE_PASSING},
    {"OUT_OF_MEMORY", BZ_CAUSE_PASSING},
    {"ALLOC_FAILED", BZ_CAUSE_PASSING},
    {"No space", BZ_CAUSE_PASSING},
    {"busy", BZ_CAUSE_PASSING},
    {"unavailable", BZ_CAUSE_PASSING},
    {"ECC", BZ_CAUSE_PASSING}, /* a device in trouble */
    {"device lost", BZ_CAUSE_PASSING},
    {"CUDA_ERROR_UNKNOWN", BZ_CAUSE_PASSING},
    {"unspecified launch failure", BZ_CAUSE_PASSING},
};

bz_record_cause bz_record_cause_of(const bz_record *r)
{
    for (size_t i = 0; i < sizeof CAUSES / sizeof *CAUSES && bz_record_failed(r); i++)
        if (strstr(r->reason, CAUSES[i].word))
            return CAUSES[i].cause;
    return r->status == BZ_RECORD_TIMEOUT ? BZ_CAUSE_PASSING : BZ_CAUSE_LASTING;
}

/* What stands behind `name` in meta; NULL: it is not there. Inside a string it would stand between other quotes: meta is as bz_json
 * writes it. */
static const char *member_of(const char *meta, const char *name)
{
    const char *at = meta ? strstr(meta, name) : NULL;
    return at ? at + strlen(name) : NULL;
}

static double kernels_of(const bz_record *r)
{
    const char *at = member_of(r->meta, "\"kernel_time\":");
    return at ? strtod(at, NULL) : 0;
}

bool bz_record_counts(const bz_record *r, bz_counts *out)
{
    static const struct {
        const char *name;
        size_t offset;
    } PARTS[] = {{"\"flops\":", offsetof(bz_counts, flops)},
                 {"\"dram_read\":", offsetof(bz_counts, dram_read)},
                 {"\"dram_write\":", offsetof(bz_counts, dram_write)}};
    const char *counted = member_of(r->meta, "\"counted\":{"), *end = counted ? strchr(counted, '}') : NULL;
    *out = (bz_counts){NAN, NAN, NAN};
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS && end; i++) {
        const char *at = member_of(counted, PARTS[i].name);
        char *behind;
        double v = at && at < end ? strtod(at, &behind) : NAN;
        if (v >= 0 && isfinite(v) && behind > at)
            *(double *)(void *)((char *)out + PARTS[i].offset) = v;
    }
    return end != NULL;
}

bool bz_record_yardsticks(const bz_record *r, double seconds[2])
{
    const char *at = member_of(r->meta, "\"yardstick\":[");
    char *end = NULL;
    if (!at)
        return false;
    seconds[0] = strtod(at, &end);
    seconds[1] = *end == ',' ? strtod(end + 1, &end) : 0;
    return seconds[0] > 0 && seconds[1] > 0 && isfinite(seconds[0]) && isfinite(seconds[1]);
}

bool bz_record_has_floor(const bz_record *r, bool device)
{
    return r->timing == BZ_TIMING_EVENT_PAIR || (device && r->timing == BZ_TIMING_DEVICE && !(kernels_of(r) > 0));
}

double bz_record_busy(const bz_record *r)
{
    double kernels = kernels_of(r);
    return kernels > 0 && kernels < r->median ? kernels : r->median;
}

/* A day in UTC, or how long ago: 7d, 12h, 30min. */
static bool read_moment(const char *text, int64_t *out)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } UNITS[] = {{"min", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
    struct tm tm = {0};
    char *end = strptime(text, "%Y-%m-%d", &tm);
    if (end && !*end) {
        *out = (int64_t)timegm(&tm);
        return true;
    }
    errno = 0;
    long n = strtol(text, &end, 10);
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS && !errno && end != text && n > 0 && n < 1000000; i++)
        if (!strcmp(end, UNITS[i].unit)) {
            *out = (int64_t)time(NULL) - n * UNITS[i].seconds;
            return true;
        }
    return false;
}

int bz_remeasure_parse(const char *text, bz_remeasure *out, bz_error *err)
{
    static const char OLDER[] = "older-than=";
    *out = (bz_remeasure){.all = text && !strcmp(text, "all"), .marked = text && !strcmp(text, "noisy")};
    if (!text || out->all || out->marked ||
        (!strncmp(text, OLDER, strlen(OLDER)) && read_moment(text + strlen(OLDER), &out->before)))
        return 0;
    return bz_fail(err, BZ_USAGE,
                   "--remeasure takes noisy, all, or older-than= with a day (2026-11-22) or a time (7d, 12h), not '%s'",
                   text);
}

size_t bz_records_keep(bz_record *records, size_t n, const bz_remeasure *again)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const bz_record *r = &records[i];
        bool marked = r->status == BZ_RECORD_DROPPED ? r->busy : bz_record_marked(r);
        if (!again || (!again->all && !(again->marked && marked) && r->date >= again->before))
            records[kept++] = *r;
    }
    return kept;
}

bool bz_record_is_time(const bz_record *r)
{
    bool several = r->n > 1 || (r->provenance == BZ_PROVENANCE_IMPORTED && r->iterations > 1);
    return r->status == BZ_RECORD_OK && r->median > 0 && several;
}

bool bz_record_same_identity(const bz_record *a, const bz_record *b)
{
    const bz_variant *v = &a->variant, *w = &b->variant;
    return same(a->system, b->system) && same(a->problem, b->problem) && same(v->backend, w->backend) &&
           same(v->algorithm, w->algorithm) && same(v->layout, w->layout) && same(v->math, w->math) &&
           bz_setting_same(&a->setting, &b->setting);
}

bool bz_record_in_family(const bz_record *r, const bz_variant *family, const bz_setting *setting)
{
    return same(r->variant.backend, family->backend) && same(r->variant.layout, family->layout) &&
           same(r->variant.math, family->math) && bz_setting_same(&r->setting, setting);
}

bool bz_records_complete(const bz_record *records, size_t n, const bz_variant *family, const bz_setting *setting)
{
    int64_t had = 0;
    for (size_t i = 0; i < n; i++) {
        const bz_record *r = &records[i];
        if (!bz_record_in_family(r, family, setting))
            continue;
        if (!*bz_text_or_empty(r->variant.algorithm) || ++had >= r->variants)
            return true;
    }
    return false;
}

static int provenance_rank(bz_record_provenance p)
{
    return p == BZ_PROVENANCE_MEASURED ? 2 : p == BZ_PROVENANCE_IMPORTED ? 1 : 0;
}

/* Wider than anything where the interval is not known. */
static double interval(const bz_record *r)
{
    double width = r->high - r->low;
    return isnan(width) ? HUGE_VAL : width;
}

int bz_record_prefer(const bz_record *a, const bz_record *b)
{
    int rank = provenance_rank(a->provenance) - provenance_rank(b->provenance);
    if (rank)
        return rank;
    if ((a->status == BZ_RECORD_OK) != (b->status == BZ_RECORD_OK))
        return a->status == BZ_RECORD_OK ? 1 : -1;
    if (a->n != b->n)
        return a->n > b->n ? 1 : -1;
    if (interval(a) != interval(b))
        return interval(a) < interval(b) ? 1 : -1;
    bz_counts counts;
    bool counted_a = bz_record_counts(a, &counts), counted_b = bz_record_counts(b, &counts);
    if (counted_a != counted_b)
        return counted_a ? 1 : -1;
    bz_record_key no_key = {0};
    BZ_SCOPED(bz_buf) bytes_a = {0}, bytes_b = {0};
    bz_record_encode(&no_key, a, &bytes_a);
    bz_record_encode(&no_key, b, &bytes_b);
    size_t shorter = bytes_a.len < bytes_b.len ? bytes_a.len : bytes_b.len;
    int order = memcmp(bytes_a.data + ENTRY_HEADER, bytes_b.data + ENTRY_HEADER, shorter - ENTRY_HEADER);
    if (!order)
        order = bytes_a.len > bytes_b.len ? 1 : bytes_a.len < bytes_b.len ? -1 : 0;
    return order;
}

/* Compares digits as numbers, all else as bytes. */
static int compare_versions(const char *a, const char *b)
{
    while (*a && *b) {
        size_t digits_a = strspn(a, "0123456789"), digits_b = strspn(b, "0123456789");
        if (!digits_a || !digits_b) {
            if (*a != *b)
                return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
            a++;
            b++;
            continue;
        }
        for (; digits_a > 1 && *a == '0'; digits_a--)
            a++;
        for (; digits_b > 1 && *b == '0'; digits_b--)
            b++;
        if (digits_a != digits_b)
            return digits_a < digits_b ? -1 : 1;
        int order = memcmp(a, b, digits_a);
        if (order)
            return order;
        a += digits_a;
        b += digits_b;
    }
    return *a ? 1 : *b ? -1 : 0;
}

int bz_system_compare(const char *a, const char *b)
{
    size_t slug_a = strcspn(a, "@"), slug_b = strcspn(b, "@");
    int order = memcmp(a, b, slug_a < slug_b ? slug_a : slug_b);
    if (order || slug_a != slug_b)
        return order ? order : slug_a < slug_b ? -1 : 1;
    order = compare_versions(a + slug_a, b + slug_b);
    return order ? order : strcmp(a, b);
}
