/* Help: for people by --help, for shells by what completes, and the words that benanza uses. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer lines are hard to read, shorter ones have no room beside the options. */
static int columns(void)
{
    int terminal = bz_screen_columns(STDOUT_FILENO);
    return terminal && terminal < 100 ? (terminal > 60 ? terminal : 60) : 100;
}

/* Texts of options may have blanks or ends of lines between words: what is printed is filled to the width. */
static void put_filled(const char *text, int indent, bz_buf *out)
{
    int at = indent, all = columns();
    while (*text) {
        size_t n = strcspn(text, " \n");
        char word[256];
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        int width = bz_text_width(word);
        if (at > indent && at + 1 + width > all) {
            bz_buf_printf(out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            bz_buf_putc(out, ' ');
            at++;
        }
        bz_buf_puts(out, word);
        at += width;
        text += n + strspn(text + n, " \n");
    }
    bz_buf_putc(out, '\n');
}

static int width_of(const bz_option *options, int least)
{
    for (const bz_option *o = options; o->name; o++) {
        int w = bz_text_width(bz_option_long(o)) + 2 + (o->value ? bz_text_width(o->value) + 1 : 0) +
                2 * (o->kind == BZ_OPTION_MAYBE);
        least = w > least ? w : least;
    }
    return least;
}

static void put_options(const bz_option *options, int width, bz_buf *out)
{
    for (const bz_option *o = options; o->name; o++) {
        bz_buf left = {0};
        bool maybe = o->kind == BZ_OPTION_MAYBE;
        bz_buf_printf(&left, "--%s%s%s%s", bz_option_long(o),
                      maybe      ? "[="
                      : o->value ? " "
                                 : "",
                      o->value ? o->value : "", maybe ? "]" : "");
        bz_buf_printf(out, o->name[1] == '|' ? "  -%c, " : "      ", o->name[0]);
        bz_buf_printf(out, "%s%*s", bz_buf_text(&left), width + 2 - bz_text_width(bz_buf_text(&left)), "");
        put_filled(o->help, width + 8, out);
        bz_buf_free(&left);
    }
}

/* A field ends at a tab and is never empty, as shells take tabs together; a help text ends with its first line. It stands beside the option in a list. */
static void put_offer(const char *name, const char *value, const char *help, bz_buf *out)
{
    bz_buf_printf(out, "%s\t%s\t%.*s\n", name, value ? value : "-", (int)strcspn(help, "\n"), help);
}

static void put_offers(const bz_option *options, bz_buf *out)
{
    for (const bz_option *o = options; o->name; o++) {
        char name[64];
        snprintf(name, sizeof name, "--%s", bz_option_long(o));
        put_offer(name, o->kind == BZ_OPTION_MAYBE ? NULL : o->value, o->help, out);
        snprintf(name, sizeof name, "-%c", o->name[0]);
        if (o->name[1] == '|')
            put_offer(name, o->value, o->help, out);
    }
}

/* A command whose argument is one of some words, "bash|zsh|fish", offers them. */
static void put_words_of(const bz_command *command, bz_buf *out)
{
    const char *arguments = command->arguments;
    if (!strchr(arguments, '|') || strpbrk(arguments, " []"))
        return;
    for (size_t n; *arguments; arguments += n + (arguments[n] == '|')) {
        char word[64];
        n = strcspn(arguments, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, arguments);
        put_offer(word, NULL, command->summary, out);
    }
}

void bz_help_options(const bz_command *command, bool shells, bz_buf *out)
{
    const bz_option *options = command->options;
    if (shells) {
        put_words_of(command, out);
        put_offers(options, out);
        put_offers(bz_common_options, out);
        return;
    }
    int width = width_of(bz_common_options, width_of(options, 0));
    bz_buf_printf(out, "usage: benanza %s %s\n%s\n\n", command->name, command->arguments, command->summary);
    put_options(options, width, out);
    put_options(bz_common_options, width, out);
    bz_buf_printf(out, "\n'man benanza-%.*s' has examples; 'benanza help words' explains the words.\n",
                  (int)strcspn(command->name, " "), command->name);
}

static void put_summary(const char *name, int width, const char *summary, bz_buf *out)
{
    char line[256];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(summary, "\n"), summary);
    bz_buf_printf(out, "  %-*s  ", width, name);
    put_filled(line, width + 4, out);
}

void bz_help_commands(const char *name, const char *about, const bz_command *const *commands, int n, bool shells,
                      bz_buf *out)
{
    size_t skip = name ? strlen(name) + 1 : 0, width = 0;
    const char *of = name ? name : "", *space = name ? " " : "";
    for (int i = 0; i < n; i++)
        width = strlen(commands[i]->name + skip) > width ? strlen(commands[i]->name + skip) : width;
    if (!shells)
        bz_buf_printf(out, "usage: benanza %s%sCOMMAND [OPTIONS] ARGUMENTS\n%s\n\n", of, space, about);
    if (shells && !name)
        bz_buf_puts(out, "--version\t-\tprint the version\n");
    if (shells)
        bz_buf_puts(out, "--help\t-\tlist the commands\n");
    for (int i = 0; i < n; i++)
        if (shells)
            put_offer(commands[i]->name + skip, NULL, commands[i]->summary, out);
        else
            put_summary(commands[i]->name + skip, (int)width, commands[i]->summary, out);
    if (!shells)
        bz_buf_printf(out, "\n'benanza %s%sCOMMAND --help' lists the options of a command.\n", of, space);
    if (!shells && !name)
        bz_buf_puts(out, "'benanza help words' explains the words that benanza uses.\n");
}

/* ---- benanza help --------------------------------------------------------------------------- */

extern const char bz_words_text[]; /* docs/words.md */

/* Titles and words are marked by signs in the file, by their style here. */
static void put_words(bz_buf *out)
{
    bool strong = false;
    for (const char *p = bz_words_text; *p; p++) {
        bool begins = p == bz_words_text || p[-1] == '\n';
        if (begins && *p == '#')
            p += strspn(p, "# ");
        if (!strncmp(p, "**", 2)) {
            (strong ? bz_style_end : bz_style_begin)(out, BZ_STYLE_STRONG);
            strong = !strong;
            p++;
        } else if (*p != '`' && *p != '*') {
            bz_buf_putc(out, *p);
        }
    }
}

static const bz_option NONE[] = {{0}};

static int explain(void *call, bz_buf *out, bz_error *err)
{
    bz_job *job = call;
    char *asked[4] = {(char *)"benanza"};
    int n = 1;
    (void)err;
    if (job->arguments.n == 1 && !strcmp(job->arguments.item[0], "words")) {
        put_words(out);
        return 0;
    }
    for (int i = 0; i < job->arguments.n && i < 2; i++)
        asked[n++] = (char *)job->arguments.item[i];
    asked[n++] = (char *)"--help";
    job->status = bz_main(n, asked);
    return 0;
}

/* For shells it offers what benanza itself offers: that is what it explains. */
static int run_help(int argc, char **argv)
{
    if (strcmp(argv[argc - 1], BZ_HELP_FOR_SHELLS) != 0)
        return bz_run_command(&bz_command_help, argc, argv);
    if (argc > 2 && !strcmp(argv[1], "words"))
        return BZ_OK;
    if (argc == 2)
        puts("words\t-\twhat the words mean that benanza uses");
    return bz_main(argc, argv);
}

const bz_command bz_command_help =
    BZ_COMMAND("help", "[COMMAND | words]", "explain a command, or the words that benanza uses", NONE, bz_job, explain,
               .run = run_help);

/* ---- benanza completion --------------------------------------------------------------------- */

extern const char bz_completion_bash[], bz_completion_zsh[], bz_completion_fish[];

static int print_script(void *job, bz_buf *out, bz_error *err)
{
    static const struct {
        const char *shell, *script;
    } SCRIPTS[] = {{"bash", bz_completion_bash}, {"zsh", bz_completion_zsh}, {"fish", bz_completion_fish}};
    const bz_list *arguments = &((bz_job *)job)->arguments;
    ((bz_job *)job)->for_programs = true;
    for (size_t i = 0; i < sizeof SCRIPTS / sizeof *SCRIPTS; i++)
        if (arguments->n == 1 && !strcmp(arguments->item[0], SCRIPTS[i].shell))
            bz_buf_puts(out, SCRIPTS[i].script);
    if (arguments->n == 1 && !out->len)
        return bz_fail(err, BZ_USAGE, "takes bash, zsh or fish, not '%s'", arguments->item[0]);
    return out->len ? 0 : bz_fail(err, BZ_USAGE, "name a shell: bash, zsh or fish");
}

const bz_command bz_command_completion =
    BZ_COMMAND("completion", "bash|zsh|fish", "print the script that completes commands and options in a shell", NONE,
               bz_job, print_script);
