/* Help: for people by --help, for shells by what completes. */
#include "command/command.h"

#include <stdio.h>
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

static void put_help(const bz_option *o, bz_buf *out)
{
    bz_buf_printf(out, "%s%s%s%s", o->with ? "with --" : "", o->with ? o->with : "", o->with ? ": " : "", o->help);
}

static void put_options(const bz_option *options, int width, bz_buf *out)
{
    for (const bz_option *o = options; o->name; o++) {
        BZ_SCOPED(bz_buf) left = {0};
        bool maybe = o->kind == BZ_OPTION_MAYBE;
        bz_buf_printf(&left, "--%s%s%s%s", bz_option_long(o),
                      maybe      ? "[="
                      : o->value ? " "
                                 : "",
                      o->value ? o->value : "", maybe ? "]" : "");
        bz_buf_printf(out, o->name[1] == '|' ? "  -%c, " : "      ", o->name[0]);
        bz_buf_printf(out, "%s%*s", bz_buf_text(&left), width + 2 - bz_text_width(bz_buf_text(&left)), "");
        BZ_SCOPED(bz_buf) right = {0};
        put_help(o, &right);
        put_filled(bz_buf_text(&right), width + 8, out);
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
        BZ_SCOPED(bz_buf) help = {0};
        put_help(o, &help);
        snprintf(name, sizeof name, "--%s", bz_option_long(o));
        put_offer(name, o->kind == BZ_OPTION_MAYBE ? NULL : o->value, bz_buf_text(&help), out);
        snprintf(name, sizeof name, "-%c", o->name[0]);
        if (o->name[1] == '|')
            put_offer(name, o->value, bz_buf_text(&help), out);
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
