/* In the place of runtime/processor.c where only a GPU is looked at: no backend of the processor is built in, so
 * none of their libraries has to be there. */
#include "runtime/backend.h"

#include <unistd.h>

const bz_backend *const bz_builtin_backends[] = {NULL};

void bz_processor_look(bz_machine *s)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    s->cores = s->threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    s->memory = pages > 0 && size > 0 ? (int64_t)pages * size : 0;
}

void bz_processor_versions(bz_buf *out)
{
    (void)out;
}
