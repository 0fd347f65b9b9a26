/* The table of known GPUs, and which of a machine's is taken. */
#include "runtime/gpus.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern const char bz_gpus_text[];

static const char *const RATES[BZ_GPU_RATES] = {"f64", "f32", "tf32", "f16", "bf16", "i8", "f8"};

double bz_gpu_rate(const bz_gpu *gpu, const char *name)
{
    int i = 0;
    while (i < BZ_GPU_RATES && strcmp(RATES[i], name) != 0)
        i++;
    return i < BZ_GPU_RATES ? gpu->rate[i] : 0;
}

/* One line; false where it is none of the table. */
static bool read_row(const char *line, size_t n, bz_gpu *out)
{
    char text[200], rate[BZ_GPU_RATES][16], l2[16], base[16], watts[16];
    int at = 0;
    if (!n || *line == '#' || n >= sizeof text)
        return false;
    memcpy(text, line, n);
    text[n] = 0;
    *out = (bz_gpu){0};
    if (sscanf(text, "%31s %d.%d %d %lf %15s %15s %lf %15s %lf %7s %15s %15s %15s %15s %15s %15s %15s %7s %n",
               out->slug, &out->major, &out->minor, &out->multiprocessors, &out->clock, base, watts, &out->memory, l2,
               &out->bandwidth, out->ram, rate[0], rate[1], rate[2], rate[3], rate[4], rate[5], rate[6], out->source,
               &at) != 19 ||
        !at)
        return false;
    out->clock *= 1e6;
    out->base = 1e6 * strtod(base, NULL); /* `-` is 0 */
    out->watts = strtod(watts, NULL);     /* `-` is 0 */
    out->memory *= 1e9;
    out->l2 = 1048576 * strtod(l2, NULL); /* `-` is 0 */
    out->bandwidth *= 1e9;
    for (int i = 0; i < BZ_GPU_RATES; i++)
        out->rate[i] = 1e12 * strtod(rate[i], NULL);
    snprintf(out->name, sizeof out->name, "%.47s", text + at);
    return true;
}

/* The next row from `line` on; NULL behind the last. */
static const char *next_row(const char *line, bz_gpu *out)
{
    bool is = false;
    while (*line && !is) {
        size_t n = strcspn(line, "\n");
        is = read_row(line, n, out);
        line += n + (line[n] == '\n');
    }
    return is ? line : NULL;
}

bool bz_gpu_row(int i, bz_gpu *out)
{
    const char *at = bz_gpus_text;
    while ((at = next_row(at, out)) && i--)
        ;
    return at != NULL;
}

bool bz_gpu_slug(const char *slug, bz_gpu *out)
{
    const size_t len = strlen(slug);
    bool shortened = false; /* "a100": a word with a number in it, not "rtx" */
    bz_gpu row;
    for (const char *at = bz_gpus_text; (at = next_row(at, &row));) {
        const bool whole = !strcasecmp(row.slug, slug);
        if (whole ||
            (!shortened && strpbrk(slug, "0123456789") && !strncasecmp(row.slug, slug, len) && row.slug[len] == '-')) {
            *out = row;
            shortened = true;
        }
        if (whole)
            break;
    }
    return shortened;
}

/* Whether the name has the row's in it and nothing goes on behind that makes it another product: an A100 is no A10, an RTX 3080 Ti no 3080,
 * and a slice of an A100 ("A100-SXM4-40GB MIG 1g.5gb") has a seventh of its multiprocessors. */
static bool fits(const char *name, const char *row)
{
    static const char *const OTHER[] = {" Ti", " SUPER", " D", " Laptop", " with Max-Q", " Max-Q", " MIG"};
    const char *at = strstr(name, row), *rest = at ? at + strlen(row) : "";
    for (size_t i = 0; i < sizeof OTHER / sizeof *OTHER; i++)
        if (!strncmp(rest, OTHER[i], strlen(OTHER[i])) && !isalnum((unsigned char)rest[strlen(OTHER[i])]))
            return false;
    return at && !isalnum((unsigned char)*rest);
}

bool bz_gpu_find(const char *name, bz_gpu *out)
{
    size_t longest = 0;
    bz_gpu row;
    for (const char *at = bz_gpus_text; (at = next_row(at, &row));)
        if (fits(name, row.name) && strlen(row.name) > longest) {
            longest = strlen(row.name);
            *out = row;
        }
    return longest;
}

static const char CHOSEN[] = "BENANZA_DEVICE";
enum { MOST_GPUS = 32 }; /* in one machine; CUDA passes over all numbers from the first on that it does not have */

/* "2,0,1,3,…": CUDA then has GPU 2 as its first. */
static void first_of_all(int number, bz_buf *out)
{
    bz_buf_printf(out, "%d", number);
    for (int i = 0; i < MOST_GPUS; i++)
        if (i != number)
            bz_buf_printf(out, ",%d", i);
}

/* "c,a,b" for number 2 of "a,b,c". */
static int first_of_list(int number, const char *list, bz_buf *out, bz_error *err)
{
    const char *at = list;
    int n = 0;
    for (; *at && n < number; n++)
        at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',');
    if (!*at)
        return bz_fail(err, BZ_USAGE, "--device %d: CUDA_VISIBLE_DEVICES is '%.60s', which leaves %d GPU%s", number,
                       list, n, n == 1 ? "" : "s");
    size_t length = strcspn(at, ",");
    bz_buf_printf(out, "%.*s", (int)length, at);
    if (at > list)
        bz_buf_printf(out, ",%.*s", (int)(at - list - 1), list);
    bz_buf_puts(out, at + length);
    return 0;
}

int bz_gpu_choose(const char *number, bz_error *err)
{
    char *end;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    long n = strtol(number, &end, 10);
    const char *before = bz_gpu_chosen();
    BZ_SCOPED(bz_buf) list = {0};
    if (before && !strcmp(before, number)) /* a program that starts itself anew is told it again */
        return 0;
    if (!isdigit((unsigned char)*number) || *end || n >= MOST_GPUS)
        return bz_fail(err, BZ_USAGE,
                       "--device takes the number of a GPU, 0 for the first (nvidia-smi -L lists them), not '%s'",
                       number);
    int rc = visible ? first_of_list((int)n, visible, &list, err) : 0;
    if (!visible) {
        first_of_all((int)n, &list);
        setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1); /* as nvidia-smi counts; CUDA's own order has the fastest first */
    }
    if (!rc) {
        setenv("CUDA_VISIBLE_DEVICES", bz_buf_text(&list), 1);
        setenv(CHOSEN, number, 1);
    }
    return rc;
}

const char *bz_gpu_chosen(void)
{
    return getenv(CHOSEN);
}
