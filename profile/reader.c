#include "profile/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Told apart by content; the first that matches reads. */
static const bz_reader *const READERS[] = {
    &bz_reader_sqlite,
    &bz_reader_spool,
    &bz_reader_cudnn,
    &bz_reader_cublas,
    &bz_reader_onednn,
    &bz_reader_chrome,
    NULL,
};
enum { HEAD = 1 << 20 }; /* a program may say much before a library does */
static const int64_t SECOND = 1000000000;

bool bz_text_has(const char *head, size_t n, const char *needle)
{
    return memmem(head, n, needle, strlen(needle)) != NULL;
}

bool bz_log_line(bz_stream *in, const char **line, size_t *n)
{
    enum { FRONT = 128 }; /* tags of mpirun and of loggers, dates of containers */
    if (!bz_stream_line(in, line, n))
        return false;
    const char *s = *line;
    for (size_t i = 0; i + 1 < *n && i < FRONT; i++)
        if (s[i + 1] == '!' && strchr("IiWwEe", s[i]) && (!i || strchr(" \t>:|]", s[i - 1]))) {
            *line += i;
            *n -= i;
            break;
        }
    return true;
}

int64_t bz_text_int(const char *s, size_t n)
{
    enum { NEVER_TOO_MANY = 18 }; /* digits */
    bool negative = n && *s == '-';
    int64_t v = 0;
    for (size_t i = negative; i < n && s[i] >= '0' && s[i] <= '9'; i++) {
        if (i >= NEVER_TOO_MANY && v > (INT64_MAX - 9) / 10)
            return negative ? INT64_MIN : INT64_MAX;
        v = v * 10 + (s[i] - '0');
    }
    return negative ? -v : v;
}

/* With an exponent, more digits than fit, or no number at all. */
static int64_t odd_nanoseconds(const char *s, size_t n, int64_t unit_ns)
{
    bool negative = n && *s == '-';
    const char *dot = memchr(s, '.', n);
    if (memchr(s, 'e', n) || memchr(s, 'E', n)) {
        char text[64];
        size_t m = n < sizeof text - 1 ? n : sizeof text - 1;
        memcpy(text, s, m);
        text[m] = 0;
        double v = strtod(text, NULL) * (double)unit_ns;
        return v > -9e18 && v < 9e18 ? (int64_t)v : 0;
    }
    int64_t whole = bz_text_int(s + negative, n - negative), part = 0, scale = unit_ns;
    for (size_t i = dot ? (size_t)(dot - s) + 1 : n; i < n && s[i] >= '0' && s[i] <= '9' && scale >= 10; i++) {
        scale /= 10;
        part += (s[i] - '0') * scale;
    }
    if (__builtin_mul_overflow(whole, unit_ns, &whole) || __builtin_add_overflow(whole, part, &whole))
        return 0;
    return negative ? -whole : whole;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int64_t bz_text_nanoseconds(const char *s, size_t n, int64_t unit_ns)
{
    enum { FITS = 18 }; /* digits */
    bool negative = n && *s == '-';
    int64_t whole = 0, part = 0, scale = unit_ns;
    size_t i = negative;
    for (; i < n && i < FITS && is_digit(s[i]); i++)
        whole = whole * 10 + (s[i] - '0');
    if (i < n && s[i] == '.')
        for (i++; i < n && is_digit(s[i]); i++)
            if (scale >= 10) {
                scale /= 10;
                part += (s[i] - '0') * scale;
            }
    if (i < n)
        return odd_nanoseconds(s, n, unit_ns);
    if (__builtin_mul_overflow(whole, unit_ns, &whole) || __builtin_add_overflow(whole, part, &whole))
        return 0;
    return negative ? -whole : whole;
}

int64_t bz_text_date(const char *s, size_t n)
{
    if (n < 19 || s[4] != '-' || s[7] != '-' || s[13] != ':')
        return 0;
    int64_t year = bz_text_int(s, 4);
    if (year < 1970 || year > 2200) /* what nanoseconds reach */
        return 0;
    struct tm minute = {.tm_year = (int)year - 1900,
                        .tm_mon = (int)bz_text_int(s + 5, 2) - 1,
                        .tm_mday = (int)bz_text_int(s + 8, 2),
                        .tm_hour = (int)bz_text_int(s + 11, 2),
                        .tm_min = (int)bz_text_int(s + 14, 2)};
    int64_t rest = bz_text_nanoseconds(s + 17, n - 17, SECOND);
    return rest < 0 || rest >= 61 * SECOND ? 0 : timegm(&minute) * SECOND + rest; /* 61: a leap second */
}

static void count_events(const bz_trace *t, size_t n[BZ_EVENT_KINDS])
{
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        n[k] = t->event[k].n;
}

/* "the recording is cut off: 7 events of it were read (5 operators, 2 calls of the device's library); …" */
static void cover_cut(bz_trace *t, uint32_t source, const size_t before[BZ_EVENT_KINDS])
{
    static const char *const WORDS[BZ_EVENT_KINDS] = {
        "range", "operator",   "library call", "call to the device", "kernel",
        "copy",  "memory set", "wait",         "profiler's overhead"};
    size_t n[BZ_EVENT_KINDS];
    BZ_SCOPED(bz_buf) kinds = {0};
    count_events(t, n);
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        if ((n[k] -= before[k]))
            bz_buf_printf(&kinds, "%s%s: %zu", kinds.len ? ", " : " (", WORDS[k], n[k]);
    bool lost = n[BZ_EVENT_API] && !n[BZ_EVENT_KERNEL];
    bz_trace_lack(
        t, source, BZ_COVERAGE_BROKEN, BZ_LACKS_END,
        "the recording is cut off: %lld event%s of it %s read%s%s; what stood behind is missing%s, so that counts and "
        "times may be too small. Record it again, or copy it whole",
        (long long)t->source[source].events, t->source[source].events == 1 ? "" : "s",
        t->source[source].events == 1 ? "was" : "were", bz_buf_text(&kinds), kinds.len ? ")" : "",
        lost ? ", all kernels among it" : "");
}

int bz_profile_read_stream(bz_trace *t, bz_stream *in, const bz_reader *reader, bz_error *err)
{
    static const char MARK[] = "\xef\xbb\xbf"; /* of UTF-8, in front of all text */
    enum { FRONT = 4096 };
    bz_stream_advance(in, 0, FRONT);
    if (!reader && bz_reader_sqlite.matches(in->data, in->len))
        reader = &bz_reader_sqlite; /* it reads the file by itself */
    else
        bz_stream_advance(in, 0, HEAD);
    if (in->len >= 3 && !memcmp(in->data, MARK, 3))
        bz_stream_advance(in, 3, HEAD);
    size_t n = in->len < HEAD ? in->len : HEAD;
    for (int i = 0; !reader && READERS[i]; i++)
        if (READERS[i]->matches(in->data, n))
            reader = READERS[i];
    if (bz_stream_check(in, err))
        return -1;
    if (!n && in->broken)
        return bz_fail(err, BZ_BAD_INPUT, "%s: its compressed data is damaged from the first byte on", in->path);
    if (!n)
        return bz_fail(err, BZ_BAD_INPUT, "%s: is empty: did the program that should write it end early?", in->path);
    if (!reader)
        return bz_foreign_fail(in->path, in->data, n, err);
    uint32_t source = bz_trace_source(t, in->path, reader->format);
    t->source[source].log = reader->log;
    size_t before[BZ_EVENT_KINDS], after[BZ_EVENT_KINDS];
    count_events(t, before);
    if (reader->read(t, source, in, err) || bz_stream_check(in, err))
        return -1;
    count_events(t, after);
    for (int k = 0; k < BZ_EVENT_KINDS; k++)
        t->source[source].events += (int64_t)(after[k] - before[k]);
    if (in->broken) {
        t->source[source].truncated = true;
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN,
                       "the compressed data is damaged or cut off after %lld bytes of text; what came before was read",
                       (long long)in->passed);
    }
    if (reader->log && in->open_line && !t->source[source].truncated) { /* libraries end every line that they write */
        t->source[source].truncated = true;
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN, "the last line has no end");
    }
    if (t->source[source].truncated)
        cover_cut(t, source, before);
    if (!t->source[source].events && reader != &bz_reader_spool) /* a shell that starts the program is captured, too */
        bz_trace_cover(t, source, BZ_COVERAGE_MISSING, "the file holds no event");
    return 0;
}

/* Runs `nsys export`: 0 where it wrote the file, 127 where there is no nsys. */
static int run_nsys(const char *report, const char *file)
{
    pid_t child = fork();
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execlp("nsys", "nsys", "export", "--type=sqlite", "-o", file, report, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* As one word for a shell. */
static void put_word(bz_buf *out, const char *text)
{
    bz_buf_putc(out, '\'');
    for (; *text; text++)
        bz_buf_printf(out, *text == '\'' ? "'\\%c'" : "%c", *text);
    bz_buf_putc(out, '\'');
}

/* A report's own format is not documented. */
static int export_report(bz_trace *t, const char *path, bz_error *err)
{
    char folder[BZ_FOLDER_MAX];
    BZ_SCOPED(bz_buf) file = {0}, word = {0};
    int rc = -1;
    if (bz_folder_make(folder, err))
        return bz_fail_in(err, "%s", path);
    bz_buf_printf(&file, "%s/report.sqlite", folder);
    int status = run_nsys(path, file.data);
    if (status) {
        put_word(&word, path);
        bz_fail(err, BZ_BAD_INPUT,
                "%s: is an Nsight Systems report, which only nsys can read, and nsys %s. Where Nsight Systems is "
                "installed, run: nsys export --type=sqlite -o profile.sqlite %s, and give profile.sqlite",
                path, status == 127 ? "is not installed here" : "export failed", bz_buf_text(&word));
    } else {
        uint32_t source = t->n_sources;
        rc = bz_profile_read(t, file.data, err);
        for (; source < t->n_sources; source++) /* what a person gave, not what lay there for a moment */
            t->source[source].path = bz_trace_text(t, path);
    }
    bz_folder_remove(folder);
    return rc;
}

int bz_profile_read(bz_trace *t, const char *path, bz_error *err)
{
    bz_stream *in = bz_stream_open(path, err);
    if (!in)
        return -1;
    size_t n = strlen(path);
    int rc;
    if ((n > 9 && !strcmp(path + n - 9, ".nsys-rep")) || (n > 7 && !strcmp(path + n - 7, ".qdrep")))
        rc = export_report(t, path, err);
    else
        rc = bz_profile_read_stream(t, in, NULL, err);
    bz_stream_close(in);
    return rc;
}

void bz_cover_times(bz_trace *t, uint32_t source, int64_t unnamed, int64_t negative)
{
    if (unnamed)
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN, "%lld events carry no time and were left out",
                       (long long)unnamed);
    if (negative)
        bz_trace_cover(t, source, BZ_COVERAGE_BROKEN,
                       "%lld events have a length below 0: they were repaired, and take no time", (long long)negative);
}

int bz_trace_read(bz_trace *t, const char *const *path, int n, const char *iterations, bz_error *err)
{
    for (int i = 0; i < n; i++)
        if (bz_profile_read(t, path[i], err))
            return -1;
    return bz_trace_finish(t, &(bz_finish_options){.iterations = iterations}, err);
}

bool bz_trace_is_truncated(const bz_trace *t)
{
    uint32_t i = 0;
    while (i < t->n_sources && !t->source[i].truncated)
        i++;
    return i < t->n_sources;
}
