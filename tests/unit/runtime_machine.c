/* What the machine is called, and that it can be told. */
#include "runtime/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_slugs(void **unused)
{
    (void)unused;
    static const struct {
        const char *vendor, *brand;
        int family, model, stepping;
        const char *slug;
    } CASES[] = {
        {"GenuineIntel", "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", 6, 143, 8, "xeon-8481c"},
        {"GenuineIntel", "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", 6, 79, 1, "xeon-e5-2690-v4"},
        {"GenuineIntel", "Intel(R) Xeon(R) CPU @ 2.20GHz", 6, 85, 7, "xeon-skylake"},
        {"GenuineIntel", "Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", 6, 158, 10, "core-i7-8700k"},
        {"GenuineIntel", "13th Gen Intel(R) Core(TM) i9-13900K", 6, 183, 1, "core-i9-13900k"},
        {"AuthenticAMD", "AMD EPYC", 25, 17, 1, "epyc-9xx4"},
        {"AuthenticAMD", "AMD EPYC 9B14 96-Core Processor", 25, 17, 1, "epyc-9b14"},
        {"AuthenticAMD", "AMD Ryzen 9 7950X 16-Core Processor", 25, 97, 2, "ryzen-9-7950x"},
        {"AuthenticAMD", "AMD EPYC Processor", 99, 1, 0, "authenticamd-99-1-0"},
        {"arm41", "", 0, 0xd40, 1, "neoverse-v1"},
        {"arm41", "", 0, 0xd80, 1, "arm41-0-3456-1"},
        {"", "../../etc/passwd <b>", 1, 2, 3, "cpu-1-2-3"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char slug[64];
        bz_machine_slug(CASES[i].vendor, CASES[i].brand, CASES[i].family, CASES[i].model, CASES[i].stepping, slug);
        assert_string_equal(slug, CASES[i].slug);
    }
}

static void test_identity(void **unused)
{
    (void)unused;
    bz_machine s, again;
    bz_buf json = {0}, text = {0};
    char host[256] = "";
    bz_machine_identify(&s);
    bz_machine_identify(&again);
    assert_string_equal(s.slug, again.slug);
    assert_string_equal(s.stack, again.stack);
    assert_true(s.slug[0] && !strpbrk(s.slug, " /@\"<"));
    assert_non_null(strstr(s.stack, "onednn"));
    assert_true(s.cores > 0 && s.threads >= s.cores && s.memory > 0 && s.n_caches > 0);
    assert_true(s.counters[0]);
    bz_machine_json(&s, &json);
    assert_true(!strncmp(bz_buf_text(&json), "{\"v\":1,\"record\":\"system\",\"slug\":\"", 33));
    assert_int_equal(json.data[json.len - 1], '\n');
    assert_null(strstr(bz_buf_text(&json), "measured"));
    bz_machine_print(&s, &text);
    assert_non_null(strstr(bz_buf_text(&text), s.slug));
    /* no host name, unless the machine is called like a word that stands there anyway */
    gethostname(host, sizeof host - 1);
    if (strlen(host) > 8)
        assert_null(strstr(bz_buf_text(&json), host));
    bz_buf_free(&json);
    bz_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slugs), cmocka_unit_test(test_identity)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
