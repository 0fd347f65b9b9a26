/* The walk over a stranger's database file: it must stay inside the file. Seeds are packed by
 * leaving out zeros: each page is a page number, a length, and its first bytes. */
#include "perfdb/guard.h"

#include "tests/fuzz/fuzz.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, MOST = 16 };

/* u8 page, u16 offset, u8 length, bytes: again and again */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char file[MOST * PAGE];
    memset(file, 0, sizeof file);
    size_t pages = size ? data[0] % MOST + 1 : 1;
    for (size_t at = 1; at + 4 <= size;) {
        size_t page = data[at] % pages, offset = ((size_t)data[at + 1] | (size_t)data[at + 2] << 8) % PAGE;
        size_t n = data[at + 3];
        at += 4;
        n = n < size - at ? n : size - at;
        n = n < PAGE - offset ? n : PAGE - offset;
        memcpy(file + page * PAGE + offset, data + at, n);
        at += n;
    }
    char *exact = malloc(pages * PAGE); /* so that a sanitizer sees the first byte too far */
    if (!exact)
        abort();
    memcpy(exact, file, pages * PAGE);
    const char *wrong = bz_guard_bytes(exact, pages * PAGE, true);
    SAW(wrong ? "-" : "+", 1);
    free(exact);
    return 0;
}
