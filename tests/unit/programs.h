/* What tests of programs share: files and scripts in the test's folder, and chance. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "tests/unit/perfdb_test.h"

#include "base/whole.h"

#include <sys/stat.h>

static uint64_t chance_state = 5;
static bz_arena texts; /* as long as the program */

static inline unsigned chance(unsigned below)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance_state >> 33) % below;
}

static inline void write_file(void **state, const char *name, const char *text, bool program)
{
    bz_buf b = {0};
    bz_buf_puts(&b, text);
    assert_ok(bz_whole_write(below(state, name), &b, &err));
    assert_ok(program ? chmod(below(state, name), 0755) : 0);
    bz_buf_free(&b);
}

static inline char *read_file(void **state, const char *name)
{
    static bz_buf b;
    bz_buf_clear(&b);
    if (access(below(state, name), F_OK))
        return NULL;
    assert_ok(bz_whole_read(below(state, name), 1 << 24, "is too long", &b, &err));
    return (char *)bz_buf_text(&b);
}

static inline void is_file(void **state, const char *name, const char *expected)
{
    const char *text = read_file(state, name);
    if (!text || strcmp(text, expected) != 0)
        fail_msg("%s: '%s' is not '%s'", name, text ? text : "(none)", expected);
}

/* That folder of the test's comes before all others where programs are looked for. */
static inline void look_here_first(void **state, const char *name)
{
    static char *before;
    before = before ? before : bz_arena_str(&texts, getenv("PATH"));
    assert_ok(mkdir(below(state, name), 0777));
    setenv("PATH", bz_arena_printf(&texts, "%s:%s", below(state, name), before), 1);
}

#endif
