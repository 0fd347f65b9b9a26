/* Command lines: a table of options in, their targets filled out. */
#include "command/command.h"

#include "base/choice.h"
#include "base/progress.h"
#include "base/whole.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *bz_option_long(const bz_option *o)
{
    return o->name[1] == '|' ? o->name + 2 : o->name;
}

static int unknown_option(const bz_option *options, const char *typed, bz_error *err)
{
    const char *names[64];
    int n = 0;
    for (const bz_option *o = options; o->name && n < 60; o++)
        names[n++] = bz_option_long(o);
    for (const bz_option *o = bz_common_options; o->name; o++)
        names[n++] = bz_option_long(o);
    const char *meant = bz_choice_meant(typed, names, n);
    if (meant)
        return bz_fail(err, BZ_USAGE, "there is no option --%s: did you mean --%s?", typed, meant);
    return bz_fail(err, BZ_USAGE, "there is no option --%s: see --help", typed);
}

void bz_list_add(bz_arena *arena, bz_list *list, const char *item)
{
    BZ_ARENA_ADD(arena, list->item, list->n) = item;
}

/* Whether the text is one of "sgd|momentum|adam". */
static bool is_choice(const bz_option *o, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = o->value; p && *p; p += strcspn(p, "|"), p += *p == '|')
        if (strcspn(p, "|") == n && !strncmp(p, text, n))
            return n > 0;
    return false;
}

/* The value's name in --help lists what the option takes: "hot|cold". */
static int check_choice(const bz_option *o, const char *value, bz_error *err)
{
    const char *names[8];
    char list[64], option[64], *rest = list;
    int n = 0;
    snprintf(list, sizeof list, "%s", o->value);
    for (char *name; n < 8 && (name = strsep(&rest, "|")); n++) {
        names[n] = name;
        if (!strcmp(name, value))
            return 0;
    }
    snprintf(option, sizeof option, "--%s", bz_option_long(o));
    return bz_choice_fail(err, option, value, names, n);
}

/* `into`: the struct that the option's value belongs into. */
static int store(const bz_option *o, const char *value, void *into, bz_arena *arena, bz_error *err)
{
    void *target = (char *)into + o->at;
    char *end;
    switch (o->kind) {
    case BZ_OPTION_FLAG:
        if (value)
            return bz_fail(err, BZ_USAGE, "--%s takes no value", bz_option_long(o));
        *(bool *)target = true;
        return 0;
    case BZ_OPTION_TEXT:
        *(const char **)target = value;
        return 0;
    case BZ_OPTION_CHOICE:
        *(const char **)target = value;
        return check_choice(o, value, err);
    case BZ_OPTION_MAYBE:
        *(const char **)target = value ? value : "";
        return value && strchr(o->value, '|') ? check_choice(o, value, err) : 0;
    case BZ_OPTION_LIST:
        bz_list_add(arena, target, value);
        return 0;
    case BZ_OPTION_INT:
    case BZ_OPTION_COUNT:
        errno = 0;
        long long v = strtoll(value, &end, 10);
        if (errno || end == value || *end || v < 0 || (!v && o->kind == BZ_OPTION_COUNT))
            return bz_fail(err, BZ_USAGE, "--%s takes a whole number%s, not '%s'", bz_option_long(o),
                           o->kind == BZ_OPTION_COUNT ? " from 1 on" : "", value);
        *(int64_t *)target = v;
        return 0;
    }
    return 0;
}

static const bz_option *find_long(const bz_option *options, const char *name, size_t n)
{
    for (const bz_option *o = options; o->name; o++)
        if (strlen(bz_option_long(o)) == n && !memcmp(bz_option_long(o), name, n))
            return o;
    return NULL;
}

static const bz_option *find_short(const bz_option *options, char c)
{
    for (const bz_option *o = options; o->name; o++)
        if (o->name[1] == '|' && o->name[0] == c)
            return o;
    return NULL;
}

/* Does its value stand in an argument of its own, where it is not in that of the option? */
static bool wants_value(const bz_option *o)
{
    return o->kind != BZ_OPTION_FLAG && o->kind != BZ_OPTION_MAYBE;
}

/* One option at argv[*i], its value in the same or the next argument. */
static int parse_one(const bz_option *options, bz_job *job, void *into, int *i, bz_error *err)
{
    char **argv = job->argv;
    const char *arg = argv[*i], *value = NULL;
    const bz_option *o;
    if (arg[1] == '-') {
        size_t n = strcspn(arg + 2, "=");
        o = find_long(options, arg + 2, n);
        if (!o) {
            char typed[64];
            snprintf(typed, sizeof typed, "%.*s", (int)(n < 60 ? n : 60), arg + 2);
            return unknown_option(options, typed, err);
        }
        value = arg[2 + n] == '=' ? arg + 3 + n : NULL;
    } else {
        o = find_short(options, arg[1]);
        if (!o)
            return bz_fail(err, BZ_USAGE, "there is no option -%c: see --help", arg[1]);
        value = arg[2] ? arg + 2 : NULL;
    }
    if (wants_value(o) && !value && *i + 1 < job->argc) {
        value = argv[++*i];
        if (!strncmp(value, "--", 2) && find_long(options, value + 2, strcspn(value + 2, "=")))
            return bz_fail(err, BZ_USAGE,
                           "--%s wants a value, %s, and %s behind it is an option: --%s=%s if it is meant",
                           bz_option_long(o), o->value, value, bz_option_long(o), value);
    }
    if (wants_value(o) && !(value && *value))
        return bz_fail(err, BZ_USAGE, "--%s wants a value: %s", bz_option_long(o), o->value);
    const char *next = *i + 1 < job->argc ? job->argv[*i + 1] : NULL;
    if (o->kind == BZ_OPTION_MAYBE && !value && next && access(next, F_OK) && is_choice(o, next))
        return bz_fail(err, BZ_USAGE, "--%s takes %s behind '=': --%s=%s", bz_option_long(o), next, bz_option_long(o),
                       next);
    if (into == job)
        bz_list_add(&job->arena, &job->given, bz_option_long(o));
    return store(o, value, into, &job->arena, err);
}

/* Options that every command has: what they ask for is done when all are read. */
static struct common {
    bool help, wide;
    const char *color;
} common;
const bz_option bz_common_options[] = {
    BZ_CHOICE("color", struct common, color, "auto|always|never",
              "colours: on a terminal that has them (auto), always, or never; $NO_COLOR is never"),
    BZ_FLAG("wide", struct common, wide, "print tables whole, however narrow the terminal is"),
    BZ_FLAG("h|help", struct common, help, "print this"),
    {0},
};

/* Whether what goes to `fd` has colours. A message may come before all options are read: then those count that were. */
static bool has_colours(int fd)
{
    const char *none = getenv("NO_COLOR");
    if (common.color && strcmp(common.color, "auto") != 0)
        return !strcmp(common.color, "always");
    return !(none && *none) && isatty(fd) && bz_screen_has_colours();
}

static void set_screen(void)
{
    bz_screen_set((bz_screen){.columns = common.wide ? 0 : bz_screen_columns(STDOUT_FILENO),
                              .colour = has_colours(STDOUT_FILENO)});
}

/* The option at argv[*i] is the command's, or one that every command has. */
static int parse_any(bz_job *job, int *i, bz_error *err)
{
    const char *arg = job->argv[*i];
    bool is_common = arg[1] == '-' ? find_long(bz_common_options, arg + 2, strcspn(arg + 2, "=")) != NULL
                                   : find_short(bz_common_options, arg[1]) != NULL;
    return is_common ? parse_one(bz_common_options, job, &common, i, err)
                     : parse_one(job->command->options, job, job, i, err);
}

static bool is_given(const bz_job *job, const char *name)
{
    for (int i = 0; i < job->given.n; i++)
        if (!strcmp(job->given.item[i], name))
            return true;
    return false;
}

double bz_option_number(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    return end == text || *end ? NAN : v;
}

static int check_seconds(const char *name, const char *value, bool none, bz_error *err)
{
    double v = bz_option_number(value);
    return !(none ? v >= 0 : v > 0) || v > 1e6 ? bz_fail(err, BZ_USAGE, "--%s takes seconds, a number %s, not '%s'",
                                                         name, none ? "from 0 on" : "above 0", value)
                                               : 0;
}

int bz_option_seconds(const char *name, const char *value, bz_error *err)
{
    return check_seconds(name, value, false, err);
}

int bz_option_seconds_or_none(const char *name, const char *value, bz_error *err)
{
    return check_seconds(name, value, true, err);
}

/* What holds for every command once all its options are read. */
static int check_given(const bz_job *job, bz_error *err)
{
    if (job->json && job->csv)
        return bz_fail(err, BZ_USAGE, "--json and --csv exclude one another");
    for (const bz_option *o = job->command->options; o->name; o++) {
        const char *name = bz_option_long(o);
        if ((o->with || o->use) && !is_given(job, name))
            continue;
        if (o->with && !is_given(job, o->with))
            return bz_fail(err, BZ_USAGE, "--%s has no effect without --%s", name, o->with);
        if (o->use && o->use(name, *(const char *const *)((const char *)job + o->at), err))
            return -1;
    }
    return 0;
}

/* Where records are may be told to a call that looks at none: it asks for nothing, and scripts say it of every call. */
static int refuse(const bz_job *job, const char *way, const char *options, bool listed, bz_error *err)
{
    for (int i = 0; i < job->given.n; i++)
        if (strcmp(job->given.item[i], "db") != 0 && bz_has_word(options, job->given.item[i]) == listed)
            return bz_fail(err, BZ_USAGE, "--%s has no effect on %s: leave it out", job->given.item[i], way);
    return 0;
}

int bz_job_reads(const bz_job *job, const char *way, const char *options, bz_error *err)
{
    return refuse(job, way, options, false, err);
}

int bz_job_reads_no(const bz_job *job, const char *way, const char *options, bz_error *err)
{
    return refuse(job, way, options, true, err);
}

static int help(const bz_command *command, bool shells, bz_error *err)
{
    BZ_SCOPED(bz_buf) out = {0};
    bz_help_options(command, shells, &out);
    if (!shells)
        set_screen();
    int rc = bz_output_sentences(&out, err);
    return rc ? -1 : 1;
}

/* Returns 0 to go on; 1 when --help was asked for and printed; -1 on a usage error. */
static int parse(bz_job *job, bz_error *err)
{
    bool options_end = false;
    common.help = common.wide = false;
    common.color = NULL;
    for (int i = 1; i < job->argc; i++) {
        const char *arg = job->argv[i];
        if (options_end || arg[0] != '-' || !arg[1])
            bz_list_add(&job->arena, &job->arguments, arg);
        else if (!strcmp(arg, "--"))
            options_end = true;
        else if (!strcmp(arg, BZ_HELP_FOR_SHELLS))
            return help(job->command, true, err);
        else if (parse_any(job, &i, err))
            return -1;
        if (common.help)
            return help(job->command, false, err);
    }
    bz_progress_start(job->command->name,
                      0); /* whatever takes long says at least whose work it is; the output ends it */
    set_screen();
    return check_given(job, err);
}

static void put_again(bz_buf *out, const char *word)
{
    bz_buf_putc(out, ' ');
    bz_buf_word(out, word);
}

static bool is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}

int bz_job_takes(const bz_job *job, int least, int most, bz_error *err)
{
    if (job->arguments.n < least)
        return bz_fail(err, BZ_USAGE, "arguments are missing: see --help");
    return job->arguments.n > most ? bz_fail(err, BZ_USAGE, "too many arguments: see --help") : 0;
}

const char *bz_job_again(bz_job *job, const char *const *without)
{
    const bz_option *options = job->command->options;
    bz_buf out = {0};
    for (int i = 1; i < job->argc; i++) {
        const char *arg = job->argv[i];
        bool is_option = arg[0] == '-' && arg[1] && strcmp(arg, "--") != 0;
        const bz_option *o = !is_option      ? NULL
                             : arg[1] == '-' ? find_long(options, arg + 2, strcspn(arg + 2, "="))
                                             : find_short(options, arg[1]);
        bool value = o && wants_value(o) && !(arg[1] == '-' ? strchr(arg, '=') != NULL : arg[2] != 0);
        bool left_out = o && is_among(without, bz_option_long(o));
        if (!left_out)
            put_again(&out, arg);
        if (value && ++i < job->argc && !left_out)
            put_again(&out, job->argv[i]);
    }
    return bz_buf_keep(&out, &job->arena);
}

/* The label says in its colour whether something failed or is in doubt; the sentence stays plain, to be read. */
static void put_message(const char *label, bz_style style, const char *text)
{
    BZ_SCOPED(bz_buf) line = {0};
    bz_screen results = bz_screen_now();
    bz_screen_set((bz_screen){.colour = has_colours(STDERR_FILENO)});
    bz_style_begin(&line, style);
    bz_buf_printf(&line, "%s:", label);
    bz_style_end(&line, style);
    bz_screen_set(results);
    fprintf(stderr, "%s %s\n", bz_buf_text(&line), text);
}

int bz_report_as(const char *name, const bz_error *err)
{
    char label[64];
    snprintf(label, sizeof label, "benanza%s%s", name ? " " : "", name ? name : "");
    bz_progress_hold(true);
    put_message(label, BZ_STYLE_BAD, err->text);
    return (int)err->code;
}

int bz_report(const bz_command *command, const bz_error *err)
{
    return bz_report_as(command->name, err);
}

static int ended_by;

void bz_end_by(int signal_number)
{
    ended_by = signal_number;
}

int bz_ended_by(void)
{
    return ended_by;
}

void bz_warn(const bz_command *command, const char *fmt, ...)
{
    BZ_SCOPED(bz_buf) text = {0};
    char line[2048], label[64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    bz_buf_clean(&text, line);
    bz_progress_wipe();
    snprintf(label, sizeof label, "benanza %s: warning", command->name);
    put_message(label, BZ_STYLE_WARNING, bz_buf_text(&text));
}

int bz_output(const char *path, const bz_buf *text, bz_error *err)
{
    if (path)
        return bz_whole_write(path, text, err);
    bz_progress_hold(true);
    if (fwrite(bz_buf_text(text), 1, text->len, stdout) != text->len || fflush(stdout))
        return bz_fail(err, BZ_FAILED, "standard output: cannot be written: %s", strerror(errno));
    return 0;
}

int bz_output_end(const char *path, bz_buf *text, bz_error *err)
{
    int rc = bz_output(path, text, err);
    bz_buf_free(text);
    return rc;
}

int bz_output_sentences(const bz_buf *text, bz_error *err)
{
    int columns = bz_screen_now().columns;
    BZ_SCOPED(bz_buf) wrapped = {0};
    if (columns)
        bz_text_wrap(&wrapped, bz_buf_text(text), columns);
    return bz_output(NULL, columns ? &wrapped : text, err);
}

int bz_run_command(const bz_command *command, int argc, char **argv)
{
    BZ_FREED bz_job *job = bz_zeroed(1, command->size);
    bz_error err = {0};
    BZ_SCOPED(bz_buf) out = {0};
    if (command->usual)
        memcpy(job, command->usual, command->size);
    job->command = command;
    job->argc = argc;
    job->argv = argv;
    int rc = parse(job, &err);
    if (!rc) {
        rc = command->work(job, &out, &err);
        if (!rc && out.len)
            rc = job->json || job->csv || job->for_programs ? bz_output(NULL, &out, &err)
                                                            : bz_output_sentences(&out, &err);
        if (!rc && !job->status && command->judge)
            job->status = command->judge(job);
    }
    int status = rc < 0 ? bz_report(command, &err) : job->status;
    bz_arena_free(&job->arena);
    return status;
}
