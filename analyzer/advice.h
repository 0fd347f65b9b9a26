/* The table of advice. Private to analyzer/. */
#ifndef BZ_ANALYZER_ADVICE_H
#define BZ_ANALYZER_ADVICE_H

#include "analyzer/analyzer.h"

enum { ADVICE_LINES = 16 };

/* An advice of advice.txt: its lines, "gain" -> "cause waits". Lines that go on are joined by '\n'. */
typedef struct advice_rule {
    const char *id;
    const char *key[ADVICE_LINES], *value[ADVICE_LINES];
    int n;
} advice_rule;

typedef struct advice_framework {
    const char *name, *words; /* words: with blanks between */
} advice_framework;

typedef struct advice_table {
    advice_rule *rule;
    advice_framework *framework;
    int n, n_frameworks;
} advice_table;

extern const char bz_advice_text[];
void advice_read(const char *text, bz_arena *arena, advice_table *out);
const char *advice_line(const advice_rule *rule, const char *key, int nth); /* NULL where there is none */

/* The next of the words with blanks between; false behind the last. *words moves on. */
bool advice_word(const char **words, char out[64]);

const char *advice_framework_of(const advice_table *table, const bz_trace *trace);

#endif
