/* Substitution of parts of the graph, by a policy that somebody else found or measured: a file with a line for each change.
 *
 *     remove LAYER          the layer's work on the device, and its launches, forward and back
 *     scale LAYER FACTOR    its work takes so many times as long
 *     time LAYER US         its work takes so many µs together, shared as it was
 *     remove-kernel NAME, scale-kernel NAME FACTOR, time-kernel NAME US    every kernel of that name, each by itself
 *     scale-call NAME FACTOR, time-call NAME US                            every call of the host of that name
 *
 * What is named ends with the line or, where a number follows, with the last space before it. */

#include "whatif/transformations.h"

#include "base/whole.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { FILE_MOST = 1 << 20 };
typedef enum { REMOVE, SCALE, TIME } doing;
typedef enum { LAYER, KERNEL, CALL } meaning;

static const struct {
    const char *word;
    doing verb;
    meaning noun;
} WORDS[] = {{"remove", REMOVE, LAYER},         {"scale", SCALE, LAYER},         {"time", TIME, LAYER},
             {"remove-kernel", REMOVE, KERNEL}, {"scale-kernel", SCALE, KERNEL}, {"time-kernel", TIME, KERNEL},
             {"scale-call", SCALE, CALL},       {"time-call", TIME, CALL}};

static bool is_meant(const bz_flow *flow, const bz_task *t, meaning noun, const char *name)
{
    bool works = t->kind == BZ_TASK_KERNEL || t->kind == BZ_TASK_CALL;
    if (t->removed)
        return false;
    return noun == LAYER    ? works && t->layer < flow->n_layers && !strcmp(flow->layer[t->layer], name)
           : noun == KERNEL ? works && !strcmp(t->name, name)
                            : t->kind == BZ_TASK_HOST && !strcmp(t->name, name);
}

static int apply(bz_flow *flow, doing verb, meaning noun, const char *name, double number)
{
    int n = 0;
    double sum = 0;
    for (uint32_t i = 0; i < flow->n; i++)
        if (is_meant(flow, &flow->task[i], noun, name))
            sum += (double)flow->task[i].duration;
    for (uint32_t i = 0; i < flow->n; i++) {
        if (!is_meant(flow, &flow->task[i], noun, name))
            continue;
        n++;
        if (verb == SCALE)
            bz_flow_scale(flow, i, number);
        else if (verb == TIME && noun == LAYER)
            bz_flow_scale(flow, i, sum > 0 ? 1e3 * number / sum : 1);
        else if (verb == TIME)
            bz_flow_set(flow, i, (int64_t)fmin(1e3 * number, (double)BZ_FLOW_LONGEST));
        else
            bz_flow_remove_launched(flow, i, false);
    }
    return n;
}

/* Tasks changed; -1 where the line says nothing that can be done. */
static int read_line(bz_flow *flow, char *line, const char *where, int number, bz_error *err)
{
    char *name = strchr(line, ' '), *end = NULL;
    size_t word = 0, words = sizeof WORDS / sizeof *WORDS;
    double value = 0;
    if (name)
        *name++ = 0;
    while (word < words && strcmp(WORDS[word].word, line) != 0)
        word++;
    if (word == words || !name || !*name)
        return bz_fail(err, BZ_BAD_INPUT,
                       "%s:%d: wants remove, scale or time, of a layer, -kernel or -call, and a name", where, number);
    if (WORDS[word].verb != REMOVE) {
        char *space = strrchr(name, ' ');
        errno = 0;
        value = space ? strtod(space + 1, &end) : NAN;
        if (!space || end == space + 1 || *end || errno || !isfinite(value) || value < 0 || value > 1e12)
            return bz_fail(err, BZ_BAD_INPUT, "%s:%d: wants a number of 0 or more behind the name", where, number);
        *space = 0;
    }
    int n = apply(flow, WORDS[word].verb, WORDS[word].noun, name, value);
    return n ? n
             : bz_fail(err, BZ_BAD_INPUT, "%s:%d: the recording has nothing called \"%s\" that could change so", where,
                       number, name);
}

int bz_whatif_substitution(bz_flow *flow, bz_whatif_asked *asked)
{
    BZ_SCOPED(bz_buf) text = {0};
    int number = 0, changed = 0, lines = 0;
    if (!asked->text)
        return bz_whatif_because(asked, "it needs a policy: %s:file=POLICY", asked->row->name);
    if (bz_whole_read(asked->text, FILE_MOST, "is no policy: it is longer than 1 MB", &text, asked->err))
        return -1;
    for (char *line, *rest = text.data; (line = bz_whatif_line(&rest, &number)); lines++) {
        int n = read_line(flow, line, asked->text, number, asked->err);
        if (n < 0)
            return -1;
        changed += n;
    }
    if (changed > 0)
        bz_whatif_assume(asked, BZ_ASSUMED_GIVEN, asked->text, "%d changes", lines);
    return changed;
}
