/* A replay on this machine: its plan from a file, its program built and run. */
#include "base/progress.h"
#include "base/whole.h"
#include "bench/bench.h"
#include "replay/replay.h"
#include "transfer/transfer.h"

#include <stdio.h>

int bz_replay_follow_file(bz_replay_plan *p, const char *path, bz_error *err)
{
    BZ_SCOPED(bz_buf) text = {0};
    int rc = bz_whole_read(path, 64 << 20, "is no plan", &text, err);
    if (!rc && bz_replay_follow(p, bz_buf_text(&text), text.len, err))
        rc = bz_fail_in(err, "%s", path);
    return rc;
}

const bz_peaks *bz_replay_peaks(bz_perfdb *db, const bz_system *system, const bz_setting *setting, bz_arena *arena)
{
    bz_peaks *peaks = BZ_NEW(arena, bz_peaks, 1);
    const bz_system_facts *facts;
    bz_error none;
    if (system && !bz_transfers_facts(db, system, arena, &facts, &none))
        bz_peaks_read(facts, setting, arena, peaks);
    return peaks;
}

static int run_program(const bz_replay_plan *p, const bz_replay_run *r, const char *folder, bz_replay_result *out,
                       bz_error *err)
{
    char program[3300], threads[24], steps[24], plans[BZ_FOLDER_MAX + 8], *argv[20] = {program, "--threads", threads};
    int n = 3;
    const struct {
        const char *option, *value;
    } GIVEN[] = {{"--time-limit", r->time_limit},
                 {"--inputs", r->inputs},
                 {"--outputs", r->outputs},
                 {"--plans", r->db ? plans : NULL},
                 {"--lock-clock", bz_setting_clock(&p->setting)},
                 {"--steps", r->steps ? steps : NULL}};
    snprintf(program, sizeof program, "%s/build/replay", folder);
    snprintf(threads, sizeof threads, "%d", p->setting.threads);
    snprintf(steps, sizeof steps, "%lld", (long long)r->steps);
    if (r->db)
        snprintf(plans, sizeof plans, "%s/plans", bz_perfdb_dir(r->db));
    for (size_t i = 0; i < sizeof GIVEN / sizeof *GIVEN; i++)
        if (GIVEN[i].value) {
            argv[n++] = (char *)GIVEN[i].option;
            argv[n++] = (char *)GIVEN[i].value;
        }
    if (r->check)
        argv[n++] = (char *)"--check";
    if (r->graph)
        argv[n++] = (char *)"--graph";
    BZ_SCOPED(bz_buf) text = {0};
    bz_progress progress = bz_progress_start("running the replay", 0);
    int rc = bz_bench_output(argv, &text, err);
    bz_progress_end(&progress);
    if (rc)
        bz_fail(err, BZ_FAILED, "%s: did not end well", program);
    return rc || bz_replay_read(p, bz_buf_text(&text), text.len, out, err) ? -1 : 0;
}

int bz_replay_run_here(const bz_replay_plan *p, const bz_replay_run *r, bz_replay_result *out, bz_error *err)
{
    char folder[BZ_FOLDER_MAX];
    if (r->folder)
        snprintf(folder, sizeof folder, "%s", r->folder);
    else if (bz_folder_make(folder, err))
        return -1;
    int rc = bz_replay_generate(p, folder, err);
    if (!rc && !r->write) {
        if (bz_bench_build(folder, err))
            return -1;
        rc = run_program(p, r, folder, out, err);
    }
    if (!r->folder)
        bz_folder_remove(folder);
    return rc;
}
