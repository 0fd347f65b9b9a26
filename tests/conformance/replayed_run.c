#include "tests/conformance/replayed_run.h"
#include "runtime/loops/elements.h"
#include "runtime/replay_open.h"

bz_replay *replayed_open(const bz_replay_model *model, const char *weights, bz_error *err)
{
    bz_replay *r;
    return bz_replay_open(model, weights, &(bz_run_setting){0}, &r, err) ? NULL : r;
}

size_t replayed_size(const bz_replay *r, int value)
{
    return bz_replay_size(r, value);
}

int replayed_set(bz_replay *r, int value, const void *bytes)
{
    return bz_replay_set(r, value, bytes);
}

int replayed_run(bz_replay *r)
{
    return bz_replay_forget(r) || bz_replay_run(r) || bz_replay_wait(r) ? -1 : 0;
}

int replayed_get(bz_replay *r, int value, void *bytes)
{
    return bz_replay_get(r, value, bytes);
}

double replayed_number(bz_dtype t, const void *bytes, int64_t i)
{
    return bz_element_load(t, bytes, i);
}

void replayed_close(bz_replay *r)
{
    bz_replay_close(r);
}
