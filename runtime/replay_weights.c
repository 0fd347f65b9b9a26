/* Constants of a replay: stored, seeded, and what is done to them before anything runs. */
#include "runtime/replay_open.h"

#include "base/arena.h"
#include "runtime/values.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void replay_cast(const void *from, bz_dtype from_type, void *to, bz_dtype to_type, int64_t n)
{
    const bz_replay_loop copy = {.kind = BZ_LOOP_COPY, .rank = 1, .dim = {n}, .stride = {{1}, {1}}};
    void *read;
    memcpy(&read, &from, sizeof read);
    bz_loop_run(&copy, (void *const[]){read, to}, (const bz_dtype[]){from_type, to_type}, (const int64_t[]){n, n}, 2,
                1);
}

static void fill(const bz_replay_value *v, int index, bz_dtype dtype, void *out)
{
    enum { BLOCK = 4096 };
    const bz_problem none = {.kind = BZ_PROBLEM_BINARY, .dtype = BZ_F32};
    int64_t n = replay_count(v);
    if (bz_dtype_is_float(v->dtype)) {
        const bz_operand o = {.role = BZ_ROLE_X, .dtype = BZ_F32, .count = n};
        BZ_FREED float *values = bz_alloc((size_t)n + 1, sizeof *values);
        bz_values_fill(&none, &o, index, values);
        for (int64_t i = 0; i < n; i++)
            values[i] = (v->positive ? fabsf(values[i]) : values[i]) * v->scale + v->offset;
        replay_cast(values, BZ_F32, out, dtype, n);
        return;
    }
    int64_t block[BLOCK];
    uint64_t random = 88172645463325252U + (uint64_t)index;
    size_t size = (size_t)bz_dtype_bits(dtype) / 8;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t k = n - i < BLOCK ? n - i : BLOCK;
        for (int64_t j = 0; j < k; j++) {
            random ^= random << 13; /* xorshift */
            random ^= random >> 7;
            random ^= random << 17;
            block[j] = v->below > 0 ? (int64_t)(random % (uint64_t)v->below) : (int64_t)v->offset;
        }
        replay_cast(block, BZ_I64, (char *)out + (size_t)i * size, dtype, k);
    }
}

static int map_file(bz_replay *r, const char *path, bz_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return bz_fail(err, BZ_BAD_INPUT, "%s: the weights cannot be read: %s", path, strerror(why));
    }
    r->file_size = (size_t)st.st_size;
    void *map = r->file_size ? mmap(NULL, r->file_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (map == MAP_FAILED)
        return bz_fail(err, BZ_BAD_INPUT, "%s: the weights cannot be read", path);
    r->file = map;
    return 0;
}

/* Where the value lies in the file; NULL with a sentence where the file ends before it does. */
static const char *stored_at(const bz_replay *r, const bz_replay_value *v, bz_error *err)
{
    size_t stored = (size_t)replay_count(v) * (size_t)bz_dtype_bits(v->given) / 8;
    if (v->at >= 0 && (size_t)v->at <= r->file_size && r->file_size - (size_t)v->at >= stored)
        return r->file + v->at;
    bz_fail(err, BZ_BAD_INPUT, "the weights end before '%s'", v->name);
    return NULL;
}

int replay_first(const bz_replay *r, int i, void *out, bz_error *err)
{
    const bz_replay_value *v = &r->model->value[i];
    const char *from = v->source == BZ_VALUE_KEPT && v->at >= 0 ? stored_at(r, v, err) : NULL;
    if (from)
        replay_cast(from, v->given, out, v->dtype, replay_count(v));
    else if (v->source == BZ_VALUE_KEPT && v->at >= 0)
        return -1;
    else
        fill(v, i, v->dtype, out);
    return 0;
}

static int load_value(bz_replay *r, int i, bz_error *err)
{
    const bz_replay_value *v = &r->model->value[i];
    replay_state *s = &r->state[i];
    size_t size = replay_bytes(v);
    if (v->source == BZ_VALUE_STORED) {
        const char *from = stored_at(r, v, err);
        if (!from)
            return -1;
        if (v->given == v->dtype) {
            s->constant = from;
            return 0;
        }
    }
    s->constant = s->owned = bz_alloc(size + 64, 1);
    if (v->source == BZ_VALUE_STORED)
        replay_cast(r->file + v->at, v->given, s->owned, v->dtype, replay_count(v));
    else
        fill(v, i, v->dtype, s->owned);
    return 0;
}

int replay_load(bz_replay *r, const char *path, bz_error *err)
{
    bool stored = false;
    for (int i = 0; i < r->model->n_values; i++)
        stored |= r->model->value[i].source == BZ_VALUE_STORED ||
                  (r->model->value[i].source == BZ_VALUE_KEPT && r->model->value[i].at >= 0);
    if (stored && map_file(r, path, err))
        return -1;
    for (int i = 0; i < r->model->n_values; i++) {
        bz_value_source source = r->model->value[i].source;
        if ((source == BZ_VALUE_STORED || source == BZ_VALUE_SEEDED) && load_value(r, i, err))
            return -1;
    }
    return 0;
}

static bool is_rnn(const bz_problem *p)
{
    return p->kind == BZ_PROBLEM_LSTM || p->kind == BZ_PROBLEM_GRU || p->kind == BZ_PROBLEM_RNN;
}

/* ONNX has the gates of an LSTM as input, output, forget, cell. */
static int onnx_gate(const bz_problem *p, int gate)
{
    static const int LSTM[] = {0, 2, 3, 1};
    return p->kind == BZ_PROBLEM_LSTM ? LSTM[gate] : gate;
}

/* [directions, gates · hidden, n] -> [directions, n, gates, hidden] */
static void turn_weights(const bz_problem *p, const bz_operand *o, const float *from, float *to)
{
    int64_t dirs = o->dim[0], n = o->dim[1], gates = o->dim[2], h = o->dim[3];
    for (int64_t d = 0; d < dirs; d++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t g = 0; g < gates; g++)
                for (int64_t j = 0; j < h; j++)
                    to[((d * n + i) * gates + g) * h + j] = from[((d * gates + onnx_gate(p, (int)g)) * h + j) * n + i];
}

/* [directions, 2 · gates · hidden]: of the input, then of the state. Only what a reset gate stands before keeps them
 * apart. */
static void add_biases(const bz_problem *p, const bz_operand *o, const float *from, float *to)
{
    int64_t dirs = o->dim[0], h = o->dim[2];
    bool apart = p->kind == BZ_PROBLEM_GRU && p->rnn.lbr;
    int64_t gates = o->dim[1] - apart;
    for (int64_t d = 0; d < dirs; d++)
        for (int64_t g = 0; g < o->dim[1]; g++)
            for (int64_t j = 0; j < h; j++) {
                const float *w = from + d * 2 * gates * h, *r = w + gates * h;
                int64_t at = onnx_gate(p, (int)(g < gates ? g : gates - 1)) * h + j;
                to[(d * o->dim[1] + g) * h + j] = g == gates ? r[at] : apart && g == gates - 1 ? w[at] : w[at] + r[at];
            }
}

/* Input, output, forget -> input, forget, output. */
static void turn_peephole(const bz_operand *o, const float *from, float *to)
{
    int64_t h = o->dim[2];
    for (int64_t d = 0; d < o->dim[0]; d++)
        for (int k = 0; k < 3; k++)
            memcpy(to + (d * 3 + k) * h, from + (d * 3 + (k ? 3 - k : 0)) * h, (size_t)h * sizeof *to);
}

static float *decode(const bz_replay *r, int value)
{
    const bz_replay_value *v = &r->model->value[value];
    int64_t n = replay_count(v);
    float *out = bz_alloc((size_t)n + 16, sizeof *out);
    replay_cast(r->state[value].constant, v->dtype, out, BZ_F32, n);
    return out;
}

/* A constant as the operand has it; NULL where the counts do not fit. */
static float *operand_values(const bz_replay *r, const bz_problem *p, const bz_operand *o, int value)
{
    float *out = bz_alloc((size_t)o->count + 16, sizeof *out);
    if (value < 0) {
        for (int64_t i = 0; i < o->count; i++)
            out[i] = o->role == BZ_ROLE_SCALE || o->role == BZ_ROLE_VARIANCE;
        return out;
    }
    int64_t has = replay_count(&r->model->value[value]);
    bool bias = is_rnn(p) && o->role == BZ_ROLE_BIAS;
    int64_t wanted = o->count;
    if (bias)
        wanted = p->kind == BZ_PROBLEM_GRU && p->rnn.lbr ? o->count / 4 * 6 : o->count * 2;
    BZ_FREED float *given = decode(r, value);
    bool fits = has == wanted;
    if (fits && bias)
        add_biases(p, o, given, out);
    else if (fits && is_rnn(p) && (o->role == BZ_ROLE_W || o->role == BZ_ROLE_R))
        turn_weights(p, o, given, out);
    else if (fits && is_rnn(p) && o->role == BZ_ROLE_PEEPHOLE)
        turn_peephole(o, given, out);
    else if (fits)
        memcpy(out, given, (size_t)o->count * sizeof *out);
    else if (has == 1 && o->role != BZ_ROLE_X)
        for (int64_t i = 0; i < o->count; i++)
            out[i] = given[0];
    else {
        free(out);
        out = NULL;
    }
    return out;
}

/* Element i of the weights belongs to channel i / inner % channels of the result. */
typedef struct channels {
    int64_t n, inner;
} channels;

static channels channels_of(const bz_problem *p, const bz_operand *w)
{
    switch (p->kind) {
    case BZ_PROBLEM_CONV:
        return (channels){w->dim[0], w->count / w->dim[0]};
    case BZ_PROBLEM_DECONV: /* of one group; others are not folded */
        return (channels){w->dim[1], bz_extent_count(w->dim + 2)};
    case BZ_PROBLEM_GEMM:
        return (channels){p->gemm.n, p->gemm.transb ? p->gemm.k : 1};
    case BZ_PROBLEM_GEMV:
        return (channels){p->gemv.m, p->gemv.trans ? 1 : p->gemv.k};
    default:
        return (channels){w->dim[w->rank - 1], 1};
    }
}

static int fold_one(const bz_replay *r, const bz_replay_fold *f, channels c, float *weights, int64_t n, float *bias,
                    bz_error *err)
{
    float *v[4] = {NULL, NULL, NULL, NULL};
    int rc = 0;
    for (int i = 0; i < 4 && !rc; i++) {
        int64_t has = f->value[i] < 0 ? 0 : replay_count(&r->model->value[f->value[i]]);
        if (f->value[i] < 0)
            continue;
        if (!r->state[f->value[i]].constant || (has != 1 && has != c.n))
            rc = bz_fail(err, BZ_FAILED, "'%s' cannot go into the weights", r->model->value[f->value[i]].name);
        else
            v[i] = decode(r, f->value[i]);
        for (int64_t k = 1; !rc && has == 1 && k < c.n && k < 2; k++) {
            float one = v[i][0];
            v[i] = bz_realloc(v[i], (size_t)c.n, sizeof **v);
            for (int64_t j = 0; j < c.n; j++)
                v[i][j] = one;
        }
    }
    for (int64_t k = 0; k < c.n && !rc; k++) {
        double by = 1, add = 0;
        if (f->kind == BZ_FOLD_BATCHNORM) {
            by = (double)v[0][k] / sqrt((double)v[3][k] + (double)f->factor);
            add = (double)v[1][k] - (double)v[2][k] * by;
        } else if (f->kind == BZ_FOLD_ADD) {
            add = (double)f->factor * (double)v[0][k];
        } else if (f->kind == BZ_FOLD_MUL || f->kind == BZ_FOLD_DIV) {
            by = f->kind == BZ_FOLD_MUL ? (double)v[0][k] : 1 / (double)v[0][k];
        }
        if (f->kind == BZ_FOLD_BIAS)
            by = (double)f->factor;
        if (bias)
            bias[k] = (float)((double)bias[k] * (f->kind == BZ_FOLD_WEIGHTS ? 1 : by) + add);
        by = f->kind == BZ_FOLD_WEIGHTS ? (double)f->factor : f->kind == BZ_FOLD_BIAS ? 1 : by;
        for (int64_t o = k * c.inner; by != 1 && weights && o < n; o += c.n * c.inner)
            for (int64_t i = o; i < o + c.inner; i++)
                weights[i] = (float)((double)weights[i] * by);
    }
    for (int i = 0; i < 4; i++)
        free(v[i]);
    return rc;
}

static int fold(const bz_replay *r, const bz_replay_step *step, replay_call *call, bz_error *err)
{
    int w = -1, bias = -1;
    for (int i = 0; i < call->n - 1; i++) {
        bz_role role = call->operand[i].role;
        w = w < 0 && (role == BZ_ROLE_W || role == BZ_ROLE_B) ? i : w;
        bias = role == BZ_ROLE_BIAS ? i : bias;
    }
    if (w < 0 || !call->value[w] || (bias >= 0 && !call->value[bias]))
        return bz_fail(err, BZ_FAILED, "%s: its weights are not constant", step->name);
    channels c = channels_of(&call->problem, &call->operand[w]);
    for (int i = 0; i < step->n_folds; i++)
        if (fold_one(r, &step->fold[i], c, call->value[w], call->operand[w].count, bias < 0 ? NULL : call->value[bias],
                     err))
            return bz_fail_in(err, "%s", step->name);
    return 0;
}

int replay_operands(bz_replay *r, const bz_replay_step *step, replay_call *call, bz_error *err)
{
    for (int i = 0; i < call->n_in; i++) {
        const bz_operand *o = &call->operand[i];
        int value = step->in[i];
        if (value >= 0 && !r->state[value].constant)
            continue;
        call->value[i] = operand_values(r, &call->problem, o, value);
        if (!call->value[i])
            return bz_fail(err, BZ_FAILED, "%s: '%s' does not fit the call", step->name, r->model->value[value].name);
    }
    if (step->n_folds && fold(r, step, call, err))
        return -1;
    for (int i = 0; i < call->n_in; i++)
        for (int64_t k = 0; call->value[i] && call->operand[i].dtype != BZ_F32 && k < call->operand[i].count; k++)
            call->value[i][k] = bz_round_to(call->operand[i].dtype, (double)call->value[i][k]);
    return 0;
}
