/* Ways to bring bytes from one place to another. Those over arrays are counted as STREAM counts: each array that is read or
 * written once. Every way has a result that can be checked. */
#include "runtime/kind.h"

enum { LINE = 64, MOST_HOPS = 1 << 15 };

int64_t bz_problem_hops(const bz_problem *p)
{
    int64_t lines = p->transfer.x[0] / LINE;
    if (p->transfer.way > BZ_TRANSFER_CHASE_HUGE && p->transfer.way != BZ_TRANSFER_FAR_CHASE)
        return p->transfer.x[0]; /* kernels of a graph; else one */
    return lines < MOST_HOPS ? lines : MOST_HOPS;
}

enum { STRIDE = 8 }; /* elements of 8 bytes: one in each cache line */

static const char *const WAYS[] = {
    [BZ_TRANSFER_READ] = "read",           /* y = the sum of x, the only element */
    [BZ_TRANSFER_WRITE] = "write",         /* y = 1 */
    [BZ_TRANSFER_COPY] = "copy",           /* y = x */
    [BZ_TRANSFER_SCALE] = "scale",         /* y = 3 x */
    [BZ_TRANSFER_ADD] = "add",             /* y = x + b */
    [BZ_TRANSFER_TRIAD] = "triad",         /* y = x + 3 b */
    [BZ_TRANSFER_STRIDED] = "strided",     /* y[i] = x[8 i] */
    [BZ_TRANSFER_SCATTERED] = "scattered", /* y[i] = x[i · 2654435761 mod its length], which is a power of two */
    [BZ_TRANSFER_CHASE] =
        "chase", /* loads that wait for each other, from line to line by chance, on ordinary pages; y = 1 */
    [BZ_TRANSFER_CHASE_HUGE] = "chase_huge", /* and on huge ones */
    [BZ_TRANSFER_TOUCH] = "touch",           /* memory is asked for, each page of it written, and given back; y = 1 */
    [BZ_TRANSFER_TOUCH_HUGE] = "touch_huge", /* and on huge pages */
    [BZ_TRANSFER_SHARED] = "shared", /* another thread, which turns until it is told, copies x to y and tells back */
    [BZ_TRANSFER_WAKE] = "wake",     /* the same, and both sleep while they wait */
    [BZ_TRANSFER_PIPE] = "pipe",     /* x goes through a pipe to another thread, a byte comes back; so the next two */
    [BZ_TRANSFER_SOCKET] = "socket", /* a pair of local sockets */
    [BZ_TRANSFER_TCP] = "tcp",       /* TCP to this machine itself */
    [BZ_TRANSFER_FILE] = "file",     /* a file that the kernel has in its cache is read into y */
    [BZ_TRANSFER_FILE_COLD] = "file_cold", /* one that it has not */
    [BZ_TRANSFER_MAPPED] = "mapped",       /* a file in the cache is mapped and copied to y */
    /* A text like a recording's is made smaller, and brought back from that; y = 1. */
    [BZ_TRANSFER_ZLIB] = "zlib",
    [BZ_TRANSFER_UNZLIB] = "unzlib",
    [BZ_TRANSFER_ZSTD] = "zstd",
    [BZ_TRANSFER_UNZSTD] = "unzstd",
    [BZ_TRANSFER_LZ4] = "lz4",
    [BZ_TRANSFER_UNLZ4] = "unlz4",
    [BZ_TRANSFER_FAR] = "far",             /* memory of another NUMA node is read; y = 1 */
    [BZ_TRANSFER_FAR_CHASE] = "far_chase", /* loads that wait for each other, from there */
    [BZ_TRANSFER_TO_DEVICE] = "to_device", /* x in ordinary memory of the host, y in the device's; and back */
    [BZ_TRANSFER_TO_DEVICE_PINNED] = "to_device_pinned", /* x in memory of the host that no page leaves; and back */
    [BZ_TRANSFER_TO_HOST] = "to_host",
    [BZ_TRANSFER_TO_HOST_PINNED] = "to_host_pinned",
    [BZ_TRANSFER_BOTH_WAYS] = "both_ways",     /* x to the device and as much back at the same time */
    [BZ_TRANSFER_STREAMS] = "streams",         /* x in four parts, to the device, each on a stream of its own */
    [BZ_TRANSFER_OVER_LINK] = "over_link",     /* a kernel reads x in the host's memory */
    [BZ_TRANSFER_WITHIN] = "within",           /* x and y in the device's memory */
    [BZ_TRANSFER_SET] = "set",                 /* y = 1 */
    [BZ_TRANSFER_PEER] = "peer",               /* x in the first device's memory, y in the second's */
    [BZ_TRANSFER_PEER_STAGED] = "peer_staged", /* where the devices may not reach each other */
    /* A kernel writes a byte of each page of unified memory, which the host wrote last: as it comes to them; brought before; left
     * where they are. y = 1. */
    [BZ_TRANSFER_MANAGED_TOUCH] = "managed_touch",
    [BZ_TRANSFER_MANAGED_PREFETCH] = "managed_prefetch",
    [BZ_TRANSFER_MANAGED_ADVISED] = "managed_advised",
    [BZ_TRANSFER_ALLOCATE] = "allocate",         /* the device's memory is asked for and given back; y = 1 */
    [BZ_TRANSFER_PIN] = "pin",                   /* the host's, pinned */
    [BZ_TRANSFER_LAUNCH] = "launch",             /* what a call takes that starts a kernel; it writes y = 1 */
    [BZ_TRANSFER_LAUNCH_WAIT] = "launch_wait",   /* and until that is known to have ended */
    [BZ_TRANSFER_GRAPH] = "graph",               /* a graph of x such kernels, until it is known to have ended */
    [BZ_TRANSFER_GRAPH_LAUNCH] = "graph_launch", /* the call that starts it */
    [BZ_TRANSFER_EVENT] = "event",               /* the call that marks a place in a stream */
    [BZ_TRANSFER_SYNCHRONIZE] = "synchronize",   /* waiting for a stream that has nothing to do */
    [BZ_TRANSFER_ALL_REDUCE] = "all_reduce",     /* x on each device; y is the largest of each element, which is x */
    [BZ_TRANSFER_ALL_GATHER] = "all_gather",     /* each device has a part of x, and all of it as y */
    [BZ_TRANSFER_BROADCAST] = "broadcast",       /* the first device's x is each one's y */
    [BZ_TRANSFER_SEND] = "send",                 /* the second device's x is the first one's y */
    NULL};

/* These measure memory that is their own: x is its size, and the result is one byte. */
static bool is_own(const bz_problem *p)
{
    bz_transfer_way w = p->transfer.way;
    return (w >= BZ_TRANSFER_CHASE && w <= BZ_TRANSFER_TOUCH_HUGE) ||
           (w >= BZ_TRANSFER_ZLIB && w <= BZ_TRANSFER_FAR_CHASE) ||
           (w >= BZ_TRANSFER_MANAGED_TOUCH && w <= BZ_TRANSFER_SYNCHRONIZE);
}

static bool has_input(const bz_problem *p)
{
    return p->transfer.way != BZ_TRANSFER_WRITE && p->transfer.way != BZ_TRANSFER_SET && !is_own(p);
}

static void transfer_operands(const bz_problem *p, bz_operand_list *l, int64_t *y)
{
    bz_transfer_way way = p->transfer.way;
    bool one = way == BZ_TRANSFER_READ || is_own(p);
    if (has_input(p))
        bz_operand_add_shape(l, BZ_ROLE_X, p->dtype, p->transfer.x);
    if (way == BZ_TRANSFER_ADD || way == BZ_TRANSFER_TRIAD)
        bz_operand_add_shape(l, BZ_ROLE_B, p->dtype, p->transfer.x);
    y[0] = one ? 1 : p->transfer.x[0] / (way == BZ_TRANSFER_STRIDED ? STRIDE : 1);
}

static int check_transfer(const bz_problem *p, bz_error *err)
{
    int64_t n = p->transfer.x[0];
    bool bytes = p->transfer.way >= BZ_TRANSFER_CHASE;
    if (p->transfer.x[1])
        return bz_problem_refuse(p, "x has one dimension", err);
    if (p->dtype != (bytes ? BZ_U8 : BZ_F64) || p->dtype_y != p->dtype)
        return bz_problem_refuse(p, bytes ? "this way takes bytes: dtype=u8" : "this way takes dtype=f64", err);
    if (p->transfer.way == BZ_TRANSFER_STRIDED && n % STRIDE)
        return bz_problem_refuse(p, "x is a multiple of 8", err);
    if (p->transfer.way == BZ_TRANSFER_SCATTERED && (n & (n - 1)))
        return bz_problem_refuse(p, "x is a power of two", err);
    if (is_own(p) && p->transfer.way <= BZ_TRANSFER_FAR_CHASE && n < 2 * LINE)
        return bz_problem_refuse(p, "x is at least two lines, 128", err);
    return 0;
}

static double transfer_flops(const bz_problem *p, const bz_operand *list, double y)
{
    static const double EACH[BZ_TRANSFERS] = {[BZ_TRANSFER_SCALE] = 1, [BZ_TRANSFER_ADD] = 1, [BZ_TRANSFER_TRIAD] = 2};
    return p->transfer.way == BZ_TRANSFER_READ ? (double)list[0].count : EACH[p->transfer.way] * y;
}

static bz_expected sum_of(const float *x, int64_t n)
{
    bz_expected e = {0};
    for (int64_t i = 0; i < n; i++)
        bz_expected_add(&e, (double)x[i]);
    return e;
}

static bz_expected transfer_at(bz_reference *r)
{
    const bz_problem *p = r->problem;
    const float *x = has_input(p) ? r->value[0] : NULL;
    int64_t n = p->transfer.x[0], i = r->index;
    bz_expected e = {0};
    if (p->transfer.way == BZ_TRANSFER_READ)
        return sum_of(x, n);
    if (p->transfer.way == BZ_TRANSFER_STRIDED)
        i *= STRIDE;
    if (p->transfer.way == BZ_TRANSFER_SCATTERED)
        i = (int64_t)((uint64_t)i * BZ_SCATTER & (uint64_t)(n - 1));
    bz_expected_add(&e, !x ? 1 : (p->transfer.way == BZ_TRANSFER_SCALE ? 3 : 1) * (double)x[i]);
    if (p->transfer.way == BZ_TRANSFER_ADD || p->transfer.way == BZ_TRANSFER_TRIAD)
        bz_expected_add(&e, (p->transfer.way == BZ_TRANSFER_TRIAD ? 3 : 1) * (double)r->value[1][i]);
    return e;
}

static double transfer_cost(const bz_problem *p)
{
    return p->transfer.way == BZ_TRANSFER_READ ? (double)p->transfer.x[0] : 1;
}

/* clang-format off */
const bz_kind bz_kind_transfer = {.name = "transfer", .operands = transfer_operands, .check = check_transfer,
    .flops = transfer_flops, .at = transfer_at, .cost = transfer_cost, .member = {
    BZ_NAMED("way", transfer.way, WAYS, "BZ_TRANSFER_"), BZ_REQUIRED("x", EXTENT, transfer.x)}};
/* clang-format on */
