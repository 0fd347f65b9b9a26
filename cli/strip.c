/* benanza strip: a model without its weights. */
#include "base/member.h"
#include "cli/cli.h"
#include "onnx/onnx.h"

typedef struct strip_job {
    bz_job job;
    int64_t keep;
} strip_job;

static const bz_option OPTIONS[] = {
    BZ_WHOLE("keep", strip_job, keep, "BYTES",
             "keep tensors of up to BYTES bytes (1024): shapes and axes are in small ones"),
    BZ_JSON_OPTION,
    {0},
};

static int strip(void *job, bz_buf *out, bz_error *err)
{
    const strip_job *s = job;
    const bz_list *arguments = &s->job.arguments;
    bz_strip_result r;
    bz_unit_text in, out_size;
    if (arguments->n != 2)
        return bz_fail(err, BZ_USAGE, "name the model and where to write it: benanza strip IN OUT");
    if (bz_model_strip(arguments->item[0], arguments->item[1], (uint64_t)s->keep, &r, err))
        return -1;
    if (s->job.json) {
        bz_json j = bz_json_document_to(out, -1, "strip", 1);
        BZ_JSON(&j, BZ_TELL("stripped", r.tensors), BZ_TELL("kept", r.kept), BZ_TELL("in_bytes", (int64_t)r.in_bytes),
                BZ_TELL("out_bytes", (int64_t)r.out_bytes));
        bz_json_document_end(&j);
    } else {
        bz_buf_say(out, "%s: %s of %s left; %lld tensors stripped, %lld small ones kept\n", arguments->item[1],
                   bz_units_bytes(out_size, (double)r.out_bytes), bz_units_bytes(in, (double)r.in_bytes),
                   (long long)r.tensors, (long long)r.kept);
    }
    return 0;
}

const bz_command bz_command_strip =
    BZ_COMMAND("strip", "IN OUT [OPTIONS]", "copy a model without its weights: the same graph in a few kB", OPTIONS,
               strip_job, strip, .usual = &(const strip_job){.keep = 1024});
