/* advice.txt and state.txt as tables, and which framework a profile shows. */
#include "advice/rules.h"

#include <string.h>

static void add_line(advice_rule *r, char *line, bz_arena *arena)
{
    char *colon = strstr(line, ": ");
    if (*line == ' ' && r->n) {
        r->value[r->n - 1] = bz_arena_printf(arena, "%s\n%s", r->value[r->n - 1], line + strspn(line, " "));
    } else if (colon && r->n < ADVICE_LINES) {
        *colon = 0;
        r->key[r->n] = line;
        r->value[r->n++] = colon + 2;
    }
}

void advice_read(const char *text, bz_arena *arena, advice_table *out)
{
    char *copy = bz_arena_str(arena, text), *save = NULL;
    int lines = 1;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    *out =
        (advice_table){.rule = BZ_NEW(arena, advice_rule, lines), .framework = BZ_NEW(arena, advice_framework, lines)};
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (*line == '#')
            continue;
        if (*line == '[') {
            line[strcspn(line, "]")] = 0;
            out->rule[out->n++].id = line + 1;
        } else if (out->n) {
            add_line(&out->rule[out->n - 1], line, arena);
        } else if (!strncmp(line, "device ", 7)) {
            add_line(&out->device, line + 7, arena);
        } else if (!strncmp(line, "framework ", 10)) {
            char *name = line + 10, *words = strchr(name, ' ');
            if (!words)
                continue;
            *words = 0;
            for (char *c = name; (c = strchr(c, '_'));)
                *c = ' ';
            out->framework[out->n_frameworks++] = (advice_framework){name, words + 1};
        }
    }
}

const char *advice_line(const advice_rule *rule, const char *key, int nth)
{
    for (int i = 0; i < rule->n; i++)
        if (!strcmp(rule->key[i], key) && !nth--)
            return rule->value[i];
    return NULL;
}

/* The names of the files that were read say nothing of what they hold. */
static bool is_path(const bz_trace *trace, uint32_t string)
{
    for (uint32_t i = 0; i < trace->n_sources; i++)
        if (trace->source[i].path == string)
            return true;
    return false;
}

/* In names of operators, kernels and frames: each string once. */
static bool shows(const bz_trace *trace, const char *words)
{
    enum { STRINGS = 20000 };
    for (uint32_t k = 1, n = bz_strings(trace); k < n && k < STRINGS; k++)
        if (bz_name_matches_any(words, bz_string(trace, k)) && !is_path(trace, k))
            return true;
    return false;
}

const char *advice_words_of(const advice_table *table, const bz_trace *trace)
{
    for (int i = 0; i < table->device.n; i++)
        if (shows(trace, table->device.key[i]))
            return table->device.value[i];
    return NULL;
}

/* By the library that the capture saw, else by names. */
const char *advice_framework_of(const advice_table *table, const bz_trace *trace)
{
    const char *told = bz_trace_told(trace, "framework");
    for (int i = 0; told && i < table->n_frameworks; i++)
        if (bz_name_matches_any(table->framework[i].words, told))
            return table->framework[i].name;
    for (int i = 0; i < table->n_frameworks; i++)
        if (shows(trace, table->framework[i].words))
            return table->framework[i].name;
    return NULL;
}
