/* What commands that take models have in common: the options that bind dimensions, and loading. */
#ifndef BZ_CLI_MODEL_H
#define BZ_CLI_MODEL_H

#include "cli/cli.h"
#include "modelproc/modelproc.h"
#include "training/training.h"

typedef struct model_settings {
    int64_t batch, trips;
    bz_list dims;
    bool ignore_declared;
    bool as_written;                  /* the graph's nodes go into other files: a batch that stands in them stays */
    const char *train, *loss, *mixed; /* --train's optimizer, "" where none is named; NULL: no training */
    bool fused;
    int64_t parts;
} model_settings;

/* `m`: where the model_settings are in the job. */
#define MODEL_OPTIONS(job, m)      MODEL_BATCH_OPTION(job, m), MODEL_SHAPE_OPTIONS(job, m)
#define MODEL_BATCH_OPTION(job, m) BZ_COUNT("batch", job, m.batch, "N", "batch size: the first dimension of the inputs")
#define MODEL_SHAPE_OPTIONS(job, m)                                                                                    \
    BZ_LIST("dim", job, m.dims, "NAME=N,…",                                                                            \
            "give a dimension that the model leaves open its size; NAME is the dimension's name, INPUT:AXIS, or "      \
            "INPUT with "                                                                                              \
            "a shape (--dim x=1x3x224x224); several sizes have commas between; may be repeated"),                      \
        BZ_COUNT("trips", job, m.trips, "N", "let a loop run N times where the model does not say how often (1)"),     \
        BZ_FLAG("ignore-declared", job, m.ignore_declared,                                                             \
                "infer all shapes from those of the inputs, and ignore those that the file declares")

/* Commands whose models may be trained. */
#define TRAINING_OPTIONS(job, m)                                                                                       \
    BZ_MAYBE("train", job, m.train, "sgd|momentum|adam|adamw",                                                         \
             "make it an iteration of training: forward, loss, backward, and the update of this optimizer (sgd)"),     \
        BZ_CHOICE("loss", job, m.loss, "auto|classes|squares",                                                         \
                  "cross entropy over classes, or mean of the squared distance (by the shape of the result)",          \
                  .with = "train"),                                                                                    \
        BZ_COUNT("checkpoint", job, m.parts, "N",                                                                      \
                 "cut the forward pass into N parts, keep what passes between them, and compute the rest "             \
                 "again",                                                                                              \
                 .with = "train"),                                                                                     \
        BZ_CHOICE("mixed", job, m.mixed, "bf16|f16", "compute in this type; loss, weights and their update stay f32",  \
                  .with = "train"),                                                                                    \
        BZ_FLAG("fused-update", job, m.fused, "one update for all weights, not one for each", .with = "train")

#define MODEL_READS    "batch dim trips ignore-declared "
#define TRAINING_READS "train loss checkpoint mixed fused-update "

/* How many models these are, each combination of sizes a model; 0 where there are too many. */
int models_count(const bz_list *paths, const model_settings *s);

/* The options that --train and its companions are. */
int models_training(const model_settings *s, bz_training_options *options, bz_error *err);

/* Loads and infers all, each for all combinations of sizes, until the call ends; warnings go to stderr. */
int models_load(bz_job *job, const bz_list *paths, const model_settings *s, bz_models *m, bz_error *err);

/* A graph into files: in the DOT language, and drawn. NULL: not asked for. Frees the graph. */
int models_draw(bz_buf *dot, const char *dot_path, const char *svg_path, bz_error *err);

#endif
