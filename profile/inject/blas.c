/* Stands in front of BLAS: matrix products and matrix-vector products, Fortran and C interfaces. */
#include "profile/inject/record.h"

#include <stdio.h>
#include <string.h>

enum { LIBRARY_BLAS = 5 }; /* bz_library of profile.h, which is not for the captured process */

/* What tells two calls apart; hashed as bytes, so there are no holes. */
typedef struct {
    int64_t m, n, k, lda, ldb, ldc;
    char transa, transb, order, type;
    int32_t zero;
} shape;

/* BLAS has threads of its own, of which a framework's setting says nothing: of OpenBLAS built with POSIX threads PyTorch's set_num_threads does not
 * hold. Told by the first call. */
static void tell_threads(void)
{
    static const char *const ASK[] = {"openblas_get_num_threads", "bli_thread_get_num_threads", "MKL_Get_Max_Threads"};
    static int told;
    if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
        return;
    for (size_t i = 0; i < sizeof ASK / sizeof *ASK; i++) {
        void *found = bzi_resolve(ASK[i], "blas");
        int (*ask)(void) = NULL;
        char text[16];
        memcpy(&ask, &found, sizeof ask);
        if (!ask)
            continue;
        snprintf(text, sizeof text, "%d", ask());
        bzi_fact("blas threads", text);
        return;
    }
}

static bzi_call begin(const char *function, const shape *s, const void *a, const void *b, const void *to)
{
    bzi_call c = {.library = LIBRARY_BLAS, .read = {a, b}, .written = to};
    tell_threads();
    uint64_t hash = bzi_hash(3, function, strlen(function));
    c.name = bzi_known(hash);
    if (!c.name)
        c.name = bzi_string(hash, function, strlen(function));
    hash = bzi_hash(4 + hash, s, sizeof *s);
    c.detail = bzi_known(hash);
    if (!c.detail) {
        char text[192];
        int n =
            s->k >= 0
                ? snprintf(text, sizeof text, "%stransa=%c transb=%c m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld",
                           s->order == 'r' ? "order=row " : "", s->transa, s->transb, (long long)s->m, (long long)s->n,
                           (long long)s->k, (long long)s->lda, (long long)s->ldb, (long long)s->ldc)
                : snprintf(text, sizeof text, "%strans=%c m=%lld n=%lld lda=%lld", s->order == 'r' ? "order=row " : "",
                           s->transa, (long long)s->m, (long long)s->n, (long long)s->lda);
        c.detail = bzi_string(hash, text, (size_t)n);
    }
    c.start = bzi_now();
    return c;
}

#define EXPORT __attribute__((visibility("default")))

/* The real function, looked up once. A program cannot have called us without a library that has it. */
#define REAL(function)                                                                                                 \
    static __typeof__(&(function)) real;                                                                               \
    if (!real) {                                                                                                       \
        void *found = bzi_resolve(#function, "blas");                                                                  \
        memcpy(&real, &found, sizeof found); /* ISO C has no cast from one kind of pointer to the other */             \
    }                                                                                                                  \
    (void)0

/* Fortran passes everything by reference. */
#define GEMM(function, scalar)                                                                                         \
    EXPORT void function##_(const char *, const char *, const int *, const int *, const int *, const scalar *,         \
                            const scalar *, const int *, const scalar *, const int *, const scalar *, scalar *,        \
                            const int *);                                                                              \
    void function##_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const scalar *alpha,    \
                     const scalar *a, const int *lda, const scalar *b, const int *ldb, const scalar *beta, scalar *c,  \
                     const int *ldc)                                                                                   \
    {                                                                                                                  \
        REAL(function##_);                                                                                             \
        if (!bzi_recording()) {                                                                                        \
            real(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                                \
            return;                                                                                                    \
        }                                                                                                              \
        shape s = {.m = *m, .n = *n, .k = *k, .lda = *lda, .ldb = *ldb, .ldc = *ldc, .transa = *ta, .transb = *tb};    \
        bzi_call call = begin(#function, &s, a, b, c);                                                                 \
        real(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                                    \
        bzi_call_end(&call);                                                                                           \
    }

#define GEMV(function, scalar)                                                                                         \
    EXPORT void function##_(const char *, const int *, const int *, const scalar *, const scalar *, const int *,       \
                            const scalar *, const int *, const scalar *, scalar *, const int *);                       \
    void function##_(const char *t, const int *m, const int *n, const scalar *alpha, const scalar *a, const int *lda,  \
                     const scalar *x, const int *incx, const scalar *beta, scalar *y, const int *incy)                 \
    {                                                                                                                  \
        REAL(function##_);                                                                                             \
        if (!bzi_recording()) {                                                                                        \
            real(t, m, n, alpha, a, lda, x, incx, beta, y, incy);                                                      \
            return;                                                                                                    \
        }                                                                                                              \
        shape s = {.m = *m, .n = *n, .k = -1, .lda = *lda, .transa = *t};                                              \
        bzi_call call = begin(#function, &s, a, x, y);                                                                 \
        real(t, m, n, alpha, a, lda, x, incx, beta, y, incy);                                                          \
        bzi_call_end(&call);                                                                                           \
    }

/* CBLAS: order 101 is row-major; 111, 112, 113 are N, T, C. */
static char letter(int trans)
{
    return trans == 112 ? 'T' : trans == 113 ? 'C' : 'N';
}

#define CBLAS_GEMM(function, real_type)                                                                                \
    EXPORT void cblas_##function(int, int, int, int, int, int, real_type, const real_type *, int, const real_type *,   \
                                 int, real_type, real_type *, int);                                                    \
    void cblas_##function(int order, int ta, int tb, int m, int n, int k, real_type alpha, const real_type *a,         \
                          int lda, const real_type *b, int ldb, real_type beta, real_type *c, int ldc)                 \
    {                                                                                                                  \
        REAL(cblas_##function);                                                                                        \
        if (!bzi_recording()) {                                                                                        \
            real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                         \
            return;                                                                                                    \
        }                                                                                                              \
        shape s = {                                                                                                    \
            .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc, .transa = letter(ta), .transb = letter(tb)};   \
        s.order = order == 101 ? 'r' : 'c';                                                                            \
        bzi_call call = begin(#function, &s, a, b, c);                                                                 \
        real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                             \
        bzi_call_end(&call);                                                                                           \
    }

#define CBLAS_GEMV(function, real_type)                                                                                \
    EXPORT void cblas_##function(int, int, int, int, real_type, const real_type *, int, const real_type *, int,        \
                                 real_type, real_type *, int);                                                         \
    void cblas_##function(int order, int t, int m, int n, real_type alpha, const real_type *a, int lda,                \
                          const real_type *x, int incx, real_type beta, real_type *y, int incy)                        \
    {                                                                                                                  \
        REAL(cblas_##function);                                                                                        \
        if (!bzi_recording()) {                                                                                        \
            real(order, t, m, n, alpha, a, lda, x, incx, beta, y, incy);                                               \
            return;                                                                                                    \
        }                                                                                                              \
        shape s = {.m = m, .n = n, .k = -1, .lda = lda, .transa = letter(t), .order = order == 101 ? 'r' : 'c'};       \
        bzi_call call = begin(#function, &s, a, x, y);                                                                 \
        real(order, t, m, n, alpha, a, lda, x, incx, beta, y, incy);                                                   \
        bzi_call_end(&call);                                                                                           \
    }

typedef struct { /* what Fortran calls COMPLEX; only passed on */
    float re, im;
} complex32;
typedef struct {
    double re, im;
} complex64;

GEMM(sgemm, float)
GEMM(dgemm, double)
GEMM(cgemm, complex32)
GEMM(zgemm, complex64)
GEMV(sgemv, float)
GEMV(dgemv, double)
CBLAS_GEMM(sgemm, float)
CBLAS_GEMM(dgemm, double)
CBLAS_GEMV(sgemv, float)
CBLAS_GEMV(dgemv, double)
