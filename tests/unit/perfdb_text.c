/* The text form, import and export, merging. */
#include "tests/unit/perfdb_test.h"

#include "perfdb/stream.h"

#include <fcntl.h>
#include <zlib.h>

#define LINE(members)                                                                                                  \
    "{\"v\":1,\"problem\":\"relu x=1 dtype=f32\",\"backend\":\"onednn\",\"algorithm\":\"jit\","                        \
    "\"layout\":\"any\",\"math\":\"default\",\"threads\":1,\"cache\":\"hot\",\"status\":\"ok\","                       \
    "\"median\":1e-5,\"date\":7,\"system\":\"box@onednn2.6.3\"" members "}"

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
}

static char *read_text(const char *path)
{
    bz_buf b = {0};
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;)
        bz_buf_putc(&b, (char)c);
    fclose(f);
    return b.data ? b.data : strdup("");
}

static void test_line_round_trip(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_record r = sample_record();
    r.variant.algorithm = "a \"quoted\" \\ name <b>";
    r.flops = NAN;
    bz_buf text = {0}, again = {0};
    bz_json j = bz_json_to(&text, false);
    bz_record_json(&j, &r);
    bz_line line;
    assert_ok(bz_line_parse(text.data, text.len, &arena, &line, &err));
    assert_false(line.is_system);
    assert_int_equal(line.unknown, 0);
    assert_true(bz_record_same_identity(&line.record, &r));
    assert_int_equal(line.record.workspace, 4096);
    assert_true(line.record.median == r.median && isnan(line.record.flops));
    j = bz_json_to(&again, false);
    bz_record_json(&j, &line.record);
    assert_string_equal(text.data, again.data);
    bz_buf_free(&text);
    bz_buf_free(&again);
    bz_arena_free(&arena);
}

/* What is measured again counts as absent; the others keep their order. */
static void test_remeasure(void **state)
{
    (void)state;
    enum { N = 5 };
    const bz_remeasure marked = {.marked = true}, old = {.before = 200}, all = {.all = true};
    bz_record r[N], list[N];
    for (int i = 0; i < N; i++) {
        r[i] = sample_record();
        r[i].noisy = r[i].throttled = r[i].busy = false;
        r[i].date = 100 * i;
    }
    r[1].noisy = true;
    r[2].busy = true;
    r[3].status = BZ_RECORD_DROPPED; /* hopeless, and of few samples: it stays */
    r[3].noisy = true;
    assert_true(bz_record_marked(&r[1]) && bz_record_marked(&r[2]) && !bz_record_marked(&r[0]));
    memcpy(list, r, sizeof r);
    assert_int_equal(bz_records_keep(list, N, NULL), N);
    assert_int_equal(bz_records_keep(list, N, &(bz_remeasure){0}), N);
    assert_int_equal(bz_records_keep(list, N, &marked), 3);
    assert_true(list[0].date == 0 && list[1].date == 300 && list[2].date == 400);
    memcpy(list, r, sizeof r);
    assert_int_equal(bz_records_keep(list, N, &old), 3);
    assert_int_equal(list[0].date, 200);
    r[3].busy = true; /* it may have been hopeless because another program ran */
    memcpy(list, r, sizeof r);
    assert_int_equal(bz_records_keep(list, N, &marked), 2);
    assert_int_equal(bz_records_keep(list, N - 3, &all), 0);
}

/* A run that was killed leaves a part of a family: that is not all of it. */
/* What a record failed of decides whether it is measured again: by its status first, then by what was said. */
static void test_causes(void **state)
{
    (void)state;
    static const struct {
        bz_record_status status;
        const char *reason;
        bz_record_cause cause;
    } CASES[] = {{BZ_RECORD_CRASHED, "SIGTERM while it was measured", BZ_CAUSE_STOPPED},
                 {BZ_RECORD_CRASHED, "SIGKILL while it was measured", BZ_CAUSE_PASSING},
                 {BZ_RECORD_TIMEOUT, "hung", BZ_CAUSE_PASSING},
                 {BZ_RECORD_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", BZ_CAUSE_PASSING},
                 {BZ_RECORD_CRASHED, "SIGSEGV while it was measured", BZ_CAUSE_LASTING},
                 {BZ_RECORD_UNSUPPORTED, "out of memory", BZ_CAUSE_LASTING},
                 {BZ_RECORD_OK, "", BZ_CAUSE_LASTING}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(bz_record_cause_of(&(bz_record){.status = CASES[i].status, .reason = CASES[i].reason}),
                         CASES[i].cause);
}

static void test_complete(void **state)
{
    (void)state;
    bz_record r[3] = {sample_record(), sample_record(), sample_record()};
    const bz_variant family = r[0].variant;
    const bz_setting hot = r[0].setting;
    assert_false(bz_records_complete(r, 0, &family, &hot));
    assert_true(bz_records_complete(r, 1, &family, &hot)); /* imported: nobody knows how many there are */
    for (int i = 0; i < 3; i++)
        r[i].variants = 3;
    r[1].variant.algorithm = "brgconv:avx512_core";
    r[2].variant.algorithm = "gemm:jit";
    assert_false(bz_records_complete(r, 2, &family, &hot));
    assert_true(bz_records_complete(r, 3, &family, &hot));
    r[2].setting.threads = 7;
    assert_false(bz_records_complete(r, 3, &family, &hot));
    r[2] = r[0];
    r[2].variant.algorithm = ""; /* the family as a whole came to nothing */
    assert_true(bz_records_complete(r + 2, 1, &family, &hot));
    r[1].variants = -1;
    assert_fails(bz_record_check(&r[1], &err), BZ_BAD_INPUT, "negative");
}

static void test_lines(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_line line;
    const struct {
        const char *text, *error; /* NULL: a good line */
        size_t unknown;
    } cases[] = {
        {LINE(""), NULL, 0},
        {LINE(",\"meta\":{\"a\":[1,2.50,{\"b\":null}],\"c\":true}"), NULL, 0},
        {LINE(",\"mood\":\"good\",\"more\":{\"v\":2,\"median\":[]},\"list\":[[1]]"), NULL, 3},
        {LINE(",\"n\":12,\"iterations\":9007199254740991"), NULL, 0},
        {LINE(",\"n\":1.5"), "'n' wants a whole number", 0},
        {LINE(",\"n\":1e300"), "'n' wants a whole number", 0},
        {LINE(",\"threads\":4294967297"), "'threads' is out of range", 0},
        {LINE(",\"status\":\"great\""), "'status' has a value", 0},
        {LINE(",\"median\":\"fast\""), "'median' wants a number", 0},
        {LINE(",\"n\":9007199254740992"), NULL, 0},
        {LINE(",\"n\":9007199254740994"), "'n' wants a whole number", 0},
        {LINE(",\"median\":0.00000000000000000000000000000000000000000000000000000000000001"),
         "has a number with too many digits", 0},
        {LINE(",\"meta\":\"x\""), "'meta' wants an object", 0},
        {LINE(",\"meta\":null"), NULL, 0},
        {LINE(",\"meta\":{\"a\":\"b\\u0000\"}"), "'meta' has a zero byte", 0},
        {LINE(",\"meta\":{\"a\\u0000\":1}"), "'meta' has a zero byte", 0},
        {LINE(",\"median\":[1]"), "'median' is not of the right type", 0},
        {LINE(",\"chosen\":1"), "'chosen' wants true or false", 0},
        {LINE(",\"meta\":[]"), "'meta' is not of the right type", 0},
        {LINE(",\"reason\":\"a\\u0000b\""), "'reason' has a zero byte", 0},
        {LINE(",\"v\":2"), "newer benanza (version 2)", 0},
        {LINE(",\"record\":\"plan\""), "kind that this version does not know", 0},
        {"{\"problem\":\"x\"}", "no version", 0},
        {"[1]", "no JSON object", 0},
        {"7", "no JSON object", 0},
        {"{\"v\":1", "not JSON", 0},
        {"{\"v\":1} trailing", "not JSON", 0},
        {"{\"v\":1,\"problem\":\"\xff\"}", "not JSON", 0},
        {"", "not JSON", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rc = bz_line_parse(cases[i].text, strlen(cases[i].text), &arena, &line, &err);
        if (!cases[i].error && (rc || line.unknown != cases[i].unknown))
            fail_msg("%s: %s, %zu unknown", cases[i].text, rc ? err.text : "", line.unknown);
        if (cases[i].error && (!rc || !strstr(err.text, cases[i].error)))
            fail_msg("%s: '%s'", cases[i].text, rc ? err.text : "taken");
    }
    assert_ok(bz_line_parse(cases[1].text, strlen(cases[1].text), &arena, &line, &err));
    assert_string_equal(line.record.meta, "{\"a\":[1,2.50,{\"b\":null}],\"c\":true}");
    bz_arena_free(&arena);
}

/* A name that no member has may be as long as it likes: it counts as unknown, and hides no mistake in front of it. A system keeps it whole. */
static void test_names_of_all_lengths(void **state)
{
    (void)state;
    bz_arena arena = {0};
    bz_line line;
    for (int n = 1; n < 80; n++) {
        char name[80];
        memset(name, 'x', (size_t)n);
        name[n] = 0;
        const char *good = bz_arena_printf(&arena, LINE(",\"n\":12,\"%s\":7,\"threads%s\":\"a\",\"chosen\":true"), name,
                                           name),
                   *bad = bz_arena_printf(&arena, LINE(",\"n\":1.5,\"%s\":7,\"chosen\":true"), name),
                   *details = bz_arena_printf(&arena, "{\"%s\":7,\"cores\":2}", name),
                   *box = bz_arena_printf(&arena, "{\"v\":1,\"record\":\"system\",\"slug\":\"box\",\"date\":3,%s",
                                          details + 1);
        assert_ok(bz_line_parse(good, strlen(good), &arena, &line, &err));
        assert_int_equal(line.unknown, 2);
        assert_int_equal(line.record.n, 12);
        assert_int_equal(line.record.setting.threads, 1);
        assert_true(line.record.chosen);
        assert_fails(bz_line_parse(bad, strlen(bad), &arena, &line, &err), BZ_BAD_INPUT, "'n' wants a whole number");
        assert_ok(bz_line_parse(box, strlen(box), &arena, &line, &err));
        assert_true(line.is_system);
        assert_string_equal(line.details, details);
    }
    bz_arena_free(&arena);
}

/* A system's members may have names that mean something else in a record. */
static void test_system_line(void **state)
{
    (void)state;
    static const char TEXT[] = "{\"v\":1,\"cache\":{\"L1\":32768,\"L2\":[1,2]},\"n\":\"x\",\"slug\":\"box\","
                               "\"stack\":\"onednn2.6.3\",\"threads\":\"two\",\"date\":12,\"record\":\"system\"}";
    bz_arena arena = {0};
    bz_line line;
    assert_ok(bz_line_parse(TEXT, strlen(TEXT), &arena, &line, &err));
    assert_true(line.is_system);
    assert_string_equal(line.system, "box@onednn2.6.3");
    assert_string_equal(line.details, "{\"cache\":{\"L1\":32768,\"L2\":[1,2]},\"n\":\"x\",\"threads\":\"two\"}");
    assert_int_equal(line.date, 12);
    bz_arena_free(&arena);
}

/* Lines of many lengths, some longer than LIMIT; the last has no end. */
enum { LIMIT = 100 };

static void make_lines(bz_buf *text)
{
    uint32_t seed = 5;
    for (int i = 0; i < 6000; i++) {
        seed = seed * 1664525 + 1013904223;
        for (uint32_t n = seed >> 25; n; n--) {
            seed = seed * 1664525 + 1013904223;
            bz_buf_putc(text, (char)('a' + (seed >> 28)));
        }
        bz_buf_putc(text, '\n');
    }
    bz_buf_puts(text, "the last");
}

static void write_packed(const char *path, const bz_buf *text, bool gzip, bool zstd)
{
    if (gzip) {
        for (int part = 0; part < 2; part++) { /* a gzip file may be several */
            size_t from = part ? 1000 : 0, n = part ? text->len - 1000 : 1000;
            gzFile z = gzopen(path, part ? "ab" : "wb");
            assert_int_equal(gzwrite(z, text->data + from, (unsigned)n), n);
            assert_int_equal(gzclose(z), Z_OK);
        }
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    bz_sink *sink = bz_sink_open(fd, zstd);
    assert_ok(bz_sink_write(sink, text->data, text->len, &err));
    assert_ok(bz_sink_close(sink, &err));
    close(fd);
}

/* The lines of a file are those of its text, however it is packed. Its end stays its end, though the file grows meanwhile. */
static void test_lines_of_sources(void **state)
{
    static const char *const NAMES[] = {"plain", "gzip", "zstd"};
    bz_buf text = {0};
    make_lines(&text);
    for (int packing = 0; packing < 3; packing++) {
        const char *path = below(state, NAMES[packing]), *line, *first = text.data;
        write_packed(path, &text, packing == 1, packing == 2);
        bz_stream *s = bz_source_open(path, &err);
        size_t n, room;
        bool too_long;
        assert_non_null(s);
        for (size_t want = 1; want <= text.len; want += text.len / 3) {
            assert_ok(bz_source_peek(s, want, &err));
            assert_true(s->len >= want && s->len <= text.len);
            assert_memory_equal(s->data, text.data, s->len);
        }
        while (first < text.data + text.len) {
            size_t len = strcspn(first, "\n");
            assert_ok(bz_source_line(s, LIMIT, &line, &n, &too_long, &err));
            assert_int_equal(too_long, len > LIMIT);
            if (!too_long) {
                assert_int_equal(n, len);
                assert_memory_equal(line, first, len);
            }
            first += len + 1;
        }
        int fd = open(path, O_WRONLY | O_APPEND);
        assert_int_equal(write(fd, "more\n", 5), 5);
        close(fd);
        assert_ok(bz_source_line(s, LIMIT, &line, &n, &too_long, &err));
        assert_null(line);
        assert_ok(bz_source_peek(s, 1, &err));
        assert_int_equal(s->len, 0);
        bz_stream_close(s);

        write_packed(path, &text, packing == 1, packing == 2);
        s = bz_source_open(path, &err);
        assert_non_null(s);
        assert_ok(bz_source_line(s, LIMIT, &line, &n, &too_long, &err));
        room = strcspn(text.data, "\n") + 1;
        do {
            assert_ok(bz_source_peek(s, 1, &err));
            n = s->len;
            assert_true(n <= text.len - room);
            assert_memory_equal(s->data, text.data + room, n);
            bz_stream_advance(s, n, 0);
            room += n;
        } while (n);
        assert_int_equal(room, text.len);
        bz_stream_close(s);
    }
    bz_buf_free(&text);
}

static void test_bad_lines(void **state)
{
    const char *path = below(state, "in.jsonl");
    bz_buf text = {0};
    bz_buf_puts(&text, LINE("") "\r\n\nnot json\n" LINE(",\"layout\":\"nhwc\"") "\n");
    bz_buf_puts(&text, LINE(",\"median\":-1") "\n" LINE(",\"system\":\"\",\"math\":\"tf32\"") "\n");
    bz_buf_puts(&text, LINE(",\"layout\":\"nchw\",\"mood\":1")); /* no line's end */
    write_text(path, text.data);
    bz_perfdb *db = open_new(state, "db");
    bz_perfdb_import_report r;
    assert_ok(bz_perfdb_import(db, path, NULL, &r, &err));
    assert_int_equal(r.lines, 6);
    assert_int_equal(r.records, 3);
    assert_int_equal(r.bad, 3);
    assert_int_equal(r.unknown, 1);
    assert_int_equal(r.count.added, 3);
    assert_int_equal(warnings_with("in.jsonl:3: left out: not JSON"), 1);
    assert_int_equal(warnings_with("in.jsonl:5: left out: a time"), 1);
    assert_int_equal(warnings_with("in.jsonl:6: left out: '' is no name for a system"), 1);
    assert_ok(bz_perfdb_import(db, path, "spare@1", &r, &err)); /* now the sixth has a system */
    assert_int_equal(r.bad, 2);
    assert_int_equal(r.count.added, 1);
    assert_int_equal(r.count.kept, 3);
    assert_fails(bz_perfdb_import(db, below(state, "none"), NULL, &r, &err), BZ_BAD_INPUT, "cannot be opened");

    /* a line without an end, and more bad lines than anybody wants to read */
    bz_buf_clear(&text);
    for (int i = 0; i < 3 << 20; i++)
        bz_buf_putc(&text, 'x');
    bz_buf_puts(&text, "\n" LINE(",\"clock\":\"locked\"") "\n");
    for (int i = 0; i < 30; i++)
        bz_buf_puts(&text, "{\n");
    write_text(path, text.data);
    bz_buf_clear(&warnings);
    assert_ok(bz_perfdb_import(db, path, NULL, &r, &err));
    assert_int_equal(r.bad, 31);
    assert_int_equal(r.count.added, 1);
    assert_int_equal(warnings_with("left out: longer than 1 MiB"), 1);
    assert_int_equal(warnings_with("\n"), 21);
    assert_int_equal(warnings_with("11 more lines"), 1);

    /* a file of which no line is JSON is another file: one sentence */
    bz_buf_clear(&text);
    for (int i = 0; i < 30; i++)
        bz_buf_printf(&text, "%c\177ELF, or a poem\n", i);
    bz_buf_clear(&warnings);
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, text.data, text.len), text.len);
    close(fd);
    assert_fails(bz_perfdb_import(db, path, NULL, &r, &err), BZ_BAD_INPUT, "in.jsonl: holds no records");
    assert_int_equal(warnings.len, 0);
    bz_buf_puts(&text, "{\"v\":99}\n"); /* but this one is from a newer benanza */
    fd = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, text.data, text.len), text.len);
    close(fd);
    assert_ok(bz_perfdb_import(db, path, NULL, &r, &err));
    assert_int_equal(r.bad, 31);
    assert_int_equal(warnings_with("\n"), 21);
    bz_perfdb_close(db);
    bz_buf_free(&text);
}

static bz_perfdb *fill(void **state, const char *name, int first, int last, int step)
{
    bz_perfdb *db = open_new(state, name);
    bz_arena arena = {0};
    assert_ok(bz_perfdb_put_system(db, "box@onednn2.6.3", "{\"cores\":2}", 5, &err));
    for (int i = first; i != last; i += step) {
        bz_record r = sample_record();
        r.system = i % 2 ? "box@onednn2.6.3" : "other@onednn3.1";
        r.problem = bz_arena_printf(&arena, "relu x=%d dtype=f32", i / 3);
        r.variant.algorithm = bz_arena_printf(&arena, "a%d", i % 3);
        r.date += i;
        put(db, r);
    }
    bz_arena_free(&arena);
    return db;
}

static void export_to(bz_perfdb *db, const char *path, bool zstd)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    size_t n;
    assert_true(fd >= 0);
    assert_ok(bz_perfdb_export(db, &(bz_perfdb_filter){.history = true}, fd, zstd, &n, &err));
    assert_int_equal(n, count_records(db));
    close(fd);
}

/* Out and in again gives the same bytes, packed or not, whatever the order of writing was. */
static void test_export(void **state)
{
    bz_perfdb *up = fill(state, "up", 0, 60, 1), *down = fill(state, "down", 59, -1, -1);
    const char *plain = below(state, "plain"), *packed = below(state, "packed"), *other = below(state, "other");
    export_to(up, plain, false);
    export_to(up, packed, true);
    export_to(down, other, false);
    char *text = read_text(plain), *same = read_text(other), *zstd = read_text(packed);
    assert_string_equal(text, same);
    assert_memory_equal(zstd, "\x28\xb5\x2f\xfd", 4);
    assert_non_null(strstr(text, "{\"v\":1,\"record\":\"system\",\"slug\":\"box\",\"stack\":\"onednn2.6.3\",\"date\":5,"
                                 "\"cores\":2}\n"));
    bz_perfdb_close(up);
    bz_perfdb_close(down);
    free(same);
    free(zstd);

    gzFile gz = gzopen(below(state, "gzip"), "w");
    assert_int_equal(gzwrite(gz, text, (unsigned)strlen(text)), strlen(text));
    gzclose(gz);
    static const char *const FORMS[] = {"plain", "packed", "gzip"};
    for (int i = 0; i < 3; i++) {
        bz_perfdb_import_report r;
        bz_perfdb *db = open_new(state, i == 0 ? "db0" : i == 1 ? "db1" : "db2");
        assert_ok(bz_perfdb_import(db, below(state, FORMS[i]), NULL, &r, &err));
        assert_true(r.bad == 0 && r.systems == 2 && r.count.added == 60);
        export_to(db, other, false);
        same = read_text(other);
        assert_string_equal(text, same);
        free(same);
        bz_perfdb_close(db);
    }
    assert_int_equal(truncate(packed, 200), 0);
    assert_int_equal(truncate(below(state, "gzip"), 200), 0);
    bz_perfdb *db = open_new(state, "cut");
    bz_perfdb_import_report r;
    assert_fails(bz_perfdb_import(db, packed, NULL, &r, &err), BZ_BAD_INPUT, "it was cut");
    assert_fails(bz_perfdb_import(db, below(state, "gzip"), NULL, &r, &err), BZ_BAD_INPUT, "it was cut");
    bz_perfdb_close(db);
    free(text);
}

/* A into B and B into A end up the same; once more changes nothing. */
static void test_merge(void **state)
{
    bz_perfdb *a = fill(state, "a", 0, 40, 1), *b = fill(state, "b", 20, 60, 1);
    bz_record r = sample_record();
    put(a, r);
    r.n = 99; /* told better by b */
    put(b, r);
    assert_ok(bz_perfdb_put_system(b, "box@onednn2.6.3", "{\"cores\":4}", 6, &err));
    bz_perfdb *ab = fill(state, "ab", 0, 40, 1);
    r.n = 37;
    put(ab, r);
    bz_perfdb_count count = {0}, again = {0};
    assert_ok(bz_perfdb_merge(ab, b, &count, &err));
    assert_true(count.added == 20 && count.replaced == 1 && count.kept == 20);
    assert_ok(bz_perfdb_merge(ab, b, &again, &err));
    assert_true(again.added == 0 && again.replaced == 0 && again.kept == 41);
    assert_ok(bz_perfdb_merge(b, a, NULL, &err));
    export_to(ab, below(state, "ab.jsonl"), false);
    export_to(b, below(state, "ba.jsonl"), false);
    char *x = read_text(below(state, "ab.jsonl")), *y = read_text(below(state, "ba.jsonl"));
    assert_string_equal(x, y);
    assert_non_null(strstr(x, "\"cores\":4"));
    assert_non_null(strstr(x, "\"n\":99,"));
    free(x);
    free(y);
    bz_perfdb_close(a);
    bz_perfdb_close(b);
    bz_perfdb_close(ab);
}

/* One sample is no time, and neither is a mean of one run; an import's mean of several is, as is a median of several samples. */
static void what_tells_a_time(void **state)
{
    static const struct {
        bz_record_status status;
        bz_record_provenance provenance;
        int n, iterations;
        double median;
        bool is_time;
    } CASES[] = {
        {BZ_RECORD_OK, BZ_PROVENANCE_MEASURED, 2, 1, 1e-5, true},
        {BZ_RECORD_OK, BZ_PROVENANCE_MEASURED, 1, 1, 1e-5, false},
        {BZ_RECORD_OK, BZ_PROVENANCE_MEASURED, 1, 50, 1e-5, false},
        {BZ_RECORD_OK, BZ_PROVENANCE_MEASURED, 2, 1, 0, false},
        {BZ_RECORD_OK, BZ_PROVENANCE_IMPORTED, 1, 1, 1e-5, false},
        {BZ_RECORD_OK, BZ_PROVENANCE_IMPORTED, 1, 2, 1e-5, true},
        {BZ_RECORD_OK, BZ_PROVENANCE_IMPORTED, 2, 0, 1e-5, true},
        {BZ_RECORD_OK, BZ_PROVENANCE_IMPORTED, 1, 2, 0, false},
        {BZ_RECORD_DROPPED, BZ_PROVENANCE_MEASURED, 9, 9, 1e-5, false},
        {BZ_RECORD_FAILED, BZ_PROVENANCE_IMPORTED, 9, 9, 1e-5, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bz_record r = {.status = CASES[i].status,
                       .provenance = CASES[i].provenance,
                       .n = CASES[i].n,
                       .iterations = CASES[i].iterations,
                       .median = CASES[i].median};
        assert_int_equal(bz_record_is_time(&r), CASES[i].is_time);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causes),
        cmocka_unit_test(what_tells_a_time),
        TEST(test_line_round_trip),
        TEST(test_remeasure),
        TEST(test_complete),
        TEST(test_lines),
        TEST(test_names_of_all_lengths),
        TEST(test_lines_of_sources),
        TEST(test_system_line),
        TEST(test_bad_lines),
        TEST(test_export),
        TEST(test_merge),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bz_buf_free(&warnings);
    return failed;
}
