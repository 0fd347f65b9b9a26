/* Prompts and tokens of a language model. A prompt (prefill) is many tokens at once; then each step (decode) makes one token for
 * each sequence of the batch. Both run the same layers by other kernels, so a step is either like the others or a pass of about as many
 * kernels, of which most are of other names or shapes, on more data. */
#include "profile/constants.h"
#include "profile/sequence.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t kernels, strange; /* strange: the typical iteration has none of this name and shape */
    uint32_t attention, products, vectors;
    int64_t time, blocks, rows; /* rows: blocks of normalizations, which have one for each token */
} pass;

static int64_t blocks_of(const bz_trace *t, size_t i)
{
    const uint32_t *grid = bz_kernel_launched(t, i)->grid;
    int64_t n = 1;
    for (int d = 0; d < 3; d++)
        if (__builtin_mul_overflow(n, (int64_t)(grid[d] ? grid[d] : 1), &n))
            return INT64_MAX;
    return n;
}

static uint64_t shape_of(const bz_trace *t, size_t i)
{
    const uint32_t *grid = bz_kernel_launched(t, i)->grid;
    uint64_t h = t->event[BZ_EVENT_KERNEL].name[i];
    for (int d = 0; d < 3; d++)
        h = (h ^ grid[d]) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 31;
}

static bool has_attention(const bz_trace *t)
{
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    bool *seen = bz_zeroed(bz_strings(t), sizeof *seen), found = false;
    for (size_t i = 0; i < k->n; i++)
        seen[k->name[i]] = true;
    for (uint32_t id = 0; id < bz_strings(t) && !found; id++)
        found = seen[id] && bz_kernel_named(t, id)->does == BZ_KERNEL_ATTENTION;
    free(seen);
    return found;
}

static void count_kernels(const bz_trace *t, pass *p)
{
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    bz_cursor cursor = {0};
    for (size_t i = 0; i < k->n; i++) {
        uint32_t it = bz_cursor_at(&cursor, t, k, i);
        if (it == BZ_NONE)
            continue;
        bz_kernel_does does = bz_kernel_of(t, i)->does;
        p[it].kernels++;
        p[it].attention += does == BZ_KERNEL_ATTENTION;
        p[it].vectors += does == BZ_KERNEL_VECTOR_PRODUCT;
        p[it].products += does == BZ_KERNEL_VECTOR_PRODUCT || does == BZ_KERNEL_PRODUCT;
        bz_time_add(&p[it].time, k->end[i] - k->start[i]);
        bz_time_add(&p[it].blocks, blocks_of(t, i));
        bz_time_add(&p[it].rows, does == BZ_KERNEL_NORM ? blocks_of(t, i) : 0);
    }
}

/* How many kernels of each iteration the typical one has not. */
static void count_strange(const bz_trace *t, pass *p, uint32_t typical, bz_arena *arena)
{
    const bz_events *k = &t->event[BZ_EVENT_KERNEL];
    BZ_SCOPED(bz_map) known = {0};
    uint64_t *shape = BZ_NEW(arena, uint64_t, k->n);
    for (size_t i = 0; i < k->n; i++) {
        shape[i] = shape_of(t, i);
        if (bz_event_iteration(t, BZ_EVENT_KERNEL, i) == typical)
            bz_map_add(&known, &shape[i], sizeof shape[i], 0);
    }
    for (size_t i = 0; i < k->n; i++) {
        uint32_t it = bz_event_iteration(t, BZ_EVENT_KERNEL, i);
        if (it != BZ_NONE && bz_map_get(&known, &shape[i], sizeof shape[i]) == BZ_MAP_NONE)
            p[it].strange++;
    }
}

/* The iteration of median kernel time. */
static uint32_t typical_pass(const bz_trace *t, const pass *p, bz_arena *arena)
{
    int64_t *time = BZ_NEW(arena, int64_t, t->n_iterations);
    uint32_t i = 0;
    for (; i < t->n_iterations; i++)
        time[i] = p[i].time;
    int64_t usual = bz_median(time, t->n_iterations);
    for (i = 0; i + 1 < t->n_iterations && p[i].time != usual; i++)
        ;
    return i;
}

/* A pass over a prompt, next to one over a token. A short prompt takes no longer than a token where reading the weights takes the
 * time, and its products have few more blocks; but it has more rows. */
static bool is_prompt(const pass *p, const pass *typical)
{
    return p->kernels <= 2 * typical->kernels && typical->kernels <= 2 * p->kernels &&
           5 * p->strange >= 2 * p->kernels &&
           (p->time / 2 >= typical->time || p->blocks / 2 >= typical->blocks || p->rows / 2 > typical->rows);
}

/* Of "inputs=[[32000,4096],[8,1],…": how many indexes the embedding looks up, and how many of each sequence. */
static bool looked_up(const char *detail, uint32_t *all, uint32_t *each)
{
    const char *s = strstr(detail, "inputs=");
    uint64_t n = 1, last = 0;
    int dims = 0;
    for (int list = 0; s && list < 3; list++) /* the outer list, the table, the indexes */
        s = strchr(s + 1, '[');
    if (!s)
        return false;
    for (char *end; *s == '[' || *s == ','; s = end, dims++) {
        while (*++s == ' ')
            ;
        last = strtoul(s, &end, 10);
        if (end == s || !last || last > UINT32_MAX || n > UINT32_MAX / last)
            return false;
        n *= last;
        while (*end == ' ')
            end++;
    }
    *all = (uint32_t)n;
    *each = dims > 1 ? (uint32_t)last : (uint32_t)n;
    return dims > 0;
}

typedef struct {
    uint32_t all, each; /* tokens of an iteration, and of one sequence in it; 0: not known */
} lookup;

static bool find_lookups(const bz_trace *t, lookup *l)
{
    const bz_events *op = &t->event[BZ_EVENT_OP];
    bool any = false;
    for (size_t i = 0; i < op->n; i++) {
        uint32_t all, each, it;
        if (strcmp(bz_string(t, op->name[i]), "aten::embedding") != 0 ||
            !looked_up(bz_string(t, op->detail[i]), &all, &each) ||
            (it = bz_event_iteration(t, BZ_EVENT_OP, i)) == BZ_NONE || all <= l[it].all)
            continue;
        l[it] = (lookup){all, each};
        any = true;
    }
    return any;
}

/* Shapes tell surely: some iterations look up one token of each sequence, others many. */
static bool by_shapes(bz_trace *t, const lookup *l)
{
    uint32_t one = 0, many = 0;
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        one += l[i].each == 1;
        many += l[i].each > 1;
    }
    if (!one)
        return false; /* training, or an encoder: all of them are whole */
    for (uint32_t i = 0; i < t->n_iterations; i++)
        t->iteration[i].phase = l[i].each == 1 ? BZ_STEP_DECODE : l[i].each > 1 ? BZ_STEP_PREFILL : BZ_STEP_WHOLE;
    return one > 1 || many > 0;
}

static void by_kernels(bz_trace *t, bz_arena *arena)
{
    if (!has_attention(t)) /* no language model */
        return;
    pass *p = BZ_NEW(arena, pass, t->n_iterations);
    uint32_t prompts = 0;
    count_kernels(t, p);
    uint32_t typical = typical_pass(t, p, arena);
    if (!p[typical].attention)
        return;
    count_strange(t, p, typical, arena);
    bool *prompt = BZ_NEW(arena, bool, t->n_iterations);
    for (uint32_t i = 0; i < t->n_iterations; i++)
        prompts += prompt[i] = is_prompt(&p[i], &p[typical]);
    bool vectors = 2 * p[typical].vectors >= p[typical].products && p[typical].vectors;
    /* without a prompt nothing but products of vectors tells decode; of many prompts it is something else that alternates */
    if ((!prompts && !vectors) || DECODES_PER_PROMPT * prompts > t->n_iterations)
        return;
    for (uint32_t i = 0; i < t->n_iterations; i++)
        t->iteration[i].phase = prompt[i] ? BZ_STEP_PREFILL : BZ_STEP_DECODE;
}

/* The number behind `key`, or behind "sq" behind it, as in "context_2(sq300sk300)" the tokens. False: there is none. */
static bool number_behind(const char *name, const char *key, uint32_t *out, const char **rest)
{
    const char *s = strstr(name, key);
    if (!s)
        return false;
    s += strlen(key);
    s += 2 * !strncmp(s, "sq", 2);
    char *end;
    unsigned long n = *s >= '0' && *s <= '9' ? strtoul(s, &end, 10) : ULONG_MAX;
    if (n > UINT32_MAX)
        return false;
    *out = (uint32_t)n;
    *rest = end;
    return true;
}

/* vLLM's steps are "execute_context_2(300)_generation_30(30)": sequences of prompts and of answers, and their tokens; SGLang's
 * "step[EXTEND bs=2 toks=300]" and "step[DECODE bs=30]". What reads a prompt is one, though answers go on beside it. */
static bool told_by_name(const char *name, bz_iteration *it)
{
    uint32_t prompts, tokens, answers, n;
    const char *rest;
    if (number_behind(name, "context_", &prompts, &rest) && number_behind(rest, "(", &tokens, &rest) &&
        number_behind(rest, "_generation_", &answers, &rest) && number_behind(rest, "(", &n, &rest)) {
        it->phase = prompts ? BZ_STEP_PREFILL : BZ_STEP_DECODE;
        it->tokens = prompts ? tokens + n : answers;
        return prompts || answers;
    }
    if (strncmp(name, "step[", 5) != 0 || !number_behind(name, "bs=", &answers, &rest))
        return false;
    bool prompt = number_behind(rest, "toks=", &n, &rest);
    it->phase = prompt ? BZ_STEP_PREFILL : BZ_STEP_DECODE;
    it->tokens = prompt ? n : answers;
    return prompt || !strncmp(name, "step[DECODE ", 12);
}

static bool by_names(bz_trace *t)
{
    const bz_events *e = &t->event[BZ_EVENT_RANGE];
    uint32_t told = 0, at = 0, answers = 0;
    for (size_t i = 0; i < e->n && at < t->n_iterations && t->origin == BZ_ITERATION_RANGE; i++) {
        bz_iteration *it = &t->iteration[at], named = *it;
        if (e->start[i] != it->start || e->end[i] != it->end || t->lane[e->lane[i]].device ||
            !told_by_name(bz_string(t, e->name[i]), &named))
            continue;
        *it = named;
        answers += it->phase == BZ_STEP_DECODE;
        told++;
        at++;
    }
    bool all = told && told == t->n_iterations;
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        t->iteration[i].phase =
            all && answers ? t->iteration[i].phase : BZ_STEP_WHOLE; /* prompts alone are all that there is */
        t->iteration[i].tokens = all ? t->iteration[i].tokens : 0;
    }
    return all;
}

/* A prompt takes longer than what follows, and is no warm-up. */
static void keep_prompts(bz_trace *t)
{
    for (uint32_t i = 0; i < t->n_iterations; i++)
        if (t->iteration[i].phase == BZ_STEP_PREFILL)
            t->iteration[i].warm_up = false;
}

void bz_trace_find_phases(bz_trace *t)
{
    BZ_SCOPED(bz_arena) arena = {0};
    if (by_names(t)) {
        keep_prompts(t);
        return;
    }
    if (t->n_iterations < 3)
        return;
    lookup *l = BZ_NEW(&arena, lookup, t->n_iterations);
    bool told = find_lookups(t, l) && by_shapes(t, l);
    bool by_calls = !told && !t->event[BZ_EVENT_KERNEL].n && bz_phases_by_calls(t, &arena);
    if (!told && t->event[BZ_EVENT_KERNEL].n)
        by_kernels(t, &arena);
    for (uint32_t i = 0; i < t->n_iterations && !by_calls; i++)
        t->iteration[i].tokens = l[i].all;
    keep_prompts(t);
}

typedef struct {
    double median, sum;
    uint32_t n, fewest, most; /* iterations; tokens of one */
    uint64_t tokens;          /* of all */
} taken;

/* How long a step takes, on the host or, where that does not wait, on the device: its own work, behind that of the step before. */
static int64_t *lengths(const bz_trace *t)
{
    int64_t *length = bz_alloc((size_t)t->n_iterations + 1, sizeof *length), before = INT64_MIN;
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        bz_iteration_stats s;
        bz_iteration_measure(t, i, &s);
        length[i] = s.latency;
        if (s.device_end == INT64_MIN)
            continue;
        int64_t own = s.device_end - (s.device_begin > before ? s.device_begin : before);
        length[i] = own > s.latency ? own : s.latency;
        before = s.device_end > before ? s.device_end : before;
    }
    return length;
}

static taken what_takes(const bz_trace *t, bz_step_phase phase, const int64_t *length, double *values)
{
    taken all = {.fewest = UINT32_MAX};
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        const bz_iteration *it = &t->iteration[i];
        if (it->phase != phase || it->warm_up)
            continue;
        all.sum += values[all.n++] = 1e-9 * (double)length[i];
        all.tokens += it->tokens;
        all.fewest = it->tokens < all.fewest ? it->tokens : all.fewest;
        all.most = it->tokens > all.most ? it->tokens : all.most;
    }
    all.median = bz_quantiles_of(values, all.n).p50;
    return all;
}

bool bz_trace_phases(const bz_trace *t, bz_phases *out)
{
    *out = (bz_phases){0};
    uint32_t decode = 0;
    while (decode < t->n_iterations && t->iteration[decode].phase != BZ_STEP_DECODE)
        decode++;
    if (decode == t->n_iterations)
        return false;
    BZ_FREED double *values = bz_alloc((size_t)t->n_iterations + 1, sizeof *values);
    BZ_FREED int64_t *length = lengths(t);
    taken prompts = what_takes(t, BZ_STEP_PREFILL, length, values),
          steps = what_takes(t, BZ_STEP_DECODE, length, values);
    *out = (bz_phases){.prompts = prompts.n,
                       .steps = steps.n,
                       .prompt_tokens = prompts.most,
                       .batch = steps.most,
                       .fewest = steps.n && steps.fewest ? steps.fewest : steps.most,
                       .prefill = prompts.median,
                       .decode = steps.median};
    if (steps.median > 0)
        out->rate =
            out->fewest < out->batch ? (double)steps.tokens / steps.sum : (out->batch ? out->batch : 1) / steps.median;
    return out->steps > 0;
}

/* "1 prompt took 20.1 ms (median), 33 steps of one token 1.2 ms each (median): 833 tokens per second for each sequence" */
void bz_phases_print(const bz_phases *p, bz_buf *out)
{
    bz_unit_text each, prompt;
    if (p->prompts) {
        bz_buf_printf(out, "%u prompt%s", p->prompts, p->prompts == 1 ? "" : "s");
        if (p->prompt_tokens)
            bz_buf_printf(out, " of %s%u tokens", p->prompts > 1 ? "up to " : "", p->prompt_tokens);
        bz_buf_printf(out, " (prefill): %s%s; ", bz_units_time(prompt, p->prefill),
                      p->prompts == 1 ? "" : " each (median)");
    }
    bz_buf_printf(out, "%u step%s of one token for each sequence (decode): %s each (median)", p->steps,
                  p->steps == 1 ? "" : "s", bz_units_time(each, p->decode));
    if (!(p->rate > 0))
        return;
    bz_buf_printf(out, p->rate < 1000 ? ", %.4g tokens per second " : ", %.0f tokens per second ", p->rate);
    if (p->fewest < p->batch)
        bz_buf_printf(out, "of %u to %u sequences", p->fewest, p->batch);
    else if (p->batch)
        bz_buf_printf(out, "of %u sequence%s", p->batch, p->batch == 1 ? "" : "s");
    else
        bz_buf_puts(out, "for each sequence of the batch, whose size is not recorded");
}

const char *bz_step_phase_name(bz_step_phase phase)
{
    return phase == BZ_STEP_PREFILL ? "prefill" : phase == BZ_STEP_DECODE ? "decode" : NULL;
}
