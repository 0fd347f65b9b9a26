/* Who asked for the library calls: of each back-trace the one frame that a person can do something about. */

#include "profile/trace.h"

#include <string.h>

/* How much a frame tells its reader: the program's own Python line before one of a package, that before native code
 * of the program, that before native code of a library. */
enum { LIBRARY, PROGRAM, PACKAGE, OWN };

static int worth(const char *frame)
{
    static const char *const PACKAGES[] = {"/site-packages/", "/dist-packages/", "/lib/python", "<frozen "};
    if (strstr(frame, ".py:")) {
        for (size_t i = 0; i < sizeof PACKAGES / sizeof *PACKAGES; i++)
            if (strstr(frame, PACKAGES[i]))
                return PACKAGE;
        return OWN;
    }
    return strstr(frame, ".so") ? LIBRARY : PROGRAM;
}

uint32_t bz_stack_caller(const bz_trace *t, uint32_t stack)
{
    const uint32_t *frame;
    int n = bz_stack(t, stack, &frame), best = -1;
    uint32_t caller = 0;
    for (int i = 0; i < n; i++) {
        int w = worth(bz_string(t, frame[i]));
        if (w > best) {
            best = w;
            caller = frame[i];
        }
    }
    return caller;
}
