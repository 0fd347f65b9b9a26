/* The first sentence of a report: what was asked, answered with one number, then what to do about it. */
#include "report/parts.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static void put_hardware(const bz_goal *goal, bz_buf *out)
{
    if (!isfinite(goal->hardware))
        return;
    bool contradicted = goal->enough && !goal->unpriced && goal->hardware > goal->sequential;
    bz_buf_printf(out,
                  contradicted
                      ? "; by the hardware's peaks it would take %s, so they are too low, or records are wrong: "
                        "'benanza system --measure' on a quiet machine measures them again"
                      : "; the hardware's peaks allow %s",
                  BZ_SAY_TIME(goal->hardware));
}

/* "≥ 3.49 ms (87 of 87 layers predicted)". ≥: layers are missing from the total. */
static void put_bound(const bz_bound *b, const bz_goal *goal, bz_buf *out)
{
    bz_buf_printf(out, "%s%s", goal->unpriced ? "≥ " : "", BZ_SAY_TIME(goal->sequential));
    if (b->coverage.predicted)
        bz_buf_printf(out, " (%d of %d layers predicted)", b->coverage.predicted, b->coverage.layers);
}

/* A total in which too much is missing is no answer. */
static void put_unknown(const bz_bound *b, const bz_goal *goal, bz_buf *out)
{
    if (b->partial && bz_goal_enough(goal->macs, goal->time)) {
        bz_buf_puts(out, "it did other work besides the layers that are known, which the libraries could run in ");
        put_bound(b, goal, out);
        return;
    }
    bz_buf_puts(out, "how fast the libraries could run it is not known yet, because only ");
    bz_goal_print(goal, out);
    put_hardware(goal, out);
    if (b->measures)
        bz_buf_say(out, "\n  on %s this measures the rest: %s", b->system, b->measures);
    if (b->measures && !b->rebuilt && b->facts->gpu && !b->coverage.predicted)
        bz_buf_puts(out, "\n  without that GPU: --predict prices the rest by what other GPUs took");
}

/* "torch.compile(model)", or the sentence of the advice without its capital and its full stop. */
static void put_change(const bz_ladder *l, const bz_advice *a, bz_buf *out)
{
    bool line = l->framework && *a->step && !strchr(a->step, '\n');
    const char *text = line ? a->step : a->what;
    size_t n = strlen(text);
    BZ_SCOPED(bz_buf) clean = {0};
    bz_buf_clean(&clean, text);
    bz_buf_printf(out, "; %s of it by one %s: ", BZ_SAY_TIME(a->gain), line ? "line" : "change");
    if (!line && clean.len) {
        clean.data[0] = (char)tolower((unsigned char)clean.data[0]);
        clean.len -= text[n - 1] == '.';
        clean.data[clean.len] = 0;
    }
    bz_buf_puts(out, bz_buf_text(&clean));
}

/* What was measured, and no more than is known of it. */
static void put_took(const bz_ladder *l, bz_buf *out)
{
    bz_buf_printf(out, ": %s%s took %s%s", l->calls_alone ? "the library calls of " : "",
                  l->open ? "what repeats in it, an iteration or a part of one," : "one iteration",
                  BZ_SAY_TIME(l->latency), l->calls_alone ? " (the log tells no time between them)" : "");
}

static void put_profile(const bz_bound *b, const bz_ladder *l, bz_buf *out)
{
    const bz_goal *goal = &l->goal;
    bz_buf_clean(out, l->profile);
    if (!isfinite(l->latency)) {
        bz_buf_puts(out, l->iterations ? " has no times: " : ": no iteration was found in it; ");
        if (goal->enough) {
            bz_buf_puts(out, "the libraries could do an iteration in ");
            put_bound(b, goal, out);
        } else {
            put_unknown(b, goal, out);
        }
    } else if (l->foreign) {
        put_took(l, out);
        bz_buf_say(out, "%s%s",
                   l->open ? "; it cannot be held against the model: it " : ", but it does not fit the model: it ",
                   l->foreign);
    } else if (l->defect) {
        put_took(l, out);
        bz_buf_printf(out,
                      ", less than the bound of %s: this bound is wrong, or the program did other work; the warnings "
                      "below say what is known",
                      BZ_SAY_TIME(goal->sequential));
    } else if (!goal->enough) {
        put_took(l, out);
        bz_buf_puts(out, "; ");
        put_unknown(b, goal, out);
    } else if (
        l->ran_on) { /* one number is of one machine, the other of another: their ratio says nothing of the program */
        put_took(l, out);
        bz_buf_say(out, " on %s; on %s the libraries could do it in ", l->ran_on, b->facts->name);
        put_bound(b, goal, out);
    } else {
        put_took(l, out);
        bz_buf_printf(out, "; the libraries could do %s in ", l->hidden > 0 ? "its calls" : "it");
        put_bound(b, goal, out);
        bz_buf_puts(out, ": ");
        if (l->hidden + goal->far > 0)
            bz_buf_printf(out, "between %.3g × and ", l->latency / (goal->sequential + goal->far + l->hidden));
        else if (goal->unpriced || l->calls_alone)
            bz_buf_puts(out, goal->unpriced ? "up to " : "at least ");
        bz_buf_printf(out, "%.3g × faster is possible", l->speedup);
        if (l->hidden > 0)
            bz_buf_printf(out, ": %s lie between them, and nothing tells which layers ran there",
                          BZ_SAY_TIME(l->hidden));
        if (goal->far > 0)
            bz_buf_printf(out, "%s%s more are needed as %s of weights come from far (modelled)",
                          l->hidden > 0 ? ", and " : ": ", BZ_SAY_TIME(goal->far), BZ_SAY_BYTES(goal->weights));
        if (l->n_advices && l->advice->gain > 0 && !l->advice->unsure &&
            l->advice->gain <= l->latency - goal->sequential)
            put_change(l, l->advice, out);
    }
    bz_buf_putc(out, '\n');
}

static void put_model(const bz_bound *b, bz_buf *out)
{
    const bz_goal goal = bz_bound_goal(b);
    bz_buf_say(out, "%s: ", b->model);
    if (!goal.enough) {
        put_unknown(b, &goal, out);
    } else {
        bz_buf_puts(out, "the libraries could run it in ");
        put_bound(b, &goal, out);
        if (goal.sequential < b->sequential && bz_bound_written(b).enough)
            bz_buf_printf(out, " where they fuse layers, in %s layer by layer", BZ_SAY_TIME(b->sequential));
        if (goal.far > 0)
            bz_buf_printf(out, " with its weights in the caches, in %s as all %s of them come from far (modelled)",
                          BZ_SAY_TIME(goal.sequential + goal.far), BZ_SAY_BYTES(goal.weights));
        put_hardware(&goal, out);
    }
    bz_buf_putc(out, '\n');
}

/* What a step of a language model is, and how many tokens a second that makes. */
static void put_step(const bz_bound *b, bz_buf *out)
{
    bz_token_step step;
    const bz_goal goal = bz_bound_goal(b);
    if (!bz_layers_step(b->layers, &step))
        return;
    double tokens = (double)step.sequences * (double)step.tokens, least = goal.sequential + goal.far;
    bz_buf_printf(out, "  %s of %s token%s", step.tokens == 1 ? "decode" : "prefill", BZ_SAY_COUNT(tokens),
                  BZ_PLURAL(tokens));
    if (step.sequences > 1)
        bz_buf_printf(out, ", %s sequences", BZ_SAY_COUNT((double)step.sequences));
    bz_buf_printf(out, ", caches of %s", BZ_SAY_COUNT((double)step.past));
    if (isfinite(goal.hardware) && goal.hardware > 0)
        bz_buf_printf(out, ": at most %s tokens/s by the hardware's peaks", BZ_SAY_COUNT(tokens / goal.hardware));
    if (goal.enough && goal.sequential > 0)
        bz_buf_printf(out, "%s %s%s by the libraries", isfinite(goal.hardware) ? "," : ":",
                      goal.unpriced || goal.far > 0 ? "at most " : "", BZ_SAY_COUNT(tokens / least));
    bz_buf_putc(out, '\n');
}

void report_answer_text(const bz_analysis *a, bz_buf *out)
{
    bz_style_begin(out, BZ_STYLE_STRONG);
    for (int i = 0; i < a->n_ladders; i++)
        put_profile(&a->bound, &a->ladder[i], out);
    if (!a->n_ladders)
        put_model(&a->bound, out);
    bz_style_end(out, BZ_STYLE_STRONG);
    put_step(&a->bound, out);
}
