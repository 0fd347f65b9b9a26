/* Commands that have commands: benanza itself, benanza db ls, benanza fleet plan. */
#include "command/command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 32 };

static bool is_help(const char *arg)
{
    return !strcmp(arg, "--help") || !strcmp(arg, "-h") || !strcmp(arg, BZ_HELP_FOR_SHELLS);
}

/* Without any argument, on stderr: nothing was asked for that could be a result. */
static int print_help(const char *name, const char *about, const bz_command *const *commands, int n, const char *asked)
{
    BZ_SCOPED(bz_buf) out = {0};
    bz_error err;
    int status = asked ? BZ_OK : BZ_USAGE;
    bool shells = asked && !strcmp(asked, BZ_HELP_FOR_SHELLS);
    bz_help_commands(name, about, commands, n, shells, &out);
    bz_screen_set((bz_screen){.columns = shells ? 0 : bz_screen_columns(STDOUT_FILENO)});
    if (!asked)
        fputs(bz_buf_text(&out), stderr);
    else if (bz_output_sentences(&out, &err))
        status = bz_report_as(name, &err);
    return status;
}

static int run(const bz_command *c, int argc, char **argv)
{
    if (c->commands)
        return bz_subcommands_run(c->name, c->about, c->commands, c->n_commands, argc, argv);
    return c->run ? c->run(argc, argv) : bz_run_command(c, argc, argv);
}

int bz_subcommands_run(const char *name, const char *about, const bz_command *const *commands, int n, int argc,
                       char **argv)
{
    bz_error err;
    const char *names[MOST], *space = name ? " " : "", *of = name ? name : "";
    size_t skip = name ? strlen(name) + 1 : 0;
    n = n < MOST ? n : MOST;
    for (int i = 0; i < n; i++)
        names[i] = commands[i]->name + skip;
    if (argc < 2 || is_help(argv[1]) || (name && !strcmp(argv[1], "help")))
        return print_help(name, about, commands, n, argc < 2 ? NULL : argv[1]);
    for (int i = 0; i < n; i++)
        if (!strcmp(argv[1], names[i]))
            return run(commands[i], argc - 1, argv + 1);
    const char *meant = bz_choice_meant(argv[1], names, n);
    if (meant)
        bz_fail(&err, BZ_USAGE, "there is no command '%s%s%s': did you mean %s%s%s?", of, space, argv[1], of, space,
                meant);
    else
        bz_fail(&err, BZ_USAGE, "there is no %s '%s%s%s': see benanza %s%s--help",
                *argv[1] == '-' ? "option" : "command", of, space, argv[1], of, space);
    return bz_report_as(NULL, &err);
}
