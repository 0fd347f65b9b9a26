/* Any bytes as a model and as a plan of it: two bytes of length, the plan's text, the model. The first two bits of the length
 * are options. Promised: a model becomes steps or a sentence; what a program is made of is in range, its loops and views stay
 * inside of their operands, and its constants are as large as their values; a plan is followed or refused with a sentence, and whichever it is,
 * every call keeps the problem that the model gave it. */
#include "replay/replay.h"

#include "fuzz.h"

#include <string.h>

const size_t fuzz_header_size = 2;

static long double count_of(const bz_replay_plan *p, int value)
{
    return (long double)bz_extent_count(p->value[value].dim);
}

/* What a loop reaches of a value, in numbers that do not overflow. A double holds 53 bits: of 2^54 elements it takes the last for the
 * one behind it. */
static void check_reach(const bz_replay_plan *p, int value, const bz_replay_loop *l, const int64_t *stride,
                        int64_t from)
{
    long double first = (long double)from, last = first;
    for (int i = 0; i < l->rank; i++)
        *(stride[i] < 0 ? &first : &last) += (long double)(l->dim[i] - 1) * (long double)stride[i];
    PROMISE(first >= 0 && last < count_of(p, value));
}

/* Indices lead up to `far` elements behind where the loop is. */
static void check_places(const bz_replay_plan *p, const bz_replay_step *s)
{
    const bz_replay_loop *l = s->loop;
    bool gathers = l->kind == BZ_LOOP_GATHER;
    int64_t far = 0;
    PROMISE(l->length > 0 && l->length <= BZ_PROBLEM_RANK && s->n_in == 2);
    for (int j = 0; j < l->length; j++)
        far += (l->extent[j] - 1) * l->step[j];
    check_reach(p, s->in[!gathers ? 0 : 1], l, l->stride[gathers], l->length - 1);
    check_reach(p, gathers ? s->in[0] : s->out, l, l->stride[gathers ? 0 : 2], far);
    if (!gathers)
        check_reach(p, s->in[1], l, l->stride[1], l->to);
}

static void check_lanes(const bz_replay_plan *p, const bz_replay_step *s)
{
    const bz_replay_loop *l = s->loop;
    long double lanes = (long double)l->dim[0] * (long double)l->dim[2];
    PROMISE(l->rank == 4 && lanes > 0 && l->dim[1] > 0 && l->dim[3] > 0);
    PROMISE(lanes * (long double)l->dim[1] <= count_of(p, s->in[0]) &&
            lanes * (long double)l->dim[3] <= count_of(p, s->out));
    PROMISE(s->n_in < 2 || 2 * (long double)l->length * (long double)l->dim[3] <= count_of(p, s->in[1]));
}

static void check_loop(const bz_replay_plan *p, const bz_replay_step *s)
{
    const bz_replay_loop *l = s->loop;
    long double all = 1;
    PROMISE(l && l->rank > 0 && l->rank <= BZ_PROBLEM_RANK);
    if (l->kind == BZ_LOOP_LANES) {
        check_lanes(p, s);
        return;
    }
    for (int i = 0; i < l->rank; i++)
        all *= (long double)l->dim[i];
    if (l->kind == BZ_LOOP_GATHER || l->kind == BZ_LOOP_SCATTER) {
        check_places(p, s);
        PROMISE(l->kind == BZ_LOOP_SCATTER || all <= count_of(p, s->out));
        return;
    }
    if (l->kind == BZ_LOOP_COPY)
        check_reach(p, s->out, l, l->stride[1], l->to);
    else
        PROMISE(all <= count_of(p, s->out));
    for (int k = 0; k < s->n_in; k++)
        check_reach(p, s->in[k], l, l->stride[k], k ? 0 : l->from);
}

static void check_view(const bz_replay_plan *p, const bz_replay_step *s)
{
    PROMISE(count_of(p, s->in[0]) == count_of(p, s->out) && p->value[s->in[0]].dtype == p->value[s->out].dtype);
}

static void check_constants(const bz_replay_plan *p)
{
    for (int i = 0; i < p->n_values; i++) {
        const bz_tensor *t = p->value[i].source == BZ_VALUE_STORED ? p->source[i].tensor : NULL;
        PROMISE(!t || (t->n == bz_extent_count(p->value[i].dim) && t->dtype == p->value[i].given));
    }
}

static void check_steps(const bz_replay_plan *p)
{
    check_constants(p);
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_step *s = &p->step[i];
        PROMISE(s->out >= 0 && s->out < p->n_values);
        for (int k = 0; k < s->n_in; k++)
            PROMISE(s->in[k] < p->n_values && (s->in[k] >= 0 || s->kind == BZ_STEP_CALL));
        PROMISE(s->kind != BZ_STEP_CALL || (s->problem && *s->backend && p->choice[i].n));
        if (s->kind == BZ_STEP_LOOP)
            check_loop(p, s);
        if (s->kind == BZ_STEP_VIEW)
            check_view(p, s);
    }
}

static void follow(bz_replay_plan *p, const char *text, size_t n)
{
    bz_error err = {0};
    bz_buf program = {0};
    if (bz_replay_follow(p, text, n, &err))
        PROMISE(*err.text);
    check_steps(p);
    bz_replay_program(p, &program);
    PROMISE(!memchr(bz_buf_text(&program), 0, program.len));
    bz_buf_free(&program);
}

static void say(const bz_replay_plan *p)
{
    bz_buf out = {0};
    bz_replay_json(p, &out);
    SAW(out.data, out.len);
    bz_buf_clear(&out);
    bz_replay_program(p, &out);
    SAW(out.data, out.len);
    bz_buf_free(&out);
}

static void replay_it(bz_layers *l, bz_dtype dtype, const char *text, size_t n)
{
    static bz_patterns *patterns; /* parsed once */
    bz_error err = {0};
    bz_replay_plan *p;
    PROMISE(patterns || !bz_patterns_parse(bz_patterns_text, "patterns", &patterns, &err));
    bz_plan *plan = bz_plan_new(&(bz_plan_options){.dtype = dtype, .patterns = patterns});
    bz_plan_add(plan, l, "fuzz");
    const bz_replay_input in = {.model = "fuzz",
                                .layers = l,
                                .plan = plan,
                                .fuse = n % 2,
                                .dtype = dtype,
                                .setting = {.threads = 1},
                                .part = n % 4 > 1};
    if (!bz_replay_make(&in, &p, &err)) {
        check_steps(p);
        say(p);
        follow(p, text, n);
        bz_replay_free(p);
    } else {
        PROMISE(*err.text);
    }
    bz_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_error err = {0};
    bz_model *model;
    bz_layers *layers;
    if (size < fuzz_header_size)
        return 0;
    size_t n = (size_t)(data[0] & 63) << 8 | data[1];
    n = n < size - 2 ? n : size - 2;
    if (bz_model_parse(data + 2 + n, size - 2 - n, "fuzz", &model, &err))
        return 0;
    if (!bz_layers_infer(model, &(bz_infer_options){.batch = data[0] & 128 ? 0 : 1}, &layers, &err)) {
        replay_it(layers, data[0] & 64 ? BZ_BF16 : BZ_UNDEFINED, (const char *)data + 2, n);
        bz_layers_free(layers);
    }
    bz_model_free(model);
    return 0;
}
