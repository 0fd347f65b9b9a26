/* The language of scripts: a statement per line, words apart by blanks, a name with blanks in quotes, "#" before a comment.
 * `select` chooses tasks, and what follows changes those that are chosen. docs/whatif.md has the grammar. */
#include "base/whole.h"
#include "whatif/transformations.h"

#include <math.h>
#include <stdlib.h>

enum { WORDS = 16, WORD = 256, SETS = 26, MOST_TASKS = 1 << 22, MOST_EDGES = 1 << 23, LARGEST = 1 << 20 /* bytes */ };

typedef struct {
    bz_flow *flow;
    uint32_t *chosen, n; /* tasks, ascending in the order of their lanes */
    uint32_t *set[SETS], n_set[SETS];
    char word[WORDS][WORD];
    int n_words, line, changed;
} script;

static int wrong(const script *s, bz_error *err, const char *what)
{
    return bz_fail(err, BZ_USAGE, "line %d: %s: %s", s->line, s->word[0], what);
}

static int read_words(script *s, const char *at, const char *end, bz_error *err)
{
    s->n_words = 0;
    for (;;) {
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
            at++;
        if (at == end || *at == '#')
            return 0;
        if (s->n_words == WORDS)
            return bz_fail(err, BZ_USAGE, "line %d: more than %d words", s->line, WORDS);
        char *out = s->word[s->n_words++];
        size_t n = 0;
        bool quoted = false;
        for (; at < end && (quoted || (*at != ' ' && *at != '\t' && *at != '\r')); at++) {
            if (*at == '"') {
                quoted = !quoted;
            } else if (n + 1 == WORD || !*at) {
                return bz_fail(err, BZ_USAGE, "line %d: a word is longer than %d bytes", s->line, WORD - 1);
            } else {
                out[n++] = *at;
            }
        }
        out[n] = 0;
        if (quoted)
            return bz_fail(err, BZ_USAGE, "line %d: a quote is open at its end", s->line);
    }
}

static int read_number(const script *s, int word, double least, double most, double *out, bz_error *err)
{
    char *end;
    *out = strtod(s->word[word], &end);
    if (end == s->word[word] || *end || !isfinite(*out) || *out < least || *out > most)
        return bz_fail(err, BZ_USAGE, "line %d: %s: '%.60s' is no number from %g to %g", s->line, s->word[0],
                       s->word[word], least, most);
    return 0;
}

/* Microseconds. */
static int read_time(const script *s, int word, int64_t *out, bz_error *err)
{
    double us;
    if (read_number(s, word, 0, 1e10, &us, err))
        return -1;
    *out = (int64_t)(1e3 * us + 0.5);
    return 0;
}

static int read_kind(const script *s, const char *name, bz_task_kind *out, bz_error *err)
{
    for (int k = 0; k < BZ_TASK_END; k++)
        if (!strcmp(name, bz_task_kind_name((bz_task_kind)k))) {
            *out = (bz_task_kind)k;
            return 0;
        }
    return wrong(s, err, "there is no such kind: host, call, kernel, copy, sync, communication, load");
}

static int read_set(const script *s, int *out, bz_error *err)
{
    const char *name = s->word[1];
    *out = name[0] - 'A';
    if (*out < 0 || *out >= SETS || name[1])
        return wrong(s, err, "a set's name is a letter from A to Z");
    return 0;
}

typedef struct {
    const char *value;
    int64_t time;
} condition;

static const char *const CONDITIONS[] = {"kind", "phase", "name", "op", "layer", "lane", "longer", "shorter"};
enum { KIND, PHASE, NAME, OP, LAYER, LANE, LONGER, SHORTER, N_CONDITIONS };

static bool fits(const bz_flow *f, const bz_task *t, int key, const condition *c)
{
    switch (key) {
    case KIND:
        return !strcmp(c->value, bz_task_kind_name((bz_task_kind)t->kind));
    case PHASE:
        return !strcmp(c->value, bz_phase_name((bz_phase)t->phase));
    case NAME:
        return bz_name_matches(c->value, t->name);
    case OP:
        return bz_task_op(f, t) && bz_name_matches(c->value, bz_task_op(f, t));
    case LAYER:
        return t->layer < f->n_layers && bz_name_matches(c->value, f->layer[t->layer]);
    case LANE:
        return bz_name_matches(c->value, f->lane[t->lane].name);
    case LONGER:
        return t->duration > c->time;
    default:
        return t->duration < c->time;
    }
}

static int do_select(script *s, bz_error *err)
{
    condition c[WORDS];
    int key[WORDS], n = 0;
    for (int i = 1; i < s->n_words; i++) {
        char *value = strchr(s->word[i], '=');
        if (s->n_words == 2 && !strcmp(s->word[i], "all"))
            break;
        if (!value)
            return wrong(s, err, "wants all, or conditions as kind=kernel");
        *value++ = 0;
        for (key[n] = 0; key[n] < N_CONDITIONS && strcmp(CONDITIONS[key[n]], s->word[i]) != 0;)
            key[n]++;
        bz_task_kind kind;
        c[n] = (condition){value, 0};
        if (key[n] == N_CONDITIONS)
            return wrong(s, err, "conditions are kind, phase, name, op, layer, lane, longer, shorter");
        if (key[n] == KIND && read_kind(s, value, &kind, err))
            return -1;
        if (key[n] >= LONGER) {
            memmove(s->word[i], value, strlen(value) + 1);
            if (read_time(s, i, &c[n].time, err))
                return -1;
        }
        n++;
    }
    s->chosen = bz_realloc(s->chosen, (size_t)s->flow->n + 1, sizeof *s->chosen);
    s->n = 0;
    for (uint32_t i = 0; i < s->flow->n; i++) {
        bool all = !s->flow->task[i].removed && s->flow->task[i].kind != BZ_TASK_END;
        for (int k = 0; k < n && all; k++)
            all = fits(s->flow, &s->flow->task[i], key[k], &c[k]);
        if (all)
            s->chosen[s->n++] = i;
    }
    bz_flow_in_time(s->flow, s->chosen, s->n);
    return 0;
}

/* `first 3`, `last 3`: of what is chosen. */
static int do_first(script *s, bz_error *err)
{
    double n;
    if (read_number(s, 1, 0, 1e9, &n, err))
        return -1;
    uint32_t keep = n < s->n ? (uint32_t)n : s->n;
    if (!strcmp(s->word[0], "last") && keep)
        memmove(s->chosen, s->chosen + (s->n - keep), keep * sizeof *s->chosen);
    s->n = keep;
    return 0;
}

static int do_keep(script *s, bz_error *err)
{
    int set;
    if (read_set(s, &set, err))
        return -1;
    s->set[set] = bz_realloc(s->set[set], (size_t)s->n + 1, sizeof(uint32_t));
    if (s->n)
        memcpy(s->set[set], s->chosen, s->n * sizeof(uint32_t));
    s->n_set[set] = s->n;
    return 0;
}

/* The next one of those chosen, from *i on, that has not been removed since; its task is counted as changed. */
static bool next_task(script *s, uint32_t *i)
{
    while (*i < s->n && s->flow->task[s->chosen[*i]].removed)
        ++*i;
    s->changed += *i < s->n;
    return *i < s->n;
}

static int do_scale(script *s, bz_error *err)
{
    double factor;
    bool gap = !strcmp(s->word[0], "scale-gap");
    if (read_number(s, 1, 0, 1e9, &factor, err))
        return -1;
    for (uint32_t i = 0; next_task(s, &i); i++) {
        bz_task *t = &s->flow->task[s->chosen[i]];
        double scaled = (double)t->gap * factor;
        if (gap)
            t->gap = scaled < (double)BZ_FLOW_LONGEST ? (int64_t)(scaled + 0.5) : BZ_FLOW_LONGEST;
        else
            bz_flow_scale(s->flow, s->chosen[i], factor);
    }
    return 0;
}

static int do_set(script *s, bz_error *err)
{
    int64_t time;
    bool gap = !strcmp(s->word[0], "set-gap");
    if (read_time(s, 1, &time, err))
        return -1;
    for (uint32_t i = 0; next_task(s, &i); i++)
        if (gap)
            s->flow->task[s->chosen[i]].gap = time;
        else
            bz_flow_set(s->flow, s->chosen[i], time);
    return 0;
}

/* A bridge has an edge from each parent to each child: a star of stars may explode. */
static int do_remove(script *s, bz_error *err)
{
    bool launched = !strcmp(s->word[0], "remove-launched"), keep = s->n_words > 1 && !strcmp(s->word[1], "keep-gap");
    if (s->n_words > 1 && !keep)
        return wrong(s, err, "may be followed by keep-gap");
    for (uint32_t i = 0; next_task(s, &i); i++) {
        if (s->flow->n_edges > MOST_EDGES)
            return wrong(s, err, "too many dependencies came of it");
        (launched ? bz_flow_remove_launched : bz_flow_remove)(s->flow, s->chosen[i], keep);
    }
    s->n = 0;
    return 0;
}

/* `insert KIND NAME µs`, `insert-before KIND NAME µs`, `insert-launched NAME µs`: what is inserted is chosen then. */
static int do_insert(script *s, bz_error *err)
{
    bz_task_kind kind = BZ_TASK_KERNEL;
    int64_t time;
    bool launched = !strcmp(s->word[0], "insert-launched"), before = !strcmp(s->word[0], "insert-before");
    int name = launched ? 1 : 2;
    if (s->n_words != name + 2)
        return wrong(s, err, launched ? "wants NAME MICROSECONDS" : "wants KIND NAME MICROSECONDS");
    if ((!launched && read_kind(s, s->word[1], &kind, err)) || read_time(s, name + 1, &time, err))
        return -1;
    if (s->flow->n + 2 * (uint64_t)s->n > MOST_TASKS)
        return wrong(s, err, "too many tasks would come of it");
    for (uint32_t i = 0; next_task(s, &i); i++) {
        uint32_t at = s->chosen[i];
        if (launched && !s->flow->lane[s->flow->task[at].lane].device) {
            s->changed--;
            continue;
        }
        s->chosen[i] = launched
                           ? bz_flow_insert_launched(s->flow, kind, s->word[name], at, time)
                           : bz_flow_insert(s->flow, kind, s->word[name], at, before ? BZ_BEFORE : BZ_BEHIND, time, 0);
        s->flow->task[s->chosen[i]].at = s->flow->task[at].at; /* its place among those that are chosen */
    }
    return 0;
}

/* `move LANE`: to the end of a lane, in the order of time. `lane NAME thread|stream|channel` makes one. */
static int do_move(script *s, bz_error *err)
{
    uint32_t lane = bz_flow_find_lane(s->flow, s->word[1]);
    if (lane == BZ_NONE)
        return wrong(s, err, "there is no such lane: `lane NAME stream` makes one");
    for (uint32_t i = 0; next_task(s, &i); i++)
        bz_flow_move_to(s->flow, s->chosen[i], lane);
    return 0;
}

static int do_lane(script *s, bz_error *err)
{
    bool stream = !strcmp(s->word[2], "stream"), channel = !strcmp(s->word[2], "channel");
    if (!stream && !channel && strcmp(s->word[2], "thread") != 0)
        return wrong(s, err, "a lane is a thread, a stream or a channel");
    if (bz_flow_find_lane(s->flow, s->word[1]) != BZ_NONE)
        return wrong(s, err, "there is a lane of that name");
    if (s->flow->n_lanes >= 4096)
        return wrong(s, err, "there are 4096 lanes already");
    bz_flow_add_lane(s->flow, s->word[1], stream, channel);
    return 0;
}

/* `depend A`: each chosen task waits for the one of set A in the same place; where the sets differ in size, for A's last. */
static int do_depend(script *s, bz_error *err)
{
    int set;
    if (read_set(s, &set, err))
        return -1;
    if ((uint64_t)s->flow->n_edges + s->n > MOST_EDGES)
        return wrong(s, err, "too many dependencies would come of it");
    for (uint32_t i = 0; i < s->n && s->n_set[set]; i++) {
        uint32_t from = s->set[set][s->n_set[set] == s->n ? i : s->n_set[set] - 1], to = s->chosen[i];
        if (!s->flow->task[to].removed && !s->flow->task[from].removed)
            s->changed += bz_flow_depend(s->flow, from, to, BZ_DEPENDS_HOST, 0) != BZ_NONE;
    }
    return 0;
}

/* `priority N`: on a channel the greatest goes first; `priority last-first` and `priority first-first` by the order of time. */
static int do_priority(script *s, bz_error *err)
{
    double n = 0;
    bool last = !strcmp(s->word[1], "last-first"), first = !strcmp(s->word[1], "first-first");
    if (!last && !first && read_number(s, 1, -1e9, 1e9, &n, err))
        return -1;
    for (uint32_t i = 0; i < s->n; i++) {
        s->flow->task[s->chosen[i]].priority = last ? (int32_t)i : first ? (int32_t)(s->n - i) : (int32_t)n;
        s->changed++;
    }
    return 0;
}

static const struct {
    const char *name;
    int least, most; /* words behind it */
    int (*run)(script *s, bz_error *err);
} STATEMENTS[] = {
    {"select", 1, WORDS, do_select},
    {"first", 1, 1, do_first},
    {"last", 1, 1, do_first},
    {"keep", 1, 1, do_keep},
    {"scale", 1, 1, do_scale},
    {"scale-gap", 1, 1, do_scale},
    {"set", 1, 1, do_set},
    {"set-gap", 1, 1, do_set},
    {"remove", 0, 1, do_remove},
    {"remove-launched", 0, 1, do_remove},
    {"insert", 3, 3, do_insert},
    {"insert-before", 3, 3, do_insert},
    {"insert-launched", 2, 2, do_insert},
    {"move", 1, 1, do_move},
    {"lane", 2, 2, do_lane},
    {"depend", 1, 1, do_depend},
    {"priority", 1, 1, do_priority},
};

static int run_line(script *s, bz_error *err)
{
    for (size_t i = 0; i < sizeof STATEMENTS / sizeof *STATEMENTS; i++)
        if (!strcmp(STATEMENTS[i].name, s->word[0])) {
            if (s->n_words - 1 < STATEMENTS[i].least || s->n_words - 1 > STATEMENTS[i].most)
                return wrong(s, err, "has too few words, or too many");
            return STATEMENTS[i].run(s, err);
        }
    return wrong(s, err, "is no statement; docs/whatif.md has them all");
}

int bz_whatif_run_script(bz_flow *flow, const char *text, size_t length, bz_error *err)
{
    script s = {.flow = flow};
    int failed = 0;
    for (const char *at = text, *end = text + length; at < end && !failed;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        s.line++;
        failed = read_words(&s, at, stop, err) || (s.n_words && run_line(&s, err));
        at = newline ? newline + 1 : end;
    }
    for (int i = 0; i < SETS; i++)
        free(s.set[i]);
    free(s.chosen);
    return failed ? -1 : s.changed;
}

int bz_whatif_script(bz_flow *flow, bz_whatif_asked *asked)
{
    BZ_SCOPED(bz_buf) text = {0};
    if (!asked->text)
        return bz_fail(asked->err, BZ_BAD_INPUT, "no file was named");
    if (bz_whole_read(asked->text, LARGEST, "the script is longer than 1048576 bytes", &text, asked->err))
        return -1;
    int changed = bz_whatif_run_script(flow, bz_buf_text(&text), text.len, asked->err);
    if (changed < 0)
        return bz_fail_in(asked->err, "%s", asked->text);
    if (!changed)
        return bz_whatif_because(asked, "%s: it chose no task that it could change", asked->text);
    bz_whatif_assume(asked, BZ_ASSUMED_GIVEN, asked->text, "what the script changes: %d tasks", changed);
    return changed;
}
