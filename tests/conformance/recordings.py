#!/usr/bin/python3
"""recordings.py BENANZA MODELS SHARED: `benanza analyze --profile` without a model.

Synthetic recordings of known truth, recordings that lie, and, where SHARED is, real ones against what sqlite3 and Python
compute from the same files."""
import decimal
import glob
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

benanza, models, shared = sys.argv[1:4]
work = tempfile.mkdtemp()
environment = dict(os.environ, BENANZA_DB=work + "/db", LC_ALL="C.UTF-8")
failures = 0


def check(what, got, wanted):
    global failures
    if got != wanted:
        failures += 1
        print(f"{what}: {got!r}, not {wanted!r}")


def close(what, got, wanted, by):
    global failures
    if got is None or not abs(got - wanted) <= by:
        failures += 1
        print(f"{what}: {got!r}, not {wanted!r} within {by}")


def run(*arguments, path=None):
    env = dict(environment, PATH=path) if path else environment
    return subprocess.run([benanza, *arguments], capture_output=True, text=True, env=env)


def shares(found):
    for r in found["recordings"]:
        for t in r["tables"]:
            keys = [c["key"] for c in t["columns"] if c["type"] == "share"]
            for row in t["rows"]:
                for k in keys:
                    if row[k] is not None and not -1e-9 <= row[k] <= 1 + 1e-9:
                        check(f"{r['profile']}: share {t['id']}.{k}", row[k], "0 to 1")


def analyze(path, *more):
    p = run("analyze", "--profile", path, "--json", *more)
    if p.returncode not in (0, 4):
        check(path + ": exit", (p.returncode, p.stderr), 0)
        return None
    found = json.loads(p.stdout)
    shares(found)
    r = found["recordings"][0]
    if r["span"] is not None:
        close(path + ": busy + idle", r["busy"] + r["idle"], r["span"], 1e-9)
    return r


def table(r, name):
    return next((t["rows"] for t in r["tables"] if t["id"] == name), [])


# ---- synthetic recordings

KERNELS = "create table CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId " \
    "INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, " \
    "gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER, " \
    "dynamicSharedMemory INTEGER)"
RUNTIME = "create table CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, " \
    "correlationId INTEGER, nameId INTEGER, returnValue INTEGER)"
COPIES = "create table CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId " \
    "INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER)"


class Recording:
    """An export of Nsight Systems, written call by call."""

    def __init__(self, name):
        self.path = f"{work}/{name}"
        self.db = sqlite3.connect(self.path)
        for text in ("create table StringIds (id INTEGER, value TEXT)", KERNELS, RUNTIME, COPIES):
            self.db.execute(text)
        self.ids = {}
        self.correlation = 0

    def string(self, text):
        if text not in self.ids:
            self.ids[text] = len(self.ids) + 1
            self.db.execute("insert into StringIds values (?, ?)", (self.ids[text], text))
        return self.ids[text]

    def launch(self, api, start, end, stream=7, device=0, name="kernel", asked=None, took=1000):
        """A launch at `asked` that takes `took`, and its kernel."""
        self.correlation += 1
        c = self.correlation
        self.db.execute("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?,?,0,?,?,?,0)",
                        (asked, asked + took, 1 << 24, c, self.string(api)))
        self.db.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?,?,?,1,?,?,0,?,?,1,1,1,32,1,1,16,0,0)",
                        (start, end, device, stream, c, self.string(name), self.string(name)))

    def copy(self, start, end, size, kind, asked):
        self.correlation += 1
        c = self.correlation
        self.db.execute("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?,?,0,?,?,?,0)",
                        (asked, asked + 500, 1 << 24, c, self.string("cudaMemcpyAsync_v3020")))
        self.db.execute("insert into CUPTI_ACTIVITY_KIND_MEMCPY values (?,?,0,1,7,?,0,?,?,1,2)", (start, end, c, size, kind))

    def done(self):
        self.db.commit()
        self.db.close()
        return self.path


def sequence(name, kernels, iterations=5, copies=True):
    """Each iteration copies 4 MB in 400 µs, then runs the kernels: launched 5 µs apart, each 3 µs on the device, 1.5 µs behind
    the end of its launch call (which takes 1 µs): 2 µs of host, 1 µs of launch call and … as counted below."""
    r = Recording(name)
    at = 1_000_000
    for _ in range(iterations):
        if copies:
            r.copy(at, at + 400_000, 4_000_000, 1, at - 2000)
            at += 400_000
        for k in kernels:
            # the device is done at `at`; the host asks 500 ns later, its call takes 1000 ns, 700 ns later the kernel runs
            r.launch("cudaLaunchKernel_v7000", at + 2200, at + 5200, name=k, asked=at + 500)
            at += 5200
        at += 50_000
    return r.done()


CONV = "void cudnn::detail::implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>(int, int, int)"
POOL = "void cudnn::detail::pooling_fw_4d_kernel<float, float, cudnn::detail::maxpooling_func<float, 0>, 0, false>(int)"
AVERAGE = "void at::native::(anonymous namespace)::adaptive_average_pool<float>(float const*, float*, int)"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::ReluFunctor<float>, at::detail::Array<char*, 2> >(int)"
PRODUCT = "volta_sgemm_128x64_tn"


def vgg():
    kernels = []
    for n in (2, 2, 3, 3, 3):
        kernels += [CONV, RELU] * n + [POOL]
    return kernels + [AVERAGE] + [PRODUCT, RELU, PRODUCT, RELU, PRODUCT]


def synthetic():
    kernels = vgg()
    path = sequence("vgg.nsys", kernels)
    r = analyze(path, "--system", "v100")  # no database: its data sheet tells of it
    check("iterations", (r["iterations"], r["found"]), (5, "detected"))
    n = len(kernels)
    idle = {row["why"]: row for row in table(r, "idle")}
    close("busy", r["busy"], (n * 3000 + 400_000) * 1e-9, 1e-9)
    # an iteration begins with the call that asks for its input, 2 µs before that is copied; the pause of 50 µs is no part of it
    close("span", r["span"], (2000 + 400_000 + n * 5200) * 1e-9, 1e-9)
    close("busy and idle are the span", sum(row["time"] for row in table(r, "idle")), r["span"] - r["busy"], 1e-9)
    close("the launch call", idle["the host was in the launch call"]["time"], n * 1000e-9, 3e-6)
    close("submitted", idle["launched, on its way to the device"]["time"], n * 700e-9, 3e-6)
    groups = {row["group"]: row for row in table(r, "groups")}
    for group, count in (("convolution", 13), ("pooling", 6), ("matrix product", 3), ("element-wise", 15)):
        close(group, groups[group]["times"], count, 0)
        close(group + ": share", groups[group]["share"], count / n, 1e-9)
    check("limits", [groups[g]["limit"] for g in ("convolution", "pooling")], ["compute", "memory"])
    check("makers", {row["maker"] for row in table(r, "makers")}, {"cuDNN", "cuBLAS", "PyTorch"})
    copies = table(r, "copies")
    check("copies", [c["direction"] for c in copies], ["host to device"])
    close("bytes of a copy", copies[0]["bytes"] / copies[0]["times"], 4e6, 1)
    close("rate", copies[0]["rate"], 1e10, 1)
    check("guess", [(f["model"], f["equal"]) for f in r["fits"] if f["equal"]], [("vgg16.onnx", True)])

    twin = work + "/twin.onnx"
    shutil.copy(models + "/vgg16.onnx", twin)
    r = analyze(path, "--candidate", twin)
    check("two fit equally", sorted((f["from"], f["equal"]) for f in r["fits"][:2]), [("bundled", True), ("given", True)])
    text = run("analyze", "--profile", path, "--candidate", twin).stdout
    check("said so", "one of these, which fit equally" in text, True)
    check("the answer comes first", text.startswith("vgg.nsys: One iteration took "), True)

    r = analyze(sequence("other.sqlite", [RELU, PRODUCT, RELU, RELU, PRODUCT, POOL, PRODUCT, RELU] * 2 + [CONV]))
    check("none fits", r["fits"], [])
    p = run("analyze", "--profile", path, "--system", "box")
    check("an unknown system is a warning", (p.returncode, "there is no database" in p.stderr), (0, True))
    page = work + "/page.html"
    check("page", (run("analyze", "--profile", path, "--html", page).returncode, os.path.getsize(page) > 100_000), (0, True))
    check("--csv has no layers", run("analyze", "--profile", path, "--csv").returncode, 2)


def remembered():
    """A model that was analyzed is a candidate later."""
    mine = work + "/mine.onnx"
    shutil.copy(models + "/vgg16.onnx", mine)
    os.makedirs(work + "/db", exist_ok=True)
    run("bound", mine, "--no-run")
    r = analyze(work + "/vgg.nsys")
    check("remembered", sorted(f["from"] for f in r["fits"][:2]), ["analysed before", "bundled"])
    os.unlink(mine)
    r = analyze(work + "/vgg.nsys")
    check("gone", [f["from"] for f in r["fits"][:2] if f["equal"]], ["bundled"])


def reports():
    """A report of Nsight Systems: exported where nsys is, else a sentence with the command."""
    report = work + "/run.nsys-rep"
    with open(report, "w") as f:
        f.write("not documented")
    p = run("analyze", "--profile", report, path="/nowhere")
    check("without nsys", (p.returncode, "nsys export --type=sqlite" in p.stderr, p.stderr.count("\n")), (3, True, 1))
    tools = work + "/tools"
    os.makedirs(tools)
    with open(tools + "/nsys", "w") as f:
        f.write(f'#!/bin/sh\nexec /bin/cp "{work}/vgg.nsys" "$4"\n')
    os.chmod(tools + "/nsys", 0o755)
    check("with nsys", run("analyze", "--profile", report, path=tools).returncode, 0)


# ---- recordings that lie

def hostile():
    good = sequence("good.sqlite", vgg())
    data = open(good, "rb").read()
    for size in (0, 1, 100, 4096, len(data) // 3, len(data) // 2, len(data) - 4096):
        broken(f"cut at {size}", data[:size])
    for at in range(0, len(data), max(4096, len(data) // 12)):
        broken(f"overwritten at {at}", data[:at] + b"\xff" * 512 + data[at + 512:])
    statements = {
        "no rows": ["delete from CUPTI_ACTIVITY_KIND_KERNEL", "delete from CUPTI_ACTIVITY_KIND_RUNTIME",
                    "delete from CUPTI_ACTIVITY_KIND_MEMCPY"],
        "no kernels": ["delete from CUPTI_ACTIVITY_KIND_KERNEL"],
        "no strings": ["delete from StringIds"],
        "no table of kernels": ["drop table CUPTI_ACTIVITY_KIND_KERNEL"],
        "negative durations": ["update CUPTI_ACTIVITY_KIND_KERNEL set end = start - 5000 where rowid % 3 = 0"],
        "all negative": ["update CUPTI_ACTIVITY_KIND_KERNEL set end = start - 5000",
                         "update CUPTI_ACTIVITY_KIND_MEMCPY set end = start - 5000"],
        "text for numbers": ["update CUPTI_ACTIVITY_KIND_KERNEL set start = 'nan', end = 'inf' where rowid % 5 = 0"],
        "huge": ["update CUPTI_ACTIVITY_KIND_KERNEL set end = 9223372036854775807 where rowid = 9"],
        "least": ["update CUPTI_ACTIVITY_KIND_KERNEL set start = -9223372036854775808 where rowid = 9"],
        "everything at once": ["update CUPTI_ACTIVITY_KIND_KERNEL set start = 0, end = 0"],
        "bytes below 0": ["update CUPTI_ACTIVITY_KIND_MEMCPY set bytes = -1, copyKind = 77"],
        "launched after it ran": ["update CUPTI_ACTIVITY_KIND_RUNTIME set start = start + 40000, end = end + 40000"],
    }
    for what, list_ in statements.items():
        path = f"{work}/hostile.sqlite"
        shutil.copy(good, path)
        db = sqlite3.connect(path)
        for s in list_:
            db.execute(s)
        db.commit()
        db.close()
        survives(what, path)
    survives("no JSON numbers", write("nan.json", '{"traceEvents": [' + ",".join(
        '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%s,"dur":%s,"args":{"correlation":%d,"stream":7,"device":0}}'
        % (ts, dur, i) for i, (ts, dur) in enumerate([(1, 2), ("NaN", 3), (5, "NaN"), (9, -4), (12, 1e300)])) + "]}"))
    survives("an empty trace", write("empty.json", '{"traceEvents": []}'))


def write(name, text):
    with open(f"{work}/{name}", "w") as f:
        f.write(text)
    return f"{work}/{name}"


def broken(what, data):
    path = work + "/broken.sqlite"
    with open(path, "wb") as f:
        f.write(data)
    survives(what, path)


def survives(what, path):
    """A report or a sentence; never a crash, and no share above 100 %."""
    p = run("analyze", "--profile", path, "--json")
    check(what + ": exit", p.returncode in (0, 3, 4), True)
    if p.returncode == 3:
        check(what + ": a sentence", p.stderr.count("\n"), 1)
    elif p.returncode in (0, 4):
        found = json.loads(p.stdout)
        shares(found)
        r = found["recordings"][0]
        if r["span"] is not None:
            close(what + ": busy + idle", r["busy"] + r["idle"], r["span"], 1e-9 * max(1, r["span"]))
            check(what + ": neither is below 0", r["busy"] >= 0 and r["idle"] >= 0, True)
    text = run("analyze", "--profile", path)
    check(what + ": exit of the text", text.returncode, p.returncode)


# ---- real recordings

def union(intervals, start, end):
    busy, at = 0, start
    for a, b in sorted(intervals):
        a, b = max(a, at), min(b, end)
        if b > a:
            busy += b - a
            at = b
    return busy


def typical(shown):
    """The steady iteration of median latency: of an even number the faster one of the two."""
    list_ = sorted((e["latency_ns"], i) for i, e in enumerate(shown["each"]) if not e["warm_up"] or len(shown["each"]) == 1)
    return shown["each"][list_[(len(list_) - 1) // 2][1]]


def iterations(path):
    """What `profile show` tells of them, with the times of each in nanoseconds, as recordings have them."""
    shown = json.loads(run("profile", "show", "--json", path).stdout)["iterations"]
    for each in shown["each"]:
        each.update({name + "_ns": round(each[name] * 1e9) for name in ("start", "begin", "latency")})
    return shown


def every(name, shown, intervals, by):
    """Busy and idle of each iteration, to the nanosecond: together they are the latency, and no share is above 100 %."""
    for i, e in enumerate(shown["each"]):
        begin, latency = e["begin_ns"], e["latency_ns"]
        busy, gap = round(e["device_busy"] * 1e9), round(e["gap"] * 1e9)
        close(f"{name}: busy of iteration {i}", busy, union(intervals, begin, begin + latency), by)
        check(f"{name}: busy + idle of iteration {i}", busy + gap, latency)
        check(f"{name}: iteration {i} is not busy for longer than it lasts", 0 <= busy <= latency, True)


def nsys(path):
    name = path[len(shared) + 1:]
    plain = work + "/plain.sqlite"
    with gzip.open(path) as f, open(plain, "wb") as out:
        shutil.copyfileobj(f, out)
    r = analyze(path)
    shown = iterations(path)
    db = sqlite3.connect(plain)
    have = {row[0] for row in db.execute("select name from sqlite_master where type = 'table'")}
    work_of = {t: db.execute(f"select start, end, correlationId from {t}").fetchall() if t in have else []
               for t in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")}
    intervals = [(a, b) for rows in work_of.values() for a, b, _ in rows]
    if not work_of["CUPTI_ACTIVITY_KIND_KERNEL"]:
        check(name + ": no device", r["device"], False)
        return
    if not r["found"]:
        busy = union(intervals, min(a for a, _ in intervals), max(b for _, b in intervals))
        close(name + ": busy of all", r["busy"], busy * 1e-9, 1e-9)
        return
    every(name, shown, intervals, 0)
    it = typical(shown)
    start, end = it["begin_ns"], it["begin_ns"] + it["latency_ns"]
    busy = union(intervals, start, end)
    close(name + ": span", r["span"], (end - start) * 1e-9, 1e-9)
    close(name + ": busy", r["busy"], busy * 1e-9, 1e-9)
    close(name + ": idle", r["idle"], (end - start - busy) * 1e-9, 1e-9)
    close(name + ": the reasons of idle time", sum(row["time"] for row in table(r, "idle")), r["idle"], 1e-9)
    # kernels belong to the iteration in which they were launched; where many launches are missing and the host is far ahead, in which they ran
    columns = [row[1] for row in db.execute("pragma table_info(CUPTI_ACTIVITY_KIND_KERNEL)")]
    process = "globalPid" if "globalPid" in columns else "0"
    of = "globalTid & ~16777215" if process != "0" else "0"  # the thread is the lower 24 bits
    asked = {(p, c): s for p, c, s in db.execute(
        f"select {of}, correlationId, start from CUPTI_ACTIVITY_KIND_RUNTIME order by start desc")}
    kernel = db.execute(f"select start, end, {process}, correlationId from CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
    ahead = sorted(a - asked[p, c] for a, b, p, c in kernel if (p, c) in asked)
    span = max(a for a, *_ in kernel) - min(a for a, *_ in kernel)
    if len(ahead) <= 0.9 * len(kernel) and ahead and ahead[len(ahead) // 2] > 16 * span / len(kernel):
        asked = {}
    check(name + ": says that the host is ahead", any("ahead" in fact for fact in r["facts"]), not asked)
    starts = [e["start_ns"] for e in shown["each"]][1:] + [1 << 62]
    steady = [(e["start_ns"], min(e["begin_ns"] + e["latency_ns"], after)) for e, after in zip(shown["each"], starts)
              if not e["warm_up"]]
    kernels = [b - a for a, b, p, c in kernel if any(s <= asked.get((p, c), a) < e for s, e in steady)]
    groups = table(r, "groups")
    close(name + ": kernels", sum(row["times"] for row in groups), len(kernels) / len(steady), 1e-6)
    close(name + ": kernel time", sum(row["time"] for row in groups), sum(kernels) / len(steady) * 1e-9, 1e-9)
    close(name + ": shares", sum(row["share"] for row in groups), 1, 1e-9)


def kineto(path):
    name = path[len(shared) + 1:]
    r = analyze(path)
    with gzip.open(path, "rt") as f:
        events = json.load(f, parse_float=decimal.Decimal)["traceEvents"]  # microseconds since 1970 have more digits than a double
    intervals = [(round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)) for e in events
                 if e.get("ph") == "X" and e.get("cat", "").lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")]
    if not intervals:
        check(name + ": no device", r["device"], False)
        return
    shown = iterations(path)
    if not r["found"]:
        busy = union(intervals, min(a for a, _ in intervals), max(b for _, b in intervals))
        close(name + ": busy of all", r["busy"], busy * 1e-9, 1e-6)
        return
    every(name, shown, intervals, 500)  # seconds since 1970 as a double are exact to 240 ns
    it = typical(shown)
    close(name + ": busy", r["busy"], union(intervals, it["begin_ns"], it["begin_ns"] + it["latency_ns"]) * 1e-9, 2e-6)


GUESSES = {"mxnet/17_b1": "resnet50.onnx", "mxnet/27_b1": "vgg16.onnx", "mxnet/24_b1": "squeezenet1_1.onnx",
           "mxnet/6_b1": "densenet121.onnx", "mxnet/4_b1": "googlenet.onnx", "mxnet/2_b1": None, "caffe2/24_b1": "squeezenet1_1.onnx",
           "onnxruntime/24_b1": "squeezenet1_1.onnx", "mxnet_tcu/17_b1": "resnet50.onnx", "mxnet/17_b16": "resnet50.onnx"}


def real():
    if not os.path.isdir(shared + "/v100"):
        print(f"skipped: {shared} is not here: no real recordings")
        return
    for path in sorted(glob.glob(shared + "/v100/nsys/*/*.sqlite.gz") + glob.glob(shared + "/nsys/*.sqlite.gz")):
        nsys(path)
    for path in sorted(glob.glob(shared + "/kineto/**/*.json.gz", recursive=True)):
        kineto(path)
    for path in sorted(glob.glob(shared + "/v100/*_log/*/*.gz") + glob.glob(shared + "/nvidia_logs/*.log")):
        r = analyze(path)
        check(path + ": a log has no times", (r["span"], r["busy"], r["idle"]), (None, None, None))
    why = {a["item"]: a["why"] for a in analyze(shared + "/v100/nsys/mxnet/17_b1.sqlite.gz")["answers"]}
    check("what an advice would gain that is not given", "as one CUDA graph' would gain" in why["the device waits for launches"], True)
    for name, model in GUESSES.items():
        r = analyze(f"{shared}/v100/nsys/{name}.sqlite.gz")
        check(name + ": guess", [f["model"] for f in r["fits"] if f["equal"]], [model] if model else [])


synthetic()
remembered()
reports()
hostile()
real()
shutil.rmtree(work)
print(f"{failures} failures")
sys.exit(1 if failures else 0)
