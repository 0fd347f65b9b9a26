#include "base/progress.h"

#include "base/screen.h"
#include "base/table.h"
#include "base/units.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LEVELS = 8, SHOWN_AFTER = 1 };

/* There is one terminal, so there is one line. */
static struct {
    pthread_mutex_t lock;
    bool drawing; /* the thread runs */
    bool held, shown;
    int n;
    struct {
        const char *what;
        int64_t done, total;
        double started; /* on the monotonic clock */
        char item[256];
    } level[LEVELS];
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void wipe(void)
{
    if (line.shown)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    line.shown = false;
}

void bz_progress_line(const char *what, int64_t done, int64_t total, const char *item, double passed, int columns,
                      bz_buf *out)
{
    BZ_SCOPED(bz_buf) text = {0}, clean = {0};
    bz_unit_text left;
    bz_buf_printf(&text, "benanza: %s", what);
    if (total > 1)
        bz_buf_printf(&text, " %lld/%lld", (long long)done, (long long)total);
    if (total > done && done > 0)
        bz_buf_printf(&text, ", %s left", bz_units_time(left, passed / (double)done * (double)(total - done)));
    else
        bz_buf_printf(&text, ", %.0f s", passed);
    bz_buf_clean(&clean, item);
    int room = columns - 1 - bz_text_width(bz_buf_text(&text)) - 2;
    if (clean.len && room >= 8) {
        bz_buf_puts(&text, "  ");
        bz_text_fit(&text, bz_buf_text(&clean), room);
    }
    bz_text_fit(out, bz_buf_text(&text), columns - 1);
}

/* The innermost piece of work. */
static void draw(void)
{
    int at = line.n - 1, columns = bz_screen_columns(STDERR_FILENO);
    double passed = at < 0 ? 0 : bz_now() - line.level[at].started;
    BZ_SCOPED(bz_buf) text = {0};
    if (line.held || at < 0 || at >= LEVELS || passed < SHOWN_AFTER)
        return;
    bz_progress_line(line.level[at].what, line.level[at].done, line.level[at].total, line.level[at].item, passed,
                     columns > 1 ? columns : 80, &text);
    fprintf(stderr, "\r\033[K%s", bz_buf_text(&text));
    fflush(stderr);
    line.shown = true;
}

static void *keep_drawing(void *unused)
{
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        pthread_mutex_lock(&line.lock);
        draw();
        pthread_mutex_unlock(&line.lock);
    }
    return unused;
}

/* Signals are for the thread that works. */
static void start_drawing(void)
{
    pthread_t thread;
    sigset_t all, old;
    if (line.drawing || !isatty(STDERR_FILENO))
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    line.drawing = !pthread_create(&thread, NULL, keep_drawing, NULL) && !pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

bz_progress bz_progress_start(const char *what, int64_t total)
{
    pthread_mutex_lock(&line.lock);
    start_drawing();
    int level = line.n++;
    if (level < LEVELS) {
        line.level[level].what = what;
        line.level[level].done = 0;
        line.level[level].total = total;
        line.level[level].started = bz_now();
        line.level[level].item[0] = 0;
    }
    pthread_mutex_unlock(&line.lock);
    return (bz_progress){.total = total, .level = level};
}

void bz_progress_at(bz_progress *p, int64_t done, const char *item)
{
    if (!line.drawing || p->level >= LEVELS)
        return;
    pthread_mutex_lock(&line.lock);
    line.level[p->level].done = done;
    line.level[p->level].total = p->total;
    snprintf(line.level[p->level].item, sizeof line.level->item, "%s", item ? item : "");
    pthread_mutex_unlock(&line.lock);
}

void bz_progress_end(bz_progress *p)
{
    pthread_mutex_lock(&line.lock);
    line.n = p->level;
    wipe();
    pthread_mutex_unlock(&line.lock);
}

void bz_progress_wipe(void)
{
    pthread_mutex_lock(&line.lock);
    wipe();
    pthread_mutex_unlock(&line.lock);
}

void bz_progress_hold(bool held)
{
    pthread_mutex_lock(&line.lock);
    line.held = held;
    wipe();
    pthread_mutex_unlock(&line.lock);
}
