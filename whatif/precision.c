/* Lower precision: compute-bound kernels and those that move bytes gain by different factors; the host gains nothing. */
#include "base/choice.h"
#include "runtime/gpus.h"
#include "whatif/constants.h"
#include "whatif/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Does its name say that it computes in 16 bits, or in fewer? */
static bool is_low_type(const char *type)
{
    return type && bz_has_word("f16 bf16 i8 f8", type);
}

/* Does the best record of a convolution in 16 bits run on matrix units, with tensors in row-major order? These want channels last, and the
 * library converts within the call: the record's time has that, but a program's host launches it. */
static int converts(const bz_whatif_asked *asked, const bz_problem *low, bool *out)
{
    const bz_whatif_records *from = asked->records;
    BZ_SCOPED(bz_arena) arena = {0};
    bz_record *r, *best = NULL;
    size_t n = 0;
    int failed = bz_perfdb_variants(from->db, from->system, bz_problem_text(low, &arena), &arena, &r, &n, asked->err);
    for (size_t i = 0; i < n && !failed; i++)
        if (bz_record_is_time(&r[i]) && bz_setting_same(&r[i].setting, &from->setting) &&
            (!best || bz_record_busy(&r[i]) < bz_record_busy(best)))
            best = &r[i];
    *out = best && low->kind == BZ_PROBLEM_CONV && !strcmp(best->variant.math, "tensor") &&
           !strcmp(best->variant.layout, "plain");
    return failed;
}

typedef struct {
    const bz_whatif_asked *asked;
    int moving, already, calls, conversions;
    bz_tally by_records, computing; /* tasks: by records; by a factor */
    double half, half_of_tf32;      /* how many times as fast products of f32 become, and those of TF32 */
} tally;

/* The best record in 16 bits by the best in 32, where the records tell both. Of a call that converts it is below 0. */
static int find_factor(void *user, const bz_priced_call *call, double *factor)
{
    static const bz_dtype LOW[] = {BZ_F16, BZ_BF16};
    tally *sum = user;
    const bz_problem *p = call->problem;
    double now, best = NAN, s;
    bool conversion = false;
    if (p->dtype != BZ_F32)
        return 0;
    if (bz_whatif_price(sum->asked, p, NULL, NULL, &now))
        return -1;
    for (int k = 0; k < 2; k++) {
        bz_problem low = *p;
        low.dtype = LOW[k];
        low.dtype_w = low.dtype_w == BZ_F32 ? LOW[k] : low.dtype_w;
        low.dtype_y = low.dtype_y == BZ_F32 ? LOW[k] : low.dtype_y;
        if (bz_whatif_price(sum->asked, &low, NULL, NULL, &s))
            return -1;
        if (!isfinite(s) || best <= s)
            continue;
        best = s;
        if (converts(sum->asked, &low, &conversion))
            return -1;
    }
    if (isfinite(now) && isfinite(best) && now > 0) {
        *factor = (conversion ? -1 : 1) * best / now;
        sum->calls++;
    }
    return 0;
}

/* A task of a call whose records tell both types takes their ratio; on a processor nothing else is changed. */
static bool scale_by_records(bz_flow *flow, const bz_whatif_asked *asked, uint32_t i, double *factor, tally *sum)
{
    const bz_task *t = &flow->task[i];
    if (!factor || !bz_whatif_works(flow, i) || t->call >= asked->trace->event[BZ_EVENT_CALL].n || factor[t->call] == 0)
        return false;
    int64_t was = t->duration;
    bz_flow_scale(flow, i, fabs(factor[t->call]));
    bz_tally_add(&sum->by_records, was, t->duration);
    if (factor[t->call] > 0 || t->kind != BZ_TASK_KERNEL)
        return true;
    factor[t->call] = -factor[t->call]; /* once for the call */
    for (int k = 0; k < bz_whatif_number(asked, "conversions"); k++, sum->conversions++)
        bz_flow_insert_launched(flow, BZ_TASK_KERNEL, "conversion of a layout", i, 0);
    return true;
}

/* How many times as much a GPU does in the type as in f32, by its data sheet. 0: no unit of it makes the type faster; NAN: nobody knows. */
static double by_sheet(const bz_whatif_asked *asked, const char *type)
{
    const char *name = bz_trace_told(asked->trace, "gpu");
    bz_gpu gpu;
    bool known = name && bz_gpu_find(name, &gpu);
    double f32 = known ? bz_gpu_rate(&gpu, "f32") : 0;
    return f32 > 0 ? bz_gpu_rate(&gpu, type) / f32 : NAN;
}

/* How many times as fast products of f32 become in the type: as given; else the share of the data sheet that programs reach. 0: neither tells it. */
static double speed_in(const bz_whatif_asked *asked, const char *type, const double *reaches)
{
    double sheet = by_sheet(asked, type);
    if (bz_whatif_given(asked, "compute"))
        return bz_whatif_number(asked, "compute");
    return sheet > 0 ? fmax(1, sheet * reaches[asked->side]) : 0;
}

/* Of kernels that compute in TF32 it is less. Without a data sheet it is what was published. */
static void find_speeds(tally *sum)
{
    const bz_whatif_asked *asked = sum->asked;
    double half = speed_in(asked, "f16", HALF_REACHES), tf32 = speed_in(asked, "tf32", TF32_REACHES);
    bool less = half > 0 && tf32 > 0 && !bz_whatif_given(asked, "compute");
    sum->half = half > 0 ? half : bz_whatif_number(asked, "compute");
    sum->half_of_tf32 = less ? fmax(1, half / tf32) : sum->half;
}

static bool is_low(const bz_flow *flow, const bz_whatif_asked *asked, uint32_t i)
{
    const bz_kernel *k = bz_whatif_kernel(asked, &flow->task[i]);
    return k && is_low_type(k->type);
}

static void scale_task(bz_flow *flow, const bz_whatif_asked *asked, uint32_t i, tally *sum)
{
    const bz_task *t = &flow->task[i];
    if (t->kind == BZ_TASK_COPY) {
        bz_flow_scale(flow, i, 1 / bz_whatif_number(asked, "copies"));
    } else if (is_low(flow, asked, i)) {
        sum->already++;
    } else if (bz_kernel_limit_of(bz_whatif_does(asked, t)) == BZ_LIMIT_COMPUTE) {
        int64_t was = t->duration;
        const bz_kernel *k = bz_whatif_kernel(asked, t);
        bool tf32 = k && k->type && !strcmp(k->type, "tf32");
        bz_flow_scale(flow, i, 1 / (tf32 ? sum->half_of_tf32 : sum->half));
        bz_tally_add(&sum->computing, was, t->duration);
    } else {
        bz_flow_scale(flow, i, 1 / bz_whatif_number(asked, "memory"));
        sum->moving++;
    }
}

static void tell(bz_whatif_asked *asked, const tally *s)
{
    if (s->by_records.n)
        bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, asked->records->name,
                         "%d kernels or calls of %d library calls: %s become %s, as the best records in 16 bits stand "
                         "to those in 32",
                         s->by_records.n, s->calls, BZ_SAY_TALLY(s->by_records));
    if (s->conversions)
        bz_whatif_assume_parameter(
            asked, "conversions",
            "%d launches of kernels that bring tensors into the layout of matrix units; what these "
            "take is in the records",
            s->conversions);
    if (s->computing.n && !bz_whatif_given(asked, "compute") && by_sheet(asked, "f16") > 0)
        bz_whatif_assume(
            asked, BZ_ASSUMED_GUESSED, "its data sheet",
            "%d kernels of products and convolutions: %s become %s, where %s does %.3g times as much in 16 "
            "bits as in f32 at its peak",
            s->computing.n, BZ_SAY_TALLY(s->computing), bz_trace_told(asked->trace, "gpu"), by_sheet(asked, "f16"));
    else if (s->computing.n)
        bz_whatif_assume_parameter(asked, "compute", "%d kernels of products and convolutions: time divided by %.3g",
                                   s->computing.n, bz_whatif_number(asked, "compute"));
    if (s->moving)
        bz_whatif_assume_parameter(asked, "memory", "%d other kernels: time divided by %.3g", s->moving,
                                   bz_whatif_number(asked, "memory"));
    if (s->already)
        bz_whatif_assume(asked, BZ_ASSUMED_MEASURED, "names of kernels",
                         "%d kernels compute in 16 bits or fewer already", s->already);
}

/* Most of what products and convolutions take is in 16 bits: so is what moves bytes around them, though its names may not say so. */
static bool is_done(const bz_flow *flow, const bz_whatif_asked *asked)
{
    int64_t done = 0, all = 0;
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_task *t = &flow->task[i];
        if (t->removed || bz_kernel_limit_of(bz_whatif_does(asked, t)) != BZ_LIMIT_COMPUTE)
            continue;
        all = bz_flow_sum(all, t->duration);
        done = bz_flow_sum(done, is_low(flow, asked, i) ? t->duration : 0);
    }
    return done > all / 2;
}

/* A change before this one may have made products compute in another type: what both gain is not the one times the other. */
static int because_of(bz_whatif_asked *asked, const bz_flow *flow)
{
    return bz_whatif_because(asked, "products and convolutions compute in %s by a change before it", flow->computes);
}

int bz_whatif_precision(bz_flow *flow, bz_whatif_asked *asked)
{
    tally sum = {.asked = asked};
    bz_call_factors calls = {0};
    if (flow->computes)
        return because_of(asked, flow);
    if (is_done(flow, asked))
        return bz_whatif_because(asked, "products and convolutions compute in 16 bits already");
    find_speeds(&sum);
    if (asked->records && bz_whatif_factors(flow, asked, find_factor, &sum, &calls))
        return -1;
    for (uint32_t i = 0, n = flow->n; i < n; i++)
        if (!flow->task[i].removed && !scale_by_records(flow, asked, i, calls.factor, &sum) &&
            bz_task_on_device((bz_task_kind)flow->task[i].kind))
            scale_task(flow, asked, i, &sum);
    int changed = sum.computing.n + sum.moving + sum.by_records.n;
    if (!changed)
        return sum.already
                   ? bz_whatif_because(asked, "its %d kernels compute in 16 bits or fewer already", sum.already)
                   : bz_whatif_because(asked, "no kernels of a device are on record, and no records tell of 16 bits");
    flow->computes = "16 bits";
    tell(asked, &sum);
    return changed;
}

int bz_whatif_tf32(bz_flow *flow, bz_whatif_asked *asked)
{
    const char *gpu = bz_trace_told(asked->trace, "gpu");
    bool given = bz_whatif_given(asked, "compute");
    double sheet = by_sheet(asked, "tf32"), speed = speed_in(asked, "tf32", TF32_REACHES);
    int n = 0, done = 0;
    if (flow->computes)
        return because_of(asked, flow);
    for (uint32_t i = 0; i < flow->n; i++) {
        const bz_kernel *k = flow->task[i].removed ? NULL : bz_whatif_kernel(asked, &flow->task[i]);
        if (!k || !k->type || bz_kernel_limit_of(k->does) != BZ_LIMIT_COMPUTE)
            continue;
        done += !strcmp(k->type, "tf32");
        if (strcmp(k->type, "f32") != 0)
            continue;
        if (speed > 0)
            bz_flow_scale(flow, i, 1 / speed);
        n++;
    }
    if (!n)
        return done ? bz_whatif_because(asked, "its %d products of f32 multiply in TF32 already", done)
                    : bz_whatif_because(asked, "no kernel of a device multiplies in f32");
    if (!(speed > 0))
        return sheet == 0 ? bz_whatif_because(asked, "%s has no TF32", gpu)
                          : bz_whatif_because(asked, "no data sheet tells what its GPU does in TF32: compute=N does");
    flow->computes = "TF32";
    if (given)
        bz_whatif_assume_parameter(asked, "compute",
                                   "%d kernels of products and convolutions in f32: time divided by %.3g", n, speed);
    else
        bz_whatif_assume(asked, BZ_ASSUMED_GUESSED, "its data sheet",
                         "%d kernels of products and convolutions in f32: time divided by %.3g, where %s does %.3g "
                         "times as much in TF32 at its peak",
                         n, speed, gpu, sheet);
    return n;
}
