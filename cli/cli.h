/* cli: one file per command, all of the same form; main.c has the table. A command parses its
 * options, calls the rooms, prints, and returns an exit status (bz_code). Results go to stdout in
 * one piece at the end, so that a failure leaves no half output; warnings go to stderr. */
#ifndef BZ_CLI_H
#define BZ_CLI_H

#include "base/base.h"

#include <stdbool.h>

typedef struct bz_command {
    const char *name, *arguments, *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
} bz_command;

typedef enum {
    BZ_OPTION_FLAG,   /* bool * */
    BZ_OPTION_TEXT,   /* const char ** */
    BZ_OPTION_CHOICE, /* const char **; `value` lists what it takes: "hot|cold" */
    BZ_OPTION_MAYBE,  /* const char **; --name, or --name=VALUE: "" without one */
    BZ_OPTION_INT,    /* int64_t *; the value must be at least 0 */
    BZ_OPTION_COUNT,  /* int64_t *; the value must be at least 1 */
    BZ_OPTION_LIST,   /* bz_list *; may be given several times */
} bz_option_kind;

typedef struct bz_option {
    const char *name; /* "batch" for --batch; "o|output" for -o and --output */
    bz_option_kind kind;
    void *target;
    const char *value, *help; /* value: what to call it in --help; NULL for flags */
} bz_option;                  /* a table of them ends with a row of zeros */

typedef struct bz_list {
    const char **item;
    int n;
} bz_list;

/* Parses argv against the table. What is no option ends up in `arguments` (free item with free()).
 * Returns 0 to go on; 1 when --help was asked for and printed; -1 on a usage error. */
int bz_options_parse(const bz_command *command, const bz_option *options, int argc, char **argv, bz_list *arguments,
                     bz_error *err);
/* What most commands are: parses argv, has `work` write into `out`, prints that, or says what is wrong. Returns the exit status:
 * what `work` left in *status, 0 unless it says otherwise; 0 too where only help was asked for, and nothing is worked then. */
typedef int bz_command_work(void *job, const bz_list *arguments, bz_buf *out, int *status, bz_error *err);
int bz_run_command(const bz_command *command, const bz_option *options, int argc, char **argv, bz_command_work *work,
                   void *job);
/* Options that every command has: a table that ends with a row of zeros. */
extern const bz_option bz_common_options[];
const char *bz_option_long(const bz_option *o); /* "output" of "o|output" */

/* ---- help.c --------------------------------------------------------------------------------- */

/* What a command's --help prints. For shells: a line per option, "--output<TAB>FILE<TAB>first line of the help", which the
 * scripts of 'benanza completion' ask for by this option. */
#define BZ_HELP_FOR_SHELLS "--help=shell"
void bz_help_options(const bz_command *command, const bz_option *options, bool shells, bz_buf *out);
/* The same for what has commands: `name` is NULL for benanza itself. */
void bz_help_commands(const char *name, const char *about, const bz_command *const *commands, int n, bool shells,
                      bz_buf *out);

void bz_list_add(bz_list *list, const char *item); /* kept, not copied */
void bz_list_free(bz_list *list);

/* The same arguments again for a shell, each behind a space, without the options named (a list that ends with NULL). */
void bz_options_again(const bz_option *options, int argc, char **argv, const char *const *without, bz_buf *out);

/* Prints "benanza COMMAND: text" to stderr and returns the exit status that belongs to it. */
int bz_report(const bz_command *command, const bz_error *err);
int bz_report_as(const char *name, const bz_error *err); /* the same by the command's name; NULL: benanza itself */
/* A command that was interrupted cleans up, says so, and ends with its status; the process then ends by the signal, so that
 * a script around it stops, too. */
void bz_end_by(int signal_number);
int bz_ended_by(void); /* 0: none */
void bz_warn(const bz_command *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes a result to stdout, or to `path` when it is not NULL; a full disk or closed pipe is an error. */
int bz_output(const char *path, const bz_buf *text, bz_error *err);

/* Runs the command that argv[1] names; "db ls" is the command named so where `name` is "db". `name` is NULL for the commands
 * of benanza itself; `about` is what all of them are for. */
int bz_subcommands_run(const char *name, const char *about, const bz_command *const *commands, int n, int argc,
                       char **argv);
int bz_main(int argc, char **argv); /* the whole program: argv[1] is a command */

extern const bz_command bz_command_analyze, bz_command_bench, bz_command_bound, bz_command_bricks, bz_command_compare,
    bz_command_completion, bz_command_db, bz_command_doctor, bz_command_fleet, bz_command_gen, bz_command_help,
    bz_command_layers, bz_command_predict, bz_command_profile, bz_command_replay, bz_command_run, bz_command_strip,
    bz_command_system, bz_command_transfer, bz_command_whatif;

#endif
