/* Devices as runtime/device.c writes them: unit_runtime_device holds it to these lines, unit_explain_device reads them. */
#ifndef DEVICE_LINES_H
#define DEVICE_LINES_H

static const struct {
    const char *slug, *name;
    int major, minor;
    long l2;
    double clock;
    const char *line;
} DEVICE_LINES[] = {
    {"v100", "Tesla V100-SXM2-16GB", 7, 0, 0, 0,
     "{\"v\":1,\"record\":\"system\",\"slug\":\"v100\",\"stack\":\"cudnn9.1\",\"device\":\"gpu\",\"name\":\"Tesla "
     "V100-SXM2-16GB\",\"capability\":\"7.0\",\"multiprocessors\":0,\"memory\":0,\"l2\":0,\"clock\":0,"
     "\"memory_clock\":0,\"bus\":0,\"bandwidth\":0,\"copy_bandwidth\":null,\"event_pair\":null,\"driver\":\"\"}\n"},
    {"h200", "NVIDIA H200", 9, 0, 62914560, 2e9,
     "{\"v\":1,\"record\":\"system\",\"slug\":\"h200\",\"stack\":\"cudnn9.1\",\"device\":\"gpu\",\"name\":\"NVIDIA "
     "H200\",\"capability\":\"9.0\",\"multiprocessors\":0,\"memory\":0,\"l2\":62914560,\"clock\":2e+09,"
     "\"memory_clock\":0,\"bus\":0,\"bandwidth\":0,\"copy_bandwidth\":null,\"event_pair\":null,\"driver\":\"\"}\n"},
    {"p40", "Tesla P40", 6, 1, 0, 0,
     "{\"v\":1,\"record\":\"system\",\"slug\":\"p40\",\"stack\":\"cudnn9.1\",\"device\":\"gpu\",\"name\":\"Tesla "
     "P40\",\"capability\":\"6.1\",\"multiprocessors\":0,\"memory\":0,\"l2\":0,\"clock\":0,\"memory_clock\":0,"
     "\"bus\":0,\"bandwidth\":0,\"copy_bandwidth\":null,\"event_pair\":null,\"driver\":\"\"}\n"},
};
enum { N_DEVICE_LINES = sizeof DEVICE_LINES / sizeof *DEVICE_LINES };

#endif
