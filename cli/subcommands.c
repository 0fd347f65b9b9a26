/* Commands that have commands: benanza db ls, benanza fleet plan. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 16 };

static void print_help(const char *name, const char *about, const bz_command *const *commands, int n, FILE *f)
{
    fprintf(f, "usage: benanza %s COMMAND [OPTIONS] ARGUMENTS\n%s\n\n", name, about);
    for (int i = 0; i < n; i++)
        fprintf(f, "  %-8s  %.*s\n", commands[i]->name + strlen(name) + 1, (int)strcspn(commands[i]->summary, "\n"),
                commands[i]->summary);
    fprintf(f, "\nbenanza %s COMMAND --help tells more.\n", name);
}

int bz_subcommands_run(const char *name, const char *about, const bz_command *const *commands, int n, int argc,
                       char **argv)
{
    if (argc < 2) {
        print_help(name, about, commands, n, stderr);
        return BZ_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
        print_help(name, about, commands, n, stdout);
        return BZ_OK;
    }
    const char *names[MOST];
    n = n < MOST ? n : MOST;
    for (int i = 0; i < n; i++) {
        names[i] = commands[i]->name + strlen(name) + 1;
        if (!strcmp(argv[1], names[i]))
            return commands[i]->run(argc - 1, argv + 1);
    }
    bz_error err;
    const char *meant = bz_did_you_mean(argv[1], names, n);
    if (meant)
        bz_fail(&err, BZ_USAGE, "there is no command '%s %s': did you mean %s %s", name, argv[1], name, meant);
    else
        bz_fail(&err, BZ_USAGE, "there is no command '%s %s': see benanza %s --help", name, argv[1], name);
    fprintf(stderr, "benanza: %s\n", err.text);
    return (int)err.code;
}
