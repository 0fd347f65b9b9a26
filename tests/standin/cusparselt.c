/* A stand-in for cuSPARSELt 0.8: calls recorded, and products computed from what was compressed, which are the two largest of each
 * four numbers, with their places. It has two algorithms, of which the second makes no plan. */
#include "tests/standin/product.h"
#include "tests/standin/record.h"

#include <stdlib.h>
#include <string.h>

typedef struct matrix {
    int64_t rows, columns, ld;
    cudaDataType_t type;
} matrix;

typedef struct product {
    matrix a, b, d;
} product;

typedef struct selection {
    product p;
    int id;
} selection;

/* The interface, whose header is not here. */
int cusparseLtInit(void *h);
int cusparseLtDestroy(const void *h);
int cusparseLtGetVersion(const void *h, int *version);
int cusparseLtDenseDescriptorInit(const void *h, matrix *m, int64_t rows, int64_t columns, int64_t ld, uint32_t aligned,
                                  cudaDataType_t type, int order);
int cusparseLtStructuredDescriptorInit(const void *h, matrix *m, int64_t rows, int64_t columns, int64_t ld,
                                       uint32_t aligned, cudaDataType_t type, int order, int sparsity);
int cusparseLtMatDescriptorDestroy(const matrix *m);
int cusparseLtMatmulDescriptorInit(const void *h, product *p, int op_a, int op_b, const matrix *a, const matrix *b,
                                   const matrix *c, const matrix *d, int compute);
int cusparseLtMatmulAlgSelectionInit(const void *h, selection *s, const product *p, int algorithm);
int cusparseLtMatmulAlgSetAttribute(const void *h, selection *s, int what, const void *value, size_t size);
int cusparseLtMatmulAlgGetAttribute(const void *h, const selection *s, int what, void *value, size_t size);
int cusparseLtMatmulPlanInit(const void *h, selection *plan, const product *p, const selection *s);
int cusparseLtMatmulPlanDestroy(const selection *plan);
int cusparseLtMatmulGetWorkspace(const void *h, const selection *plan, size_t *size);
int cusparseLtSpMMACompressedSize(const void *h, const selection *plan, size_t *size, size_t *buffer);
int cusparseLtSpMMACompress(const void *h, const selection *plan, const uint16_t *from, uint16_t *to, void *buffer,
                            cudaStream_t stream);
int cusparseLtMatmul(const void *h, const selection *plan, const float *alpha, const uint16_t *a, const void *b,
                     const float *beta, const void *c, void *d, void *space, cudaStream_t *streams, int n);

int cusparseLtInit(void *h)
{
    (void)h;
    standin_record("cusparseLtInit");
    return 0;
}

int cusparseLtDestroy(const void *h)
{
    (void)h;
    standin_record("cusparseLtDestroy");
    return 0;
}

int cusparseLtGetVersion(const void *h, int *version)
{
    (void)h;
    *version = 801;
    return 0;
}

int cusparseLtDenseDescriptorInit(const void *h, matrix *m, int64_t rows, int64_t columns, int64_t ld, uint32_t aligned,
                                  cudaDataType_t type, int order)
{
    (void)h;
    *m = (matrix){rows, columns, ld, type};
    standin_record("cusparseLtDenseDescriptorInit %s rows=%lld columns=%lld ld=%lld aligned=%u order=%d",
                   standin_type_name(type), (long long)rows, (long long)columns, (long long)ld, aligned, order);
    return 0;
}

int cusparseLtStructuredDescriptorInit(const void *h, matrix *m, int64_t rows, int64_t columns, int64_t ld,
                                       uint32_t aligned, cudaDataType_t type, int order, int sparsity)
{
    standin_record("cusparseLtStructuredDescriptorInit sparsity=%d", sparsity);
    return cusparseLtDenseDescriptorInit(h, m, rows, columns, ld, aligned, type, order);
}

int cusparseLtMatDescriptorDestroy(const matrix *m)
{
    (void)m;
    return 0;
}

int cusparseLtMatmulDescriptorInit(const void *h, product *p, int op_a, int op_b, const matrix *a, const matrix *b,
                                   const matrix *c, const matrix *d, int compute)
{
    (void)h, (void)c;
    *p = (product){*a, *b, *d};
    standin_record("cusparseLtMatmulDescriptorInit a=%d b=%d compute=%d", op_a, op_b, compute);
    return op_a != 1 || op_b || a->rows != b->rows || a->columns != d->rows || b->columns != d->columns;
}

int cusparseLtMatmulAlgSelectionInit(const void *h, selection *s, const product *p, int algorithm)
{
    (void)h;
    *s = (selection){*p, algorithm};
    return 0;
}

int cusparseLtMatmulAlgSetAttribute(const void *h, selection *s, int what, const void *value, size_t size)
{
    (void)h;
    if (what || size != sizeof s->id)
        return 1;
    memcpy(&s->id, value, size);
    return 0;
}

int cusparseLtMatmulAlgGetAttribute(const void *h, const selection *s, int what, void *value, size_t size)
{
    (void)h, (void)s;
    if (what != 1 || size != sizeof(int))
        return 1;
    *(int *)value = 2;
    return 0;
}

int cusparseLtMatmulPlanInit(const void *h, selection *plan, const product *p, const selection *s)
{
    (void)h, (void)p;
    *plan = *s;
    standin_record("cusparseLtMatmulPlanInit algorithm=%d", s->id);
    return s->id != 0;
}

int cusparseLtMatmulPlanDestroy(const selection *plan)
{
    (void)plan;
    standin_record("cusparseLtMatmulPlanDestroy");
    return 0;
}

int cusparseLtMatmulGetWorkspace(const void *h, const selection *plan, size_t *size)
{
    (void)h, (void)plan;
    *size = 768;
    return 0;
}

/* Of each four numbers two, each with its place. */
int cusparseLtSpMMACompressedSize(const void *h, const selection *plan, size_t *size, size_t *buffer)
{
    (void)h;
    *size = (size_t)(plan->p.a.rows * plan->p.a.columns) * 2;
    *buffer = 96;
    return 0;
}

/* Fails where more than two of four are no zeros. */
int cusparseLtSpMMACompress(const void *h, const selection *plan, const uint16_t *from, uint16_t *to, void *buffer,
                            cudaStream_t stream)
{
    (void)h;
    standin_record("cusparseLtSpMMACompress %s -> %s buffer=%s %s", standin_name(from), standin_name(to),
                   standin_name(buffer), standin_name(stream));
    memset(to, 0, (size_t)(plan->p.a.rows * plan->p.a.columns) * 2);
    for (int64_t i = 0; i < plan->p.a.rows * plan->p.a.columns; i += 4)
        for (int k = 0, n = 0; k < 4; k++) {
            if (!(from[i + k] & 0x7fff))
                continue;
            if (n == 2)
                return 1;
            to[i + 2 * n] = from[i + k];
            to[i + 2 * n++ + 1] = (uint16_t)k;
        }
    return 0;
}

int cusparseLtMatmul(const void *h, const selection *plan, const float *alpha, const uint16_t *a, const void *b,
                     const float *beta, const void *c, void *d, void *space, cudaStream_t *streams, int n)
{
    const product *p = &plan->p;
    size_t count = (size_t)(p->a.rows * p->a.columns);
    uint16_t *whole = calloc(count, sizeof *whole);
    (void)h, (void)c;
    standin_record("cusparseLtMatmul alpha=%g %s %s beta=%g -> %s workspace=%s %s of %d", (double)*alpha,
                   standin_name(a), standin_name(b), (double)*beta, standin_name(d), standin_name(space),
                   standin_name(streams[0]), n);
    for (size_t i = 0; i < count; i += 2)
        if (a[i])
            whole[i / 4 * 4 + a[i + 1]] = a[i];
    standin_product(p->d.rows, p->d.columns, p->a.rows, (factor){whole, p->a.type, true, p->a.rows},
                    (factor){b, p->b.type, false, p->b.ld}, d, p->d.type, p->d.ld, (epilogue){.alpha = (double)*alpha});
    free(whole);
    return 0;
}
