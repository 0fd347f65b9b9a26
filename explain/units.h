/* The parts of question 6. For explain/ and analysis/. */
#ifndef BZ_EXPLAIN_UNITS_H
#define BZ_EXPLAIN_UNITS_H

#include "explain/explain.h"

enum { UNIT_WORDS = 24 };

/* A line of units.txt. */
typedef struct unit_rule {
    const char *word[UNIT_WORDS];
    int n;
} unit_rule;

typedef struct unit_rules {
    unit_rule *rule;
    int n;
} unit_rules;

extern const char bz_units_text[];
void unit_rules_read(const char *text, bz_arena *arena, unit_rules *out);

/* The unit that a kernel or an implementation of this name ran on; NULL for none. */
const char *unit_of_name(const unit_rules *rules, const char *name);

/* The unit of a log's math mode and algorithm, likewise. */
const char *unit_of_log(const unit_rules *rules, const char *math, const char *algorithm);

/* What a system has. */
typedef struct unit_system {
    const char *unit; /* the best; NULL for none */
    double capability;
} unit_system;

/* Of a processor its instruction sets; of a GPU its name, and its compute capability (0: as the table of GPUs has it). */
unit_system unit_of_system(const unit_rules *rules, const char *isa, const char *gpu, double capability);

/* What its inputs and outputs must be multiples of for a type; 0: it does not multiply that. */
int unit_multiple(const unit_rules *rules, const unit_system *system, const char *dtype);

/* A product as far as the rules ask. Channels are those of a group; 0: not known. */
typedef struct unit_product {
    const char *dtype, *math; /* math: of a log, or NULL */
    int64_t in, out, group;
    bool packed; /* NCHW, by the strides */
} unit_product;

/* Why the product did not use the system's unit, as it could; NULL where it could not. */
const char *unit_why(const unit_rules *rules, const unit_system *system, const unit_product *p, bz_arena *arena);

/* A way of the model: labels each layer, counts the conversions. */
int unit_way(const bz_bound *bound, const bz_unit_try *other, bz_perfdb *db, const bz_system *system, bz_arena *arena,
             bz_unit_way *out, bz_error *err);

#endif
