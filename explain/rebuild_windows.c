/* Windows of convolutions and poolings that a recording does not tell: by the result, which some operator behind reads. */
#include "explain/rebuild.h"

#include "explain/constants.h"

/* How a window goes from `in` to `out`: patch by patch, or at the least stride, padded by half of it or not at all, or by what
 * lacks. */
static bool fit_axis(int64_t in, int64_t out, int64_t kernel, int64_t *stride, int64_t *begin, int64_t *end)
{
    if (out < 1)
        return false;
    if (kernel > 1 && in % kernel == 0 && in / kernel == out) {
        *stride = kernel;
        *begin = *end = 0;
        return true;
    }
    for (int way = 0; way < 3; way++)
        for (int64_t s = 1; s <= WIDEST_STRIDE; s++) {
            int64_t p = way == 1 ? 0 : (kernel - 1) / 2, lacks = (out - 1) * s + kernel - in;
            bool fits = way < 2 ? in + 2 * p >= kernel && (in + 2 * p - kernel) / s + 1 == out
                                : lacks > 0 && lacks < kernel && (in + s - 1) / s == out;
            if (!fits)
                continue;
            *stride = s;
            *begin = way < 2 ? p : lacks / 2;
            *end = way < 2 ? p : lacks - lacks / 2;
            return true;
        }
    /* Wider strides are of a transform of sound, 160 samples on and 512 wide: no padding, and where a stride ends at the end, that. */
    int64_t moved = in - kernel, least = moved / out + 1, most = out > 1 ? moved / (out - 1) : 0;
    *stride = out > 1 && moved % (out - 1) == 0 ? most : least;
    *begin = *end = 0;
    return moved >= 0 && least <= most;
}

static bool fit_window(const bz_operand_seen *x, const int64_t *y, rebuild_window *w)
{
    int n = x->rank - 2;
    for (int a = 0; a < n; a++) {
        w->dilation[a] = 1;
        int64_t in = w->turned ? y[2 + a] : x->dim[2 + a], out = w->turned ? x->dim[2 + a] : y[2 + a];
        if (!fit_axis(in, out, w->kernel[a], &w->stride[a], &w->pad[a], &w->pad[n + a]))
            return false;
    }
    return true;
}

/* The result by an operator behind that reads it, or by one inside that puts it in order: it has the input's images, and so many
 * channels; the others must fit the window, or, where its kernel is not known, be no larger than the input's. */
const int64_t *rebuild_result(const rebuild_making *m, const bz_operand_seen *x, int64_t channels, rebuild_window *w)
{
    if (m->o->n_out)
        return m->o->out[0].rank == x->rank && (!w || fit_window(x, m->o->out[0].dim, w)) ? m->o->out[0].dim : NULL;
    int looked = 0;
    for (size_t i = m->op + 1; i < m->e->n && looked < READERS_LOOKED_AT; i++) {
        bool inside = m->e->start[i] < m->e->end[m->op];
        if (m->e->lane[i] != m->e->lane[m->op] ||
            (inside && !bz_name_matches("as_strided", bz_string(m->t, m->e->name[i]))))
            continue;
        const bz_operator *o = bz_operator_of(m->t, i);
        looked++;
        for (int k = 0; k < o->n_in; k++) {
            const bz_operand_seen *v = &o->in[k];
            bool fits = v->rank == x->rank && v->dim[0] == x->dim[0] && v->dim[1] == channels;
            for (int a = 2; a < x->rank && fits; a++)
                fits = v->dim[a] > 0 && (w || v->dim[a] <= x->dim[a]);
            if (fits && (!w || fit_window(x, v->dim, w)))
                return v->dim;
        }
    }
    return NULL;
}

void rebuild_guess_window(rebuild_making *m, int n, rebuild_window *w)
{
    for (int a = 0; a < n; a++) {
        w->stride[a] = w->dilation[a] = 1;
        w->pad[a] = (w->kernel[a] - 1) / 2;
        w->pad[n + a] = w->kernel[a] - 1 - w->pad[a];
    }
    m->guessed++;
}

bool rebuild_guess_kernel(rebuild_making *m, const bz_operand_seen *x, rebuild_window *v)
{
    const int64_t *y = rebuild_result(m, x, x->dim[1], NULL);
    for (size_t k = 0; y && k < sizeof USUAL_KERNELS / sizeof *USUAL_KERNELS; k++) {
        for (int a = 0; a < REBUILD_SPATIAL; a++)
            v->kernel[a] = USUAL_KERNELS[k];
        if (fit_window(x, y, v)) {
            m->guessed++;
            return true;
        }
    }
    return false;
}
