/* Problems as their kinds' rows describe them. */
#include "runtime/kind.h"

#define ROW(NAME, name) [BZ_PROBLEM_##NAME] = &bz_kind_##name,
const bz_kind *const bz_kinds[BZ_PROBLEM_N_KINDS] = {BZ_KINDS(ROW)};

const char *bz_problem_kind_name(bz_problem_kind kind)
{
    return kind > BZ_PROBLEM_NONE && kind < BZ_PROBLEM_N_KINDS ? bz_kinds[kind]->name : "?";
}

bool bz_problem_has(const bz_problem *p, unsigned traits)
{
    return bz_kinds[p->kind] && bz_kinds[p->kind]->traits & traits;
}

bool bz_problem_is_matrix(const bz_problem *p)
{
    return bz_problem_has(p, BZ_TRAIT_PRODUCT) && !bz_problem_has(p, BZ_TRAIT_WINDOW);
}

int bz_extent_rank(const int64_t *extent)
{
    int n = 0;
    while (n < BZ_PROBLEM_RANK && extent[n])
        n++;
    return n;
}

int64_t bz_extent_count(const int64_t *extent)
{
    int64_t n = 1;
    for (int i = 0; i < BZ_PROBLEM_RANK && extent[i]; i++)
        n *= extent[i];
    return n;
}

const int64_t *bz_member_numbers(const bz_problem *p, const bz_member *m)
{
    return (const int64_t *)(const void *)((const char *)p + m->at);
}

int bz_problem_rank(const bz_problem *p)
{
    for (const bz_member *m = bz_kinds[p->kind]->member; m->form; m++)
        if (m->form == BZ_FORM_EXTENT)
            return bz_extent_rank(bz_member_numbers(p, m));
    return 0;
}

int bz_member_length(const bz_problem *p, const bz_member *m)
{
    switch (m->form) {
    case BZ_FORM_EXTENT:
        return BZ_PROBLEM_RANK;
    case BZ_FORM_SIZES:
        return BZ_PROBLEM_PARTS;
    case BZ_FORM_SPATIAL:
        return bz_problem_rank(p) - 2;
    case BZ_FORM_PADS:
        return 2 * (bz_problem_rank(p) - 2);
    case BZ_FORM_PERM:
        return bz_problem_rank(p);
    default:
        return 1;
    }
}

int bz_member_given(const bz_problem *p, const bz_member *m)
{
    int n = bz_member_length(p, m);
    if (m->form != BZ_FORM_EXTENT && m->form != BZ_FORM_SIZES)
        return n;
    const int64_t *v = bz_member_numbers(p, m);
    int i = 0;
    while (i < n && v[i])
        i++;
    return i;
}
