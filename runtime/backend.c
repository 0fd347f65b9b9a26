/* Finding backends: those built in, and modules that are loaded when they are first asked for. */
#include "runtime/backend.h"
#include "runtime/backends.h"

#include "base/choice.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const bz_backend *find(const bz_backend *const *backends, const char *name)
{
    for (; *backends; backends++)
        if (!strcmp((*backends)->name, name))
            return *backends;
    return NULL;
}

/* The folder of the program, for modules that lie beside it. */
static void own_folder(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    out[n > 0 ? n : 0] = 0;
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = 0;
}

/* A name from a problem file must not become a path. */
static bool is_word(const char *name)
{
    size_t n = strlen(name);
    return n && n < 16 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == n;
}

static void module_path(const char *name, char *path, size_t size)
{
    char folder[3000];
    const char *given = getenv("BENANZA_MODULES");
    own_folder(folder, sizeof folder);
    snprintf(path, size, "%s/benanza-%s.so", given ? given : folder, name);
}

int bz_backend_check(const char *name, bz_error *err)
{
    const char *names[16];
    char path[3100];
    int n = 0;
    for (; bz_backends[n].name && n < 16; n++)
        names[n] = bz_backends[n].name;
    if (bz_backend_named(name))
        return 0;
    if (!is_word(name))
        return bz_choice_fail(err, "--backend", name, names, n);
    module_path(name, path, sizeof path);
    return access(path, R_OK) ? bz_choice_fail(err, "--backend", name, names, n) : 0;
}

static const char *advice_of(const char *why)
{
    return strstr(why, "cannot open shared object file")
               ? "; install that library, or put its folder into LD_LIBRARY_PATH (pip's are site-packages/nvidia/*/lib)"
           : strstr(why, "undefined symbol") ? "; the library that is found first is older than the one this was built "
                                               "with: put a newer one's folder "
                                               "into LD_LIBRARY_PATH"
                                             : "";
}

static const bz_backend *load(const char *name, bz_error *err)
{
    char path[3100];
    module_path(name, path, sizeof path);
    void *module = access(path, R_OK) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const bz_backend *b = module ? dlsym(module, "bz_backend_module") : NULL;
    if (b && strcmp(b->name, name) == 0)
        return b;
    const char *why = access(path, R_OK) ? "there is no such file"
                      : module           ? "it is no backend of that name"
                                         : dlerror();
    bz_fail(err, BZ_USAGE, "backend '%s' is not built in, and the module %s cannot be loaded: %s%s", name, path, why,
            advice_of(why));
    return NULL;
}

const bz_backend *bz_backend_find(const bz_backend *const *backends, const char *name, bz_error *err)
{
    const bz_backend *b = find(backends ? backends : bz_builtin_backends, name);
    if (b)
        return b;
    if (backends || !is_word(name)) {
        bz_fail(err, BZ_USAGE, "there is no backend '%s'", name);
        return NULL;
    }
    return load(name, err);
}
