#!/usr/bin/python3
"""stream.py STREAM BENANZA: what the emulated device records is what a GPU's recording looks like, and its changes change what they
say. Nothing here asks how long something took."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

STREAM, BENANZA = sys.argv[1:]
STEPS = 3


def record(folder, *changes):
    path = os.path.join(folder, "-".join(("stream",) + changes).replace("/", "_") + ".json")
    command = [STREAM, "tiny", "--iterations", str(STEPS), "--launch", "1", "--framework", "1", "--load", "100", "--record", path]
    done = subprocess.run(command + list(changes), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^[0-9.]+$", done.stderr, re.M)) == STEPS, done.stderr
    with open(path) as f:
        return path, json.load(f)["traceEvents"]


def of(events, *categories):
    return [e for e in events if e["cat"] in categories]


def check_structure(events):
    """Every piece of work was launched by the one call with its number, not before that call; streams run in order, one at a time."""
    calls = {e["args"]["correlation"]: e for e in of(events, "cuda_runtime")}
    assert len(calls) == len(of(events, "cuda_runtime"))
    end, order = collections.defaultdict(float), collections.defaultdict(int)
    for e in of(events, "kernel", "gpu_memcpy", "gpu_memset"):
        call, stream = calls[e["args"]["correlation"]], e["args"]["stream"]
        assert e["ts"] >= call["ts"], (e, call)
        assert e["ts"] >= end[stream] - 0.002 and e["args"]["correlation"] >= order[stream], e
        end[stream], order[stream] = e["ts"] + e["dur"], e["args"]["correlation"]
    for call in calls.values():
        if call["name"] == "cudaMemcpy":
            copy, = [e for e in of(events, "gpu_memcpy") if e["args"]["correlation"] == call["args"]["correlation"]]
            assert copy["ts"] + copy["dur"] <= call["ts"] + call["dur"] + 0.002, (copy, call)


def counts(events):
    """Kernels of each name: the same in every step."""
    steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
    assert len(steps) == STEPS
    number = collections.Counter(e["name"] for e in of(events, "kernel"))
    assert all(n % STEPS == 0 for n in number.values()), number
    return {name: n // STEPS for name, n in number.items()}


def exchange(folder, events):
    """Several workers: each exchanges every region once in a step, and all have the sum (the program looks)."""
    work = sorted(of(events, "kernel", "gpu_memset"), key=lambda e: e["args"]["correlation"])
    times = os.path.join(folder, "times")
    with open(times, "w") as f:
        f.writelines("20000\n" for _ in range(len(work) // STEPS))
    for workers, regions in ((2, 1), (3, 1)):
        several = record(folder, "--timed", times, "--workers", str(workers), "--gbps", "8")[1]
        check_structure(several)
        assert counts(several) == counts(events)
        assert sum(e["name"] == "all_reduce" for e in several) == regions * STEPS
    update = sum(n for name, n in counts(events).items() if UPDATE.match(name))
    for option in ((), ("--priority",)):
        pieces = record(folder, "--timed", times, "--workers", "2", "--gbps", "8", "--slice", "0.01", *option)[1]
        assert sum(counts(pieces).values()) == sum(counts(events).values()) - update
        assert sum(e["name"] == "all_reduce" for e in pieces) > 5 * STEPS


def whatif(path, *changes):
    command = [BENANZA, "whatif", "--json", "--force"] + [x for c in changes for x in ("--do", c)] + [path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def predict(folder, path, kernels):
    """The graph has every kernel, its launch and its layer; simulated unchanged it takes what the recording says. Layers of a
    file of gradients are those of the recording."""
    told = whatif(path)
    tasks = told["graph"]["tasks"]
    assert tasks["kernel"] == sum(kernels.values()) and told["graph"]["unlaunched"] == 0, told["graph"]
    assert abs(told["simulated_seconds"] / told["measured_seconds"] - 1) <= told["error"] + 1e-6, told["error"]
    assert {p["name"] for p in told["predictions"] if p["changed"]} >= {"fused-optimizer", "cuda-graph", "restructured-norm"}
    listed = subprocess.run([STREAM, "tiny", "--gradients"], capture_output=True, text=True, check=True).stdout
    gradients = os.path.join(folder, "gradients")
    with open(gradients, "w") as f:
        f.write(listed)
    told = whatif(path, "data-parallel:workers=2,gbps=1,bucket=0,first=0,file=" + gradients)["predictions"][0]
    assert told["changed"] == len(listed.splitlines()), told  # a bucket for each layer
    endless = whatif(path, "data-parallel:workers=2,gbps=1e9,file=" + gradients)["predictions"][0]
    assert endless["seconds"] <= told["seconds"]


def check_beside(events):
    """Gradients of weights have a stream of their own, wait for all that was launched before them, and the update waits for all of them."""
    work = sorted(of(events, "kernel"), key=lambda e: e["args"]["correlation"])
    beside = {e["args"]["stream"] for e in work if "_wgrad " in e["name"]}
    assert len(beside) == 1 and not any(e["args"]["stream"] in beside for e in work if "_wgrad " not in e["name"])
    end = all_end = 0
    for e in work:
        gradient = "_wgrad " in e["name"]
        assert e["ts"] >= (end if gradient else all_end if UPDATE.match(e["name"]) else 0) - 0.002, e
        end = end if gradient else max(end, e["ts"] + e["dur"])
        all_end = max(all_end, e["ts"] + e["dur"])


UPDATE = re.compile(r"elementwise_(mul|addcmul|sqrt|div|addcdiv|add) \d+$")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path, plain = record(folder)
        check_structure(plain)
        kernels = counts(plain)
        phases = collections.Counter(e["name"] for e in of(plain, "user_annotation"))
        assert all(phases[p] == STEPS for p in ("forward", "backward", "optimizer", "load")), phases
        layers = collections.Counter(e["name"] for e in of(plain, "cpu_op"))
        assert layers["conv1"] == 3 * STEPS, layers  # once in each phase

        update = sum(n for name, n in kernels.items() if UPDATE.match(name))
        fused = counts(record(folder, "--fused-optimizer")[1])
        assert update % 7 == 0 and sum(fused.values()) == sum(kernels.values()) - update + 1

        fused = counts(record(folder, "--fuse")[1])
        gone = collections.Counter(kernels) - collections.Counter(fused)
        assert any("elementwise_bias" in name for name in gone) and any("conv_fprop_bias_relu" in name for name in fused)

        fused = counts(record(folder, "--fuse-norm")[1])
        assert sum(fused.values()) < sum(kernels.values())

        events = record(folder, "--graph")[1]
        assert counts(events) == kernels
        assert sum(e["name"] == "cudaGraphLaunch" for e in events) == STEPS
        assert not any(e["name"] == "cudaLaunchKernel" for e in events)

        events = record(folder, "--prefetch")[1]
        check_structure(events)
        assert counts(events) == kernels and len({e["args"]["stream"] for e in of(events, "gpu_memcpy")}) == 2

        events = record(folder, "--streams")[1]
        check_structure(events)
        check_beside(events)
        assert counts(events) == kernels

        exchange(folder, plain)

        told = subprocess.run([BENANZA, "analyze", "--profile", path, "--json"], capture_output=True, text=True)
        assert told.returncode in (0, 4), told.stderr
        assert '"iterations"' in told.stdout, told.stdout[:400]
        predict(folder, path, kernels)
    print("ok: %d kernels in a step" % sum(kernels.values()))


main()
