/* Slow nodes, changes between stacks, and that nothing from outside reaches a page or a script unescaped. */
#include "fleet/fleet.h"
#include "tests/unit/chance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bz_attempt attempt(const char *node, double first, double second, int throttled)
{
    return (bz_attempt){.node = node, .records = 10, .throttled = throttled, .yardstick = {first, second, NAN, NAN}};
}

static void slow_nodes(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_fleet_report r = {0};
    const bz_attempt list[] = {attempt("n1", 1.00, 2.0, 0), attempt("n2", 1.02, 2.5, 0), attempt("n3", 1.50, 2.0, 3),
                               attempt("n4", 0.99, 2.0, 0), attempt("n3", 1.30, 2.0, 2), attempt("n2", 1.5, NAN, 0)};
    bz_deviations_add("v100", list, 6, 0.1, &arena, &r);
    const bz_deviation *d = r.deviation;
    assert_int_equal(r.n_deviations, 3);
    assert_string_equal(d[0].node, "n3"); /* at its best */
    assert_true(d[0].seconds == 1.30 && d[0].peers == 1.00);
    assert_string_equal(d[1].node, "n2");
    assert_true(d[1].seconds == 2.5);
    assert_string_equal(d[2].node, "n3");
    assert_int_equal(d[2].throttled, 5);
    bz_deviations_add("v100", list, 1, 0.1, &arena, &r);
    assert_int_equal(r.n_deviations, 3); /* no peers */
    bz_arena_free(&arena);
}

/* A node's best time of a yardstick is held against the middle node's, of an even number the faster one of the two, where there are two. */
static void random_nodes(void **state)
{
    (void)state;
    static const char *const NODE[] = {"a", "b", "c", "d", "e"};
    enum { NODES = 5, MOST = 9 };
    bz_arena arena = {0};
    for (int round = 0; round < 2000; round++) {
        bz_attempt list[MOST];
        bz_fleet_report r = {0};
        int n = (int)chance(MOST + 1), expected = 0;
        unsigned nodes = 1 + chance(NODES);
        for (int i = 0; i < n; i++)
            list[i] = attempt(NODE[chance(nodes)], chance(4) ? 1 + 0.0625 * chance(5) : (double)NAN,
                              chance(4) ? 1 + 0.0625 * chance(5) : (double)NAN, (int)chance(2) * (int)chance(9));
        bz_deviations_add("v100", list, n, 0.125, &arena, &r);
        const bz_deviation *d = r.deviation;
        for (int y = 0; y < 2; y++) {
            double best[NODES], sorted[NODES];
            int there = 0;
            for (int k = 0; k < NODES; k++) {
                best[k] = INFINITY;
                for (int i = 0; i < n; i++)
                    if (list[i].node == NODE[k])
                        best[k] = fmin(best[k], list[i].yardstick[y]);
                int at = there;
                for (; isfinite(best[k]) && at > 0 && sorted[at - 1] > best[k]; at--)
                    sorted[at] = sorted[at - 1];
                if (isfinite(best[k]))
                    sorted[at] = best[k], there++;
            }
            for (int k = 0; k < NODES && there > 1; k++) {
                double peers = sorted[(there - 1) / 2];
                int found = 0;
                if (!isfinite(best[k]) || best[k] <= 1.125 * peers)
                    continue;
                expected++;
                for (int i = 0; i < r.n_deviations; i++)
                    found += !strcmp(d[i].node, NODE[k]) && !strcmp(d[i].what, bz_yardsticks[y].problem) &&
                             d[i].seconds == best[k] && d[i].peers == peers;
                assert_int_equal(found, 1);
            }
        }
        for (int k = 0; k < NODES; k++) {
            int throttled = 0, found = 0;
            for (int i = 0; i < n; i++)
                throttled += list[i].node == NODE[k] ? list[i].throttled : 0;
            for (int i = 0; i < r.n_deviations; i++)
                found += !strcmp(d[i].node, NODE[k]) && !strcmp(d[i].what, "throttled") && d[i].throttled == throttled;
            assert_int_equal(found, throttled > 0);
            expected += throttled > 0;
        }
        assert_int_equal(r.n_deviations, expected);
    }
    bz_arena_free(&arena);
}

static bz_change_row change(const char *model, const char *what, double before, double after, bz_verdict verdict)
{
    return (bz_change_row){.kind = "v<100>",
                           .model = model,
                           .what = what,
                           .times = 2,
                           .layers = 3,
                           .of = 4,
                           .before = {before, before, before, false},
                           .after = {after, after, after, false},
                           .variant_before = "a",
                           .variant_after = "b",
                           .verdict = verdict};
}

static void regressions(void **state)
{
    (void)state;
    const bz_change_row slower = change("m", NULL, 1, 1.2, BZ_SLOWER), unsure = change("m", NULL, 1, 1.2, BZ_UNDECIDED),
                        faster = change(NULL, "k", 1, 0.8, BZ_FASTER);
    assert_true(bz_change_regressed(&slower, 0.1));
    assert_false(bz_change_regressed(&slower, 0.3));
    assert_false(bz_change_regressed(&unsure, 0.1));
    assert_false(bz_change_regressed(&faster, 0.1));
    assert_true(bz_change_improved(&faster, 0.1));
}

static void pages(void **state)
{
    (void)state;
    bz_night_system planned = {.name = "v100", .system = "v100@1", .note = ""};
    bz_night night = {.id = "20261121T020000Z", .system = &planned, .n_systems = 1};
    bz_night_result result = {.planned = &planned, .system = "<script>", .before = "", .wanted = 3};
    bz_change_row rows[] = {change("<img src=x>.onnx", NULL, 1, 2, BZ_SLOWER),
                            change(NULL, "\"key\"", 2, 1, BZ_FASTER)};
    bz_failure failure = {"v100", "conv & more", "it's <b>"};
    bz_deviation deviation = {.kind = "v100", .node = "n<1>", .what = "gemm", .seconds = 2, .peers = 1};
    const char *warning[] = {"line\033[31m"};
    bz_fleet_report r = {.night = &night,
                         .result = &result,
                         .change = rows,
                         .n_changes = 2,
                         .failure = &failure,
                         .n_failures = 1,
                         .deviation = &deviation,
                         .n_deviations = 1,
                         .warning = {warning, 1},
                         .tolerance = 0.05,
                         .regressions = 1};
    bz_buf html = {0}, text = {0}, json = {0};
    bz_fleet_report_html(&r, 10, &html);
    assert_null(strstr(html.data, "<script>"));
    assert_null(strstr(html.data, "<img"));
    assert_null(strstr(html.data, "n<1>"));
    assert_non_null(strstr(html.data, "&lt;img src=x&gt;.onnx"));
    assert_non_null(strstr(html.data, "it&#39;s &lt;b&gt;"));
    assert_null(strchr(html.data, '\033'));
    bz_fleet_report_text(&r, 10, &text);
    assert_non_null(strstr(text.data, "1 REGRESSION (1 of models)"));
    assert_null(strchr(text.data, '\033'));
    bz_fleet_report_json(&r, &json);
    assert_non_null(strstr(json.data, "\"regression\": true"));
    bz_buf_free(&html);
    bz_buf_free(&text);
    bz_buf_free(&json);
}

static void scripts(void **state)
{
    (void)state;
    bz_buf out = {0};
    bz_slurm_quote(&out, "a'b $(c) `d`");
    assert_string_equal(out.data, "'a'\\''b $(c) `d`'");
    bz_buf_free(&out);
    assert_int_equal(bz_slurm_job("712\n"), 712);
    assert_int_equal(bz_slurm_job("712;cluster\n"), 712);
    assert_int_equal(bz_slurm_job("sbatch: error"), 0);
    assert_int_equal(bz_slurm_job("-3"), 0);

    bz_arena arena = {0};
    const bz_queued *q;
    assert_int_equal(bz_slurm_queue("712 0 R n1\n712 11 PD \n\nerror: x\n713 N/A CG n2", &arena, &q), 3);
    assert_true(q[0].job == 712 && q[0].task == 0 && !strcmp(q[0].node, "n1"));
    assert_true(q[1].task == 11 && !strcmp(q[1].state, "PD") && !*q[1].node);
    assert_true(q[2].job == 713 && q[2].task == -1);
    bz_arena_free(&arena);
}

static void refused(const char *text, const char *words)
{
    bz_fleet fleet;
    bz_error err = {0};
    if (!bz_fleet_parse(text, "f.json", &fleet, &err))
        fail_msg("taken: %s", text);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
    bz_fleet_free(&fleet);
}

static void configurations(void **state)
{
    (void)state;
    refused("{", "no JSON");
    refused("{}", "names no systems");
    refused("{\"systems\": {\"../x\": {}}}", "cannot name a system");
    refused("{\"systems\": {\"a\": {\"partitoin\": \"x\"}}}", "no member \"partitoin\"");
    refused("{\"systems\": {\"a\": {\"partition\": \"x\\ny\"}}}", "on one line");
    refused("{\"systems\": {\"a\": {\"environment\": {\"A;B\": \"x\"}}}}", "\"environment\" takes");
    refused("{\"systems\": {\"a\": {\"shards\": 0}}}", "from 1 to 1000");
    refused("{\"systems\": {\"a\": {}, \"a\": {}}}", "has \"a\" twice");
    refused("{\"systems\": {\"a\": {\"options\": [\"--mem=1\", \"x.sh\"]}}}", "not 'x.sh'");
    refused("{\"systems\": {\"a\": {\"options\": \"--mem=1\"}}}", "an array of texts");
    refused("{\"folder\": \"x\", \"systems\": {\"a\": {}}}", "begin with '/'");
    assert_true(bz_night_is_id("20261121T020000Z"));
    assert_false(bz_night_is_id("../20261121T0200"));
    assert_false(bz_night_is_id("20261121T02000xZ"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slow_nodes),  cmocka_unit_test(random_nodes),
                                       cmocka_unit_test(regressions), cmocka_unit_test(pages),
                                       cmocka_unit_test(scripts),     cmocka_unit_test(configurations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
