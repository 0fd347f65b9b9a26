#include "profile/tokens.h"

#include <string.h>
#if defined __SSE2__
#include <emmintrin.h>
#endif

enum {
    VALUE,
    KEY,
    VALUE_OR_CLOSE,
    KEY_OR_CLOSE,
    COMMA_OR_CLOSE,
    DONE
}; /* bz_tokens.expected; from VALUE_OR_CLOSE on an end may come */

static inline bz_token ends(bz_tokens *k, bz_token what, const char *at)
{
    k->at = at;
    k->expected = k->depth ? COMMA_OR_CLOSE : DONE;
    return what;
}

static inline bz_token stops(bz_tokens *k, bz_token why, const char *at)
{
    k->at = at;
    return why;
}

static bz_token open(bz_tokens *k, const char *p, bool map)
{
    if (k->depth == BZ_TOKENS_DEEPEST) {
        k->too_deep = true;
        return stops(k, BZ_TOKEN_BAD, p);
    }
    uint64_t bit = UINT64_C(1) << k->depth % 64, *word = &k->maps[k->depth / 64];
    *word = map ? *word | bit : *word & ~bit;
    k->depth++;
    k->in_map = map;
    k->expected = map ? KEY_OR_CLOSE : VALUE_OR_CLOSE;
    k->at = p + 1;
    return map ? BZ_TOKEN_OPEN_MAP : BZ_TOKEN_OPEN_ARRAY;
}

static bz_token close(bz_tokens *k, const char *p)
{
    bool map = k->in_map;
    int outer = --k->depth - 1;
    k->in_map = outer >= 0 && k->maps[outer / 64] >> outer % 64 & 1;
    return ends(k, map ? BZ_TOKEN_CLOSE_MAP : BZ_TOKEN_CLOSE_ARRAY, p + 1);
}

static bool is_plain(char c)
{
    return c != '"' && c != '\\' && (unsigned char)c >= 0x20;
}

/* The first byte that is no plain one; sixteen at once, or eight: a byte that is zero, or less than 0x20, borrows from its highest bit, and
 * the lowest such byte is told right. */
static inline const char *skip_plain(const char *p, const char *end)
{
#if defined __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p),
                odd = _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash));
        int found = _mm_movemask_epi8(_mm_or_si128(odd, _mm_cmpeq_epi8(_mm_min_epu8(v, control), v)));
        if (found)
            return p + __builtin_ctz((unsigned)found);
    }
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ONES = 0x0101010101010101u;
    for (uint64_t v; end - p >= 8; p += 8) {
        memcpy(&v, p, sizeof v);
        uint64_t quote = v ^ ONES * '"', slash = v ^ ONES * '\\',
                 found =
                     (((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | ((v - ONES * 0x20) & ~v)) & ONES * 0x80;
        if (found)
            return p + __builtin_ctzll(found) / 8;
    }
#endif
    while (p < end && is_plain(*p))
        p++;
    return p;
}

/* The value of four hexadecimal digits; -1: they are none. */
static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)p[i], digit = c >= '0' && c <= '9'   ? c - '0'
                                             : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                                    : -1;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

static void put_utf8(bz_buf *b, uint32_t c)
{
    if (c < 0x80) {
        bz_buf_putc(b, (char)c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const int LEAD[] = {0, 0xc0, 0xe0, 0xf0};
    bz_buf_putc(b, (char)(LEAD[more] | (int)(c >> 6 * more)));
    while (more--)
        bz_buf_putc(b, (char)(0x80 | (c >> 6 * more & 0x3f)));
}

/* \uXXXX at p, and the second half of a pair behind it; what is half a pair is a question mark. Returns its length; 0: damaged; -1: the window
 * ends. */
static int unicode(bz_buf *b, const char *p, const char *end)
{
    if (end - p < 6)
        return -1;
    int c = hex4(p + 2), low;
    if (c < 0)
        return 0;
    if ((c & 0xf800) != 0xd800) {
        put_utf8(b, (uint32_t)c);
        return 6;
    }
    bool pair = (end - p < 7 || p[6] == '\\') && (end - p < 8 || p[7] == 'u');
    if (pair && end - p < 12)
        return -1;
    if (pair && c < 0xdc00 && (low = hex4(p + 8)) >= 0 && (low & 0xfc00) == 0xdc00) {
        put_utf8(b, 0x10000 + ((uint32_t)(c & 0x3ff) << 10) + (uint32_t)(low & 0x3ff));
        return 12;
    }
    bz_buf_putc(b, '?');
    return 6;
}

static int escape(bz_buf *b, const char *p, const char *end)
{
    static const char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";
    if (end - p < 2)
        return -1;
    if (p[1] == 'u')
        return unicode(b, p, end);
    const char *at = p[1] ? strchr(FROM, p[1]) : NULL;
    if (!at)
        return 0;
    bz_buf_putc(b, TO[at - FROM]);
    return 2;
}

/* Of a string with escapes, or that the window cuts off: from `from` to `at` nothing is odd. */
__attribute__((noinline)) static bz_token odd_string(bz_tokens *k, const char *from, const char *at,
                                                     const char **behind)
{
    bz_buf_clear(&k->plain);
    while (at < k->end && *at != '"') {
        bz_buf_put(&k->plain, from, (size_t)(at - from));
        int n = *at == '\\' ? escape(&k->plain, at, k->end) : 0;
        if (n <= 0)
            return n ? BZ_TOKEN_MORE : BZ_TOKEN_BAD;
        from = at + n;
        at = skip_plain(from, k->end);
    }
    if (at >= k->end)
        return BZ_TOKEN_MORE;
    bz_buf_put(&k->plain, from, (size_t)(at - from));
    k->text = bz_buf_text(&k->plain);
    k->n = k->plain.len;
    *behind = at + 1;
    return BZ_TOKEN_STRING;
}

/* Reads the string at p; `*behind` is behind its quote. BZ_TOKEN_STRING, or what keeps it from being one. */
static inline bz_token string(bz_tokens *k, const char *p, const char **behind)
{
    const char *from = p + 1, *at = skip_plain(from, k->end);
    if (at >= k->end || *at != '"')
        return odd_string(k, from, at, behind);
    k->text = from;
    k->n = (size_t)(at - from);
    *behind = at + 1;
    return BZ_TOKEN_STRING;
}

static inline const char *skip_space(const char *p, const char *end)
{
    while (p < end && (unsigned char)*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

static inline bz_token key(bz_tokens *k, const char *p)
{
    const char *behind;
    if (*p != '"')
        return stops(k, BZ_TOKEN_BAD, p);
    bz_token what = string(k, p, &behind);
    if (what != BZ_TOKEN_STRING)
        return stops(k, what, p);
    behind = skip_space(behind, k->end);
    if (behind == k->end)
        return stops(k, BZ_TOKEN_MORE, p);
    if (*behind != ':')
        return stops(k, BZ_TOKEN_BAD, behind);
    k->expected = VALUE;
    return stops(k, BZ_TOKEN_KEY, behind + 1);
}

/* Behind the digits at p; eight at once: a byte that is no digit has its highest bit set here, and the lowest such byte is told right. */
static inline const char *digits(const char *p, const char *end)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ONES = 0x0101010101010101u;
    for (uint64_t v; end - p >= 8; p += 8) {
        memcpy(&v, p, sizeof v);
        v ^= ONES * '0';
        v = (v | (v + ONES * 0x76)) & ONES * 0x80;
        if (v)
            return p + __builtin_ctzll(v) / 8;
    }
#endif
    while (p < end && (unsigned)(*p - '0') <= 9)
        p++;
    return p;
}

/* What is behind a number may be in the next window, so a number ends before the window does. */
static bz_token number(bz_tokens *k, const char *p)
{
    const char *end = k->end, *at = p + (*p == '-'), *from = at;
    at = digits(at, end);
    bool bad = at < end && (at == from || (*from == '0' && at - from > 1));
    if (at < end && *at == '.') {
        from = ++at;
        at = digits(at, end);
        bad |= at < end && at == from;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        from = at;
        at = digits(at, end);
        bad |= at < end && at == from;
    }
    if (bad || at == end)
        return stops(k, bad ? BZ_TOKEN_BAD : BZ_TOKEN_MORE, p);
    k->text = p;
    k->n = (size_t)(at - p);
    return ends(k, BZ_TOKEN_NUMBER, at);
}

static bz_token word(bz_tokens *k, const char *p)
{
    static const struct {
        const char *text;
        bz_token what;
    } WORDS[] = {{"true", BZ_TOKEN_WORD}, {"false", BZ_TOKEN_WORD},   {"null", BZ_TOKEN_WORD},    {"NaN", BZ_TOKEN_NAN},
                 {"-NaN", BZ_TOKEN_NAN},  {"Infinity", BZ_TOKEN_NAN}, {"-Infinity", BZ_TOKEN_NAN}};
    size_t left = (size_t)(k->end - p);
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        size_t n = strlen(WORDS[i].text);
        if (memcmp(p, WORDS[i].text, n < left ? n : left) != 0)
            continue;
        if (n > left)
            return stops(k, BZ_TOKEN_MORE, p);
        k->text = p;
        k->n = n;
        return ends(k, WORDS[i].what, p + n);
    }
    return stops(k, BZ_TOKEN_BAD, p);
}

static inline bz_token value(bz_tokens *k, const char *p)
{
    const char *behind;
    switch (*p) {
    case '{':
    case '[':
        return open(k, p, *p == '{');
    case '"': {
        bz_token what = string(k, p, &behind);
        return what == BZ_TOKEN_STRING ? ends(k, what, behind) : stops(k, what, p);
    }
    case '-':
        if (p + 1 < k->end && (p[1] == 'N' || p[1] == 'I'))
            return word(k, p);
        return number(k, p);
    default:
        return *p >= '0' && *p <= '9' ? number(k, p) : word(k, p);
    }
}

bz_token bz_tokens_next(bz_tokens *k)
{
    const char *p = skip_space(k->at, k->end);
    if (k->expected == DONE)
        return stops(k, BZ_TOKEN_END, p);
    if (p == k->end)
        return stops(k, BZ_TOKEN_MORE, p);
    if (k->expected == COMMA_OR_CLOSE && *p == ',') {
        k->expected = k->in_map ? KEY : VALUE;
        p = skip_space(p + 1, k->end);
        if (p == k->end)
            return stops(k, BZ_TOKEN_MORE, p);
    } else if (k->expected >= VALUE_OR_CLOSE) {
        if (*p == (k->in_map ? '}' : ']'))
            return close(k, p);
        if (k->expected == COMMA_OR_CLOSE)
            return stops(k, BZ_TOKEN_BAD, p);
    }
    return k->expected == KEY || k->expected == KEY_OR_CLOSE ? key(k, p) : value(k, p);
}

/* Behind a number that is plainly written; NULL: it is not, or the window may go on with it. */
static inline const char *plain_number(const char *p, const char *end)
{
    const char *from = p + (*p == '-'), *at = digits(from, end);
    if (at == end || at == from || (*from == '0' && at - from > 1))
        return NULL;
    if (*at == '.') {
        from = at + 1;
        at = digits(from, end);
        if (at == end || at == from)
            return NULL;
    }
    return *at == 'e' || *at == 'E' ? NULL : at;
}

bz_token bz_tokens_member(bz_tokens *k)
{
    const char *const end = k->end, *p = skip_space(k->at, end);
    if (!k->in_map || p == end || (k->expected != COMMA_OR_CLOSE && k->expected != KEY_OR_CLOSE))
        return BZ_TOKEN_MORE;
    if (k->expected == COMMA_OR_CLOSE) {
        if (*p != ',')
            return BZ_TOKEN_MORE;
        p = skip_space(p + 1, end);
    }
    if (p == end || *p != '"')
        return BZ_TOKEN_MORE;
    const char *name = p + 1, *behind = skip_plain(name, end), *at;
    if (behind == end || *behind != '"' || (at = skip_space(behind + 1, end)) == end || *at != ':' ||
        (at = skip_space(at + 1, end)) == end)
        return BZ_TOKEN_MORE;
    bool text = *at == '"';
    const char *last = text ? skip_plain(at + 1, end) : plain_number(at, end);
    if (!last || last == end || (text && *last != '"'))
        return BZ_TOKEN_MORE;
    k->key = name;
    k->key_n = (size_t)(behind - name);
    k->text = at + text;
    k->n = (size_t)(last - k->text);
    k->expected = COMMA_OR_CLOSE;
    k->at = last + text;
    return text ? BZ_TOKEN_STRING : BZ_TOKEN_NUMBER;
}

void bz_tokens_again(bz_tokens *k)
{
    k->expected = VALUE;
}
