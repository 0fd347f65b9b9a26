/* Where operands lie.
 *
 * With pages of 4 KiB it is chance which sets of the second-level cache an operand falls into, and stays so
 * for the life of the process: the same benchmark is several percent slower in one run than in the next, and
 * nothing inside a run tells. On huge pages the address decides, and addresses are chosen here: every operand
 * begins on a huge page, a few pages further in than the one before, so that they do not fall onto each other.
 * Where the kernel has no huge pages to give, ordinary ones serve. */
#include "runtime/backend.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, STAGGER = 5 * 4096, PLACES = HUGE_PAGE / STAGGER / 2 };

void *bz_place(size_t size, int index)
{
    size_t offset = (size_t)(index % PLACES) * STAGGER;
    if (size > SIZE_MAX - 2 * (size_t)HUGE_PAGE)
        return NULL;
    size_t whole = (size + offset + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *base = aligned_alloc(HUGE_PAGE, whole ? whole : HUGE_PAGE);
    if (!base)
        return NULL;
    madvise(base, whole, MADV_HUGEPAGE);
    return base + offset;
}

void bz_unplace(void *at)
{
    if (at)
        free((char *)at - (uintptr_t)at % HUGE_PAGE);
}
