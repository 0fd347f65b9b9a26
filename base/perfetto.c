#include "base/perfetto.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH_AT = 1 << 20 };

int bz_perfetto_open(bz_perfetto *p, const char *path, bz_error *err)
{
    *p = (bz_perfetto){0};
    if (bz_whole_open(&p->file, path, err))
        return -1;
    bz_buf_puts(&p->text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    return 0;
}

static void flush(bz_perfetto *p)
{
    if (!p->why && !bz_write_all(p->file.fd, bz_buf_text(&p->text), p->text.len))
        p->why = errno;
    bz_buf_clear(&p->text);
}

int bz_perfetto_close(bz_perfetto *p, bz_error *err)
{
    bz_buf_puts(&p->text, "\n]}\n");
    flush(p);
    bz_buf_free(&p->text);
    if (p->why)
        bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", p->file.path, strerror(p->why));
    return bz_whole_close(&p->file, !p->why, err);
}

static void put_text(bz_perfetto *p, const char *key, const char *value)
{
    bz_json j = bz_json_to(&p->text, false);
    bz_buf_printf(&p->text, "\"%s\":", key);
    bz_json_str(&j, value);
}

void bz_perfetto_begin(bz_perfetto *p, const char *name)
{
    bz_buf_puts(&p->text, p->some ? ",\n{" : "\n{");
    p->some = true;
    put_text(p, "name", name);
}

void bz_perfetto_slice(bz_perfetto *p, const char *name, const char *category, long long process, uint32_t track,
                       int64_t start, int64_t length)
{
    bz_perfetto_begin(p, name);
    bz_buf_printf(&p->text, ",\"cat\":\"%s\",\"ph\":\"X\"", category);
    bz_perfetto_track(p, process, track);
    bz_perfetto_time(p, "ts", start);
    bz_perfetto_time(p, "dur", length);
}

void bz_perfetto_track(bz_perfetto *p, long long process, uint32_t track)
{
    bz_buf_printf(&p->text, ",\"pid\":%lld,\"tid\":%u", process, track);
}

void bz_perfetto_time(bz_perfetto *p, const char *key, int64_t ns)
{
    bz_buf_printf(&p->text, ",\"%s\":%s%lld.%03lld", key, ns < 0 ? "-" : "", llabs((long long)ns) / 1000,
                  llabs((long long)ns) % 1000);
}

void bz_perfetto_args(bz_perfetto *p)
{
    bz_buf_puts(&p->text, ",\"args\":{");
    p->args = p->first_arg = true;
}

static void next_arg(bz_perfetto *p)
{
    if (!p->first_arg)
        bz_buf_putc(&p->text, ',');
    p->first_arg = false;
}

void bz_perfetto_str(bz_perfetto *p, const char *key, const char *value)
{
    next_arg(p);
    put_text(p, key, value);
}

void bz_perfetto_int(bz_perfetto *p, const char *key, int64_t value)
{
    next_arg(p);
    bz_buf_printf(&p->text, "\"%s\":%lld", key, (long long)value);
}

void bz_perfetto_end(bz_perfetto *p)
{
    bz_buf_puts(&p->text, p->args ? "}}" : "}");
    p->args = false;
    if (p->text.len > FLUSH_AT)
        flush(p);
}

void bz_perfetto_name(bz_perfetto *p, const char *what, long long process, uint32_t track, const char *name)
{
    bz_perfetto_begin(p, what);
    bz_buf_puts(&p->text, ",\"ph\":\"M\"");
    bz_perfetto_track(p, process, track);
    bz_perfetto_args(p);
    bz_perfetto_str(p, "name", name);
    bz_perfetto_end(p);
}
