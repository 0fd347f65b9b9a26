/* The page: what stands in models and profiles is data in it, whatever it is; what is there is shown. */
#include "report/report.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cJSON.h>
#include <cmocka.h>

#include "tests/unit/drawing.h"

#define HOSTILE "</script><script>alert(1)</script><!--\"'&\\ {{css}}"

typedef struct world {
    bz_model *model;
    bz_layers *layers;
    bz_arena arena;
    bz_peaks peaks;
    bz_analysis analysis;
} world;

static const bz_system_facts FACTS = {.text = "{\"cpu\":\"" HOSTILE};
static const char *const PROBLEM[] = {HOSTILE};
static const bz_alternative ALTERNATIVE = {.text = PROBLEM, .n = 1};

/* A bound of a real graph whose names are not nice, each layer 1 ms. */
static void set_up(world *w)
{
    bz_error err = {0};
    *w = (world){.peaks = {.why = "nobody measured"}};
    if (bz_model_load(BENANZA_SOURCE "/tests/cases/analyze/branches.onnx", &w->model, &err) ||
        bz_layers_infer(w->model, &(bz_infer_options){.batch = 1}, &w->layers, &err))
        fail_msg("%s", err.text);
    bz_bound *b = &w->analysis.bound;
    int n = w->layers->n, *path = BZ_NEW(&w->arena, int, 1);
    *b = (bz_bound){.model = HOSTILE,
                    .system = HOSTILE,
                    .facts = &FACTS,
                    .setting = {1, BZ_CACHE_HOT, ""},
                    .layers = w->layers,
                    .dag = bz_dag_build(w->layers),
                    .peaks = &w->peaks,
                    .layer = BZ_NEW(&w->arena, bz_bound_layer, n),
                    .n = n,
                    .seconds = BZ_NEW(&w->arena, double, n),
                    .sequential = n * 1e-3,
                    .hardware = NAN,
                    .path = {1e-3, path, 1}};
    b->coverage = (bz_coverage_sum){.layers = n, .measured = n};
    for (int i = 0; i < n; i++) {
        w->layers->layer[i].name = HOSTILE;
        b->seconds[i] = 1e-3;
        b->layer[i] = (bz_bound_layer){.layer = &w->layers->layer[i],
                                       .node = i,
                                       .times = 1,
                                       .price = {.seconds = 1e-3, .alternative = &ALTERNATIVE},
                                       .variant = HOSTILE,
                                       .runner_up = NAN,
                                       .hardware = NAN};
    }
}

static void tear_down(world *w)
{
    bz_layers_free(w->layers);
    bz_model_free(w->model);
    bz_arena_free(&w->arena);
}

static int count(const char *text, const char *needle)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, needle)); p += strlen(needle))
        n++;
    return n;
}

/* Where a page's data begins and how long it is: the report, "data", and what is drawn besides, "drawing". */
static const char *data_of(const bz_buf *page, const char *id, size_t *n)
{
    char mark[32];
    snprintf(mark, sizeof mark, "id=\"%s\">", id);
    const char *begin = strstr(bz_buf_text(page), mark), *end;
    assert_non_null(begin);
    begin += strlen(mark);
    end = strstr(begin, "</script>");
    assert_non_null(end);
    *n = (size_t)(end - begin);
    return begin;
}

static cJSON *parse(const bz_buf *page, const char *id)
{
    size_t n;
    const char *text = data_of(page, id, &n);
    cJSON *json = cJSON_ParseWithLength(text, n);
    assert_non_null(json);
    return json;
}

static const cJSON *member(const cJSON *o, const char *name)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(o, name);
    if (!m)
        fail_msg("no member %s", name);
    return m;
}

static void hostile_text_stays_text(void **state)
{
    world w;
    bz_buf page = {0};
    size_t n;
    (void)state;
    set_up(&w);
    bz_report_html(&(bz_findings){.analysis = &w.analysis, .n = 1}, &page);
    const char *text = bz_buf_text(&page), *data = data_of(&page, "data", &n);
    assert_int_equal(count(text, "<script"), 4);
    assert_int_equal(count(text, "</script"), 4);
    assert_int_equal(count(text, "<!--"), 1); /* the licence */
    assert_null(strstr(text, "<script>alert"));
    assert_null(memchr(data, '<', n));
    data = data_of(&page, "drawing", &n);
    assert_null(memchr(data, '<', n));
    assert_null(strstr(text, "src="));
    assert_non_null(strstr(text, "default-src 'none'"));
    cJSON *json = parse(&page, "data");
    const cJSON *a = cJSON_GetArrayItem(member(json, "models"), 0);
    assert_string_equal(member(a, "model")->valuestring, HOSTILE);
    const cJSON *layer = cJSON_GetArrayItem(member(a, "layers"), 0);
    assert_string_equal(member(layer, "name")->valuestring, HOSTILE);
    assert_string_equal(cJSON_GetArrayItem(member(layer, "problems"), 0)->valuestring, HOSTILE);
    cJSON_Delete(json);
    bz_buf_free(&page);
    tear_down(&w);
}

/* A page of a document has its JSON as it is, and its text; neither ends the element that it stands in. */
static void document_stays_data(void **state)
{
    bz_buf page = {0}, json = {0};
    bz_machine machine = {.name = HOSTILE};
    bz_forecast forecast = {.model = HOSTILE, .machine = &machine, .batch = 2, .sequential = 1, .low = 0.5, .high = 2};
    (void)state;
    bz_report_forecasts(&forecast, 1, &(bz_price_list){0}, BZ_FORM_JSON, &json);
    bz_report_document_page(HOSTILE, bz_buf_text(&json), HOSTILE, &page);
    assert_int_equal(count(bz_buf_text(&page), "</script"), 4);
    assert_int_equal(count(bz_buf_text(&page), "<script>"), 0);
    cJSON *told = parse(&page, "data"), *plain = cJSON_Parse(bz_buf_text(&json));
    assert_true(cJSON_Compare(told, plain, true));
    assert_string_equal(member(cJSON_GetArrayItem(member(told, "rows"), 0), "system")->valuestring, HOSTILE);
    assert_non_null(strstr(bz_buf_text(&page), "<pre>&lt;/script&gt;&lt;script&gt;alert"));
    cJSON_Delete(told);
    cJSON_Delete(plain);
    bz_buf_free(&json);
    bz_buf_free(&page);
}

static void what_is_not_there_is_left_out(void **state)
{
    world w;
    bz_buf page = {0};
    (void)state;
    set_up(&w);
    bz_ladder ladder = {.profile = "p", .latency = NAN, .busy = NAN};
    w.analysis.ladder = &ladder;
    w.analysis.n_ladders = 1;
    bz_report_html(&(bz_findings){.analysis = &w.analysis, .n = 1}, &page);
    cJSON *json = parse(&page, "data");
    const cJSON *a = cJSON_GetArrayItem(member(json, "models"), 0);
    const cJSON *l = cJSON_GetArrayItem(member(a, "profiles"), 0);
    static const char *const LADDER[] = {"waterfall", "algorithms", "alignment", "units"};
    for (size_t i = 0; i < sizeof LADDER / sizeof *LADDER; i++)
        assert_null(cJSON_GetObjectItem(l, LADDER[i]));
    cJSON *drawing = parse(&page, "drawing");
    const cJSON *drawn = cJSON_GetArrayItem(member(drawing, "models"), 0);
    assert_true(cJSON_IsNull(cJSON_GetArrayItem(member(drawn, "timelines"), 0)));
    cJSON_Delete(drawing);
    assert_null(cJSON_GetObjectItem(a, "fusion"));
    assert_null(cJSON_GetObjectItem(a, "fused"));
    assert_true(cJSON_IsNull(member(a, "hardware")));
    assert_true(cJSON_IsNull(member(l, "latency")));
    cJSON_Delete(json);
    bz_buf_free(&page);
    tear_down(&w);
}

static void all_questions_are_answered(void **state)
{
    world w;
    bz_buf page = {0};
    int layer = 0;
    (void)state;
    set_up(&w);
    bz_change change = {"pad", "1x1", HOSTILE};
    bz_aligned row = {.kind = BZ_ALIGNED_CHANGED,
                      .layer = &layer,
                      .n_layers = 1,
                      .where = HOSTILE,
                      .change = &change,
                      .n_changes = 1,
                      .seconds = 2e-3,
                      .bound = 1e-3};
    bz_cause cause = {.name = "input padded", .busy = true, .count = 53, .seconds = 5e-4, .where = "net.py:7"};
    bz_alignment alignment = {.expected = 3,
                              .made = 4,
                              .count = {[BZ_ALIGNED_CHANGED] = 1},
                              .row = &row,
                              .n = 1,
                              .cause = &cause,
                              .n_causes = 1};
    bz_unit_way way = {.name = "bf16", .sequential = 1e-3, .gain = 2e-3};
    bz_unit_row unit = {.layer = 0, .could = true, .why = HOSTILE, .seconds = 1e-3, .best = NAN};
    bz_units units = {.unit = "AMX", .row = &unit, .n = 1, .could = 1, .way = &way, .n_ways = 1};
    bz_waterfall waterfall = {
        .from = 9e-3, .to = 4e-3, .step = {{BZ_RUNG_BETWEEN, "gaps", 2e-3}, {BZ_RUNG_FUSION, "fusion", 3e-3}}, .n = 2};
    bz_advice advice = {"x", "Do it", HOSTILE, "export X=1", "estimate", false, 1e-3, 5e-4, 2e-3, 1e-2, NULL};
    bz_timeline_row lane = {"thread 1", BZ_EVENT_CALL, 1};
    bz_timeline_event event = {0, 0, 0, 100, 200};
    const char *name = HOSTILE;
    bz_timeline timeline = {
        .length = 1000, .row = &lane, .n_rows = 1, .name = &name, .n_names = 1, .event = &event, .n = 1};
    bz_ladder ladder = {.profile = "p",
                        .latency = 9e-3,
                        .alignment = &alignment,
                        .units = &units,
                        .waterfall = &waterfall,
                        .timeline = &timeline,
                        .advice = &advice,
                        .n_advices = 1};
    bz_fusion_row pattern = {.pattern = "conv+relu", .places = 2, .fused = -1, .gain = 1e-4};
    bz_fusion fusion = {.row = &pattern, .n = 1};
    w.analysis.fusion = &fusion;
    w.analysis.ladder = &ladder;
    w.analysis.n_ladders = 1;
    bz_report_html(&(bz_findings){.analysis = &w.analysis, .n = 1}, &page);
    assert_int_equal(count(bz_buf_text(&page), "</script"), 4);
    cJSON *json = parse(&page, "data");
    const cJSON *a = cJSON_GetArrayItem(member(json, "models"), 0);
    const cJSON *l = cJSON_GetArrayItem(member(a, "profiles"), 0);
    const cJSON *r = cJSON_GetArrayItem(member(member(l, "alignment"), "rows"), 0);
    assert_string_equal(member(r, "kind")->valuestring, "changed");
    assert_string_equal(member(cJSON_GetArrayItem(member(r, "changes"), 0), "found")->valuestring, HOSTILE);
    assert_int_equal(member(cJSON_GetArrayItem(member(member(l, "alignment"), "causes"), 0), "count")->valueint, 53);
    assert_int_equal(cJSON_GetArraySize(member(member(l, "waterfall"), "steps")), 2);
    assert_string_equal(member(cJSON_GetArrayItem(member(l, "advice"), 0), "evidence")->valuestring, HOSTILE);
    assert_string_equal(member(cJSON_GetArrayItem(member(member(l, "units"), "rows"), 0), "why")->valuestring, HOSTILE);
    cJSON *drawing = parse(&page, "drawing");
    const cJSON *drawn = cJSON_GetArrayItem(member(cJSON_GetArrayItem(member(drawing, "models"), 0), "timelines"), 0);
    const cJSON *at = cJSON_GetArrayItem(member(cJSON_GetArrayItem(member(drawn, "rows"), 0), "events"), 0);
    assert_int_equal(cJSON_GetArrayItem(at, 1)->valueint, 200);
    const cJSON *p = cJSON_GetArrayItem(member(member(a, "fusion"), "patterns"), 0);
    assert_true(cJSON_IsNull(member(p, "fused")));
    cJSON_Delete(drawing);
    cJSON_Delete(json);
    bz_buf_free(&page);
    tear_down(&w);
}

static void same_input_same_bytes(void **state)
{
    world w;
    bz_buf first = {0}, second = {0};
    (void)state;
    set_up(&w);
    bz_report_html(&(bz_findings){.analysis = &w.analysis, .n = 1}, &first);
    bz_report_html(&(bz_findings){.analysis = &w.analysis, .n = 1}, &second);
    assert_int_equal(first.len, second.len);
    assert_memory_equal(first.data, second.data, first.len);
    bz_buf_free(&first);
    bz_buf_free(&second);
    tear_down(&w);
}

static void median_iteration_is_drawn(void **state)
{
    bz_trace *t = bz_trace_new();
    bz_arena arena = {0};
    bz_error err = {0};
    (void)state;
    uint32_t source = bz_trace_source(t, "made.up", "test"), lane = bz_trace_thread(t, source, 1, 7);
    uint32_t range = bz_trace_text(t, "step"), op = bz_trace_text(t, "outer"), call = bz_trace_text(t, "conv");
    static const int64_t LENGTH[] = {900, 500, 700};
    int64_t at = 1000;
    for (int i = 0; i < 3; i++) {
        bz_trace_add(t, BZ_EVENT_RANGE, at, at + LENGTH[i], range, lane);
        bz_trace_add(t, BZ_EVENT_OP, at + 10, at + LENGTH[i] - 10, op, lane);
        bz_trace_add(t, BZ_EVENT_OP, at + 20, at + 120, call, lane);
        size_t c = bz_trace_add(t, BZ_EVENT_CALL, at + 30, at + 100, call, lane);
        t->event[BZ_EVENT_CALL].flags[c] = BZ_CALL_EXECUTES;
        at += LENGTH[i] + 1000;
    }
    if (bz_trace_finish(t, &(bz_finish_options){.iterations = "step"}, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < t->n_iterations; i++)
        t->iteration[i].warm_up = false;
    const bz_timeline *timeline = bz_timeline_make(t, &arena);
    assert_non_null(timeline);
    assert_int_equal(timeline->length, 700);
    assert_int_equal(timeline->n_rows, 3);
    assert_int_equal(timeline->row[1].kind, BZ_EVENT_OP);
    assert_int_equal(timeline->row[1].depth, 2);
    assert_int_equal(timeline->n, 4);
    assert_int_equal(timeline->event[3].start, 30);
    assert_int_equal(timeline->event[3].length, 70);
    assert_string_equal(timeline->name[timeline->event[3].name], "conv");
    bz_arena_free(&arena);
    bz_trace_free(t);
}

static void longest_events_are_kept(void **state)
{
    bz_trace *t = bz_trace_new();
    bz_arena arena = {0};
    bz_error err = {0};
    enum { EVENTS = BZ_TIMELINE_EVENTS + 500 };
    (void)state;
    uint32_t source = bz_trace_source(t, "made.up", "test"), lane = bz_trace_thread(t, source, 1, 7);
    uint32_t name = bz_trace_text(t, "step");
    bz_trace_add(t, BZ_EVENT_RANGE, 0, 100 * EVENTS, name, lane);
    for (int i = 0; i < EVENTS; i++)
        bz_trace_add(t, BZ_EVENT_CALL, 100 * i, 100 * i + (i % 17 ? 50 : 5), name, lane);
    if (bz_trace_finish(t, &(bz_finish_options){.iterations = "step"}, &err))
        fail_msg("%s", err.text);
    const bz_timeline *timeline = bz_timeline_make(t, &arena);
    assert_int_equal(timeline->n, BZ_TIMELINE_EVENTS);
    assert_int_equal(timeline->left_out, 501); /* the range itself is one of them all */
    for (int i = 1; i < timeline->n; i++)
        assert_true(timeline->event[i].length == 50 || timeline->event[i].length == 5);
    bz_arena_free(&arena);
    bz_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_text_stays_text),    cmocka_unit_test(what_is_not_there_is_left_out),
        cmocka_unit_test(all_questions_are_answered), cmocka_unit_test(same_input_same_bytes),
        cmocka_unit_test(median_iteration_is_drawn),  cmocka_unit_test(longest_events_are_kept),
        cmocka_unit_test(document_stays_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
