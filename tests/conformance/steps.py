#!/usr/bin/python3
"""steps.py BENANZA [FIRST COUNT]: are the iterations of programs that never ran found? programs.py makes them from seeds."""
import collections
import json
import os
import subprocess
import sys
import tempfile

from programs import CLASSES, Program

benanza = sys.argv[1]
first, count = (int(a) for a in sys.argv[2:4]) if len(sys.argv) > 3 else (900_000, 10 * len(CLASSES))
keep = os.environ.get("KEEP")  # a folder for those that are wrong
work = tempfile.mkdtemp()
right, tried = collections.Counter(), collections.Counter()

for seed in range(first, first + count):
    program = Program(seed)
    kind, truth = program.kind, program.truth
    path = f"{work}/{seed}." + ("json" if seed // len(CLASSES) % 2 else "sqlite")
    program.write(path)
    p = subprocess.run([benanza, "profile", "show", "--json", path], capture_output=True, text=True)
    tried[kind] += 1
    if p.returncode not in (0, 4):
        print(f"{seed} {kind}: exit {p.returncode}: {p.stderr}")
        continue
    shown = json.loads(p.stdout)["iterations"]
    found = shown["count"]
    wanted = truth["steps"] if isinstance(truth["steps"], tuple) else (truth["steps"],)
    ok = found in wanted
    if "prefill" in truth and ok:
        phases = collections.Counter(e.get("phase") for e in shown["each"])
        ok = phases["prefill"] == truth["prefill"] and phases["decode"] == truth["decode"]
    right[kind] += ok
    if not ok:
        print(f"{seed} {kind}: {found} ({shown['origin']}), not {truth}: layers {program.layers}, {len(program.per_layer)} each, "
              f"inputs {program.inputs}, waits {program.waits}, gap {program.gap}, size {program.size}, {len(program.kernel)} kernels")
        if keep:
            os.rename(path, f"{keep}/{os.path.basename(path)}")
            continue
    os.unlink(path)
for kind in CLASSES:
    if tried[kind]:
        print(f"{kind:14} {right[kind]:4} of {tried[kind]:4}")
share = sum(right.values()) / sum(tried.values())
print(f"{sum(right.values())} of {sum(tried.values())} are right: {100 * share:.1f} %")
sys.exit(share < 0.99)
