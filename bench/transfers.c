/* What moving data costs, measured where the database lacks it. */
#include "bench/bench.h"
#include "transfer/transfer.h"

static int measure(bz_bench *run, int threads, const bz_system_facts *facts, const char *const *text, int n,
                   bz_error *err)
{
    bz_bench once = *run;
    once.setting.threads = threads;
    int rc = n ? bz_bench_texts(text, n, facts->gpu ? "cudart" : "memory", &once, err) : 0;
    run->stopped_by = once.stopped_by;
    return rc;
}

/* Leaves out what was slower than the record that there is. */
static int keep_faster(void *user, bz_record *r, bz_error *err)
{
    bz_bench *run = user;
    BZ_SCOPED(bz_arena) arena = {0};
    bz_record *known;
    if (bz_perfdb_find(run->db, run->system, r->problem, &r->variant, &r->setting, &arena, &known, err))
        return -1;
    return known && known->status == BZ_RECORD_OK && !(r->status == BZ_RECORD_OK && r->median < known->median);
}

/* Others' work makes a call slower, and never faster: of what is measured again the faster is kept. */
static int measure_again(bz_bench *run, const bz_system_facts *facts, const char *const *text, int n, bz_error *err)
{
    bz_bench once = *run;
    once.all = true;
    once.each = keep_faster;
    once.user = &once;
    int rc = measure(&once, once.setting.threads, facts, text, n, err);
    run->stopped_by = once.stopped_by;
    return rc;
}

enum {
    FINER_ROUNDS = 3, /* the middle, quarters, eighths */
    ROUNDS = 7,       /* the others' bursts last a second or two, a round about as long */
};

/* The sizes of the list, and more of them where a curve bends. What a larger size contradicts is measured again. */
static int measure_curves(bz_bench *run, const bz_system_facts *facts, bz_arena *arena, bz_error *err)
{
    const char *const *finer, *const *disturbed = NULL;
    int n = bz_transfers_list(facts, run->setting.threads, false, arena, &finer), n_disturbed = 0;
    for (int round = 0; round <= ROUNDS && (!round || n || n_disturbed); round++) {
        bz_transfers found;
        if (measure(run, run->setting.threads, facts, finer, n, err) ||
            measure_again(run, facts, disturbed, n_disturbed, err) ||
            bz_transfers_read(run->db, run->system, facts, &run->setting, arena, &found, err))
            return -1;
        n = round < FINER_ROUNDS ? bz_transfers_finer(&found, facts, arena, &finer) : 0;
        n_disturbed = bz_transfers_disturbed(&found, facts, arena, &disturbed);
    }
    return 0;
}

/* The texts are the same for each count. */
static int measure_together(bz_bench *run, const bz_system_facts *facts, bz_arena *arena, bz_error *err)
{
    const char *const *text;
    int count[BZ_TRANSFER_COUNTS], counts = bz_transfers_counts(facts, count);
    int n = bz_transfers_together(facts, arena, &text);
    for (int i = 0; i < counts; i++)
        if (measure(run, count[i], facts, text, n, err))
            return -1;
    return 0;
}

/* Loads that wait for each other tell how large the caches are, these at which sizes the others are measured. */
int bz_bench_transfers(bz_bench *run, bool together, bz_arena *arena, const bz_system_facts **facts, bz_error *err)
{
    const char *const *text;
    const bz_system_facts *shown = bz_system_facts_read(run->system->details, arena);
    int n = bz_transfers_list(*facts, run->setting.threads, true, arena, &text);
    if (measure(run, run->setting.threads, *facts, text, n, err) ||
        bz_transfers_caches(run->db, run->system, shown, arena, facts, err) || measure_curves(run, *facts, arena, err))
        return -1;
    return together ? measure_together(run, *facts, arena, err) : 0;
}
