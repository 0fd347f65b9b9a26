/* Which backends there are, and what each is asked for: the one list of them. Their code is in folders and modules that
 * fill a struct bz_backend (runtime/backend.h); this knows no library, so that plans can be made without any. */
#ifndef BZ_BACKENDS_H
#define BZ_BACKENDS_H

#include "base/choice.h"

#include <stdbool.h>

enum { BZ_N_LAYOUTS = 4 };
extern const char *const bz_layouts[BZ_N_LAYOUTS]; /* runtime/runtime.h says what they are */
const char *bz_layout_named(const char *name);     /* of them; NULL: there is none of that name */

/* Kinds of problems, the layouts that make sense for them, and math modes of f32 besides `default`: words with blanks
 * between them. What a library cannot do is recorded as unsupported when it runs. */
typedef struct bz_backend_family {
    const char *kinds, *layouts, *maths;
} bz_backend_family;

enum { BZ_BACKEND_FAMILIES = 12 };

typedef struct bz_backend_row {
    const char *name;
    const char *library; /* what recordings call its library; NULL: they do not know it */
    bool device; /* runs on a device of its own, as a module beside the program; planned for only where it is named */
    bool keeps;  /* has post-operations that keep what a function takes */
    bool bytes;  /* copies bytes, which have no layout: whatever layout is wanted, it is asked */
    bz_backend_family family[BZ_BACKEND_FAMILIES]; /* ends with one without kinds */
} bz_backend_row;

extern const bz_backend_row bz_backends[]; /* ends with one without a name */

/* NULL: there is none of that name. */
const bz_backend_row *bz_backend_named(const char *name);

/* Whether there is such a backend, and it runs on a device (or, with false, on the processor). */
bool bz_backend_is_on(const char *name, bool device);

/* The backend that is asked which device this machine has: the first that runs on one. */
const char *bz_backend_of_device(void);

#endif
