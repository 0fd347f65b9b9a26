#!/usr/bin/python3
"""Whether the analyzer's advice is worth taking: predicted and achieved gain side by side, on real programs.

    tests/bench/advice.py measure --out DIR [--rounds N] [--seconds S] [--models DIR] [--networks NAME,…] [--operators] [--quiet COMMAND] BENANZA
    tests/bench/advice.py judge --out DIR [--db DIR] [--networks NAME,…] [--operators] BENANZA
    tests/bench/advice.py repeat --out DIR [--networks NAME,…] BENANZA

The networks are bundled ones, run on one thread: in PyTorch (Debian's), eager; and, of what --models has with weights
(scripts/export-models --with-weights --out DIR), in ONNX Runtime (onnxruntime-node by NODE_PATH) as a careless program runs it, with the
graph optimizer switched off.

measure    records each program as it is, and with each change that an advice can ask for; and measures all of them in turns, so that
           drift hits all alike, each time in a process of its own. Nothing is analyzed: what is measured cannot depend on what is
           predicted. --seconds: no further round begins then. --quiet is put before each program: it keeps others away.
judge      analyzes the recordings with the records in DIR (`benanza bound --fuse`, the same with `--cache cold` and with `--dtype bf16`),
           and holds what the advice promises against what was measured. The advices that are held are the first two that can be
           carried out; then, of the recording of the program with each of them taken, the first one (the second round). Models are the bundled
           ones, else those in --models.

repeat     holds what was measured twice, with --operators, against each other: the one as if it were a prediction of the other. No prediction can be
           near more often than that.

A prediction is the median over the recordings; it is a share of the recorded latency, and is that share of the measured one, because one
process may be half again as slow as the next. A row holds where the prediction is off by at most 15 % of what was achieved, or by at
most 3 % of the latency. An advice of the second round makes no program slower than 2 %.

--recorded: against the recorded programs instead, before and after. A program takes other memory anew in each process, as Python's hashes have another
seed in each: the process that is measured is not the one of which the recording tells.

On a shared machine somebody else works on the same core for seconds at a time. The programs see that by copying within the first-level cache
around every iteration; iterations in which it took longer are left out, before and after an advice alike. Where such iterations of a
program are no slower than the others the copy says nothing: then all count.
"""

import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import time

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
MODELS = os.path.join(TESTS, "..", "models")
NETWORKS = "resnet50,mobilenet_v2,resnet18,bert_base,googlenet,mobilenet_v3_large,efficientnet_b0,swin_t,vgg16,gpt2"
ITERATIONS, WARM_UP = 12, 3
DISTURBED = 1.25 # times the least time of the copy
SLOWER = 1.02    # by the median, where the copy says anything; and what an advice may cost that gains nothing
KEEPS = ["MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=-1"] # as the advice "keep-heap" says
OFF, SMALL = 0.15, 0.03 # of what was achieved; of the latency


class Failed(Exception):
    pass


def run(command, accept=(0,), **environment):
    command = ARGUMENTS.quiet.split() + command
    done = subprocess.run(command, capture_output=True, env=dict(os.environ, NEIGHBOUR="1", **environment))
    if done.returncode not in accept:
        raise Failed("%s ended with status %d:\n%s" % (" ".join(command), done.returncode, done.stderr.decode()[-2000:].rstrip()))
    return done


def model_of(network, arguments):
    bundled = os.path.join(MODELS, network + ".onnx")
    return bundled if os.path.exists(bundled) else os.path.join(arguments.models or "", network + ".onnx")


def numbers(done):
    """Milliseconds of the iterations behind the warm-up, and those of the copy around each."""
    lines = re.findall(r"^([\d.]+) ([\d.]+)$", done.stderr.decode(), re.M)
    return [(float(latency), float(copy)) for latency, copy in lines][WARM_UP:]


class PyTorch:
    """tests/programs/advised.py, which knows the changes."""
    name = "PyTorch"
    changes = {"best-implementations": "freeze", "prepack-weights": "freeze", "keep-blocked": "freeze", "fusion": "freeze",
               "bf16": "bf16", "framework-overhead": "trace", "constants": "trace", "keep-heap": "heap"}
    variants = ["", "freeze", "bf16", "trace", "trace bf16", "heap", "heap freeze", "heap bf16"] # "freeze" has "trace" in it

    def __init__(self, network, arguments):
        self.network, self.benanza, self.out = network, arguments.benanza, arguments.out
        self.command = ["/usr/bin/python3", os.path.join(TESTS, "programs", "advised.py"), network, str(ITERATIONS)]

    def path(self, variant, k):
        return os.path.join(self.out, "%s-%s-%s-%d" % (self.network, self.name.replace(" ", ""), variant.replace(" ", "+"), k))

    def recording(self, variant, k):
        path = self.path(variant, k)
        return path if os.path.exists(path) else None

    def record(self, variant, k):
        run([self.benanza, "profile", "--force", "-o", self.path(variant, k), "--"] + self.started(variant))

    def measure(self, variant):
        return numbers(run(self.started(variant)))

    def started(self, variant):
        words = variant.split()
        return (["env"] + KEEPS if "heap" in words else []) + self.command + [w for w in words if w != "heap"]

    def both(self, taken, advice):
        """The variant with this advice taken, too; nothing where it is that already, None where nobody measured it."""
        words = set(taken.split()) | {self.changes[advice]}
        words -= {"trace"} if "freeze" in words else set()
        return next((v for v in self.variants if set(v.split()) == words), None)


class Operators(PyTorch):
    """The same, recorded by PyTorch's own profiler, which knows no library calls."""
    name = "PyTorch operators"

    def path(self, variant, k):
        return super().path(variant, k) + ".json"

    def record(self, variant, k):
        run(self.started(variant), OPERATORS=self.path(variant, k))


class OnnxRuntime(PyTorch):
    """tests/programs/ort.js, which knows the optimizer's levels. A transformer's advice leaves an optimizer out."""
    name = "ONNX Runtime"
    changes = {"keep-blocked": "all", "fusion": "all", "constants": "all"}
    variants = ["", "all"]

    def __init__(self, network, arguments):
        self.network, self.out = network, arguments.out
        self.command = ["node", os.path.join(TESTS, "programs", "ort.js"),
                        os.path.join(arguments.models or "", network + ".onnx"), str(ITERATIONS)]

    def recording(self, variant, k):
        return (glob.glob(self.path(variant, k) + "_*.json") or [None])[0]

    def environment(self, variant):
        layers = json.loads(run([ARGUMENTS.benanza, "layers", "--json", model_of(self.network, ARGUMENTS)]).stdout)[0]["layers"]
        normalized = any(layer["kind"] == "layernorm" for layer in layers)
        return {"LEVEL": variant or "disabled", "WITHOUT": "SkipLayerNormFusion" if variant and normalized else ""}

    def record(self, variant, k):
        for old in glob.glob(self.path(variant, k) + "_*.json"):
            os.unlink(old)
        run(self.command + [self.path(variant, k)], **self.environment(variant))

    def measure(self, variant):
        return numbers(run(self.command, **self.environment(variant)))


def programs(arguments):
    for network in arguments.networks.split(","):
        yield PyTorch(network, arguments)
        if arguments.operators:
            yield Operators(network, arguments)
        if arguments.command == "judge" or arguments.models and os.path.exists(os.path.join(arguments.models, network + ".onnx")):
            yield OnnxRuntime(network, arguments)


# ---- measure ----------------------------------------------------------------------------------------------------------------------


def measure(program, arguments, until):
    """took[variant]: a list of processes, each with its iterations."""
    took = {variant: [] for variant in program.variants if not variant or variant in arguments.changes.split(",")}
    for i in range(arguments.rounds):
        if i and time.monotonic() > until:
            break
        program.record("", i)
        for variant in list(took):
            try:
                took[variant].append(program.measure(variant))
            except Failed as failed:
                if not variant:
                    raise
                print("%s, %s, %s: fails: %s" % (program.network, program.name, variant, str(failed).splitlines()[-1]), flush=True)
                del took[variant]
    for variant in list(took)[1:]:
        program.record(variant, 0)
    with open(program.path("", 0) + ".times", "w") as f:
        json.dump(took, f)
    print("%s, %s: %d rounds" % (program.network, program.name, len(took[""])), flush=True)


# ---- judge ------------------------------------------------------------------------------------------------------------------------


class Times:
    """Of a program's variants, without the iterations that somebody disturbed, where these are slower than the others."""
    def __init__(self, took):
        self.took = took
        self.least = min(copy for processes in took.values() for p in processes for _, copy in p)
        ratios = []
        for processes in took.values():
            quiet, others = ([latency for p in processes for latency, copy in p if (copy < DISTURBED * self.least) == keep]
                             for keep in (True, False))
            if quiet and others:
                ratios.append(statistics.median(others) / statistics.median(quiet))
        self.tells = bool(ratios) and statistics.median(ratios) > SLOWER

    def rounds(self, variant):
        """None for a process of which every iteration was disturbed, where another one was not."""
        kept = [[latency for latency, copy in p if not self.tells or copy < DISTURBED * self.least] for p in self.took[variant]]
        if not any(kept):
            kept = [[latency for latency, _ in p] for p in self.took[variant]]
        return [statistics.median(k) if k else None for k in kept]

    def of(self, variant):
        return statistics.median(r for r in self.rounds(variant) if r)

    def ratio(self, before, after):
        pairs = [b / a for a, b in zip(self.rounds(before), self.rounds(after)) if a and b]
        return statistics.median(pairs) if pairs else self.of(after) / self.of(before)


def is_near(gain, achieved, measured):
    return abs(gain - achieved) <= max(OFF * abs(achieved), SMALL * measured)


class Tally:
    def __init__(self):
        self.rows = self.near = self.held = self.slower = 0

    def row(self, where, advice, predictions, measured, changed):
        gain, low, high = (statistics.median(p[key] / p["recorded"] for p in predictions) * measured for key in ("gain", "low", "high"))
        achieved = measured - changed
        near = is_near(gain, achieved, measured)
        held = low <= achieved <= high
        self.rows, self.near, self.held = self.rows + 1, self.near + near, self.held + held
        off = "%+.0f %%" % (100 * (gain / achieved - 1)) if achieved > 0 else "no gain"
        print("| %s | %s | %.1f ms (%.1f to %.1f) | %.1f ms, from %.1f to %.1f | %s%s%s |" %
              (where, advice, gain, low, high, achieved, measured, changed, off, "" if near else ", **misses**",
               "" if held else ", **outside**"), flush=True)


def analyze(program, recording, arguments):
    done = run([arguments.benanza, "analyze", "--db", arguments.db, "--fuse", "--json", "--profile", recording,
                model_of(program.network, arguments)], (0, 4))
    profile = json.loads(done.stdout)["models"][0]["profiles"][0]
    return profile["latency"], {a["id"]: dict(a, recorded=profile["latency"]) for a in profile["advice"]}


def judge_round(program, taken, recordings, times, tally, most, arguments):
    """The first advices that can be carried out; the variants that they come to."""
    recorded, analyses = zip(*(analyze(program, r, arguments) for r in recordings))
    told = [a for a in analyses[0] if a in program.changes]
    reached = []
    where = "%s %s%s" % (program.name, program.network, ", " + taken if taken else "")
    if not told:
        print("| %s | nothing to carry out; told: %s | | | |" % (where, ", ".join(analyses[0]) or "nothing"), flush=True)
    for advice in told:
        variant = program.both(taken, advice)
        predictions = [a[advice] for a in analyses if advice in a]
        if variant == taken:
            print("| %s | %s: **is told what it does** | | | |" % (where, advice), flush=True)
            tally.slower += 1
        if variant is None or variant == taken or variant in reached or len(reached) == most:
            continue
        if variant not in times.took:
            print("| %s | %s (%s) | | fails, or was not measured | |" % (where, variant, advice), flush=True)
            continue
        before, after = times.of(taken), times.of(variant)
        if arguments.recorded:
            if not program.recording(variant, 0):
                continue
            before, after = 1e3 * statistics.median(recorded), 1e3 * analyze(program, program.recording(variant, 0), arguments)[0]
        reached.append(variant)
        if taken and times.ratio(taken, variant) > SLOWER:
            tally.slower += 1
        numbers_told = [p for p in predictions if p["gain"] is not None] # of some recordings nobody may know
        if not numbers_told:
            print("| %s | %s (%s) | no number | %.1f ms, from %.1f to %.1f | |" %
                  (where, variant, advice, before - after, before, after), flush=True)
        else:
            tally.row(where, "%s (%s)" % (variant, advice), numbers_told, before, after)
        if arguments.why:
            print("    %s" % predictions[0]["evidence"], flush=True)
    return reached


def judge(program, tally, arguments):
    path = program.path("", 0) + ".times"
    if not os.path.exists(path):
        return
    with open(path) as f:
        times = Times(json.load(f))
    recordings = [r for r in (program.recording("", k) for k in range(arguments.rounds)) if r]
    for variant in judge_round(program, "", recordings, times, tally, 2, arguments):
        if program.recording(variant, 0):
            judge_round(program, variant, [program.recording(variant, 0)], times, tally, 1, arguments)


# ---- repeat -----------------------------------------------------------------------------------------------------------------------


def repeat(arguments):
    """Each change of each program, by itself and where its memory is kept."""
    rows = near = 0
    print("| program | change | once | again | off by |\n|---|---|---|---|---|")
    for network in arguments.networks.split(","):
        paths = [kind(network, arguments).path("", 0) + ".times" for kind in (PyTorch, Operators)]
        if not all(map(os.path.exists, paths)):
            continue
        once, again = [Times(json.load(open(path))) for path in paths]
        for before, after in [("", v) for v in once.took if v] + [("heap", v) for v in once.took if v.startswith("heap ")]:
            if before not in again.took or after not in again.took:
                continue
            measured, achieved = again.of(before), again.of(before) - again.of(after)
            gain = (1 - once.of(after) / once.of(before)) * measured
            held = is_near(gain, achieved, measured)
            rows, near = rows + 1, near + held
            off = "%+.0f %%" % (100 * (gain / achieved - 1)) if achieved > 0 else "no gain"
            print("| %s%s | %s | %.1f ms | %.1f ms, from %.1f to %.1f | %s%s |" %
                  (network, before and ", " + before, after, gain, achieved, measured, again.of(after), off, "" if held else ", **misses**"))
    print("%d rows: %d near" % (rows, near))
    return 0


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["measure", "judge", "repeat"])
    parser.add_argument("--out", required=True, metavar="DIR", help="where recordings and times are")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1e9, metavar="S", help="no further round begins behind so many")
    parser.add_argument("--db", default=os.path.join(TESTS, "..", "build", "advice-db"), metavar="DIR")
    parser.add_argument("--networks", default=NETWORKS, metavar="NAME,NAME…")
    parser.add_argument("--models", metavar="DIR", help="models with weights, for ONNX Runtime")
    parser.add_argument("--operators", action="store_true", help="PyTorch's programs also by recordings of operators alone")
    parser.add_argument("--quiet", default="", metavar="COMMAND")
    parser.add_argument("--changes", default="freeze,bf16,trace,trace bf16,heap,all", metavar="NAME,…", help="that are measured, of those there are")
    parser.add_argument("--recorded", action="store_true", help="hold advices against what the recorded processes took")
    parser.add_argument("--why", action="store_true", help="print the evidence of each advice")
    parser.add_argument("benanza")
    ARGUMENTS = arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    tally, begin, n = Tally(), time.monotonic(), 0
    if arguments.command == "repeat":
        return repeat(arguments)
    if arguments.command == "measure":
        every = list(programs(arguments))
        for n, program in enumerate(every):
            measure(program, arguments, begin + arguments.seconds * (n + 1) / len(every))
        return 0
    print("| program | advice | predicted | achieved | off by |\n|---|---|---|---|---|")
    for program in programs(arguments):
        judge(program, tally, arguments)
    print("%d rows: %d near, %d within their intervals; %d of the second round slower, or told what was done" %
          (tally.rows, tally.near, tally.held, tally.slower))
    return 0 if tally.near >= 0.9 * tally.rows and tally.held >= 0.85 * tally.rows and not tally.slower else 1


if __name__ == "__main__":
    sys.exit(main())
