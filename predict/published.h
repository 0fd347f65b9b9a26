/* published: tables of times per layer that others published. Read by 'benanza db import'; here because layers become
 * problems, of which the database knows nothing. */
#ifndef BZ_PREDICT_PUBLISHED_H
#define BZ_PREDICT_PUBLISHED_H

#include "perfdb/perfdb.h"

/* Whether a file is such a table, by its first line: "batch model layer type ms" with tabs between. */
bool bz_published_is(const char *path);

/* Adds the records of one. Its models are in the folder `models`, as MODEL.onnx. `system` names the system; NULL: the file's name
 * does, as GPU.tsv or GPU.tsv.gz with _ for spaces. Rows that belong to no layer or problem are counted as bad. */
int bz_published_import(bz_perfdb *db, const char *path, const char *models, const char *system,
                        bz_perfdb_import_report *report, bz_error *err);

#endif
