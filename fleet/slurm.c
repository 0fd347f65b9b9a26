/* Slurm: batch scripts, options of sbatch, the queue. */
#include "fleet/fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bz_slurm_quote(bz_buf *out, const char *text)
{
    bz_buf_putc(out, '\'');
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            bz_buf_puts(out, "'\\''");
        else
            bz_buf_putc(out, *p);
    }
    bz_buf_putc(out, '\'');
}

/* Modules come first: what the file sets by name has the last word. */
static void put_head(const bz_fleet_system *s, bz_buf *out)
{
    bz_buf_puts(out, "#!/bin/sh\n# Written by benanza fleet.\n");
    if (s->modules.n)
        bz_buf_puts(out, "[ -r /etc/profile.d/modules.sh ] && . /etc/profile.d/modules.sh\n");
    for (int i = 0; i < s->modules.n; i++) {
        bz_buf_puts(out, "module load ");
        bz_slurm_quote(out, s->modules.item[i]);
        bz_buf_puts(out, " || exit 1\n");
    }
    for (int i = 0; i < s->environment.n; i++) {
        bz_buf_printf(out, "export %s=", s->environment.item[i]);
        bz_slurm_quote(out, s->values.item[i]);
        bz_buf_putc(out, '\n');
    }
}

void bz_slurm_script(const bz_fleet_system *s, const char *program, const char *folder, int round, bz_buf *out)
{
    BZ_SCOPED(bz_buf) place = {0};
    put_head(s, out);
    bz_buf_printf(&place, "%s/%d-", folder, round);
    bz_buf_puts(out, "shard=$(printf %03d \"$SLURM_ARRAY_TASK_ID\")\n");
    bz_slurm_quote(out, program);
    bz_buf_puts(out, " fleet work");
    if (s->scratch) {
        bz_buf_puts(out, " --scratch ");
        bz_slurm_quote(out, s->scratch);
    }
    bz_buf_putc(out, ' ');
    bz_slurm_quote(out, bz_buf_text(&place));
    bz_buf_puts(out, "\"$shard\"\n"
                     "status=$?\n"
                     "# Killed, and not by Slurm: once more, it goes on behind what it has.\n"
                     "if [ $status = 137 ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt 2 ]; then\n"
                     "    scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n"
                     "fi\n"
                     "exit $status\n");
}

void bz_slurm_probe(const bz_fleet_system *s, const char *program, const char *device, const char *file, bz_buf *out)
{
    put_head(s, out);
    bz_buf_puts(out, "exec ");
    bz_slurm_quote(out, program);
    bz_buf_puts(out, " fleet work --probe ");
    bz_slurm_quote(out, file);
    if (device) {
        bz_buf_puts(out, " --backend ");
        bz_slurm_quote(out, device);
    }
    bz_buf_putc(out, '\n');
}

void bz_slurm_merge(const char *program, const char *fleet, const char *db, const char *night, bz_buf *out)
{
    const char *const words[] = {program, "fleet", "collect", "--config", fleet, "--db", db, "--night", night};
    bz_buf_puts(out, "#!/bin/sh\n# Written by benanza fleet.\nexec");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        bz_buf_putc(out, ' ');
        bz_slurm_quote(out, words[i]);
    }
    bz_buf_putc(out, '\n');
}

void bz_slurm_options(const bz_fleet_system *s, bz_arena *arena, bz_fleet_names *argv)
{
    const struct {
        const char *name, *value;
    } options[] = {
        {"partition", s->partition}, {"gres", s->gres}, {"constraint", s->constraint},
        {"account", s->account},     {"qos", s->qos},   {"nodelist", s->nodelist},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].value)
            argv->item[argv->n++] = bz_arena_printf(arena, "--%s=%s", options[i].name, options[i].value);
    argv->item[argv->n++] = "--nodes=1";
    if (!s->shared)
        argv->item[argv->n++] = "--exclusive";
    if (s->threads > 1)
        argv->item[argv->n++] = bz_arena_printf(arena, "--cpus-per-task=%d", (int)s->threads);
    for (int i = 0; i < s->options.n; i++)
        argv->item[argv->n++] = s->options.item[i];
}

int64_t bz_slurm_job(const char *text)
{
    char *end;
    long long v = strtoll(text, &end, 10);
    return end != text && v > 0 && v < INT32_MAX && (!*end || *end == '\n' || *end == ';') ? v : 0;
}

int bz_slurm_queue(const char *text, bz_arena *arena, const bz_queued **out)
{
    int n = 0, lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    bz_queued *list = BZ_NEW(arena, bz_queued, lines + 1);
    for (const char *p = text; *p;) {
        const char *end = p + strcspn(p, "\n");
        char line[256], task[32] = "", job[32] = "";
        bz_queued *q = &list[n];
        snprintf(line, sizeof line, "%.*s", (int)(end - p < 255 ? end - p : 255), p);
        if (sscanf(line, "%31s %31s %15s %63s", job, task, q->state, q->node) >= 3 && (q->job = bz_slurm_job(job))) {
            char *rest;
            long v = strtol(task, &rest, 10);
            q->task = rest != task && !*rest && v >= 0 && v < 100000 ? (int)v : -1;
            n++;
        } else {
            *q = (bz_queued){0};
        }
        p = *end ? end + 1 : end;
    }
    *out = list;
    return n;
}
