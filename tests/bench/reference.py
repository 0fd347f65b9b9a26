#!/usr/bin/python3
"""reference.py BENANZA [--db DIR] [--time-limit S] [--threads N] MODEL...: layers that no good code prices.

Measures the layers of each model shortly (a hundredth of a second for each variant; that is enough to tell which
implementations exist, not for a bound that anybody should quote), and prints a table: how many layers rest on a reference
implementation, on a copy that stands in for them (modelled), or on nothing; below it, those layers. It is an error if there are
any: then a loop of runtime/loops is missing."""
import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

KINDS = ("reference", "modelled", "unpriced")


def bound_of(a, model, db):
    command = [a.benanza, "bound", model, "--db", db, "--json", "--threads", str(a.threads), "--time-limit", str(a.time_limit),
               "--wait", "0"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 4):
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["models"][0]


def kind_of(layer):
    """Why the layer's price is none of good code; None where it is."""
    if layer["reference"]:
        return "reference"
    if layer["seconds"] is None:
        return "unpriced"
    return "modelled" if layer["provenance"] == "modelled" else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benanza")
    parser.add_argument("model", nargs="+")
    parser.add_argument("--db", help="a folder that stays (a temporary one)")
    parser.add_argument("--time-limit", type=float, default=0.01)
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    found = []
    print("| model | layers | problems | by reference code | by a copy | not priced |\n" + "|---" * 6 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for model in a.model:
            b = bound_of(a, model, a.db or folder)
            bad = [(kind_of(layer), layer) for layer in b["layers"] if kind_of(layer)]
            n = Counter(kind for kind, _ in bad)
            print(f"| {Path(model).stem} | {b['n_layers']} | {b['problems']} | " + " | ".join(str(n[k]) for k in KINDS) + " |", flush=True)
            found += [(Path(model).stem, kind, layer["key"], layer["variant"]) for kind, layer in bad]
    for (model, kind, key, variant), times in Counter(found).items():
        print(f"{model}: {kind}: {times} x {key} ({variant})")
    sys.exit("reference.py: some layers have no good code" if found else 0)


if __name__ == "__main__":
    main()
