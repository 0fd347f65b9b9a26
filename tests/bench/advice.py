#!/usr/bin/python3
"""Whether the analyzer's advice is worth taking: predicted and achieved gain side by side, on real programs.

    tests/bench/advice.py [--rounds N] [--db DIR] [--networks NAME,NAME…] [--models DIR] BENANZA

ResNet-50, MobileNet-v2, Inception-v3 and a BERT, or the bundled networks named, one thread: in PyTorch (Debian's), eager; and, of what --models has with weights
(scripts/export-models --with-weights --out DIR), in ONNX Runtime (onnxruntime-node by NODE_PATH) as a careless program runs it, with
the graph optimizer switched off. Each network is benchmarked (f32, hot and cold, and bf16, with fusion) where DIR lacks records. In every round each
program is recorded and analyzed as it is, measured as it is, and measured with each of the first two advices that it can carry out:
all take turns, so that drift hits all alike. Predictions are made from recordings of the program as it was alone. One process may be
half again as slow as the next: the gain is predicted as a share of the recorded latency, and is that share of the measured one.

On a shared machine somebody else works on the same core for seconds at a time, which makes one program slower by a fifth and another
less. The programs see that by copying within the first-level cache around every iteration; iterations in which it took longer are left
out, before and after an advice alike, and a recording that has more than a few of them is made again. What all iterations together
would say stands behind. Where such iterations of a program are no slower than the others the copy says nothing: then all count.

ladder     bound <= time in the library <= measured
reorders   calls that bring weights and activations into other layouts, and what they cost
faster     layers that the program did faster than the bound has them, and why
advice     gain predicted, gain achieved (medians over all rounds); they differ by at most 15 % of what was achieved
second     the program with an advice taken, recorded and analyzed anew: what it is told then is nothing that it does already, and
           the first of it that can be carried out makes it no slower (by the median of the rounds' ratios, within 2 %)
"""

import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
MODELS = os.path.join(TESTS, "..", "models")
NETWORKS = "resnet50,mobilenet_v2,inception_v3,bert_base"
BENCHMARKS = ["--fuse"], ["--fuse", "--cache", "cold"], ["--fuse", "--dtype", "bf16"]
ITERATIONS, WARM_UP = 12, 3
RECORDINGS = 6   # at most, for one that is mostly undisturbed
DISTURBED = 1.25 # times the least time of the copy
SLOWER = 1.02    # by the median, where the copy says anything; and what an advice may cost that gains nothing


def run(command, accept=(0,), **environment):
    done = subprocess.run(command, capture_output=True, env=dict(os.environ, NEIGHBOUR="1", **environment))
    if done.returncode not in accept:
        sys.exit("%s ended with status %d:\n%s" % (" ".join(command), done.returncode, done.stderr.decode()[-2000:]))
    return done


def numbers(done):
    """Milliseconds of the iterations behind the warm-up, and those of the copy around each."""
    lines = re.findall(r"^([\d.]+) ([\d.]+)$", done.stderr.decode(), re.M)
    return [(float(latency), float(copy)) for latency, copy in lines][WARM_UP:]


class Quiet:
    """Which iterations nobody disturbed: the copy takes as long as the quickest of all did."""
    def __init__(self):
        self.least = float("inf")

    def see(self, iterations):
        self.least = min([self.least] + [copy for _, copy in iterations])
        return iterations

    def of(self, iterations):
        return [latency for latency, copy in iterations if copy < DISTURBED * self.least]

    def tells(self, groups):
        ratios = []
        for iterations in groups:
            quiet, others = self.of(iterations), [latency for latency, copy in iterations if copy >= DISTURBED * self.least]
            if quiet and others:
                ratios.append(statistics.median(others) / statistics.median(quiet))
        return not ratios or statistics.median(ratios) > SLOWER

    def mostly(self, iterations):
        return len(self.of(iterations)) >= 0.75 * len(iterations)


class PyTorch:
    """tests/programs/advised.py, which knows the changes."""
    name = "PyTorch"
    changes = {"best-implementations": "freeze", "prepack-weights": "freeze", "keep-blocked": "freeze", "fusion": "freeze",
               "bf16": "bf16", "framework-overhead": "trace", "constants": "trace"}
    program = ["/usr/bin/python3", os.path.join(TESTS, "programs", "advised.py")]

    def __init__(self, network, arguments):
        self.command, self.benanza, self.network = self.program + [network, str(ITERATIONS)], arguments.benanza, network

    def record(self, path, change=None):
        if os.path.exists(path):
            os.unlink(path)
        return path, numbers(run([self.benanza, "profile", "-o", path, "--"] + self.command + (change or "").split()))

    def change(self, advice):
        return self.changes[advice["id"]]

    def both(self, first, second):
        """Nothing where the second changes nothing any more."""
        return None if second in first.split() else first + " " + second

    def measure(self, change):
        return numbers(run(self.command + (change or "").split()))


class OnnxRuntime:
    """tests/programs/ort.js, which knows the optimizer's levels."""
    name = "ONNX Runtime"
    changes = {"keep-blocked": "all", "fusion": "all", "constants": "all"}

    def __init__(self, network, arguments):
        self.network = network
        self.command = ["node", os.path.join(TESTS, "programs", "ort.js"),
                        os.path.join(arguments.models, network + ".onnx"), str(ITERATIONS)]

    def record(self, path, change=None):
        for old in glob.glob(path + "*.json"):
            os.unlink(old)
        iterations = numbers(run(self.command + [path], **self.environment(change)))
        return glob.glob(path + "*.json")[0], iterations

    def change(self, advice):
        without = re.search(r'disable_specified_optimizers", "([^"]+)"', advice["step"])
        return self.changes[advice["id"]] + (" without " + without[1] if without else "")

    def both(self, first, second):
        return None if second == first else second

    def environment(self, change):
        level, _, without = (change or "disabled").partition(" without ")
        return {"LEVEL": level, "WITHOUT": without}

    def measure(self, change):
        return numbers(run(self.command, **self.environment(change)))


def analyze(network, trace, arguments):
    model = os.path.join(MODELS, network + ".onnx")
    done = run([arguments.benanza, "analyze", "--db", arguments.db, "--fuse", "--json", "--profile", trace, model], (0, 4))
    return json.loads(done.stdout)["models"][0]


class Report:
    def __init__(self, network, framework):
        self.title, self.good = "%s, %s" % (network, framework), True

    def line(self, what, text, holds=None):
        self.good &= holds is not False
        verdict = {None: "", True: "ok", False: "DOES NOT HOLD"}[holds]
        print("%-24s  %-9s  %-100s  %s" % (self.title, what, text, verdict), flush=True)

    def look(self, analysis):
        """What the first recording shows."""
        profile = analysis["profiles"][0]
        bound, latency = analysis["fused"]["sequential"] * 1e3, profile["latency"] * 1e3
        busy = profile["busy"] * 1e3 if profile["busy"] else latency
        self.line("ladder", "fused bound %.2f ms, as written %.2f ms, in the library %.2f ms, measured %.2f ms" %
                  (bound, analysis["sequential"] * 1e3, busy, latency), bound <= busy <= latency)
        for cause in profile["alignment"]["causes"]:
            if cause["id"].endswith("-reordered"):
                self.line("reorders", "%s: %d, %.2f ms" % (cause["name"], cause["count"], cause["seconds"] * 1e3))
        rows = profile["alignment"]["rows"]
        for faster in profile["alignment"]["faster"][:3]:
            row = rows[faster["row"]]
            self.line("faster", "%s: %.0f µs, records %.0f µs: %s" % (row["layers"][0], row["seconds"] * 1e6, faster["lowest"] * 1e6,
                                                                     faster["why"]))

    def advice(self, name, predictions, before, after, quiet, tells):
        def compare(before, after):
            measured, changed = statistics.median(before), statistics.median(after)
            predicted = [statistics.median(p[key] / p["recorded"] for p in predictions) * measured for key in ("gain", "low", "high")]
            achieved = measured - changed
            return predicted, achieved, measured, changed, predicted[0] / achieved - 1 if achieved > 0 else float("inf")

        undisturbed, everything = (quiet.of(before), quiet.of(after)), [[latency for latency, _ in x] for x in (before, after)]
        if tells and not all(undisturbed):
            return self.line("advice", "%s: nothing was undisturbed" % name, False)
        predicted, achieved, measured, changed, off = compare(*(undisturbed if tells else everything))
        self.line("advice", "%s: predicted %.2f ms (%.2f to %.2f), achieved %.2f ms, from %.2f to %.2f ms: off by %+.0f %%" %
                  (name, *predicted, achieved, measured, changed, off * 100), abs(off) <= 0.15)
        self.line("quiet", "%d of %d iterations before, %d of %d after; off by %+.0f %% with all%s" %
                  (len(undisturbed[0]), len(before), len(undisturbed[1]), len(after), compare(*everything)[-1] * 100,
                   "" if tells else ", which count: the others are no slower"))
        self.line("why", predictions[0]["evidence"])


def second(program, framework, report, change, stem, arguments):
    """The program with a change, recorded and analyzed, told what to do next, and measured with that."""
    trace, _ = program.record("%s-second-%s" % (stem, change.replace(" ", "-")), change)
    profile = analyze(program.network, trace, arguments)["profiles"][0]
    told = [a for a in profile["advice"] if a["id"] in framework.changes]
    name = "after %s: " % change
    if not told:
        others = ", ".join(a["id"] for a in profile["advice"]) or "nothing"
        for answer in profile["answers"]:
            if not answer["advice"]:
                report.line("second", "%s%s, %.2f ms: %s" % (name, answer["item"], answer["seconds"] * 1e3, answer["why"]))
        return report.line("second", name + "nothing to carry out; told: " + others, True)
    both = program.both(change, program.change(told[0]))
    if both is None:
        return report.line("second", "%s%s: is told what it does" % (name, told[0]["id"]), False)
    ratios, before, after = [], [], []
    for _ in range(arguments.rounds):
        a, b = ([latency for latency, _ in program.measure(x)] for x in (change, both))
        before.append(statistics.median(a))
        after.append(statistics.median(b))
        ratios.append(after[-1] / before[-1])
    report.line("second", "%s%s: from %.2f to %.2f ms, ratios %s" %
                (name, told[0]["id"], statistics.median(before), statistics.median(after), " ".join("%.2f" % r for r in ratios)),
                statistics.median(ratios) <= SLOWER)


def tell(network, framework, arguments, folder):
    program, report, taken = framework(network, arguments), Report(network, framework.name), None
    took, predictions, quiet = {None: []}, {}, Quiet()
    stem = os.path.join(folder, "%s-%s" % (network, framework.name.replace(" ", "")))
    for i in range(arguments.rounds):
        for _ in range(RECORDINGS):
            trace, iterations = program.record("%s-%d" % (stem, i))
            if quiet.mostly(quiet.see(iterations)):
                break
        analysis = analyze(network, trace, arguments)
        advices = {a["id"]: a for a in analysis["profiles"][0]["advice"]}
        if taken is None:
            report.look(analysis)
            taken = {a: program.change(advices[a]) for a in [a for a in advices if a in framework.changes][:2]}
            took.update((change, []) for change in taken.values())
        for change, times in took.items():
            times += quiet.see(program.measure(change))
        recorded = analysis["profiles"][0]["latency"]
        for a in taken:
            predictions.setdefault(a, []).extend([dict(advices[a], recorded=recorded)] if a in advices else [])
    with open(stem + ".rounds.json", "w") as f:
        json.dump({"measured": {change or "as it is": times for change, times in took.items()}, "predicted": predictions}, f)
    tells = quiet.tells(took.values())
    for a in taken:
        report.advice(a, predictions[a], took[None], took[taken[a]], quiet, tells)
    for change in dict.fromkeys(taken.values()):
        second(program, framework, report, change, stem, arguments)
    return report.good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--db", default=os.path.join(TESTS, "..", "build", "advice-db"), metavar="DIR")
    parser.add_argument("--networks", default=NETWORKS, metavar="NAME,NAME…")
    parser.add_argument("--models", metavar="DIR", help="models with weights, for ONNX Runtime")
    parser.add_argument("--no-bench", action="store_true", help="the database has what is needed, or as much as there shall be")
    parser.add_argument("--cpu-time", action="store_true", help="latencies by the processor's time: where others run on the machine, too")
    parser.add_argument("--keep", metavar="DIR", help="where the recordings stay, and what each round gave")
    parser.add_argument("benanza")
    arguments = parser.parse_args()
    good = True
    if arguments.cpu_time:
        os.environ["CLOCK"] = "cpu"
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for network in arguments.networks.split(","):
            for extra in () if arguments.no_bench else BENCHMARKS:
                run([arguments.benanza, "bound", "--db", arguments.db, "--json", os.path.join(MODELS, network + ".onnx")] + extra,
                    (0, 4))
            good &= tell(network, PyTorch, arguments, arguments.keep or folder)
            if arguments.models and os.path.exists(os.path.join(arguments.models, network + ".onnx")):
                good &= tell(network, OnnxRuntime, arguments, arguments.keep or folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
