/* Payloads: read when somebody asks, one small tensor at a time. */
#include "onnx/file.h"
#include "onnx/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static double half_to_double(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    return h >> 15 ? -v : v;
}

static double bits_to_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double bits_to_double(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static inline uint64_t load_bytes(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

/* Little-endian bytes -> number, for element types of whole bytes. What is usual becomes one load. */
static uint64_t load_bits(const uint8_t *p, int bytes)
{
    return bytes == 8 ? load_bytes(p, 8) : bytes == 4 ? load_bytes(p, 4) : load_bytes(p, bytes);
}

static int64_t to_int(bz_dtype t, uint64_t bits)
{
    switch (t) {
    case BZ_I8:
        return (int8_t)bits;
    case BZ_I16:
        return (int16_t)bits;
    case BZ_I32:
        return (int32_t)bits;
    case BZ_U8:
        return (uint8_t)bits;
    case BZ_U16:
        return (uint16_t)bits;
    case BZ_U32:
        return (uint32_t)bits;
    case BZ_BOOL:
        return (bits & 0xff) != 0;
    default:
        return (int64_t)bits;
    }
}

static double to_real(bz_dtype t, uint64_t bits)
{
    switch (t) {
    case BZ_F16:
        return half_to_double((uint16_t)bits);
    case BZ_BF16:
        return bits_to_float((uint32_t)bits << 16);
    case BZ_F32:
        return bits_to_float((uint32_t)bits);
    default:
        return bits_to_double(bits);
    }
}

/* Where elements go: one of the two is set. */
typedef struct {
    bz_dtype dtype;
    int64_t n, filled;
    int64_t *ints;
    double *reals;
    uint8_t *bytes; /* elements as they lie in memory */
} sink;

static void put_bits(sink *s, uint64_t bits)
{
    if (s->filled < s->n) {
        if (s->bytes)
            memcpy(s->bytes + s->filled * (bz_dtype_bits(s->dtype) / 8), &bits, (size_t)bz_dtype_bits(s->dtype) / 8);
        else if (s->ints)
            s->ints[s->filled] = to_int(s->dtype, bits);
        else
            s->reals[s->filled] = to_real(s->dtype, bits);
    }
    s->filled++;
}

static void put_raw(sink *s, const uint8_t *p, uint64_t size)
{
    int bytes = bz_dtype_bits(s->dtype) / 8;
    if (s->bytes && !s->filled && bytes &&
        size == (uint64_t)s->n * (uint64_t)bytes) { /* the usual case, and the large one */
        memcpy(s->bytes, p, size);
        s->filled = s->n;
        return;
    }
    for (uint64_t i = 0; bytes && i + (uint64_t)bytes <= size && s->filled <= s->n; i += (uint64_t)bytes)
        put_bits(s, load_bits(p + i, bytes));
    if (bytes && size % (uint64_t)bytes && s->filled == s->n) /* a piece of one element too many */
        s->filled++;
}

/* All that stands in the message itself. Half precision hides in int32_data as bits. */
static void put_payload(sink *s, const Onnx__TensorProto *p)
{
    const struct {
        size_t n;
        const void *data;
        int bytes;
    } lists[] = {{p->n_float_data, p->float_data, 4},
                 {p->n_int32_data, p->int32_data, 4},
                 {p->n_int64_data, p->int64_data, 8},
                 {p->n_double_data, p->double_data, 8},
                 {p->n_uint64_data, p->uint64_data, 8}};
    if (p->raw_data.len)
        put_raw(s, p->raw_data.data, p->raw_data.len);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (size_t i = 0; i < lists[k].n && s->filled <= s->n; i++)
            put_bits(s, load_bits((const uint8_t *)lists[k].data + i * (size_t)lists[k].bytes, lists[k].bytes));
}

static int read_inline(const bz_model *model, const bz_tensor *t, sink *s, bz_error *err)
{
    enum { LONGEST = 10 }; /* of an element, as a varint */
    const wire_cut *cut = wire_left_out(&model->file->bytes, t->proto, 0);
    BZ_SCOPED(bz_arena) arena = {0};
    const Onnx__TensorProto *payload;
    if (cut && cut->size > (uint64_t)(s->n + 1) * LONGEST) {
        s->filled = s->n + 1;
        return 0;
    }
    int failed = unpack_payload(model->file, t->proto, &arena, &payload, err);
    if (!failed)
        put_payload(s, payload);
    return failed ? bz_fail_in(err, "tensor '%s'", t->name) : 0;
}

bool bz_tensor_is_away(const bz_model *model, const bz_tensor *t)
{
    return t->external && file_external(model->file, t->external, NULL) < -1;
}

static int read_external(const bz_model *model, const bz_tensor *t, sink *s, bz_error *err)
{
    int fd = file_external(model->file, t->external, err);
    if (fd == -1)
        return -1;
    if (fd < 0)
        return bz_fail(err, BZ_BAD_INPUT, "the values of tensor '%s' are needed, but its file '%s' is not there",
                       t->name, t->external);
    size_t size = (size_t)t->n * (size_t)bz_dtype_bits(t->dtype) / 8;
    BZ_FREED uint8_t *data = bz_alloc(size, 1);
    struct stat st;
    bool whole = !fstat(fd, &st) && t->external_offset >= 0 && st.st_size >= t->external_offset &&
                 (uint64_t)(st.st_size - t->external_offset) >= size;
    if (whole && wire_read(fd, (uint64_t)t->external_offset, data, size, err))
        return bz_fail_in(err, "tensor '%s', file '%s'", t->name, t->external);
    if (whole && (t->external_size < 0 || (size_t)t->external_size >= size))
        put_raw(s, data, size);
    if (t->external_size >= 0 && (size_t)t->external_size > size)
        s->filled = t->n + 1;
    return 0;
}

/* Values of a sparse tensor land at their positions, given flat ([nnz]) or per axis ([nnz, rank]). */
static int read_sparse(const bz_model *model, const bz_tensor *t, sink *s, bz_error *err)
{
    int64_t nnz = t->values->n, per = nnz && t->indices ? t->indices->n / nnz : 0;
    s->filled = s->n;
    if (!nnz)
        return 0;
    if (!t->indices || nnz > t->n || (per != 1 && per != t->rank) || t->indices->dtype != BZ_I64)
        return bz_fail(err, BZ_BAD_INPUT, "sparse tensor '%s' has indices that do not fit its values", t->name);
    BZ_FREED int64_t *at = bz_alloc((size_t)t->indices->n, sizeof *at);
    int64_t *ints = s->ints ? bz_alloc((size_t)nnz, sizeof *ints) : NULL;
    double *reals = s->reals ? bz_alloc((size_t)nnz, sizeof *reals) : NULL;
    int failed = bz_tensor_ints(model, t->indices, at, err) ||
                 (ints ? bz_tensor_ints(model, t->values, ints, err) : bz_tensor_reals(model, t->values, reals, err));
    for (int64_t i = 0; i < nnz && !failed; i++) {
        int64_t flat = 0;
        bool inside = true;
        for (int64_t d = 0; d < per; d++) {
            int64_t k = at[i * per + d], limit = per == 1 ? t->n : t->dims[d];
            inside &= k >= 0 && k < limit;
            flat = inside ? flat * (per == 1 ? 1 : t->dims[d]) + k : 0;
        }
        if (!inside)
            failed = bz_fail(err, BZ_BAD_INPUT, "sparse tensor '%s' has an index out of range", t->name);
        else if (ints)
            s->ints[flat] = ints[i];
        else
            s->reals[flat] = reals[i];
    }
    free(ints);
    free(reals);
    return failed ? -1 : 0;
}

static int read_tensor(const bz_model *model, const bz_tensor *t, sink *s, bz_error *err)
{
    int failed = t->values     ? read_sparse(model, t, s, err)
                 : t->external ? read_external(model, t, s, err)
                               : read_inline(model, t, s, err);
    if (failed)
        return -1;
    if (s->filled != t->n)
        return bz_fail(err, BZ_BAD_INPUT, "tensor '%s' should hold %lld elements, but its data is %s", t->name,
                       (long long)t->n, s->filled < t->n ? "shorter" : "longer");
    return 0;
}

int bz_tensor_ints(const bz_model *model, const bz_tensor *t, int64_t *out, bz_error *err)
{
    if ((!bz_dtype_is_int(t->dtype) && t->dtype != BZ_BOOL) || bz_dtype_bits(t->dtype) < 8)
        return bz_fail(err, BZ_BAD_INPUT, "tensor '%s' should hold integers, but its type is %s", t->name,
                       bz_dtype_name(t->dtype));
    memset(out, 0, (size_t)t->n * sizeof *out);
    sink s = {.dtype = t->dtype, .n = t->n, .ints = out};
    return read_tensor(model, t, &s, err);
}

int bz_tensor_reals(const bz_model *model, const bz_tensor *t, double *out, bz_error *err)
{
    if (!bz_dtype_is_float(t->dtype) || bz_dtype_bits(t->dtype) < 16)
        return bz_fail(err, BZ_BAD_INPUT, "tensor '%s' should hold real numbers, but its type is %s", t->name,
                       bz_dtype_name(t->dtype));
    memset(out, 0, (size_t)t->n * sizeof *out);
    sink s = {.dtype = t->dtype, .n = t->n, .reals = out};
    return read_tensor(model, t, &s, err);
}

int bz_tensor_bytes(const bz_model *model, const bz_tensor *t, void *out, bz_error *err)
{
    if (bz_dtype_bits(t->dtype) < 8 || t->values)
        return bz_fail(err, BZ_BAD_INPUT, "tensor '%s' is sparse, or of a type without bytes", t->name);
    memset(out, 0, (size_t)t->n * (size_t)bz_dtype_bits(t->dtype) / 8);
    sink s = {.dtype = t->dtype, .n = t->n, .bytes = out};
    return read_tensor(model, t, &s, err);
}
