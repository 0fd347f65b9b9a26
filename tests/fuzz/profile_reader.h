/* What every fuzz target of a profile reader does: read, finish, ask. */
#include "profile/reader.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static int fuzz_reader(const bz_reader *reader, const uint8_t *data, size_t size)
{
    bz_error err;
    bz_trace *t = bz_trace_new();
    bz_stream *in = bz_stream_memory((const char *)data, size);
    if (!bz_profile_read_stream(t, in, reader, &err) && !bz_trace_finish(t, NULL, &err)) {
        bz_buf out = {0};
        bz_trace_print(t, 5, &out);
        bz_buf_clear(&out);
        bz_trace_json(t, 5, &out);
        SAW(out.data, out.len);
        bz_trace_leave_disturbed(t); /* behind all that asks for times as they were recorded */
        bz_buf_free(&out);
    }
    bz_stream_close(in);
    bz_trace_free(t);
    return 0;
}
