/* Loops that sample images between their pixels, and their gradients. Where the pixels of some points lie is found once, for
 * all channels that share these points. */
#include "runtime/loops/parts.h"

#include <math.h>

typedef struct pixels {
    int32_t at[4];
    float share[4], by[2][4]; /* how the share grows with each coordinate */
} pixels;

/* One coordinate: its first pixel, and the shares of that and the next; pixels that are not there have none, and lie at 0. */
static void find_side(const bz_problem *p, int axis, float place, int32_t *at, float *share, float *by)
{
    int32_t n = (int32_t)p->sample.x[2 + axis], low;
    float moves = 1;
    at[0] = at[1] = 0, share[0] = share[1] = by[0] = by[1] = 0;
    if (p->sample.outside == BZ_OUTSIDE_EDGE && (place < 0 || place > (float)(n - 1)))
        place = place < 0 ? 0 : (float)(n - 1), moves = 0;
    if (!(place > -1 && place < (float)n))
        return;
    if (p->sample.mode == BZ_RESAMPLE_NEAREST) {
        low = (int32_t)nearbyintf(place);
        at[0] = low < n ? low : 0, share[0] = low >= 0 && low < n;
        return;
    }
    low = (int32_t)floorf(place);
    if (low >= 0)
        at[0] = low, share[0] = 1 - (place - (float)low), by[0] = -moves;
    if (low + 1 < n)
        at[1] = low + 1, share[1] = place - (float)low, by[1] = moves;
}

static void find_pixels(const bz_parts *t, int places, int64_t first, int64_t n, pixels *list)
{
    const float *place = (const float *)bz_plain_at(t->plain, places, t->copy) + 2 * first;
    int32_t h[2], w[2];
    float share_h[2], share_w[2], by_h[2], by_w[2];
    for (int64_t i = 0; i < n; i++, place += 2) {
        find_side(t->problem, 0, place[0], h, share_h, by_h);
        find_side(t->problem, 1, place[1], w, share_w, by_w);
        for (int k = 0; k < 4; k++) {
            list[i].at[k] = h[k / 2] * (int32_t)t->problem->sample.x[3] + w[k % 2];
            list[i].share[k] = share_h[k / 2] * share_w[k % 2];
            list[i].by[0][k] = by_h[k / 2] * share_w[k % 2];
            list[i].by[1][k] = share_h[k / 2] * by_w[k % 2];
        }
    }
}

/* Points that are worked on at once: whole means. */
static int64_t points_at_once(const bz_problem *p)
{
    return BZ_SAMPLE_MEAN / p->sample.mean * p->sample.mean;
}

static float sum_of(const pixels *s, const float *x, const float *share)
{
    return x[s->at[0]] * share[0] + x[s->at[1]] * share[1] + x[s->at[2]] * share[2] + x[s->at[3]] * share[3];
}

/* Some points of a row and group, in all its channels. */
static void sample_points(bz_parts *t, int64_t part, int thread)
{
    const bz_problem *p = t->problem;
    const int64_t *x = p->sample.x, *at = p->sample.at, mean = p->sample.mean;
    int64_t once = points_at_once(p), blocks = pieces(at[2], once), first = part % blocks * once,
            row = part / blocks / at[1];
    int64_t n = at[2] - first < once ? at[2] - first : once, plane = x[2] * x[3], results = at[2] / mean;
    int64_t channels = x[1] / at[1], channel = part / blocks % at[1] * channels;
    pixels list[BZ_SAMPLE_MEAN];
    (void)thread;
    find_pixels(t, 1, part / blocks * at[2] + first, n, list);
    if (p->sample.masked) {
        const float *mask = (const float *)bz_plain_at(t->plain, 2, t->copy) + part / blocks * at[2] + first;
        for (int64_t i = 0; i < n; i++)
            for (int k = 0; k < 4; k++)
                list[i].share[k] *= mask[i];
    }
    for (int64_t c = channel; c < channel + channels; c++) {
        const float *from_x =
            (const float *)bz_plain_at(t->plain, 0, t->copy) + (row * x[0] / at[0] * x[1] + c) * plane;
        float *y = (float *)bz_plain_at(t->plain, t->y, t->copy) + (row * x[1] + c) * results + first / mean;
        if (mean == 1)
            for (int64_t i = 0; i < n; i++)
                y[i] = sum_of(&list[i], from_x, list[i].share);
        for (int64_t i = 0; i < n && mean > 1; i += mean) {
            float sum = 0;
            for (int64_t k = i; k < i + mean; k++)
                sum += sum_of(&list[k], from_x, list[k].share);
            y[i / mean] = sum / (float)mean;
        }
    }
}

/* Some points: what they give to the channels of dx, and sums over these for the points themselves. */
static void back_points(bz_parts *t, int64_t row, int64_t group, int64_t first, int64_t n)
{
    const bz_problem *p = t->problem;
    const int64_t *x = p->sample.x, *at = p->sample.at, mean = p->sample.mean;
    int64_t channels = x[1] / at[1], plane = x[2] * x[3], results = at[2] / mean,
            place = (row * at[1] + group) * at[2] + first;
    const float *mask = p->sample.masked ? (const float *)bz_plain_at(t->plain, 3, t->copy) + place : NULL;
    float *dplace = parameter(t, BZ_ROLE_INDEX, true), *dmask = parameter(t, BZ_ROLE_MASK, true);
    float by_h[BZ_SAMPLE_MEAN] = {0}, by_w[BZ_SAMPLE_MEAN] = {0}, by_mask[BZ_SAMPLE_MEAN] = {0};
    pixels list[BZ_SAMPLE_MEAN];
    find_pixels(t, 2, place, n, list);
    for (int64_t c = group * channels; c < (group + 1) * channels; c++) {
        int64_t image = (row * x[0] / at[0] * x[1] + c) * plane;
        const float *from_x = (const float *)bz_plain_at(t->plain, 1, t->copy) + image;
        const float *dy = (const float *)bz_plain_at(t->plain, 0, t->copy) + (row * x[1] + c) * results + first / mean;
        float *dx = (float *)bz_plain_at(t->plain, t->y, t->copy) + image;
        for (int64_t i = 0; i < n; i++) {
            const pixels *s = &list[i];
            float g = mean == 1 ? dy[i] : dy[i / mean] / (float)mean;
            by_mask[i] += dmask ? g * sum_of(s, from_x, s->share) : 0;
            g *= mask ? mask[i] : 1;
            if (dplace) {
                by_h[i] += g * sum_of(s, from_x, s->by[0]);
                by_w[i] += g * sum_of(s, from_x, s->by[1]);
            }
            for (int k = 0; k < 4; k++)
                dx[s->at[k]] += g * s->share[k];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if (dplace)
            dplace[2 * (place + i)] = by_h[i], dplace[2 * (place + i) + 1] = by_w[i];
        if (dmask)
            dmask[place + i] = by_mask[i];
    }
}

/* An image's channels of a group: no two threads add to one place. */
static void sample_grad_image(bz_parts *t, int64_t part, int thread)
{
    const bz_problem *p = t->problem;
    const int64_t *x = p->sample.x, *at = p->sample.at;
    int64_t image = part / at[1], group = part % at[1], channels = x[1] / at[1] * x[2] * x[3], once = points_at_once(p);
    (void)thread;
    memset((float *)bz_plain_at(t->plain, t->y, t->copy) + part * channels, 0, (size_t)channels * sizeof(float));
    for (int64_t row = pieces(image * at[0], x[0]); row < pieces((image + 1) * at[0], x[0]); row++)
        for (int64_t i = 0; i < at[2]; i += once)
            back_points(t, row, group, i, at[2] - i < once ? at[2] - i : once);
}

static void open_sample(bz_parts *t)
{
    const bz_problem *p = t->problem;
    bool back = p->kind == BZ_PROBLEM_SAMPLE_GRAD;
    t->length = 1;
    t->parts = p->sample.at[1] * (back ? p->sample.x[0] : p->sample.at[0] * pieces(p->sample.at[2], points_at_once(p)));
    for (int i = 0; i < t->job->n_operands; i++)
        if (t->job->operand[i].dtype != BZ_F32)
            t->one = NULL;
}

const bz_part_kind bz_part_samples[] = {
    {BZ_PROBLEM_SAMPLE, PART_DATA, open_sample, sample_points, NULL, NULL},
    {BZ_PROBLEM_SAMPLE_GRAD, PART_DATA, open_sample, sample_grad_image, NULL, NULL},
    {.kind = BZ_PROBLEM_NONE},
};
