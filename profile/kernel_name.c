/* Names of kernels: CUPTI tells them as the linker knows them, _Z3addPf; a person wants add(float*), or add. */
#include "profile/trace.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*demangler)(const char *name, char *out, size_t *size, int *status);

/* C++'s own, loaded by those who have a name to ask about; NULL where there is no C++ library. */
static demangler find_demangler(void)
{
    demangler found;
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libc++abi.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&found, &symbol, sizeof found); /* ISO C has no cast from one kind of pointer to the other */
    return found;
}

uint32_t bz_trace_demangled(bz_trace *t, uint32_t name)
{
    enum { LONGEST = 1 << 14 }; /* a short name can stand for one that is exponentially longer */
    const char *mangled = bz_string(t, name);
    if (strncmp(mangled, "_Z", 2) != 0 || strlen(mangled) > LONGEST)
        return name;
    demangler demangle = find_demangler();
    int status = -1;
    char *text = demangle ? demangle(mangled, NULL, NULL, &status) : NULL;
    uint32_t id = text && !status ? bz_trace_text(t, text) : name;
    free(text);
    return id;
}

static const char ANONYMOUS[] = "(anonymous namespace)";

/* Bytes of a piece that is passed over as one: the name of a namespace without one has a blank and brackets. */
static size_t piece(const char *p)
{
    return *p == '(' && !strncmp(p, ANONYMOUS, sizeof ANONYMOUS - 1) ? sizeof ANONYMOUS - 1 : 1;
}

/* The same among the arguments of a template, where all in brackets is passed over: in "<((8) > (0))>" the sign in the middle
 * closes nothing. */
static size_t argument(const char *p, int depth)
{
    const char *start = p;
    int open = 0;
    if (!depth || *p != '(' || piece(p) > 1)
        return piece(p);
    do
        open += *p == '(' ? 1 : *p == ')' ? -1 : 0;
    while (*++p && open);
    return (size_t)(p - start);
}

/* How deep in <> we are behind this character. */
static int depth_behind(const char *name, const char *p, int depth)
{
    bool arrow = p > name && p[-1] == '-';
    return *p == '<' ? depth + 1 : *p == '>' && depth && !arrow ? depth - 1 : depth;
}

size_t bz_kernel_head(const char *name)
{
    int depth = 0;
    for (const char *p = name; *p; p += argument(p, depth)) {
        depth = depth_behind(name, p, depth);
        if (*p == '(' && !depth && piece(p) == 1)
            return (size_t)(p - name);
    }
    return strlen(name);
}

/* Templates that do whatever their argument says: without that, kernels that have nothing in common get one name. */
static const char *const TEMPLATES[] = {
    "elementwise_kernel",
    "reduce_kernel",
    "mxnet_generic_kernel",
    "mxnet_generic_kernel_ex",
    "MapPlanKernel",
    "MapReduceKeepLowestKernel",
    "EigenMetaKernel",
    "multi_tensor_apply_kernel",
    "distribution_elementwise_grid_stride_kernel",
    "_kernel_agent",
    "kentry",
    "Kernel",
    "Kernel2",
    "device_kernel",
    "globalKernel",
    "for_each_kernel",
    "transform_kernel",
};

/* Words of the arguments that tell nothing: types, wrappers. What stands before "::" is not looked at. */
static const char *const SILENT[] = {
    "int",
    "float",
    "double",
    "long",
    "char",
    "bool",
    "short",
    "unsigned",
    "signed",
    "void",
    "const",
    "half",
    "half_t",
    "half2_t",
    "__half",
    "__nv_bfloat16",
    "Half",
    "BFloat16",
    "array",
    "Array",
    "tuple",
    "gpu",
    "cpu",
    "saveto",
    "plusto",
    "Plan",
    "Tensor",
    "op_with_req",
    "TensorMap",
    "TensorEvaluator",
    "BinaryFunctor",
    "AUnaryFunctor",
    "BUnaryFunctor",
    "ReduceOp",
    "func_wrapper_t",
    "TensorListMetadata",
    "unnamed",
    "TensorAssignOp",
    "gpu_kernel_impl",
    "TensorCwiseUnaryOp",
    "TensorCwiseBinaryOp",
    "gpu_kernel_impl_nocast",
    "gpu_index_kernel",
    "binary_broadcast_kernel",
    "TensorIteratorBase",
    "TensorIterator",
    "opmath_gpu_kernel_with_scalars",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
};

static bool is_one_of(const char *const *list, size_t n, const char *s, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i]) == length && !memcmp(list[i], s, length))
            return true;
    return false;
}

static bool ends_like(const char *const *list, size_t n, const char *s, size_t length)
{
    for (size_t i = 0; i < n; i++) {
        size_t m = strlen(list[i]);
        if (length >= m && !memcmp(s + length - m, list[i], m) && (length == m || s[length - m - 1] == '_'))
            return true;
    }
    return false;
}

/* The first word in the arguments that says what is done: "MulFunctor". Returns its length. */
static size_t telling(const char *from, const char *end, const char **word)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    enum { LEAST = 3 };
    while (from < end) {
        size_t n = strspn(from, LETTERS);
        if (!n) {
            from += piece(from);
            continue;
        }
        bool of_template = n > 1 && *from == 'T' && strspn(from + 1, "0123456789") == n - 1;
        if (n >= LEAST && !(*from >= '0' && *from <= '9') && strncmp(from + n, "::", 2) != 0 && !of_template &&
            !is_one_of(SILENT, sizeof SILENT / sizeof *SILENT, from, n)) {
            *word = from;
            return from + n <= end ? n : (size_t)(end - from);
        }
        from += n;
    }
    return 0;
}

/* The next name that somebody wrote, in one as the linker knows it: its length stands before it. Literals, types of 16 bits and what stands for
 * something before have digits, too. Returns its length, 0 at the end. */
static size_t next_written(const char **p, const char **word)
{
    while (**p) {
        size_t digits = strspn(*p, "0123456789"), n = digits && digits < 4 ? strtoul(*p, NULL, 10) : 0;
        *word = *p + digits;
        if (n && strnlen(*word, n) == n) {
            *p = *word + n;
            return n;
        }
        *p += digits                    ? digits
              : **p == 'L'              ? 1 + strcspn(*p + 1, "E")
              : **p == 'S'              ? 1 + strcspn(*p + 1, "_")
              : !strncmp(*p, "DF16", 4) ? 4
                                        : 1;
    }
    return 0;
}

/* Of a name that no demangler here can read, as its types are newer: "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdI…" is kentry<Rmsnorm2dFwd>. */
static uint32_t short_mangled(bz_trace *t, uint32_t name)
{
    enum { LONGEST = 96 };
    const char *p = bz_string(t, name) + strcspn(bz_string(t, name), "0123456789"), *word = NULL, *of = NULL;
    size_t n = 0, m = 0;
    while (*p >= '0' && *p <= '9' && (m = next_written(&p, &of))) {
        word = of;
        n = m;
    }
    if (!word || n > LONGEST)
        return name;
    if (!ends_like(TEMPLATES, sizeof TEMPLATES / sizeof *TEMPLATES, word, n))
        return bz_trace_intern(t, word, n);
    do
        m = next_written(&p, &of);
    while (m && is_one_of(SILENT, sizeof SILENT / sizeof *SILENT, of, m));
    char text[2 * LONGEST];
    int length =
        m ? snprintf(text, sizeof text, "%.*s<%.*s>", (int)n, word, (int)(m < LONGEST - 3 ? m : LONGEST - 3), of) : 0;
    return m ? bz_trace_intern(t, text, (size_t)length) : bz_trace_intern(t, word, n);
}

uint32_t bz_trace_short_name(bz_trace *t, uint32_t name)
{
    enum { LONGEST = 96 };
    const char *s = bz_string(t, name), *start = s, *end = s + bz_kernel_head(s), *open = NULL, *word;
    int depth = 0;
    if (!strncmp(s, "_ZN", 3))
        return short_mangled(t, name);
    if (!*end && !strchr(s, '<'))
        return name; /* no signature: "CUDA graph 5" */
    for (const char *p = s; p < end; p += argument(p, depth)) {
        depth = depth_behind(s, p, depth);
        if (!depth && (*p == ' ' || (*p == ':' && p[1] == ':')) && p + 1 < end) {
            start = p + (*p == ' ' ? 1 : 2); /* behind the type of the result, behind a namespace */
            open = NULL;
        } else if (depth == 1 && *p == '<' && !open) {
            open = p;
        }
    }
    if (open == start || start >= end)
        return name;
    size_t n = (size_t)((open ? open : end) - start);
    if (!open || !ends_like(TEMPLATES, sizeof TEMPLATES / sizeof *TEMPLATES, start, n))
        return bz_trace_intern(t, start, n);
    size_t m = telling(open, end, &word);
    char text[2 * LONGEST];
    if (!m)
        return bz_trace_intern(t, start, n);
    int length = snprintf(text, sizeof text, "%.*s<%.*s>", (int)(n < LONGEST ? n : LONGEST), start,
                          (int)(m < LONGEST - 3 ? m : LONGEST - 3), word);
    return bz_trace_intern(t, text, (size_t)length);
}

void bz_trace_name_kernels(bz_trace *t)
{
    bz_events *k = &t->event[BZ_EVENT_KERNEL];
    struct bz_trace_private *p = t->private;
    uint32_t n = k->n ? bz_strings(t) : 0; /* new names have higher numbers */
    p->short_name = bz_realloc(p->short_name, n, sizeof *p->short_name);
    p->n_short = n;
    memset(p->short_name, 0xff, n * sizeof *p->short_name);
    for (size_t i = 0; i < k->n; i++) {
        uint32_t name = k->name[i];
        if (p->short_name[name] == BZ_NONE)
            p->short_name[name] = bz_trace_short_name(t, name);
        if (!t->summary) /* a column that nobody touches takes no memory */
            k->short_name[i] = p->short_name[name];
    }
}
