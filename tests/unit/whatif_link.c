/* Data-parallel training over a link that records of a system tell. */
#include "whatif/whatif.h"

#include "perfdb_test.h"
#include "transfer/ways.h"

static const char SYSTEM[] = "here@onednn1", DETAILS[] = "{\"device\":\"cpu\"}";

/* Messages of 20 µs and 2 GB/s. */
static void fill(bz_perfdb *db)
{
    const bz_system_facts *facts;
    bz_arena arena = {0};
    const transfer_way *w = transfer_ways;
    int64_t x[WAY_MOST_SIZES];
    while (strcmp(w->name, "tcp") != 0)
        w++;
    facts = bz_system_facts_read(DETAILS, &arena);
    for (int i = 0, n = transfer_sizes(w, facts, 1, x); i < n; i++) {
        bz_buf text = {0};
        transfer_text(w, x[i], &text);
        bz_record r = bz_record_blank();
        r.system = SYSTEM;
        r.problem = bz_buf_text(&text);
        r.variant = (bz_variant){"memory", "fast", "plain", "default"};
        r.setting = (bz_setting){1, BZ_CACHE_HOT, ""};
        r.median = r.q25 = r.q75 = r.min = r.max = r.low = r.high = 20e-6 + transfer_size(w, x[i]) / 2e9;
        r.n = r.iterations = 10;
        r.timing = BZ_TIMING_WALL;
        r.date = 1700000000;
        assert_ok(bz_perfdb_put(db, &r, 1, NULL, &err));
        bz_buf_free(&text);
    }
    bz_arena_free(&arena);
}

/* What the exchange of one bucket takes. */
static int64_t exchange(const char *text, const bz_whatif_records *records, bz_arena *arena, bz_whatif_asked *asked)
{
    bz_flow f = {.main = 0};
    bz_trace *t = bz_trace_new();
    bz_flow_add_lane(&f, "gpu", true, false);
    for (int i = 0; i < 3; i++) {
        uint32_t task = bz_flow_add(&f, BZ_TASK_KERNEL, "gemm", 0, 1000, 0);
        f.task[task].phase = (uint8_t)(i + 1);
        f.task[task].at = 1000 * (int64_t)i;
    }
    assert_ok(bz_whatif_parse(text, arena, asked, &err));
    asked->side = 1;
    asked->trace = t;
    asked->records = records;
    assert_int_equal((asked->err = &err, asked->row->apply(&f, asked)), 1);
    int64_t time = f.task[f.n - 1].duration;
    bz_flow_free(&f);
    bz_trace_free(t);
    return time;
}

static void test_measured(void **state)
{
    bz_perfdb *db;
    bz_arena arena = {0};
    bz_whatif_asked asked;
    bz_whatif_records r = {.name = "records of here"};
    static const char TEXT[] = "data-parallel:workers=4,mb=40,bucket=40,first=40,efficiency=1";
    assert_ok(bz_perfdb_open(&db, *state, &(bz_perfdb_options){0}, &err));
    assert_ok(bz_perfdb_put_system(db, SYSTEM, DETAILS, 1700000000, &err));
    r.db = db;
    assert_ok(bz_perfdb_known(db, "here", &r.system, &err));
    assert_int_equal(exchange(TEXT, &r, &arena, &asked), 48000000); /* nobody measured: 10 Gbit/s, 2 * 3 / 4 times */
    fill(db);
    assert_in_range(exchange(TEXT, &r, &arena, &asked), 30119900, 30120100); /* 6 messages of 20 µs besides */
    bool measured = false;
    for (int i = 0; i < asked.n_assumed; i++)
        measured |= asked.assumed[i].how == BZ_ASSUMED_MEASURED && strstr(asked.assumed[i].what, "TCP") &&
                    strstr(asked.assumed[i].what, "16 Gbit/s") && !strcmp(asked.assumed[i].from, r.name);
    assert_true(measured);
    char given[128];
    snprintf(given, sizeof given, "%s,gbps=20", TEXT);
    assert_int_equal(exchange(given, &r, &arena, &asked), 24000000);
    bz_perfdb_close(db);
    bz_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_measured, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
