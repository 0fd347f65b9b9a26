/* UTF-8, as far as it takes to pass text from a file on to people. Private to base/. */
#ifndef BZ_UTF8_H
#define BZ_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the well-formed sequence at s, which ends with a zero byte. Returns its length, 0 where there
 * is none. */
int utf8_read(const unsigned char *s, uint32_t *character);

/* Characters that a terminal acts on, or that reorder or break up the text around them. */
bool is_unsafe(uint32_t character);

#endif
