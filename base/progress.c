#include "base/progress.h"

#include "base/buf.h"
#include "base/units.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double bz_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bz_progress bz_progress_start(const char *what, int64_t total)
{
    return (bz_progress){.what = what, .total = total, .started = bz_now(), .terminal = isatty(STDERR_FILENO)};
}

void bz_progress_at(bz_progress *p, int64_t done, const char *item)
{
    if (!p->terminal)
        return;
    double now = bz_now();
    if (now - p->started < 0.5 || now - p->drawn < 0.1)
        return;
    bz_buf line = {0};
    bz_unit_text left;
    bz_buf_printf(&line, "\r\033[K%s %lld/%lld", p->what, (long long)done, (long long)p->total);
    if (done > 0 && p->total > done)
        bz_buf_printf(&line, ", %s left",
                      bz_units_time(left, (now - p->started) / (double)done * (double)(p->total - done)));
    if (item) {
        bz_buf_puts(&line, "  ");
        bz_buf_clean(&line, item);
    }
    fputs(bz_buf_text(&line), stderr);
    fflush(stderr);
    bz_buf_free(&line);
    p->drawn = now;
    p->shown = true;
}

void bz_progress_end(bz_progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
