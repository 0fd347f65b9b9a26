/* What a system's details say, whoever wrote them. They may come from a stranger's file. */
#include "perfdb/perfdb.h"

#include "base/units.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const bz_system_facts bz_system_unknown = {.text = "",
                                           .device = "",
                                           .name = "",
                                           .isa = "",
                                           .versions = "",
                                           .counters = "",
                                           .absent = "",
                                           .yardstick = (double)NAN};

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *word(const cJSON *root, const char *name, bz_arena *arena)
{
    const char *text = cJSON_GetStringValue(member(root, name));
    return bz_arena_str(arena, text ? text : "");
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *v = member(object, name);
    return cJSON_IsNumber(v) && v->valuedouble > 0 && v->valuedouble < 1e30 ? v->valuedouble : (double)NAN;
}

static int threads_of(const cJSON *one)
{
    double n = cJSON_IsObject(one) ? number(one, "threads") : (double)NAN;
    return n >= 1 && n <= 4096 && n == floor(n) ? (int)n : 0;
}

/* `measured` is an object with the thread count it was measured with; or a list of such objects, where it was measured with
 * several. Returns how many, each count once. */
static int list_measured(const cJSON *root, const cJSON *found[BZ_MEASURED])
{
    const cJSON *measured = member(root, "measured");
    const cJSON *one = cJSON_IsArray(measured) ? measured->child : measured;
    int n = 0;
    for (; one && n < BZ_MEASURED; one = one == measured ? NULL : one->next) {
        int same = 0;
        while (same < n && threads_of(found[same]) != threads_of(one))
            same++;
        if (threads_of(one) && same == n)
            found[n++] = one;
    }
    return n;
}

/* {"f32": 114e9, …} */
static bz_rates read_rates(const cJSON *one, const char *name, bz_arena *arena)
{
    const cJSON *object = member(one, name), *row;
    bz_named_rate *rate = BZ_NEW(arena, bz_named_rate, cJSON_GetArraySize(object));
    int n = 0;
    cJSON_ArrayForEach(row, object) if (cJSON_IsObject(object) && isfinite(number(object, row->string))) rate[n++] =
        (bz_named_rate){bz_arena_str(arena, row->string), number(object, row->string)};
    return (bz_rates){rate, n};
}

static void read_measured(const cJSON *one, bz_arena *arena, bz_measured *out)
{
    const cJSON *list = member(one, "bandwidth"), *row;
    bz_buffer_rates *buffer = BZ_NEW(arena, bz_buffer_rates, cJSON_GetArraySize(list));
    *out = (bz_measured){.threads = threads_of(one),
                         .busy = cJSON_IsTrue(member(one, "busy")),
                         .flops = read_rates(one, "flops", arena),
                         .launch = read_rates(one, "launch", arena),
                         .reorder = read_rates(one, "reorder", arena),
                         .convert = read_rates(one, "convert", arena),
                         .buffer = buffer};
    cJSON_ArrayForEach(row, list) buffer[out->n_buffers++] =
        (bz_buffer_rates){number(row, "bytes"), number(row, "read"), number(row, "copy"), number(row, "copy_cold")};
}

const bz_measured *bz_system_measured(const bz_system_facts *facts, int threads)
{
    for (int i = 0; i < facts->n_measured; i++)
        if (facts->measured[i].threads == threads)
            return &facts->measured[i];
    return NULL;
}

static void read_caches(const cJSON *root, bz_system_facts *f)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, member(root, "caches"))
    {
        double level = number(row, "level"), count = number(row, "count"), bytes = number(row, "bytes");
        double least = f->n_caches ? f->cache[f->n_caches - 1].bytes : 0;
        if (!(bytes > least) || !(bytes <= 1e12) || !(level <= 9) || f->n_caches == 4)
            continue;
        f->cache[f->n_caches].level = (int)level;
        f->cache[f->n_caches].count = count >= 1 && count <= 4096 ? (int)count : 1;
        f->cache[f->n_caches++].bytes = bytes;
    }
}

const bz_system_facts *bz_system_facts_read(const char *details, bz_arena *arena)
{
    if (!details || !*details)
        return &bz_system_unknown;
    bz_system_facts *f = BZ_NEW(arena, bz_system_facts, 1);
    const cJSON *found[BZ_MEASURED];
    cJSON *root = cJSON_Parse(details);
    const char *device = word(root, "device", arena);
    bool imported = cJSON_IsString(member(root, "gpu"));
    *f = (bz_system_facts){.text = bz_arena_str(arena, details),
                           .gpu = imported || !strcmp(device, "gpu"),
                           .device = imported ? "gpu" : device,
                           .name = word(root, imported ? "gpu" : "name", arena),
                           .isa = word(root, "isa", arena),
                           .versions = word(root, "versions", arena),
                           .counters = word(root, "counters", arena),
                           .absent = word(root, "absent", arena),
                           .capability = strtod(word(root, "capability", arena), NULL),
                           .l2 = fmax(0, number(root, "l2")),
                           .clock = fmax(0, number(root, "clock")),
                           .bandwidth = fmax(0, number(root, "bandwidth")),
                           .yardstick = NAN};
    read_caches(root, f);
    f->n_measured = list_measured(root, found);
    bz_measured *measured = BZ_NEW(arena, bz_measured, f->n_measured);
    f->measured = measured;
    for (int i = 0; i < f->n_measured; i++) {
        read_measured(found[i], arena, &measured[i]);
        f->yardstick = fmin(f->yardstick, number(found[i], "yardstick"));
    }
    cJSON_Delete(root);
    return f;
}

/* Of two lists the measurement with the fewest threads above `least`; `own` before others of the same count. */
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

const char *bz_system_join(const char *old, const char *new, bz_arena *arena)
{
    const cJSON *before[BZ_MEASURED], *now[BZ_MEASURED], *next;
    cJSON *from = cJSON_Parse(old), *to = cJSON_Parse(new), *all = cJSON_CreateArray();
    int n = list_measured(from, before), least = 0;
    const char *joined = NULL;
    if (list_measured(to, now) == 1)
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

/* "f32 114 Gflop/s, bf16 233 Gflop/s"; without a unit these are seconds */
static void print_rates(const bz_rates *rates, const char *what, const char *unit, bz_buf *out)
{
    bz_unit_text text;
    bz_buf_printf(out, "%-14s", what);
    for (int i = 0; i < rates->n; i++)
        bz_buf_say(out, "%s%s %s%s", i ? ", " : "", rates->at[i].name,
                   unit ? bz_units_count(text, rates->at[i].rate) : bz_units_time(text, rates->at[i].rate),
                   unit ? unit : "");
}

static void print_moves(const bz_rates *rates, const char *title, bz_buf *out)
{
    if (!rates->n)
        return; /* older ones */
    print_rates(rates, title, "element/s", out);
    bz_buf_putc(out, '\n');
}

void bz_measured_print(const bz_measured *m, bz_buf *out)
{
    bz_unit_text a, b, c, d;
    print_rates(&m->flops, "peak", "flop/s", out);
    bz_buf_printf(out, " (%d thread%s%s)\n", m->threads, m->threads == 1 ? "" : "s",
                  m->busy ? "; the machine was busy" : "");
    print_rates(&m->launch, "empty call", NULL, out);
    bz_buf_putc(out, '\n');
    print_moves(&m->reorder, "reordered", out);
    print_moves(&m->convert, "converted", out);
    for (int i = 0; i < m->n_buffers; i++)
        bz_buf_printf(out, "%-14s%8s: read %s/s, copy %s/s hot, %s/s cold\n", i ? "" : "bandwidth",
                      bz_units_bytes(a, m->buffer[i].bytes), bz_units_bytes(b, m->buffer[i].read),
                      bz_units_bytes(c, m->buffer[i].copy), bz_units_bytes(d, m->buffer[i].copy_cold));
}
