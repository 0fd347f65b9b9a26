/* benanza doctor: what is wrong with this machine for measuring, and what to do. */
#include "bench/bench.h"
#include "cli/planning.h"
#include "report/report.h"

#include <errno.h>
#include <sys/stat.h>

typedef struct doctor_job {
    bz_job job;
    const char *root;
} doctor_job;

static const bz_option OPTIONS[] = {
    BZ_JSON_OPTION,
    BZ_VALUE("root", doctor_job, root, "DIR", "look at the /proc and /sys in this folder: a copy of another machine's"),
    PLANNING_DEVICE_OPTION,
    BZ_DB_OPTION,
    {0},
};

static int look(void *job, bz_buf *out, bz_error *err)
{
    doctor_job *j = job;
    bz_doctor d;
    struct stat st;
    if (j->job.arguments.n)
        return bz_fail(err, BZ_USAGE, "takes no arguments");
    if (j->root && stat(j->root, &st))
        return bz_path_fail(j->root, "cannot be looked at", errno, err);
    if (j->root && !S_ISDIR(st.st_mode))
        return bz_fail(err, BZ_BAD_INPUT, "%s: is no folder: --root takes one that holds a copy of /proc and /sys",
                       j->root);
    bz_doctor_look(j->root ? j->root : "", j->job.db, &d);
    (j->job.json ? bz_report_doctor_json : bz_report_doctor_text)(&d, out);
    j->job.status = d.count[BZ_HEALTH_BAD] ? BZ_FAILED : BZ_OK;
    return 0;
}

const bz_command bz_command_doctor =
    BZ_COMMAND("doctor", "[OPTIONS]", "tell what is wrong with this machine for measuring, and what to do", OPTIONS,
               doctor_job, look);
