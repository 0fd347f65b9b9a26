/* Chance for tests, which is the same in every run. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint64_t chance_state = 7;

static inline unsigned chance(unsigned below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance_state >> 33) % below;
}

/* Fewer than `most` letters. */
static inline const char *random_text(char *out, size_t most, const char *letters)
{
    size_t n = chance((unsigned)most);
    for (size_t i = 0; i < n; i++)
        out[i] = letters[chance((unsigned)strlen(letters))];
    out[n] = 0;
    return out;
}

#endif
