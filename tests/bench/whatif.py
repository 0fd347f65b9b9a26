#!/usr/bin/python3
"""Whether what `benanza whatif` predicts comes true: predicted and achieved side by side, on the emulated device.

    tests/bench/whatif.py [--networks NAME,NAME…] [--rounds N] [--quiet COMMAND] [--changes NAME,…] STREAM BENANZA

STREAM is tests/programs/stream, which trains networks on a device made of a processor core, as they are or changed. For each network the
plain program is recorded; `benanza whatif` predicts each change from that recording; then plain and changed programs are measured in
turns. One process may be faster than the next: what is compared is the ratio of plain to changed, medians over all rounds.

Numbers of kernels that the change makes others come from measurements, as they would from a database: each kernel alone, before and
after (STREAM --time). From the plain program come its recording and nothing else.

--quiet is put before each measuring command: it keeps other programs away. A row holds where |predicted / achieved - 1| of the changed
program's time is at most 8 %."""

import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HOLDS = 0.08
NETWORKS = "resnet18,mlp,mobilenet,vgg11,bert,vit,lstm,resnet50"
ITERATIONS = 9
CHEAP = ["--launch", "0.5", "--framework", "0"]  # of workers, whose host has little to do


class Bench:
    def __init__(self, arguments, network, folder):
        self.stream, self.benanza, self.quiet = arguments.stream, arguments.benanza, (arguments.quiet or "").split()
        self.network, self.folder, self.rounds = network, folder, arguments.rounds

    def path(self, name):
        return os.path.join(self.folder, self.network + name)

    def run(self, *options, quiet=True):
        command = (self.quiet if quiet else []) + [self.stream, self.network] + [str(o) for o in options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit("%s: %s" % (" ".join(command), done.stderr[-2000:]))
        return done

    def steps(self, *options):
        done = self.run("--iterations", ITERATIONS, *options)
        return [float(v) for v in re.findall(r"^([0-9.]+)$", done.stderr, re.M)]

    def record(self, name, *options):
        """Of three recordings the one of median latency: one process may be faster than the next."""
        made = []
        for k in range(3):
            path = self.path("%s.%d.json" % (name, k))
            made.append((statistics.median(self.steps("--record", path, *options)), path))
        return sorted(made)[1][1]

    def whatif(self, recording, *changes):
        command = [self.benanza, "whatif", "--json"] + [x for c in changes for x in ("--do", c)] + [recording]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr.strip()
        told = json.loads(done.stdout)
        return told, ""

    def times(self, *options):
        """Seconds of each kernel alone, by its name."""
        lines = [line.split("\t") for line in self.run("--time", *options).stdout.splitlines()]
        return {name: float(seconds) for name, _, seconds in lines}

    def calls(self):
        """How many calls of a step each kernel has."""
        return {name: int(n) for name, n, _ in (line.split("\t") for line in self.run("--time").stdout.splitlines())}

    def turns(self, plain, changed):
        """Medians of both, in milliseconds, and of the ratios of the rounds."""
        before, after, ratios = [], [], []
        for _ in range(self.rounds):
            b, a = statistics.median(self.steps(*plain)), statistics.median(self.steps(*changed))
            before.append(b)
            after.append(a)
            ratios.append(a / b)
        return statistics.median(before), statistics.median(after), statistics.median(ratios)


def policy(bench, name, lines):
    path = bench.path("." + name)
    with open(path, "w") as f:
        f.writelines(line + "\n" for line in lines)
    return path


def step_durations(bench, recording, lines=False):
    """Nanoseconds of each call of a step, medians over the steps, for --timed: the path of a file, or its lines."""
    with open(recording) as f:
        events = json.load(f)["traceEvents"]
    steps = sum(e["name"].startswith("ProfilerStep#") for e in events)
    work = sorted((e for e in events if e["cat"] in ("kernel", "gpu_memset")), key=lambda e: e["args"]["correlation"])
    n = len(work) // steps
    times = ["%d" % (1e3 * statistics.median(work[s * n + i]["dur"] for s in range(steps))) for i in range(n)]
    return times if lines else policy(bench, "times", times)


def gradients(bench):
    return policy(bench, "gradients", bench.run("--gradients", quiet=False).stdout.splitlines())


# ---- changes: each gives options of the plain program, of the changed one, and what is asked of the prediction ----


def in_sequence(recording):
    """Seconds of each kernel within a step, by its name: medians, since one that another process interrupted takes thousands of times as long."""
    times = collections.defaultdict(list)
    with open(recording) as f:
        for e in json.load(f)["traceEvents"]:
            if e["cat"] == "kernel":
                times[e["name"]].append(1e-6 * e["dur"])
    return {name: statistics.median(all) for name, all in times.items()}


def records(bench, recording, options, rename=lambda name: name, bytes=1):
    """Lines of a policy: each kernel takes what it takes alone in the changed program, and what it took in sequence beyond what
    it takes alone, since its data come from farther away: for each byte."""
    within, before, after = in_sequence(recording), bench.times(), bench.times(*options)
    return ["time-kernel %s %.6g" % (name, 1e6 * (after[rename(name)] + bytes * max(0, within[name] - seconds)))
            for name, seconds in before.items() if rename(name) in after]


def bf16(bench, recording):
    return [], ["--bf16"], ["substitution:file=" + policy(bench, "bf16", records(bench, recording, ["--bf16"], bytes=0.5))]


def fusion(bench, recording):
    def fused(name):
        return name.replace("conv_fprop ", "conv_fprop_bias_relu ")
    before, lines = bench.times(), []
    if not any(name.startswith("elementwise_bias") for name in before):
        return None
    for name in before:  # ReLU of images stands behind a convolution's bias
        if re.match(r"elementwise_(bias|relu) \d+x\d+x\d+x\d+$", name):
            lines.append("remove-kernel " + name)
    lines += [line for line in records(bench, recording, ["--fuse"], fused) if "conv_fprop" in line]
    return [], ["--fuse"], ["substitution:file=" + policy(bench, "fusion", lines)]


def fused_norms(bench, recording):
    """Batch normalization and the ReLU behind it as one call, forward and backward. Kernels are told by their names, so only where no
    normalization of such a shape stays alone."""
    def fused(name):
        return re.sub(r"^(batch_norm_(forward|backward)) ", r"\1_relu ", name)
    before, after = bench.times(), bench.times("--fuse-norm")
    norms = [name for name in before if name.startswith("batch_norm")]
    if not norms or any(name in after for name in norms):
        return None
    lines = ["remove-kernel " + name for name in before if re.match(r"elementwise_relu", name) and name not in after]
    lines += [line for line in records(bench, recording, ["--fuse-norm"], fused) if "batch_norm" in line]
    return [], ["--fuse-norm"], ["substitution:file=" + policy(bench, "norms", lines)]


def fused_optimizer(bench, recording):
    within, calls = in_sequence(recording), bench.calls()
    parts = sum(calls[name] * seconds for name, seconds in within.items()
                if re.match(r"elementwise_(mul|addcmul|sqrt|div|addcdiv|add) \d+$", name))
    one, = [s for name, s in bench.times("--fused-optimizer").items() if name.startswith("multi_tensor_apply")]
    return [], ["--fused-optimizer"], ["fused-optimizer:time=%.6g" % min(1, one / parts)]


def graph(bench, recording):
    with open(recording) as f:
        work = sorted((e for e in json.load(f)["traceEvents"] if e["cat"] == "kernel"), key=lambda e: e["ts"])
    gaps = sorted(b["ts"] - a["ts"] - a["dur"] for a, b in zip(work, work[1:]))
    return [], ["--graph"], ["cuda-graph:node=%.3f" % max(0, gaps[len(gaps) // 4])]  # of a stream that has more to do


def cheap_launches(bench, _):
    return [], ["--launch", "2"], ["substitution:file=" + policy(bench, "launch", ["scale-call cudaLaunchKernel %.6g" % (2 / 6)])]


def copies(bench, _):
    slow = ["--link", "50"]
    return slow, slow + ["--prefetch"], ["copies-overlapped"]


def faster_link(bench, _):
    return ["--link", "50"], ["--link", "100"], ["link:times=2"]


SLOW_HOST = ["--launch", "20", "--framework", "10"]  # the host is the slower side, or near to it


def slow_host_launches(bench, _):
    """Launches cost the host a quarter."""
    asked = "substitution:file=" + policy(bench, "slow", ["scale-call cudaLaunchKernel 0.25"])
    return SLOW_HOST, ["--launch", "5", "--framework", "10"], [asked]


def slow_host_graph(bench, recording):
    plain = bench.record(".slow", *SLOW_HOST)
    return SLOW_HOST, SLOW_HOST + ["--graph"], graph(bench, recording)[2], plain


def items(bench, _):
    """Twice the images, without a record: what kernels take above the shortest one grows with them."""
    if not re.search(r"conv", " ".join(bench.times())):
        return None
    return [], ["--items", "2"], ["batch:times=2"]


def carried(bench, n, recording):
    """Gbit/s that n workers can send each, all at once, where nothing limits them and kernels take no time."""
    idle = CHEAP + ["--timed", policy(bench, "idle", ["0"] * len(step_durations(bench, recording, lines=True)))]
    bits = 8 * sum(float(line.split("\t")[1]) for line in bench.run("--gradients").stdout.splitlines()) * 2 * (n - 1) / n
    alone, together = (statistics.median(bench.steps(*idle, *more)) for more in ([], ["--workers", n, "--gbps", 1000]))
    return bits / max(together - alone, 1e-3) / 1e6


def workers(n, gbps, ratio=1):
    def change(bench, _):
        """Kernels of all workers take what they took in the recording, without a core of their own."""
        recording = bench.record(".cheap", *CHEAP)
        can = carried(bench, n, recording)
        if can < gbps:
            return "unlimited, %d workers send %.1f Gbit/s each" % (n, can)
        timed = CHEAP + ["--timed", step_durations(bench, recording)]
        recording = bench.record(".alone", *timed)
        asked = ["data-parallel:workers=%d,gbps=%g,bucket=25,first=25,efficiency=1,file=%s" % (n, gbps, gradients(bench))]
        if ratio < 1:
            asked.append("gradient-compression:ratio=%g,gbs=4,compress=3,decompress=1" % ratio)
        return timed, timed + ["--workers", n, "--gbps", gbps, "--compress", ratio], asked, recording
    return change


def streams(bench, _):
    """Gradients of weights on a stream of their own, beside those of data: a script moves their kernels. Both take what they took, as on a device that
    has room for both."""
    timed = CHEAP + ["--timed", step_durations(bench, bench.record(".cheap", *CHEAP))]
    script = policy(bench, "streams", ["lane beside stream", "select kind=kernel name=_wgrad", "insert-before kernel fork 0", "keep F",
                                       "select kind=kernel name=_wgrad", "move beside", "depend F", "keep W",
                                       "select kind=kernel phase=update", "first 1", "depend W"])
    return timed, timed + ["--streams"], ["script:file=" + script], bench.record(".alone", *timed)


def slices(n, gbps, priority):
    def change(bench, _):
        pieces = ["--slice", "0.5"]
        recording = bench.record(".slice", *(CHEAP + pieces))
        timed = CHEAP + pieces + ["--timed", step_durations(bench, recording)]
        recording = bench.record(".alone", *timed)
        asked = "priority-exchange:workers=%d,gbps=%g,slice=0.5,priority=%d,file=%s" % (n, gbps, priority, gradients(bench))
        return timed, timed + ["--workers", n, "--gbps", gbps] + ["--priority"] * priority, [asked], recording
    return change


CHANGES = {"bf16": bf16, "fusion": fusion, "fused norms": fused_norms, "fused optimizer": fused_optimizer, "one graph": graph, "cheaper launches": cheap_launches,
           "copies overlapped": copies, "link twice as fast": faster_link, "slow host, launches at a quarter": slow_host_launches,
           "slow host, one graph": slow_host_graph, "twice the images": items, "two streams": streams, "2 workers, 4 Gbit/s": workers(2, 4), "2 workers, 10 Gbit/s": workers(2, 10),
           "4 workers, 4 Gbit/s": workers(4, 4), "4 workers, 1 Gbit/s": workers(4, 1),
           "2 workers, 1 Gbit/s, a tenth of the bytes": workers(2, 1, 0.1), "2 workers, slices in order, 4 Gbit/s": slices(2, 4, 0),
           "2 workers, slices by priority, 4 Gbit/s": slices(2, 4, 1), "2 workers, slices by priority, 1 Gbit/s": slices(2, 1, 1)}


def judge(bench, name, recording, rows):
    made = CHANGES[name](bench, recording)
    if made is None:
        return
    if isinstance(made, str):
        print("| %s | %s | cannot be measured here: %s |" % (bench.network, name, made), flush=True)
        return
    plain, changed, asked = made[:3]
    if len(made) > 3:
        recording = made[3]
    elif plain:
        recording = bench.record(".plain", *plain)
    told, why = bench.whatif(recording, *asked)
    if not told or not told["predictions"] or not told["predictions"][0]["changed"]:
        print("| %s | %s | no prediction: %s |" % (bench.network, name, why or told["predictions"][0].get("because")), flush=True)
        rows.append((name, None))
        return
    p = told["predictions"][0]
    before, after, ratio = bench.turns(plain, changed)
    predicted = p["seconds"] / told["simulated_seconds"]
    off = predicted / ratio - 1
    rows.append((name, off))
    print("| %s | %s | %.2f | %.2f | %.3f | %.3f | %+.1f %% | %s |" % (
        bench.network, name, before, after, 1 / predicted, 1 / ratio, 100 * off, "ok" if abs(off) <= HOLDS else "DOES NOT HOLD"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--changes", default=",".join(name.replace(",", ";") for name in CHANGES), help="names, ';' for ','")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quiet", help="a command to put before those that measure")
    parser.add_argument("stream")
    parser.add_argument("benanza")
    arguments = parser.parse_args()
    rows = []
    print("| network | change | before, ms | after, ms | predicted | achieved | off | |\n|---|---|---|---|---|---|---|---|")
    for network in arguments.networks.split(","):
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(arguments, network, folder)
            recording = bench.record(".plain0")
            for name in arguments.changes.split(","):
                judge(bench, name.replace(";", ","), recording, rows)
    known = [abs(off) for _, off in rows if off is not None]
    if known:
        print("%d of %d rows hold; median %.1f %%, worst %.1f %%" % (
            sum(off <= HOLDS for off in known), len(rows), 100 * statistics.median(known), 100 * max(known)))


main()
