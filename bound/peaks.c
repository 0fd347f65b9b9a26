/* What the hardware could do at best: rates that were measured on it, else those of its data sheet. */
#include "bound/bound.h"
#include "bound/constants.h"
#include "runtime/gpus.h"
#include "runtime/problem.h"

#include <math.h>
#include <string.h>

static void add_rate(bz_peak_rate *list, int *n, bz_dtype dtype, double rate)
{
    if (*n < BZ_PEAKS && rate > 0)
        list[(*n)++] = (bz_peak_rate){dtype, rate};
}

static void read_rates(const bz_rates *rates, bz_peak_rate *list, int *n)
{
    for (int t = BZ_F32; t < BZ_N_DTYPES; t++)
        for (int i = 0; i < rates->n; i++)
            if (!strcmp(rates->at[i].name, bz_dtype_name((bz_dtype)t)))
                add_rate(list, n, (bz_dtype)t, rates->at[i].rate);
}

static void add_bandwidth(bz_peaks *p, double bytes, double rate, double read)
{
    if (p->n_bandwidth == BZ_PEAKS || !(bytes >= 0) || !(rate > 0))
        return;
    int at = p->n_bandwidth++;
    for (; at && p->bandwidth[at - 1].bytes > bytes; at--)
        p->bandwidth[at] = p->bandwidth[at - 1];
    p->bandwidth[at].bytes = bytes;
    p->bandwidth[at].rate = rate;
    p->bandwidth[at].read = read > 0 ? read : rate;
}

/* Who moves a large buffer at a rate moves a part of it at that rate or faster. A small buffer that was slower than a larger
 * one was measured while something else took the machine's time: 8 of 32 kB tell too little then, and the larger one counts. */
static void lift_slow(bz_peaks *p)
{
    for (int at = p->n_bandwidth - 2; at >= 0; at--) {
        p->bandwidth[at].rate = fmax(p->bandwidth[at].rate, p->bandwidth[at + 1].rate);
        p->bandwidth[at].read = fmax(p->bandwidth[at].read, p->bandwidth[at + 1].read);
    }
}

/* Operands in the caches may be read at the rate of a buffer of their size, which reading or copying
 * reaches, whichever is faster. Operands that are not are copied as cold buffers were; or read as the
 * largest buffer was, which no cache holds. */
static void read_bandwidth(const bz_measured *m, bool cold, bz_peaks *p)
{
    double largest = 0, memory = 0;
    for (int i = 0; i < m->n_buffers; i++)
        if (m->buffer[i].bytes > largest && m->buffer[i].read > 0) {
            largest = m->buffer[i].bytes;
            memory = m->buffer[i].read;
        }
    for (int i = 0; i < m->n_buffers; i++) {
        const bz_buffer_rates *b = &m->buffer[i];
        if (!cold || b->copy_cold > 0)
            add_bandwidth(p, b->bytes, cold ? fmax(b->copy_cold, memory) : fmax(b->read, b->copy),
                          cold ? memory : b->read);
    }
    if (cold && !p->n_bandwidth)
        add_bandwidth(p, 0, memory, memory);
}

static void read_measured(const bz_system_facts *facts, const bz_setting *setting, bz_arena *arena, bz_peaks *p)
{
    enum { NAMED = 8 };
    const bz_measured *measured = bz_system_measured(facts, setting->threads);
    const char *others = "";
    int last = facts->n_measured < NAMED ? facts->n_measured : NAMED;
    for (int i = 0; i < last && !measured; i++)
        others = bz_arena_printf(arena, "%s%s%d", others, i ? ", " : "", facts->measured[i].threads);
    if (!measured) {
        p->why = bz_arena_printf(arena,
                                 "the system's peaks were measured with %s thread%s, not %d: 'benanza system --measure "
                                 "--threads %d' on it adds them",
                                 others, strcmp(others, "1") != 0 ? "s" : "", setting->threads, setting->threads);
        return;
    }
    read_rates(&measured->flops, p->flops, &p->n_flops);
    read_rates(&measured->reorder, p->reorder, &p->n_reorder);
    read_rates(&measured->convert, p->convert, &p->n_convert);
    read_bandwidth(measured, setting->cache == BZ_CACHE_COLD, p);
    if (setting->cache == BZ_CACHE_HOT) /* a small buffer that lies in memory does take longer for each byte */
        lift_slow(p);
    p->busy = measured->busy;
    p->source = "measured";
    p->why = p->n_flops && p->n_bandwidth ? NULL : "the system's peaks were measured in part only";
}

/* A cache's rate stands in no data sheet: what fits into it is not held against the memory. */
static double cache_of(const bz_system_facts *facts, const bz_gpu *row)
{
    return facts->l2 > 0 ? facts->l2 : row->l2 > 0 ? row->l2 : UNTOLD_CACHE;
}

/* A rate of the data sheet; a card that may clock higher does more. */
static double sheet_rate(const bz_system_facts *facts, const bz_gpu *row, const char *name)
{
    double faster = facts->clock > row->clock && row->clock > 0 ? facts->clock / row->clock : 1;
    return faster * bz_gpu_rate(row, name);
}

/* A type that no unit makes faster goes as f32. */
static void read_sheet(const bz_system_facts *facts, const bz_setting *setting, bz_arena *arena, bz_peaks *p)
{
    static const struct {
        const char *rate;
        bz_dtype dtype;
    } TYPES[] = {{"f32", BZ_F32}, {"f16", BZ_F16}, {"bf16", BZ_BF16},
                 {"f64", BZ_F64}, {"i8", BZ_I8},   {"f8", BZ_F8E4M3}};
    bz_gpu row;
    if (!bz_gpu_find(facts->name, &row)) {
        p->why = bz_arena_printf(arena, "no data sheet of '%s' is known", facts->name);
        return;
    }
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        double rate = sheet_rate(facts, &row, TYPES[i].rate);
        add_rate(p->flops, &p->n_flops, TYPES[i].dtype, rate > 0 || i > 2 ? rate : p->flops[0].rate);
    }
    add_rate(p->flops, &p->n_flops, BZ_F4E2M1, 2 * sheet_rate(facts, &row, "f8")); /* as all with such units have it */
    if (setting->cache == BZ_CACHE_HOT)
        add_bandwidth(p, 0, INFINITY, INFINITY);
    add_bandwidth(p, setting->cache == BZ_CACHE_HOT ? cache_of(facts, &row) : 0, fmax(facts->bandwidth, row.bandwidth),
                  fmax(facts->bandwidth, row.bandwidth));
    p->source = "data sheet";
    p->why = NULL;
}

void bz_peaks_read(const bz_system_facts *facts, const bz_setting *setting, bz_arena *arena, bz_peaks *out)
{
    *out = (bz_peaks){.why = "nobody measured the system's peaks: 'benanza system --measure' on it does"};
    if (facts->n_measured)
        read_measured(facts, setting, arena, out);
    else if (facts->gpu)
        read_sheet(facts, setting, arena, out);
}

void bz_peaks_allow(const bz_system_facts *facts, const bz_setting *setting, const char *math, bz_peaks *p)
{
    bz_gpu row;
    const bz_measured *m = bz_system_measured(facts, setting->threads);
    double rate =
        !facts->n_measured && facts->gpu && bz_gpu_find(facts->name, &row) ? sheet_rate(facts, &row, math) : 0;
    for (int i = 0; m && i < m->flops.n; i++)
        rate = strcmp(m->flops.at[i].name, math) != 0 ? rate : m->flops.at[i].rate;
    for (int i = 0; i < p->n_flops; i++)
        if (p->flops[i].dtype == BZ_F32)
            p->flops[i].rate = fmax(p->flops[i].rate, rate);
}

/* The rate for a data type; where it was not measured the highest there is, which keeps the bound low. */
static double flops_rate(const bz_peaks *p, bz_dtype dtype)
{
    double most = 0;
    for (int i = 0; i < p->n_flops; i++) {
        if (p->flops[i].dtype == dtype)
            return p->flops[i].rate;
        most = fmax(most, p->flops[i].rate);
    }
    return most;
}

static double move_time(const bz_peak_rate *list, int n, double elements, bz_dtype dtype)
{
    for (int i = 0; i < n; i++)
        if (list[i].dtype == dtype)
            return elements / list[i].rate;
    return 0;
}

double bz_peaks_reorder(const bz_peaks *p, double elements, bz_dtype dtype)
{
    return p ? move_time(p->reorder, p->n_reorder, elements, dtype) : 0;
}

double bz_peaks_convert(const bz_peaks *p, double elements, bz_dtype dtype)
{
    return p ? move_time(p->convert, p->n_convert, elements, dtype) : 0;
}

static double bandwidth(const bz_peaks *p, double bytes)
{
    int at = 0;
    while (at + 1 < p->n_bandwidth && p->bandwidth[at + 1].bytes <= bytes)
        at++;
    return p->bandwidth[at].rate;
}

/* Parameter `name` of a layer along an axis; `otherwise` where it has none. */
static int64_t along(const bz_layer *layer, const char *name, int axis, int64_t otherwise)
{
    const bz_param *p = bz_layer_param(layer, name);
    return p && axis < p->n ? p->v[axis] : otherwise;
}

/* The share of the products of an axis that meet an element, and no padding: 20 of 21 where a kernel of 3 with a padding
 * of 1 steps by 2 over 14. `n` positions of the kernel, `size` elements. Libraries leave the others out. */
static double inside(const bz_layer *layer, int axis, int64_t n, int64_t size, int64_t r)
{
    enum { WIDEST = 4096 }; /* of kernels that anybody has */
    int64_t step = along(layer, "stride", axis, 1), far = along(layer, "dilation", axis, 1), met = 0;
    if (n < 1 || r < 1 || r > WIDEST || step < 1)
        return 1;
    for (int64_t k = 0; k < r; k++) {
        int64_t at = k * far - along(layer, "pad", axis, 0); /* of the kernel's element k, at its first position */
        int64_t first = at < 0 ? (-at + step - 1) / step : 0, end = size > at ? (size - at + step - 1) / step : 0;
        end = end < n ? end : n;
        met += end > first ? end - first : 0;
    }
    return (double)met / ((double)n * (double)r);
}

/* The share of the elements along the axis that some product reads: half of them where a kernel of 1 steps by 2. Of a kernel with holes
 * what one of its elements meets, which all of them meet at least. */
static double met(const bz_layer *layer, int axis, int64_t n, int64_t size, int64_t r)
{
    int64_t step = along(layer, "stride", axis, 1), pad = along(layer, "pad", axis, 0);
    bool holes = along(layer, "dilation", axis, 1) != 1;
    if (n < 1 || size < 1 || r < 1 || step < 1)
        return 1;
    double last = (double)(n - 1) * (double)step - (double)pad + (double)r, first = pad < 0 ? (double)-pad : 0,
           elements = fmin(last, (double)size) - first;
    if (holes || r < step)
        elements = inside(layer, axis, n, size, r) * (double)n * (holes ? 1 : (double)r);
    return fmax(fmin(elements / (double)size, 1), 0);
}

/* A convolution's tensors, and those of its gradients, by operand; a negative one is a result. */
static const struct {
    const char *kind;
    int x, w, y;
} CONVOLUTIONS[] = {{"conv", 0, 1, -1}, {"deconv", -1, 1, 0}, {"conv_data", -1, 1, 0}, {"conv_weights", 0, -1, 1}};

/* Its input, weights and result; false: it is no convolution. */
static bool tensors_of(const bz_layer *layer, const bz_type *tensor[3])
{
    size_t k = 0;
    while (k < sizeof CONVOLUTIONS / sizeof *CONVOLUTIONS && strcmp(layer->kind, CONVOLUTIONS[k].kind) != 0)
        k++;
    if (k == sizeof CONVOLUTIONS / sizeof *CONVOLUTIONS || layer->n_in < 2 || !layer->n_out)
        return false;
    const int at[] = {CONVOLUTIONS[k].x, CONVOLUTIONS[k].w, CONVOLUTIONS[k].y};
    for (int i = 0; i < 3; i++)
        tensor[i] = at[i] < 0 ? &layer->out[0] : &layer->in[at[i]];
    return true;
}

/* So many queries by all keys: what of that the last `seen` keys of each cost, causal. */
static double causal_share(int64_t queries, int64_t keys, int64_t seen)
{
    bz_problem all = {.kind = BZ_PROBLEM_ATTENTION,
                      .dtype = BZ_F32,
                      .attention = {.q = {1, 1, queries, 1}, .k = {1, 1, keys, 1}, .v = {1, 1, keys, 1}}},
               some = all;
    some.attention.causal = true;
    some.attention.window = seen < keys ? seen : 0;
    return bz_problem_flops(&some) / bz_problem_flops(&all);
}

/* The share of attention's multiplications whose query sees the key: no kernel has to do the others. A layer of ONNX Runtime's counts
 * the keys of a window for each query, and may count a projection, too. */
static double least_scores(const bz_layer *layer)
{
    bool runtime = bz_layer_param(layer, "qk"), grouped = runtime && bz_layer_param(layer, "kv_heads");
    const bz_type *q = &layer->in[0], *k = &layer->in[1], *y = &layer->out[0];
    if (!bz_layer_int(layer, "causal", grouped) || q->rank < 3 || y->rank < 3 || (!runtime && k->rank != q->rank))
        return 1;
    int64_t rows = runtime ? y->dims[1] : q->dims[q->rank - 2],
            counted = runtime ? along(layer, "kv", 0, 0) : k->dims[k->rank - 2],
            keys = runtime ? along(layer, "keys", 0, counted) : counted;
    if (rows < 1 || counted < 1 || rows > keys || (!runtime && rows != keys))
        return 1;
    double share = causal_share(rows, keys, counted) * (double)keys / (double)counted, part = 1;
    if (runtime) {
        double width = (double)along(layer, "v", 0, 0), tokens = (double)bz_type_elements(y) / width;
        part = tokens * (double)counted * ((double)along(layer, "qk", 0, 0) + width) / (double)layer->macs;
    }
    return part > 0 && part <= 1 ? 1 - part * (1 - share) : 1;
}

/* The share of a convolution's multiplications that its best algorithm has to do, axis by axis: those that meet no padding;
 * or, where the kernel of r steps by one, the (4 + r - 1) / 4r that Winograd's F(4) leaves. Libraries use no larger tiles:
 * their rounding would show. The gradients' multiplications are the same ones. Of attention: of scores that are seen. */
static double least_products(const bz_layer *layer)
{
    const bz_type *tensor[3];
    double left = 1;
    if (!strncmp(layer->kind, "attention", 9) && layer->n_in > 1 && layer->n_out)
        return least_scores(layer);
    if (!tensors_of(layer, tensor))
        return 1;
    for (int a = 2; a < tensor[1]->rank && a < tensor[0]->rank && a < tensor[2]->rank; a++) {
        bz_dim x = tensor[0]->dims[a], r = tensor[1]->dims[a], y = tensor[2]->dims[a];
        double share = inside(layer, a - 2, y, x, r);
        if (r > 1 && along(layer, "stride", a - 2, 1) == 1 && along(layer, "dilation", a - 2, 1) == 1)
            share = fmin(share, (WINOGRAD_TILE + (double)r - 1) / (WINOGRAD_TILE * (double)r));
        left *= share;
    }
    return left;
}

static bool real(bz_dtype t)
{
    return t == BZ_F32 || t == BZ_F16 || t == BZ_BF16 || t == BZ_F64;
}

double bz_peaks_arithmetic(const bz_peaks *peaks, const bz_layer *layer, bz_dtype dtype)
{
    bz_dtype own = layer->n_in ? layer->in[0].dtype : BZ_F32;
    own = dtype && real(own) ? dtype : own;
    return (double)layer->flops * least_products(layer) / flops_rate(peaks, own);
}

double bz_peaks_bytes(const bz_layer *layer, const bz_type *type, bz_dtype dtype)
{
    bz_dtype own = type ? type->dtype : layer->n_in ? layer->in[0].dtype : BZ_UNDEFINED;
    int64_t bytes = type ? bz_type_bytes(type) : layer->bytes;
    double scale = dtype && real(own) ? (double)bz_dtype_bits(dtype) / bz_dtype_bits(own) : 1;
    return bytes > 0 ? (double)bytes * scale : 0;
}

double bz_peaks_traffic(const bz_peaks *peaks, double bytes)
{
    return bytes / bandwidth(peaks, bytes);
}

double bz_peaks_again(const bz_peaks *peaks, double bytes, double among)
{
    int at = 0;
    if (!peaks || peaks->why || !peaks->n_bandwidth)
        return 0;
    while (at + 1 < peaks->n_bandwidth && peaks->bandwidth[at].bytes < among)
        at++;
    return bytes / peaks->bandwidth[at].read;
}

/* Of a convolution's input the bytes that it steps over, and need not read. */
static double stepped_over(const bz_layer *layer, bz_dtype dtype)
{
    const bz_type *tensor[3];
    double share = 1;
    if (!tensors_of(layer, tensor) || tensor[0] == &layer->out[0])
        return 0;
    for (int a = 2; a < tensor[0]->rank && a < tensor[1]->rank && a < tensor[2]->rank; a++)
        share *= met(layer, a - 2, tensor[2]->dims[a], tensor[0]->dims[a], tensor[1]->dims[a]);
    return (1 - share) * bz_peaks_bytes(layer, tensor[0], dtype);
}

/* An optimizer's step writes over what it has read: caches take that back while others are read. */
static double least_bytes(const bz_layer *layer, bz_dtype dtype)
{
    double sum = 0;
    if (!bz_layer_has(layer, BZ_LAYER_UPDATE))
        return bz_peaks_bytes(layer, NULL, dtype) - stepped_over(layer, dtype);
    for (int k = 0; k < layer->n_in; k++)
        sum += bz_peaks_bytes(layer, &layer->in[k], dtype);
    return sum;
}

double bz_peaks_roofline(const bz_peaks *peaks, const bz_layer *layer, bz_dtype dtype, bool *memory)
{
    *memory = false;
    if (peaks->why || !layer->priced)
        return NAN;
    double arithmetic = bz_peaks_arithmetic(peaks, layer, dtype);
    double traffic = bz_peaks_traffic(peaks, least_bytes(layer, dtype));
    *memory = traffic > arithmetic;
    return bz_tick(fmax(arithmetic, traffic));
}
