/* Settings as text: a row for each member, which prints, reads and compares it. */
#include "perfdb/perfdb.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum { NUMBER, CACHE, TEXT } form;

/* A text may hold blanks, so it stands last. */
static const struct {
    const char *name;
    size_t at;
    form form;
} MEMBERS[] = {
    {"threads", offsetof(bz_setting, threads), NUMBER},
    {"cache", offsetof(bz_setting, cache), CACHE},
    {"clock", offsetof(bz_setting, clock), TEXT},
};

enum { N_MEMBERS = sizeof MEMBERS / sizeof *MEMBERS };

static const void *member(const bz_setting *s, int i)
{
    return (const char *)s + MEMBERS[i].at;
}

static const char *text_of(const bz_setting *s, int i)
{
    const char *text = *(const char *const *)member(s, i);
    return text ? text : "";
}

void bz_setting_print(const bz_setting *s, bz_buf *out)
{
    for (int i = 0; i < N_MEMBERS; i++) {
        if (MEMBERS[i].form == TEXT && !*text_of(s, i))
            continue;
        bz_buf_printf(out, "%s%s=", i ? " " : "", MEMBERS[i].name);
        if (MEMBERS[i].form == NUMBER)
            bz_buf_int(out, *(const int *)member(s, i));
        else
            bz_buf_puts(out, MEMBERS[i].form == TEXT ? text_of(s, i)
                                                     : bz_record_cache_name(*(const bz_record_cache *)member(s, i)));
    }
}

bool bz_setting_same(const bz_setting *a, const bz_setting *b)
{
    bool same = true;
    for (int i = 0; i < N_MEMBERS; i++)
        same &= MEMBERS[i].form == TEXT ? !strcmp(text_of(a, i), text_of(b, i))
                : MEMBERS[i].form == NUMBER
                    ? *(const int *)member(a, i) == *(const int *)member(b, i)
                    : *(const bz_record_cache *)member(a, i) == *(const bz_record_cache *)member(b, i);
    return same;
}

static int read_member(bz_setting *s, int i, const char *value, size_t n, bz_arena *arena)
{
    char *end, *at = (char *)s + MEMBERS[i].at;
    const char *word = bz_arena_strn(arena, value, n);
    long v;
    switch (MEMBERS[i].form) {
    case NUMBER:
        v = strtol(word, &end, 10);
        *(int *)(void *)at = (int)v;
        return !n || *end || v < 0 || v > INT32_MAX ? -1 : 0; /* 0: a foreign record that does not tell */
    case CACHE:
        for (bz_record_cache c = BZ_CACHE_HOT; c <= BZ_CACHE_COLD; c++)
            if (!strcmp(word, bz_record_cache_name(c))) {
                *(bz_record_cache *)(void *)at = c;
                return 0;
            }
        return -1;
    default:
        *(const char **)(void *)at = word;
        return n ? 0 : -1;
    }
}

int bz_setting_parse(const char *text, bz_arena *arena, bz_setting *out, bz_error *err)
{
    *out = (bz_setting){.threads = 1, .clock = ""};
    for (const char *at = text; *at;) {
        size_t name = strcspn(at, "= "), n = strcspn(at, " ");
        int i = 0;
        while (i < N_MEMBERS && (strlen(MEMBERS[i].name) != name || strncmp(MEMBERS[i].name, at, name) != 0))
            i++;
        if (i < N_MEMBERS && MEMBERS[i].form == TEXT)
            n = strlen(at);
        if (i == N_MEMBERS || at[name] != '=' || read_member(out, i, at + name + 1, n - name - 1, arena))
            return bz_fail(err, BZ_BAD_INPUT, "'%.*s' is nothing of a setting, as 'threads=1 cache=hot'", (int)n, at);
        at += n + strspn(at + n, " ");
    }
    return 0;
}
