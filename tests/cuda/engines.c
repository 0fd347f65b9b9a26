/* Which engines the real cuDNN proposes for our graphs. It takes the description of a device in place of one, so its
 * heuristics can be asked where there is none.
 *
 *   engines CASES
 *
 * A line of CASES is `ENGINES LAYOUT MATH PROBLEM`. Of the engines that are proposed on any of the devices below all,
 * some or none use tensor cores; `any`: that differs between devices; `-`: there are no engines. Where there are, mode A has chosen one of them (a `?`
 * behind: perhaps not). `all@900`: older devices have none. `all/blocks`: of the graphs of that name alone. The library needs the driver's library to be there; the toolkit's stub is enough. */
#include "runtime/cudnn/graph.h"
#include "tests/cuda/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct found {
    int engines, tensor, graphs, chosen;
} found;

/* Engines of all the graphs that the problem is, or of those that have the name (NULL: of all). */
static found ask(const bz_problem *p, const char *graphs, const char *layout, const char *math,
                 cudnnBackendDescriptor_t device)
{
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    int n = bz_problem_operands(p, operand);
    bz_error why = {0};
    char name[200];
    found f = {0};
    for (const cudnn_kind *kind = bz_cudnn_kinds; kind->kind; kind++) {
        bool wanted = !graphs || (kind->name && !strcmp(kind->name, graphs));
        if (kind->kind != p->kind || kind->release != cudnn_release_graph || !wanted)
            continue;
        call *c = bz_cudnn_describe(kind, p, operand, n, layout, math, &why);
        if (!c)
            continue;
        c->device = device;
        int chosen = cudnn_graph_choice(c), i = 0;
        for (; cudnn_graph_algorithm(c, i, name, sizeof name); i++)
            f.tensor += strstr(name, "+tensor") != NULL;
        f.engines += i;
        f.graphs += i > 0;
        f.chosen += chosen >= 0;
        bz_cudnn_free(c);
    }
    return f;
}

/* Of one convolution: a walk finds engines that no heuristic proposes, and few are asked for where few are wanted. Where all are,
 * an engine's knobs are turned, too: heuristics propose clusters of 4 blocks and of 8, but none of 6. */
static int check_walk(cudnnBackendDescriptor_t device)
{
    bool turned[3] = {false};
    bz_problem p;
    bz_operand operand[BZ_PROBLEM_OPERANDS];
    bz_error err = {0};
    char name[200];
    int n[3] = {0}, wanted[3] = {2, 0, -1};
    if (bz_problem_parse("conv x=1x64x28x28 w=64x64x3x3 pad=1x1x1x1 dtype=f16", &p, &err))
        return 1;
    for (int i = 0; i < 3; i++) {
        const cudnn_kind *kind = bz_cudnn_kinds;
        while (kind->kind != p.kind || kind->release != cudnn_release_graph)
            kind++;
        call *c = bz_cudnn_describe(kind, &p, operand, bz_problem_operands(&p, operand), "nhwc", "default", &err);
        if (!c)
            return 1;
        c->device = device;
        c->engines = wanted[i];
        for (; cudnn_graph_algorithm(c, n[i], name, sizeof name); n[i]++)
            turned[i] |= strstr(name, " k27=6 ") != NULL;
        bz_cudnn_free(c);
    }
    printf("engine configurations of a convolution: %d where few are wanted, %d, %d where all are\n", n[0], n[1], n[2]);
    return !(n[0] <= 6 && n[0] < n[1] && n[1] <= 30 && n[1] < n[2] && !turned[1] && turned[2]);
}

static bool is_as(const char *wanted, found f, int version)
{
    char word[16];
    const char *since = strchr(wanted, '@');
    if (since && version < strtol(since + 1, NULL, 10))
        return !f.engines;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(wanted, "?@/"), wanted);
    if (f.engines && f.chosen != f.graphs && !strchr(wanted, '?'))
        return false;
    return !strcmp(word, "-")      ? !f.engines
           : !strcmp(word, "any")  ? f.engines > 0
           : !strcmp(word, "none") ? f.engines && !f.tensor
           : !strcmp(word, "all")  ? f.engines && f.tensor == f.engines
                                   : !strcmp(word, "some") && f.tensor && f.tensor < f.engines;
}

static int check_line(const char *line, const cudnnBackendDescriptor_t *device)
{
    char wanted[24], layout[16], math[16];
    int at = 0, bad = 0;
    bz_problem p;
    bz_error err = {0};
    if (sscanf(line, "%23s %15s %15s %n", wanted, layout, math, &at) != 3 || bz_problem_parse(line + at, &p, &err)) {
        printf("%s: %s\n", line, err.text);
        return 1;
    }
    for (int i = 0; i < N_DEVICES; i++) {
        const char *graphs = strchr(wanted, '/');
        found f = ask(&p, graphs ? graphs + 1 : NULL, layout, math, device[i]);
        if (is_as(wanted, f, device_version(i)))
            continue;
        printf("%s: %d engines of %d graphs on %s, %d with tensor cores, %d chosen\n", line, f.engines, f.graphs,
               device_name(i), f.tensor, f.chosen);
        bad++;
    }
    return bad;
}

int main(int argc, char **argv)
{
    cudnnBackendDescriptor_t device[N_DEVICES];
    char line[1024];
    int n = 0, bad = 0;
    FILE *cases = argc == 2 ? fopen(argv[1], "r") : NULL;
    for (int i = 0; i < N_DEVICES; i++)
        if (!(device[i] = device_describe(i)))
            return 1;
    while (cases && fgets(line, sizeof line, cases)) {
        line[strcspn(line, "\n")] = 0;
        if (!line[0] || line[0] == '#')
            continue;
        bad += check_line(line, device);
        n++;
    }
    if (cases)
        fclose(cases);
    bad += check_walk(device[DEVICE_H200]);
    for (int i = 0; i < N_DEVICES; i++)
        cudnnBackendDestroyDescriptor(device[i]);
    printf("%d graphs on %d devices that are not there, %d bad\n", n, N_DEVICES, bad);
    return bad || !n;
}
