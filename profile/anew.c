/* Memory that the system hands out anew while iterations run: what a program gave back to it, and takes again. The kernel clears each
 * page and enters it, which on a virtual machine can take longer than all that a network computes with it. */
#include "base/sort.h"
#include "profile/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char KEY[] = "fresh memory";

double bz_page_cost(void)
{
    enum { PAGES = 1024, TRIES = 7 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = PAGES * page;
    double took[TRIES];
    for (int i = 0; i < TRIES; i++) {
        double begin = bz_now();
        char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return 0;
        madvise(at, size, MADV_NOHUGEPAGE); /* a kernel without huge pages refuses, and has none to give */
        for (volatile char *p = at; p < at + size; p += page)
            *p = 1;
        munmap(at, size);
        took[i] = (bz_now() - begin) / PAGES;
    }
    bz_sort_numbers(took, TRIES);
    return took[TRIES / 2];
}

void bz_trace_taken(bz_trace *t, int64_t process, int64_t at, int64_t taken)
{
    struct bz_trace_private *p = t->private;
    BZ_ADD(p->taken, p->n_taken) = (bz_page_count){process, at, taken};
}

/* Pages in a second between the steady iterations' begin and end, of the process that took most. */
static double pages_per_second(const bz_trace *t)
{
    const struct bz_trace_private *p = t->private;
    uint32_t first = 0;
    while (first < t->n_iterations && t->iteration[first].warm_up)
        first++;
    if (first == t->n_iterations)
        return 0;
    const int64_t start = t->iteration[first].start, end = t->iteration[t->n_iterations - 1].end;
    double most = 0;
    for (size_t i = 0, k; i < p->n_taken; i = k) {
        const bz_page_count *from = NULL, *to = NULL;
        for (k = i; k < p->n_taken && p->taken[k].process == p->taken[i].process; k++)
            if (p->taken[k].at >= start && p->taken[k].at <= end) {
                from = from ? from : &p->taken[k];
                to = &p->taken[k];
            }
        if (!from || to->at <= from->at || to->taken <= from->taken)
            continue;
        double rate = ((double)to->taken - (double)from->taken) / (1e-9 * ((double)to->at - (double)from->at));
        most = rate > most ? rate : most;
    }
    return most;
}

void bz_trace_tell_pages(bz_trace *t)
{
    double rate = t->private->n_taken ? pages_per_second(t) : 0;
    char text[96];
    if (!(rate > 0) || !(t->private->page_cost > 0))
        return;
    snprintf(text, sizeof text, "%.0f pages in each second of the iterations, %.3g us a page", rate,
             1e6 * t->private->page_cost);
    bz_trace_fact(t, KEY, text);
}

double bz_trace_anew(const bz_trace *t, double *pages)
{
    double rate, cost;
    for (uint32_t i = 0; i < t->n_facts; i++)
        if (!strcmp(bz_string(t, t->fact[i].key), KEY) &&
            sscanf(bz_string(t, t->fact[i].value), "%lf pages in each second of the iterations, %lf us a page", &rate,
                   &cost) == 2 &&
            rate > 0 && cost > 0 && rate * cost < 1e6) {
            *pages = rate;
            return 1e-6 * rate * cost;
        }
    *pages = 0;
    return 0;
}
