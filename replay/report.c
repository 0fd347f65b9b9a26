#include "replay/replay.h"
void bz_replay_print(const bz_replay_report *r, bz_buf *out)
{
    bz_buf_printf(out, "planned %g s + %g s in %d conversions; states %d beam %d; measured %g; peak %g least %g checked %d wrong %d\n", r->plan->seconds, r->plan->conversions, r->plan->n_conversions, r->plan->followed, r->plan->beam, r->result ? r->result->median : 0, r->result ? r->result->peak : 0, r->result ? r->result->least : 0, r->result ? r->result->checked : 0, r->result ? r->result->wrong : 0);
}
void bz_replay_print_json(const bz_replay_report *r, bz_buf *out) { bz_replay_print(r, out); }
bz_trace *bz_replay_trace(const bz_replay_report *r, bz_error *err) { (void)r; (void)err; return NULL; }
