/* What only a device can show. Private to tests/gpu/. */
#ifndef BZ_GPU_CHECK_H
#define BZ_GPU_CHECK_H

#include "runtime/backend.h"

/* The problems that the clock is tested with; PROBLEM of the list's line `@ROLE PROBLEM`. */
typedef enum role { ROLE_LONG, ROLE_PRODUCT, ROLE_HALF, ROLE_CACHED, ROLE_ONCE, ROLE_TWICE, N_ROLES } role;

typedef struct clock_problems {
    bz_problem problem[N_ROLES];
    bool given[N_ROLES];
} clock_problems;

/* Tests the clock of the backends until `end` by bz_now(); a line on standard output for each test. Plans are kept in a folder (NULL:
 * they are not). Returns how many failed; *left_out: how many were not begun. */
int clock_check(const clock_problems *problems, const bz_device *device, const char *plans, double end, int *left_out);

#endif
