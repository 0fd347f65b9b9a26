/* Fusion patterns in memory. Private to modelproc/. */
#ifndef BZ_PATTERN_H
#define BZ_PATTERN_H

#include "modelproc/modelproc.h"

enum { MAX_STEPS = 32, MAX_OPERANDS = 8, MAX_NAMES = 32 };

typedef enum { OPERAND_STEP, OPERAND_VALUE, OPERAND_CONST, OPERAND_VECTOR, OPERAND_NONE, OPERAND_ANY } operand_kind;

typedef struct {
    operand_kind kind;
    int index; /* of the step, or of the free name */
} operand;

typedef struct {
    const char **ops; /* operator types and kinds that fit */
    int n_ops, n_operands;
    bool shared; /* others may read its result, too; of a kept one they do */
    bool kept;
    operand operands[MAX_OPERANDS];
} step;

typedef struct {
    const char *name;
    step steps[MAX_STEPS]; /* the last one makes the result */
    int n_steps, n_names;
    int params[MAX_OPERANDS]; /* free names that stand for a user's operands */
    int n_params;
} pattern;

enum { MAX_SETS = 64 };

typedef struct {
    const char *name;
    const char **ops;
    int n;
} op_set;

struct bz_patterns {
    pattern *item;
    int n;
    op_set sets[MAX_SETS];
    int n_sets;
    bz_arena arena;
};

#endif
