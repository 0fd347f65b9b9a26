/* Recordings of programs that chance wrote: what is read, found as iterations, and told of them. profile_generated.txt has a hash of every 24
 * (seen.h). */
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "near_recordings.h"

enum { NAMES = 48, EACH = 24 };

static void say(bz_trace *t, seen *s, void *user)
{
    (void)user;
    bz_trace_print(t, 6, &s->text);
    bz_trace_json(t, 6, &s->text);
    for (uint32_t i = 0; i < t->n_iterations; i++)
        bz_buf_printf(&s->text, "%lld to %lld, %d %d %u\n", (long long)t->iteration[i].start,
                      (long long)t->iteration[i].end, t->iteration[i].warm_up, (int)t->iteration[i].phase,
                      t->iteration[i].tokens);
    for (uint32_t i = 0; i < t->n_coverage; i++)
        bz_buf_printf(&s->text, "%s\n", bz_string(t, t->coverage[i].text));
    bz_trace_leave_disturbed(t);
    bz_trace_print(t, 6, &s->text);
}

static void say_programs(const char *name, seen *s)
{
    for (unsigned i = 0; i < EACH; i++) {
        bz_buf text;
        write_program((unsigned)atoi(name) * EACH + i, &text);
        near_read(&text, s, say, NULL);
        bz_buf_free(&text);
    }
}

int main(int argc, char **argv)
{
    static char name[NAMES][8];
    const char *names[NAMES];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name[i], sizeof *name, "%d", i);
        names[i] = name[i];
    }
    return seen_main(argc, argv, names, NAMES, say_programs, BENANZA_SOURCE "/tests/unit/profile_generated.txt");
}
