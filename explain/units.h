/* The parts of question 6. For explain/ and analysis/. */
#ifndef BZ_EXPLAIN_UNITS_H
#define BZ_EXPLAIN_UNITS_H

#include "explain/explain.h"

enum { BZ_UNIT_WORDS = 24 };

/* A line of units.txt. */
typedef struct bz_unit_rule {
    const char *word[BZ_UNIT_WORDS];
    int n;
} bz_unit_rule;

typedef struct bz_unit_rules {
    bz_unit_rule *rule;
    int n;
} bz_unit_rules;

extern const char bz_units_text[];
void bz_unit_rules_read(const char *text, bz_arena *arena, bz_unit_rules *out);

/* The unit that a kernel or an implementation of this name ran on; NULL for none. */
const char *bz_unit_of_name(const bz_unit_rules *rules, const char *name);

/* The unit of a log's math mode and algorithm, likewise. */
const char *bz_unit_of_log(const bz_unit_rules *rules, const char *math, const char *algorithm);

/* What a system has. */
typedef struct bz_unit_system {
    const char *unit; /* the best; NULL for none */
    double capability;
} bz_unit_system;

/* Of a processor its instruction sets; of a GPU its name, and its compute capability (0: as the table of GPUs has it). */
bz_unit_system bz_unit_of_system(const bz_unit_rules *rules, const char *isa, const char *gpu, double capability);

/* What its inputs and outputs must be multiples of for a type; 0: it does not multiply that. */
int bz_unit_multiple(const bz_unit_rules *rules, const bz_unit_system *system, const char *dtype);

/* A product as far as the rules ask. Channels are those of a group; 0: not known. */
typedef struct bz_unit_product {
    const char *dtype, *math; /* math: of a log, or NULL */
    int64_t in, out, group;
    bool packed; /* NCHW, by the strides */
} bz_unit_product;

/* Why the product did not use the system's unit, as it could; NULL where it could not. *channels: their number is a reason. */
const char *bz_unit_why(const bz_unit_rules *rules, const bz_unit_system *system, const bz_unit_product *p,
                        bz_arena *arena, bool *channels);

/* A way of the model: labels each layer, counts the conversions. */
int bz_unit_way_make(const bz_bound *bound, const bz_unit_try *other, bz_perfdb *db, const bz_system *system,
                     bz_arena *arena, bz_unit_way *out, bz_error *err);

#endif
