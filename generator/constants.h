/* Every number in plans and prices that no record tells: what it stands for, where it is from, and what a value twice as large would change.
 * Private to generator/. */
#ifndef BZ_GENERATOR_CONSTANTS_H
#define BZ_GENERATOR_CONSTANTS_H

/* How far off a record without an interval is taken to be, as a share. Reasoned: records whose spread is above 0.025 are marked as noisy. Twice:
 * intervals of imported times are twice as wide. */
static const double UNSURE = 0.025;

enum {
    /* Rows up to which a product is what reading its weights takes: of 4 multiplications for a weight of 4 bits 16 operations a byte are made,
     * and every machine whose peaks are known makes more while it reads one. Twice: products that arithmetic limits are priced by reading alone. */
    FEW_ROWS = 4,

    /* By which operands are quantized in benchmarks. Chosen. Twice, or half: other values, the same time. */
    QUANTIZED_STEPS = 16,

    /* Operands of a sum: one call for each. Chosen. Twice: longer sums become benchmarks, too. */
    MOST_OPERANDS = 64
};

#endif
