#include "runtime/option.h"

#include "base/choice.h"

#include <stdio.h>
#include <string.h>

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
