/* Builders beside the process that measures, with a backend whose plans are bytes of a shared page. */
#include "runtime/ahead.h"

#include "base/progress.h"
#include "runtime/backend.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { PROBLEMS = 12, CRASHES = 5, HANGS = 7 };

static struct {
    atomic_int begun[PROBLEMS + 1], built[PROBLEMS + 1];
    atomic_bool crash, hang;
} * page;

static void ahead(const bz_job *job, const char *layout, const char *math)
{
    int64_t i = job->operand[0].dim[0];
    atomic_fetch_add(&page->begun[i], 1);
    if (strcmp(layout, "plain") != 0 || strcmp(math, "default") != 0 || strcmp(job->setting->plans, "there") != 0)
        return;
    if (i == CRASHES && page->crash)
        abort();
    if (i == HANGS && page->hang)
        pause();
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    atomic_fetch_add(&page->built[i], 1);
}

static const bz_backend BACKEND = {.name = "fake", .ahead = ahead};
static const bz_backend *const BACKENDS[] = {&BACKEND, NULL};

static bz_problem problem[PROBLEMS];
static bz_family family[PROBLEMS];
static bz_pending_item item[PROBLEMS];

static int begin(void **state)
{
    (void)state;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PROBLEMS; i++) {
        char text[64];
        snprintf(text, sizeof text, "activation fn=relu x=%dx4 dtype=f32", i + 1);
        if (bz_problem_parse(text, &problem[i], NULL))
            return -1;
        family[i] = (bz_family){&problem[i], "fake", "plain", "default"};
        item[i] = (bz_pending_item){.text = "", .families = &family[i], .n = 1};
    }
    return page == MAP_FAILED;
}

static int end(void **state)
{
    (void)state;
    return munmap(page, sizeof *page);
}

static int processors(void)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
}

static bz_run_options options(void)
{
    return (bz_run_options){.setting = {.threads = 1, .plans = "there"}, .backends = BACKENDS};
}

/* Whoever takes a problem finds it built, or has it for itself. */
static void test_each_is_built_once(void **state)
{
    bz_ahead a = {0};
    bz_pending pending = {.item = item, .n = PROBLEMS};
    bz_run_options o = options();
    int built = 0;
    (void)state;
    bz_ahead_begin(&a, &pending, &o);
    assert_int_equal(a.n, processors() > BZ_AHEAD_MOST ? BZ_AHEAD_MOST : processors() - 1);
    for (int i = 0; i < PROBLEMS; i++) {
        bz_ahead_take(&a, i);
        assert_int_equal(page->built[i + 1], page->begun[i + 1]); /* none is at it any more */
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    for (int i = 0; i < PROBLEMS; i++) {
        assert_true(page->begun[i + 1] <= 1);
        built += page->built[i + 1];
    }
    bz_ahead_end(&a);
    assert_int_equal(page->built[1], 0); /* the first is measured at once */
    assert_true(processors() == 1 || built > 0);
}

static void take_all(bool crash, bool hang)
{
    bz_ahead a = {0};
    bz_pending pending = {.item = item, .n = PROBLEMS};
    bz_run_options o = options();
    page->crash = crash;
    page->hang = hang;
    o.hang_limit = 0.1;
    double from = bz_now();
    bz_ahead_begin(&a, &pending, &o);
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
    for (int i = 0; i < PROBLEMS; i++)
        bz_ahead_take(&a, i);
    bz_ahead_end(&a);
    assert_int_equal(a.n, 0);
    assert_true(bz_now() - from < 20);
}

static void test_builder_crashes(void **state)
{
    (void)state;
    take_all(true, false);
    assert_int_equal(page->built[CRASHES], 0);
}

static void test_builder_hangs(void **state)
{
    (void)state;
    take_all(false, true);
    assert_int_equal(page->built[HANGS], 0);
}

static void test_nothing_to_build(void **state)
{
    bz_ahead a = {0};
    bz_pending pending = {.item = item, .n = PROBLEMS};
    bz_run_options o = options();
    (void)state;
    o.setting.plans = NULL;
    bz_ahead_begin(&a, &pending, &o);
    assert_int_equal(a.n, 0);
    bz_ahead_take(&a, 1);
    bz_ahead_end(&a);
    o = options();
    o.setting.threads = processors();
    bz_ahead_begin(&a, &pending, &o);
    assert_int_equal(a.n, 0);
    bz_ahead_end(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_is_built_once, begin, end),
        cmocka_unit_test_setup_teardown(test_builder_crashes, begin, end),
        cmocka_unit_test_setup_teardown(test_builder_hangs, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_to_build, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
