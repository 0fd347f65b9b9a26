/* The steps of a night in their order. */
#include "fleet/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* The arrays of the night. */
static int arrays_of(bz_fleet_job *j, int64_t **id)
{
    int n = 0, most = 0;
    for (int i = 0; i < j->night.n_systems; i++)
        most += j->night.system[i].n_jobs;
    *id = BZ_NEW(&j->arena, int64_t, most);
    for (int i = 0; i < j->night.n_systems; i++)
        for (int k = 0; k < j->night.system[i].n_jobs; k++)
            (*id)[n++] = j->night.system[i].job[k].id;
    return n;
}

/* A night that still runs would be planned for twice. What is left of one whose `nightly` was killed is not lost. */
static int end_earlier(bz_fleet_job *j, bz_error *err)
{
    const bz_queued *list;
    int64_t *id;
    int n, queued, rc = 0;
    bz_error ignored;
    if (bz_fleet_night_load(j, &ignored))
        return 0;
    n = arrays_of(j, &id);
    if (bz_fleet_queue(j, &list, &queued, err))
        return -1;
    for (int i = 0; i < queued; i++)
        for (int k = 0; k <= n; k++)
            if (list[i].job == (k < n ? id[k] : j->night.merge_job))
                return bz_fail(err, BZ_FAILED, "night %s is still under way (job %lld): 'benanza fleet status' tells",
                               j->night.id, (long long)list[i].job);
    if (access(bz_fleet_path(j, "%s/report.json", j->night.id), F_OK))
        rc = bz_fleet_collect(j, err);
    j->night = (bz_night){0};
    return rc;
}

/* The lock lies beside the database, which is on a local disk: locks are reliable there. */
static int take_lock(bz_fleet_job *j, bz_error *err)
{
    BZ_SCOPED(bz_buf) path = {0};
    bz_buf_printf(&path, "%s/fleet.lock", bz_perfdb_dir(j->db));
    int rc = 0;
    int fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    j->lock = fd + 1;
    if (fd < 0)
        rc = bz_fail(err, BZ_FAILED, "%s: cannot be written: %s", path.data, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB))
        rc = bz_fail(err, BZ_FAILED, "%s: another night is under way: 'benanza fleet status' tells how far it is",
                     path.data);
    return rc;
}

int bz_fleet_prepare(bz_fleet_job *j, const bz_fleet_names *models, bool probe, bz_error *err)
{
    if (bz_fleet_open(j, false, err) || take_lock(j, err) || bz_fleet_make_folder(j->fleet.folder, err) ||
        end_earlier(j, err) || bz_fleet_load(j, models, err) || (probe && bz_fleet_probe(j, err)))
        return -1;
    return bz_fleet_want(j, false, err);
}

static void wait_for_arrays(bz_fleet_job *j, double deadline)
{
    int64_t *id;
    int n = arrays_of(j, &id);
    if (!bz_fleet_wait_for(j, id, n, deadline))
        return;
    bz_fleet_warn(j, "the night's %g hours are over: what still waits or runs is cancelled", j->fleet.hours);
    bz_fleet_cancel(id, n);
    bz_fleet_wait_for(j, id, n, bz_now() + 60);
}

/* One round: jobs for what is wanted, and what they brought. *any: there was something. The job that merges is there
 * for nights whose `nightly` was killed: this one merges itself, and does not wait for a place on the head node, which
 * it may well hold. */
static int run_round(bz_fleet_job *j, int round, double deadline, bool *any, bz_error *err)
{
    int64_t *ignored;
    int before = arrays_of(j, &ignored);
    if (bz_fleet_submit(j, round, (int64_t)time(NULL), err))
        return -1;
    *any = arrays_of(j, &ignored) > before;
    if (!*any)
        return 0;
    wait_for_arrays(j, deadline);
    if (bz_fleet_collect(j, err) || bz_fleet_want(j, true, err))
        return -1;
    if (j->night.merge_job)
        bz_fleet_cancel(&j->night.merge_job, 1);
    return 0;
}

static int write_reports(bz_fleet_job *j, const bz_fleet_report *report, bz_error *err)
{
    static const char *const NAMES[] = {"report.txt", "report.html", "report.json"};
    const bz_screen screen = bz_screen_now();
    int rc = 0;
    bz_screen_set((bz_screen){0}); /* a file has room, and no colours */
    for (int i = 0; i < 3 && !rc; i++) {
        BZ_SCOPED(bz_buf) text = {0};
        if (i == 0)
            bz_fleet_report_text(report, 50, &text);
        else if (i == 1)
            bz_fleet_report_html(report, 1000, &text);
        else
            bz_fleet_report_json(report, &text); /* the last one: it tells that the night is over */
        rc = bz_whole_write(bz_fleet_path(j, "%s/%s", j->night.id, NAMES[i]), &text, err);
    }
    bz_screen_set(screen);
    return rc;
}

int bz_fleet_nightly(bz_fleet_job *j, const bz_fleet_names *models, bz_fleet_report *report, bz_error *err)
{
    bool any = true;
    *report = (bz_fleet_report){0};
    if (bz_fleet_prepare(j, models, true, err))
        return -1;
    double deadline = bz_now() + 3600 * j->fleet.hours;
    for (int round = 1; any && round <= (int)j->fleet.rounds && bz_now() < deadline; round++)
        if (run_round(j, round, deadline, &any, err))
            return -1;
    if (!j->night.id)
        return 0;
    return bz_fleet_report_make(j, j->fleet.tolerance, report, err) || write_reports(j, report, err) ? -1 : 0;
}
