/* Every number by which a recording is known without a model: what it stands for, where it is from, and what a value twice as large would change.
 * Private to analysis/. All are chosen: tests/cases holds what they tell of recordings. */
#ifndef BZ_ANALYSIS_CONSTANTS_H
#define BZ_ANALYSIS_CONSTANTS_H

/* Twice what a model's work and a recording's have in common in this order, over what both have: from here on they fit, and where each layer was
 * recorded as an operator; and models so near to the best are named beside it. Measured: of 18 networks of torchvision by PyTorch's operators those
 * that are bundled have 1, and SqueezeNet 1.0 has 0.93 of SqueezeNet 1.1. Half of the first: networks of another depth fit. Twice the last: more
 * models are named as equal. */
static const double FITS = 0.9, FITS_BY_LAYER = 0.95, EQUALLY = 0.002;

/* Share of the multiplications that have to be in products of the model's sizes, one factor for the batch apart, where calls tell sizes; and how far
 * off, as a share, a size may be: rows of an image that is no multiple of all strides. Measured: 15 programs of torchvision on a processor have
 * 0.97 to 1 of their own model's, and of others', transformers apart, up to 0.75 (MnasNet of MobileNet v2). Half of the first: each network is
 * several. Twice the second: layers of one network count for each other. */
static const double SIZES_ALIKE = 0.8, SIZE_OFF = 0.15;

enum {
    /* Sequences of a step of a language model up to which its products are limited by the memory, which gives each weight once for all of them.
     * Reasoned: from an A100 to a B200 a device multiplies 150 to 290 times in 16 bits while its memory gives one weight. Twice: steps of an A100 that
     * are limited by arithmetic are told to wait for the memory. */
    SEQUENCES_BY_MEMORY = 128,

    /* Pieces of work by which a model can be told from others, and by which iterations are counted anew. Twice: AlexNet fits nothing. */
    LEAST_TOLD = 5,
    LEAST_RECOUNTED = 4,

    /* An iteration that was found is at most so many of the model's: an epoch of small batches. Twice: nothing that was met. */
    MOST_TIMES = 4096
};

/* So much of an iteration counts as one. Half: recordings that hold a part of one are counted anew. */
static const double WHOLE = 0.9;

/* Share of an iteration that launches must take which load code, to be told. Chosen. Twice: a recording of one iteration has a fifth that no next one has. */
static const double LOADING = 0.1;

/* Share of the latency from which on equal layers are worth a line of the table of slower ones. Chosen. Twice: shorter tables. */
static const double WORTH_A_LINE = 0.005;

#endif
