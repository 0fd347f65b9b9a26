/* Any bytes as a model and as a plan of it: two bytes of length, the plan's text, the model. Promised: a model becomes steps
 * or a sentence; what a program is made of is in range; a plan is followed or refused with a sentence, and whichever it is,
 * every call keeps the problem that the model gave it. */
#include "replay/replay.h"

#include "fuzz.h"

#include <string.h>

const size_t fuzz_header_size = 2;

static void check_steps(const bz_replay_plan *p)
{
    for (int i = 0; i < p->n_steps; i++) {
        const bz_replay_step *s = &p->step[i];
        PROMISE(s->out >= 0 && s->out < p->n_values);
        for (int k = 0; k < s->n_in; k++)
            PROMISE(s->in[k] < p->n_values && (s->in[k] >= 0 || s->kind == BZ_STEP_CALL));
        PROMISE(s->kind != BZ_STEP_CALL || (s->problem && *s->backend && p->choice[i].n));
        PROMISE(s->kind != BZ_STEP_LOOP || (s->loop && s->loop->rank > 0 && s->loop->rank <= BZ_PROBLEM_RANK));
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

static void replay_it(bz_layers *l, const char *text, size_t n)
{
    static bz_patterns *patterns; /* parsed once */
    bz_error err = {0};
    bz_replay_plan *p;
    PROMISE(patterns || !bz_patterns_parse(bz_patterns_text, "patterns", &patterns, &err));
    bz_plan *plan = bz_plan_new(&(bz_plan_options){.patterns = patterns});
    bz_plan_add(plan, l, "fuzz");
    const bz_replay_input in = {.model = "fuzz", .layers = l, .plan = plan, .fuse = n % 2, .setting = {.threads = 1}};
    if (!bz_replay_make(&in, &p, &err)) {
        check_steps(p);
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
    size_t n = (size_t)data[0] << 8 | data[1];
    n = n < size - 2 ? n : size - 2;
    if (bz_model_parse(data + 2 + n, size - 2 - n, "fuzz", &model, &err))
        return 0;
    if (!bz_layers_infer(model, &(bz_infer_options){.batch = 1}, &layers, &err)) {
        replay_it(layers, (const char *)data + 2, n);
        bz_layers_free(layers);
    }
    bz_model_free(model);
    return 0;
}
