#include "loops.h"

#include <math.h>

void loss_run(void *argument)
{
    const loss *l = argument;
    double sum = 0;
    for (int r = 0; r < l->rows; r++) {
        size_t row = (size_t)r * (size_t)l->columns;
        float most = load(l->y, l->half, row), total = 0;
        for (int c = 1; c < l->columns; c++)
            most = fmaxf(most, load(l->y, l->half, row + (size_t)c));
        for (int c = 0; c < l->columns; c++)
            total += expf(load(l->y, l->half, row + (size_t)c) - most);
        int right = r % l->columns;
        sum += logf(total) - (load(l->y, l->half, row + (size_t)right) - most);
        for (int c = 0; c < l->columns; c++) {
            float p = expf(load(l->y, l->half, row + (size_t)c) - most) / total;
            store(l->grad, l->half, row + (size_t)c, (p - (c == right ? 1.0f : 0.0f)) / (float)l->rows);
        }
    }
    *l->value = (float)(sum / l->rows);
}

static const float RATE = 1e-6f, DECAY = 0.9f, DECAY_2 = 0.999f, EPSILON = 1e-8f;

const char *const update_names[UPDATE_STEPS] = {"mul", "add", "mul", "addcmul", "sqrt", "div", "addcdiv"};

void update_run(void *argument)
{
    const update *u = argument;
    switch (u->step) {
    case UPDATE_DECAY:
        for (size_t i = 0; i < u->n; i++)
            u->first[i] *= DECAY;
        break;
    case UPDATE_MOMENT:
        for (size_t i = 0; i < u->n; i++)
            u->first[i] += (1 - DECAY) * load(u->grad, u->half, i);
        break;
    case UPDATE_DECAY_2:
        for (size_t i = 0; i < u->n; i++)
            u->second[i] *= DECAY_2;
        break;
    case UPDATE_MOMENT_2:
        for (size_t i = 0; i < u->n; i++) {
            float g = load(u->grad, u->half, i);
            u->second[i] += (1 - DECAY_2) * g * g;
        }
        break;
    case UPDATE_ROOT:
        for (size_t i = 0; i < u->n; i++)
            u->work[i] = sqrtf(u->second[i]);
        break;
    case UPDATE_DIVIDE:
        for (size_t i = 0; i < u->n; i++)
            u->work[i] = u->first[i] / (u->work[i] + EPSILON);
        break;
    case UPDATE_ADD:
        for (size_t i = 0; i < u->n; i++)
            store(u->value, u->half, i, load(u->value, u->half, i) - RATE * u->work[i]);
        break;
    case UPDATE_STEPS:
        break;
    }
}

void fused_update_run(void *argument)
{
    const fused_update *f = argument;
    for (int k = 0; k < f->n; k++) {
        const update *u = &f->update[k];
        for (size_t i = 0; i < u->n; i++) {
            float g = load(u->grad, u->half, i);
            float first = u->first[i] = DECAY * u->first[i] + (1 - DECAY) * g;
            float second = u->second[i] = DECAY_2 * u->second[i] + (1 - DECAY_2) * g * g;
            store(u->value, u->half, i, load(u->value, u->half, i) - RATE * (first / (sqrtf(second) + EPSILON)));
        }
    }
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

void lstm_forward_run(void *argument)
{
    const lstm_step *s = argument;
    size_t h = (size_t)s->hidden;
    for (size_t r = 0; r < (size_t)s->rows; r++)
        for (size_t i = 0; i < h; i++) {
            size_t at = 4 * r * h + i;
            float in = sigmoid(load(s->gates, s->half, at)), forget = sigmoid(load(s->gates, s->half, at + h)),
                  new = tanhf(load(s->gates, s->half, at + 2 * h)), out = sigmoid(load(s->gates, s->half, at + 3 * h));
            float cell = s->cell[r * h + i] = forget * s->cell_before[r * h + i] + in * new;
            store(s->gates, s->half, at, in);
            store(s->gates, s->half, at + h, forget);
            store(s->gates, s->half, at + 2 * h, new);
            store(s->gates, s->half, at + 3 * h, out);
            store(s->state, s->half, r * h + i, out * tanhf(cell));
        }
}

void lstm_backward_run(void *argument)
{
    const lstm_step *s = argument;
    size_t h = (size_t)s->hidden;
    for (size_t r = 0; r < (size_t)s->rows; r++)
        for (size_t i = 0; i < h; i++) {
            size_t at = 4 * r * h + i;
            float in = load(s->gates, s->half, at), forget = load(s->gates, s->half, at + h),
                  new = load(s->gates, s->half, at + 2 * h), out = load(s->gates, s->half, at + 3 * h),
                  cell = tanhf(s->cell[r * h + i]), g = load(s->state_grad, s->half, r * h + i);
            float d = g * out * (1 - cell * cell) + s->cell_grad[r * h + i];
            s->cell_grad[r * h + i] = d * forget;
            store(s->gates_grad, s->half, at, d * new *in *(1 - in));
            store(s->gates_grad, s->half, at + h, d * s->cell_before[r * h + i] * forget * (1 - forget));
            store(s->gates_grad, s->half, at + 2 * h, d * in * (1 - new *new));
            store(s->gates_grad, s->half, at + 3 * h, g * cell * out * (1 - out));
        }
}
