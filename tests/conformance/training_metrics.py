#!/usr/bin/python3
"""training_metrics.py BENANZA SHARED: the tables of a training run against what Python counts in the same recordings.

A Kineto trace of ResNet-50 (batch 32): iterations by their marks, kernels by the operators that launched them, operations by the shapes of the
backward pass, and the whole against the network's known number of multiply-adds. An export of Nsight Systems of two H100s, which tells no shapes."""
import collections
import gzip
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile

benanza, shared = sys.argv[1:3]
kineto, nsys = (os.path.join(shared, *p) for p in (("kineto", "resnet50_profiler_api_num_workers_0.json.gz"), ("nsys", "h100_2gpu_1s.sqlite.gz")))
if not (os.path.exists(kineto) and os.path.exists(nsys)):
    print("skipped: the recordings are not there")
    sys.exit(77)


def table(path, name, *more):
    done = subprocess.run([benanza, "profile", "tables", path, "--table", name, "--json", *more], capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr
    return json.loads(done.stdout)["tables"][0]["rows"]


def near(what, got, wanted, tolerance=1e-9):
    assert got is not None and math.isclose(got, wanted, rel_tol=tolerance), f"{what}: {got}, counted {wanted}"


def union(spans):
    total, end = 0, -math.inf
    for a, b in sorted(spans):
        total += max(0, b - max(a, end))
        end = max(end, b)
    return total


def product(dims):
    return math.prod(dims)


# ---- Kineto: microseconds

events = [e for e in json.load(gzip.open(kineto))["traceEvents"] if e.get("ph") == "X"]
steps = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("ProfilerStep#"))
operators = sorted((e for e in events if e.get("cat") == "Operator"), key=lambda e: (e["tid"], e["ts"], -e["dur"]))
launches = {e["args"]["correlation"]: e for e in events if e.get("cat") == "Runtime" and "correlation" in e.get("args", {})}
kernels = [e for e in events if e.get("cat") == "Kernel"]

stack, around = [], {}
for k, o in enumerate(operators):
    while stack and (operators[stack[-1]]["tid"] != o["tid"] or operators[stack[-1]]["ts"] + operators[stack[-1]]["dur"] <= o["ts"]):
        stack.pop()
    around[k] = stack[-1] if stack else None
    stack.append(k)

results = {}  # of a forward convolution, by its operands: its backward operator has the result's gradient
for o in operators:
    if o["name"] == "aten::cudnn_convolution_backward":
        x, dy, w = o["args"]["Input dims"][:3]
        results[str((x, w))] = dy


def operations(k):
    """2 for each multiply-add, by the definition of each product."""
    dims, name = operators[k]["args"]["Input dims"], operators[k]["name"]
    if name == "aten::_convolution":
        dy = results.get(str((dims[0], dims[1])))
        return 2 * product(dy) * product(dims[1][1:]) if dy else None
    if name in ("aten::cudnn_convolution_backward_input", "aten::cudnn_convolution_backward_weight"):
        _, dy, w = operators[around[k]]["args"]["Input dims"][:3]
        return 2 * product(dy) * product(w[1:])
    if name in ("aten::mm", "aten::addmm"):
        a, b = dims[-5 + 1:-5 + 3] if name == "aten::addmm" else dims[:2]
        return 2 * a[0] * a[1] * b[1]
    return None


first = steps[0][0]
by_thread = collections.defaultdict(list)
for k, o in enumerate(operators):
    by_thread[o["tid"]].append(k)
innermost = {}  # of a launch: the operator that began last and has not ended
for tid, list_of in by_thread.items():
    own = sorted((e for e in launches.values() if str(e["tid"]) == str(tid)), key=lambda e: e["ts"])
    stack, at = [], 0
    for e in own:
        while at < len(list_of) and operators[list_of[at]]["ts"] <= e["ts"]:
            stack.append(list_of[at])
            at += 1
        while stack and operators[stack[-1]]["ts"] + operators[stack[-1]]["dur"] < e["ts"]:
            stack.pop()
        candidates = [k for k in stack if operators[k]["ts"] + operators[k]["dur"] >= e["ts"]]
        innermost[e["args"]["correlation"]] = candidates[-1] if candidates else None

last = max([steps[-1][1]] + [e["ts"] + e["dur"] for e in kernels if steps[0][0] <= launches.get(e["args"]["correlation"], {"ts": math.inf})["ts"] < steps[-1][1]])
longest = {}
for i, e in enumerate(kernels):
    k = innermost.get(e["args"]["correlation"])
    while k is not None and operations(k) is None:
        k = around[k]
    if k is not None and (k not in longest or e["dur"] > kernels[longest[k]]["dur"]):
        longest[k] = i
work = {i: operations(k) for k, i in longest.items()}
inside = [i for i, e in enumerate(kernels) if first <= e["ts"] < last]

row = table(kineto, "training")[0]
seconds = (last - first) * 1e-6
assert row["iterations"] == len(steps) == 6 and row["batch"] == 32, row
near("iterations a second", row["rate"], 6 / seconds)
near("samples a second", row["samples"], 6 * 32 / seconds)
near("busy", row["busy_share"], union((kernels[i]["ts"], min(last, kernels[i]["ts"] + kernels[i]["dur"])) for i in inside) / (last - first))
flops = sum(work.get(i, 0) for i in inside)
near("operations", row["flops"], flops / 6)
near("operations told", row["known_share"], sum(kernels[i]["dur"] for i in inside if i in work) / sum(kernels[i]["dur"] for i in inside))
# 4.089 G multiply-adds for an image forward, as many for each gradient; the first layer's input wants none
near("operations of ResNet-50", row["flops"], 32 * 2 * (3 * 4.089e9 - 0.118e9), 2e-3)

names = collections.defaultdict(lambda: [0, 0, 0])
for i in inside:
    n = names[kernels[i]["name"]]
    n[0] += 1
    n[1] += kernels[i]["dur"]
    n[2] += work.get(i, 0)
all_time = sum(n[1] for n in names.values())
worth = sorted((n for n in names.values() if n[2] / n[1] < flops / all_time), key=lambda n: -n[1])[:5]
rows = table(kineto, "training-kernels")
assert len(rows) == 5
for got, wanted in zip(rows, worth):
    near(got["name"] + " times", got["count"], wanted[0] / 6)
    near(got["name"] + " share", got["share"], wanted[1] / all_time)
    if got["flops_rate"] is not None:
        near(got["name"] + " rate", got["flops_rate"], wanted[2] / (wanted[1] * 1e-6))
checks = {c["check"]: c for c in table(kineto, "training-checks")}
assert checks["the device is busy"]["verdict"] == "does not hold" and checks["communication is hidden"]["verdict"] == "holds", checks
near("found busy", checks["the device is busy"]["found"], row["busy_share"])
both = table(kineto, "training", "--against", kineto)
assert [r["recording"] for r in both] == ["this", "against"] and both[0]["samples"] == both[1]["samples"], both

# ---- Nsight Systems: no iterations, no shapes: the sample is all of the recording

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "h100.sqlite")
    with gzip.open(nsys) as f, open(path, "wb") as out:
        out.write(f.read())
    list_of = sqlite3.connect(path).execute("SELECT deviceId, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
begin, end = min(r[1] for r in list_of), max(r[2] for r in list_of)
for got in table(nsys, "training"):
    near("H100 busy", got["busy_share"], union(r[1:] for r in list_of if str(r[0]) == got["device"]) / (end - begin))
    assert got["iterations"] is None and got["flops"] is None
assert table(nsys, "training-kernels") == []
print(f"ResNet-50: {row['samples']:.1f} images a second, busy {row['busy_share']:.1%}, {row['flops'] / 1e9:.0f} G operations an iteration: as counted")
