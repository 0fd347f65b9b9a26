/* Lines of Intel's MKL, as MKL_VERBOSE=1 prints them, alone or between those of oneDNN:
 *
 *     MKL_VERBOSE SGEMM(N,T,64,96,128,0x7ffe…,0x7fbb…,64,0x7fbb…,96,0x7ffe…,0x7fbb…,64) 22.00us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:1 */
#include "profile/mkl_log.h"
#include "profile/reader.h"

#include <ctype.h>
#include <string.h>

static const char MARK[] = "MKL_VERBOSE ";

/* Behind the letter of the type: what its arguments are called, as in recordings of BLAS; "-": not looked at, "@": an address. */
static const struct {
    const char *function, *names;
} FUNCTIONS[] = {
    {"gemm", "transa transb m n k - @a lda @b ldb - @c ldc"},
    {"gemv", "trans m n - @a lda @x incx - @y incy"},
};

static const char *names_of(const char *function)
{
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (!strcmp(function + 1, FUNCTIONS[i].function))
            return FUNCTIONS[i].names;
    return "";
}

bool bz_mkl_has(const char *s, size_t n)
{
    return memmem(s, n, MARK, sizeof MARK - 1) != NULL;
}

static int64_t unit_of(const char *s, const char *end)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } UNITS[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if ((size_t)(end - s) >= strlen(UNITS[i].unit) && !memcmp(s, UNITS[i].unit, strlen(UNITS[i].unit)))
            return UNITS[i].ns;
    return 0;
}

/* "N,T,64,…" up to the bracket that closes it, as "transa=N transb=T m=64 …"; addresses stand in `operands`. */
static void read_arguments(const char *s, size_t n, const char *names, bz_buf *detail, bz_buf *operands)
{
    for (const char *end = s + n, *comma; s <= end && *names; s = comma + 1) {
        size_t name = strcspn(names, " ");
        bool address = *names == '@';
        comma = memchr(s, ',', (size_t)(end - s));
        comma = comma ? comma : end;
        if (*names != '-') {
            bz_buf *out = address ? operands : detail;
            bz_buf_printf(out, "%s%.*s=%.*s", out->len ? " " : "", (int)name - address, names + address,
                          (int)(comma - s), s);
        }
        names += name + (names[name] == ' ');
    }
}

bool bz_mkl_read(bz_trace *t, uint32_t source, int64_t *clock, const char *line, size_t n)
{
    enum { LONGEST = 40 };
    const char *end = line + n, *s = memmem(line, n, MARK, sizeof MARK - 1);
    s = s ? s + sizeof MARK - 1 : end;
    const char *open = memchr(s, '(', (size_t)(end - s)),
               *close = open ? memchr(open, ')', (size_t)(end - open)) : NULL;
    size_t length = open ? (size_t)(open - s) : 0;
    if (!close || !length || length > LONGEST || end - close < 3 || close[1] != ' ')
        return false;
    char name[LONGEST + 1] = {0};
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)s[i]) && s[i] != '_')
            return false; /* "Intel(R) MKL 2020.0 …" has blanks behind it */
        name[i] = (char)tolower((unsigned char)s[i]);
    }
    const char *unit = close + 2;
    while (unit < end && (isdigit((unsigned char)*unit) || *unit == '.'))
        unit++;
    int64_t took = unit_of(unit, end), stop;
    if (!took || unit == close + 2)
        return false;
    took = bz_text_nanoseconds(close + 2, (size_t)(unit - close - 2), took);
    if (took < 0 || __builtin_add_overflow(*clock, took, &stop))
        return false;
    BZ_SCOPED(bz_buf) detail = {0};
    BZ_SCOPED(bz_buf) operands = {0};
    read_arguments(open + 1, (size_t)(close - open - 1), names_of(name), &detail, &operands);
    size_t i = bz_trace_add(t, BZ_EVENT_CALL, *clock, stop, bz_trace_text(t, name), bz_trace_thread(t, source, 0, 0));
    bz_events *call = &t->event[BZ_EVENT_CALL];
    call->library[i] = BZ_LIBRARY_BLAS;
    call->flags[i] = BZ_CALL_LOGGED | BZ_CALL_EXECUTES;
    call->detail[i] = bz_trace_text(t, bz_buf_text(&detail));
    call->operands[i] = bz_trace_text(t, bz_buf_text(&operands));
    *clock = stop;
    return true;
}
