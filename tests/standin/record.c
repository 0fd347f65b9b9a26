#include "tests/standin/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

bz_buf standin_text;
int standin_silent, standin_devices = 1, standin_driver = -1;
bool standin_computed, standin_stuck, standin_full, standin_mute, standin_ill, standin_slow_plans, standin_raw;
int standin_sticky, standin_no_plans, standin_refuses;
void (*standin_launched)(void);
float standin_launch_ms;

static struct object {
    char name[32];
    char *data;
    size_t size; /* of memory; 0 for other objects */
} objects[MOST];
static int n_objects;

void standin_reset(void)
{
    for (int i = 0; i < n_objects; i++)
        free(objects[i].data);
    n_objects = 0;
    memset(objects, 0, sizeof objects);
    bz_buf_clear(&standin_text);
    standin_silent = 0;
    standin_devices = 1;
    standin_driver = -1;
    standin_computed = standin_stuck = standin_full = standin_mute = standin_ill = standin_slow_plans = standin_raw =
        false;
    standin_sticky = standin_no_plans = standin_refuses = 0;
}

void standin_record(const char *fmt, ...)
{
    char line[4096];
    va_list args;
    if (standin_silent > 0)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    bz_buf_puts(&standin_text, line);
    bz_buf_putc(&standin_text, '\n');
}

static struct object *add(const char *sort, size_t size)
{
    int same = 1;
    if (n_objects == MOST)
        abort();
    for (int i = 0; i < n_objects; i++) {
        size_t n = strlen(sort);
        same += !strncmp(objects[i].name, sort, n) && objects[i].name[n] >= '0' && objects[i].name[n] <= '9';
    }
    struct object *o = &objects[n_objects++];
    snprintf(o->name, sizeof o->name, "%s%d", sort, same);
    o->data = calloc(1, size ? size : 1);
    o->size = size;
    return o;
}

void *standin_new(const char *sort)
{
    return add(sort, 0)->data;
}

void *standin_memory(size_t size)
{
    return add("d", size)->data;
}

/* The name stays taken: nothing later is called by it. */
void standin_memory_free(void *data)
{
    for (int i = 0; i < n_objects; i++)
        if (data && objects[i].data == data) {
            free(objects[i].data);
            objects[i].data = NULL;
        }
}

const char *standin_name(const void *object)
{
    static char text[8][64];
    static int next;
    char *out = text[next++ % 8];
    const char *p = object;
    if (!p)
        return "null";
    for (int i = n_objects; i--;) {
        const struct object *o = &objects[i];
        if (o->data && p == o->data)
            return o->name;
        if (o->data && p > o->data && p < o->data + o->size) {
            snprintf(out, 64, "%s+%zu", o->name, (size_t)(p - o->data));
            return out;
        }
    }
    return "host";
}

const char *standin_longs(int64_t n, const int64_t *v)
{
    static char text[8][256];
    static int next;
    char *out = text[next++ % 8];
    size_t at = 0;
    out[0] = 0;
    for (int64_t i = 0; i < n && at < 240; i++)
        at += (size_t)snprintf(out + at, 256 - at, "%s%lld", i ? "," : "", (long long)v[i]);
    return out;
}

const char *standin_ints(int n, const int *v)
{
    int64_t wide[16];
    for (int i = 0; i < n && i < 16; i++)
        wide[i] = v[i];
    return standin_longs(n < 16 ? n : 16, wide);
}
