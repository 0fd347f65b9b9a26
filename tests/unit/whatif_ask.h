/* One change, asked of a recording as a user would. Wants cmocka's headers before it. */
#ifndef BZ_TEST_WHATIF_ASK_H
#define BZ_TEST_WHATIF_ASK_H

#include "whatif/whatif.h"

/* `w` gets what was before the change; its flow is gone. */
static bz_prediction whatif_ask(const bz_trace *t, uint32_t iteration, const char *change, bz_arena *arena,
                                bz_whatif *w)
{
    bz_flow flow;
    bz_whatif_asked asked;
    bz_error why;
    if (bz_flow_make(t, iteration, &flow, &why) || bz_whatif_begin(&flow, arena, w, &why) ||
        bz_whatif_parse(change, arena, &asked, &why) || bz_whatif_predict(&asked, 1, arena, w, NULL, NULL, &why))
        fail_msg("%s", why.text);
    bz_flow_free(&flow);
    return w->prediction[0];
}

#endif
