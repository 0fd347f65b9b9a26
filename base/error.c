#include "base/error.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Copies text cleaned and cut; a cut is shown, and never splits a character. */
static void set_text(bz_error *err, const char *text)
{
    BZ_SCOPED(bz_buf) clean = {0};
    bz_buf_clean(&clean, text);
    size_t n = clean.len, room = sizeof err->text - 1;
    if (n > room) {
        n = room - strlen("…");
        while (n && ((unsigned char)clean.data[n] & 0xc0) == 0x80)
            n--;
    }
    memcpy(err->text, bz_buf_text(&clean), n);
    err->text[n] = 0;
    if (n < clean.len)
        memcpy(err->text + n, "…", sizeof "…");
}

int bz_fail(bz_error *err, bz_code code, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    err->code = code;
    set_text(err, text);
    return -1;
}

int bz_fail_in(bz_error *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[2048];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text / 2, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n > sizeof text / 2 - 1)
        n = (int)(sizeof text / 2 - 1);
    snprintf(text + n, sizeof text - (size_t)n, ": %s", err->text);
    set_text(err, text);
    return -1;
}
