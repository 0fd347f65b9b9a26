#!/usr/bin/python3
"""suite.py BENANZA SUITE: every run of every edition names a network of its script; one of them is run, recorded and reported, and what the
report says of their throughput and batch is what their recordings say. A program that fails does not end the others."""
import glob
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

benanza, suite = sys.argv[1:]
try:
    import torch  # noqa: F401
    import torchvision  # noqa: F401
except ImportError:
    print("skipped: no PyTorch here")
    sys.exit(77)


def call(*arguments):
    done = subprocess.run([benanza, *arguments], capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr
    return done.returncode, json.loads(done.stdout)


known = {}
for script in glob.glob(suite + "/*.py"):
    if not script.endswith("train.py"):
        said = subprocess.run([sys.executable, "-W", "ignore", script, "--help"], capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        known[os.path.basename(script)] = set(re.search(r"\{([a-z0-9_,]+)\}", said.stdout.split("positional")[1])[1].split(","))
used = set()
for edition, runs in (("2017", 8), ("2020", 9), ("today", 8)):
    rows = call("suite", "list", "--edition", edition, "--json")[1]["suite"]["rows"]
    assert len(rows) == runs, (edition, len(rows))
    for row in rows:
        _, script, network = row["command"].split()
        assert network in known[script], row
        used.add(network)
assert used == set().union(*known.values()), "networks in no edition: " + str(set().union(*known.values()) - used)

# the network whose small images came down to one pixel, of which a batch of one has no variance
subprocess.run([sys.executable, "-W", "ignore", suite + "/vision.py", "inception_v3", "--batch", "1", "--iterations", "1"], check=True, capture_output=True)

with tempfile.TemporaryDirectory() as work:
    mine = work + "/mine.txt"
    with open(mine, "w") as f:
        print(f"bad | a | b | c | d | e | f | 1 | 1 | false\n"
              f"speech | speech | Conformer | 2 | product | e | audio seconds | 1,2 | 1 | python3 {suite}/speech.py conformer", file=f)
    command = ("suite", "run", "--edition", mine, "--iterations", "4", "--python", sys.executable, "-o", work + "/r", "--json")
    status, first = call(*command)
    assert status == 4 and [r["status"] for r in first["runs"]["rows"]] == ["failed", "recorded", "recorded"], first
    status, again = call(*command)
    assert [r["status"] for r in again["runs"]["rows"]] == ["failed", "is there", "is there"], again
    report = call("suite", "report", work + "/r", "--json")[1]
    rows = report["runs"]["rows"]
    assert [(r["run"], r["batch"]) for r in rows] == [("speech", 1), ("speech", 2)], rows
    for r in rows:
        steady = [n for n, in sqlite3.connect(r["file"]).execute("SELECT latency FROM BENANZA_LEVEL_ITERATIONS WHERE level = 0 AND NOT warmUp")]
        assert 0 < len(steady) < 15, steady  # too few for a phase: all of them count
        mean = sum(steady) / len(steady) * 1e-9
        assert abs(r["samples"] - r["batch"] * 0.48 / mean) < 1e-6 * r["samples"], (r, mean)
    assert abs(rows[1]["by_batch"] - rows[1]["samples"] / rows[0]["samples"]) < 1e-9
    assert {c["check"] for c in report["checks"]["rows"] if c["batch"] == 2} >= {"a larger batch brings more throughput"}
    assert any(k["name"].startswith(("sgemm", "inner_product", "convolution")) for k in report["kernels"]["rows"]), report["kernels"]["rows"]
print("25 runs of three editions; one run, recorded and reported")
