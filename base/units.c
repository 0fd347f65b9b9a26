#include "base/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

typedef struct {
    double factor;
    const char *name;
} unit;

static const unit TIME[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}, {0, 0}};
static const unit BYTES[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}, {0, 0}};
static const unit COUNT[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {0, 0}};

/* 999.6 µs must become 1.00 ms, not 1000 µs: so the rounded value picks the unit. */
static const char *scaled(bz_unit_text out, double v, const unit *units)
{
    const unit *u = units;
    while (u[1].name && fabs(v) < u->factor * 0.9995)
        u++;
    double x = v / u->factor, size = fabs(x);
    int decimals = size >= 99.95 || x == 0 || (u->factor == 1 && x == floor(x)) ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(out, sizeof(bz_unit_text), "%.*f%s%s", decimals, x, u->name[0] ? " " : "", u->name);
    return out;
}

const char *bz_units_time(bz_unit_text out, double seconds)
{
    return scaled(out, seconds, TIME);
}

const char *bz_units_bytes(bz_unit_text out, double bytes)
{
    return scaled(out, bytes, BYTES);
}

/* "16G", as other programs write 16GB. */
static bool is_short(const char *text, char letter)
{
    return text[0] && !text[1] && (text[0] | ' ') == (letter | ' ');
}

int bz_units_parse_bytes(const char *text, double *bytes)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text)
        return -1;
    end += *end == ' ';
    for (const unit *u = BYTES; u->name; u++)
        if (!strcasecmp(u->name, *end ? end : "B") || (u->factor > 1 && is_short(end, u->name[0]))) {
            *bytes = v * u->factor;
            return 0;
        }
    static const char *const BINARY[] = {"KiB", "MiB", "GiB", "TiB"};
    for (int i = 0; i < 4; i++)
        if (!strcasecmp(BINARY[i], end)) {
            *bytes = ldexp(v, 10 * (i + 1));
            return 0;
        }
    return -1;
}

const char *bz_units_count(bz_unit_text out, double n)
{
    if (fabs(n) < 10000 && n == floor(n)) {
        snprintf(out, sizeof(bz_unit_text), "%.0f", n);
        return out;
    }
    return scaled(out, n, COUNT);
}

const char *bz_units_percent(bz_unit_text out, double share)
{
    snprintf(out, sizeof(bz_unit_text), "%.1f %%", share * 100);
    return out;
}

const char *bz_units_date(char out[32], int64_t date)
{
    time_t t = (time_t)date;
    struct tm tm;
    if (!date || !gmtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M", &tm))
        return "";
    return out;
}

int bz_units_parse_time(const char *text, double *seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } UNITS[] = {{"", 1}, {"s", 1}, {"min", 60}, {"h", 3600}};
    char *end;
    double v = strtod(text, &end);
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS && end != text && v > 0 && v < 1e6; i++)
        if (!strcmp(end, UNITS[i].unit)) {
            *seconds = v * UNITS[i].seconds;
            return 0;
        }
    return -1;
}
