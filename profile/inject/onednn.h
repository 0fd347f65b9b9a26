/* oneDNN's primitives as data, gathered alike from its versions 2 and 3. Private to inject/: no header of oneDNN is
 * wanted, since the program brings the library along, and not the one that we were built beside. What is the same in
 * both versions is called by its types' plain equivalents: all their enumerations are as wide as int, all their objects
 * are pointers. */
#ifndef BZ_INJECT_ONEDNN_H
#define BZ_INJECT_ONEDNN_H

#include "profile/inject/record.h"

#include <stddef.h>

enum { BZI_TENSORS = 20, BZI_POSTS = 16, BZI_RANK = 12 };

/* oneDNN as the program has it. NULL: that version has no such function. */
typedef struct bzi_onednn {
    int major; /* 2, 3; 0 where primitives cannot be described */
    int (*create)(void **, const void *);
    int (*execute)(const void *, void *, int, const void *);
    int (*handle)(const void *, void **);
    int (*query)(const void *, int, int, void *);
    const void *(*query_md)(const void *, int, int);
    int (*md_query)(const void *, int, void *); /* 3 */
    int (*get_attr)(const void *, const void **);
    int (*scratchpad)(const void *, int *);
    int (*math)(const void *, int *);
    int (*scales)(const void *, int64_t *, int *, const float **); /* 2 */
    int (*post_ops)(const void *, const void **);
    int (*post_len)(const void *);
    int (*post_kind)(const void *, int);
    int (*post_eltwise2)(const void *, int, float *, int *, float *, float *);
    int (*post_eltwise3)(const void *, int, int *, float *, float *);
    int (*post_sum2)(const void *, int, float *, int32_t *, int *);
    int (*post_sum3)(const void *, int, float *, int32_t *, int *);
    int (*post_binary)(const void *, int, int *, const void **);
    int (*post_prelu)(const void *, int, int *);
    const char *(*kind_name)(int);
    const char *(*prop_name)(int);
    const char *(*alg_name)(int);
    const char *(*type_name)(int);
    const char *(*math_name)(int);
    const char *(*direction_name)(int);
} bzi_onednn;
extern bzi_onednn bzi_dnn;

typedef enum {
    BZI_FORM_NONE,
    BZI_FORM_ANY,
    BZI_FORM_BLOCKED,
    BZI_FORM_WINOGRAD, /* these two in version 2 only */
    BZI_FORM_PACKED,
    BZI_FORM_OTHER
} bzi_form;

/* A memory descriptor; what it points to lives as long as the primitive. */
typedef struct bzi_tensor {
    const char *name; /* as in the log: "src", "wei" … */
    int rank, type, n_blocks;
    bzi_form form;
    bool moved; /* begins somewhere behind its pointer */
    uint64_t extra;
    const int64_t *dims, *padded, *strides, *blocks, *indexes;
} bzi_tensor;

typedef struct bzi_post {
    int kind, alg, type, mask;
    int32_t zero;
    float scale, alpha, beta;
    bzi_tensor other; /* of a binary operation */
} bzi_post;

typedef struct bzi_facts {
    const char *kind, *implementation;
    int prop, alg, cell, direction, activation, axis, scratchpad, math, scale_mask;
    unsigned flags;
    float alpha, beta, p, epsilon, scale;
    int64_t local, group, n_scales;
    const int64_t *strides, *dilations, *padding, *kernel;
    bzi_tensor tensor[BZI_TENSORS];
    int n_tensors;
    bzi_post post[BZI_POSTS];
    int n_posts;
} bzi_facts;

/* onednn_facts.c */
void bzi_onednn_gather(const void *pd, bzi_facts *f);

/* onednn_text.c: what tells it from others, and the words of oneDNN's own log for it. */
uint64_t bzi_onednn_hash(const bzi_facts *f);
uint32_t bzi_onednn_detail(const bzi_facts *f, uint64_t hash);

/* onednn_v2.c: version 2 shows its structs, to whom was built beside it. */
extern const bool bzi_onednn2_known;
bool bzi_onednn2_tensor(const void *md, bzi_tensor *out);
void bzi_onednn2_parameters(const void *pd, bzi_facts *f);

#endif
