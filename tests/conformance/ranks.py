#!/usr/bin/python3
"""ranks.py BENANZA: recordings of ranks that never ran, against what Python computes of the same events: none is merged with another."""
import json
import random
import subprocess
import sys
import tempfile

benanza = sys.argv[1]
work = tempfile.mkdtemp()
failures = 0
COMPUTE, REDUCE = "ampere_sgemm_128x64_tn", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def check(what, got, wanted, by=0):
    global failures
    if got is None or not abs(got - wanted) <= by:
        failures += 1
        print(f"{what}: {got!r}, not {wanted!r}")


def union(list_):
    total, end = 0, -1
    for a, b in sorted(list_):
        if b > end:
            total += b - max(a, end)
            end = b
    return total


def program(r, ranks, steps, layers):
    """Of each rank its events (ns, on a clock of its own), and what they are: all ranks end a communication at the same time."""
    clock = [r.randrange(10**9, 10**10) for _ in range(ranks)]
    speed = [r.uniform(1, 1.4) for _ in range(ranks)]
    events, truth = [[] for _ in range(ranks)], [{"compute": [], "talk": []} for _ in range(ranks)]
    now = 0
    for step in range(steps):
        begin, free = now, [now] * ranks
        for layer in range(layers):
            ready = []
            for k in range(ranks):
                took = int(speed[k] * (100_000 + 1000 * layer))
                events[k].append(("compute", begin, layer, free[k] + 2000, free[k] + 2000 + took))
                free[k] += 2000 + took
                ready.append(free[k] + 3000)
            done = max(ready) + 50_000
            for k in range(ranks):
                events[k].append(("talk", begin, layer, ready[k], done))
        now = max(done, max(free)) + 200_000
        for k in range(ranks):
            events[k].append(("end", begin, layers, now - 100_000, now))
    return [[(what, begin + clock[k], layer, a + clock[k], b + clock[k]) for what, begin, layer, a, b in events[k]] for k in range(ranks)]


def write(path, list_, rank, device, world, split=None):
    out, c = [], 0
    for what, begin, layer, a, b in list_:
        if what == "end":
            out.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{len(out)}", "pid": 9, "tid": 1, "ts": begin / 1000,
                        "dur": (b - begin) / 1000})
            continue
        c += 1
        out.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 1, "ts": (begin + 10 * c % 1000) / 1000, "dur": 1,
                    "args": {"correlation": c}})
        out.append({"ph": "X", "cat": "kernel", "name": COMPUTE if what == "compute" else REDUCE, "pid": device, "tid": 7, "ts": a / 1000,
                    "dur": (b - a) / 1000, "args": {"correlation": c, "device": device, "stream": 7 if what == "compute" else 20,
                                                    "grid": [1 + layer, 1, 1]}})
    with open(path, "w") as f:
        json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}, "traceEvents": out}, f)


def rows(*arguments):
    p = subprocess.run([benanza, *arguments], capture_output=True, text=True)
    if p.returncode:
        check(f"{arguments}: {p.stderr}", p.returncode, 0)
        return []
    found = json.loads(p.stdout)
    if "ranks" in found:
        return found["ranks"]["rows"]
    return next((t["rows"] for t in found["recordings"][0]["tables"] if t["id"] == "ranks"), [])


for seed in range(40):
    r = random.Random(f"ranks {seed}")
    n, steps, layers = r.randint(2, 8), r.randint(3, 9), r.randint(1, 12)
    all_ = program(r, n, steps, layers)
    paths = [f"{work}/file{seed}_{k}.json" for k in range(n)]
    for k in range(n):
        write(paths[k], all_[k], k, k % 4, n)
    for arguments in (["profile", "show", "--json", *paths], ["analyze", "--json", *sum((["--profile", p] for p in paths), [])]):
        got = rows(*arguments)
        check(f"{seed}: ranks", len(got), n)
        talks = [[b - a for what, _, _, a, b in all_[k] if what == "talk"] for k in range(n)]
        least = [min(t) for t in zip(*talks)]
        for k, row in enumerate(got):
            compute = [(a, b) for what, _, _, a, b in all_[k] if what == "compute"]
            talk = [(a, b) for what, _, _, a, b in all_[k] if what == "talk"]
            ends = [(begin, b) for what, begin, _, _, b in all_[k] if what == "end"]
            span, busy = sum(b - a for a, b in ends), union(compute + talk)
            both = union(compute) + union(talk) - busy
            what = f"{seed}, {arguments[0]}, rank {k}: "
            check(what + "name", row["rank"] == f"rank {k}", True)
            check(what + "device", row["device"], k % 4)
            check(what + "steps", row["steps"], steps)
            for key, wanted in (("step", span), ("busy", busy), ("idle", span - busy), ("compute", union(compute)),
                                ("communication", union(talk)), ("wait", sum(talks[k]) - sum(least))):
                check(what + key, row[key], wanted / steps * 1e-9, 1e-8)
            check(what + "overlap", row["overlap"], both / union(talk), 1e-4)
            check(what + "busy + idle", row["busy"] + row["idle"], row["step"], 1e-12)
print(f"{failures} failures")
sys.exit(1 if failures else 0)
