/* The table of transformations, and how one is asked for. */
#include "whatif/transformations.h"

#include "base/choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A row is complete with a function of its own file: whatif.h says how. Those that exchange gradients between workers, and those
 * that trade memory for time, stand behind the others. */
static const bz_transformation TRANSFORMATIONS[] = {
    {.name = "half-precision",
     .does = "kernels compute in 16 bits",
     .assumes = "matrix products and convolutions run 'compute' times as fast, what moves bytes 'memory' times; the "
                "host works as before",
     .apply = bz_whatif_precision,
     .alone = true,
     .parameter = {{"compute",
                    "speed of products and convolutions; not given: none, 0.3 and 0.8 of what the GPU's data sheet "
                    "says; without one",
                    1, 3, 4, 1, 64,
                    "published for matrix units of Volta and Turing: up to 3; at batch 1 kernels may be too short to "
                    "gain anything"},
                   {"memory", "speed of what moves bytes", 1, 2, 2, 1, 64,
                    "half the bytes; short kernels gain nothing"},
                   {"copies", "speed of copies; 1: they stay as they are", 1, 1, 1, 1, 64, "inputs stay as they are"},
                   {"conversions",
                    "by records: launches that convert layouts for a convolution on matrix units, in row-major order",
                    0, 1, 2, 0, 16, "cuDNN 7.6 on a V100 has 54 conversions for 53 convolutions"}}},
    {.name = "tf32",
     .does = "matrix products and convolutions of f32 multiply in TF32, on Tensor Cores",
     .assumes = "those kernels run 'compute' times as fast; all else stays, and the host works as before",
     .apply = bz_whatif_tf32,
     .alone = true,
     .ranges = true,
     .parameter = {{"compute", "speed of products and convolutions; not given: by the GPU's data sheet", 1, 1, 1, 1, 64,
                    "a quarter to all of what a data sheet says that TF32 does more, half of it likely"}}},
    {.name = "best-algorithms",
     .does = "each library call takes the best variant that the records know",
     .assumes =
         "in the program it gains by the same factor as in the records; calls without a record take what they took",
     .apply = bz_whatif_best,
     .alone = true},
    {.name = "fusion",
     .does = "products take along the bias, the normalization, the sum and the function that follow them",
     .assumes = "what runs behind a product reads its result and nothing else does; the fused call takes what records "
                "say; normalization is folded into the weights, but where a model is trained",
     .apply = bz_whatif_fusion,
     .alone = true},
    {.name = "prepacked-weights",
     .does = "on a processor, weights are brought into the library's layout once, ahead",
     .assumes = "weights do not change between iterations",
     .inference = true,
     .apply = bz_whatif_prepack,
     .alone = true},
    {.name = "library",
     .does = "on a processor, the library does all layers that it can, in its own layouts, with weights prepared ahead",
     .assumes =
         "each layer takes what the library's own pick takes by the records, between that and what calls take longer "
         "now; reorders go, and the framework's time behind a call is that of calls that follow each other at once",
     .inference = true,
     .apply = bz_whatif_library,
     .ranges = true,
     .key = "layers",
     .file =
         "fusion patterns that become one call; last 'leaves KIND…' or 'only KIND…': layers that stay the framework's"},
    {.name = "products",
     .does = "on a processor, matrix products and convolutions compute in 16 bits",
     .assumes = "each takes what the library's own pick takes by the records in that type, and its operands come from "
                "as far; the framework's own layers compute in 32 bits and convert",
     .apply = bz_whatif_products,
     .ranges = true,
     .key = "type",
     .file = "bf16 or f16"},
    {.name = "joined",
     .does = "on a processor, the framework's optimizer: blocked layouts, groups of layers as one, constants computed "
             "ahead",
     .assumes = "a convolution gains as the library's direct code does; of a layer that another takes along its second "
                "operand is still read",
     .inference = true,
     .apply = bz_whatif_joined,
     .ranges = true,
     .key = "layers",
     .file = "blocked, pads, constants, and fusion patterns; last 'leaves KIND…'"},
    {.name = "framework",
     .does = "on a processor, the framework takes less time between two calls",
     .assumes = "what it takes behind calls that follow each other at once is needed, and what it takes longer "
                "elsewhere is not; layers that it computes itself stay",
     .apply = bz_whatif_framework,
     .ranges = true},
    {.name = "threads",
     .does = "library calls run on 'n' threads",
     .assumes = "calls take the ratio of records with as many threads and as the recording has; the framework does "
                "what it did",
     .apply = bz_whatif_threads,
     .parameter = {{"n", "threads", 2, 2, 2, 1, 4096, "the fewest that are more than one"}}},
    {.name = "ideal",
     .does = "each layer takes its bound; what no layer asks for goes",
     .assumes = "with the model of a processor's recording: the bound's price of each layer, whoever did it; else each "
                "call's best record, and what has none takes what it took",
     .apply = bz_whatif_ideal,
     .parameter = {{"framework", "0: the host, its launches and all latencies take no time", 1, 1, 1, 0, 1,
                    "they stay"}}},
    {.name = "cuda-graph",
     .does = "all launches become one",
     .assumes = "the host launches the iteration's kernels by one call, and each kernel begins 'node' µs behind the "
                "one before",
     .apply = bz_whatif_one_graph,
     .alone = true,
     .parameter = {{"node", "µs between two kernels of a graph", 0.5, 1, 1.6, 0, 1000,
                    "usual on Volta to Hopper: 0.5 to 1.6 µs"},
                   {"recorder", "µs that recording adds to each call", 0, 0, 4, 0, 1e6,
                    "Nsight Systems on five programs: 7 to 11, usually 9; of other recorders nobody knows"},
                   {"pauses", "1: longer pauses of the host stay, and what follows one is another graph", 0, 0, 1, 0, 1,
                    "nothing tells what a host does in a pause: a graph may spare it, or not"},
                   {"usual", "a pause is longer than so many times the median from launch to launch", 10, 10, 10, 1,
                    1e6, "chosen"}}},
    {.name = "fused-optimizer",
     .does = "the weight update is one kernel",
     .assumes = "it takes what its kernels take together, and is launched once",
     .apply = bz_whatif_fused_optimizer,
     .alone = true,
     .parameter = {{"time", "of the fused kernel, relative to the sum of its parts", 0.3, 1, 1, 0, 1,
                    "published: the sum; less where parts read the same bytes again"}}},
    {.name = "prefetch",
     .does = "input is loaded by another thread while the iteration runs",
     .assumes = "another processor core is free, and loading slows nothing else down",
     .apply = bz_whatif_prefetch,
     .alone = true},
    {.name = "copies-overlapped",
     .does = "copies from and to the host run on a stream of their own, and the host waits for none",
     .assumes = "memory of the host is page-locked, and the input of the next iteration is copied during this one",
     .apply = bz_whatif_copies,
     .alone = true},
    {.name = "device",
     .does = "a device that is 'times' as fast: kernels alone",
     .assumes = "every kernel gains alike",
     .apply = bz_whatif_device,
     .parameter = {{"times", "speed", 2, 2, 2, 0.001, 1e6, "as asked"}}},
    {.name = "host",
     .does = "a host that is 'times' as fast: calls and the time between them",
     .assumes = "every call and every gap gains alike",
     .apply = bz_whatif_host,
     .parameter = {{"times", "speed", 2, 2, 2, 0.001, 1e6, "as asked"}}},
    {.name = "link",
     .does = "a link that is 'times' as fast: copies from and to the host, and communication",
     .assumes = "copies have a fixed time, by the shortest and the longest one on record, and the rest is bandwidth",
     .apply = bz_whatif_link,
     .parameter = {{"times", "speed", 2, 2, 2, 0.001, 1e6, "as asked"},
                   {"fixed", "time of a copy that stays, relative to what the recording tells", 0, 1, 1, 0, 1,
                    "a line through two copies"}}},
    {.name = "streams",
     .does = "ways of the model that need not wait for each other run on streams of their own",
     .assumes = "calls are found in the model by what they compute, and what runs behind a call goes with it; kernels "
                "at once share the device",
     .apply = bz_whatif_streams,
     .file = "the model, an ONNX file with the sizes that were recorded",
     .parameter = {{"streams", "at most", 4, 4, 4, 1, 16, "usual modules have up to four ways"},
                   {"overlap", "share of what kernels beside each other could save", 0, 0.5, 1, 0, 1,
                    "nobody measured how far kernels slow each other down"},
                   {"event", "µs of the host to record an event, and to wait for one", 0.5, 1, 2, 0, 1000,
                    "usual of cudaEventRecord"},
                   {"batch", "items of the recorded iteration; 0: as the file says", 0, 0, 0, 0, 1e6, "the file"}}},
    {.name = "batch",
     .does = "an iteration computes 'times' as many items",
     .assumes = "calls take what records of that batch say, or lie on a line through records of others; other work "
                "grows with the items above a fixed time; the host does what it did",
     .apply = bz_whatif_batch,
     .parameter =
         {{"times", "items, relative to those of the recording", 2, 2, 2, 1e-3, 1e3, "as asked"},
          {"floor", "of tasks without records: time that does not grow, in times of the shortest of its sort", 0, 1,
           3, 0, 1000, "the shortest kernel computes next to nothing"},
          {"room", "blocks that the device runs at once, relative to what its data sheet allows", 0.5, 1, 2, 0.01, 100,
           "by registers, shared memory and threads"},
          {"between", "of a processor's recording without operators: share of the time between calls that is operators",
           0.5, 0.85, 1, 0, 1, "three networks in PyTorch, batches 1 and 4, on a Zen 5"},
          {"caches",
           "power to which work is slower by the byte, as the recording's reorders of so much larger tensors are", 0, 0,
           1, 0, 1, "nobody knows whether the larger tensors still lie near"}}},
    {.name = "system",
     .does = "the calls of libraries run on another system, or in another version",
     .assumes = "calls change by the ratio of two records, else of two predictions; other kernels by peaks and "
                "bandwidths; the host stays",
     .apply = bz_whatif_system,
     .ranges = true,
     .key = "name",
     .file = "a system of the database, or a GPU of the data sheets; system=NAME means the same",
     .parameter = {{"floor", "of kernels without records: time that stays, in times of the shortest one", 0, 1, 3, 0,
                    1000, "the shortest kernel computes next to nothing"}}},
    {.name = "restructured-norm",
     .does = "batch normalization is split between its neighbours",
     .assumes = "its kernels run 'times' as fast, since they read their input half as often, and ReLU beside them is "
                "no kernel",
     .apply = bz_whatif_norms,
     .alone = true,
     .parameter = {{"times", "speed of normalization", 1.4, 2, 2, 1, 64,
                    "published: half the reads; measured there: about half of the gain"},
                   {"literal", "1: every ReLU goes, as printed", 0, 0, 0, 0, 1,
                    "those beside a normalization or a convolution"}}},
    {.name = "data-parallel",
     .does = "'workers' machines train together: gradients are exchanged in buckets while the backward pass runs",
     .assumes = "each byte passes each link 2 (n - 1) / n times, the update waits for all buckets, and the exchange "
                "slows no kernel down",
     .apply = bz_whatif_data_parallel,
     .file = "bytes of gradients: lines of LAYER TAB BYTES",
     .parameter = {{"workers", "machines", 2, 2, 2, 1, 1e6, "the fewest"},
                   {"gbps", "Gbit/s of the slowest link", 10, 10, 10, 1e-6, 1e9, "usual Ethernet"},
                   {"mb", "megabytes of gradients", 100, 100, 100, 0, 1e9, "no file tells; ResNet-50 has 102"},
                   {"bucket", "megabytes of a bucket", 26.2144, 26.2144, 26.2144, 0, 1e9, "PyTorch's default: 25 MiB"},
                   {"first", "megabytes of the first one", 1.048576, 1.048576, 1.048576, 0, 1e9,
                    "PyTorch's default: 1 MiB"},
                   {"latency", "µs of each step of an exchange", 0, 0, 0, 0, 1e9, "the published formula has none"},
                   {"efficiency", "share of the formula's speed", 0.75, 1, 1,
                    0.001, 1, "published: exchanges beside kernels took up to 34 % longer"},
                   {"tree", "1: a tree, not a ring", 0, 0, 0, 0, 1, "ring"}}},
    {.name = "priority-exchange",
     .does = "'workers' machines exchange parameters in slices, first those that the next forward pass needs first",
     .assumes =
         "every machine is a worker and a server; a layer waits for its own slices alone; updates take what they took",
     .apply = bz_whatif_priorities,
     .file = "bytes of gradients: lines of LAYER TAB BYTES",
     .parameter = {{"workers", "machines", 2, 2, 2, 1, 1e6, "the fewest"},
                   {"gbps", "Gbit/s of a machine's link", 10, 10, 10, 1e-6, 1e9, "usual Ethernet"},
                   {"mb", "megabytes of gradients", 100, 100, 100, 0, 1e9, "no file tells; ResNet-50 has 102"},
                   {"slice", "megabytes of a slice", 0.2, 0.2, 0.2, 1e-6, 1e9, "published: 50 000 parameters"},
                   {"priority", "0: in the order in which they come", 1, 1, 1, 0, 1, "by priority"},
                   {"latency", "µs of each message", 0, 0, 0, 0, 1e9, "the published formula has none"},
                   {"literal", "1: channels and priorities as printed", 0, 0, 0, 0, 1, "near the input first"}}},
    {.name = "blueconnect",
     .does = "each exchange is decomposed by levels of the network: reduce-scatter down, all-gather back",
     .assumes = "levels work beside each other; behind a level of p workers the next one has a p-th of the bytes",
     .apply = bz_whatif_blueconnect,
     .parameter = {{"workers1", "of the first level", 2, 2, 2, 1, 1e6, "the fewest"},
                   {"gbps1", "Gbit/s of its links", 100, 100, 100, 1e-6, 1e9, "within a machine"},
                   {"workers2", "of the second level", 2, 2, 2, 1, 1e6, "the fewest"},
                   {"gbps2", "Gbit/s of its links", 10, 10, 10, 1e-6, 1e9, "usual Ethernet"},
                   {"workers3", "of the third level; 1: there is none", 1, 1, 1, 1, 1e6, "none"},
                   {"gbps3", "Gbit/s of its links", 10, 10, 10, 1e-6, 1e9, "usual Ethernet"},
                   {"latency", "µs of each step", 0, 0, 0, 0, 1e9, "the published formula has none"}}},
    {.name = "gradient-compression",
     .does = "gradients are exchanged in 'ratio' of their bytes",
     .assumes = "packing and unpacking pass all bytes on the device",
     .apply = bz_whatif_compression,
     .parameter = {{"ratio", "bytes that are sent, of all", 0.002, 0.002, 0.02, 1e-6, 1,
                    "published: a thousandth, each with its place"},
                   {"gbs", "GB/s of an element-wise kernel", 200, 400, 800, 0.001, 1e6, "GPUs of 2016 to 2020"},
                   {"compress", "passes over the bytes before", 2, 3, 4, 0, 1000,
                    "quantize, find the threshold, select"},
                   {"decompress", "passes behind", 1, 1, 2, 0, 1000, "clear and add"}}},
    {.name = "offload",
     .does = "what convolutions keep for the backward pass waits on the host",
     .assumes = "copies run beside kernels; the layer behind waits until its predecessor's copy is away, and comes "
                "back one convolution ahead",
     .apply = bz_whatif_offload,
     .parameter = {{"mb_stored", "megabytes that leave", 100, 100, 100, 0, 1e9, "nothing tells"},
                   {"gbs", "GB/s each way", 10, 12, 13, 0.001, 1e6, "usual for PCIe 3.0 with 16 lanes"},
                   {"all", "1: all layers, not convolutions alone", 0, 0, 0, 0, 1, "published as the better policy"}}},
    {.name = "encoded-activations",
     .does = "what the backward pass needs is stored in fewer bytes",
     .assumes = "encoding takes 'bits', 'sparse' or 'reduce' times an element-wise kernel, decoding as much",
     .apply = bz_whatif_encoding,
     .parameter = {{"bits", "for ReLU in front of a pooling", 0.5, 0.6, 1, 0, 1000, "reads all, writes a bit of each"},
                   {"sparse", "for ReLU or pooling in front of a convolution", 1, 2, 3, 0, 1000, "counts, then writes"},
                   {"reduce", "with lossy=1, for all others", 0.75, 0.75, 1, 0, 1000, "writes half of what it reads"},
                   {"lossy", "1: all layers", 0, 0, 0, 0, 1, "nothing is lost"}}},
    {.name = "checkpoints",
     .does = "activations are computed again, segment by segment, instead of kept",
     .assumes = "a second forward pass of each segment but the last takes what the first one did",
     .apply = bz_whatif_checkpoints,
     .parameter = {{"segments", "0: the root of the number of layers", 0, 0, 0, 0, 1e6, "published: the root"}}},
    {.name = "substitution",
     .does = "layers, kernels or calls are removed, or take another time, as a file says",
     .assumes = "the file is right: lines of remove LAYER, scale LAYER FACTOR, time LAYER US; the same with -kernel "
                "and -call and its name",
     .apply = bz_whatif_substitution,
     .file = "the policy"},
    {.name = "script",
     .does = "what a script says",
     .assumes = "what the script says",
     .apply = bz_whatif_script,
     .file = "the statements; docs/whatif.md has the language"},
};

const bz_transformation *bz_transformations(int *n)
{
    *n = sizeof TRANSFORMATIONS / sizeof *TRANSFORMATIONS;
    return TRANSFORMATIONS;
}

const char *bz_assumed_name(bz_assumed_how how)
{
    static const char *const NAMES[] = {"measured", "modelled", "given", "guessed"};
    return NAMES[how];
}

const bz_kernel *bz_whatif_kernel(const bz_whatif_asked *asked, const bz_task *task)
{
    bool recorded = task->event_kind == BZ_EVENT_KERNEL && task->event < asked->trace->event[BZ_EVENT_KERNEL].n;
    return recorded ? bz_kernel_of(asked->trace, task->event) : NULL;
}

bz_kernel_does bz_whatif_does(const bz_whatif_asked *asked, const bz_task *task)
{
    const bz_kernel *k = bz_whatif_kernel(asked, task);
    return k ? k->does : BZ_KERNEL_OTHER;
}

char *bz_whatif_line(char **rest, int *number)
{
    char *line;
    do {
        ++*number;
        line = *rest ? strsep(rest, "\n") : NULL;
    } while (line && (!*line || *line == '#'));
    return line;
}

static int parameter(const bz_transformation *row, const char *name, size_t length)
{
    for (int i = 0; i < BZ_WHATIF_PARAMETERS && row->parameter[i].name; i++)
        if (strlen(row->parameter[i].name) == length && !strncmp(row->parameter[i].name, name, length))
            return i;
    return -1;
}

static int unknown_parameter(const bz_transformation *row, const char *name, int length, bz_error *err)
{
    BZ_SCOPED(bz_buf) known = {0};
    for (int i = 0; i < BZ_WHATIF_PARAMETERS && row->parameter[i].name; i++)
        bz_buf_printf(&known, "%s%s", i ? ", " : "", row->parameter[i].name);
    bz_fail(err, BZ_USAGE, "%s: has no parameter '%.*s'; it has %s", row->name, length < 60 ? length : 60, name,
            known.len ? known.data : "none");
    return -1;
}

/* "3", or "2..4" with the middle between them. */
static int read_value(const bz_transformation *row, int at, const char *text, bz_whatif_asked *out, bz_error *err)
{
    const bz_whatif_parameter *p = &row->parameter[at];
    char value[64], *end = value;
    size_t length = strcspn(text, ",");
    double low = NAN, high = NAN;
    if (length && length < sizeof value) {
        memcpy(value, text, length);
        value[length] = 0;
        char *second = strstr(value, ".."); /* before strtod takes the first point for its own */
        if (second)
            *second = 0;
        low = high = strtod(value, &end);
        if (second && end == second && end != value)
            high = strtod(second + 2, &end);
    }
    if (end == value || *end || !isfinite(low) || !isfinite(high))
        return bz_fail(err, BZ_USAGE, "%s: %s wants a number, or two with '..' between them", row->name, p->name);
    if (low > high || low < p->least || high > p->most)
        return bz_fail(err, BZ_USAGE, "%s: %s wants %g to %g", row->name, p->name, p->least, p->most);
    out->value[at][0] = low;
    out->value[at][1] = low + (high - low) / 2;
    out->value[at][2] = high;
    out->given[at] = true;
    return 0;
}

static int unknown_row(const char *text, size_t length, bz_error *err)
{
    char typed[61];
    const char *names[64];
    int n;
    const bz_transformation *rows = bz_transformations(&n);
    for (int i = 0; i < n; i++)
        names[i] = rows[i].name;
    snprintf(typed, sizeof typed, "%.*s", length < 60 ? (int)length : 60, text);
    const char *meant = bz_choice_meant(typed, names, n);
    return bz_fail(err, BZ_USAGE, "there is no transformation '%s': %s%s%s'benanza whatif --list' names them all",
                   typed, meant ? "did you mean " : "", meant ? meant : "", meant ? "? " : "");
}

int bz_whatif_parse(const char *text, bz_arena *arena, bz_whatif_asked *out, bz_error *err)
{
    int n;
    const bz_transformation *rows = bz_transformations(&n);
    size_t length = strcspn(text, ":=");
    *out = (bz_whatif_asked){.arena = arena};
    for (int i = 0; i < n && !out->row; i++)
        if (strlen(rows[i].name) == length && !strncmp(rows[i].name, text, length))
            out->row = &rows[i];
    if (!out->row)
        return unknown_row(text, length, err);
    for (int i = 0; i < BZ_WHATIF_PARAMETERS && out->row->parameter[i].name; i++) {
        out->value[i][0] = out->row->parameter[i].low;
        out->value[i][1] = out->row->parameter[i].usual;
        out->value[i][2] = out->row->parameter[i].high;
    }
    const char *key = out->row->key ? out->row->key : "file", *rest = text[length] ? text + length + 1 : "";
    size_t key_length = strlen(key);
    if (text[length] == '=' && out->row->key) { /* "system=h100" */
        out->text = bz_arena_str(arena, rest);
        return 0;
    }
    if (text[length] == '=')
        return bz_fail(err, BZ_USAGE, "%s: parameters stand behind ':', as KEY=VALUE", out->row->name);
    for (const char *at = rest; *at;) {
        size_t name = strcspn(at, "=,");
        if (out->row->file && name == key_length && !strncmp(at, key, name) && at[name] == '=') {
            out->text = bz_arena_str(arena, at + name + 1); /* up to the end: paths may hold anything */
            return 0;
        }
        int p = parameter(out->row, at, name);
        if (p < 0 || at[name] != '=')
            return unknown_parameter(out->row, at, (int)strcspn(at, "=,"), err);
        if (read_value(out->row, p, at + name + 1, out, err))
            return -1;
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return 0;
}

double bz_whatif_number(const bz_whatif_asked *asked, const char *name)
{
    int p = parameter(asked->row, name, strlen(name));
    return p < 0 ? NAN : asked->value[p][asked->side];
}

bool bz_whatif_given(const bz_whatif_asked *asked, const char *name)
{
    int p = parameter(asked->row, name, strlen(name));
    return p >= 0 && asked->given[p];
}

static void assume(bz_whatif_asked *asked, bz_assumed_how how, const char *from, const char *fmt, va_list args)
{
    char text[400];
    vsnprintf(text, sizeof text, fmt, args);
    if (asked->side != 1)
        return; /* the other runs assume the same with other numbers */
    BZ_ARENA_ADD(asked->arena, asked->assumed, asked->n_assumed) =
        (bz_assumed){bz_arena_str(asked->arena, text), how, bz_arena_str(asked->arena, from)};
}

void bz_whatif_assume(bz_whatif_asked *asked, bz_assumed_how how, const char *from, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    assume(asked, how, from, fmt, args);
    va_end(args);
}

void bz_whatif_assume_parameter(bz_whatif_asked *asked, const char *name, const char *fmt, ...)
{
    int p = parameter(asked->row, name, strlen(name));
    va_list args;
    va_start(args, fmt);
    if (p >= 0 && asked->given[p])
        assume(asked, BZ_ASSUMED_GIVEN, "asked for", fmt, args);
    else
        assume(asked, BZ_ASSUMED_GUESSED, p < 0 ? "" : asked->row->parameter[p].from, fmt, args);
    va_end(args);
}

int bz_whatif_because(bz_whatif_asked *asked, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    asked->because = bz_arena_str(asked->arena, text);
    return 0;
}

int bz_whatif_without_records(bz_whatif_asked *asked)
{
    return bz_whatif_because(asked, "no records to go by: name a system with --system");
}
