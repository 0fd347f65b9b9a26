/* The pages of a SQLite file, without libsqlite3: every page taken for a table's first one. */
#include "profile/pages.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const bz_wanted WANTED[] = {{BZ_WANT_EITHER, 0, false, false},
                                       {BZ_WANT_NUMBER, 1, false, true},
                                       {BZ_WANT_EITHER, 2, false, false},
                                       {BZ_WANT_TEXT, 5, false, false},
                                       {BZ_WANT_NUMBER, 0, true, false}};
    static int fd = -1;
    bz_pages pages;
    fd = fd < 0 ? memfd_create("pages", 0) : fd;
    if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size || !bz_pages_open(&pages, fd, size))
        return 0;
    for (int n = 1; n <= 5; n += 4)
        for (uint32_t root = 1; root <= pages.n && root <= 16; root++) {
            bz_rows rows;
            static bz_values value[5];
            uint64_t got = 0;
            unsigned seen = 0;
            bz_scan_step step = bz_rows_begin(&rows, &pages, root, WANTED, n);
            if (step == BZ_SCAN_ROW && bz_rows_expected(&rows) == 1234567)
                seen++;
            while (step == BZ_SCAN_ROW && (step = bz_rows_next(&rows, value)) == BZ_SCAN_ROW) {
                got += (uint64_t)rows.batch;
                for (int i = 0; i < n; i++)
                    for (int row = 0; row < rows.batch && value[i].type == BZ_VALUE_TEXT; row++)
                        for (int64_t k = 0; k < value[i].number[row]; k++)
                            seen += (unsigned char)value[i].text[row][k];
            }
            if (got > size || seen == 1234567)
                abort();
            bz_rows_end(&rows);
        }
    return 0;
}
