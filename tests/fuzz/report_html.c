/* A page of names that a stranger chose: none of them becomes markup. */
#include "report/report.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

/* No '<' between the two marks. */
static void promise_text(const char *page, const char *from, const char *to)
{
    const char *begin = strstr(page, from), *end = begin ? strstr(begin, to) : NULL;
    PROMISE(end && !memchr(begin + strlen(from), '<', (size_t)(end - begin) - strlen(from)));
}

static void promise_page(const char *page)
{
    promise_text(page, "id=\"data\">", "</script>");
    promise_text(page, "<title>", "</title>");
    promise_text(page, "<pre>", "</pre>");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_buf page = {0};
    char *text = bz_arena_strn(&arena, (const char *)data, size);
    const char *problem[] = {text};
    bz_alternative alternative = {.text = problem, .n = 1};
    bz_model model = {.path = text};
    bz_layer layer = {.name = text, .kind = text, .key = text, .priced = true};
    bz_layers layers = {.model = &model, .layer = &layer, .n = 1};
    bz_dag dag = {0}; /* no graph: Graphviz has tests of its own */
    bz_peaks peaks = {.why = text};
    bz_system_facts facts = {.text = text};
    bz_bound_layer row = {.layer = &layer,
                          .times = 1,
                          .price = {.seconds = 1, .alternative = &alternative},
                          .variant = text,
                          .runner_up = NAN,
                          .hardware = NAN};
    bz_advice advice = {text, text, text, text, text, true, 1, 1, 1, 1, text};
    bz_ladder ladder = {.profile = text, .latency = 1, .advice = &advice, .n_advices = 1};
    bz_analysis analysis = {.bound = {.model = text,
                                      .system = text,
                                      .facts = &facts,
                                      .setting = {1, BZ_CACHE_HOT, text},
                                      .layers = &layers,
                                      .dag = &dag,
                                      .peaks = &peaks,
                                      .layer = &row,
                                      .n = 1,
                                      .sequential = 1,
                                      .hardware = NAN},
                            .ladder = &ladder,
                            .n_ladders = 1};
    bz_report_html(&(bz_findings){.analysis = &analysis, .n = 1}, &page);
    promise_page(bz_buf_text(&page));
    bz_buf json = {0};
    bz_machine machine = {.name = text};
    bz_forecast forecast = {.model = text, .machine = &machine, .sequential = 1, .low = 1, .high = 1};
    bz_report_forecasts(&forecast, 1, &(bz_price_list){0}, BZ_FORM_JSON, &json);
    bz_buf_clear(&page);
    bz_report_document_page(text, bz_buf_text(&json), text, &page);
    promise_page(bz_buf_text(&page));
    bz_buf_free(&json);
    bz_buf_free(&page);
    bz_arena_free(&arena);
    return 0;
}
