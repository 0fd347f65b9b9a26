#!/usr/bin/python3
"""memory.py BENANZA PROGRAM: a program takes memory in known sizes, and the table of a training run tells them by class: at the peak,
rounded to pages, and at most. Its facts and ranges are in the recording."""
import json
import math
import subprocess
import sys
import tempfile

benanza, program = sys.argv[1:]


def call(*arguments):
    done = subprocess.run([benanza, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pages(n):
    return math.ceil(n / 4096) * 4096


with tempfile.TemporaryDirectory() as work:
    call("profile", "--memory", "-o", work + "/run.bz", "--", program)
    rows = json.loads(call("profile", "tables", work + "/run.bz", "--table", "training-memory", "--json"))["tables"][0]["rows"]
    shown = json.loads(call("profile", "show", work + "/run.bz", "--json"))
    call("profile", "-o", work + "/plain.bz", "--", program)
    plain = json.loads(call("profile", "tables", work + "/plain.bz", "--table", "training-memory", "--json"))["tables"]
got = {r["class"]: r for r in rows}
# While 70000 bytes pass by in the backward pass, one activation, the gradient and all that stays are there. The gradient is aligned: 19968.
wanted = {"weights and data": (100000, 100000), "gradients": (19968, 19968), "optimizer": (50000, 50000), "activations": (30000, 60000), "rest": (70000, 70000)}
for name, (at_peak, most) in wanted.items():
    r = got[name]
    assert (r["at_peak"], r["at_peak_pages"], r["most"], r["blocks"]) == (at_peak, pages(at_peak), most, 1), (name, r)
everything = sum(at for at, _ in wanted.values())
assert got["all"]["at_peak"] == everything and got["all"]["blocks"] == 5, got["all"]
assert abs(sum(r["share"] for r in rows) - 2) < 1e-9, rows
assert any(f["key"] == "batch" and f["value"] == "3" for f in shown["facts"]), shown["facts"]
assert plain == [] or plain[0]["rows"] == [], plain  # without --memory nothing is recorded
print(f"{everything} bytes at the peak, by class as they were taken")
