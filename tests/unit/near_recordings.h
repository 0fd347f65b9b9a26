/* Recordings that differ from one of tests/cases in one thing: an event or a line is gone, or there twice; a byte is one more or one less; or a number is nothing, twice as much, or the number in
 * front of it, so that what was later or longer is equal. Wants cmocka's headers before it. */
#ifndef BZ_NEAR_RECORDINGS_H
#define BZ_NEAR_RECORDINGS_H

#include "base/whole.h"
#include "profile/profile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "generated_program.h"
#include "seen.h"

/* `t` is finished; NULL: it was refused. */
typedef void near_fn(bz_trace *t, seen *s, void *user);

static inline void near_read(const bz_buf *bytes, seen *s, near_fn *f, void *user)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    int fd = memfd_create("recording", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes->data, bytes->len), bytes->len);
    assert_int_equal(dup2(fd, 100), 100); /* its path is in what is said */
    close(fd);
    s->tried++;
    if (bz_profile_read(t, "/proc/self/fd/100", &err) || bz_trace_finish(t, &(bz_finish_options){0}, &err)) {
        bz_buf_puts(&s->text, "refused\n");
    } else {
        s->taken++;
        f(t, s, user);
    }
    close(100);
    bz_trace_free(t);
}

/* With other bytes in the place of `n` at `at`. */
static inline void near_replaced(const bz_buf *bytes, size_t at, size_t n, const char *instead, seen *s, near_fn *f,
                                 void *user)
{
    bz_buf other = {0};
    bz_buf_put(&other, bytes->data, at);
    bz_buf_puts(&other, instead);
    bz_buf_put(&other, bytes->data + at + n, bytes->len - at - n);
    near_read(&other, s, f, user);
    bz_buf_free(&other);
}

/* The first number that ends behind `at`; its length, 0: there is none. */
static inline size_t near_number(const bz_buf *bytes, size_t at, size_t *from)
{
    size_t n = 0;
    while (at < bytes->len && !isdigit((unsigned char)bytes->data[at]))
        at++;
    while (at && isdigit((unsigned char)bytes->data[at - 1]))
        at--;
    while (at + n < bytes->len && isdigit((unsigned char)bytes->data[at + n]))
        n++;
    *from = at;
    return n < 18 ? n : 0;
}

/* The event or line at `at`: where it begins, and the next one; false: it is the last one. */
static inline bool near_event(const bz_buf *bytes, size_t at, size_t *from, size_t *to)
{
    const char *text = bz_buf_text(bytes), *mark = strstr(text, "{\"ph\"") ? "{\"ph\"" : "\n";
    const char *first = strstr(text + at, mark), *next = first ? strstr(first + 1, mark) : NULL;
    if (!next)
        return false;
    *from = (size_t)(first - text);
    *to = (size_t)(next - text);
    return true;
}

/* Without the event, and with it twice: then two have equal times. */
static inline void near_events(const bz_buf *bytes, size_t at, seen *s, near_fn *f, void *user)
{
    size_t from, to;
    bz_buf event = {0};
    if (!near_event(bytes, at, &from, &to))
        return;
    bz_buf_put(&event, bytes->data + from, to - from);
    near_replaced(bytes, from, to - from, "", s, f, user);
    near_replaced(bytes, from, 0, bz_buf_text(&event), s, f, user);
    bz_buf_free(&event);
}

/* Calls f with the recording tests/cases/NAME, or that of the generated program of "program-7", and with those beside it, that many `numbers` and `bytes` all over it. */
static inline void near_recordings(const char *name, int numbers, int bytes, seen *s, near_fn *f, void *user)
{
    char path[500], text[64], before[20] = "";
    bz_buf whole = {0};
    bz_error err;
    snprintf(path, sizeof path, BENANZA_SOURCE "/tests/cases/%s", name);
    if (!strncmp(name, "program-", 8))
        write_program((unsigned)atoi(name + 8), &whole);
    else if (bz_whole_read(path, 1 << 20, "is long", &whole, &err))
        fail_msg("%s", err.text);
    near_read(&whole, s, f, user);
    for (int place = 0; place < numbers; place++) {
        size_t at, n = near_number(&whole, whole.len * (size_t)(2 * place + 1) / (size_t)(2 * numbers), &at);
        if (!n)
            continue;
        snprintf(text, sizeof text, "%.*s", (int)n, whole.data + at);
        long long number = atoll(text);
        snprintf(text, sizeof text, "%lld", 2 * number);
        if (place % 2)
            near_events(&whole, at, s, f, user);
        near_replaced(&whole, at, n, place % 3 == 0 ? "0" : place % 3 == 1 ? text : before, s, f, user);
        snprintf(before, sizeof before, "%lld", number);
    }
    for (int place = 0; place < bytes; place++) {
        size_t at = whole.len * (size_t)(2 * place + 1) / (size_t)(2 * bytes);
        for (int change = -1; change <= 1; change += 2) {
            const char other[] = {(char)(whole.data[at] + change), '\0'};
            near_replaced(&whole, at, 1, other, s, f, user);
        }
    }
    bz_buf_free(&whole);
}

#endif
