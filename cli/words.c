/* benanza help and benanza completion: the words that benanza uses, and scripts for shells. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

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
    static const char *const WORDS[] = {"words"};
    int n = 1;
    const char *topic = job->arguments.n == 1 ? job->arguments.item[0] : "";
    if (!strcmp(topic, "words")) {
        put_words(out);
        return 0;
    }
    if (bz_choice_meant(topic, WORDS, 1)) /* no command's name is like it */
        return bz_fail(err, BZ_USAGE, "there is no command '%s': did you mean help words?", topic);
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
        return bz_choice_fail(err, "SHELL", arguments->item[0], (const char *const[]){"bash", "zsh", "fish"}, 3);
    return out->len ? 0 : bz_fail(err, BZ_USAGE, "name a shell: bash, zsh or fish");
}

const bz_command bz_command_completion =
    BZ_COMMAND("completion", "bash|zsh|fish", "print the script that completes commands and options in a shell", NONE,
               bz_job, print_script);
