/* What a program is to run: problems of generated files and of texts, and what is kept of them. */
#include "runtime/pending.h"

#include "runtime/backends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bz_pending_item *add(bz_pending *p)
{
    BZ_ROOM(p->item, p->n);
    bz_pending_item *w = &p->item[p->n++];
    *w = (bz_pending_item){0};
    return w;
}

/* A piece of work for the problem, with room for n families. */
static bz_family *start(bz_pending *p, const bz_problem *problem, int n)
{
    bz_buf text = {0};
    bz_pending_item *w = add(p);
    bz_problem_print(problem, &text);
    w->text = bz_buf_keep(&text, &p->arena);
    bz_family *families = BZ_NEW(&p->arena, bz_family, n);
    w->families = families;
    return families;
}

/* Families of a generated file that stand together and have the same problem are one piece of work. The
 * descriptors are constant; what they leave out is filled in in a copy. */
int bz_pending_add(bz_pending *p, const bz_benchmark *b, bz_error *err)
{
    for (int i = 0, n; i < b->n; i += n) {
        bz_problem *problem = bz_arena_dup(&p->arena, b->families[i].problem, sizeof *problem);
        if (bz_problem_normalize(problem, err))
            return bz_fail_in(err, "%s", b->name);
        for (n = 1; i + n < b->n && b->families[i + n].problem == b->families[i].problem;)
            n++;
        bz_family *families = start(p, problem, n);
        for (int k = 0; k < n; k++) {
            families[k] = b->families[i + k];
            families[k].problem = problem;
        }
        p->item[p->n - 1].n = n;
    }
    return 0;
}

/* Of backends that nobody named, those that know one layout only are not asked for others. */
static bool has_layouts(const bz_backend_row *b)
{
    for (const bz_backend_family *f = b->family; f->kinds; f++)
        if (strcmp(f->layouts, "plain") != 0)
            return true;
    return false;
}

static void add_families(const bz_pending *p, const char *backend, bool layouts, const bz_problem *problem,
                         bz_family *list, int *n)
{
    for (int i = 0; i < (p->n_layouts ? p->n_layouts : BZ_N_LAYOUTS); i++) {
        const char *layout = p->n_layouts ? p->layout[i] : bz_layouts[i];
        if (layouts || !strcmp(layout, "plain"))
            list[(*n)++] = (bz_family){problem, backend, layout, "default"};
    }
}

int bz_pending_add_text(bz_pending *p, const char *text, bz_error *err)
{
    bz_problem *problem = BZ_NEW(&p->arena, bz_problem, 1);
    if (bz_problem_parse(text, problem, err))
        return -1;
    int n = 0, backends = p->n_backends;
    for (const bz_backend_row *b = bz_backends; b->name && !p->n_backends; b++)
        backends += !b->device;
    bz_family *families = start(p, problem, backends * (p->n_layouts ? p->n_layouts : BZ_N_LAYOUTS));
    for (int i = 0; i < p->n_backends; i++)
        add_families(p, p->backend[i], true, problem, families, &n);
    for (const bz_backend_row *b = bz_backends; b->name && !p->n_backends; b++)
        if (!b->device)
            add_families(p, b->name, has_layouts(b), problem, families, &n);
    p->item[p->n - 1].n = n;
    return 0;
}

int bz_pending_read(bz_pending *p, FILE *f, bz_error *err)
{
    BZ_FREED char *line = NULL;
    size_t cap = 0;
    int result = 0;
    while (!result && getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[0] && line[0] != '#')
            result = bz_pending_add_text(p, line, err);
    }
    return result;
}

/* `BACKEND LAYOUT MATH [ALGORITHM]`; an algorithm's name may hold blanks. */
static void add_known(bz_pending *p, bz_pending_item *w, const char *line)
{
    char backend[16], layout[16], math[16];
    int at = 0;
    if (sscanf(line, " %15s %15s %15s %n", backend, layout, math, &at) != 3 || !at)
        return;
    BZ_ARENA_ADD(&p->arena, w->known, w->n_known) = (bz_known){
        .backend = bz_arena_str(&p->arena, backend),
        .layout = bz_arena_str(&p->arena, layout),
        .math = bz_arena_str(&p->arena, math),
        .algorithm = line[at] ? bz_arena_str(&p->arena, line + at) : NULL,
    };
}

int bz_pending_keep(bz_pending *p, const char *path, bz_error *err)
{
    BZ_FREED char *line = NULL;
    size_t cap = 0;
    bz_pending_item *w = NULL;
    FILE *f = fopen(path, "r");
    if (!f)
        return bz_fail(err, BZ_BAD_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    while (getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line == ' ') {
            if (w)
                add_known(p, w, line);
            continue;
        }
        w = NULL;
        for (int i = 0; i < p->n && !w; i++)
            if (!strcmp(p->item[i].text, line))
                w = &p->item[i];
        if (w)
            w->wanted = true;
    }
    fclose(f);
    int kept = 0;
    for (int i = 0; i < p->n; i++)
        if (p->item[i].wanted)
            p->item[kept++] = p->item[i];
    p->n = kept;
    return 0;
}

void bz_pending_filter(bz_pending *p, const char *part)
{
    int kept = 0;
    for (int i = 0; i < p->n; i++)
        if (strstr(p->item[i].text, part))
            p->item[kept++] = p->item[i];
    p->n = kept;
}

void bz_pending_print(const bz_pending *p)
{
    for (int i = 0; i < p->n; i++) {
        puts(p->item[i].text);
        for (int k = 0; k < p->item[i].n; k++)
            printf("    %s %s %s\n", p->item[i].families[k].backend, p->item[i].families[k].layout,
                   p->item[i].families[k].math);
    }
}

void bz_pending_free(bz_pending *p)
{
    bz_arena_free(&p->arena);
    free(p->item);
}
