/* From the text of a pattern table to patterns. A step that uses another pattern is replaced by that
 * pattern's steps, once for each pattern of the name, so that matching knows plain steps only. */
#include "modelproc/pattern.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATTERNS = 4096 };

/* A pattern while its lines are read: names of steps and of free values in one list. */
typedef struct {
    const char *name[MAX_NAMES];
    operand is[MAX_NAMES];
    int n;
} names;

typedef struct {
    bz_patterns *patterns;
    const char *file;
    int line;
    const char *at; /* rest of the line */
    bz_error *err;
    int first; /* patterns under construction: first … patterns->n - 1, alternatives of one text */
    names names;
    bool open;
} parser;

static int bad(parser *p, const char *what)
{
    return bz_fail(p->err, BZ_BAD_INPUT, "%s, line %d: %s", p->file, p->line, what);
}

static void skip_blanks(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')
        p->at++;
    if (*p->at == '#')
        p->at += strlen(p->at);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '+' || c == '.' || c == '-';
}

/* The next word, in the arena; NULL where none stands. */
static const char *word(parser *p)
{
    skip_blanks(p);
    size_t n = 0;
    while (is_word(p->at[n]))
        n++;
    if (!n)
        return NULL;
    const char *w = bz_arena_strn(&p->patterns->arena, p->at, n);
    p->at += n;
    return w;
}

static bool take(parser *p, char c)
{
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool line_ends(parser *p)
{
    skip_blanks(p);
    return !*p->at;
}

static pattern *new_pattern(parser *p, const char *name)
{
    bz_patterns *all = p->patterns;
    BZ_ROOM(all->item, all->n);
    pattern *t = &all->item[all->n++];
    *t = (pattern){.name = name};
    return t;
}

static int find_name(const names *n, const char *name)
{
    for (int i = 0; i < n->n; i++)
        if (!strcmp(n->name[i], name))
            return i;
    return -1;
}

/* Ends the pattern that is open, if any. */
static int finish(parser *p)
{
    if (p->open && p->patterns->item[p->first].n_steps < 2)
        return bad(p, "the pattern before this line needs two steps at least");
    p->open = false;
    return 0;
}

static int read_header(parser *p)
{
    const char *name = word(p), *param;
    if (finish(p))
        return -1;
    if (!name)
        return bad(p, "a pattern needs a name: [NAME]");
    if (p->patterns->n >= MAX_PATTERNS)
        return bad(p, "there are too many patterns");
    p->first = p->patterns->n;
    p->names = (names){0};
    pattern *t = new_pattern(p, name);
    if (take(p, '(')) {
        do {
            if (!(param = word(p)) || t->n_params == MAX_OPERANDS)
                return bad(p, "parameters are names, with commas between them");
            p->names.name[p->names.n] = param;
            p->names.is[p->names.n++] = (operand){OPERAND_VALUE, t->n_names};
            t->params[t->n_params++] = t->n_names++;
        } while (take(p, ','));
        if (!take(p, ')'))
            return bad(p, "')' is missing");
    }
    if (!take(p, ']') || !line_ends(p))
        return bad(p, "a pattern begins with [NAME] or [NAME(x)]");
    p->open = true;
    return 0;
}

static int read_set(parser *p)
{
    const char *name = word(p), *op;
    if (!name || !take(p, '='))
        return bad(p, "a set is written: set NAME = OP OP …");
    if (p->patterns->n_sets == MAX_SETS)
        return bad(p, "there are too many sets");
    op_set *s = &p->patterns->sets[p->patterns->n_sets++];
    *s = (op_set){.name = name};
    while ((op = word(p)))
        BZ_ARENA_ADD(&p->patterns->arena, s->ops, s->n) = op;
    return s->n && line_ends(p) ? 0 : bad(p, "a set is written: set NAME = OP OP …");
}

/* Conv, conv, @act, Div|Mul */
static int read_ops(parser *p, step *s)
{
    bz_arena *arena = &p->patterns->arena;
    do {
        bool set = take(p, '@');
        const char *name = word(p);
        if (!name)
            return bad(p, "a step is written: v = OP(a, b)");
        const op_set *found = NULL;
        for (int i = 0; i < p->patterns->n_sets; i++)
            if (!strcmp(p->patterns->sets[i].name, name))
                found = &p->patterns->sets[i];
        if (set && !found)
            return bad(p, "there is no set of that name above");
        int n = set ? found->n : 1;
        s->ops = bz_arena_grow(arena, s->ops, (size_t)s->n_ops, (size_t)s->n_ops + (size_t)n, sizeof *s->ops);
        for (int i = 0; i < n; i++)
            s->ops[s->n_ops++] = set ? found->ops[i] : name;
    } while (take(p, '|'));
    return 0;
}

static int read_operand(parser *p, operand *o)
{
    const char *name = word(p);
    if (!name)
        return bad(p, "an operand is missing");
    static const struct {
        const char *word;
        operand_kind kind;
    } WORDS[] = {{"const", OPERAND_CONST}, {"vector", OPERAND_VECTOR}, {"none", OPERAND_NONE}, {"_", OPERAND_ANY}};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strcmp(name, WORDS[i].word)) {
            o->kind = WORDS[i].kind;
            return 0;
        }
    int k = find_name(&p->names, name);
    if (k < 0) {
        if (p->names.n == MAX_NAMES)
            return bad(p, "the pattern has too many names");
        k = p->names.n++;
        p->names.name[k] = name;
        p->names.is[k] = (operand){OPERAND_VALUE, p->patterns->item[p->first].n_names};
        for (int i = p->first; i < p->patterns->n; i++)
            p->patterns->item[i].n_names++;
    }
    *o = p->names.is[k];
    return 0;
}

static int read_operands(parser *p, step *s)
{
    if (!take(p, '('))
        return bad(p, "'(' is missing");
    do {
        if (s->n_operands == MAX_OPERANDS)
            return bad(p, "the step has too many operands");
        if (read_operand(p, &s->operands[s->n_operands++]))
            return -1;
    } while (take(p, ','));
    if (!take(p, ')') || !line_ends(p))
        return bad(p, "')' is missing, or something stands behind it");
    return 0;
}

static int add_step(parser *p, pattern *t, const step *s)
{
    if (t->n_steps == MAX_STEPS)
        return bad(p, "the pattern has too many steps");
    t->steps[t->n_steps++] = *s;
    return 0;
}

/* Appends the steps of `used` to `t`, its parameters replaced by the operands of `s`. */
static int splice(parser *p, pattern *t, const pattern *used, const step *s)
{
    int steps = t->n_steps, free_names = t->n_names;
    if (used->n_params != s->n_operands)
        return bad(p, "the pattern that is used has another number of parameters");
    if (free_names + used->n_names > MAX_NAMES)
        return bad(p, "the pattern has too many names");
    for (int i = 0; i < used->n_steps; i++) {
        step copy = used->steps[i];
        for (int k = 0; k < copy.n_operands; k++) {
            operand *o = &copy.operands[k];
            int param = -1;
            for (int j = 0; j < used->n_params && o->kind == OPERAND_VALUE; j++)
                if (used->params[j] == o->index)
                    param = j;
            if (param >= 0)
                *o = s->operands[param];
            else if (o->kind == OPERAND_STEP)
                o->index += steps;
            else if (o->kind == OPERAND_VALUE)
                o->index += free_names;
        }
        if (add_step(p, t, &copy))
            return -1;
    }
    t->n_names += used->n_names;
    return 0;
}

/* A step that uses a pattern: every alternative so far times every pattern of that name. */
static int read_use(parser *p)
{
    const char *name = word(p);
    step s = {0};
    if (!name || !take(p, ']'))
        return bad(p, "a use is written: v = [NAME](a)");
    if (read_operands(p, &s))
        return -1;
    bz_patterns *all = p->patterns;
    int n_before = all->n - p->first, uses = 0;
    pattern *before = bz_arena_dup(&all->arena, &all->item[p->first], (size_t)n_before * sizeof *before);
    all->n = p->first;
    for (int k = 0; k < p->first; k++) {
        pattern used = all->item[k];
        if (strcmp(used.name, name) != 0)
            continue;
        uses++;
        for (int i = 0; i < n_before; i++) {
            if (all->n >= MAX_PATTERNS)
                return bad(p, "there are too many patterns");
            pattern *t = new_pattern(p, before[i].name);
            *t = before[i];
            if (splice(p, t, &used, &s))
                return -1;
        }
    }
    if (!uses)
        return bad(p, "there is no pattern of that name above");
    /* Alternatives differ in length, so a later step could not name this one: it must be the last. */
    p->open = false;
    return 0;
}

static int read_step(parser *p, const char *result, bool shared, bool kept)
{
    step s = {.shared = shared || kept, .kept = kept};
    if (!p->open)
        return bad(p,
                   "a step stands outside of a pattern, or behind a step that uses a pattern (which must be the last)");
    if (find_name(&p->names, result) >= 0)
        return bad(p, "the name on the left is taken");
    if (take(p, '['))
        return s.shared ? bad(p, "what a pattern makes cannot be shared") : read_use(p);
    if (read_ops(p, &s) || read_operands(p, &s))
        return -1;
    if (p->names.n == MAX_NAMES)
        return bad(p, "the pattern has too many names");
    p->names.name[p->names.n] = result;
    p->names.is[p->names.n++] = (operand){OPERAND_STEP, p->patterns->item[p->first].n_steps};
    return add_step(p, &p->patterns->item[p->first], &s);
}

static int read_line(parser *p)
{
    if (line_ends(p))
        return 0;
    if (take(p, '['))
        return read_header(p);
    const char *first = word(p);
    if (!first)
        return bad(p, "a line is a pattern's [NAME], a set, or a step: v = OP(a, b)");
    skip_blanks(p);
    if (!strcmp(first, "set") && *p->at != '=')
        return read_set(p);
    bool shared = take(p, '*'), kept = !shared && take(p, '!');
    return take(p, '=') ? read_step(p, first, shared, kept) : bad(p, "a step is written: v = OP(a, b)");
}

int bz_patterns_parse(const char *text, const char *name, bz_patterns **patterns, bz_error *err)
{
    bz_patterns *all = *patterns;
    if (!all) {
        all = bz_alloc(1, sizeof *all);
        *all = (bz_patterns){0};
    }
    BZ_FREED parser *p = bz_alloc(1, sizeof *p);
    *p = (parser){.patterns = all, .file = name, .err = err};
    int failed = 0;
    while (*text && !failed) {
        size_t n = strcspn(text, "\n");
        p->at = bz_arena_strn(&all->arena, text, n);
        p->line++;
        failed = read_line(p);
        text += n + (text[n] == '\n');
    }
    failed = failed || finish(p);
    if (failed) {
        bz_patterns_free(all);
        all = NULL;
    }
    *patterns = all;
    return failed ? -1 : 0;
}

void bz_patterns_free(bz_patterns *patterns)
{
    if (!patterns)
        return;
    free(patterns->item);
    bz_arena_free(&patterns->arena);
    free(patterns);
}
