/* benanza strip: a model without its weights. */
#include "cli/cli.h"
#include "onnx/onnx.h"

#include <stdio.h>

static int strip(const bz_list *arguments, int64_t keep, bool json, bz_error *err)
{
    bz_strip_result r;
    bz_unit_text in, out_size;
    if (arguments->n != 2)
        return bz_fail(err, BZ_USAGE, "name the model and where to write it: benanza strip IN OUT");
    if (bz_model_strip(arguments->item[0], arguments->item[1], (uint64_t)keep, &r, err))
        return -1;
    bz_buf out = {0};
    if (json) {
        bz_json j = bz_json_to(&out, false);
        bz_json_document(&j, "strip", 1);
        bz_json_key_int(&j, "stripped", r.tensors);
        bz_json_key_int(&j, "kept", r.kept);
        bz_json_key_int(&j, "in_bytes", (int64_t)r.in_bytes);
        bz_json_key_int(&j, "out_bytes", (int64_t)r.out_bytes);
        bz_json_object_end(&j);
        bz_buf_putc(&out, '\n');
    } else {
        bz_buf_clean(&out, arguments->item[1]);
        bz_buf_printf(&out, ": %s of %s left; %lld tensors stripped, %lld small ones kept\n",
                      bz_units_bytes(out_size, (double)r.out_bytes), bz_units_bytes(in, (double)r.in_bytes),
                      (long long)r.tensors, (long long)r.kept);
    }
    int failed = bz_output(NULL, &out, err);
    bz_buf_free(&out);
    return failed;
}

static int run(int argc, char **argv)
{
    int64_t keep = 1024;
    bool json = false;
    bz_list arguments = {0};
    bz_error err = {0};
    const bz_option options[] = {
        {"keep", BZ_OPTION_INT, &keep, "BYTES",
         "keep tensors of up to BYTES bytes (1024): shapes and axes are in small ones"},
        {"json", BZ_OPTION_FLAG, &json, NULL, "print JSON, for programs"},
        {0},
    };
    int parsed = bz_options_parse(&bz_command_strip, options, argc, argv, &arguments, &err), status = BZ_OK;
    if (parsed < 0 || (!parsed && strip(&arguments, keep, json, &err)))
        status = bz_report(&bz_command_strip, &err);
    bz_list_free(&arguments);
    return status;
}

const bz_command bz_command_strip = {"strip", "IN OUT [OPTIONS]",
                                     "copy a model without its weights: the same graph in a few kB", run};
