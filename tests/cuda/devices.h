/* Devices that are not there, described to cuDNN. */
#ifndef BZ_TESTS_CUDA_DEVICES_H
#define BZ_TESTS_CUDA_DEVICES_H

#include "runtime/cudnn/graph.h"

enum { DEVICE_A100, DEVICE_H200, DEVICE_B200, N_DEVICES };

cudnnBackendDescriptor_t device_describe(int i); /* NULL where the library does not take it */
const char *device_name(int i);
int device_version(int i); /* 900: compute capability 9.0 */

#endif
