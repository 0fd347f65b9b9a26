/* open: files whose names people give, opened so that no name makes a program wait for ever.
 *
 * A pipe by name has 5 s to find its other end; the shell's <(…) has it already. What never ends is not read: a device is refused, except a
 * terminal and /dev/null. A file of the kernel that would wait for news (/proc/kmsg) cannot be read. */
#ifndef BZ_OPEN_H
#define BZ_OPEN_H

#include "base/error.h"

#include <stdio.h>

/* To be read: a file descriptor; -1 with a sentence that names the path. A folder can be opened, and not be read. */
int bz_open_input(const char *path, bz_error *err);

/* The same as a stream; NULL where it cannot be opened. */
FILE *bz_open_input_file(const char *path, bz_error *err);

/* To be written as it is, with more flags of open(2), such as O_CREAT. Whoever wants it whole or not at all asks whole.h. */
int bz_open_output(const char *path, int flags, bz_error *err);

#endif
