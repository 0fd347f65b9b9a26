/* Lines of MKL_VERBOSE in a log. */
#ifndef BZ_PROFILE_MKL_LOG_H
#define BZ_PROFILE_MKL_LOG_H

#include "profile/trace.h"

bool bz_mkl_has(const char *s, size_t n);

/* Adds the call of a line, which begins at *clock, and moves that to its end. False: the line tells none. */
bool bz_mkl_read(bz_trace *t, uint32_t source, int64_t *clock, const char *line, size_t n);

#endif
