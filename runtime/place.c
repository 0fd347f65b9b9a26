/* Where operands lie.
 *
 * With pages of 4 KiB it is chance which sets of the second-level cache an operand falls into, and stays so
 * for the life of the process: the same benchmark is several percent slower in one run than in the next, and
 * nothing inside a run tells. On huge pages the address decides, and addresses are chosen here: every operand
 * begins on a huge page, a few pages further in than the one before, so that they do not fall onto each other.
 * Where the kernel has no huge pages to give, ordinary ones serve. What else lies in memory is fixed, too.
 *
 * What lies here is known, so that it can be taken out of the caches: by the instruction that does so with one line. Writing over
 * as much as the caches hold instead takes 40 ms where a machine shows a last cache of 500 MB, however small the operands are. */
#include "base/arena.h"
#include "runtime/measure.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, STAGGER = 5 * 4096, PLACES = HUGE_PAGE / STAGGER / 2 };

typedef struct place {
    char *at;
    size_t size;
} place;

static place *places; /* one thread places and takes away */
static size_t n_places;

static char *huge(size_t size)
{
    if (size > SIZE_MAX - HUGE_PAGE)
        return NULL;
    size_t whole = (size / HUGE_PAGE + !!(size % HUGE_PAGE) + !size) * HUGE_PAGE;
    char *at = aligned_alloc(HUGE_PAGE, whole);
    if (at)
        madvise(at, whole, MADV_HUGEPAGE);
    return at;
}

void *bz_large(size_t size)
{
    return size < HUGE_PAGE ? malloc(size) : huge(size);
}

void *bz_place(size_t size, int index)
{
    size_t offset = (size_t)(index % PLACES) * STAGGER;
    char *base = size > SIZE_MAX - offset ? NULL : huge(size + offset);
    if (!base)
        return NULL;
    BZ_ADD(places, n_places) = (place){base + offset, size};
    return base + offset;
}

void bz_unplace(void *at)
{
    size_t i = 0;
    while (i < n_places && places[i].at != at)
        i++;
    if (i == n_places)
        return;
    places[i] = places[--n_places];
    free((char *)at - (uintptr_t)at % HUGE_PAGE);
}

/* Takes a line out of the caches; NULL: waits until all have been. false: the processor lets no program do that. */
static bool flush(char *line)
{
#if defined __x86_64__
    if (line)
        __builtin_ia32_clflush(line);
    else
        __builtin_ia32_mfence();
    return true;
#elif defined __aarch64__
    if (line)
        __asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
    else
        __asm__ volatile("dsb sy" : : : "memory");
    return true;
#else
    (void)line;
    return false;
#endif
}

bool bz_place_flush(void)
{
    enum { LINE = 64 };
    for (size_t i = 0; i < n_places; i++)
        for (size_t at = 0; at < places[i].size; at += LINE)
            flush(places[i].at + at);
    return flush(NULL);
}

/* Addresses that the kernel picks by chance make the same code several percent faster in one run than in the
 * next (aliasing in predictors, buffers and caches), and nothing inside a run tells. So the program begins
 * anew with addresses that are the same every time; where that is forbidden, it goes on as it is. */
void bz_fix_addresses(char **argv)
{
    char self[4096];
    int now = personality(0xffffffff);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (now < 0 || (now & ADDR_NO_RANDOMIZE) || n <= 0 || personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0)
        return;
    self[n] = 0;
    fflush(NULL);
    execv(self, argv);
}
