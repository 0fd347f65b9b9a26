/* command: a command line as a table of options: parsed, explained, completed, run. A command is a bz_command; what it prints goes to
 * stdout in one piece at the end, so that a failure leaves no half output; warnings go to stderr. It returns an exit status (bz_code). */
#ifndef BZ_COMMAND_ROOM_H
#define BZ_COMMAND_ROOM_H

#include "base/base.h"

#include <stdbool.h>

typedef enum {
    BZ_OPTION_FLAG,   /* bool */
    BZ_OPTION_TEXT,   /* const char * */
    BZ_OPTION_CHOICE, /* const char *; `value` lists what it takes: "hot|cold" */
    BZ_OPTION_MAYBE,  /* const char *; --name, or --name=VALUE: "" without one */
    BZ_OPTION_INT,    /* int64_t; the value must be at least 0 */
    BZ_OPTION_COUNT,  /* int64_t; the value must be at least 1 */
    BZ_OPTION_LIST,   /* bz_list; may be given several times */
} bz_option_kind;

typedef struct bz_option {
    const char *name; /* "batch" for --batch; "o|output" for -o and --output */
    bz_option_kind kind;
    size_t at;                /* where in the command's job its value belongs: offsetof(job, batch) */
    const char *value, *help; /* value: what to call it in --help; NULL for flags */
    const char *with;         /* "train": it is refused without --train; NULL: it stands alone */
    /* Of one that is text: what is done with it when all options are read, before the command works. It may refuse it. */
    int (*use)(const char *name, const char *value, bz_error *err);
} bz_option; /* a table of them ends with a row of zeros */

typedef struct bz_list {
    const char **item;
    int n;
} bz_list;

/* A command: its options, and what it does with them. The job is a struct that begins with a bz_job: first as `usual` has it, else
 * zeros, then the options' values. `work` writes into `out`, which is printed when it returns; `judge`, where there is one, says after
 * that what to exit with. What does not fit that form has `run`. */
typedef struct bz_command {
    const char *name, *arguments, *summary;
    const bz_option *options;
    size_t size; /* of a job */
    int (*work)(void *job, bz_buf *out, bz_error *err);
    const void *usual;
    int (*judge)(const void *job);
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
    /* One that has commands: nothing of the above but name, arguments and summary. */
    const struct bz_command *const *commands;
    int n_commands;
    const char *about; /* what all of them are for */
} bz_command;

typedef struct bz_job {
    const bz_command *command;
    int argc;
    char **argv;
    bz_list arguments;       /* what is no option */
    bz_list given;           /* the options of the command that are, by their long names */
    bz_list warned;          /* sentences of warnings, each of which is said once */
    bool json, csv;          /* --json, --csv of commands that have them */
    bool for_programs;       /* what is printed is, without --json and --csv, too: no line is broken on a terminal */
    const char *db, *device; /* --db, --device */
    bz_arena arena;          /* of all that the command makes: what it opens is kept there, and ends with the call */
    int status;              /* what to exit with where all goes well: 0, unless `work` says otherwise */
} bz_job;

/* Rows of a table of options: a name, the job's struct, its member that takes the value, and the help; behind that may stand
 * what else a bz_option has, `.with = "train"` or `.use = bz_option_seconds`. */
#define BZ_FLAG(name, job, field, ...)          BZ_OPTION(name, FLAG, bool, job, field, NULL, __VA_ARGS__)
#define BZ_VALUE(name, job, field, value, ...)  BZ_OPTION(name, TEXT, const char *, job, field, value, __VA_ARGS__)
#define BZ_CHOICE(name, job, field, value, ...) BZ_OPTION(name, CHOICE, const char *, job, field, value, __VA_ARGS__)
#define BZ_MAYBE(name, job, field, value, ...)  BZ_OPTION(name, MAYBE, const char *, job, field, value, __VA_ARGS__)
#define BZ_WHOLE(name, job, field, value, ...)  BZ_OPTION(name, INT, int64_t, job, field, value, __VA_ARGS__)
#define BZ_COUNT(name, job, field, value, ...)  BZ_OPTION(name, COUNT, int64_t, job, field, value, __VA_ARGS__)
#define BZ_LIST(name, job, field, value, ...)   BZ_OPTION(name, LIST, bz_list, job, field, value, __VA_ARGS__)
#define BZ_OPTION(names, is, type, job, field, takes, ...)                                                             \
    {                                                                                                                  \
        .name = (names), .kind = BZ_OPTION_##is,                                                                       \
        .at = _Generic(((job *)0)->field, type                                                                         \
                       : offsetof(job, field)),                                                                        \
        .value = (takes), .help = __VA_ARGS__                                                                          \
    }
#define BZ_JSON_OPTION BZ_FLAG("json", bz_job, json, "print JSON, for programs")
#define BZ_CSV_OPTION  BZ_FLAG("csv", bz_job, csv, "print comma-separated values")

/* A command with its name, arguments and summary, its table of options, the struct of its job, and what works. */
#define BZ_COMMAND(named, takes, tells, table, job, ...)                                                               \
    {                                                                                                                  \
        .name = (named), .arguments = (takes), .summary = (tells), .options = (table), .size = sizeof(job),            \
        .work = __VA_ARGS__                                                                                            \
    }

/* Parses, works, prints, and returns the exit status. */
int bz_run_command(const bz_command *command, int argc, char **argv);
/* Options that every command has: a table that ends with a row of zeros. */
extern const bz_option bz_common_options[];
const char *bz_option_long(const bz_option *o); /* "output" of "o|output" */

/* What an option's `use` may be: its text is a number of seconds, above 0 or from 0 on. */
int bz_option_seconds(const char *name, const char *value, bz_error *err);
int bz_option_seconds_or_none(const char *name, const char *value, bz_error *err);
double bz_option_number(const char *text); /* NAN: it is none */

/* ---- help.c --------------------------------------------------------------------------------- */

/* What a command's --help prints. For shells: a line per option, "--output<TAB>FILE<TAB>first line of the help", which the
 * scripts of 'benanza completion' ask for by this option. */
#define BZ_HELP_FOR_SHELLS "--help=shell"
void bz_help_options(const bz_command *command, bool shells, bz_buf *out);
/* The same for what has commands: `name` is NULL for benanza itself. */
void bz_help_commands(const char *name, const char *about, const bz_command *const *commands, int n, bool shells,
                      bz_buf *out);

void bz_list_add(bz_arena *arena, bz_list *list, const char *item); /* kept, not copied */

/* Fails where the call has fewer or more arguments. */
int bz_job_takes(const bz_job *job, int least, int most, bz_error *err);

/* Options that a way to call the command does not look at are refused: who gave one would believe that it was heeded. "--batch has no effect on
 * WAY": "a comparison of recordings". `options` are names with blanks between: all that it looks at, or some that it
 * does not. */
int bz_job_reads(const bz_job *job, const char *way, const char *options, bz_error *err);
int bz_job_reads_no(const bz_job *job, const char *way, const char *options, bz_error *err);

/* The call's arguments again for a shell, each behind a space, without the options named (a list that ends with NULL). */
const char *bz_job_again(bz_job *job, const char *const *without);

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
int bz_output_end(const char *path, bz_buf *text, bz_error *err); /* the same, and frees the text */
/* Writes text for people to stdout; on a terminal, lines that are wider than it are broken between words. */
int bz_output_sentences(const bz_buf *text, bz_error *err);

/* Runs the command that argv[1] names; "db ls" is the command named so where `name` is "db". `name` is NULL for the commands
 * of benanza itself; `about` is what all of them are for. */
int bz_subcommands_run(const char *name, const char *about, const bz_command *const *commands, int n, int argc,
                       char **argv);

#endif
