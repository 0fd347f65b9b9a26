/* One result says the same as CSV, as JSON and as text: each cell of the CSV is the JSON's member, and stands in a line of the text as people read it. */
#include "random_recording.h"
#include "report/report.h"

#include <cJSON.h>
#include <math.h>

typedef struct column {
    const char *csv, *json; /* "first.low": a member of a member; "\"2\"": the same in all rows */
    char shown;             /* 't' as a time, 'n' as it is; 0: not in the text */
} column;

enum { FIELDS = 24, LINES = 256 };

static struct {
    char *text;
    char *field[LINES][FIELDS];
    int lines, fields[LINES];
} csv;

/* Fields that have commas in them stand in quotes. */
static void read_csv(const bz_buf *text)
{
    memset(&csv, 0, sizeof csv);
    csv.text = strdup(text->data);
    for (char *p = csv.text; *p; csv.lines++)
        for (bool more = true; more;) {
            bool quoted = *p == '"';
            char *from = p += quoted;
            p += quoted ? strcspn(p, "\"") : strcspn(p, ",\n");
            char *end = p;
            p += quoted;
            more = *p == ',';
            p += *p != 0;
            *end = 0;
            csv.field[csv.lines][csv.fields[csv.lines]++] = from;
        }
}

static const char *csv_field(int line, const char *name)
{
    for (int k = 0; k < csv.fields[0]; k++)
        if (!strcmp(csv.field[0][k], name))
            return csv.field[line][k];
    fail_msg("no column %s", name);
    return NULL;
}

static const cJSON *member(const cJSON *o, const char *path)
{
    char name[64];
    for (; o && *path; path += strcspn(path, "."), path += *path == '.') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "."), path);
        o = cJSON_GetObjectItem(o, name);
    }
    return o;
}

/* A number by nine digits; nothing for null. */
static void check_cell(const column *c, const char *field, const cJSON *v, const char *text, const char *mark)
{
    bz_unit_text units;
    char plain[64];
    if (!v)
        fail_msg("the JSON has no %s", c->json);
    if (cJSON_IsNumber(v) ? fabs(strtod(field, NULL) - v->valuedouble) > 1e-8 * fabs(v->valuedouble) || !*field
                          : strcmp(field, cJSON_IsString(v) ? v->valuestring : "") != 0)
        fail_msg("%s is '%s' as CSV, '%s' as JSON", c->csv, field, cJSON_IsString(v) ? v->valuestring : cJSON_Print(v));
    if (!c->shown || !*field)
        return;
    snprintf(plain, sizeof plain, "%s", cJSON_IsString(v) ? v->valuestring : field);
    const char *shown = c->shown == 't' ? bz_units_time(units, v->valuedouble) : plain;
    for (const char *line = strstr(text, mark); line; line = strstr(line + 1, mark)) {
        const char *begin = line, *end = line + strcspn(line, "\n"), *at;
        while (begin > text && begin[-1] != '\n')
            begin--;
        at = strstr(begin, shown);
        if (at && at < end)
            return;
    }
    fail_msg("no line of '%s' in the text has %s '%s'", mark, c->csv, shown);
}

/* Row i of the list is line `first` + i; `mark` is the column whose text tells the line of the text. */
static void check_rows(const cJSON *list, int first, const column *columns, int n, const char *mark, const bz_buf *text)
{
    const cJSON *row;
    int line = first;
    assert_true(cJSON_IsArray(list));
    cJSON_ArrayForEach(row, list)
    {
        for (int k = 0; k < n; k++)
            check_cell(&columns[k], csv_field(line, columns[k].csv), member(row, columns[k].json), text->data,
                       csv_field(line, mark));
        line++;
    }
}

static const char *const NAMES[] = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"};
enum { ROWS = 8 };

static double draw_seconds(void)
{
    return (1 + chance(9999)) * pow(10, -(int)chance(6) - 3);
}

static void free_forms(bz_buf form[3], cJSON *json)
{
    for (int f = 0; f < 3; f++)
        bz_buf_free(&form[f]);
    cJSON_Delete(json);
    free(csv.text);
}

static void records(void **state)
{
    (void)state;
    static const column COLUMNS[] = {{"system", "system", 0},     {"problem", "problem", 0},
                                     {"backend", "backend", 'n'}, {"algorithm", "algorithm", 'n'},
                                     {"layout", "layout", 'n'},   {"math", "math", 'n'},
                                     {"threads", "threads", 'n'}, {"cache", "cache", 'n'},
                                     {"median", "median", 't'},   {"low", "low", 't'},
                                     {"high", "high", 't'},       {"n", "n", 'n'},
                                     {"date", "date", 0},         {"reason", "reason", 'n'}};
    bz_record list[ROWS];
    bz_buf form[3] = {{0}};
    for (int i = 0; i < ROWS; i++) {
        list[i] = bz_record_blank();
        list[i].system = "box@x1";
        list[i].problem = i < 5 ? "copy bytes=4" : "copy bytes=8";
        list[i].variant = (bz_variant){chance(2) ? "onednn" : "cblas", NAMES[i], chance(2) ? "any" : "plain",
                                       chance(2) ? "default" : "strict"};
        list[i].setting = (bz_setting){1 + (int)chance(64), chance(2) ? BZ_CACHE_HOT : BZ_CACHE_COLD, ""};
        list[i].median = i == 3 ? NAN : draw_seconds();
        list[i].low = i == 3 ? NAN : draw_seconds();
        list[i].high = i == 3 ? NAN : draw_seconds();
        list[i].n = 1 + chance(500);
        list[i].date = 1700000000 + (int64_t)chance(90000000);
        list[i].reason = i == 3 ? "it crashed" : "";
        list[i].noisy = chance(2);
        list[i].throttled = chance(2);
        list[i].busy = chance(2);
        list[i].chosen = chance(2);
        list[i].meta = "";
        list[i].checked = "ok";
    }
    for (int f = 0; f < 3; f++)
        bz_report_records("folder", list, ROWS, (bz_form)f, &form[f]);
    cJSON *json = cJSON_Parse(form[BZ_FORM_JSON].data);
    read_csv(&form[BZ_FORM_CSV]);
    assert_int_equal(csv.lines, ROWS + 1);
    assert_int_equal(cJSON_GetArraySize(member(json, "records")), ROWS);
    check_rows(member(json, "records"), 1, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS, "algorithm", &form[BZ_FORM_TEXT]);
    assert_non_null(strstr(form[BZ_FORM_TEXT].data, "8 records of 2 problems in folder\n"));
    for (int i = 0; i < ROWS; i++) {
        const char *status = csv_field(i + 1, "status");
        assert_int_equal(strstr(status, " noisy") != NULL, list[i].noisy);
        assert_int_equal(strstr(status, " throttled") != NULL, list[i].throttled);
        assert_int_equal(strstr(status, " busy") != NULL, list[i].busy);
        assert_int_equal(strstr(status, " chosen") != NULL, list[i].chosen);
    }
    free_forms(form, json);
}

static void systems(void **state)
{
    (void)state;
    static const column COLUMNS[] = {{"system", "system", 'n'},     {"problems", "problems", 'n'},
                                     {"variants", "variants", 'n'}, {"ok", "ok", 'n'},
                                     {"records", "records", 'n'},   {"newest", "newest", 0}};
    bz_system system[ROWS];
    bz_stock list[ROWS];
    bz_buf form[3] = {{0}};
    for (int i = 0; i < ROWS; i++) {
        system[i] = (bz_system){.name = NAMES[i], .details = "{\"cores\":7}"};
        list[i] = (bz_stock){.system = &system[i],
                             .records = chance(900),
                             .variants = chance(900),
                             .problems = chance(900),
                             .ok = chance(900),
                             .newest = 1700000000 + (int64_t)chance(90000000),
                             .from = {true, chance(2)}};
    }
    for (int f = 0; f < 3; f++)
        bz_report_database("folder", list, ROWS, (bz_form)f, &form[f]);
    cJSON *json = cJSON_Parse(form[BZ_FORM_JSON].data);
    read_csv(&form[BZ_FORM_CSV]);
    assert_int_equal(csv.lines, ROWS + 1);
    assert_int_equal(cJSON_GetArraySize(member(json, "systems")), ROWS);
    check_rows(member(json, "systems"), 1, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS, "system", &form[BZ_FORM_TEXT]);
    const cJSON *row;
    cJSON_ArrayForEach(row, member(json, "systems")) assert_int_equal(member(row, "details.cores")->valueint, 7);
    assert_non_null(strstr(form[BZ_FORM_TEXT].data, "8 systems in folder\n"));
    free_forms(form, json);
}

static void comparisons(void **state)
{
    (void)state;
    static const column COLUMNS[] = {{"verdict", "verdict", 'n'},           {"times", "times", 0},
                                     {"first", "first.seconds", 't'},       {"first_low", "first.low", 0},
                                     {"first_high", "first.high", 0},       {"second", "second.seconds", 't'},
                                     {"second_low", "second.low", 0},       {"second_high", "second.high", 0},
                                     {"first_variant", "first.variant", 0}, {"second_variant", "second.variant", 0},
                                     {"setting", "setting", 'n'},           {"what", "what", 'n'}};
    for (int round = 0; round < 6; round++) {
        bz_arena arena = {0};
        bz_error err;
        bz_compare_set set;
        bz_buf form[3] = {{0}};
        make_recording();
        bz_trace *before = r.trace;
        make_recording();
        assert_int_equal(bz_compare_profiles(before, r.trace, &arena, &set, &err), 0);
        set.name_a = "old";
        set.name_b = "new";
        for (int f = 0; f < 3; f++)
            bz_report_set(&set, 100, (bz_form)f, &form[f]);
        cJSON *json = cJSON_Parse(form[BZ_FORM_JSON].data);
        read_csv(&form[BZ_FORM_CSV]);
        const cJSON *part;
        int line = 1;
        assert_true(cJSON_IsArray(member(json, "parts")));
        cJSON_ArrayForEach(part, member(json, "parts"))
        {
            const cJSON *rows = member(part, "rows");
            check_rows(rows, line, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS, "what", &form[BZ_FORM_TEXT]);
            line += cJSON_GetArraySize(rows);
            for (int second = 0; second < 2; second++) {
                const cJSON *row, *only = member(part, second ? "only_second" : "only_first");
                cJSON_ArrayForEach(row, only)
                {
                    assert_string_equal(csv_field(line, "verdict"), second ? "ONLY SECOND" : "ONLY FIRST");
                    assert_string_equal(csv_field(line, "what"), member(row, "what")->valuestring);
                    assert_string_equal(csv_field(line++, "part"), member(part, "what")->valuestring);
                }
            }
        }
        assert_int_equal(line, csv.lines);
        assert_string_equal(member(json, "first")->valuestring, "old");
        assert_string_equal(member(json, "second")->valuestring, "new");
        bz_trace_free(before);
        bz_trace_free(r.trace);
        bz_arena_free(&arena);
        free_forms(form, json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records), cmocka_unit_test(systems),
                                       cmocka_unit_test(comparisons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
