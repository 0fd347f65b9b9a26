#include "runtime/option.h"

#include "base/choice.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int bz_option_refuse(const struct option *options, const char *typed, bz_error *err)
{
    enum { MOST = 64 };
    const char *names[MOST];
    char name[64];
    int n = 0;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(typed, "="), typed);
    const char *bare = name + strspn(name, "-");
    for (; options[n].name && n < MOST; n++) {
        names[n] = options[n].name;
        if (!strcmp(bare, names[n]))
            return bz_fail(err, BZ_USAGE, "%s %s: see --help", name,
                           options[n].has_arg == no_argument ? "takes no value" : "wants a value");
    }
    const char *meant = bz_choice_meant(bare, names, n);
    return meant ? bz_fail(err, BZ_USAGE, "there is no option %s: did you mean --%s?", name, meant)
                 : bz_fail(err, BZ_USAGE, "there is no option %s: see --help", name);
}

void bz_end_with_parent(void)
{
    const char *said = getenv("BENANZA_PARENT");
    pid_t parent = said ? (pid_t)atol(said) : 0;
    if (parent <= 0)
        return;
    if (getppid() == parent)
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (kill(parent, 0) && errno == ESRCH) /* gone already: nobody takes what we would print */
        _exit(BZ_FAILED);
}
