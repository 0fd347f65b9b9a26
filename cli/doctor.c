/* benanza doctor: what is wrong with this machine for measuring, and what to do. */
#include "bench/bench.h"
#include "cli/db.h"
#include "report/report.h"

typedef struct doctor_job {
    const char *root, *dir;
    bool json;
} doctor_job;

static int look(void *job, const bz_list *arguments, bz_buf *out, int *status, bz_error *err)
{
    const doctor_job *j = job;
    bz_doctor d;
    if (arguments->n)
        return bz_fail(err, BZ_USAGE, "takes no arguments");
    bz_doctor_look(j->root, j->dir, &d);
    (j->json ? bz_report_doctor_json : bz_report_doctor_text)(&d, out);
    *status = d.count[BZ_HEALTH_BAD] ? BZ_FAILED : BZ_OK;
    return 0;
}

static int run_doctor(int argc, char **argv)
{
    doctor_job j = {.root = ""};
    const bz_option options[] = {
        {"json", BZ_OPTION_FLAG, &j.json, NULL, "print JSON, for programs"},
        {"root", BZ_OPTION_TEXT, &j.root, "DIR",
         "look at the /proc and /sys in this folder: a copy of another machine's"},
        {"db", BZ_OPTION_TEXT, &j.dir, "DIR", DB_HELP},
        {0},
    };
    return bz_run_command(&bz_command_doctor, options, argc, argv, look, &j);
}

const bz_command bz_command_doctor = {"doctor", "[OPTIONS]",
                                      "tell what is wrong with this machine for measuring, and what to do", run_doctor};
