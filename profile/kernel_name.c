/* Names of kernels: CUPTI tells them as the linker knows them, _Z3addPf; a person wants add(float*), or add. */
#include "profile/trace.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*demangler)(const char *name, char *out, size_t *size, int *status);

/* C++'s own, loaded by those who have a name to ask about; NULL where there is no C++ library. */
static demangler find_demangler(void)
{
    demangler found;
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libc++abi.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&found, &symbol, sizeof found); /* ISO C has no cast from one kind of pointer to the other */
    return found;
}

uint32_t bz_trace_demangled(bz_trace *t, uint32_t name)
{
    enum { LONGEST = 1 << 14 }; /* a short name can stand for one that is exponentially longer */
    const char *mangled = bz_string(t, name);
    if (strncmp(mangled, "_Z", 2) != 0 || strlen(mangled) > LONGEST)
        return name;
    demangler demangle = find_demangler();
    int status = -1;
    char *text = demangle ? demangle(mangled, NULL, NULL, &status) : NULL;
    uint32_t id = text && !status ? bz_trace_text(t, text) : name;
    free(text);
    return id;
}

uint32_t bz_trace_short_name(bz_trace *t, uint32_t name)
{
    const char *s = bz_string(t, name), *start = s;
    size_t n = strcspn(s, "<(");
    for (size_t i = 0; i < n; i++)
        if (s[i] == ' ' || (s[i] == ':' && i + 1 < n))
            start = s + i + 1;
    n -= (size_t)(start - s);
    return n ? bz_trace_intern(t, start, n) : name;
}
