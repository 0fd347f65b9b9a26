/* The program that every generated folder becomes. */
#include "runtime/runtime.h"

int main(int argc, char **argv)
{
    return bz_runtime_main(argc, argv, bz_benchmarks);
}
