#include "tests/cuda/devices.h"

#include "base/buf.h"

#include <stdio.h>

/* What cuDNN knows of a device, as its own JSON has it. */
static const struct {
    const char *name;
    int version, processors, shared;
} DEVICES[] = {
    {"NVIDIA A100-SXM4-80GB", 800, 108, 166912},
    {"NVIDIA H200", 900, 132, 232448},
    {"NVIDIA B200", 1000, 148, 232448},
};

cudnnBackendDescriptor_t device_describe(int i)
{
    cudnnBackendDescriptor_t device = NULL;
    bz_buf json = {0};
    bz_buf_printf(
        &json,
        "{\"deviceName\":\"%s\",\"deviceVer\":%d,\"driverVer\":13000,\"cudaDeviceId\":0,\"pciDeviceId\":0,"
        "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxGridSize\":[2147483647,65535,65535],"
        "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
        "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"maxSharedMemoryPerBlock\":49152,"
        "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":1024,\"isTccDriver\":0,"
        "\"supportCoopLaunch\":1,\"totalGlobalMem\":80000000000,\"smClockRateKHz\":1700000,"
        "\"memClockRateKHz\":2600000,\"l2CacheSize\":52428800}",
        DEVICES[i].name, DEVICES[i].version, DEVICES[i].processors, DEVICES[i].shared);
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device) != CUDNN_STATUS_SUCCESS ||
        graph_set(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)json.len, json.data) !=
            CUDNN_STATUS_SUCCESS ||
        cudnnBackendFinalize(device) != CUDNN_STATUS_SUCCESS) {
        printf("%s cannot be described\n", DEVICES[i].name);
        device = NULL;
    }
    bz_buf_free(&json);
    return device;
}

const char *device_name(int i)
{
    return DEVICES[i].name;
}

int device_version(int i)
{
    return DEVICES[i].version;
}
