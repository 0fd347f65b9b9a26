#include "base/load.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int bz_load_text(const char *root, const char *path, char *out, size_t size)
{
    char full[4200];
    snprintf(full, sizeof full, "%s/%s", root, path);
    struct stat st;
    int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    size_t n = f ? fread(out, 1, size - 1, f) : 0;
    out[n] = 0;
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    return f ? 0 : -1;
}

/* user nice system idle iowait irq softirq steal; guests are counted in user already. */
static void read_times(const char *text, bz_load *out)
{
    double field[8] = {0}, tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    int n = sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &field[0], &field[1], &field[2], &field[3], &field[4],
                   &field[5], &field[6], &field[7]);
    if (n < 8)
        return;
    out->total = 0;
    for (int i = 0; i < 8; i++)
        out->total += field[i] * tick;
    out->steal = field[7] * tick;
}

static int count_processors(const char *text)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, "\ncpu")); p += 4)
        n++;
    return n > 0 ? n : 1;
}

void bz_load_read(const char *root, bz_load *out)
{
    char text[16384];
    int running, tasks;
    *out = (bz_load){.processors = 1, .runnable = -1, .average = NAN, .pressure = NAN, .total = NAN, .steal = NAN};
    if (!bz_load_text(root, "proc/stat", text, sizeof text)) {
        read_times(text, out);
        out->processors = count_processors(text);
    }
    if (!bz_load_text(root, "proc/loadavg", text, sizeof text) &&
        sscanf(text, "%lf %*f %*f %d/%d", &out->average, &running, &tasks) == 3 && running > 0)
        out->runnable = running - 1; /* who reads this file runs */
    if (!bz_load_text(root, "proc/pressure/cpu", text, sizeof text) &&
        sscanf(text, "some avg10=%lf", &out->pressure) == 1)
        out->pressure /= 100;
}

/* Ticks are 10 ms: fewer than two of them are chance. */
double bz_load_stolen(const bz_load *before, const bz_load *now)
{
    double passed = now->total - before->total, stolen = now->steal - before->steal;
    return passed > 0 && stolen > 0.015 ? stolen / passed : 0;
}

bool bz_load_has_room(const bz_load *l, int threads)
{
    return l->runnable <= 0 || l->runnable + threads <= l->processors;
}

void bz_processor_name(const char *root, char *out, size_t size)
{
    char text[4096];
    const char *line = !bz_load_text(root, "proc/cpuinfo", text, sizeof text) ? strstr(text, "model name") : NULL;
    const char *name = line ? line + strcspn(line, ":\n") : "";
    name += *name == ':';
    name += strspn(name, " ");
    size_t n = strcspn(name, "\n");
    while (n && name[n - 1] == ' ')
        n--;
    snprintf(out, size, "%.*s", (int)n, name);
}
