#!/usr/bin/python3
"""steps.py BENANZA [FIRST COUNT]: are the iterations of programs that never ran found? programs*.py make them from
seeds. Where two numbers of iterations fit and both are said, that counts as found; where nothing tells, a sure answer is wrong."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from random import Random

import programs_mixed
import programs_rooflines
import programs_served
import programs_today
import programs_tuned
import programs_watched
import programs_windows
from programs import CLASSES, Program

benanza = sys.argv[1]
first, count = (int(a) for a in sys.argv[2:4]) if len(sys.argv) > 3 else (900_000, 4 * len(CLASSES))
families = ((Program, CLASSES), (programs_today.Today, programs_today.CLASSES),
            (programs_served.Served, programs_served.CLASSES), (programs_tuned.Tuned, programs_tuned.CLASSES),
            (programs_mixed.Mixed, programs_mixed.CLASSES), (programs_watched.Watched, programs_watched.CLASSES),
            (programs_windows.Windowed, programs_windows.CLASSES),
            (programs_rooflines.Rooflines, programs_rooflines.CLASSES))
only = os.environ.get("CLASS")  # of programs: one alone
keep = os.environ.get("KEEP")  # a folder for those that are wrong
work = tempfile.mkdtemp()
right, tried, first_said = collections.Counter(), collections.Counter(), collections.Counter()

def is_right(program, found, said):
    truth = program.truth
    wanted = truth["steps"] if isinstance(truth["steps"], tuple) else (truth["steps"],)
    both = next((c["text"] for c in said if "more than one number of iterations fits" in c["text"]), None)
    if truth.get("unknown"):
        return both is not None
    if found["count"] not in wanted:
        other = re.search(r"taken, (\d+) of \d+ may be meant", both or "")
        if not other:  # "may be equal layers of fewer, even of a single one"
            return both is not None and (1 in wanted or truth.get("open", False))
        return int(other.group(1)) in wanted
    if "all" in truth and found["count"] != truth["all"] and not any("launch on one device at the same time" in c["text"] for c in said):
        return False
    phases = collections.Counter(e.get("phase") for e in found["each"])
    return "prefill" not in truth or (phases["prefill"] == truth["prefill"] and phases["decode"] == truth["decode"])


def one(make, seed, kind, trace):
    program = make(seed, kind)
    trace = trace or not program.kernel  # an export has no operators
    path = f"{work}/{seed}." + ("json" if trace else "sqlite")
    program.write(path)
    p = subprocess.run([benanza, "profile", "show", "--json", path], capture_output=True, text=True)
    tried[kind] += 1
    if p.returncode not in (0, 4):
        print(f"{seed} {kind}: exit {p.returncode}: {p.stderr}")
        return
    shown = json.loads(p.stdout)
    found = shown["iterations"]
    if is_right(program, found, shown["coverage"]):
        right[kind] += 1
        wanted = program.truth["steps"] if isinstance(program.truth["steps"], tuple) else (program.truth["steps"],)
        first_said[kind] += found["count"] in wanted
    else:
        print(f"{seed} {kind}: {found['count']} ({found['origin']}), not {program.truth}: layers {program.layers}, {len(program.per_layer)} each, "
              f"inputs {program.inputs}, waits {program.waits}, gap {program.gap}, size {program.size}, {len(program.kernel)} kernels")
        if keep:
            os.rename(path, f"{keep}/{os.path.basename(path)}")
            return
    os.unlink(path)


for make, kinds in families:
    if os.environ.get("FAMILY", make.__name__) != make.__name__:
        continue
    for seed in range(first, first + count):
        if not only or only == kinds[seed % len(kinds)]:
            one(make, seed, kinds[seed % len(kinds)], seed // len(kinds) % 2)


def log(path, iterations, calls, tick):
    """A log of cuDNN: starts alone, in ticks of so many microseconds."""
    with open(path, "w") as f:
        at = 0
        for i in range(iterations * len(calls)):
            at += 7
            ticks = at // tick * tick
            f.write(f"\nI! CuDNN (v7603) function {calls[i % len(calls)]}() called:\n"
                    f"i!     alpha: type=CUDNN_DATA_FLOAT; val={i % len(calls) // 2};\n"
                    f"i! Time: 2019-09-29T01:25:{ticks // 10**6:02d}.{ticks % 10**6:06d} (0d+0h+0m+14s since start)\n"
                    "i! Process=24402; Thread=24489; GPU=0; Handle=0x7f74d07e8900; StreamId=(nil) (defaultStream).\n\n")


def logs():
    """No call is lost, and no time is 0 that nobody knows."""
    wrong = 0
    names = ["cudnnConvolutionForward", "cudnnAddTensor", "cudnnActivationForward", "cudnnPoolingForward", "cudnnSoftmaxForward"]
    for seed in range(first, first + 40):
        random = Random(f"log {seed}")
        calls = ["cudnnConvolutionForward"] + [random.choice(names[1:4]) for _ in range(random.randint(2, 60))] + [names[4]]
        n, tick = random.randint(2, 12), random.choice((1, 10, 1000, 1000000))
        log(work + "/a.log", n, calls, tick)
        p = subprocess.run([benanza, "profile", "show", "--json", work + "/a.log"], capture_output=True, text=True)
        found = json.loads(p.stdout)["iterations"]
        times = {e[k] for e in found["each"] for k in ("latency", "library", "gap")} | {found["steady"]["latency"], found["run_kernel_time"]}
        got = [e["calls"] for e in found["each"]]
        if got != [len(calls)] * n or times != {None}:
            print(f"log {seed}: {got} calls, not {n} times {len(calls)}, ticks of {tick} us; times {times}")
            wrong += 1
    return wrong


def matmul(m, n, k, batch=1):
    b = f"{batch}x" if batch > 1 else ""
    layout = "abc" if b else "ab"
    return (f"matmul,gemm:jit,undef,src_f32::blocked:{layout}:f0 wei_f32::blocked:{layout}:f0 dst_f32::blocked:{layout}:f0,,,"
            f"{b}{m}x{k}:{b}{k}x{n}:{b}{m}x{n}")


def decode(random, meets=False):
    """A language model's prompt and tokens as library calls: the shapes of attention grow with the cache, by a token or a few. `meets`: in
    one step the cache has as many tokens as a head has numbers, and both products have one shape (of a single head the projection, too,
    which is not told)."""
    layers, batch, heads = random.randint(1, 24), random.choice((1, 1, 2, 3, 8)), random.choice((2, 4, 12) if meets else (1, 2, 4, 12))
    width = heads * random.choice((32, 64, 80))
    past, n, by = random.randint(2, 200), random.randint(5, 10 if meets else 40), random.choice((1, 1, 1, 2) if meets else (1, 1, 1, 2, 4))
    past = width // heads - by * random.randint(2, n - 2) if meets else past
    loop = random.random() < 0.5  # each head is a call of its own
    calls, at = [], 0
    for step in range(n):
        tokens = past if not step else by
        at += tokens
        for _ in range(layers):
            calls.append(matmul(batch * tokens, 3 * width, width))
            for product in (tokens, at, width // heads), (tokens, width // heads, at):
                calls += [matmul(*product)] * (batch * heads) if loop else [matmul(*product, batch=batch * heads)]
            calls += [matmul(batch * tokens, width, width), matmul(batch * tokens, 4 * width, width), matmul(batch * tokens, width, 4 * width)]
        calls.append(matmul(batch, 32000, width))
    return calls, n


def dense(random):
    """One pass of a network whose layers read what all before them made: sizes grow as in a loop, and there is none."""
    grows, calls, channels = random.choice((12, 24, 32, 48)), [], 64
    for _ in range(random.randint(8, 40)):
        calls += [matmul(784, 4 * grows, channels), matmul(784, grows, 36 * grows)]
        channels += grows
    return calls + [matmul(1, 1000, channels)], None


def grown():
    wrong = 0
    for seed in range(first, first + 80):
        random = Random(f"grown {seed}")
        calls, n = decode(random, meets=seed >= first + 60) if seed % 6 or seed >= first + 60 else dense(random)
        with open(work + "/grown.log", "w") as f:
            f.write("onednn_verbose,info,oneDNN v2.6.3 (commit 52b5f107dd9cf10910aaa19cb47f3abf9b349815)\n")
            f.writelines(f"onednn_verbose,exec,cpu,{c},0.{len(c)}\n" for c in calls)
        p = subprocess.run([benanza, "profile", "show", "--json", work + "/grown.log"], capture_output=True, text=True)
        found = json.loads(p.stdout)["iterations"]["count"]
        if found != n if n else found > 1:
            print(f"grown {seed}: {found} steps, not {n}, of {len(calls)} calls")
            wrong += 1
    return wrong


for kind in (kind for _, kinds in families for kind in kinds):
    if tried[kind]:
        print(f"{kind:14} {right[kind]:4} of {tried[kind]:4}, {first_said[kind]:4} without asking for another number")
short = False
settled, new = ([k for _, family in part for k in family] for part in (families[:-1], families[-1:]))
for kinds, least in ((settled, 0.99), (new, 0.98)):  # the aim is 0.99
    good, all_ = sum(right[k] for k in kinds), sum(tried[k] for k in kinds)
    print(f"{good} of {all_} are right: {100 * good / max(1, all_):.1f} %")
    short |= good < least * all_
wrong = logs()
print(f"{wrong} of 40 logs are wrong")
lost = grown()
print(f"{lost} of 80 logs of calls that grow are wrong")
sys.exit(short or wrong > 0 or lost > 0)
