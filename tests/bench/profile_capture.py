#!/usr/bin/python3
"""What capturing costs, and whether it tells the same as oneDNN's own log: profile_capture.py BENANZA [ROUNDS]

Runs each network plain, captured and with ONEDNN_VERBOSE, interleaved, so that drift hits all alike. Prints per
network the latency (smallest and median over all rounds) of plain and captured runs, their difference, and the time in
oneDNN per iteration by capture and by log."""

import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORKS = os.path.join(HERE, "..", "programs", "networks.py")
ITERATIONS = 12


def latencies(stderr):
    return [float(line) for line in stderr.decode().split("\n") if line.replace(".", "", 1).isdigit()][2:]


def log_per_iteration(stdout):
    lines = [line.split(b",") for line in stdout.split(b"\n") if line.startswith(b"onednn_verbose,exec")]
    n = len(lines) // ITERATIONS
    times = [float(line[-1]) for line in lines]
    return [sum(times[i * n:(i + 1) * n]) for i in range(2, ITERATIONS)]


def capture_per_iteration(benanza, path):
    import sqlite3
    rows = sqlite3.connect(path).execute("SELECT (end - start) / 1e6 FROM BENANZA_CALLS WHERE library = 4 AND flags & 1 ORDER BY start")
    times = [r[0] for r in rows]
    n = len(times) // ITERATIONS
    return [sum(times[i * n:(i + 1) * n]) for i in range(2, ITERATIONS)]


def main():
    benanza, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    result = {}
    for network in ("resnet50", "mobilenet", "bert"):
        command = ["/usr/bin/python3", NETWORKS, network, str(ITERATIONS)]
        plain, captured, by_capture, by_log = [], [], [], []
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "run.bz")
            for _ in range(rounds):
                plain += latencies(subprocess.run(command, capture_output=True, check=True).stderr)
                captured += latencies(subprocess.run([benanza, "profile", "-o", trace, "--"] + command, capture_output=True, check=True).stderr)
                by_capture += capture_per_iteration(benanza, trace)
                verbose = subprocess.run(command, capture_output=True, check=True, env=dict(os.environ, ONEDNN_VERBOSE="1", DNNL_VERBOSE="1"))
                by_log += log_per_iteration(verbose.stdout)
        row = {}
        for name, values in (("plain", plain), ("captured", captured), ("onednn by capture", by_capture), ("onednn by log", by_log)):
            row[name] = {"min_ms": round(min(values), 3), "median_ms": round(statistics.median(values), 3)}
        row["overhead of min"] = round(min(captured) / min(plain) - 1, 4)
        row["overhead of median"] = round(statistics.median(captured) / statistics.median(plain) - 1, 4)
        row["onednn difference of min"] = round(min(by_capture) / min(by_log) - 1, 4)
        row["onednn difference of median"] = round(statistics.median(by_capture) / statistics.median(by_log) - 1, 4)
        result[network] = row
        print(network, json.dumps(row, indent=2), flush=True)


main()
