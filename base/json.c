#include "base/json.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bz_json bz_json_to(bz_buf *out, bool indent)
{
    return (bz_json){.out = out, .indent = indent};
}

static void new_line(bz_json *j)
{
    if (!j->indent || (j->flat && j->depth >= j->flat))
        return;
    bz_buf_putc(j->out, '\n');
    size_t n = 2 * (size_t)j->depth;
    memset(bz_buf_extend(j->out, n), ' ', n);
}

/* What must stand before a value or key: a comma, a new line, or nothing after a key. */
static void before(bz_json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->comma)
        bz_buf_puts(j->out, j->indent && j->flat && j->depth >= j->flat ? ", " : ",");
    if (j->depth)
        new_line(j);
    j->comma = true;
}

static void open(bz_json *j, char c)
{
    before(j);
    bz_buf_putc(j->out, c);
    j->depth++;
    j->comma = false;
}

static void close(bz_json *j, char c)
{
    bool flat = j->flat && j->depth >= j->flat; /* what it holds stands on this line */
    j->depth--;
    if (j->comma && !flat)
        new_line(j);
    bz_buf_putc(j->out, c);
    j->comma = true;
}

void bz_json_object(bz_json *j)
{
    open(j, '{');
}

void bz_json_object_end(bz_json *j)
{
    close(j, '}');
}

void bz_json_array(bz_json *j)
{
    open(j, '[');
}

void bz_json_array_end(bz_json *j)
{
    close(j, ']');
}

/* '<' and '>' are escaped too, so that the text may stand inside an HTML script element. */
static size_t plain_letters(const unsigned char *p)
{
    size_t n = 0;
    while (p[n] >= 0x20 && p[n] < 0x7f && p[n] != '"' && p[n] != '\\' && p[n] != '<' && p[n] != '>')
        n++;
    return n;
}

static void put_string(bz_buf *b, const char *s)
{
    size_t plain = plain_letters((const unsigned char *)s);
    if (!s[plain]) { /* nearly always */
        char *to = bz_buf_extend(b, plain + 2);
        to[0] = to[plain + 1] = '"';
        memcpy(to + 1, s, plain);
        return;
    }
    bz_buf_putc(b, '"');
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        plain = plain_letters(p);
        bz_buf_put(b, p, plain);
        p += plain;
        uint32_t c;
        int n = utf8_read(p, &c);
        if (!*p)
            break;
        if (n == 0) {
            bz_buf_puts(b, "\xef\xbf\xbd"); /* as it is, not as an escape: written once more, it must not change */
        } else if (c == '"' || c == '\\') {
            bz_buf_putc(b, '\\');
            bz_buf_putc(b, (char)c);
        } else if (c == '\n') {
            bz_buf_puts(b, "\\n");
        } else if (c == '\t') {
            bz_buf_puts(b, "\\t");
        } else if (is_unsafe(c) || c == '<' || c == '>') {
            bz_buf_printf(b, "\\u%04x", (unsigned)c);
        } else {
            bz_buf_put(b, p, (size_t)n);
        }
        p += n ? n : 1;
    }
    bz_buf_putc(b, '"');
}

void bz_json_key(bz_json *j, const char *key)
{
    before(j);
    put_string(j->out, key);
    bz_buf_puts(j->out, j->indent ? ": " : ":");
    j->after_key = true;
}

void bz_json_str(bz_json *j, const char *s)
{
    before(j);
    if (s)
        put_string(j->out, s);
    else
        bz_buf_puts(j->out, "null");
}

void bz_json_int(bz_json *j, int64_t v)
{
    before(j);
    bz_buf_int(j->out, v);
}

/* Times are whole nanoseconds, told in seconds. Decimals of at most 15 digits are different doubles, so the digits of a number of nanoseconds
 * are those that %.15g prints, or %.6g of at most six: 0.0125, and 5e-09 below 0.0001. False: v is no such number. */
static bool whole_nanoseconds(double v, char *out)
{
    double scaled = v * 1e9;
    int64_t n = fabs(scaled) < 1e15 ? (int64_t)(scaled + copysign(0.5, scaled)) : 0;
    if (!n || (double)n / 1e9 != v)
        return false;
    uint64_t rest = n < 0 ? (uint64_t)-n : (uint64_t)n;
    int point = 9, digits = 0; /* how many digits stand behind the point */
    char digit[20];            /* the last one first */
    for (; rest % 10 == 0; rest /= 10)
        point--;
    for (; rest; rest /= 10)
        digit[digits++] = (char)('0' + rest % 10);
    if (n < 0)
        *out++ = '-';
    int exponent = digits - 1 - point; /* of the first digit */
    if (exponent < -4) {
        point = digits - 1;
    } else {
        for (; digits <= point; digits++)
            digit[digits] = '0';
        for (; point < 0; point++, digits++) {
            memmove(digit + 1, digit, (size_t)digits);
            digit[0] = '0';
        }
    }
    while (digits--) {
        *out++ = digit[digits];
        if (digits == point && digits)
            *out++ = '.';
    }
    if (exponent < -4) {
        memcpy(out, "e-0", 3);
        out[3] = (char)('0' - exponent);
        out += 4;
    }
    *out = 0;
    return true;
}

void bz_json_num(bz_json *j, double v)
{
    if (!isfinite(v)) {
        bz_json_null(j);
        return;
    }
    if (v == 0 && !signbit(v)) { /* many are */
        bz_json_int(j, 0);
        return;
    }
    char text[32];
    for (int digits = whole_nanoseconds(v, text) ? 18 : 6; digits <= 17; digits += digits < 15 ? 9 : 1) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    before(j);
    bz_buf_puts(j->out, text);
}

void bz_json_bool(bz_json *j, bool v)
{
    before(j);
    bz_buf_puts(j->out, v ? "true" : "false");
}

void bz_json_null(bz_json *j)
{
    before(j);
    bz_buf_puts(j->out, "null");
}

void bz_json_raw(bz_json *j, const char *json)
{
    before(j);
    bz_buf_puts(j->out, json);
}

void bz_json_key_str(bz_json *j, const char *key, const char *s)
{
    bz_json_key(j, key);
    bz_json_str(j, s);
}

void bz_json_key_array(bz_json *j, const char *key)
{
    bz_json_key(j, key);
    bz_json_array(j);
}

void bz_json_key_object(bz_json *j, const char *key)
{
    bz_json_key(j, key);
    bz_json_object(j);
}

void bz_json_key_strs(bz_json *j, const char *key, const char *const *text, int n)
{
    bz_json_key_array(j, key);
    for (int i = 0; i < n; i++)
        bz_json_str(j, text[i]);
    bz_json_array_end(j);
}

void bz_json_key_int(bz_json *j, const char *key, int64_t v)
{
    bz_json_key(j, key);
    bz_json_int(j, v);
}

void bz_json_key_num(bz_json *j, const char *key, double v)
{
    bz_json_key(j, key);
    bz_json_num(j, v);
}

void bz_json_key_bool(bz_json *j, const char *key, bool v)
{
    bz_json_key(j, key);
    bz_json_bool(j, v);
}

void bz_json_document(bz_json *j, const char *record, int version)
{
    bz_json_object(j);
    bz_json_key_str(j, "record", record);
    bz_json_key_int(j, "v", version);
}

bz_json bz_json_document_to(bz_buf *out, int flat, const char *record, int version)
{
    bz_json j = bz_json_to(out, flat >= 0);
    j.flat = flat > 0 ? flat : 0;
    bz_json_document(&j, record, version);
    return j;
}

void bz_json_document_end(bz_json *j)
{
    bz_json_object_end(j);
    bz_buf_putc(j->out, '\n');
}
