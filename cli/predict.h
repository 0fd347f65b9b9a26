/* benanza predict: what its two files share. */
#ifndef BZ_CLI_PREDICT_H
#define BZ_CLI_PREDICT_H

#include "cli/cli.h"
#include "report/report.h"

typedef struct predict_profile {
    bz_job *job;
    const bz_list *files;  /* of one recording */
    const char *from;      /* NULL: the recording tells */
    const char *const *to; /* [n] */
    int n;
    bz_perfdb *db;
    bz_setting setting;
} predict_profile;

int predict_recording(const predict_profile *p, const bz_price_list *prices, bz_form form, bz_buf *out, bz_error *err);

#endif
