/* Tables by their definitions: of random recordings, each cell is computed once more from what was recorded, moment by moment where it is time. */
#include "expected_cells.h"
#include "random_recording.h"
#include "tables/tables.h"

#include <unistd.h>

/* Of these products the first is limited by memory: 2·M·N·K operations, and the numbers of the matrices. */
static const double FLOPS[] = {2 * 8 * 16 * 4, 2147483648.}, READS[] = {4 * (8 * 16 + 16 * 4), 4 * 2 * 1048576.},
                    WRITES[] = {4 * 8 * 4, 4 * 1048576.};

static const char *join(const char *a, const char *b)
{
    static char text[4][256];
    static int next;
    next = (next + 1) % 4;
    snprintf(text[next], sizeof *text, "%s|%s", a, b);
    return text[next];
}

static void check_table(const char *name)
{
    bz_arena arena = {0};
    bz_error err;
    bz_tables *m = bz_tables_new(r.trace, r.from == INT64_MIN ? NULL : "Block:1", NULL, &arena, &err);
    check_cells(bz_tables_fill(m, bz_table_find(name)));
    bz_arena_free(&arena);
}

static void devices(void)
{
    static const char *const TYPES[] = {[1] = "compute",
                                        "communication",
                                        "compute with communication",
                                        "memory",
                                        "compute with memory",
                                        "communication with memory",
                                        "compute with communication with memory"};
    int list[WORKS], n = works_of(-1, list);
    for (int round = 0; round < 3; round++) { /* a table each */
        for (int64_t d = 0; d < 2; d++) {
            int64_t first = END, last = 0, time[8] = {0};
            for (int k = 0; k < n; k++)
                if (STREAM[r.work[list[k]].stream].device == d) {
                    first = r.work[list[k]].at.start < first ? r.work[list[k]].at.start : first;
                    last = r.work[list[k]].at.end > last ? r.work[list[k]].at.end : last;
                }
            for (int64_t at = first; at < last; at++) {
                int mask = 0;
                for (int k = 0; k < n; k++) {
                    const work_item *w = &r.work[list[k]];
                    if (STREAM[w->stream].device == d && w->at.start <= at && at < w->at.end)
                        mask |= class_of(w) == 'p' ? 1 : class_of(w) == 'c' ? 2 : 4;
                }
                time[mask]++;
            }
            const char *row = d ? "1" : "0";
            double compute = seconds(time[1] + time[3] + time[5] + time[7]), idle = seconds(time[0]);
            double communication = seconds(time[2] + time[3] + time[6] + time[7]), whole = seconds(last - first);
            double memory = seconds(time[4] + time[5] + time[6] + time[7]);
            if (last <= first)
                continue;
            for (int mask = 1; round == 2 && mask < 8; mask++)
                if (time[mask])
                    expect(TYPES[mask], "time", seconds(time[mask]));
            if (round == 2)
                continue;
            expect(row, "span", whole);
            expect(row, "idle", idle);
            expect(row, "busy", whole - idle);
            expect(row, "compute", compute);
            expect(row, "other", whole - idle - compute);
            expect(row, "communication", communication);
            expect(row, "memory", memory);
            expect(row, "compute_communication", seconds(time[3] + time[7]));
            expect(row, "compute_memory", seconds(time[5] + time[7]));
            expect(row, "communication_memory", seconds(time[6] + time[7]));
            expect(row, "communication_hidden", communication > 0 ? seconds(time[3] + time[7]) / communication : NAN);
            expect(row, "memory_hidden", memory > 0 ? seconds(time[5] + time[7]) / memory : NAN);
            expect(row, "idle_share", idle / whole);
            expect(row, "compute_share", compute / whole);
            expect(row, "other_share", (whole - idle - compute) / whole);
        }
        if (round == 2)
            expect_share("share", "time");
        check_table(round == 0 ? "temporal" : round == 1 ? "overlap" : "types");
    }
}

static void idle(void)
{
    double all[STREAMS] = {0};
    for (int s = 0; s < STREAMS; s++) {
        int list[WORKS], n = works_of(s, list);
        int64_t end = -1;
        for (int k = 0; k < n; k++) {
            const work_item *w = &r.work[list[k]];
            if (end >= 0 && w->at.start >= end) {
                bool waited = w->launch >= 0 && r.launch[w->launch].start > end;
                const char *why = waited ? "host wait" : (w->at.start - end) * TICK < 30000 ? "kernel wait" : "other";
                sample_add(join(STREAM[s].row, why), (double)(w->at.start - end));
                all[s] += seconds(w->at.start - end);
            }
            end = w->at.end > end ? w->at.end : end;
        }
    }
    expect_figures("time", TICK / 1e9);
    for (int i = 0, n = n_cells; i < n; i++)
        for (int s = 0; s < STREAMS && !strcmp(cells[i].column, "time"); s++)
            if (!strncmp(cells[i].row, STREAM[s].row, strlen(STREAM[s].row)))
                expect(cells[i].row, "share", all[s] > 0 ? cells[i].value / all[s] : 0);
    check_table("idle");
}

static void names(void)
{
    for (int i = 0; i < r.works; i++)
        for (size_t k = 0; k < 4 && r.work[i].kind == BZ_EVENT_KERNEL && within(asked(&r.work[i])); k++)
            if (!strcmp(KERNELS[k].name, r.work[i].at.name))
                sample_add(join(KERNELS[k].name, KERNELS[k].group), (double)(r.work[i].at.end - r.work[i].at.start));
    expect_figures("sum", TICK / 1e9);
    expect_share("share", "sum");
    check_table("kernels");

    for (int i = 0; i < r.launches; i++)
        if (within(r.launch[i].start))
            sample_add(r.launch[i].name, (double)(r.launch[i].end - r.launch[i].start));
    expect_figures("sum", TICK / 1e9);
    expect_share("share", "sum");
    check_table("api");

    for (int i = 0; i < r.launches; i++)
        if (r.launch[i].call && i % 5 && within(r.launch[i].start))
            sample_add(join(r.launch[i].call, ""), (double)(r.launch[i].end - r.launch[i].start));
    expect_figures("sum", TICK / 1e9);
    expect_share("share", "sum");
    check_table("calls");

    for (int bytes = 0; bytes < 2; bytes++) {
        for (int i = 0; i < r.works; i++) {
            const work_item *w = &r.work[i];
            if (w->kind != BZ_EVENT_KERNEL && within(asked(w)) && (!bytes || w->bytes))
                sample_add(direction_of(w), bytes ? (double)w->bytes : (double)(w->at.end - w->at.start));
        }
        expect_figures("sum", bytes ? 1 : TICK / 1e9);
        expect_share("share", "sum");
        check_table(bytes ? "sizes" : "copies");
    }
}

static void launches(void)
{
    for (int i = 0; i < r.works; i++) {
        const work_item *w = &r.work[i];
        if (w->launch < 0 || !within(asked(w)))
            continue;
        const span *l = &r.launch[w->launch];
        int64_t delay = w->at.start > l->end ? w->at.start - l->end : 0, call = l->end - l->start;
        sample_add(l->name, (double)delay);
        expect(l->name, "call_time", seconds(call));
        expect(l->name, "work_time", seconds(w->at.end - w->at.start));
        expect(l->name, "brief", call * TICK <= 50000 && w->at.end - w->at.start < call);
        expect(l->name, "slow", call * TICK > 50000);
        expect(l->name, "late", delay * TICK > 100000);
    }
    expect_figures("sum", TICK / 1e9);
    expect_same("delay", "mean");
    expect_same("delay_median", "median");
    expect_same("delay_three_quarters", "three_quarters");
    expect_same("delay_max", "max");
    check_table("launches");
}

static double rate_of(const work_item *w)
{
    return (double)w->bytes / seconds(w->at.end - w->at.start);
}

/* The rate of all that runs, behind each start and end; of those at one moment ends come first, and the greater rate of ends, the smaller of starts. */
static void bandwidth(void)
{
    int list[WORKS], n = works_of(-1, list);
    for (int a = 0; a < 2 * n; a++) {
        const work_item *w = &r.work[list[a / 2]];
        int64_t at = a % 2 ? w->at.end : w->at.start;
        double mine = a % 2 ? -rate_of(w) : rate_of(w), all = 0;
        if (!w->bytes)
            continue;
        for (int b = 0; b < 2 * n; b++) {
            const work_item *v = &r.work[list[b / 2]];
            int64_t then = b % 2 ? v->at.end : v->at.start;
            double other = b % 2 ? -rate_of(v) : rate_of(v);
            bool before = then < at || (then == at && (other < mine || (other == mine && b <= a)));
            all += v->bytes && !strcmp(direction_of(v), direction_of(w)) && before ? other : 0;
        }
        expect(direction_of(w), "copies", a % 2);
        if (all > 1e-3)
            sample_add(direction_of(w), all);
    }
    expect_figures("sum", 1);
    check_table("bandwidth");
}

/* As many equal parts as tables have, from the first moment to the last. */
enum { PARTS = 100 };

static double common(double from, double to, double low, double high)
{
    return fmax(0, fmin(to, high) - fmax(from, low));
}

static void bandwidth_series(void)
{
    int list[WORKS], n = works_of(-1, list);
    int64_t first = END, last = 0;
    for (int k = 0; k < n; k++) {
        first = r.work[list[k]].at.start < first ? r.work[list[k]].at.start : first;
        last = r.work[list[k]].at.end > last ? r.work[list[k]].at.end : last;
    }
    double width = (double)(last - first) / PARTS;
    static const char *const DIRECTIONS[] = {"host to device", "device to host", "fill"};
    for (int d = 0; d < 3; d++)
        for (int p = 0; p < PARTS; p++) {
            double from = (double)first + p * width, bytes = 0;
            bool any = false;
            for (int k = 0; k < n; k++) {
                const work_item *w = &r.work[list[k]];
                if (!w->bytes || strcmp(direction_of(w), DIRECTIONS[d]) != 0)
                    continue;
                any = true;
                bytes += rate_of(w) * seconds(1) * common((double)w->at.start, (double)w->at.end, from, from + width);
            }
            if (!any)
                continue;
            const char *row = next_row(DIRECTIONS[d]);
            expect(row, "from", seconds(1) * p * width);
            expect(row, "bytes", bytes);
            expect(row, "rate", bytes / (seconds(1) * width));
        }
    check_table("bandwidth-series");
}

static bool is_queued(const work_item *w)
{
    return w->launch >= 0 && strcmp(r.launch[w->launch].name, "cudaGraphLaunch") != 0;
}

/* Launched and not begun, at each change: of those at one moment launches come first. */
static void queues(void)
{
    int64_t first = END, last = 0;
    int n_of[STREAMS], list[STREAMS][WORKS];
    for (int s = 0; s < STREAMS; s++) {
        int64_t own_first = END, own_last = 0;
        double waited = 0;
        n_of[s] = works_of(s, list[s]);
        for (int k = 0; k < n_of[s]; k++) {
            const work_item *w = &r.work[list[s][k]];
            if (!is_queued(w))
                continue;
            waited += (double)(w->at.start - asked(w));
            own_first = asked(w) < own_first ? asked(w) : own_first;
            own_last = w->at.start > own_last ? w->at.start : own_last;
            for (int start = 0; start < 2; start++) {
                int64_t at = start ? w->at.start : asked(w);
                int length = 0;
                for (int j = 0; j < n_of[s]; j++) {
                    const work_item *v = &r.work[list[s][j]];
                    bool launched = asked(v) < at || (asked(v) == at && (start || j <= k));
                    bool begun = v->at.start < at || (start && v->at.start == at && j <= k);
                    length += is_queued(v) ? launched - begun : 0;
                }
                sample_add(STREAM[s].row, length);
            }
        }
        if (own_last)
            expect(STREAM[s].row, "over_time", own_last > own_first ? waited / (double)(own_last - own_first) : NAN);
        first = own_first < first ? own_first : first;
        last = own_last > last ? own_last : last;
    }
    expect_figures("sum", 1);
    check_table("queue");

    double width = (double)(last - first) / PARTS;
    for (int s = 0; s < STREAMS; s++)
        for (int p = 0; p < PARTS; p++) {
            double from = (double)first + p * width, waited = 0, most = 0;
            bool queued = false;
            for (int64_t at = (int64_t)from; at < last && (double)at < from + width; at++) {
                bool launched = false;
                double length = 0, at_once = 0, part = common((double)at, (double)at + 1, from, from + width);
                for (int k = 0; k < n_of[s]; k++) {
                    const work_item *w = &r.work[list[s][k]];
                    queued |= is_queued(w);
                    length += is_queued(w) && asked(w) <= at && at < w->at.start;
                    at_once += is_queued(w) && asked(w) <= at && at <= w->at.start;
                    launched |= is_queued(w) && asked(w) == at;
                }
                waited += length * part; /* within a tick the length is the same; of one moment launches come first */
                most = part > 1e-9 ? fmax(most, length) : most;
                double at_ns = (double)((at - first) * TICK), part_ns = (double)((last - first) * TICK) / PARTS;
                if (launched && (int)(at_ns / part_ns) == p &&
                    part_ns * p < at_ns) /* between two parts it is in none */
                    most = fmax(most, at_once);
            }
            if (!queued)
                continue;
            const char *row = next_row(STREAM[s].row);
            expect(row, "from", seconds(1) * p * width);
            expect(row, "mean", waited / width);
            expect(row, "max", most);
        }
    check_table("queue-series");
}

static void operators(void)
{
    for (int i = 0; i < r.ops; i++) {
        const span *op = &r.op[i];
        int64_t exclusive = op->end - op->start, first = END, last = 0;
        if (!within(op->start))
            continue;
        sample_add(op->name, (double)exclusive);
        for (int k = 0; k < r.ops; k++)
            exclusive -= r.op[k].parent == i && within(r.op[k].start) ? r.op[k].end - r.op[k].start : 0;
        expect(op->name, "exclusive", seconds(exclusive));
        expect(op->name, "device", 0);
        expect(op->name, "device_own", 0);
        for (int k = 0; k < r.works; k++) {
            const work_item *w = &r.work[k];
            if (!within(asked(w)) || !lies_in(op_of(w), i))
                continue;
            expect(op->name, "device", seconds(w->at.end - w->at.start));
            expect(op->name, "device_own", op_of(w) == i ? seconds(w->at.end - w->at.start) : 0);
            first = w->at.start < first ? w->at.start : first;
            last = w->at.end > last ? w->at.end : last;
        }
        expect(op->name, "projected", last ? seconds(last - first) : 0);
    }
    expect_figures("sum", TICK / 1e9);
    expect_share("share", "sum");
    check_table("operators");
}

/* Steps are the only ranges: none lies in another one. */
static void ranges(void)
{
    for (int tree = 0; tree < 2; tree++) {
        for (int i = 0; i < STEPS; i++) {
            const span *step = &r.step[i];
            int64_t device = 0, first = END, last = 0;
            if (!within(step->start))
                continue;
            for (int k = 0; k < r.works; k++) {
                const work_item *w = &r.work[k];
                if (w->launch < 0 || !within(asked(w)) || asked(w) < step->start || asked(w) >= step->end)
                    continue;
                device += w->at.end - w->at.start;
                first = w->at.start < first ? w->at.start : first;
                last = w->at.end > last ? w->at.end : last;
            }
            sample_add("step", (double)(step->end - step->start));
            expect("step", "depth", 0);
            expect("step", "exclusive", seconds(step->end - step->start));
            expect("step", "device", seconds(device));
            expect("step", "device_own", seconds(device));
            expect("step", "projected", last ? seconds(last - first) : 0);
        }
        expect_figures("sum", TICK / 1e9);
        expect_share("share", "sum");
        check_table(tree ? "range-tree" : "ranges");
    }
}

static void sequences(void)
{
    for (int i = 0; i < r.ops; i++) {
        char text[256] = "";
        int list[WORKS], n = works_of(-1, list), length = 0;
        int64_t time = 0;
        bool again = false;
        for (int p = r.op[i].parent; p >= 0; p = r.op[p].parent)
            again = again || !strcmp(r.op[p].name, r.op[i].name);
        for (int k = 0; k < n; k++)
            if (lies_in(op_of(&r.work[list[k]]), i)) {
                size_t end = strlen(text);
                snprintf(text + end, sizeof text - end, "%s%s", end ? " | " : "", r.work[list[k]].at.name);
                time += r.work[list[k]].at.end - r.work[list[k]].at.start;
                length++;
            }
        if (again || length < 3)
            continue;
        const char *row = join(r.op[i].name, text);
        expect(row, "count", 1);
        expect(row, "device", seconds(time));
        expect(row, "time", seconds(r.op[i].end - r.op[i].start));
        if (!find_cell(row, "length"))
            expect(row, "length", length);
    }
    check_table("sequences");
}

static void followers(void)
{
    for (int s = 0; s < STREAMS; s++) {
        int list[WORKS], n = works_of(s, list);
        const span *b = NULL;
        for (int k = 0; k < n; k++) {
            const span *w = &r.work[list[k]].at;
            if (r.work[list[k]].kind != BZ_EVENT_KERNEL)
                continue;
            if (b) {
                sample_add(join(b->name, w->name), w->start > b->end ? (double)(w->start - b->end) : 0);
                expect(join(b->name, w->name), "time", seconds(w->end - w->start + b->end - b->start));
            }
            b = w;
        }
    }
    expect_figures("between", TICK / 1e9);
    expect_same("between_median", "median");
    check_table("followers");
}

static bool in_scope(int op)
{
    return within(r.op[op].start) &&
           (r.from != INT64_MIN || in_iteration(r.op[op].start, bz_typical_iteration(r.trace)));
}

/* The outermost operator around one of those that are looked at; -1: none. */
static int layer_of(int op)
{
    int layer = -1;
    for (; op >= 0; op = r.op[op].parent)
        layer = in_scope(op) ? op : layer;
    return layer;
}

/* The outermost product around an operator. */
static int product_of(int op)
{
    int product = -1, layer = layer_of(op);
    for (; layer >= 0 && op >= 0 && lies_in(op, layer); op = r.op[op].parent)
        product = strcmp(r.op[op].name, "aten::mm") ? product : op;
    return product;
}

typedef struct work_sums {
    int count;
    int64_t time, worked; /* ticks; of those whose operations are known */
    double occupied, flops, reads, writes;
} work_sums;

static void add_product(work_sums *to, int op)
{
    to->flops += FLOPS[op % 2];
    to->reads += READS[op % 2];
    to->writes += WRITES[op % 2];
}

/* The longest kernel of a product does its work. */
static bool does_product(int work)
{
    int product = product_of(op_of(&r.work[work])), list[WORKS], n = 0, longest = -1;
    for (int i = 0; i < r.works; i++)
        if (r.work[i].kind == BZ_EVENT_KERNEL && product >= 0 && product_of(op_of(&r.work[i])) == product)
            list[n++] = i;
    qsort(list, (size_t)n, sizeof *list, by_start);
    for (int k = 0; k < n; k++)
        if (longest < 0 ||
            r.work[list[k]].at.end - r.work[list[k]].at.start > r.work[longest].at.end - r.work[longest].at.start)
            longest = list[k];
    return longest == work;
}

static void add_kernel(work_sums *to, int i, bool with_work)
{
    const work_item *w = &r.work[i];
    to->count++;
    to->time += w->at.end - w->at.start;
    to->occupied += w->occupancy < 0 ? NAN : w->occupancy / 100. * (double)(w->at.end - w->at.start);
    if (with_work && does_product(i)) {
        to->worked += w->at.end - w->at.start;
        add_product(to, product_of(op_of(w)));
    }
}

/* By a V100: 15.7 T operations and 900 GB a second. */
static const char *limit_of(const work_sums *w)
{
    return !(w->flops > 0) ? "" : w->flops / (w->reads + w->writes) < 15.7e12 / 900e9 ? "memory" : "arithmetic";
}

static void expect_work(const char *row, const work_sums *w, int64_t time)
{
    bool told = w->flops > 0;
    expect(row, "flops", told ? w->flops : NAN);
    expect(row, "reads", told ? w->reads : NAN);
    expect(row, "writes", told ? w->writes : NAN);
    expect(row, "intensity", told ? w->flops / (w->reads + w->writes) : NAN);
    expect(row, "rate", told && time ? w->flops / seconds(time) : NAN);
    expect(row, "occupancy", w->occupied / (double)w->time);
}

/* The layers of the typical iteration, or of the range, in their order. */
static int find_layers(int *layer)
{
    int n = 0;
    for (int i = 0; i < r.ops; i++)
        if (layer_of(i) == i)
            layer[n++] = i;
    return n;
}

static double memory_of(int layer)
{
    double sum = 0;
    for (int i = 0; i < r.ops; i++)
        sum += lies_in(i, layer) ? (double)r.allocated[i] : 0;
    return sum;
}

static void layers(void)
{
    static const char *const STAGES[] = {"beginning", "middle", "end"};
    int layer[OPS], n = find_layers(layer);
    for (int k = 0; k < n; k++) {
        const span *op = &r.op[layer[k]];
        const char *shape = strcmp(op->name, "aten::mm") ? ""
                            : layer[k] % 2               ? "[[1024,1024],[1024,1024]]"
                                                         : "[[8,16],[16,4]]";
        const char *row = next_row(join(join(op->name, shape), STAGES[3 * k / n]));
        expect(row, "index", k);
        expect(row, "time", seconds(op->end - op->start));
        expect(row, "memory", memory_of(layer[k]));
    }
    check_table("layers");

    for (int k = 0; k < n; k++) {
        const span *op = &r.op[layer[k]];
        expect(op->name, "count", 1);
        expect(op->name, "time", seconds(op->end - op->start));
        expect(op->name, "memory", memory_of(layer[k]));
    }
    expect_share("count_share", "count");
    expect_share("share", "time");
    expect_share("memory_share", "memory");
    check_table("layer-types");

    for (int k = 0; k < n && n >= 3; k++) {
        const span *op = &r.op[layer[k]];
        const char *row = STAGES[3 * k / n];
        expect(row, "count", 1);
        expect(row, "time", seconds(op->end - op->start));
        expect(row, "memory", memory_of(layer[k]));
        expect(row, "kernel_time", 0);
        expect(row, "flops", 0);
        for (int i = 0; i < r.works; i++)
            if (r.work[i].kind == BZ_EVENT_KERNEL && layer_of(op_of(&r.work[i])) == layer[k])
                expect(row, "kernel_time", seconds(r.work[i].at.end - r.work[i].at.start));
        for (int i = 0; i < r.ops; i++)
            if (layer_of(i) == layer[k] && product_of(i) == i)
                expect(row, "flops", FLOPS[i % 2]);
    }
    for (int i = 0; i < n_cells; i++)
        if (!strcmp(cells[i].column, "flops") && !(cells[i].value > 0))
            cells[i].value = NAN;
    check_table("stages");
}

static void layer_kernels(void)
{
    int layer[OPS], n = find_layers(layer);
    for (int k = 0; k < n; k++) {
        work_sums sum = {0};
        int64_t time = r.op[layer[k]].end - r.op[layer[k]].start;
        for (int i = 0; i < r.works; i++)
            if (r.work[i].kind == BZ_EVENT_KERNEL && layer_of(op_of(&r.work[i])) == layer[k])
                add_kernel(&sum, i, false);
        for (int i = 0; i < r.ops; i++)
            if (layer_of(i) == layer[k] && product_of(i) == i)
                add_product(&sum, i);
        if (!sum.count)
            continue;
        const char *row = next_row(join(r.op[layer[k]].name, limit_of(&sum)));
        expect(row, "index", k);
        expect(row, "time", seconds(time));
        expect(row, "count", sum.count);
        expect(row, "kernel_time", seconds(sum.time));
        expect(row, "other", sum.time <= time ? seconds(time - sum.time) : NAN);
        expect(row, "share", sum.time <= time ? (double)sum.time / (double)time : NAN);
        expect_work(row, &sum, sum.time);
    }
    check_table("layer-kernels");
}

/* Kernels of layers by themselves, and by name. */
static void kernels(void)
{
    int list[WORKS], layer[OPS], n = 0, n_layers = find_layers(layer);
    for (int i = 0; i < r.works; i++)
        if (r.work[i].kind == BZ_EVENT_KERNEL && layer_of(op_of(&r.work[i])) >= 0)
            list[n++] = i;
    qsort(list, (size_t)n, sizeof *list, by_start);
    for (int k = 0; k < n; k++) {
        const work_item *w = &r.work[list[k]];
        int of = 0;
        while (of < n_layers && layer[of] != layer_of(op_of(w)))
            of++;
        work_sums sum = {0};
        add_kernel(&sum, list[k], true);
        const char *row = next_row(join(join(w->at.name, r.op[layer[of]].name), limit_of(&sum)));
        expect(row, "index", of);
        expect(row, "time", seconds(sum.time));
        expect_work(row, &sum, sum.time);
    }
    check_table("kernel-list");

    for (size_t name = 0; name < 4; name++) {
        work_sums sum = {0};
        for (int k = 0; k < n; k++)
            if (!strcmp(r.work[list[k]].at.name, KERNELS[name].name))
                add_kernel(&sum, list[k], true);
        if (!sum.count)
            continue;
        const char *row = join(KERNELS[name].name, limit_of(&sum));
        const bz_iteration *typical = &r.trace->iteration[bz_typical_iteration(r.trace)];
        expect(row, "count", sum.count);
        expect(row, "time", seconds(sum.time));
        expect(row, "part",
               r.from == INT64_MIN ? seconds(sum.time) * 1e9 / (double)(typical->end - typical->start) : NAN);
        expect_work(row, &sum, sum.worked);
    }
    check_table("kernel-names");
}

/* Iterations: their latency without the fifth that is fastest and the fifth that is slowest, and the kernels of the typical one. */
static void model(void)
{
    double latency[STEPS], sum = 0;
    uint32_t typical = bz_typical_iteration(r.trace);
    int n = 0;
    work_sums of = {0};
    for (uint32_t i = 0; i < r.trace->n_iterations; i++)
        if (bz_iteration_is_steady(r.trace, i))
            latency[n++] = (double)bz_iteration_latency(r.trace, i) / 1e9;
    for (int i = 0; i < n; i++) {
        int rank = 0;
        for (int k = 0; k < n; k++)
            rank += latency[k] < latency[i] || (latency[k] == latency[i] && k < i);
        sum += rank >= n / 5 && rank < n - n / 5 ? latency[i] : 0;
    }
    for (int i = 0; i < r.works; i++)
        if (r.work[i].kind == BZ_EVENT_KERNEL && in_iteration(asked(&r.work[i]), typical))
            add_kernel(&of, i, true);
    const char *row = limit_of(&of);
    double mean = sum / (n - 2 * (n / 5)), own = (double)bz_iteration_latency(r.trace, typical) / 1e9;
    expect(row, "count", n);
    expect(row, "mean", mean);
    expect(row, "per_second", 1 / mean);
    expect(row, "latency", own);
    expect(row, "kernel_time", seconds(of.time));
    expect(row, "kernel_part", seconds(of.time) / own);
    expect_work(row, &of, of.worked);
    check_table("model");
}

/* Each operator of two recordings, by steady iteration. */
static void difference(void)
{
    static const char *const SIDES[][3] = {{"first_count", "first_time", "first_device"},
                                           {"second_count", "second_time", "second_device"}};
    bz_trace *first = r.trace;
    for (int side = 0; side < 2; side++) {
        double each = bz_steady_iterations(r.trace);
        for (int i = 0; i < r.ops; i++)
            for (uint32_t k = 0; k < r.trace->n_iterations; k++)
                if (bz_iteration_is_steady(r.trace, k) && in_iteration(r.op[i].start, k)) {
                    expect(r.op[i].name, SIDES[side][0], 1 / each);
                    expect(r.op[i].name, SIDES[side][1], seconds(r.op[i].end - r.op[i].start) / each);
                }
        for (int i = 0; i < r.works; i++)
            for (uint32_t k = 0; k < r.trace->n_iterations && op_of(&r.work[i]) >= 0; k++)
                if (bz_iteration_is_steady(r.trace, k) && in_iteration(asked(&r.work[i]), k))
                    expect(r.op[op_of(&r.work[i])].name, SIDES[side][2],
                           seconds(r.work[i].at.end - r.work[i].at.start) / each);
        if (!side)
            make_recording();
    }
    for (size_t k = 0; k < 4; k++) {
        double value[2][3];
        bool any = false;
        for (int i = 0; i < 6; i++) {
            any |= find_cell(OP_NAMES[k], SIDES[i / 3][i % 3]) != NULL;
            expect(OP_NAMES[k], SIDES[i / 3][i % 3], 0);
            value[i / 3][i % 3] = *find_cell(OP_NAMES[k], SIDES[i / 3][i % 3]);
        }
        assert_true(any);
        expect(OP_NAMES[k], "change", value[1][1] - value[0][1]);
        expect(OP_NAMES[k], "device_change", value[1][2] - value[0][2]);
        expect(OP_NAMES[k], "weight", fabs(value[1][1] - value[0][1]) + fabs(value[1][2] - value[0][2]));
    }
    bz_arena arena = {0};
    bz_error err;
    check_cells(bz_tables_fill(bz_tables_new(first, NULL, r.trace, &arena, &err), bz_table_find("difference")));
    bz_arena_free(&arena);
    bz_trace_free(first);
}

/* How many events of that kind and name the tables see. */
static int count_events(const char *kind, const char *name)
{
    int n = 0;
    for (int i = 0; i < r.works; i++)
        n += !strcmp(r.work[i].at.name, name) && within(asked(&r.work[i])) &&
             !strcmp(kind, bz_event_kind_name(r.work[i].kind));
    for (int i = 0; i < r.ops; i++)
        n += !strcmp(kind, bz_event_kind_name(BZ_EVENT_OP)) && !strcmp(r.op[i].name, name) && within(r.op[i].start);
    for (int i = 0; i < r.launches; i++)
        n += !strcmp(kind, bz_event_kind_name(BZ_EVENT_API)) && !strcmp(r.launch[i].name, name) &&
             within(r.launch[i].start);
    return n;
}

/* Its steps follow each other, and the other two tables sum them up. */
static void critical_path(void)
{
    bz_arena arena = {0};
    bz_error err;
    bz_tables *m = bz_tables_new(r.trace, r.from == INT64_MIN ? NULL : "Block:1", NULL, &arena, &err);
    const bz_sheet *steps = bz_tables_fill(m, bz_table_find("critical-steps")),
                   *events = bz_tables_fill(m, bz_table_find("critical-events"));
    double behind = 0, all = 0, named = 0;
    for (int i = 0; i < steps->n; i++) {
        const bz_sheet_cell *c = &steps->cell[i * steps->n_columns]; /* from, time, bound, name, kind */
        assert_true(c[1].number > 0 && c[0].number >= behind - 1e-12);
        behind = c[0].number + c[1].number;
        all += c[1].number;
        expect(c[2].text, "time", c[1].number);
    }
    const bz_sheet *bounds = bz_tables_fill(m, bz_table_find("critical"));
    for (int i = 0; i < bounds->n; i++) { /* bound, steps, also those of no time */
        const bz_sheet_cell *c = &bounds->cell[i * bounds->n_columns];
        int n = 0;
        for (int k = 0; k < steps->n; k++)
            n += !strcmp(steps->cell[k * steps->n_columns + 2].text, c[0].text);
        assert_true(c[1].number >= n);
        expect(c[0].text, "count", c[1].number);
    }
    expect_share("share", "time");
    for (int i = 0; i < events->n; i++) {
        const bz_sheet_cell *c =
            &events->cell[i * events->n_columns]; /* name, kind, on the path, all, time, share, delay */
        double time = 0, delay = 0;
        for (int k = 0; k < steps->n; k++) {
            const bz_sheet_cell *step = &steps->cell[k * steps->n_columns];
            bool is = !strcmp(step[3].text, c[0].text) && !strcmp(step[4].text, c[1].text);
            *(strstr(step[2].text, "delay") ? &delay : &time) += is ? step[1].number : 0;
        }
        assert_true(fabs(c[4].number - time) < 1e-9 && fabs(c[6].number - delay) < 1e-9);
        assert_true(fabs(c[5].number * all - time - delay) < 1e-9 && c[2].number <= c[3].number);
        if (strcmp(c[1].text, bz_event_kind_name(BZ_EVENT_RANGE)) != 0)
            assert_int_equal(c[3].number, count_events(c[1].text, c[0].text));
        named += time + delay;
    }
    assert_true(steps->n > 0 && fabs(named - all) < 1e-9);
    check_cells(bounds);
    bz_arena_free(&arena);
}

static void each_table(void **state)
{
    (void)state;
    static void (*const TABLES[])(void) = {devices,          idle,   names,         launches, bandwidth,
                                           bandwidth_series, queues, operators,     ranges,   sequences,
                                           followers,        layers, layer_kernels, kernels,  critical_path};
    char path[] = "/tmp/benanza-test-XXXXXX";
    close(mkstemp(path));
    for (int round = 0; round < 12; round++) {
        make_recording();
        if (round % 2)
            read_as_pytorch(path);
        for (size_t k = 0; k < sizeof TABLES / sizeof *TABLES; k++)
            TABLES[k]();
        model();
        int blocks = 0;
        for (int i = 0; i < r.ops; i++)
            if (!strcmp(r.op[i].name, "Block") && blocks++ == 1) {
                r.from = r.op[i].start;
                r.to = r.op[i].end;
            }
        for (size_t k = 0; blocks > 1 && k < sizeof TABLES / sizeof *TABLES; k++)
            TABLES[k]();
        difference();
        bz_trace_free(r.trace);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
