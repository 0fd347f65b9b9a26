/* The first sentence of a report: what was asked, answered with one number, then what to do about it. */
#include "analyzer/report.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* The lowest bound of which every part is priced: fused where groups were planned, else layer by layer. */
static double lowest(const bz_bound *b)
{
    const bz_bound_fused *f = &b->fused;
    return f->wanted && f->sequential < b->sequential ? f->sequential : b->sequential;
}

/* A total in which layers are missing is no answer. */
static bool is_complete(const bz_bound *b)
{
    return !b->coverage.unpriced && b->n;
}

static void put_hardware(const bz_bound *b, bz_buf *out)
{
    bz_unit_text time;
    double floor = b->fused.wanted && isfinite(b->fused.hardware) ? b->fused.hardware : b->hardware;
    if (isfinite(floor))
        bz_buf_printf(out, "; the hardware's peaks allow %s", bz_units_time(time, floor));
}

static void put_unknown(const bz_bound *b, bz_buf *out)
{
    int n = b->coverage.layers, lacking = b->coverage.unpriced;
    bz_buf_printf(out, "how fast the libraries could run it is not known yet, because %d of %d layer%s no price",
                  lacking, n, n == 1 ? " has" : "s have");
    put_hardware(b, out);
}

/* "torch.compile(model)", or the sentence of the advice without its capital and its full stop. */
static void put_change(const bz_ladder *l, const bz_advice *a, bz_buf *out)
{
    bz_unit_text gain;
    bool line = l->framework && *a->step && !strchr(a->step, '\n');
    const char *text = line ? a->step : a->what;
    size_t n = strlen(text);
    bz_buf clean = {0};
    bz_buf_clean(&clean, text);
    bz_buf_printf(out, "; %s of it by one %s: ", bz_units_time(gain, a->gain), line ? "line" : "change");
    if (!line && clean.len) {
        clean.data[0] = (char)tolower((unsigned char)clean.data[0]);
        clean.len -= text[n - 1] == '.';
        clean.data[clean.len] = 0;
    }
    bz_buf_puts(out, bz_buf_text(&clean));
    bz_buf_free(&clean);
}

static void put_profile(const bz_bound *b, const bz_ladder *l, bz_buf *out)
{
    bz_unit_text latency, bound;
    double low = lowest(b);
    bz_buf_clean(out, l->profile);
    if (!isfinite(l->latency)) {
        bz_buf_puts(out, " has no times: ");
        if (is_complete(b))
            bz_buf_printf(out, "the libraries could do an iteration in %s", bz_units_time(bound, low));
        else
            put_unknown(b, out);
    } else if (!is_complete(b)) {
        bz_buf_printf(out, ": one iteration took %s; ", bz_units_time(latency, l->latency));
        put_unknown(b, out);
    } else if (low > l->latency) {
        bz_buf_printf(out,
                      ": one iteration took %s, less than the bound of %s: this bound is wrong, or the program did "
                      "other work; the warnings below say what is known",
                      bz_units_time(latency, l->latency), bz_units_time(bound, low));
    } else {
        bz_buf_printf(out, ": one iteration took %s; the libraries could do it in %s: %.3g × faster is possible",
                      bz_units_time(latency, l->latency), bz_units_time(bound, low), l->latency / low);
        if (l->n_advices && l->advice->gain > 0 && l->advice->gain <= l->latency - low)
            put_change(l, l->advice, out);
    }
    bz_buf_putc(out, '\n');
}

static void put_model(const bz_bound *b, bz_buf *out)
{
    bz_unit_text time, other;
    double low = lowest(b);
    bz_buf_clean(out, b->model);
    bz_buf_puts(out, ": ");
    if (!is_complete(b)) {
        put_unknown(b, out);
    } else {
        bz_buf_printf(out, "the libraries could run it in %s", bz_units_time(time, low));
        if (low < b->sequential)
            bz_buf_printf(out, " where they fuse layers, in %s layer by layer", bz_units_time(other, b->sequential));
        put_hardware(b, out);
    }
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
}
