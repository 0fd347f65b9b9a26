/* The rules of units.txt. */
#include "explain/units.h"

#include "runtime/gpus.h"

#include <stdlib.h>
#include <string.h>

void bz_unit_rules_read(const char *text, bz_arena *arena, bz_unit_rules *out)
{
    char *copy = bz_arena_str(arena, text), *save = NULL;
    int lines = 1;
    for (const char *p = copy; (p = strchr(p, '\n')); p++)
        lines++;
    *out = (bz_unit_rules){.rule = BZ_NEW(arena, bz_unit_rule, lines)};
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        bz_unit_rule *r = &out->rule[out->n];
        char *inner = NULL;
        for (char *word = strtok_r(line, " ", &inner); word && *word != '#' && r->n < BZ_UNIT_WORDS;
             word = strtok_r(NULL, " ", &inner))
            r->word[r->n++] = word;
        out->n += r->n > 1;
        if (r->n > 1)
            for (char *c = (char *)r->word[1]; (c = strchr(c, '_'));)
                *c = ' ';
    }
}

/* Of the words behind the rule and its unit. */
static bool has_word(const bz_unit_rule *r, const char *name)
{
    for (int i = 2; i < r->n; i++)
        if (strstr(name, r->word[i]))
            return true;
    return false;
}

static bool is_a(const bz_unit_rule *r, const char *what)
{
    return !strcmp(r->word[0], what);
}

const char *bz_unit_of_name(const bz_unit_rules *rules, const char *name)
{
    bz_kernel kernel;
    for (int i = 0; i < rules->n; i++)
        if (is_a(&rules->rule[i], "used") && has_word(&rules->rule[i], name))
            return rules->rule[i].word[1];
    bz_kernel_read(name, &kernel);
    return kernel.unit;
}

/* One of a rule's words is the whole of the name, or its end behind an underscore. */
static bool names(const bz_unit_rules *rules, const char *what, const char *unit, const char *name)
{
    for (int i = 0; i < rules->n; i++) {
        const bz_unit_rule *r = &rules->rule[i];
        for (int k = 2; is_a(r, what) && !strcmp(r->word[1], unit) && k < r->n; k++) {
            size_t n = strlen(name), w = strlen(r->word[k]);
            const char *end = n >= w ? name + n - w : name;
            if (!strcmp(end, r->word[k]) && (end == name || (n - w > 5 && !strncmp(end - 6, "_ALGO_", 6))))
                return true;
        }
    }
    return false;
}

const char *bz_unit_of_log(const bz_unit_rules *rules, const char *math, const char *algorithm)
{
    for (int i = 0; i < rules->n; i++)
        if (is_a(&rules->rule[i], "math") && names(rules, "math", rules->rule[i].word[1], math) &&
            names(rules, "algorithm", rules->rule[i].word[1], algorithm))
            return rules->rule[i].word[1];
    return NULL;
}

bz_unit_system bz_unit_of_system(const bz_unit_rules *rules, const char *isa, const char *gpu, double capability)
{
    bz_unit_system s = {.capability = gpu ? capability : 0};
    bz_gpu known;
    if (gpu && !(capability > 0) && bz_gpu_find(gpu, &known))
        s.capability = known.major + known.minor / 10.0;
    for (int i = 0; i < rules->n; i++) {
        const bz_unit_rule *r = &rules->rule[i];
        if (!is_a(r, "has") || r->n < 4)
            continue;
        bool device = !strcmp(r->word[2], "cc");
        if (device ? s.capability >= strtod(r->word[3], NULL) : !gpu && isa && strstr(isa, r->word[3]))
            s.unit = r->word[1];
    }
    return s;
}

static bool is_type(const bz_unit_rule *r, const bz_unit_system *s)
{
    return is_a(r, "type") && r->n == 5 && s->unit && !strcmp(r->word[1], s->unit) &&
           strtod(r->word[4], NULL) <= s->capability;
}

int bz_unit_multiple(const bz_unit_rules *rules, const bz_unit_system *system, const char *dtype)
{
    for (int i = 0; i < rules->n; i++)
        if (is_type(&rules->rule[i], system) && !strcmp(rules->rule[i].word[2], dtype))
            return atoi(rules->rule[i].word[3]);
    return 0;
}

/* "f16, bf16 or tf32": what the unit multiplies in floating point. */
static void put_types(const bz_unit_rules *rules, const bz_unit_system *system, bz_buf *out)
{
    int n = 0;
    for (int i = 0; i < rules->n; i++)
        if (is_type(&rules->rule[i], system) && !strstr("u8", rules->rule[i].word[2]))
            bz_buf_printf(out, "%s%s", n++ ? ", " : "", rules->rule[i].word[2]);
}

static bool put_channels(const char *what, int64_t n, int multiple, bz_buf *out)
{
    bool odd = n > 0 && multiple > 1 && n % multiple;
    if (odd)
        bz_buf_printf(out, "%s%lld %s channel%s: no multiple of %d", out->len ? "; " : "", (long long)n, what,
                      n == 1 ? "" : "s", multiple);
    return odd;
}

const char *bz_unit_why(const bz_unit_rules *rules, const bz_unit_system *system, const bz_unit_product *p,
                        bz_arena *arena, bool *channels)
{
    bz_buf out = {0};
    *channels = false;
    if (!system->unit || (p->group > 1 && p->in == 1))
        return NULL; /* a channel by itself is no product of matrices */
    int multiple = bz_unit_multiple(rules, system, p->dtype), wanted = multiple ? multiple : 8;
    for (int i = 0; i < rules->n && !multiple; i++)
        if (is_type(&rules->rule[i], system)) {
            wanted = atoi(rules->rule[i].word[3]);
            break;
        }
    if (!multiple) {
        bz_buf_printf(&out, "computes in %s, not in ", p->dtype);
        put_types(rules, system, &out);
    }
    *channels = put_channels("input", p->in, wanted, &out);
    *channels |= put_channels("output", p->out, wanted, &out);
    if (p->math && *p->math && multiple && !names(rules, "math", system->unit, p->math))
        bz_buf_printf(&out, "%smath mode %s", out.len ? "; " : "", p->math);
    if (!out.len && p->packed)
        bz_buf_puts(&out, "data in NCHW: it wants channels last");
    if (!out.len)
        bz_buf_puts(&out, "the library took another implementation");
    return bz_buf_keep(&out, arena);
}
