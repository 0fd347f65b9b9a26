/* What each change of `benanza whatif --list`, also with its parameters, makes of the small recordings of tests/cases and of recordings a number beside
 * them, by records and without. whatif_changes.txt has a hash for each (seen.h). */
#include "whatif/whatif.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "near_recordings.h"

enum { NUMBERS = 7 };

static bz_whatif_records records = {.setting = {1, BZ_CACHE_HOT, ""}, .name = "records of testbox@onednn2.6.3"},
                         device = {.setting = {1, BZ_CACHE_HOT, ""}, .name = "v100", .device = "v100"};

/* One or two, done one after the other. */
static const char *const CHANGES[][2] = {
    {"half-precision"},
    {"half-precision:compute=2..4,memory=2,copies=2,conversions=2"},
    {"tf32"},
    {"tf32:compute=3"},
    {"best-algorithms"},
    {"fusion"},
    {"prepacked-weights"},
    {"library"},
    {"library:layers=conv_batchnorm leaves gemm"},
    {"products:type=bf16"},
    {"products:type=f16"},
    {"joined"},
    {"joined:layers=blocked pads constants leaves conv"},
    {"framework"},
    {"threads:n=2"},
    {"ideal"},
    {"ideal:framework=0"},
    {"cuda-graph"},
    {"cuda-graph:node=2,recorder=1,pauses=1,usual=3"},
    {"fused-optimizer:time=0.5"},
    {"prefetch"},
    {"copies-overlapped"},
    {"device:times=3"},
    {"host:times=0.5"},
    {"link:times=4,fixed=0.5"},
    {"streams:streams=2,overlap=1,event=3"},
    {"batch:times=4"},
    {"batch:times=0.5,floor=2,room=2,between=0.5,caches=1"},
    {"system=t4"},
    {"system=testbox@onednn3.1"},
    {"system:floor=2,name=v100"},
    {"restructured-norm:times=3"},
    {"restructured-norm:literal=1"},
    {"data-parallel:workers=4,gbps=3,mb=0.05,bucket=0.01,first=0.002,latency=5,efficiency=0.7"},
    {"data-parallel:workers=8,gbps=20,mb=0.1,tree=1,latency=2"},
    {"priority-exchange:workers=3,gbps=5,mb=0.1,slice=0.02,latency=3"},
    {"priority-exchange:workers=3,mb=0.1,slice=0.03,priority=0,literal=1"},
    {"data-parallel:workers=4,mb=0.3",
     "blueconnect:workers1=4,gbps1=40,workers2=3,gbps2=7,workers3=2,gbps3=2,latency=4"},
    {"data-parallel:workers=4,mb=0.3", "gradient-compression:ratio=0.01,gbs=100,compress=2,decompress=3"},
    {"offload:mb_stored=2,gbs=5"},
    {"offload:mb_stored=1,gbs=20,all=1"},
    {"encoded-activations:bits=2,sparse=3"},
    {"encoded-activations:lossy=1,reduce=2"},
    {"checkpoints"},
    {"checkpoints:segments=3"},
    {"script:file=whatif-script/change.txt"},
    {"half-precision", "cuda-graph"},
    {"cuda-graph", "device"},
    {"fusion", "best-algorithms"},
    {"batch", "system=t4"},
    {"streams:batch=1,file=analyze/branches.onnx"},
    {"substitution:file=whatif-script/wrong.txt"},
};

static void say_whatif(const bz_whatif *w, bz_buf *out)
{
    bz_buf_printf(out, "%lld %lld, %.4g %.4g %u\n", (long long)w->measured, (long long)w->simulated, w->spread,
                  w->noise, w->steady);
    for (int i = 0; i < w->n; i++) {
        const bz_prediction *p = &w->prediction[i];
        bz_buf_printf(out, "%s %d: %lld (%lld to %lld), %lld, %s, %s\n", p->name, p->changed, (long long)p->time,
                      (long long)p->low, (long long)p->high, (long long)p->gain, p->because ? p->because : "",
                      p->unsure ? p->unsure : "");
        bz_buf_printf(out, "  %lld %lld %lld %lld, %lld\n", (long long)p->split.host, (long long)p->split.device,
                      (long long)p->split.both, (long long)p->split.neither, (long long)p->critical.time);
        for (int k = 0; k < p->n_assumed; k++)
            bz_buf_printf(out, "  %s (%s)\n", p->assumed[k].what, p->assumed[k].from ? p->assumed[k].from : "");
    }
}

static void say(bz_trace *t, seen *s, void *user)
{
    const bz_whatif_records *by = user;
    bz_arena arena = {0};
    bz_error err;
    bz_trace_leave_disturbed(t);
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++) {
        bz_whatif_shown *shown = BZ_NEW(&arena, bz_whatif_shown, 1); /* what it holds ends with the arena */
        const bz_whatif_question q = {.change = CHANGES[i], .n = CHANGES[i][1] ? 2 : 1, .force = true, .records = by};
        if (bz_whatif_ask(t, &q, &arena, shown, &err))
            bz_buf_printf(&s->text, "%s: %s\n", CHANGES[i][0], err.text);
        else
            say_whatif(&shown->whatif, &s->text);
    }
    bz_arena_free(&arena);
}

static void say_recording(const char *name, seen *s)
{
    near_recordings(name, NUMBERS, 0, s, say, strstr(name, ".log") ? &records : &device);
}

int main(int argc, char **argv)
{
    static const char *const NAMES[] = {
        "whatif/steps.json",
        "whatif-unrecorded/slowed.json",
        "whatif-operators/trace.json",
        "whatif-one/one.json",
        "analyze-recording/run.json",
        "analyze-tf32/run.json",
        "analyze-optimizer-step/trace.json",
        "analyze-written-out-operators/trace.json",
        "analyze-allocates/run.json",
        "profile-tables/run.json",
        "analyze-profile/slow.log",
        "analyze-written-out/once.log",
        "analyze-log-alone/activations.log",
        "program-3",
        "program-8",
        "program-13",
        "program-18",
        "program-23",
        "program-28",
    };
    char folder[] = "/tmp/benanza-test-XXXXXX", path[64];
    bz_error err;
    bz_perfdb_import_report imported = {0};
    if (chdir(BENANZA_SOURCE "/tests/cases") || !mkdtemp(folder) ||
        bz_perfdb_open(&records.db, folder, &(bz_perfdb_options){0}, &err) ||
        bz_perfdb_import(records.db, BENANZA_SOURCE "/tests/cases/analyze/records.jsonl", NULL, &imported, &err) ||
        bz_perfdb_system(records.db, "testbox@onednn2.6.3", &records.system, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    device.db = records.db;
    int wrong = seen_main(argc, argv, NAMES, sizeof NAMES / sizeof *NAMES, say_recording,
                          BENANZA_SOURCE "/tests/unit/whatif_changes.txt");
    bz_perfdb_close(records.db);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "lock.mdb" : "data.mdb");
        unlink(path);
    }
    rmdir(folder);
    return wrong;
}
