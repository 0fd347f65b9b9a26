/* benanza fleet submit and nightly: the steps of a night in their order. */
#include "cli/fleet.h"

#include <time.h>
#include <unistd.h>

/* The arrays of the night. */
static int arrays_of(fleet_job *j, int64_t **id)
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
static int end_earlier(fleet_job *j, bz_error *err)
{
    const bz_queued *list;
    int64_t *id;
    int n, queued, rc = 0;
    bz_error ignored;
    if (fleet_night_load(j, &ignored))
        return 0;
    n = arrays_of(j, &id);
    if (fleet_queue(j, &list, &queued, err))
        return -1;
    for (int i = 0; i < queued; i++)
        for (int k = 0; k <= n; k++)
            if (list[i].job == (k < n ? id[k] : j->night.merge_job))
                return bz_fail(err, BZ_FAILED, "night %s is still under way (job %lld): 'benanza fleet status' tells",
                               j->night.id, (long long)list[i].job);
    if (access(fleet_path(j, "%s/report.json", j->night.id), F_OK))
        rc = fleet_collect(j, err);
    j->night = (bz_night){0};
    return rc;
}

static int prepare(fleet_job *j, bool probe, bz_error *err)
{
    const bz_fleet_names given = {j->arguments.item, j->arguments.n};
    if (fleet_open(j, false, err) || fleet_lock(j, err) || fleet_make_folder(j->fleet.folder, err) ||
        end_earlier(j, err) || fleet_load(j, &given, err) || (probe && fleet_probe(j, err)))
        return -1;
    return fleet_want(j, false, err);
}

/* ---- submit --------------------------------------------------------------------------------- */

static int submit_night(fleet_job *j, bz_buf *out, int *status, bz_error *err)
{
    (void)status;
    if (prepare(j, j->probe, err))
        return -1;
    fleet_plan_print(j, out);
    if (fleet_submit(j, 1, (int64_t)time(NULL), err))
        return -1;
    for (int i = 0; !j->json && i < j->night.n_systems; i++)
        for (int k = 0; k < j->night.system[i].n_jobs; k++)
            bz_buf_printf(out, "%s: job %lld, %d shards\n", j->night.system[i].name,
                          (long long)j->night.system[i].job[k].id, j->night.system[i].n_shards);
    return 0;
}

static int run_submit(int argc, char **argv)
{
    fleet_job j = {.command = &bz_command_fleet_submit, .max_age = -1};
    const bz_option options[] = {
        FLEET_OPTIONS(j),
        {"max-age", BZ_OPTION_INT, &j.max_age, "DAYS",
         "measure again what is older than DAYS; 0: never (what the fleet's file says)"},
        {"probe", BZ_OPTION_FLAG, &j.probe, NULL, "first ask one machine of each kind what it is"},
        {0},
    };
    return fleet_run(&j, options, argc, argv, submit_night);
}

const bz_command bz_command_fleet_submit = {"fleet submit", "[MODEL...] [OPTIONS]",
                                            "submit a job array for each kind of machine, and a job that merges",
                                            run_submit};

/* ---- nightly -------------------------------------------------------------------------------- */

static void wait_for_arrays(fleet_job *j, double deadline)
{
    int64_t *id;
    int n = arrays_of(j, &id);
    if (!fleet_wait_for(j, id, n, deadline))
        return;
    bz_warn(j->command, "the night's %g hours are over: what still waits or runs is cancelled", j->fleet.hours);
    fleet_cancel(id, n);
    fleet_wait_for(j, id, n, bz_now() + 60);
}

/* One round: jobs for what is wanted, and what they brought. *any: there was something. The job that merges is there
 * for nights whose `nightly` was killed: this one merges itself, and does not wait for a place on the head node, which
 * it may well hold. */
static int run_round(fleet_job *j, int round, double deadline, bool *any, bz_error *err)
{
    int64_t *ignored;
    int before = arrays_of(j, &ignored);
    if (fleet_submit(j, round, (int64_t)time(NULL), err))
        return -1;
    *any = arrays_of(j, &ignored) > before;
    if (!*any)
        return 0;
    wait_for_arrays(j, deadline);
    if (fleet_collect(j, err) || fleet_want(j, true, err))
        return -1;
    if (j->night.merge_job)
        fleet_cancel(&j->night.merge_job, 1);
    return 0;
}

static int write_reports(fleet_job *j, const bz_fleet_report *report, bz_error *err)
{
    static const char *const NAMES[] = {"report.txt", "report.html", "report.json"};
    const bz_screen screen = bz_screen_now();
    int rc = 0;
    bz_screen_set((bz_screen){0}); /* a file has room, and no colours */
    for (int i = 0; i < 3 && !rc; i++) {
        bz_buf text = {0};
        if (i == 0)
            bz_fleet_report_text(report, 50, &text);
        else if (i == 1)
            bz_fleet_report_html(report, 1000, &text);
        else
            bz_fleet_report_json(report, &text); /* the last one: it tells that the night is over */
        rc = bz_whole_write(fleet_path(j, "%s/%s", j->night.id, NAMES[i]), &text, err);
        bz_buf_free(&text);
    }
    bz_screen_set(screen);
    return rc;
}

static int nightly(fleet_job *j, bz_buf *out, int *status, bz_error *err)
{
    bz_fleet_report report;
    bool any = true;
    if (prepare(j, true, err))
        return -1;
    double deadline = bz_now() + 3600 * j->fleet.hours;
    for (int round = 1; any && round <= (int)j->fleet.rounds && bz_now() < deadline; round++)
        if (run_round(j, round, deadline, &any, err))
            return -1;
    if (!j->night.id) {
        fleet_plan_print(j, out);
        return 0;
    }
    if (fleet_report_make(j, j->fleet.tolerance, &report, err) || write_reports(j, &report, err))
        return -1;
    if (j->json)
        bz_fleet_report_json(&report, out);
    else
        bz_fleet_report_text(&report, 12, out);
    *status = report.regressions || report.left ? BZ_INCOMPLETE : BZ_OK;
    return 0;
}

static int run_nightly(int argc, char **argv)
{
    fleet_job j = {.command = &bz_command_fleet_nightly, .max_age = -1};
    const bz_option options[] = {
        FLEET_OPTIONS(j),
        {"max-age", BZ_OPTION_INT, &j.max_age, "DAYS",
         "measure again what is older than DAYS; 0: never (what the fleet's file says)"},
        {0},
    };
    return fleet_run(&j, options, argc, argv, nightly);
}

const bz_command bz_command_fleet_nightly = {"fleet nightly", "[MODEL...] [OPTIONS]",
                                             "plan, submit, wait, merge and report in one go, for a timer",
                                             run_nightly};
