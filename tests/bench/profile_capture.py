#!/usr/bin/python3
"""What capturing costs, and whether it tells the truth, on real frameworks: one command, one table, a verdict per row.

    tests/bench/profile_capture.py [--rounds N] [--models DIR] [--only WORD] BENANZA

PyTorch (Debian's) and ONNX Runtime (onnxruntime-node, found through NODE_PATH) each run ResNet-50, MobileNet-v2 and a BERT,
plain and captured in turn, so that drift hits both alike. What is not installed is skipped by name. ONNX models with weights are looked for in DIR and exported into it where they are missing.

iterations   found in the capture (ONNX Runtime: in the capture joined with ONNX Runtime's own profile) = those that ran
oneDNN       time in oneDNN per iteration, by capture and by oneDNN's own log, differs by at most 3 %. In one run, every other
             iteration is logged; those are compared with the others, each call by its median: what else the machine does drops
             out.
overhead     median latency of captured iterations exceeds that of plain ones by at most 1 %. Required of ResNet-50. The half
             width is that of the 95 % interval of the difference; a machine that is too noisy for 1 % is called that.
"""

import argparse
import glob
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PROGRAMS = os.path.join(TESTS, "programs")
EXPORT = os.path.join(TESTS, "..", "scripts", "export-models")
ITERATIONS, WARM_UP = 12, 2
ONEDNN = 4  # bz_library


class Skip(Exception):
    pass


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, env=dict(os.environ, **environment))
    if done.returncode:
        sys.exit("%s ended with status %d:\n%s" % (" ".join(command), done.returncode, done.stderr.decode()[-2000:]))
    return done


def works(command):
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def torch_program(network, _arguments):
    if not works(["/usr/bin/python3", "-c", "import torch"]):
        raise Skip("PyTorch (python3-torch) is not installed")
    return ["/usr/bin/python3", os.path.join(PROGRAMS, "networks.py"), network, str(ITERATIONS)]


def ort_program(network, arguments):
    if not works(["node", "-e", "require('onnxruntime-node')"]):
        raise Skip("ONNX Runtime (onnxruntime-node, in NODE_PATH) is not installed")
    model = os.path.join(arguments.models, network + ".onnx")
    if not os.path.exists(model):
        print("exporting", model, file=sys.stderr, flush=True)
        if not works([EXPORT, "--out", arguments.models, "--with-weights", network]):
            raise Skip(model + " is not here and cannot be exported")
    return ["node", os.path.join(PROGRAMS, "ort.js"), model, str(ITERATIONS)]


PROGRAM = {"PyTorch": torch_program, "ONNX Runtime": ort_program}
ROWS = [("PyTorch", "resnet50"), ("PyTorch", "mobilenet"), ("PyTorch", "bert"),
        ("ONNX Runtime", "resnet50"), ("ONNX Runtime", "mobilenet_v2"), ("ONNX Runtime", "bert_base")]


def latencies(done):
    """One a line on stderr."""
    return [float(line) for line in done.stderr.decode().split("\n") if line.replace(".", "", 1).isdigit()][WARM_UP:]


def logged(done):
    """Milliseconds of the executions in oneDNN's log of every other iteration; each a list."""
    lines = [line.split(b",") for line in done.stdout.split(b"\n") if line.split(b",")[:2] in
             ([b"onednn_verbose", b"exec"], [b"dnnl_verbose", b"exec"])]
    n = len(lines) // ITERATIONS
    return [[float(line[-1]) for line in lines[i * n:(i + 1) * n]] for i in range(ITERATIONS)]


def captured(trace):
    """The same of all iterations, as the capture tells them; and whether they were detected."""
    db = sqlite3.connect(trace)
    spans = db.execute("SELECT start, end, origin FROM BENANZA_ITERATIONS ORDER BY start").fetchall()
    calls = [[row[0] for row in db.execute("SELECT (end - start) / 1e6 FROM BENANZA_CALLS WHERE library = ? AND flags & 1 "
                                           "AND start >= ? AND start < ? ORDER BY start", (ONEDNN, start, end))]
             for start, end, _ in spans]
    return calls, bool(spans) and spans[0][2] == 2


def per_iteration(iterations, of=statistics.median):
    """Sum over calls of the call's median over iterations; None where they do not make the same number of calls."""
    if not iterations or len({len(i) for i in iterations}) != 1 or not iterations[0]:
        return None
    return sum(of(call) for call in zip(*iterations))


def half_width(values):
    """Of the 95 % interval of the median, from order statistics, relative."""
    ordered, n = sorted(values), len(values)
    k = max(0, int(n / 2 - 0.98 * n ** 0.5))
    return (ordered[n - 1 - k] - ordered[k]) / 2 / statistics.median(values)


def measure(framework, command, arguments, folder):
    trace, joined = os.path.join(folder, "run.bz"), os.path.join(folder, "joined.bz")
    profile = [arguments.benanza, "profile", "--force", "-o", trace, "--"]
    row = {"plain": [], "capture": [], "by capture": [], "by log": [], "counts": [], "detected": False}
    for _ in range(arguments.rounds):
        row["plain"] += latencies(run(command))
        row["capture"] += latencies(run(profile + command))
        if framework == "PyTorch":
            calls, row["detected"] = captured(trace)
            row["counts"].append(len(calls))
            log = logged(run(profile + command[:-1] + [str(2 * ITERATIONS), "log"]))
            row["by capture"] += captured(trace)[0][WARM_UP::2]
            row["by log"] += log[WARM_UP // 2:]
    if framework != "PyTorch":  # its kernels are its own: joined with what it tells itself
        prefix = os.path.join(folder, "ort")
        run(profile + command + [prefix])
        run([arguments.benanza, "profile", "show", "--force", "-o", joined, trace] + glob.glob(prefix + "*.json"))
        row["counts"].append(len(captured(joined)[0]))
    return row


def verdict(holds):
    return "ok" if holds else "DOES NOT HOLD"


def tell(framework, network, row):
    """Prints a row; returns whether all that is required holds."""
    name, good = "%-12s  %-12s" % (framework, network), True

    def line(what, text, state):
        print("%s  %-10s  %-78s  %s" % (name, what, text, state), flush=True)

    right = all(n == ITERATIONS for n in row["counts"])
    how = "detected" if row["detected"] else "by ONNX Runtime's profile" if framework != "PyTorch" else "NOT detected"
    line("iterations", "%s of %d, %s" % ("/".join(map(str, row["counts"])), ITERATIONS, how), verdict(right))
    good &= right
    a, b = per_iteration(row["by capture"]), per_iteration(row["by log"])
    if framework != "PyTorch":
        line("oneDNN", "ONNX Runtime does not call it", "-")
    elif not a or not b or len(row["by capture"][0]) != len(row["by log"][0]):
        line("oneDNN", "capture and log do not have the same calls", verdict(False))
        good = False
    else:
        right = abs(a / b - 1) <= 0.03
        least = [per_iteration(row[by], min) for by in ("by capture", "by log")]
        line("oneDNN", "%.3f ms by capture, %.3f ms by log, %d calls: %+.2f %% (of the least: %+.2f %%)" %
             (a, b, len(row["by log"][0]), (a / b - 1) * 100, (least[0] / least[1] - 1) * 100), verdict(right))
        good &= right
    plain, capture = statistics.median(row["plain"]), statistics.median(row["capture"])
    difference, width = capture / plain - 1, (half_width(row["plain"]) ** 2 + half_width(row["capture"]) ** 2) ** 0.5
    required = network == "resnet50"
    state = verdict(difference <= 0.01)
    if difference - width <= 0.01 < difference + width:
        state = "UNDECIDED: too noisy"
    line("overhead", "%.2f ms plain, %.2f ms captured: %+.2f %% ± %.2f %% (of the least: %+.2f %%)" %
         (plain, capture, difference * 100, width * 100, (min(row["capture"]) / min(row["plain"]) - 1) * 100),
         state if required else "(%s)" % state)
    return good and (not required or state == "ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=os.path.join(TESTS, "..", "build", "models-with-weights"), metavar="DIR")
    parser.add_argument("--only", default="", metavar="WORD", help="rows that have the word")
    parser.add_argument("benanza")
    arguments = parser.parse_args()
    good = True
    for framework, network in ROWS:
        if arguments.only.lower() not in (framework + " " + network).lower():
            continue
        try:
            command = PROGRAM[framework](network, arguments)
        except Skip as why:
            print("%-12s  %-12s  skipped: %s" % (framework, network, why))
            continue
        with tempfile.TemporaryDirectory() as folder:
            good &= tell(framework, network, measure(framework, command, arguments, folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
