#include "profile/tables.h"

#define AT(member)                     offsetof(bz_events, member)
#define INT64(name, member)            name, NULL, AT(member), BZ_CELL_INT64, false, false
#define INT32(name, member)            name, NULL, AT(member), BZ_CELL_INT32, false, false
#define STRING(name, member)           name, NULL, AT(member), BZ_CELL_STRING_ID, false, false
#define DETAIL(name, member)           name, NULL, AT(member), BZ_CELL_INT32, false, true
#define LAUNCHED(name, member, detail) name, NULL, offsetof(bz_launched, member), BZ_CELL_LAUNCHED, false, detail
#define START                          "start", NULL, AT(start), BZ_CELL_INT64, true, false

static const bz_field KERNEL[] = {{START},
                                  {INT64("end", end)},
                                  {INT32("correlationId", correlation)},
                                  {"demangledName", "name", AT(name), BZ_CELL_STRING_ID, true, false},
                                  {LAUNCHED("registersPerThread", registers, true)},
                                  {LAUNCHED("gridX", grid[0], false)},
                                  {LAUNCHED("gridY", grid[1], false)},
                                  {LAUNCHED("gridZ", grid[2], false)},
                                  {LAUNCHED("blockX", block[0], true)},
                                  {LAUNCHED("blockY", block[1], true)},
                                  {LAUNCHED("blockZ", block[2], true)},
                                  {LAUNCHED("staticSharedMemory", shared_static, true)},
                                  {LAUNCHED("dynamicSharedMemory", shared_dynamic, true)},
                                  {DETAIL("graphId", graph)},
                                  {INT32("achievedOccupancy", occupancy)},
                                  {0}};
/* a whole CUDA graph as one row: what ran inside is not told */
static const bz_field GRAPH[] = {
    {START}, {INT64("end", end)}, {INT32("correlationId", correlation)}, {INT32("graphId", graph)}, {0}};
static const bz_field COPY[] = {{START},
                                {INT64("end", end)},
                                {INT32("correlationId", correlation)},
                                {INT64("bytes", bytes)},
                                {INT32("copyKind", value)},
                                {INT32("graphNodeId", graph)},
                                {0}};
static const bz_field MEMSET[] = {{START},
                                  {INT64("end", end)},
                                  {INT32("correlationId", correlation)},
                                  {INT64("bytes", bytes)},
                                  {INT32("graphNodeId", graph)},
                                  {0}};
static const bz_field SYNC[] = {{START},
                                {INT64("end", end)},
                                {INT32("correlationId", correlation)},
                                {INT32("syncType", value)},
                                {INT32("waitedRecordCorrelationId", waited_record)}, /* ours, as is the next one */
                                {INT32("waitedStream", waited_stream)},
                                {0}};
static const bz_field API[] = {{START},
                               {INT64("end", end)},
                               {INT32("correlationId", correlation)},
                               {"nameId", NULL, AT(name), BZ_CELL_STRING_ID, true, false},
                               {DETAIL("returnValue", value)},
                               {0}};
static const bz_field LIBRARY[] = {
    {START}, {INT64("end", end)}, {"nameId", NULL, AT(name), BZ_CELL_STRING_ID, true, false}, {0}};
static const bz_field NVTX[] = {{START},
                                {INT64("end", end)},
                                {"text", NULL, AT(name), BZ_CELL_TEXT, false, false},
                                {INT64("allocatedBytes", bytes)},
                                {INT64("address", address)},
                                {0}};
static const bz_field MPI[] = {{START}, {INT64("end", end)}, {0}}; /* their textId names them */
static const bz_field OVERHEAD[] = {{START},
                                    {INT64("end", end)},
                                    {STRING("nameId", name)},
                                    {"overheadType", "returnValue", AT(value), BZ_CELL_INT32, false, false},
                                    {0}};
static const bz_field CALLS[] = {{START},
                                 {INT64("end", end)},
                                 {STRING("nameId", name)},
                                 {INT32("library", library)},
                                 {INT32("flags", flags)},
                                 {STRING("detailId", detail)},
                                 {STRING("operandsId", operands)},
                                 {STRING("variantId", variant)},
                                 {INT32("stackId", stack)},
                                 {0}};
static const bz_field OPS[] = {{START},
                               {INT64("end", end)},
                               {STRING("nameId", name)},
                               {INT32("correlationId", correlation)},
                               {STRING("detailId", detail)},
                               {0}};

const bz_mapping BZ_TABLES[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", BZ_EVENT_KERNEL, true, true, 0, KERNEL},
    {"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", BZ_EVENT_KERNEL, true, false, 0, KERNEL},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", BZ_EVENT_KERNEL, true, false, 0, GRAPH},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", BZ_EVENT_COPY, true, true, 0, COPY},
    {"CUPTI_ACTIVITY_KIND_MEMSET", BZ_EVENT_MEMSET, true, true, 0, MEMSET},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", BZ_EVENT_SYNC, true, true, 0, SYNC},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", BZ_EVENT_API, false, true, 0, API},
    {"CUPTI_ACTIVITY_KIND_DRIVER", BZ_EVENT_API, false, false, 0, API},
    {"CUPTI_ACTIVITY_KIND_OVERHEAD", BZ_EVENT_OVERHEAD, false, false, 0, OVERHEAD},
    {"PROFILER_OVERHEAD", BZ_EVENT_OVERHEAD, false, true, 0, OVERHEAD},
    {"CUDNN_EVENTS", BZ_EVENT_CALL, false, true, BZ_LIBRARY_CUDNN, LIBRARY},
    {"CUBLAS_EVENTS", BZ_EVENT_CALL, false, true, BZ_LIBRARY_CUBLAS, LIBRARY},
    {"NVTX_EVENTS", BZ_EVENT_RANGE, false, true, 0, NVTX},
    {"MPI_P2P_EVENTS", BZ_EVENT_RANGE, false, false, 0, MPI},
    {"MPI_COLLECTIVES_EVENTS", BZ_EVENT_RANGE, false, false, 0, MPI},
    {"MPI_START_WAIT_EVENTS", BZ_EVENT_RANGE, false, false, 0, MPI},
    {"MPI_OTHER_EVENTS", BZ_EVENT_RANGE, false, false, 0, MPI},
    {"BENANZA_CALLS", BZ_EVENT_CALL, false, true, BZ_LIBRARY_OTHER, CALLS},
    {"BENANZA_OPS", BZ_EVENT_OP, false, true, 0, OPS},
};
const int BZ_N_TABLES = sizeof BZ_TABLES / sizeof *BZ_TABLES;
