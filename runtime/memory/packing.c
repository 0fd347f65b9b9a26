/* A text made smaller, and brought back, by libraries that are loaded where they are found. The text is like a recording's: lines with the
 * same names and other numbers. Data of chance would pack into nothing or into itself. */
#include "runtime/memory/transfer.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct codec codec;

typedef struct packing {
    const codec *codec;
    void *library, *pack, *unpack;
    char *text, *packed, *back;
    size_t size, room, used; /* of the text; of what it is packed into, and of that used */
} packing;

struct codec {
    bz_transfer_way way; /* the next one unpacks */
    const char *library, *pack, *unpack;
    size_t (*run_pack)(packing *p); /* bytes; 0: it failed */
    size_t (*run_unpack)(packing *p);
};

/* POSIX lets a symbol's address be a function's; ISO C has no such cast. */
#define CALL(type, symbol) (*(type *)(void *)&(symbol))

typedef int zlib_pack(unsigned char *to, unsigned long *room, const unsigned char *from, unsigned long n, int level);
typedef int zlib_unpack(unsigned char *to, unsigned long *room, const unsigned char *from, unsigned long n);
typedef size_t zstd_pack(void *to, size_t room, const void *from, size_t n, int level);
typedef size_t zstd_unpack(void *to, size_t room, const void *from, size_t n);
typedef int lz4_move(const char *from, char *to, int n, int room);

static size_t pack_zlib(packing *p)
{
    unsigned long n = p->room;
    int rc = CALL(zlib_pack *, p->pack)((unsigned char *)p->packed, &n, (unsigned char *)p->text, p->size, 6);
    return rc ? 0 : n;
}

static size_t unpack_zlib(packing *p)
{
    unsigned long n = p->size;
    int rc = CALL(zlib_unpack *, p->unpack)((unsigned char *)p->back, &n, (unsigned char *)p->packed, p->used);
    return rc ? 0 : n;
}

/* Errors are sizes that nothing has. */
static size_t pack_zstd(packing *p)
{
    size_t n = CALL(zstd_pack *, p->pack)(p->packed, p->room, p->text, p->size, 3);
    return n > p->room ? 0 : n;
}

static size_t unpack_zstd(packing *p)
{
    size_t n = CALL(zstd_unpack *, p->unpack)(p->back, p->size, p->packed, p->used);
    return n > p->size ? 0 : n;
}

static size_t pack_lz4(packing *p)
{
    int n = CALL(lz4_move *, p->pack)(p->text, p->packed, (int)p->size, (int)p->room);
    return n > 0 ? (size_t)n : 0;
}

static size_t unpack_lz4(packing *p)
{
    int n = CALL(lz4_move *, p->unpack)(p->packed, p->back, (int)p->used, (int)p->size);
    return n > 0 ? (size_t)n : 0;
}

static const codec CODECS[] = {
    {BZ_TRANSFER_ZLIB, "libz.so.1", "compress2", "uncompress", pack_zlib, unpack_zlib},
    {BZ_TRANSFER_ZSTD, "libzstd.so.1", "ZSTD_compress", "ZSTD_decompress", pack_zstd, unpack_zstd},
    {BZ_TRANSFER_LZ4, "liblz4.so.1", "LZ4_compress_default", "LZ4_decompress_safe", pack_lz4, unpack_lz4},
};

static void write_text(char *text, size_t size)
{
    static const char *const NAMES[] = {"conv", "gemm", "pool", "batch norm", "relu", "reorder", "softmax", "add"};
    uint64_t random = 88172645463325252U, now = 0;
    char line[160];
    for (size_t done = 0; done < size;) {
        random ^= random << 13; /* xorshift */
        random ^= random >> 7;
        random ^= random << 17;
        int n = snprintf(line, sizeof line,
                         "{\"ph\":\"X\",\"name\":\"%s_%d\",\"pid\":1,\"tid\":%d,\"ts\":%llu,\"dur\":%d}\n",
                         NAMES[random % 8], (int)(random >> 8 & 63), (int)(random >> 16 & 3), (unsigned long long)now,
                         (int)(random >> 24 & 4095));
        size_t more = (size_t)n < size - done ? (size_t)n : size - done;
        memcpy(text + done, line, more);
        done += more;
        now += 1 + (random >> 40 & 8191);
    }
}

static const codec *codec_of(bz_transfer_way way)
{
    size_t i = 0;
    while (way != CODECS[i].way && way != CODECS[i].way + 1)
        i++;
    return &CODECS[i];
}

int transfer_packing_open(transfer *t, bz_error *err)
{
    const bz_problem *problem = t->plain->job->problem;
    packing *p = bz_zeroed(1, sizeof *p);
    t->own = p;
    p->codec = codec_of(problem->transfer.way);
    p->size = (size_t)problem->transfer.x[0];
    if (p->size > 1 << 30)
        return bz_fail(err, BZ_INCOMPLETE, "texts of up to a GiB are made smaller");
    p->library = dlopen(p->codec->library, RTLD_NOW | RTLD_LOCAL);
    p->pack = p->library ? dlsym(p->library, p->codec->pack) : NULL;
    p->unpack = p->library ? dlsym(p->library, p->codec->unpack) : NULL;
    if (!p->pack || !p->unpack)
        return bz_fail(err, BZ_INCOMPLETE, "%s is not installed", p->codec->library);
    p->room = p->size + p->size / 64 + 1024;
    p->text = bz_alloc(p->size, 1);
    p->packed = bz_alloc(p->room, 1);
    p->back = bz_zeroed(p->size, 1);
    write_text(p->text, p->size);
    p->used = p->codec->run_pack(p);
    if (!p->used || p->codec->run_unpack(p) != p->size || memcmp(p->text, p->back, p->size) != 0)
        return bz_fail(err, BZ_FAILED, "%s does not bring back what it packed", p->codec->library);
    t->packed = (double)p->used;
    return 0;
}

static int done(const transfer *t, int copy, bool good)
{
    *(unsigned char *)bz_plain_at(t->plain, 0, copy) = good;
    return good ? 0 : -1;
}

int transfer_pack(transfer *t, int copy)
{
    packing *p = t->own;
    return done(t, copy, p->codec->run_pack(p) == p->used);
}

int transfer_unpack(transfer *t, int copy)
{
    packing *p = t->own;
    return done(t, copy, p->codec->run_unpack(p) == p->size);
}

void transfer_packing_close(transfer *t)
{
    packing *p = t->own;
    if (!p)
        return;
    free(p->text);
    free(p->packed);
    free(p->back);
    if (p->library)
        dlclose(p->library);
    free(p);
}
