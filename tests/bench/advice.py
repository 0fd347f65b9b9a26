#!/usr/bin/python3
"""Whether the analyzer's advice is worth taking: predicted and achieved gain side by side, on real programs.

    tests/bench/advice.py [--rounds N] [--db DIR] [--only WORD] BENANZA

ResNet-50, MobileNet-v2, Inception-v3 and a BERT run in PyTorch (Debian's), eager, one thread. Each is benchmarked (f32 with fusion, and
bf16) where DIR lacks records, captured, and analyzed. Then of the advices that the program tests/programs/advised.py can carry out
the first two are: the program as it was and with each of them run in turn, so that drift hits all alike.

ladder     bound <= time in the library <= measured
reorders   calls that bring weights and activations into other layouts, and what they cost
advice     gain predicted, gain achieved; they differ by at most 15 % of what was achieved
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PROGRAM = ["/usr/bin/python3", os.path.join(TESTS, "programs", "advised.py")]
MODELS = os.path.join(TESTS, "..", "models")
NETWORKS = ["resnet50", "mobilenet_v2", "inception_v3", "bert_base"]
ITERATIONS, WARM_UP = 12, 3
# what an advice says, as a change that the program knows
CHANGES = {"best-implementations": "freeze", "prepack-weights": "freeze", "keep-blocked": "freeze", "fusion": "freeze", "bf16": "bf16"}


def run(command, accept=(0,)):
    done = subprocess.run(command, capture_output=True)
    if done.returncode not in accept:
        sys.exit("%s ended with status %d:\n%s" % (" ".join(command), done.returncode, done.stderr.decode()[-2000:]))
    return done


def latencies(command):
    """Milliseconds of the iterations behind the warm-up."""
    return [float(line) for line in run(command).stderr.decode().split("\n") if line.replace(".", "", 1).isdigit()][WARM_UP:]


def analyze(network, arguments, folder):
    model, trace = os.path.join(MODELS, network + ".onnx"), os.path.join(folder, network + ".bz")
    for extra in (["--fuse"], ["--fuse", "--dtype", "bf16"]):
        run([arguments.benanza, "bound", "--db", arguments.db, "--json", model] + extra, (0, 4))
    run([arguments.benanza, "profile", "-o", trace, "--"] + PROGRAM + [network, str(ITERATIONS)])
    done = run([arguments.benanza, "analyze", "--db", arguments.db, "--fuse", "--json", "--profile", trace, model], (0, 4))
    return json.loads(done.stdout)["models"][0]


def tell(network, analysis, arguments):
    profile, good = analysis["profiles"][0], True

    def line(what, text, holds=None):
        nonlocal good
        good &= holds is not False
        print("%-12s  %-9s  %-100s  %s" % (network, what, text, {None: "", True: "ok", False: "DOES NOT HOLD"}[holds]), flush=True)

    bound, busy, latency = (x * 1e3 for x in (analysis["fused"]["sequential"], profile["busy"], profile["latency"]))
    line("ladder", "fused bound %.2f ms, as written %.2f ms, in the library %.2f ms, measured %.2f ms" %
         (bound, analysis["sequential"] * 1e3, busy, latency), bound <= busy <= latency)
    for cause in profile["alignment"]["causes"]:
        if cause["id"].endswith("-reordered"):
            line("reorders", "%s: %d, %.2f ms" % (cause["name"], cause["count"], cause["seconds"] * 1e3))
    advices = [a for a in profile["advice"] if a["id"] in CHANGES][:2]
    took = {change: [] for change in [None] + [CHANGES[a["id"]] for a in advices]}
    for _ in range(arguments.rounds):
        for change in took:
            took[change] += latencies(PROGRAM + [network, str(ITERATIONS)] + ([change] if change else []))
    before = statistics.median(took[None])
    for advice in advices:
        after = statistics.median(took[CHANGES[advice["id"]]])
        predicted, achieved = advice["gain"] * 1e3, before - after
        off = predicted / achieved - 1 if achieved > 0 else float("inf")
        line("advice", "%s: predicted %.2f ms (%.2f to %.2f), achieved %.2f ms, from %.2f to %.2f ms: off by %+.0f %%" %
             (advice["id"], predicted, advice["low"] * 1e3, advice["high"] * 1e3, achieved, before, after, off * 100), abs(off) <= 0.15)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--db", default=os.path.join(TESTS, "..", "build", "advice-db"), metavar="DIR")
    parser.add_argument("--only", default="", metavar="WORD", help="networks that have the word")
    parser.add_argument("benanza")
    arguments = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for network in NETWORKS:
            if arguments.only in network:
                good &= tell(network, analyze(network, arguments, folder), arguments)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
