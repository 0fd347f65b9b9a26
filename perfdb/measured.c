/* What a system is and what was measured of it, as it stands in its details. These may come from a stranger's file. */
#include "base/units.h"
#include "perfdb/perfdb.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static double number(const cJSON *object, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

static int threads_of(const cJSON *one)
{
    double n = cJSON_IsObject(one) ? number(one, "threads") : (double)NAN;
    return n >= 1 && n <= 4096 && n == floor(n) ? (int)n : 0;
}

/* The measurements, by thread count as they stand there; each count once. Returns how many. */
static int list(const cJSON *details, const cJSON *found[BZ_PEAKS_THREADS])
{
    const cJSON *measured = cJSON_GetObjectItemCaseSensitive(details, "measured");
    const cJSON *one = cJSON_IsArray(measured) ? measured->child : measured;
    int n = 0;
    for (; one && n < BZ_PEAKS_THREADS; one = one == measured ? NULL : one->next) {
        int same = 0;
        while (same < n && threads_of(found[same]) != threads_of(one))
            same++;
        if (threads_of(one) && same == n)
            found[n++] = one;
    }
    return n;
}

int bz_peaks_threads(const char *details, int threads[BZ_PEAKS_THREADS])
{
    const cJSON *found[BZ_PEAKS_THREADS];
    cJSON *root = cJSON_Parse(details);
    int n = list(root, found);
    for (int i = 0; i < n; i++)
        threads[i] = threads_of(found[i]);
    cJSON_Delete(root);
    return n;
}

bool bz_peaks_have(const char *details, int threads)
{
    int have[BZ_PEAKS_THREADS], n = bz_peaks_threads(details, have);
    for (int i = 0; i < n; i++)
        if (have[i] == threads)
            return true;
    return false;
}

double bz_peaks_yardstick(const char *details, int threads, bool *busy)
{
    const cJSON *found[BZ_PEAKS_THREADS];
    cJSON *root = cJSON_Parse(details);
    double best = NAN;
    int n = list(root, found);
    *busy = false;
    for (int i = 0; i < n; i++) {
        double yardstick = number(found[i], "yardstick");
        best = yardstick > 0 ? fmin(best, yardstick) : best;
        *busy |= threads_of(found[i]) == threads && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(found[i], "busy"));
    }
    cJSON_Delete(root);
    return best;
}

/* The measurement with the fewest threads above `least`, from two lists; `own` wins over others of the same count. */
static const cJSON *next_above(int least, const cJSON *own, const cJSON *const *others, int n)
{
    const cJSON *best = threads_of(own) > least ? own : NULL;
    for (int i = 0; i < n; i++) {
        int threads = threads_of(others[i]);
        if (threads > least && (!best || threads < threads_of(best)))
            best = others[i];
    }
    return best;
}

const char *bz_peaks_join(const char *old, const char *new, bz_arena *arena)
{
    const cJSON *before[BZ_PEAKS_THREADS], *now[BZ_PEAKS_THREADS], *next;
    cJSON *from = cJSON_Parse(old), *to = cJSON_Parse(new), *all = cJSON_CreateArray();
    int n = list(from, before), least = 0;
    const char *joined = NULL;
    if (list(to, now) == 1)
        while ((next = next_above(least, now[0], before, n))) {
            cJSON_AddItemToArray(all, cJSON_Duplicate(next, true));
            least = threads_of(next);
        }
    if (cJSON_GetArraySize(all) > 1) {
        cJSON_ReplaceItemInObjectCaseSensitive(to, "measured", all);
        all = NULL;
        char *text = cJSON_PrintUnformatted(to);
        joined = text ? bz_arena_str(arena, text) : NULL;
        cJSON_free(text);
    }
    cJSON_Delete(all);
    cJSON_Delete(to);
    cJSON_Delete(from);
    return joined;
}

static void begin(bz_buf *out, const char *what)
{
    bz_buf_printf(out, "%-14s", what);
}

/* "f32 114 Gflop/s, bf16 233 Gflop/s"; without a unit these are seconds */
static void print_rates(const cJSON *one, const char *key, const char *what, const char *unit, bz_buf *out)
{
    bz_unit_text text;
    const cJSON *rates = cJSON_GetObjectItemCaseSensitive(one, key), *rate;
    bool first = true;
    begin(out, what);
    cJSON_ArrayForEach(rate, rates)
    {
        if (!cJSON_IsObject(rates) || !cJSON_IsNumber(rate))
            continue;
        bz_buf_puts(out, first ? "" : ", ");
        bz_buf_clean(out, rate->string);
        bz_buf_printf(out, " %s%s",
                      unit ? bz_units_count(text, rate->valuedouble) : bz_units_time(text, rate->valuedouble),
                      unit ? unit : "");
        first = false;
    }
}

static void print_moves(const cJSON *one, const char *key, const char *title, bz_buf *out)
{
    if (!cJSON_HasObjectItem(one, key))
        return; /* older ones */
    print_rates(one, key, title, "element/s", out);
    bz_buf_putc(out, '\n');
}

static void print_bandwidth(const cJSON *one, bz_buf *out)
{
    bz_unit_text a, b, c, d;
    const cJSON *row;
    const char *title = "bandwidth";
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(one, "bandwidth"))
    {
        begin(out, title);
        bz_buf_printf(out, "%8s: read %s/s, copy %s/s hot, %s/s cold\n", bz_units_bytes(a, number(row, "bytes")),
                      bz_units_bytes(b, number(row, "read")), bz_units_bytes(c, number(row, "copy")),
                      bz_units_bytes(d, number(row, "copy_cold")));
        title = "";
    }
}

void bz_peaks_print(const char *details, bz_buf *out)
{
    const cJSON *found[BZ_PEAKS_THREADS];
    cJSON *root = cJSON_Parse(details);
    int n = list(root, found);
    for (int i = 0; i < n; i++) {
        int threads = threads_of(found[i]);
        print_rates(found[i], "flops", "peak", "flop/s", out);
        bool busy = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(found[i], "busy"));
        bz_buf_printf(out, " (%d thread%s%s)\n", threads, threads == 1 ? "" : "s",
                      busy ? "; the machine was busy" : "");
        print_rates(found[i], "launch", "empty call", NULL, out);
        bz_buf_putc(out, '\n');
        print_moves(found[i], "reorder", "reordered", out);
        print_moves(found[i], "convert", "converted", out);
        print_bandwidth(found[i], out);
    }
    cJSON_Delete(root);
}
