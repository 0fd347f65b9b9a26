/* How the call of a group takes its layers along, as text. */
#ifndef BZ_GENERATOR_SAY_H
#define BZ_GENERATOR_SAY_H

#include "generator/generator.h"

/* Of place i, unless an earlier one is of the same group, whose lowering is of that place. */
static void say_taken(const bz_plan_layer *l, const bz_plan_place *place, int i, bz_buf *out)
{
    int first = 0;
    while (place[first].group != place[i].group)
        first++;
    if (place[i].group < 0 || first < i)
        return;
    const bz_lowering *low = &l[place[i].group].lowering;
    for (int a = 0; a < low->n; a++)
        for (int k = 0; low->alternative[a].taken && k < place[i].n; k++) {
            const bz_taken *t = &low->alternative[a].taken[k];
            bz_buf_printf(out, ", %d %d %d %d", (int)t->how, t->call, t->calls, t->other);
        }
}

#endif
