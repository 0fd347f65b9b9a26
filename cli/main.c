/* benanza COMMAND …: the table of commands. */
#include "base/mapped.h"
#include "cli/cli.h"

#include <cjson/cJSON.h>
#include <malloc.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const bz_command *const COMMANDS[] = {
    &bz_command_analyze,    &bz_command_bench,  &bz_command_bound,   &bz_command_bricks,  &bz_command_compare,
    &bz_command_completion, &bz_command_db,     &bz_command_doctor,  &bz_command_fleet,   &bz_command_gen,
    &bz_command_help,       &bz_command_layers, &bz_command_predict, &bz_command_profile, &bz_command_replay,
    &bz_command_run,        &bz_command_strip,  &bz_command_suite,   &bz_command_system,  &bz_command_transfer,
    &bz_command_whatif,
};
enum { N_COMMANDS = sizeof COMMANDS / sizeof *COMMANDS };

static int print_version(void)
{
    bz_buf out = {0};
    bz_error err;
    bz_buf_puts(&out, "benanza " BENANZA_VERSION "\n");
    return bz_output_end(NULL, &out, &err) ? bz_report_as(NULL, &err) : BZ_OK;
}

int bz_main(int argc, char **argv)
{
    if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")))
        return print_version();
    return bz_subcommands_run(
        NULL, "How fast could this neural network run on this machine, and what keeps it from doing so?", COMMANDS,
        N_COMMANDS, argc, argv);
}

static int memory_size(void *p)
{
    return (int)malloc_usable_size(p);
}

static void *sqlite_take(int size)
{
    return bz_memory_take((size_t)size);
}

static void *sqlite_change(void *p, int size)
{
    return bz_memory_change(p, (size_t)size);
}

static int same_size(int size)
{
    return size;
}

static int nothing(void *unused)
{
    (void)unused;
    return SQLITE_OK;
}

static void no_more(void *unused)
{
    (void)unused;
}

/* Where there is no memory, cJSON finds no member and SQLite no column, and the result would be another one. */
static void share_memory(void)
{
    static const sqlite3_mem_methods SQLITE = {sqlite_take, free,    sqlite_change, memory_size,
                                               same_size,   nothing, no_more,       NULL};
    cJSON_InitHooks(&(cJSON_Hooks){bz_memory_take, free});
    sqlite3_config(SQLITE_CONFIG_MALLOC, &SQLITE);
}

int main(int argc, char **argv)
{
    bz_mapped_watch();
    bz_keep_memory();
    share_memory();
    int status = bz_main(argc, argv), by = bz_ended_by();
    if (by) {
        fflush(NULL);
        signal(by, SIG_DFL);
        raise(by);
    }
    return status;
}
