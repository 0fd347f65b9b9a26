/* Operators of frameworks as data: types, shapes and values of what they read and made, by PyTorch's profiler and ONNX
 * Runtime's.
 *
 *   inputs=[[1,3,224,224],[64,3,7,7],[]] types=[float,float,] values=[,,[2,_2]]      PyTorch; a list of tensors is [[…],[…]]
 *   inputs=[{float:[1,3,224,224]},{float:[64,3,7,7]}] outputs=[{float:[…]}]          ONNX Runtime */
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 64 }; /* of one operator that are read */

static const struct {
    const char *name;
    bz_dtype dtype;
} TYPES[] = {{"float", BZ_F32},          {"Float", BZ_F32},      {"double", BZ_F64},    {"c10::Half", BZ_F16},
             {"c10::BFloat16", BZ_BF16}, {"float16", BZ_F16},    {"bfloat16", BZ_BF16}, {"long int", BZ_I64},
             {"long_int", BZ_I64},       {"int64", BZ_I64},      {"int", BZ_I32},       {"int32", BZ_I32},
             {"signed char", BZ_I8},     {"signed_char", BZ_I8}, {"int8", BZ_I8},       {"unsigned char", BZ_U8},
             {"unsigned_char", BZ_U8},   {"uint8", BZ_U8},       {"bool", BZ_BOOL}};

static bz_dtype type_of(const char *s, size_t n)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (strlen(TYPES[i].name) == n && !memcmp(TYPES[i].name, s, n))
            return TYPES[i].dtype;
    return BZ_UNDEFINED;
}

/* The value of "name=…" among the parts with blanks between them. */
static const char *find_part(const char *detail, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = detail; p; p = (p = strchr(p, ' ')) ? p + 1 : NULL)
        if (!strncmp(p, name, n) && p[n] == '=')
            return p + n + 1;
    return NULL;
}

/* "[1,3,224,224]" -> sizes, from its bracket on; where it ends. Sizes that are none make it no shape: rank -1. */
static const char *read_shape(const char *p, bz_operand_seen *out)
{
    bool bad = false;
    out->rank = 0;
    for (p++; *p && *p != ']' && *p != ' ';) {
        char *end;
        long long v = strtoll(p, &end, 10);
        bad |= end == p || v < 0 || v > INT32_MAX || out->rank == BZ_SEEN_RANK;
        if (!bad)
            out->dim[out->rank++] = v;
        p = end == p ? p + 1 : end;
        p += *p == ',';
    }
    if (bad)
        out->rank = -1;
    return *p == ']' ? p + 1 : p;
}

/* Operands from the bracket on. `argument` counts what stands at the first level. */
static int read_list(const char *p, bz_operand_seen *out, int *arguments)
{
    int n = 0, depth = 1, argument = 0;
    for (p++; *p && *p != ' ' && depth && n < OPERANDS;) {
        bz_operand_seen *o = &out[n];
        if (*p == '{') {
            size_t type = strcspn(p + 1, ":} ");
            *o = (bz_operand_seen){.argument = argument, .rank = -1, .dtype = type_of(p + 1, type)};
            p += 1 + type;
            p = *p == ':' && p[1] == '[' ? read_shape(p + 1, o) : p;
            n++;
            p += *p == '}';
        } else if (*p == '[' && p[1] == '[') {
            depth++;
            p++;
        } else if (*p == '[') {
            *o = (bz_operand_seen){.argument = argument};
            p = read_shape(p, o);
            n++;
        } else if (*p == ',') {
            argument += depth == 1;
            p++;
        } else {
            depth -= *p == ']';
            p++;
        }
    }
    *arguments = argument + 1;
    return n;
}

/* The text of an argument in "[float,,[2,_2],True]"; false where it has none. */
static bool find_argument(const char *list, int argument, const char **text, size_t *n)
{
    int depth = 0, at = 0;
    const char *start = list + 1;
    for (const char *p = list; *p && *p != ' '; p++) {
        bool ends = depth == 1 && (*p == ',' || *p == ']');
        if (ends && at++ == argument) {
            *text = start;
            *n = (size_t)(p - start);
            return *n > 0;
        }
        start = ends ? p + 1 : start;
        depth += *p == '[' || *p == '(' || *p == '{' ? 1 : *p == ']' || *p == ')' || *p == '}' ? -1 : 0;
        if (!depth)
            break;
    }
    return false;
}

static void read_operator(const char *detail, bz_arena *arena, bz_operator *out)
{
    bz_operand_seen list[OPERANDS];
    const char *in = find_part(detail, "inputs"), *made = find_part(detail, "outputs"), *text;
    const char *types = find_part(detail, "types");
    size_t n;
    int ignored;
    out->values = find_part(detail, "values");
    if (in && *in == '[') {
        out->n_in = read_list(in, list, &out->arguments);
        for (int i = 0; i < out->n_in; i++)
            if (types && find_argument(types, list[i].argument, &text, &n))
                list[i].dtype = type_of(text, n);
        out->in = bz_arena_dup(arena, list, (size_t)out->n_in * sizeof *list);
    }
    if (made && *made == '[') {
        out->n_out = read_list(made, list, &ignored);
        out->out = bz_arena_dup(arena, list, (size_t)out->n_out * sizeof *list);
    }
}

const bz_operator *bz_operator_of(const bz_trace *t, size_t op)
{
    struct bz_trace_private *p = t->private;
    const uint32_t *key = &t->event[BZ_EVENT_OP].detail[op];
    uint32_t at = bz_map_get(&p->operator_ids, key, sizeof *key);
    if (at != BZ_MAP_NONE)
        return p->operators[at];
    at = p->operator_ids.n;
    BZ_ARENA_ROOM(&p->read_arena, p->operators, at);
    p->operators[at] = BZ_NEW(&p->read_arena, bz_operator, 1);
    read_operator(bz_string(t, *key), &p->read_arena, p->operators[at]);
    bz_map_add(&p->operator_ids, bz_arena_dup(&p->read_arena, key, sizeof *key), sizeof *key, at);
    return p->operators[at];
}

int bz_operator_ints(const bz_operator *o, int argument, int64_t *v, int most)
{
    const char *text;
    size_t n;
    int found = 0;
    if (!o->values || !find_argument(o->values, argument, &text, &n))
        return 0;
    if ((n == 4 && !memcmp(text, "True", 4)) || (n == 5 && !memcmp(text, "False", 5))) {
        *v = n == 4;
        return 1;
    }
    for (const char *p = text; p < text + n;) {
        char *end;
        if (!strchr("-0123456789", *p)) {
            if (!strchr("[]_,", *p))
                return 0;
            p++;
            continue;
        }
        long long x = strtoll(p, &end, 10);
        if (end == p || found == most || x > INT32_MAX || x < -INT32_MAX || *end == '.')
            return 0;
        v[found++] = x;
        p = end;
    }
    return found;
}
