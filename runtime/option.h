/* What the programs that measure say about a command line that getopt_long refuses. Private to runtime/. */
#ifndef BZ_RUNTIME_OPTION_H
#define BZ_RUNTIME_OPTION_H

#include "base/error.h"

#include <getopt.h>

/* `typed` is the argument that was refused: no option, or one without its value. */
int bz_option_refuse(const struct option *options, const char *typed, bz_error *err);

/* Where benanza has started us, it says so: then we end when it is gone, however that came. */
void bz_end_with_parent(void);

#endif
