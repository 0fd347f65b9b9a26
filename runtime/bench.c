/* benanza-bench: no benchmarks of its own; runs the problems that it is told, and says what the machine is. */
#include "runtime/runtime.h"

const bz_benchmark *const bz_benchmarks[] = {NULL};
