/* Kernels that no library has: loss, update, pointwise parts of an LSTM. */
#ifndef STREAM_LOOPS_H
#define STREAM_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Elements are float, or bfloat16: a float's upper half. */
static inline float load(const void *at, bool half, size_t i)
{
    if (!half)
        return ((const float *)at)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline void store(void *at, bool half, size_t i, float v)
{
    if (!half) {
        ((float *)at)[i] = v;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

typedef struct loss {
    const void *y;
    void *grad;
    float *value;
    int rows, columns;
    bool half;
} loss;
void loss_run(void *l);

/* Adam as frameworks write it: a call for each arithmetic step on each tensor. */
typedef enum {
    UPDATE_DECAY,
    UPDATE_MOMENT,
    UPDATE_DECAY_2,
    UPDATE_MOMENT_2,
    UPDATE_ROOT,
    UPDATE_DIVIDE,
    UPDATE_ADD,
    UPDATE_STEPS
} update_step;
extern const char *const update_names[UPDATE_STEPS];
typedef struct update {
    update_step step;
    void *value;
    const void *grad;
    float *first, *second, *work;
    size_t n;
    bool half;
} update;
void update_run(void *u);

typedef struct fused_update {
    update *update;
    int n;
} fused_update;
void fused_update_run(void *f);

/* One time step of an LSTM: four gates of `hidden` for each row; forward fills cell and state, backward the gates' gradients. */
typedef struct lstm_step {
    void *gates, *state;
    float *cell;
    const float *cell_before;
    const void *state_grad;
    void *gates_grad;
    float *cell_grad;
    int rows, hidden;
    bool half;
} lstm_step;
void lstm_forward_run(void *s);
void lstm_backward_run(void *s);

#endif
