/* benanza doctor: what is wrong with this machine for measuring, and what to do. */
#include "bench/bench.h"
#include "cli/db.h"
#include "report/report.h"

static int run_doctor(int argc, char **argv)
{
    const char *root = "", *dir = NULL;
    bool json = false;
    bz_doctor d;
    bz_list arguments = {0};
    bz_error err = {0};
    bz_buf out = {0};
    const bz_option options[] = {
        {"json", BZ_OPTION_FLAG, &json, NULL, "print JSON, for programs"},
        {"root", BZ_OPTION_TEXT, &root, "DIR",
         "look at the /proc and /sys in this folder: a copy of another machine's"},
        {"db", BZ_OPTION_TEXT, &dir, "DIR", DB_HELP},
        {0},
    };
    int parsed = bz_options_parse(&bz_command_doctor, options, argc, argv, &arguments, &err), status = BZ_OK;
    if (!parsed && arguments.n)
        parsed = bz_fail(&err, BZ_USAGE, "takes no arguments");
    if (!parsed) {
        bz_doctor_look(root, dir, &d);
        (json ? bz_report_doctor_json : bz_report_doctor_text)(&d, &out);
    }
    if (parsed < 0 || (!parsed && bz_output(NULL, &out, &err)))
        status = bz_report(&bz_command_doctor, &err);
    else if (!parsed && d.count[BZ_HEALTH_BAD])
        status = BZ_FAILED;
    bz_buf_free(&out);
    bz_list_free(&arguments);
    return status;
}

const bz_command bz_command_doctor = {"doctor", "[OPTIONS]",
                                      "tell what is wrong with this machine for measuring, and what to do", run_doctor};
