/* The tables. A new one is a row here, with its columns above, and the function that fills it. */
#include "tables/parts.h"

#include <stdlib.h>
#include <string.h>

#define STREAM "device|stream"

static const char TEMPORAL[] =
    "device|span:s=first to last work|busy:s|idle:s|compute:s|other:s=not compute|idle_share:%=idle"
    "|compute_share:%=compute|other_share:%=not compute";
static const char OVERLAP[] =
    "device|compute:s|communication:s|memory:s|compute_communication:s=compute and communication"
    "|compute_memory:s=compute and memory|communication_memory:s=communication and memory"
    "|communication_hidden:%=communication hidden|memory_hidden:%=memory hidden";
static const char TYPES[] = "type=the device worked on|time:s|share:%=of busy time";
static const char IDLE[] =
    STREAM "|cause=idle because of|count:n=gaps|time:s|share:%=of the stream's idle time|mean:s|median:s|max:s=longest";

#define FIGURES(count, sum, share, unit)                                                                               \
    "|count:n=" count "|sum:" unit "=" sum "|share:%=" share "|mean:" unit "|median:" unit "|min:" unit "|max:" unit   \
    "|deviation:" unit

static const char KERNELS[] =
    "name=kernel|group=does" FIGURES("times", "time", "of kernel time", "s") "|full_name:-=full name";
static const char API[] = "name=call|variant:-" FIGURES("times", "time", "of all calls", "s");
static const char CALLS[] = "name=call|variant" FIGURES("times", "time", "of all calls", "s");
static const char COPIES[] = "direction=copies|variant:-" FIGURES("times", "time", "of all copies", "s");
static const char SIZES[] = "direction=copies|variant:-" FIGURES("times", "bytes", "of all bytes", "B");
static const char BANDWIDTH[] =
    "direction=copies|copies:n=times|count:n=changes|mean:B/s|deviation:B/s|min:B/s|quarter:B/s=25 %|median:B/s"
    "|three_quarters:B/s=75 %|max:B/s";
static const char BANDWIDTH_SERIES[] = "direction=copies|from:s|bytes:B|rate:B/s";
static const char QUEUE[] =
    STREAM "|count:n=changes|mean:n|deviation:n|min:n|quarter:n=25 %|median:n|three_quarters:n=75 %|max:n"
           "|over_time:n=mean over the time";
static const char QUEUE_SERIES[] = STREAM "|from:s|mean:n=mean length|max:n=greatest length";
static const char LAUNCHES[] =
    "name=launched by|count:n=times|call_time:s=time in the calls|work_time:s=time of the work"
    "|delay:s=delay (mean)|delay_median:s=median|delay_three_quarters:s=75 %|delay_max:s=max"
    "|brief:n=work shorter than its call|slow:n=calls over 50 µs|late:n=delays over 100 µs";

#define NESTED                                                                                                         \
    "|exclusive:s=without what lies in it|device:s=device work|device_own:s=of it asked for directly|projected:s=on "  \
    "the device"
#define BY_NAME(title)                                                                                                 \
    "name=" title "|count:n=times|sum:s=time|share:%=of all" NESTED "|mean:s|median:s|min:s|max:s|deviation:s"
static const char OPERATORS[] = BY_NAME("operator");
static const char RANGES[] = BY_NAME("range");
static const char RANGE_TREE[] = "name=range|depth:n|count:n=times|sum:s=time" NESTED;

static const char SEQUENCES[] =
    "name=operator|count:n=times|length:n=works|device:s=device time|time:s=host time|sequence=launched";
static const char FOLLOWERS[] =
    "name=kernel|next=and behind it|count:n=times|time:s=time of both|between:s=time between"
    "|between_median:s=median";
static const char DIFFERENCE[] =
    "name|first_count:n=times, first|second_count:n=second|first_time:s=time, first|second_time:s=second"
    "|change:s|first_device:s=device time, first|second_device:s=second|device_change:s=change"
    "|weight:s=both changes";
/* By the shapes of operators, and what a GPU of that name could do. */
#define WORK      "|flops:M=operations|reads:B|writes:B"
#define ROOF      "|intensity:n=operations per byte|rate:M=operations per second"
#define OCCUPANCY "|occupancy:%"
#define LIMIT     "|limit=limited by"
static const char MODEL[] =
    "count:n=steady iterations|mean:s=latency (trimmed mean)|per_second:n=iterations per second"
    "|latency:s=of the typical one|kernel_time:s=kernels|kernel_part:n=kernel time by latency" WORK OCCUPANCY ROOF
        LIMIT;
static const char LAYERS[] = "index:n=layer|name=operator|shape=shapes|stage|time:s=latency|memory:B=allocated";
static const char LAYER_TYPES[] =
    "name=operator|count:n=layers|count_share:%=of all|time:s=latency|share:%=of all|memory:B=allocated"
    "|memory_share:%=of all";
static const char STAGES[] =
    "stage|count:n=layers|time:s=latency|kernel_time:s=kernels|memory:B=allocated|flops:M=operations";
static const char LAYER_KERNELS[] =
    "index:n=layer|name=operator|time:s=latency|count:n=kernels|kernel_time:s=kernel time"
    "|other:s=besides kernels|share:%=kernels of latency" WORK ROOF OCCUPANCY LIMIT;
static const char KERNEL_LIST[] = "name=kernel|index:n=layer|layer=operator|time:s" WORK OCCUPANCY ROOF LIMIT;
static const char KERNEL_NAMES[] =
    "name=kernel|count:n=times|time:s|part:n=by the iteration's latency" WORK OCCUPANCY ROOF LIMIT
    "|full_name:-=full name";
static const char CRITICAL[] = "bound=bound by|count:n=steps|time:s|share:%=of the path";
static const char CRITICAL_EVENTS[] =
    "name|kind=is|count:n=on the path|all:n=in all|time:s=its time|share:%=of the path, with delays"
    "|delay:s=delays|full_name:-=full name";
static const char CRITICAL_STEPS[] = "from:s|time:s|bound=bound by|name|kind=is";

static const char TRAINING[] =
    "recording|device|iterations:n|stable_from:n=stable from|step:s=an iteration|variation:%=varies by"
    "|rate:n=iterations a second|batch:n|samples:n=samples a second|busy_share:%=busy"
    "|communication_share:%=communication alone|flops:M=operations an iteration"
    "|known_share:%=of kernel time told|flops_rate:M=operations a second|peak_share:%=of the peak"
    "|host_threads:n=threads at work|processors:n=processors used|memory:B=allocated at most";
static const char TRAINING_KERNELS[] =
    "recording|name=kernel|group=does|count:n=times an iteration|time:s=time of an iteration"
    "|share:%=of kernel time|flops_rate:M=operations a second|peak_share:%=of the peak";
static const char TRAINING_MEMORY[] =
    "recording|class=for|blocks:n=blocks at the peak|at_peak:B=at the peak|at_peak_pages:B=in pages of 4 KiB"
    "|share:%=of the peak|most:B=at most";
static const char TRAINING_CHECKS[] = "check=observed elsewhere|verdict=here|found:%|limit=holds where";

const bz_table_kind bz_table_list[] = {
    {"temporal", "Time of each device",
     "A row for each device: idle and busy time, from its first work to the end of its last; busy is compute, where "
     "some kernel computes, and the rest: communication, copies, fills.",
     "HTA: temporal breakdown", TEMPORAL, fill_temporal, true},
    {"overlap", "Compute, communication, memory, and their overlap",
     "A row for each device: for how long kernels computed, kernels communicated, copies and fills ran, and for how "
     "long two of these ran at once. Hidden is the share of communication, or of copies and fills, while a kernel "
     "computes.",
     "HTA: communication computation overlap", OVERLAP, fill_overlap, false},
    {"types", "What devices worked on",
     "Each moment in which a device works belongs to one row, by all that runs then.", "HTA: kernel type breakdown",
     TYPES, fill_types, true},
    {"idle", "Idle time of each stream",
     "Gaps between the work of a stream: host wait where the next work was launched after the gap began, kernel wait "
     "where the gap is shorter than 30 µs, else other.",
     "HTA: idle time breakdown", IDLE, fill_idle, true},
    {"kernels", "Kernels", "A row for each kernel, by its full name.",
     "nsys stats: cuda_gpu_kern_sum; HTA: kernel breakdown", KERNELS, fill_kernels, true},
    {"api", "Calls of the runtime and driver",
     "A row for each function of CUDA's runtime and driver: time of the host.", "nsys stats: cuda_api_sum", API,
     fill_api, true},
    {"calls", "Library calls", "A row for each function of a library, and the variant that it took: time of the host.",
     NULL, CALLS, fill_calls, true},
    {"copies", "Copies and fills: time", "A row for each direction of copies, and one for fills: time on the device.",
     "nsys stats: cuda_gpu_mem_time_sum", COPIES, fill_copies, true},
    {"sizes", "Copies and fills: bytes", "A row for each direction of copies, and one for fills: bytes.",
     "nsys stats: cuda_gpu_mem_size_sum", SIZES, fill_sizes, false},
    {"bandwidth", "Rate of copies and fills",
     "By direction, the rate of all copies that run at once: figures over its values other than 0, one for each copy "
     "that begins or ends.",
     "HTA: memory bandwidth summary", BANDWIDTH, fill_bandwidth, false},
    {"bandwidth-series", "Rate of copies and fills over the time",
     "By direction, in hundred equal parts of the time in which devices worked: bytes moved, and the rate.",
     "HTA: memory bandwidth time series", BANDWIDTH_SERIES, fill_bandwidth_series, false},
    {"queue", "Length of the queue of each stream",
     "Work that was launched and has not begun: figures over the lengths, one for each launch and each start.",
     "HTA: queue length summary", QUEUE, fill_queue, true},
    {"queue-series", "Length of the queue of each stream over the time",
     "In equal parts of the time from the first launch to the last start: mean and greatest length.",
     "HTA: queue length time series", QUEUE_SERIES, fill_queue_series, false},
    {"launches", "Launches",
     "By the function that launched work: the delay from its return to the work's start (0 where the work begins "
     "earlier), work that is shorter than its launch, and what took long.",
     "HTA: CUDA kernel launch statistics", LAUNCHES, fill_launches, true},
    {"operators", "Operators",
     "A row for each operator of the framework: time of the host with and without operators in it, and the work of "
     "devices that it asked for.",
     NULL, OPERATORS, fill_operators, true},
    {"ranges", "Ranges",
     "A row for each range that the program names (NVTX, record_function): time of the host with and without ranges in "
     "it, the work of devices that was launched in it, and the time from the start of that work to its end.",
     "nsys stats: nvtx_sum, nvtx_gpu_proj_sum", RANGES, fill_ranges, false},
    {"range-tree", "Ranges by where they lie", "As ranges, a row for each range by the ranges around it.", NULL,
     RANGE_TREE, fill_range_tree, true},
    {"critical", "Critical path",
     "The longest chain of what had to wait for what: time of threads, of work on devices, and delays between. A row "
     "for what bounds a step of it. What is off the path could take longer without anybody noticing.",
     "HTA: critical path summary", CRITICAL, fill_critical, true},
    {"critical-events", "What is on the critical path",
     "A row for each name: how many of its events are on the path, and of how many, the time of the path that is "
     "theirs, and the delays of launches before and of other work behind them.",
     "HTA: critical path breakdown", CRITICAL_EVENTS, fill_critical_events, false},
    {"critical-steps", "Steps of the critical path", "The path in its order, from its start.", "HTA: critical path",
     CRITICAL_STEPS, fill_critical_steps, false},
    {"sequences", "Sequences of kernels that operators launch",
     "A row for each operator and what it launched on devices, three works or more, in the order of their start: how "
     "often, and the time of the work and of the operator. An operator within another one of its name is not counted "
     "again.",
     "HTA: frequent CUDA kernel sequences", SEQUENCES, fill_sequences, true},
    {"followers", "Kernels that follow each other",
     "A row for two kernels that follow each other on a stream, and the time between.", NULL, FOLLOWERS, fill_followers,
     false},
    {"difference", "Difference of two recordings",
     "With --against: a row for each operator of either, or each kernel where one has no operators; of one steady "
     "iteration where both have some.",
     "HTA: trace comparison", DIFFERENCE, fill_difference, true},
    {"model", "Iterations and their kernels",
     "The latency of steady iterations, without the fifth that is fastest and the fifth that is slowest, and the "
     "kernels of the typical one. Operations and bytes are modelled: by the shapes of products and convolutions.",
     "XSP: A1, A15", MODEL, fill_model, false},
    {"layers", "Layers as they were executed",
     "A row for each layer of the typical iteration in its order: its outermost operators. Stages are thirds of the "
     "layers; allocated is what the memory profiler saw.",
     "XSP: A2, A3, A4", LAYERS, fill_layers, false},
    {"layer-types", "Types of layers", "The layers of the typical iteration by operator.", "XSP: A5, A6, A7",
     LAYER_TYPES, fill_layer_types, false},
    {"stages", "Stages of the iteration", "The layers of the typical iteration in three parts with as many layers.",
     "XSP: stages of A3, A4, A12", STAGES, fill_stages, false},
    {"layer-kernels", "Layers and their kernels",
     "A row for each layer with kernels: their time, what the layer takes besides, operations and bytes (modelled by "
     "shapes), and whether memory or arithmetic limits it on that GPU.",
     "XSP: A11, A12, A13, A14", LAYER_KERNELS, fill_layer_kernels, false},
    {"kernel-list", "Kernels of the iteration",
     "A row for each kernel of the typical iteration and its layer. The operations of an operator (modelled by shapes) "
     "are its longest kernel's; occupancy is the profiler's estimate.",
     "XSP: A8, A9", KERNEL_LIST, fill_kernel_list, false},
    {"kernel-names", "Kernels of the iteration by name",
     "The kernels of the typical iteration, summed up by name; occupancy by their time.", "XSP: A10", KERNEL_NAMES,
     fill_kernel_names, false},
    {"training", "The run as training",
     "A row for each device, over the stable phase: throughput, the share of the time in which some kernel runs, "
     "operations that operators with shapes ask of kernels, over the busy time and over the peak; threads of the host "
     "in some call, on average; processors that the program says it used; and memory allocated above what there was "
     "when the phase began. With --against both recordings.",
     "TBD: M1 to M6", TRAINING, fill_training, false},
    {"training-kernels", "Kernels worth optimizing",
     "The five longest kernels that do fewer operations a second than all together; work that no operator tells counts "
     "as none.",
     "TBD: M4", TRAINING_KERNELS, fill_training_kernels, false},
    {"training-memory", "Memory of the training run",
     "A row for each class of memory in the stable phase, by when blocks are taken and given back, where allocations "
     "were recorded: at the moment when most is taken in all, requested and rounded to pages, and the most of each "
     "class whenever that is. Weights and data were there before the first iteration.",
     "TBD: M6", TRAINING_MEMORY, fill_training_memory, false},
    {"training-checks", "What was observed of other training runs",
     "A row for each observation of TBD: whether it holds here.", "TBD: observations", TRAINING_CHECKS,
     fill_training_checks, false},
};
const int bz_n_tables = sizeof bz_table_list / sizeof *bz_table_list;

/* XSP's analyses: 2 of A2. */
static const struct {
    const char *name;
    int number[4];
} XSP[] = {{"model", {1, 15}},      {"layers", {2, 3, 4}},  {"layer-types", {5, 6, 7}},
           {"kernel-list", {8, 9}}, {"kernel-names", {10}}, {"layer-kernels", {11, 12, 13, 14}}};

static const char *name_of(long number)
{
    for (size_t i = 0; i < sizeof XSP / sizeof *XSP; i++)
        for (int k = 0; k < 4; k++)
            if (XSP[i].number[k] == number)
                return XSP[i].name;
    return NULL;
}

const bz_table_kind *bz_table_find(const char *name)
{
    char *end;
    long number = *name == 'a' || *name == 'A' ? strtol(name + 1, &end, 10) : 0;
    const char *meant = number > 0 && !*end ? name_of(number) : NULL;
    for (int i = 0; i < bz_n_tables; i++)
        if (!strcmp(bz_table_list[i].name, meant ? meant : name))
            return &bz_table_list[i];
    return NULL;
}

bz_sheet *bz_tables_fill(bz_tables *m, const bz_table_kind *kind)
{
    bz_sheet *s = bz_sheet_new(m->arena, kind->name, kind->title, kind->columns);
    kind->fill(m, s);
    return s;
}
