/* The tables. A new one is a row here, with its columns above, and the function that fills it. */
#include "tables/parts.h"

#include <stdlib.h>
#include <string.h>

#define END                                                                                                            \
    {                                                                                                                  \
        NULL, NULL, BZ_SHEET_TEXT                                                                                      \
    }
#define STREAM                                                                                                         \
    {"device", "device", BZ_SHEET_TEXT},                                                                               \
    {                                                                                                                  \
        "stream", "stream", BZ_SHEET_TEXT                                                                              \
    }

static const bz_sheet_column TEMPORAL[] = {{"device", "device", BZ_SHEET_TEXT},
                                           {"span", "first to last work", BZ_SHEET_SECONDS},
                                           {"busy", "busy", BZ_SHEET_SECONDS},
                                           {"idle", "idle", BZ_SHEET_SECONDS},
                                           {"compute", "compute", BZ_SHEET_SECONDS},
                                           {"other", "not compute", BZ_SHEET_SECONDS},
                                           {"idle_share", "idle", BZ_SHEET_SHARE},
                                           {"compute_share", "compute", BZ_SHEET_SHARE},
                                           {"other_share", "not compute", BZ_SHEET_SHARE},
                                           END};
static const bz_sheet_column OVERLAP[] = {{"device", "device", BZ_SHEET_TEXT},
                                          {"compute", "compute", BZ_SHEET_SECONDS},
                                          {"communication", "communication", BZ_SHEET_SECONDS},
                                          {"memory", "memory", BZ_SHEET_SECONDS},
                                          {"compute_communication", "compute and communication", BZ_SHEET_SECONDS},
                                          {"compute_memory", "compute and memory", BZ_SHEET_SECONDS},
                                          {"communication_memory", "communication and memory", BZ_SHEET_SECONDS},
                                          {"communication_hidden", "communication hidden", BZ_SHEET_SHARE},
                                          {"memory_hidden", "memory hidden", BZ_SHEET_SHARE},
                                          END};
static const bz_sheet_column TYPES[] = {{"type", "the device worked on", BZ_SHEET_TEXT},
                                        {"time", "time", BZ_SHEET_SECONDS},
                                        {"share", "of busy time", BZ_SHEET_SHARE},
                                        END};
static const bz_sheet_column IDLE[] = {STREAM,
                                       {"cause", "idle because of", BZ_SHEET_TEXT},
                                       {"count", "gaps", BZ_SHEET_COUNT},
                                       {"time", "time", BZ_SHEET_SECONDS},
                                       {"share", "of the stream's idle time", BZ_SHEET_SHARE},
                                       {"mean", "mean", BZ_SHEET_SECONDS},
                                       {"median", "median", BZ_SHEET_SECONDS},
                                       {"max", "longest", BZ_SHEET_SECONDS},
                                       END};

#define FIGURES(count, sum, share, type)                                                                               \
    {"count", count, BZ_SHEET_COUNT}, {"sum", sum, type}, {"share", share, BZ_SHEET_SHARE}, {"mean", "mean", type},    \
        {"median", "median", type}, {"min", "min", type}, {"max", "max", type},                                        \
    {                                                                                                                  \
        "deviation", "deviation", type                                                                                 \
    }

static const bz_sheet_column KERNELS[] = {{"name", "kernel", BZ_SHEET_TEXT},
                                          {"group", "does", BZ_SHEET_TEXT},
                                          FIGURES("times", "time", "of kernel time", BZ_SHEET_SECONDS),
                                          {"full_name", "full name", BZ_SHEET_DETAIL},
                                          END};
static const bz_sheet_column API[] = {{"name", "call", BZ_SHEET_TEXT},
                                      {"variant", "variant", BZ_SHEET_DETAIL},
                                      FIGURES("times", "time", "of all calls", BZ_SHEET_SECONDS),
                                      END};
static const bz_sheet_column CALLS[] = {{"name", "call", BZ_SHEET_TEXT},
                                        {"variant", "variant", BZ_SHEET_TEXT},
                                        FIGURES("times", "time", "of all calls", BZ_SHEET_SECONDS),
                                        END};
static const bz_sheet_column COPIES[] = {{"direction", "copies", BZ_SHEET_TEXT},
                                         {"variant", "variant", BZ_SHEET_DETAIL},
                                         FIGURES("times", "time", "of all copies", BZ_SHEET_SECONDS),
                                         END};
static const bz_sheet_column SIZES[] = {{"direction", "copies", BZ_SHEET_TEXT},
                                        {"variant", "variant", BZ_SHEET_DETAIL},
                                        FIGURES("times", "bytes", "of all bytes", BZ_SHEET_BYTES),
                                        END};
static const bz_sheet_column BANDWIDTH[] = {{"direction", "copies", BZ_SHEET_TEXT},
                                            {"copies", "times", BZ_SHEET_COUNT},
                                            {"count", "changes", BZ_SHEET_COUNT},
                                            {"mean", "mean", BZ_SHEET_RATE},
                                            {"deviation", "deviation", BZ_SHEET_RATE},
                                            {"min", "min", BZ_SHEET_RATE},
                                            {"quarter", "25 %", BZ_SHEET_RATE},
                                            {"median", "median", BZ_SHEET_RATE},
                                            {"three_quarters", "75 %", BZ_SHEET_RATE},
                                            {"max", "max", BZ_SHEET_RATE},
                                            END};
static const bz_sheet_column BANDWIDTH_SERIES[] = {{"direction", "copies", BZ_SHEET_TEXT},
                                                   {"from", "from", BZ_SHEET_SECONDS},
                                                   {"bytes", "bytes", BZ_SHEET_BYTES},
                                                   {"rate", "rate", BZ_SHEET_RATE},
                                                   END};
static const bz_sheet_column QUEUE[] = {STREAM,
                                        {"count", "changes", BZ_SHEET_COUNT},
                                        {"mean", "mean", BZ_SHEET_COUNT},
                                        {"deviation", "deviation", BZ_SHEET_COUNT},
                                        {"min", "min", BZ_SHEET_COUNT},
                                        {"quarter", "25 %", BZ_SHEET_COUNT},
                                        {"median", "median", BZ_SHEET_COUNT},
                                        {"three_quarters", "75 %", BZ_SHEET_COUNT},
                                        {"max", "max", BZ_SHEET_COUNT},
                                        {"over_time", "mean over the time", BZ_SHEET_COUNT},
                                        END};
static const bz_sheet_column QUEUE_SERIES[] = {STREAM,
                                               {"from", "from", BZ_SHEET_SECONDS},
                                               {"mean", "mean length", BZ_SHEET_COUNT},
                                               {"max", "greatest length", BZ_SHEET_COUNT},
                                               END};
static const bz_sheet_column LAUNCHES[] = {{"name", "launched by", BZ_SHEET_TEXT},
                                           {"count", "times", BZ_SHEET_COUNT},
                                           {"call_time", "time in the calls", BZ_SHEET_SECONDS},
                                           {"work_time", "time of the work", BZ_SHEET_SECONDS},
                                           {"delay", "delay (mean)", BZ_SHEET_SECONDS},
                                           {"delay_median", "median", BZ_SHEET_SECONDS},
                                           {"delay_three_quarters", "75 %", BZ_SHEET_SECONDS},
                                           {"delay_max", "max", BZ_SHEET_SECONDS},
                                           {"brief", "work shorter than its call", BZ_SHEET_COUNT},
                                           {"slow", "calls over 50 µs", BZ_SHEET_COUNT},
                                           {"late", "delays over 100 µs", BZ_SHEET_COUNT},
                                           END};

#define NESTED                                                                                                         \
    {"exclusive", "without what lies in it", BZ_SHEET_SECONDS}, {"device", "device work", BZ_SHEET_SECONDS},           \
        {"device_own", "of it asked for directly", BZ_SHEET_SECONDS},                                                  \
    {                                                                                                                  \
        "projected", "on the device", BZ_SHEET_SECONDS                                                                 \
    }
#define BY_NAME(title)                                                                                                 \
    {"name", title, BZ_SHEET_TEXT}, {"count", "times", BZ_SHEET_COUNT}, {"sum", "time", BZ_SHEET_SECONDS},             \
        {"share", "of all", BZ_SHEET_SHARE}, NESTED, {"mean", "mean", BZ_SHEET_SECONDS},                               \
        {"median", "median", BZ_SHEET_SECONDS}, {"min", "min", BZ_SHEET_SECONDS}, {"max", "max", BZ_SHEET_SECONDS},    \
    {                                                                                                                  \
        "deviation", "deviation", BZ_SHEET_SECONDS                                                                     \
    }
static const bz_sheet_column OPERATORS[] = {BY_NAME("operator"), END};
static const bz_sheet_column RANGES[] = {BY_NAME("range"), END};
static const bz_sheet_column RANGE_TREE[] = {{"name", "range", BZ_SHEET_TEXT},
                                             {"depth", "depth", BZ_SHEET_COUNT},
                                             {"count", "times", BZ_SHEET_COUNT},
                                             {"sum", "time", BZ_SHEET_SECONDS},
                                             NESTED,
                                             END};

static const bz_sheet_column SEQUENCES[] = {{"name", "operator", BZ_SHEET_TEXT},
                                            {"count", "times", BZ_SHEET_COUNT},
                                            {"length", "works", BZ_SHEET_COUNT},
                                            {"device", "device time", BZ_SHEET_SECONDS},
                                            {"time", "host time", BZ_SHEET_SECONDS},
                                            {"sequence", "launched", BZ_SHEET_TEXT},
                                            END};
static const bz_sheet_column FOLLOWERS[] = {{"name", "kernel", BZ_SHEET_TEXT},
                                            {"next", "and behind it", BZ_SHEET_TEXT},
                                            {"count", "times", BZ_SHEET_COUNT},
                                            {"time", "time of both", BZ_SHEET_SECONDS},
                                            {"between", "time between", BZ_SHEET_SECONDS},
                                            {"between_median", "median", BZ_SHEET_SECONDS},
                                            END};
static const bz_sheet_column DIFFERENCE[] = {{"name", "name", BZ_SHEET_TEXT},
                                             {"first_count", "times, first", BZ_SHEET_COUNT},
                                             {"second_count", "second", BZ_SHEET_COUNT},
                                             {"first_time", "time, first", BZ_SHEET_SECONDS},
                                             {"second_time", "second", BZ_SHEET_SECONDS},
                                             {"change", "change", BZ_SHEET_SECONDS},
                                             {"first_device", "device time, first", BZ_SHEET_SECONDS},
                                             {"second_device", "second", BZ_SHEET_SECONDS},
                                             {"device_change", "change", BZ_SHEET_SECONDS},
                                             {"weight", "both changes", BZ_SHEET_SECONDS},
                                             END};
/* By the shapes of operators, and what a GPU of that name could do. */
#define WORK                                                                                                           \
    {"flops", "operations", BZ_SHEET_LARGE}, {"reads", "reads", BZ_SHEET_BYTES},                                       \
    {                                                                                                                  \
        "writes", "writes", BZ_SHEET_BYTES                                                                             \
    }
#define ROOF                                                                                                           \
    {"intensity", "operations per byte", BZ_SHEET_COUNT},                                                              \
    {                                                                                                                  \
        "rate", "operations per second", BZ_SHEET_LARGE                                                                \
    }
#define OCCUPANCY                                                                                                      \
    {                                                                                                                  \
        "occupancy", "occupancy", BZ_SHEET_SHARE                                                                       \
    }
#define LIMIT                                                                                                          \
    {                                                                                                                  \
        "limit", "limited by", BZ_SHEET_TEXT                                                                           \
    }
static const bz_sheet_column MODEL[] = {{"count", "steady iterations", BZ_SHEET_COUNT},
                                        {"mean", "latency (trimmed mean)", BZ_SHEET_SECONDS},
                                        {"per_second", "iterations per second", BZ_SHEET_COUNT},
                                        {"latency", "of the typical one", BZ_SHEET_SECONDS},
                                        {"kernel_time", "kernels", BZ_SHEET_SECONDS},
                                        {"kernel_part", "kernel time by latency", BZ_SHEET_COUNT},
                                        WORK,
                                        OCCUPANCY,
                                        ROOF,
                                        LIMIT,
                                        END};
static const bz_sheet_column LAYERS[] = {{"index", "layer", BZ_SHEET_COUNT},
                                         {"name", "operator", BZ_SHEET_TEXT},
                                         {"shape", "shapes", BZ_SHEET_TEXT},
                                         {"stage", "stage", BZ_SHEET_TEXT},
                                         {"time", "latency", BZ_SHEET_SECONDS},
                                         {"memory", "allocated", BZ_SHEET_BYTES},
                                         END};
static const bz_sheet_column LAYER_TYPES[] = {
    {"name", "operator", BZ_SHEET_TEXT},        {"count", "layers", BZ_SHEET_COUNT},
    {"count_share", "of all", BZ_SHEET_SHARE},  {"time", "latency", BZ_SHEET_SECONDS},
    {"share", "of all", BZ_SHEET_SHARE},        {"memory", "allocated", BZ_SHEET_BYTES},
    {"memory_share", "of all", BZ_SHEET_SHARE}, END};
static const bz_sheet_column STAGES[] = {{"stage", "stage", BZ_SHEET_TEXT},
                                         {"count", "layers", BZ_SHEET_COUNT},
                                         {"time", "latency", BZ_SHEET_SECONDS},
                                         {"kernel_time", "kernels", BZ_SHEET_SECONDS},
                                         {"memory", "allocated", BZ_SHEET_BYTES},
                                         {"flops", "operations", BZ_SHEET_LARGE},
                                         END};
static const bz_sheet_column LAYER_KERNELS[] = {{"index", "layer", BZ_SHEET_COUNT},
                                                {"name", "operator", BZ_SHEET_TEXT},
                                                {"time", "latency", BZ_SHEET_SECONDS},
                                                {"count", "kernels", BZ_SHEET_COUNT},
                                                {"kernel_time", "kernel time", BZ_SHEET_SECONDS},
                                                {"other", "besides kernels", BZ_SHEET_SECONDS},
                                                {"share", "kernels of latency", BZ_SHEET_SHARE},
                                                WORK,
                                                ROOF,
                                                OCCUPANCY,
                                                LIMIT,
                                                END};
static const bz_sheet_column KERNEL_LIST[] = {{"name", "kernel", BZ_SHEET_TEXT},
                                              {"index", "layer", BZ_SHEET_COUNT},
                                              {"layer", "operator", BZ_SHEET_TEXT},
                                              {"time", "time", BZ_SHEET_SECONDS},
                                              WORK,
                                              OCCUPANCY,
                                              ROOF,
                                              LIMIT,
                                              END};
static const bz_sheet_column KERNEL_NAMES[] = {{"name", "kernel", BZ_SHEET_TEXT},
                                               {"count", "times", BZ_SHEET_COUNT},
                                               {"time", "time", BZ_SHEET_SECONDS},
                                               {"part", "by the iteration's latency", BZ_SHEET_COUNT},
                                               WORK,
                                               OCCUPANCY,
                                               ROOF,
                                               LIMIT,
                                               {"full_name", "full name", BZ_SHEET_DETAIL},
                                               END};
static const bz_sheet_column CRITICAL[] = {{"bound", "bound by", BZ_SHEET_TEXT},
                                           {"count", "steps", BZ_SHEET_COUNT},
                                           {"time", "time", BZ_SHEET_SECONDS},
                                           {"share", "of the path", BZ_SHEET_SHARE},
                                           END};
static const bz_sheet_column CRITICAL_EVENTS[] = {{"name", "name", BZ_SHEET_TEXT},
                                                  {"kind", "is", BZ_SHEET_TEXT},
                                                  {"count", "on the path", BZ_SHEET_COUNT},
                                                  {"all", "in all", BZ_SHEET_COUNT},
                                                  {"time", "its time", BZ_SHEET_SECONDS},
                                                  {"share", "of the path, with delays", BZ_SHEET_SHARE},
                                                  {"delay", "delays", BZ_SHEET_SECONDS},
                                                  {"full_name", "full name", BZ_SHEET_DETAIL},
                                                  END};
static const bz_sheet_column CRITICAL_STEPS[] = {
    {"from", "from", BZ_SHEET_SECONDS}, {"time", "time", BZ_SHEET_SECONDS}, {"bound", "bound by", BZ_SHEET_TEXT},
    {"name", "name", BZ_SHEET_TEXT},    {"kind", "is", BZ_SHEET_TEXT},      END};

static const bz_sheet_column TRAINING[] = {{"recording", "recording", BZ_SHEET_TEXT},
                                           {"device", "device", BZ_SHEET_TEXT},
                                           {"iterations", "iterations", BZ_SHEET_COUNT},
                                           {"stable_from", "stable from", BZ_SHEET_COUNT},
                                           {"step", "an iteration", BZ_SHEET_SECONDS},
                                           {"variation", "varies by", BZ_SHEET_SHARE},
                                           {"rate", "iterations a second", BZ_SHEET_COUNT},
                                           {"batch", "batch", BZ_SHEET_COUNT},
                                           {"samples", "samples a second", BZ_SHEET_COUNT},
                                           {"busy_share", "busy", BZ_SHEET_SHARE},
                                           {"communication_share", "communication alone", BZ_SHEET_SHARE},
                                           {"flops", "operations an iteration", BZ_SHEET_LARGE},
                                           {"known_share", "of kernel time told", BZ_SHEET_SHARE},
                                           {"flops_rate", "operations a second", BZ_SHEET_LARGE},
                                           {"peak_share", "of the peak", BZ_SHEET_SHARE},
                                           {"host_threads", "threads at work", BZ_SHEET_COUNT},
                                           {"processors", "processors used", BZ_SHEET_COUNT},
                                           {"memory", "allocated at most", BZ_SHEET_BYTES},
                                           END};
static const bz_sheet_column TRAINING_KERNELS[] = {{"recording", "recording", BZ_SHEET_TEXT},
                                                   {"name", "kernel", BZ_SHEET_TEXT},
                                                   {"group", "does", BZ_SHEET_TEXT},
                                                   {"count", "times an iteration", BZ_SHEET_COUNT},
                                                   {"time", "time of an iteration", BZ_SHEET_SECONDS},
                                                   {"share", "of kernel time", BZ_SHEET_SHARE},
                                                   {"flops_rate", "operations a second", BZ_SHEET_LARGE},
                                                   {"peak_share", "of the peak", BZ_SHEET_SHARE},
                                                   END};
static const bz_sheet_column TRAINING_MEMORY[] = {{"recording", "recording", BZ_SHEET_TEXT},
                                                  {"class", "for", BZ_SHEET_TEXT},
                                                  {"blocks", "blocks at the peak", BZ_SHEET_COUNT},
                                                  {"at_peak", "at the peak", BZ_SHEET_BYTES},
                                                  {"at_peak_pages", "in pages of 4 KiB", BZ_SHEET_BYTES},
                                                  {"share", "of the peak", BZ_SHEET_SHARE},
                                                  {"most", "at most", BZ_SHEET_BYTES},
                                                  END};
static const bz_sheet_column TRAINING_CHECKS[] = {{"check", "observed elsewhere", BZ_SHEET_TEXT},
                                                  {"verdict", "here", BZ_SHEET_TEXT},
                                                  {"found", "found", BZ_SHEET_SHARE},
                                                  {"limit", "holds where", BZ_SHEET_TEXT},
                                                  END};

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

/* "XSP: A2, A3, A4" has the number 3. */
static bool has_analysis(const char *like, long number)
{
    for (const char *p = like ? strstr(like, "XSP: A") : NULL; p && (p = strchr(p, 'A')) != NULL; p++)
        if (strtol(p + 1, NULL, 10) == number)
            return true;
    return false;
}

const bz_table_kind *bz_table_find(const char *name)
{
    char *end;
    long number = *name == 'a' || *name == 'A' ? strtol(name + 1, &end, 10) : 0;
    for (int i = 0; i < bz_n_tables; i++)
        if (!strcmp(bz_table_list[i].name, name))
            return &bz_table_list[i];
    for (int i = 0; i < bz_n_tables && number > 0 && !*end; i++)
        if (has_analysis(bz_table_list[i].like, number))
            return &bz_table_list[i];
    return NULL;
}

bz_sheet *bz_tables_fill(bz_tables *m, const bz_table_kind *kind)
{
    int n = 0;
    while (kind->column[n].key)
        n++;
    bz_sheet *s = bz_sheet_new(m->arena, kind->name, kind->title, kind->column, n);
    kind->fill(m, s);
    return s;
}
