/* Which operators are known, and that README.md says how many. */
#include "base/whole.h"
#include "modelproc/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void read_text(const char *path, bz_buf *out)
{
    bz_error err = {0};
    if (bz_whole_read(path, 1 << 20, "is too long", out, &err))
        fail_msg("%s", err.text);
}

static void all_of_microsoft_are_known(void **state)
{
    (void)state;
    bz_buf text = {0};
    op_memo memo = {0};
    int n = 0, unknown = 0;
    read_text(BENANZA_SOURCE "/tests/unit/modelproc_microsoft.txt", &text);
    for (char *line = text.data, *end; line && *line; line = end) {
        end = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
        for (char *at = line; *line != '#' && *at && at != end; n++) {
            size_t length = strcspn(at, " \n");
            char name[128];
            snprintf(name, sizeof name, "%.*s", (int)length, at);
            at += length + (at[length] != 0);
            if (!op_find(&memo, "com.microsoft", name))
                print_error("%s is not known\n", name), unknown++;
        }
    }
    assert_int_equal(unknown, 0);
    assert_int_equal(n, 128);
    bz_buf_free(&text);
}

/* README.md says how many operators there are. */
static void readme_tells_their_numbers(void **state)
{
    (void)state;
    bz_buf text = {0};
    char says[200];
    read_text(BENANZA_SOURCE "/README.md", &text);
    snprintf(says, sizeof says, "%d operators of ai.onnx, %d of ai.onnx.ml and %d of\ncom.microsoft", op_count(""),
             op_count("ai.onnx.ml"), op_count("com.microsoft"));
    if (!strstr(bz_buf_text(&text), says))
        fail_msg("README.md does not say: %s", says);
    bz_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_microsoft_are_known),
        cmocka_unit_test(readme_tells_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
