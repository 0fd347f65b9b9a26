/* The published learned predictor (Yu, Gao, Golikov, Pekhimenko: Habitat, USENIX ATC 2021): for each kind of operation a network of dense
 * layers with ReLU, whose inputs are the operation's extents and four numbers of the GPU, trained by Adam to the least mean absolute
 * percentage error. Published are 8 layers of 1024 units and 91,000 to 156,000 random problems for each kind on each of six GPUs. Here are as
 * many units as the records of some networks bear, and the output is the logarithm of the factor to the roofline. */
#include "predict/dense.h"

#include "predict/constants.h"
#include "predict/learned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 16, BATCH = 128, ROWS = 4, COLUMNS = 16 };
enum {
    FIRST = (INPUTS + 1) * WIDTH,
    INNER = (WIDTH + 1) * WIDTH,
    PARAMETERS = FIRST + (HIDDEN - 1) * INNER + WIDTH + 1
};

typedef struct network {
    float mean[INPUTS], scale[INPUTS]; /* scale 0: the same in all records */
    float *at; /* [PARAMETERS]: of each layer the weights, then the biases; NULL: nothing was learned */
} network;

struct bz_dense {
    double margin;
    network kind[BZ_SHAPE_KINDS];
    bz_arena arena;
};

static void inputs(const bz_shape *s, const bz_machine *m, float *out)
{
    memset(out, 0, INPUTS * sizeof *out);
    for (int i = 0; i < s->n; i++)
        out[i] = (float)s->x[i];
    out[BZ_SHAPE] = (float)log(m->f32);
    out[BZ_SHAPE + 1] = (float)log(m->bandwidth);
    out[BZ_SHAPE + 2] = (float)log(m->multiprocessors);
    out[BZ_SHAPE + 3] = (float)m->generation;
}

typedef float lanes __attribute__((vector_size(32), aligned(4), may_alias));

/* c[m][n] += a · b, where a[i][p] is a[i * down + p * along]; m is a multiple of 4 and n of 16. */
BZ_WIDE static void multiply(int m, int n, int k, const float *a, int down, int along, const float *b, float *c)
{
    for (int i = 0; i < m; i += ROWS)
        for (int j = 0; j < n; j += COLUMNS) {
            lanes sum[ROWS][2] = {{{0}}};
            for (int p = 0; p < k; p++) {
                const lanes *at = (const lanes *)(b + p * n + j), low = at[0], high = at[1];
                for (int r = 0; r < ROWS; r++) {
                    float v = a[(i + r) * down + p * along];
                    sum[r][0] += v * low;
                    sum[r][1] += v * high;
                }
            }
            for (int r = 0; r < ROWS; r++) {
                lanes *to = (lanes *)(c + (i + r) * n + j);
                to[0] += sum[r][0];
                to[1] += sum[r][1];
            }
        }
}

/* What each layer makes of a batch. */
typedef struct activations {
    float in[BATCH * INPUTS], hidden[HIDDEN][BATCH * WIDTH], out[BATCH];
} activations;

static const float *layer_of(const float *at, int layer)
{
    return at + (layer ? FIRST + (layer - 1) * INNER : 0);
}

static void forward(const float *at, int rows, activations *a)
{
    for (int layer = 0; layer < HIDDEN; layer++) {
        int in = layer ? WIDTH : INPUTS;
        const float *w = layer_of(at, layer);
        float *h = a->hidden[layer];
        for (int b = 0; b < rows; b++)
            memcpy(h + b * WIDTH, w + in * WIDTH, WIDTH * sizeof *h);
        multiply(rows, WIDTH, in, layer ? a->hidden[layer - 1] : a->in, in, 1, w, h);
        for (int i = 0; i < rows * WIDTH; i++)
            h[i] = h[i] > 0 ? h[i] : 0;
    }
    const float *w = layer_of(at, HIDDEN);
    for (int b = 0; b < rows; b++) {
        a->out[b] = w[WIDTH];
        for (int i = 0; i < WIDTH; i++)
            a->out[b] += w[i] * a->hidden[HIDDEN - 1][b * WIDTH + i];
    }
}

/* out[b]: by what the loss changes with each output. Adds to `gradient` by what it changes with each parameter. */
static void backward(const float *at, const activations *a, const float *out, float *gradient)
{
    float back[BATCH * WIDTH], next[BATCH * WIDTH], turned[INNER];
    const float *w = layer_of(at, HIDDEN);
    float *g = gradient + (w - at);
    for (int b = 0; b < BATCH; b++) {
        g[WIDTH] += out[b];
        for (int i = 0; i < WIDTH; i++) {
            g[i] += out[b] * a->hidden[HIDDEN - 1][b * WIDTH + i];
            back[b * WIDTH + i] = out[b] * w[i];
        }
    }
    for (int layer = HIDDEN - 1; layer >= 0; layer--) {
        int in = layer ? WIDTH : INPUTS;
        w = layer_of(at, layer);
        g = gradient + (w - at);
        for (int i = 0; i < BATCH * WIDTH; i++) {
            back[i] = a->hidden[layer][i] > 0 ? back[i] : 0;
            g[in * WIDTH + i % WIDTH] += back[i];
        }
        multiply(in, WIDTH, BATCH, layer ? a->hidden[layer - 1] : a->in, 1, in, back, g);
        for (int i = 0; layer && i < WIDTH * WIDTH; i++)
            turned[i % WIDTH * WIDTH + i / WIDTH] = w[i];
        memset(next, 0, sizeof next);
        if (layer)
            multiply(BATCH, WIDTH, WIDTH, back, WIDTH, 1, turned, next);
        memcpy(back, next, sizeof back);
    }
}

/* Adam; the decay of weights is coupled into the gradient, as PyTorch's is. */
static void step(float *at, const float *gradient, float *first, float *second, int number, double rate)
{
    const float B1 = 0.9F, B2 = 0.999F, DECAY = 1e-4F, EPS = 1e-8F;
    float scale = (float)(rate * sqrt(1 - pow(0.999, number)) / (1 - pow(0.9, number)));
    for (int i = 0; i < PARAMETERS; i++) {
        float g = gradient[i] + DECAY * at[i];
        first[i] = B1 * first[i] + (1 - B1) * g;
        second[i] = B2 * second[i] + (1 - B2) * g * g;
        at[i] -= scale * first[i] / (sqrtf(second[i]) + EPS);
    }
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state * 0x2545F4914F6CDD1D >> 32;
}

static void normalize(const network *net, const float *in, float *out)
{
    for (int i = 0; i < INPUTS; i++)
        out[i] = (in[i] - net->mean[i]) * net->scale[i];
}

static void moments(network *net, const float *in, int n)
{
    for (int i = 0; i < INPUTS; i++) {
        double sum = 0, squares = 0;
        for (int k = 0; k < n; k++)
            sum += (double)in[k * INPUTS + i] / n;
        for (int k = 0; k < n; k++)
            squares += (in[k * INPUTS + i] - sum) * (in[k * INPUTS + i] - sum) / n;
        net->mean[i] = (float)sum;
        net->scale[i] = squares > 1e-9 ? (float)(1 / sqrt(squares)) : 0;
    }
}

static void begin(float *at, double mean, uint64_t *state)
{
    for (int i = 0; i < PARAMETERS; i++) {
        int layer = i < FIRST ? 0 : 1 + (i - FIRST) / INNER, in = layer ? WIDTH : INPUTS;
        bool bias = i - (layer_of(at, layer) - at) >= (layer == HIDDEN ? WIDTH : in * WIDTH);
        double uniform = (double)draw(state) / 0x1p31 - 1;
        at[i] = bias ? 0 : (float)(uniform * sqrt((layer == HIDDEN ? 0.1 : 6.0) / in));
    }
    at[PARAMETERS - 1] = (float)mean;
}

/* in[n * INPUTS], is[n]: the residuals. */
static void train(network *net, const float *in, const float *is, int n)
{
    BZ_FREED int *order = bz_alloc((size_t)n, sizeof *order);
    BZ_FREED float *moment = bz_zeroed(2 * PARAMETERS, sizeof *moment),
                   *gradient = bz_alloc(PARAMETERS, sizeof *gradient);
    BZ_FREED activations *a = bz_alloc(1, sizeof *a);
    uint64_t state = 0x9E3779B97F4A7C15;
    double mean = 0;
    for (int i = 0; i < n; i++)
        mean += (double)is[i] / n, order[i] = i;
    moments(net, in, n);
    begin(net->at, mean, &state);
    int steps = (n + BATCH - 1) / BATCH * EPOCHS, taken = n;
    for (int number = 1; number <= steps; number++) {
        float out[BATCH];
        int row[BATCH];
        for (int b = 0; b < BATCH; b++, taken++) {
            for (int i = n - 1; i > 0 && taken >= n; i--) {
                int k = (int)(draw(&state) % (uint64_t)(i + 1)), t = order[i];
                order[i] = order[k], order[k] = t;
            }
            taken = taken >= n ? 0 : taken;
            row[b] = order[taken];
            normalize(net, in + (size_t)row[b] * INPUTS, a->in + b * INPUTS);
        }
        forward(net->at, BATCH, a);
        for (int b = 0; b < BATCH; b++) { /* |exp(e) - 1| */
            float e = fminf(a->out[b] - is[row[b]], 2);
            out[b] = (e > 0 ? expf(e) : e < 0 ? -expf(e) : 0) / BATCH;
        }
        memset(gradient, 0, PARAMETERS * sizeof *gradient);
        backward(net->at, a, out, gradient);
        step(net->at, gradient, moment, moment + PARAMETERS, number,
             RATE * 0.5 * (1 + cos(3.14159265 * number / steps)));
    }
}

bz_dense *bz_dense_new(const bz_samples *s, const bool *use, const bool *known, double margin)
{
    bz_dense *d = bz_zeroed(1, sizeof *d);
    size_t cells = (size_t)s->n * (size_t)s->machines + 1;
    BZ_FREED float *in = bz_alloc(cells * INPUTS, sizeof *in), *is = bz_alloc(cells, sizeof *is);
    d->margin = margin;
    for (int kind = 0; kind < BZ_SHAPE_KINDS; kind++) {
        int n = 0;
        for (int i = 0; i < s->n; i++)
            for (int m = 0; m < s->machines && s->shape[i].kind == kind && (!known || known[i]); m++) {
                const bz_machine *on = &s->machine[m];
                double t = bz_samples_log(s, i, m);
                if ((use && !use[m]) || isnan(on->floor) || isnan(t))
                    continue;
                inputs(&s->shape[i], on, in + (size_t)n * INPUTS);
                is[n++] = (float)(t - log(bz_shape_roofline(&s->shape[i], on, on->floor, margin)));
            }
        if (n < ENOUGH)
            continue;
        d->kind[kind].at = BZ_NEW(&d->arena, float, PARAMETERS);
        train(&d->kind[kind], in, is, n);
    }
    return d;
}

void bz_dense_free(bz_dense *d)
{
    if (d)
        bz_arena_free(&d->arena);
    free(d);
}

double bz_dense_log(const bz_dense *d, const bz_shape *s, const bz_machine *m, double floor)
{
    const network *net = &d->kind[s->kind];
    double roofline = log(bz_shape_roofline(s, m, floor, d->margin));
    activations a;
    float in[INPUTS];
    if (!net->at)
        return roofline;
    memset(a.in, 0, ROWS * INPUTS * sizeof *a.in);
    inputs(s, m, in);
    normalize(net, in, a.in);
    forward(net->at, ROWS, &a);
    return roofline + (double)a.out[0];
}
