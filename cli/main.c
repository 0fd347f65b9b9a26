/* benanza COMMAND …: the table of commands. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const bz_command *const COMMANDS[] = {
    &bz_command_analyze, &bz_command_bench, &bz_command_bound,  &bz_command_compare, &bz_command_db,
    &bz_command_fleet,   &bz_command_gen,   &bz_command_layers, &bz_command_profile, &bz_command_replay,
    &bz_command_run,     &bz_command_strip, &bz_command_system,
};
enum { N_COMMANDS = sizeof COMMANDS / sizeof *COMMANDS };

static void print_help(FILE *f)
{
    fputs("usage: benanza COMMAND [OPTIONS] ARGUMENTS\n"
          "How fast could this neural network run on this machine, and what keeps it from doing so?\n\n",
          f);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(f, "  %-8s  %s\n", COMMANDS[i]->name, COMMANDS[i]->summary);
    fputs("\nbenanza COMMAND --help tells more.\n", f);
}

int main(int argc, char **argv)
{
    bz_keep_memory();
    if (argc < 2) {
        print_help(stderr);
        return BZ_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
        print_help(stdout);
        return BZ_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("benanza " BENANZA_VERSION);
        return BZ_OK;
    }
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) {
        names[i] = COMMANDS[i]->name;
        if (!strcmp(argv[1], names[i]))
            return COMMANDS[i]->run(argc - 1, argv + 1);
    }
    bz_error err;
    const char *meant = bz_did_you_mean(argv[1], names, N_COMMANDS);
    bz_fail(&err, BZ_USAGE, "there is no command '%s': %s%s%s", argv[1], meant ? "did you mean " : "see benanza --help",
            meant ? meant : "", meant ? "?" : "");
    fprintf(stderr, "benanza: %s\n", err.text);
    return (int)err.code;
}
