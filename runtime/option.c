#include "runtime/option.h"

#include "base/choice.h"
#include "runtime/gpus.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST = 64, LONG = 256 }; /* LONG: behind all letters */

/* `typed` is the argument that getopt_long refused: no option, or one without its value. */
static int refuse(const struct option *options, const char *typed, bz_error *err)
{
    const char *names[MOST];
    char name[64];
    int n = 0;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(typed, "="), typed);
    const char *bare = name + strspn(name, "-");
    for (; options[n].name; n++) {
        names[n] = options[n].name;
        if (!strcmp(bare, names[n]))
            return bz_fail(err, BZ_USAGE, "%s %s: see --help", name,
                           options[n].has_arg == no_argument ? "takes no value" : "wants a value");
    }
    const char *meant = bz_choice_meant(bare, names, n);
    return meant ? bz_fail(err, BZ_USAGE, "there is no option %s: did you mean --%s?", name, meant)
                 : bz_fail(err, BZ_USAGE, "there is no option %s: see --help", name);
}

int bz_option_number(const char *name, bz_option_takes takes, const char *text, double *out, bz_error *err)
{
    bool amount = takes == BZ_TAKES_AMOUNT;
    char *end;
    *out = strtod(text, &end);
    if (*end || end == text || !(amount ? *out >= 0 : *out > 0) || *out > 1e12)
        return bz_fail(err, BZ_USAGE, "--%s takes a number%s, not '%s'", name, amount ? "" : " above 0", text);
    return 0;
}

static int set(const bz_run_option *o, void *program, const char *value, bz_error *err)
{
    void *at = (char *)program + o->at;
    if (o->takes == BZ_TAKES_OWN)
        return o->set(program, value, err);
    if (o->takes == BZ_TAKES_NOTHING)
        *(bool *)at = true;
    else if (o->takes == BZ_TAKES_TEXT)
        *(const char **)at = value;
    else if (bz_option_number(o->name, o->takes, value, at, err))
        return -1;
    else
        *(double *)at *= o->unit > 0 ? o->unit : 1;
    return 0;
}

int bz_options_read(const bz_run_option *table, int argc, char **argv, void *program, bz_error *err)
{
    struct option list[MOST] = {0};
    char letters[2 * MOST] = "";
    int n = 0, c, used = 0;
    for (; table[n].name && n < MOST - 1; n++) {
        bool flag = table[n].takes == BZ_TAKES_NOTHING;
        list[n] = (struct option){table[n].name, flag ? no_argument : required_argument, NULL, LONG + n};
        if (table[n].letter)
            used += snprintf(letters + used, sizeof letters - (size_t)used, "%c%s", table[n].letter, flag ? "" : ":");
    }
    opterr = 0;
    while ((c = getopt_long(argc, argv, letters, list, NULL)) != -1) {
        int row = c - LONG;
        if (c == '?')
            return refuse(list, argv[optind - 1], err);
        if (row < 0)
            for (row = 0; table[row].letter != c;)
                row++;
        if (set(&table[row], program, optarg, err))
            return -1;
        if (!strcmp(table[row].name, "help"))
            break;
    }
    return optind;
}

int bz_option_device(void *program, const char *text, bz_error *err)
{
    (void)program;
    return bz_gpu_choose(text, err);
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
