#!/usr/bin/python3
"""tables.py BENANZA SHARED: `benanza profile tables` against what sqlite3 and Python compute from the same files.

Recordings made here, and, where SHARED is, all recordings there: counts and sums of each table by name, direction and stream;
idle and busy time by the union of intervals; lengths of queues over the time; what convolutions and products of chance shapes compute;
HTA's own tables by its definitions; the critical path that HTA marked in a trace."""
import bisect
import collections
import decimal
import glob
import gzip
import json
import math
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile

benanza, shared = sys.argv[1:3]
work = tempfile.mkdtemp()
failures = checks = 0
LAUNCH = ("cudaLaunchKernel", "cuLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync")
DIRECTIONS = {1: "host to device", 2: "device to host", 3: "host to array", 4: "array to host", 5: "array to array", 6: "array to device",
              7: "device to array", 8: "on the device", 9: "on the host", 10: "device to device"}


def check(what, got, wanted):
    global failures, checks
    checks += 1
    if got != wanted and not (isinstance(got, float) and isinstance(wanted, float) and math.isclose(got, wanted, rel_tol=1e-9)):
        failures += 1
        print(f"{what}: {got!r}, not {wanted!r}")


def tables(path, *more):
    p = subprocess.run([benanza, "profile", "tables", path, "--json", *more], capture_output=True, text=True)
    if p.returncode not in (0, 4):
        check(f"{path} {more}: exit", (p.returncode, p.stderr), 0)
        return {}
    return {t["id"]: t["rows"] for t in json.loads(p.stdout)["tables"]}


def ns(seconds):
    return round(seconds * 1e9)


# ---- what the files hold: device work (kind, start, end, device, context, stream, correlation, name, bytes, direction), calls ----

Work = collections.namedtuple("Work", "kind start end device context stream cause name size direction")
Call = collections.namedtuple("Call", "start end name")


def of_sqlite(path):
    copy = os.path.join(work, "nsys.sqlite")
    with gzip.open(path) as f, open(copy, "wb") as out:
        out.write(f.read())
    db = sqlite3.connect(copy)
    names = {r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    strings = dict(db.execute("SELECT id, value FROM StringIds")) if "StringIds" in names else {}
    calls, list_of, found = {}, [], []
    for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"):
        if table in names:
            for start, end, name, correlation, thread in db.execute(
                    f"SELECT start, end, nameId, correlationId, globalTid FROM {table} ORDER BY start"):
                c = Call(start, end if end is not None and end >= start else start, strings[name])
                list_of.append(c)
                calls.setdefault((thread >> 24, correlation), c)
    for table, kind in (("KERNEL", "kernel"), ("CONCURRENT_KERNEL", "kernel"), ("MEMCPY", "copy"), ("MEMSET", "fill")):
        table = "CUPTI_ACTIVITY_KIND_" + table
        if table not in names:
            continue
        columns = {r[1] for r in db.execute(f"PRAGMA table_info({table})")}
        pid = "globalPid" if "globalPid" in columns else "0"
        name = ("demangledName" if "demangledName" in columns else "name") if kind == "kernel" else "0"
        direction, size = "copyKind" if kind == "copy" else "0", "bytes" if kind != "kernel" else "0"
        for r in db.execute(f"SELECT start, end, deviceId, contextId, streamId, correlationId, {name}, {size}, {direction}, {pid} FROM {table}"):
            found.append(Work(kind, r[0], r[1], r[2], r[3], r[4], calls.get((r[9] >> 24, r[5])), strings.get(r[6], ""), r[7], r[8]))
    return found, list_of


KINDS = {"kernel": "kernel", "Kernel": "kernel", "gpu_memcpy": "copy", "Memcpy": "copy", "gpu_memset": "fill", "Memset": "fill"}


def of_kineto(path):
    with gzip.open(path, "rt") as f:
        events = json.load(f, parse_float=decimal.Decimal)["traceEvents"]
    def time(v):
        return int(decimal.Decimal(v) * 1000)
    calls, list_of, found = {}, [], []
    for e in events:
        if e.get("ph") == "X" and e.get("cat") in ("cuda_runtime", "cuda_driver", "Runtime"):
            c = Call(time(e["ts"]), time(e["ts"]) + time(e["dur"]), e["name"])
            list_of.append(c)
            calls.setdefault(e["args"].get("correlation"), c)
    for e in events:
        kind = KINDS.get(e.get("cat"))
        if e.get("ph") != "X" or not kind:
            continue
        a = e["args"]
        direction = next((k for t, k in (("HtoD", 1), ("DtoH", 2), ("DtoD", 8), ("HtoH", 9), ("PtoP", 10)) if t in e["name"]), 0)
        found.append(Work(kind, time(e["ts"]), time(e["ts"]) + time(e["dur"]), a["device"], a.get("context", 0), a["stream"],
                          calls.get(a.get("correlation")), e["name"], int(a.get("bytes", 0)), direction))
    return found, list_of


# ---- the same figures, in another way ----------------------------------------------------------------------------------

def figures(values):
    return {"count": len(values), "sum": sum(values), "min": min(values), "max": max(values), "mean": sum(values) / len(values),
            "median": statistics.median(values), "deviation": statistics.stdev(values) if len(values) > 1 else 0}


def by(key, value, items):
    found = collections.defaultdict(list)
    for i in items:
        found[key(i)].append(value(i))
    return found


def check_figures(what, rows, key, values, unit):
    check(what + ": rows", sorted(r[key] for r in rows), sorted(values))
    for r in rows:
        for name, wanted in figures(values.get(r[key], [0])).items():
            got = r[name] if name == "count" else r[name] / unit
            check(f"{what} {r[key]} {name}", float(got), float(wanted))
    check(what + ": shares", not rows or abs(sum(r["share"] for r in rows) - 1) < 1e-9 or not any(r["sum"] for r in rows), True)


def merged(spans):
    out = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return out


def length(spans):
    return sum(end - start for start, end in spans)


def both(a, b):
    """How long two lists of merged spans overlap."""
    i = j = total = 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def class_of(w):
    if w.kind != "kernel":
        return "memory"
    return "communication" if "nccl" in w.name.lower() else "memory" if "Memcpy" in w.name or "Memset" in w.name else "compute"


def check_devices(path, t, found):
    for r in t.get("temporal", []):
        mine = [w for w in found if str(w.device) == r["device"]]
        all_of = merged((w.start, w.end) for w in mine)
        span = all_of[-1][1] - all_of[0][0]
        check(f"{path}: span", ns(r["span"]), span)
        check(f"{path}: busy", ns(r["busy"]), length(all_of))
        check(f"{path}: idle + busy = span", ns(r["idle"]) + ns(r["busy"]), ns(r["span"]))
        of = {c: merged((w.start, w.end) for w in mine if class_of(w) == c) for c in ("compute", "communication", "memory")}
        check(f"{path}: compute", ns(r["compute"]), length(of["compute"]))
        check(f"{path}: shares", abs(r["idle_share"] + r["compute_share"] + r["other_share"] - 1) < 1e-9, True)
        o = next(o for o in t["overlap"] if o["device"] == r["device"])
        for c, spans in of.items():
            check(f"{path}: {c}", ns(o[c]), length(spans))
        check(f"{path}: overlap", ns(o["compute_communication"]), both(of["compute"], of["communication"]))
        check(f"{path}: overlap with memory", ns(o["compute_memory"]), both(of["compute"], of["memory"]))
        if length(of["communication"]):
            check(f"{path}: hidden", o["communication_hidden"], both(of["compute"], of["communication"]) / length(of["communication"]))
    check(f"{path}: types", sum(ns(r["time"]) for r in t.get("types", [])), sum(ns(r["busy"]) for r in t.get("temporal", [])))


def check_streams(path, t, found):
    idle, queue = collections.Counter(), collections.Counter()
    for (device, context, stream), mine in by(lambda w: (w.device, w.context, w.stream), lambda w: w, found).items():
        end = None
        for w in sorted(mine, key=lambda w: w.start):
            if end is not None and w.start >= end:
                why = "host wait" if w.cause and w.cause.start > end else "kernel wait" if w.start - end < 30000 else "other"
                idle[str(device), str(stream), why] += w.start - end
            end = max(w.end, end or w.end)
        queue[str(device), str(stream)] += 2 * sum(w.cause is not None and w.cause.name.startswith(LAUNCH) for w in mine)
    got = collections.Counter()
    for r in t.get("idle", []):
        got[r["device"], r["stream"], r["cause"]] += ns(r["time"])
    check(f"{path}: idle", +got, +idle)
    got = collections.Counter()
    for r in t.get("queue", []):
        got[r["device"], r["stream"]] += r["count"]
    check(f"{path}: queue", +got, +queue)


def quantile(values, q):
    at = (len(values) - 1) * q
    low = math.floor(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def queue_changes(mine):
    """When a stream's queue changes, a launch before a start of the same time, and its length behind that."""
    launched = [w for w in mine if w.cause is not None and w.cause.name.startswith(LAUNCH)]
    changes = sorted([(w.cause.start, 0) for w in launched] + [(w.start, 1) for w in launched])
    length, out = 0, []
    for at, begins in changes:
        length += -1 if begins else 1
        out.append((at, length))
    return out


def check_queues(path, t, found):
    """Figures over the lengths, their mean over the time, and both in equal parts of it."""
    lanes = by(lambda w: (w.device, w.context, w.stream), lambda w: w, found)
    queues = {key: changes for key, mine in lanes.items() if (changes := queue_changes(mine))}
    names = collections.Counter((str(d), str(s)) for d, _, s in queues)
    rows = {(r["device"], r["stream"]): r for r in t.get("queue", [])}
    series = by(lambda r: (r["device"], r["stream"]), lambda r: r, t.get("queue-series", []))
    if not queues:
        return
    first = min(c[0][0] for c in queues.values())
    last = max(max(w.start for w in lanes[key] if w.cause and w.cause.name.startswith(LAUNCH)) for key in queues)
    parts = min(100, max(1, 4000 // len(queues)))
    width = (last - first) / parts if last > first else 1
    for (device, _, stream), changes in queues.items():
        key = str(device), str(stream)
        if names[key] > 1:
            continue
        lengths = sorted(length for _, length in changes)
        area = [0]
        for (at, length), (behind, _) in zip(changes, changes[1:]):
            area.append(area[-1] + length * (behind - at))
        span = changes[-1][0] - changes[0][0]
        wanted = {"min": lengths[0], "max": lengths[-1], "mean": statistics.mean(lengths), "quarter": quantile(lengths, 0.25),
                  "median": quantile(lengths, 0.5), "three_quarters": quantile(lengths, 0.75), "deviation": statistics.stdev(lengths),
                  "over_time": area[-1] / span if span else None}
        for name, value in wanted.items():
            got = rows.get(key, {}).get(name)
            check(f"{path}: queue of {key}: {name}", got, value if value is None or got is None else type(got)(value))
        check(f"{path}: parts of {key}", len(series[key]), parts)
        times = [at - first for at, _ in changes] # as floats, nanoseconds since 1970 are 256 apart

        def until(at):
            k = bisect.bisect_right(times, at) - 1
            return area[k] + changes[k][1] * (at - times[k]) if k >= 0 else 0

        for p, r in enumerate(series[key]):
            low, high = width * p, width * (p + 1)
            check(f"{path}: part {p} of {key} begins", r["from"], width * p / 1e9)
            check(f"{path}: part {p} of {key}", abs(r["mean"] - (until(high) - until(low)) / width) < 1e-6 * max(1, lengths[-1]), True)
            a, b = bisect.bisect_left(times, low), bisect.bisect_left(times, high)
            near = any(0 < abs(x - y) < 1e-3 for x in times[max(0, a - 1):b + 1] for y in (low, high))
            if not near and p + 1 < parts:
                before = changes[a - 1][1] if a else 0
                check(f"{path}: most in part {p} of {key}", r["max"], type(r["max"])(max([0, before] + [c[1] for c in changes[a:b]])))


def check_operators(path, t, events):
    """Operators by name, and what their names' time is without what lies in them."""
    operators = [e for e in events if e.get("ph") == "X" and e.get("cat") in ("cpu_op", "Operator")]
    spans = by(lambda e: e["name"], lambda e: int(decimal.Decimal(e["dur"]) * 1000), operators)
    check(path + ": operators", {r["name"]: (r["count"], ns(r["sum"])) for r in t.get("operators", [])},
          {name: (len(v), sum(v)) for name, v in spans.items()})
    own = collections.Counter()
    for _, of in by(lambda e: (e["pid"], e["tid"]), lambda e: e, operators).items():
        open_ = []
        for e in sorted(of, key=lambda e: (e["ts"], -e["dur"])):
            while open_ and open_[-1]["ts"] + open_[-1]["dur"] <= e["ts"]:
                open_.pop()
            if open_ and open_[-1]["ts"] + open_[-1]["dur"] >= e["ts"] + e["dur"]:
                own[open_[-1]["name"]] -= int(decimal.Decimal(e["dur"]) * 1000)
            own[e["name"]] += int(decimal.Decimal(e["dur"]) * 1000)
            open_.append(e)
    for r in t.get("operators", []):
        check(f"{path}: {r['name']} without what lies in it", abs(ns(r["exclusive"]) - own[r["name"]]) <= 1000 * r["count"], True)
    layers, kinds = t.get("layers", []), t.get("layer-types", [])
    check(path + ": layers by type", (sum(r["count"] for r in kinds), sum(ns(r["time"]) for r in kinds)),
          (len(layers), sum(ns(r["time"]) for r in layers)))
    check(path + ": layers by stage", sum(r["count"] for r in t.get("stages", [])), len(layers) if len(layers) > 2 else 0)
    listed = by(lambda r: r["name"], lambda r: ns(r["time"]), t.get("kernel-list", []))
    named = collections.Counter()
    for r in t.get("kernel-names", []):
        named[r["name"]] += ns(r["time"])
    check(path + ": kernels by name", {k: sum(v) for k, v in listed.items()}, dict(named))


def check_launches(path, t, found):
    mine = by(lambda w: w.cause.name, lambda w: w, [w for w in found if w.cause])
    check(f"{path}: launches", sorted(r["name"] for r in t.get("launches", [])), sorted(mine))
    for r in t.get("launches", []):
        of = mine[r["name"]]
        delay = [max(0, w.start - w.cause.end) for w in of]
        call = [w.cause.end - w.cause.start for w in of]
        check(f"{path}: {r['name']}", [r["count"], ns(r["call_time"]), ns(r["work_time"]), ns(r["delay_max"]), r["slow"], r["late"], r["brief"]],
              [len(of), sum(call), sum(w.end - w.start for w in of), max(delay), sum(c > 50000 for c in call),
               sum(d > 100000 for d in delay), sum(c <= 50000 and w.end - w.start < c for c, w in zip(call, of))])


def check_recording(path, found, calls):
    t = tables(path)
    name = os.path.basename(path)
    time = lambda w: w.end - w.start
    direction = lambda w: "fill" if w.kind == "fill" else DIRECTIONS.get(w.direction, "direction not recorded")
    kernels, moved = [w for w in found if w.kind == "kernel"], [w for w in found if w.kind != "kernel"]
    check_figures(name + ": kernel", t.get("kernels", []), "full_name", by(lambda w: w.name, time, kernels), 1e-9)
    check_figures(name + ": api", t.get("api", []), "name", by(lambda c: c.name, time, calls), 1e-9)
    check_figures(name + ": copies", t.get("copies", []), "direction", by(direction, time, moved), 1e-9)
    check_figures(name + ": sizes", t.get("sizes", []), "direction", by(direction, lambda w: w.size, [w for w in moved if w.size > 0]), 1)
    check_devices(name, t, found)
    check_streams(name, t, found)
    check_queues(name, t, found)
    check_launches(name, t, found)
    if path.endswith(".json.gz"):
        with gzip.open(path, "rt") as f:
            check_operators(name, t, json.load(f, parse_float=decimal.Decimal)["traceEvents"])
    for id_of, rows in t.items():
        for r in rows:
            for key, v in r.items():
                if "share" in key or "hidden" in key:
                    check(f"{name}: {id_of}.{key}", v is None or -1e-9 <= v <= 1 + 1e-9, True)
    series = by(lambda r: r["direction"], lambda r: r["bytes"], t.get("bandwidth-series", []))
    for d, values in series.items():
        check(f"{name}: series of {d}", round(sum(values)), sum(w.size for w in moved if direction(w) == d and w.size > 0))


HTA = [  # recording, range, events on the path, microseconds: of the host, of devices, between kernels, of launches
    ("simple_add/benchmark_result_493459_1694039959_trace.json.gz", None, 624, 41393843, 39588, 9, 1572),
    ("simple_add/benchmark_result_493459_1694039959_trace.json.gz", "measure|forward:1", 159, 241190, 508, 9, 17),
    ("alexnet/benchmark_result_2869224_1695835535_trace.json.gz", "measure|forward:1", 77, 32042, 3712, 50, 30),
    ("cuda_event_sync/event_sync_trace.json.gz", "ProfilerStep", 21, 2365, 36, 0, 10),
    ("cuda_event_sync_multi_stream/event_sync_trace.json.gz", None, 31, 1025, 124, 15, 14)]


def check_critical():
    """HTA's own path: the events that it marked in a trace, and what it printed of others."""
    for path, within, events, host, device, between, launch in HTA:
        path = os.path.join(shared, "kineto/critical_path", path)
        t = tables(path, *(["--range", within] if within else []))
        bound = {r["bound"]: round(r["time"] * 1e6) for r in t["critical"]}
        device_of = sum(bound.get(b, 0) for b in ("compute", "memory", "communication"))
        check(path + ": critical path", (sum(r["count"] for r in t["critical-events"]), bound["host"], device_of,
                                         bound.get("delay between work", 0), bound["launch delay"]),
              (events, host, device, between, launch))
        total = sum(ns(r["time"]) for r in t["critical"])
        check(path + ": its parts", (sum(ns(r["time"]) + ns(r["delay"]) for r in t["critical-events"]), sum(ns(r["time"]) for r in t["critical-steps"])),
              (total, total))
    path = os.path.join(shared, "kineto/critical_path/end_to_end/simple_add/output/overlaid_critical_path_trace.json.gz")
    with gzip.open(path, "rt") as f:
        marked = collections.Counter(e["name"] for e in json.load(f)["traceEvents"] if e["ph"] == "X" and e.get("args", {}).get("critical"))
    got = collections.Counter()
    for r in tables(path, "--table", "critical-events")["critical-events"]:
        got[r["full_name"]] += r["count"]
    check(path + ": events on the path", got, marked)


# ---- recordings made here ----------------------------------------------------------------------------------------------

def make_sqlite(path, chance):
    """As nsys writes it: launches, some at the same time as others, work that begins before its launch, directions that CUPTI has no
    name for, and calls that launch nothing."""
    plain = path[:-3]
    db = sqlite3.connect(plain)
    db.executescript("""
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, nameId INT, correlationId INT, globalTid INT, returnValue INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,
            globalPid INT, demangledName INT, shortName INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,
            globalPid INT, bytes INT, copyKind INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,
            globalPid INT, bytes INT);""")
    names = ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaStreamSynchronize", "cudaGraphLaunch", "gemm", "ncclDevKernel", "add"]
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
    now = 1000
    free = collections.defaultdict(int)
    for n in range(1, 400):
        kind = chance.choice(["kernel", "kernel", "copy", "fill", "none"])
        stream, call, took = chance.choice([7, 7, 13, 14]), now, chance.randint(1, 80) * 1000
        name = {"kernel": chance.choice([0, 0, 0, 4]), "copy": 1, "fill": 2, "none": 3}[kind]
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, 0)", (call, call + took, name, n, 5 << 24 | 6))
        start = max(free[stream], call + chance.choice([-500, 0, 3000, 40000, 200000]))
        end = start + chance.randint(0, 90) * 1000
        where = start, end, 0, 1, stream, n if chance.random() < 0.95 else 0, 5 << 24
        if kind != "none":
            free[stream] = end
        if kind == "kernel":
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*where, *[chance.randint(5, 7)] * 2))
        elif kind == "copy":
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                       (*where, chance.randint(0, 1 << 20), chance.choice([*range(13), 42, 254, 255, 256, 300])))
        elif kind == "fill":
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*where, chance.randint(0, 1 << 20)))
        now += chance.choice([took, took, took + 5000, took + 300000])
    db.commit()
    db.close()
    with open(plain, "rb") as f, gzip.open(path, "wb") as out:
        out.write(f.read())


def windows(x, stride, padding, dilation, kernel):
    """In how many places a kernel lies within a padded row, by trying each."""
    places = 0
    while places * stride + dilation * (kernel - 1) < x + 2 * padding:
        places += 1
    return places


def chance_convolution(chance):
    """Its operator, and its multiplications (each with its addition), elements read and elements written by their definition."""
    rank, groups = chance.randint(1, 3), chance.choice([1, 1, 2, 3])
    images, inside, outside = chance.randint(1, 4), groups * chance.randint(1, 5), groups * chance.randint(1, 5)
    kernel, stride, padding, dilation = ([chance.randint(low, 3) for _ in range(rank)] for low in (1, 1, 0, 1))
    size = [chance.randint(dilation[i] * (kernel[i] - 1) + 1, 20) for i in range(rank)]
    turned = chance.random() < 0.3
    if turned:
        more = [chance.randint(0, stride[i] - 1) for i in range(rank)]
        made = [(size[i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + more[i] + 1 for i in range(rank)]
        if min(made) < 1:
            return chance_convolution(chance)
        weights = [inside, outside // groups, *kernel]
        products = images * math.prod(size) * inside * outside // groups * math.prod(kernel)
    else:
        more = [0] * rank
        made = [windows(*of) for of in zip(size, stride, padding, dilation, kernel)]
        weights = [outside, inside // groups, *kernel]
        products = images * math.prod(made) * outside * inside // groups * math.prod(kernel)
    general = ["aten::convolution", "aten::_convolution"]
    name = chance.choice(general if turned else general + [f"aten::conv{rank}d"])
    values = ["", "", "", str(stride), str(padding), str(dilation)] + ([str(turned), str(more)] if name in general else []) + [str(groups)]
    shape = [images, inside, *size]
    return (name, [shape, weights, [outside] if chance.random() < 0.5 else [], [], [], []], values, 2 * products,
            math.prod(shape) + math.prod(weights), images * outside * math.prod(made))


def chance_product(chance):
    rows, deep, columns = (chance.randint(1, 40) for _ in range(3))
    name = chance.choice(["mm", "bmm", "addmm", "baddbmm", "linear", "matmul"])
    a, b, batch = [rows, deep], [deep, columns], []
    if name in ("bmm", "baddbmm"):
        batch = [chance.randint(1, 9)]
        a, b = batch + a, batch + b
    elif name == "linear":
        batch = [chance.randint(1, 9) for _ in range(chance.randint(0, 2))]
        a, b = batch + a, [columns, deep]
    elif name == "matmul":
        batch = [chance.randint(2, 9) for _ in range(chance.randint(0, 3))]
        own, other = ([d if chance.random() < 0.7 else 1 for d in batch[chance.randint(0, len(batch)):]] for _ in range(2))
        long = max(len(own), len(other))
        batch = [max(p, q) for p, q in zip([1] * (long - len(own)) + own, [1] * (long - len(other)) + other)]
        a, b = own + a, other + b
        if chance.random() < 0.2:
            b, columns, batch = [deep], 1, own
        elif chance.random() < 0.2:
            a, rows, batch = [deep], 1, other
    shapes = [[columns], a, b] if name in ("addmm", "baddbmm") else [a, b]
    made = math.prod(batch) * rows * columns
    return f"aten::{name}", shapes, [], 2 * made * deep, math.prod(a) + math.prod(b), made


TYPES = {"float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "int": 4, "signed char": 1}


def check_work(chance):
    """Operators one after the other, each with its kernel: the table of layers tells what each computes, reads and writes."""
    events, wanted, now = [], [], 1000
    for n in range(1, 250):
        name, shapes, values, flops, reads, writes = chance.choice([chance_convolution, chance_product])(chance)
        kind = chance.choice(list(TYPES))
        took = chance.randint(50, 900)
        wanted.append((name, float(flops), float(reads * TYPES[kind]), float(writes * TYPES[kind])))
        events += [
            {"ph": "X", "cat": "cpu_op", "name": name, "pid": 5, "tid": 6, "ts": now, "dur": took,
             "args": {"External id": n, "Input Dims": shapes, "Input type": [kind] * len(shapes), "Concrete Inputs": values}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 6, "ts": now + 10, "dur": 5,
             "args": {"cbid": 211, "correlation": n}},
            {"ph": "X", "cat": "kernel", "name": f"kernel_{n}", "pid": 0, "tid": 7, "ts": now + 20, "dur": chance.randint(1, 20),
             "args": {"External id": n, "device": 0, "context": 1, "stream": 7, "correlation": n}}]
        now += took + chance.randint(1, 500)
    path = os.path.join(work, "work.json.gz")
    with gzip.open(path, "wt") as f:
        json.dump({"schemaVersion": 1, "traceEvents": events}, f)
    rows = tables(path).get("layer-kernels", [])
    check("layers that compute", len(rows), len(wanted))
    for n, (r, w) in enumerate(zip(rows, wanted)):
        got = r["name"], *(r[k] if r[k] is None else float(r[k]) for k in ("flops", "reads", "writes"))
        check(f"layer {n}: {events[3 * n]['args']}", got, w)
    check_recording(path, *of_kineto(path))


LONGEST_DELAY = 1500  # microseconds: a longer gap between two works of a stream is no delay, as HTA has it


def make_waits(chance):
    """One operator that launches kernels onto three streams, some behind an event of another stream. Their times are a device's, which
    starts work when it was asked for, the work before is over, and the event came; now and then later."""
    now, kernels, waits, events, free = chance.randint(1, 50), [], {}, [], collections.defaultdict(int)
    begin = now

    def call(name, correlation):
        nonlocal now
        now += chance.choice([1, 2, 10, 300])
        events.append({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 5, "tid": 6, "ts": now, "dur": 2, "args": {"correlation": correlation}})
        now += 2
        return now - 2

    for n in range(chance.randint(2, 14)):
        stream, ready = chance.choice([7, 7, 13, 20]), 0
        others = [i for i, k in enumerate(kernels) if k["stream"] != stream]
        if others and chance.random() < 0.5:
            on = kernels[chance.choice(others)]["stream"]
            waits[n] = max(i for i in others if kernels[i]["stream"] == on)
            ready = kernels[waits[n]]["end"] + 1
            call("cudaEventRecord", 3 * n + 1000)
            at = call("cudaStreamWaitEvent", 3 * n + 1001)
            events.append({"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": stream, "ts": at, "dur": 1,
                           "args": {"cuda_sync_kind": "Stream Wait Event", "wait_on_stream": on, "stream": stream, "device": 0, "context": 1,
                                    "wait_on_cuda_event_record_corr_id": 3 * n + 1000, "correlation": 3 * n + 1001}})
        launch = call("cudaLaunchKernel", 3 * n + 1002)
        start = max(launch + 3, free[stream] + chance.choice([1, 40]), ready) + chance.choice([0, 0, 0, 25, 2000])
        end = start + chance.choice([5, 60, 200, 900])
        free[stream] = end
        kernels.append({"stream": stream, "launch": launch, "start": start, "end": end})
        events.append({"ph": "X", "cat": "kernel", "name": f"kernel_{n}", "pid": 0, "tid": stream, "ts": start, "dur": end - start,
                       "args": {"device": 0, "context": 1, "stream": stream, "correlation": 3 * n + 1002}})
    now += 1
    events.append({"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 5, "tid": 6, "ts": begin, "dur": now - begin, "args": {}})
    return begin, now, kernels, waits, events


def longest_way(begin, end, kernels, waits):
    """To each kernel lead its launch, where nothing else was on the stream or came to it until the start, or the end of the kernel before,
    and, at no cost, the end of what it waits for, which hides what was over before it."""
    length = {}
    for n in sorted(range(len(kernels)), key=lambda n: kernels[n]["start"]):
        k, after = kernels[n], kernels[waits[n]]["end"] if n in waits else -1
        same = [o for o in kernels if o["stream"] == k["stream"]]
        before = [o for o in same if o["start"] < k["start"]]
        ways = [length[waits[n]]] if n in waits else []
        alone = len([o for o in same if o["launch"] <= k["start"]]) == len(before) + 1
        if alone and after < k["launch"] and all(o["end"] < k["launch"] for o in before):
            ways.append(k["start"] - begin)
        elif before and k["start"] - before[-1]["end"] < LONGEST_DELAY and after < before[-1]["end"]:
            ways.append(length[kernels.index(before[-1])] + k["start"] - before[-1]["end"])
        length[n] = max(ways, default=0) + k["end"] - k["start"]
    return max(end - begin, *length.values())


def check_waits():
    for seed in range(60):
        begin, end, kernels, waits, events = make_waits(random.Random(seed))
        path = os.path.join(work, f"waits-{seed}.json")
        with open(path, "w") as f:
            json.dump({"schemaVersion": 1, "traceEvents": events}, f)
        t = tables(path)
        wanted = longest_way(begin, end, kernels, waits) * 1000
        check(f"path {seed}", sum(ns(r["time"]) for r in t["critical"]), wanted)
        check(f"path {seed}: its steps", sum(ns(r["time"]) for r in t["critical-steps"]), wanted)


def check_made():
    check_waits()
    for seed in range(3):
        path = os.path.join(work, f"made-{seed}.sqlite.gz")
        make_sqlite(path, random.Random(seed))
        check_recording(path, *of_sqlite(path))
    check_work(random.Random(3))


def main():
    check_made()
    if not os.path.isdir(shared):
        print(f"{checks} comparisons of recordings made here, {failures} failed; {shared}: is not there")
        return 1 if failures else 77
    recordings = sorted(glob.glob(shared + "/kineto/**/*.json.gz", recursive=True))
    for path in recordings:
        check_recording(path, *of_kineto(path))
    nsys = sorted(glob.glob(shared + "/nsys/*.sqlite.gz") + glob.glob(shared + "/v100/nsys/**/*.sqlite.gz", recursive=True))
    for path in nsys:
        check_recording(path, *of_sqlite(path))
    if recordings:
        check_critical()
    print(f"{checks} comparisons over {len(recordings) + len(nsys)} recordings, {failures} failed")
    if not recordings or not nsys:
        print(shared + ": holds no kineto/**/*.json.gz, or no nsys/*.sqlite.gz: give the folder that they lie in")
        return 1
    return 1 if failures or not checks else 0


sys.exit(main())
