/* A stand-in for the driver's library that has no device and loads whatever code it is given. cuDNN compiles plans to their end
 * with it, for devices that are only described, as it does where a driver is. The driver's header declares these functions with
 * types that nothing here needs. */
#include <stddef.h>

enum { SUCCESS = 0, NO_DEVICE = 100, NOT_FOUND = 500 };

static char code, kernel;

/* What a device would be needed for. cuDNN complains on standard error where the library lacks one of these. */
#define WITHOUT_DEVICE(name)                                                                                           \
    int name(void);                                                                                                    \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return NO_DEVICE;                                                                                              \
    }
WITHOUT_DEVICE(cuInit)
WITHOUT_DEVICE(cuCtxGetCurrent)
WITHOUT_DEVICE(cuCtxGetLimit)
WITHOUT_DEVICE(cuCtxPopCurrent)
WITHOUT_DEVICE(cuCtxPushCurrent)
WITHOUT_DEVICE(cuDeviceGet)
WITHOUT_DEVICE(cuDeviceGetCount)
WITHOUT_DEVICE(cuGetErrorName)
WITHOUT_DEVICE(cuGetErrorString)
WITHOUT_DEVICE(cuKernelGetAttribute)
WITHOUT_DEVICE(cuLaunchCooperativeKernel)
WITHOUT_DEVICE(cuLaunchKernel)
WITHOUT_DEVICE(cuLaunchKernelEx)
WITHOUT_DEVICE(cuLibraryLoadFromFile)
WITHOUT_DEVICE(cuLinkAddData)
WITHOUT_DEVICE(cuLinkComplete)
WITHOUT_DEVICE(cuLinkCreate)
WITHOUT_DEVICE(cuLinkDestroy)
WITHOUT_DEVICE(cuOccupancyMaxPotentialClusterSize)
WITHOUT_DEVICE(cuStreamGetCtx)

int cuDriverGetVersion(int *version);
int cuKernelSetAttribute(void);
int cuLibraryLoadData(void **out);
int cuLibraryUnload(void *library);
int cuLibraryGetKernel(void **out, void *library);

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return SUCCESS;
}

int cuKernelSetAttribute(void)
{
    return SUCCESS;
}

int cuLibraryLoadData(void **out)
{
    *out = &code;
    return SUCCESS;
}

int cuLibraryUnload(void *library)
{
    return library == &code ? SUCCESS : NOT_FOUND;
}

int cuLibraryGetKernel(void **out, void *library)
{
    *out = library == &code ? &kernel : NULL;
    return *out ? SUCCESS : NOT_FOUND;
}
