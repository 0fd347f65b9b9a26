#!/usr/bin/env python3
"""How fast profiles are read: profile_read.py BENANZA [MILLION_KERNELS]

Makes synthetic recordings (an Nsight Systems export with as many launches as kernels, a cuDNN log, a Chrome trace), reads
each with `benanza profile show --json`, and prints events or bytes per second and the resident memory. The same summary of the
export (time and count by kernel, per-iteration device-busy time) is then made by Python's sqlite3 and pandas, where pandas is
installed."""

import json
import os
import sqlite3
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
    begin = time.monotonic()
    child = subprocess.Popen([benanza, "profile", "show", "--json", path], stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    took = time.monotonic() - begin
    if status:
        sys.exit("%s failed on %s" % (benanza, path))
    return json.loads(out), took, usage.ru_maxrss / 1e6


def by_pandas(path):
    import pandas
    begin = time.monotonic()
    db = sqlite3.connect(path)
    kernels = pandas.read_sql("SELECT k.start, k.end, s.value AS name, r.start AS launched FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                              "JOIN StringIds s ON s.id = k.shortName JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)", db)
    kernels["time"] = kernels.end - kernels.start
    kernels.groupby("name").time.agg(["count", "sum"]).sort_values("sum", ascending=False)
    kernels = kernels.sort_values("launched")
    kernels["iteration"] = (kernels.launched.diff() > 50000).cumsum()
    kernels.groupby("iteration").time.sum().describe()
    return time.monotonic() - begin


def by_python(path):
    begin = time.monotonic()
    db = sqlite3.connect(path)
    top, busy, last, iteration = {}, [0], None, 0
    for start, end, name, launched in db.execute("SELECT k.start, k.end, s.value, r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s "
                                                 "ON s.id = k.shortName JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) ORDER BY r.start"):
        count, total = top.get(name, (0, 0))
        top[name] = (count + 1, total + end - start)
        if last is not None and launched - last > 50000:
            busy.append(0)
        busy[-1] += end - start
        last = launched
    sorted(top.items(), key=lambda t: -t[1][1])
    return time.monotonic() - begin


def main():
    benanza, millions = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "export.sqlite")
        events = make_export(path, int(millions * 1e6))
        result, took, memory = read(benanza, path)
        print("nsys export: %.1f M events in %.2f s: %.2f M events/s, %.2f GB resident, %d iterations"
              % (events / 1e6, took, events / took / 1e6, memory, result["iterations"]["count"]))
        try:
            other = by_pandas(path)
            print("  sqlite3 and pandas: %.2f s, %.1f times as long" % (other, other / took))
        except ImportError:
            other = by_python(path)
            print("  sqlite3 and plain Python (pandas is not installed): %.2f s, %.1f times as long" % (other, other / took))
        os.unlink(path)
        for name, make in (("cuDNN log", make_log), ("Chrome trace", make_chrome)):
            path = os.path.join(folder, "file")
            size = make(path, 200)
            result, took, memory = read(benanza, path)
            print("%s: %.0f MB in %.2f s: %.0f MB/s, %.2f GB resident" % (name, size / 1e6, took, size / took / 1e6, memory))


main()
