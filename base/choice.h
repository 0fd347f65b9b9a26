/* choice: a value that must be one of a few names. Who typed another one is told which there are, and which one was meant. */
#ifndef BZ_CHOICE_H
#define BZ_CHOICE_H

#include "base/error.h"

/* The name that a typo most likely meant, or NULL. */
const char *bz_choice_meant(const char *typed, const char *const *names, int n);

/* Fails with "WHAT takes hot or cold, not 'cld': did you mean cold?" */
int bz_choice_fail(bz_error *err, const char *what, const char *typed, const char *const *names, int n);

#endif
