/* What happens when a mapped file becomes shorter. */
#include "base/mapped.h"

#include "base/error.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The name in /proc/self/maps of the file that is mapped at an address; "a file" where it is not found. Handlers of signals may call nothing
 * but the system. */
static const char *mapped_at(uintptr_t address, char name[4200])
{
    static char line[4400];
    size_t n = 0;
    char c;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (maps >= 0 && read(maps, &c, 1) == 1) {
        if (c != '\n') {
            line[n] = c;
            n += n + 1 < sizeof line;
            continue;
        }
        line[n] = 0;
        n = 0;
        char *end;
        uintptr_t first = strtoull(line, &end, 16), last = *end ? strtoull(end + 1, NULL, 16) : 0;
        const char *path = strchr(line, '/');
        if (address < first || address >= last || !path)
            continue;
        for (size_t i = 0; i < 4199 && (name[i] = path[i]);
             i++) /* a terminal obeys what is below a space, and what 0xc2 begins */
            if ((unsigned char)name[i] < ' ' || name[i] == 0x7f || (unsigned char)name[i] == 0xc2)
                name[i] = '?';
        return name;
    }
    return "a file";
}

static void page_lost(int number, siginfo_t *info, void *context)
{
    static const char WHY[] = ": became shorter while it was read, or its disk cannot be read: try again\n";
    static char name[4200];
    (void)context;
    if (info->si_code != BUS_ADRERR && info->si_code != BUS_OBJERR) { /* somebody sent it */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    const char *file = mapped_at((uintptr_t)info->si_addr, name);
    if (write(STDERR_FILENO, "benanza: ", 9) > 0 && write(STDERR_FILENO, file, strlen(file)) > 0)
        (void)!write(STDERR_FILENO, WHY, sizeof WHY - 1);
    _exit(BZ_BAD_INPUT);
}

void bz_mapped_watch(void)
{
    sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = page_lost, .sa_flags = SA_SIGINFO}, NULL);
}
