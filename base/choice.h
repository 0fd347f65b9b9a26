/* choice: a value that must be one of a few names. Who typed another one is told which there are, and which one was meant. */
#ifndef BZ_CHOICE_H
#define BZ_CHOICE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* The name that a typo most likely meant, or NULL. */
const char *bz_choice_meant(const char *typed, const char *const *names, int n);

/* Fails with "WHAT takes hot or cold, not 'cld': did you mean cold?" */
int bz_choice_fail(bz_error *err, const char *what, const char *typed, const char *const *names, int n);

/* Lists of words with blanks or ends of lines between, "conv deconv": whether one of them is this one; and the next of them, cut
 * to the size of `out`, false behind the last. */
bool bz_has_word(const char *words, const char *word);
bool bz_word_next(const char **words, char *out, size_t size);

#endif
