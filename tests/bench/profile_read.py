#!/usr/bin/env python3
"""How fast profiles are read: profile_read.py BENANZA [MILLION_KERNELS [RUNS]]

Makes synthetic recordings (an Nsight Systems export with as many launches as kernels, a cuDNN log, a Chrome trace), reads
each with `benanza profile show --json`, and prints events or bytes per second and the resident memory.

A summary of the export (count and time by kernel, time of kernels by iteration) is then made in Python, by sqlite3 with pandas
and by sqlite3 with plain Python, in turns with benanza; the file is in the page cache for all. benanza's time is that of the
whole process, which also finds the iterations instead of being told what separates them, ties kernels to launches, and lists
gaps; Python's is without its start and without importing pandas. Python's json.load of the Chrome trace is
timed in turns, too. The median of RUNS counts, of wall time and of processor time
(which other programs on the machine disturb less)."""

import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

PER_ITERATION = 100


def make_export(path, kernels):
    db = sqlite3.connect(path)
    db.executescript("""
        PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
        CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
            contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
            shortName INTEGER NOT NULL, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
            gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
            staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
            globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
        INSERT INTO StringIds VALUES (1000, 'cudaLaunchKernel_v7000');""")
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(i, "kernel_%d" % i) for i in range(PER_ITERATION)])
    # 5 us apart, a pause of 100 us between iterations; kernels run 3 us behind their launch
    at = "(i * 5000 + i / %d * 100000)" % PER_ITERATION
    numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %d) " % kernels
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL " + numbers + "SELECT %s + 3000, %s + 7000, 0, 1, 7, i + 1, 83886080, i %% %d, i %% %d, 32, "
               "64, 1, 1, 256, 1, 1, 0, 0 FROM n" % (at, at, PER_ITERATION, PER_ITERATION))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME " + numbers + "SELECT %s, %s + 2000, 0, 83886081, i + 1, 1000, 0 FROM n" % (at, at))
    db.commit()
    db.close()
    return 2 * kernels


CUDNN = """
I! CuDNN (v7603) function cudnn%s() called:
i!     handle: type=cudnnHandle_t; streamId=0x7f74f40024d0;
i!     xDesc: type=cudnnTensorDescriptor_t:
i!         dataType: type=cudnnDataType_t; val=CUDNN_DATA_FLOAT (0);
i!         nbDims: type=int; val=4;
i!         dimA: type=int; val=[1,%d,230,230];
i!         strideA: type=int; val=[158700,52900,230,1];
i!     xData: location=dev; addr=0x7f753ec00000;
i!     algo: type=cudnnConvolutionFwdAlgo_t; val=CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM (1);
i! Time: 2019-09-29T01:25:%02d.%06d (0d+0h+0m+16s since start)
i! Process=24402; Thread=24489; GPU=0; Handle=0x7f74d07e8900; StreamId=0x7f74f40024d0.

"""


def make_log(path, megabytes):
    iteration = ["ConvolutionForward", "AddTensor", "ActivationForward", "PoolingForward", "SoftmaxForward"]
    with open(path, "w") as f:
        i = 0
        while f.tell() < megabytes * 1000000:
            f.write("".join(CUDNN % (iteration[k % 5], k % 50, (i + k) // 1000000 % 60, (i + k) % 1000000) for k in range(1000)))
            i += 1000
    return os.path.getsize(path)


def make_chrome(path, megabytes):
    with open(path, "w") as f:
        f.write('{"schemaVersion":1,"traceEvents":[')
        i = 0
        while f.tell() < megabytes * 1000000:
            f.write(",".join('{"ph":"X","cat":"kernel","name":"kernel_%d","pid":0,"tid":7,"ts":%d.125,"dur":3.5,"args":{"External id":%d,"device":0,'
                             '"context":1,"stream":7,"correlation":%d,"registers per thread":47,"shared memory":0,"grid":[864,1,1],"block":[256,1,1]}},\n'
                             '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":6,"ts":%d,"dur":2,"args":{"cbid":211,"correlation":%d}}'
                             % (k % 100, k * 5 + 3, k, k + 1, k * 5, k + 1) for k in range(i, i + 1000)) + ",\n")
            i += 1000
        f.write('{"ph":"i","name":"end","pid":0,"tid":0,"ts":1}]}')
    return os.path.getsize(path)


def read(benanza, path):
    """What it printed, wall time, processor time, resident GB."""
    begin = time.monotonic()
    child = subprocess.Popen([benanza, "profile", "show", "--json", path], stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    took = time.monotonic() - begin
    if status:
        sys.exit("%s failed on %s" % (benanza, path))
    return json.loads(out), took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6


def timed(summary, path):
    usage, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    result = summary(path)
    took, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_SELF)
    return result, took, after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime


def by_pandas(path):
    """Count and time of kernels by name, and the kernel time of each iteration."""
    import pandas
    db = sqlite3.connect(path)
    kernels = pandas.read_sql("SELECT k.start, k.end, s.value AS name, r.start AS launched FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                              "JOIN StringIds s ON s.id = k.shortName JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)", db)
    kernels["time"] = kernels.end - kernels.start
    top = kernels.groupby("name").time.agg(["count", "sum"]).sort_values("sum", ascending=False)
    kernels = kernels.sort_values("launched")
    kernels["iteration"] = (kernels.launched.diff() > 50000).cumsum()
    return {n: tuple(r) for n, r in zip(top.index, top.values.tolist())}, kernels.groupby("iteration").time.sum().tolist()


def by_python(path):
    db = sqlite3.connect(path)
    top, busy, last = {}, [0], None
    for start, end, name, launched in db.execute("SELECT k.start, k.end, s.value, r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s "
                                                 "ON s.id = k.shortName JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) ORDER BY r.start"):
        count, total = top.get(name, (0, 0))
        top[name] = (count + 1, total + end - start)
        if last is not None and launched - last > 50000:
            busy.append(0)
        busy[-1] += end - start
        last = launched
    return top, busy


def compare(benanza, path, runs):
    """All in turns; the summaries must be the same."""
    peers = {"sqlite3 and pandas": by_pandas, "sqlite3 and plain Python": by_python}
    try:
        import pandas  # noqa: F401
    except ImportError:
        del peers["sqlite3 and pandas"]
        print("  pandas is not installed: that peer is missing")
    times = {name: [] for name in peers}
    ours = []
    for _ in range(runs):
        result, wall, cpu, _ = read(benanza, path)
        ours.append((wall, cpu))
        for name, summary in peers.items():
            (top, busy), wall, cpu = timed(summary, path)
            times[name].append((wall, cpu))
            if [round(i["kernel_time"] * 1e9) for i in result["iterations"]["each"]] != busy:
                sys.exit("%s finds other iterations" % name)
            steady = {k["name"]: k["count"] for k in result["kernels"]}
            warm = result["iterations"]["warm_up"]
            if any(top[k][0] != n + warm * (top[k][0] // len(busy)) for k, n in steady.items()):
                sys.exit("%s counts other kernels" % name)
    wall, cpu = (statistics.median(t[i] for t in ours) for i in (0, 1))
    print("  benanza: wall %.3f s, processor %.3f s" % (wall, cpu))
    for name, t in times.items():
        w, c = (statistics.median(x[i] for x in t) for i in (0, 1))
        print("  %s: wall %.2f s, %.1f times as long; processor %.2f s, %.1f times as long" % (name, w, w / wall, c, c / cpu))


LOAD = """import json, sys, time
f, wall, cpu = open(sys.argv[1]), time.monotonic(), time.process_time()
json.load(f)
print(time.monotonic() - wall, time.process_time() - cpu)"""


def compare_json(benanza, path, runs):
    """In turns: the whole process, and Python's json.load alone, which makes nothing of what it reads, in a process of its own."""
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(read(benanza, path)[1:3])
        theirs.append([float(v) for v in subprocess.check_output([sys.executable, "-c", LOAD, path]).split()])
    (wall, cpu), (w, c) = ([statistics.median(t[i] for t in times) for i in (0, 1)] for times in (ours, theirs))
    print("  benanza: wall %.3f s, processor %.3f s" % (wall, cpu))
    print("  json.load: wall %.2f s, %.1f times as long; processor %.2f s, %.1f times as long" % (w, w / wall, c, c / cpu))


def main():
    benanza, millions = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "export.sqlite")
        events = make_export(path, int(millions * 1e6))
        read(benanza, path)
        result, took, cpu, memory = read(benanza, path)
        print("nsys export: %.1f M events in %.2f s (processor %.2f s): %.2f M events/s, %.2f GB resident, %d iterations"
              % (events / 1e6, took, cpu, events / took / 1e6, memory, result["iterations"]["count"]))
        export = path
        for name, make in (("cuDNN log", make_log), ("Chrome trace", make_chrome)):
            path = os.path.join(folder, "file")
            size = make(path, 200)
            result, took, cpu, memory = read(benanza, path)
            print("%s: %.0f MB in %.2f s (processor %.2f s): %.0f MB/s, %.2f GB resident"
                  % (name, size / 1e6, took, cpu, size / took / 1e6, memory))
        if runs:
            print("Chrome trace, %d times in turns:" % runs)
            compare_json(benanza, path, runs)
        if runs:  # last: what this process takes from here on would count as resident in those that it starts
            print("nsys export, %d times in turns:" % runs)
            compare(benanza, export, runs)


main()
