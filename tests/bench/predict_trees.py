#!/usr/bin/python3
"""predict_trees.py BENCH_PREDICT_TREES DB MODEL...: do boosted trees, a line, or the mean of trees and what ships hold better than the regression over problems that ships?

The same evaluation with each of them in its place; all else is the same.
"""
import json
import os
import subprocess
import sys

WAYS = [("kernel", {}), ("ridge", {})] + [("trees", {"DEPTH": str(d), "ROUNDS": str(r)}) for d, r in ((3, 100), (3, 400), (6, 100), (6, 400))]
WAYS += [("both", {"DEPTH": "6", "ROUNDS": "100"})]


def rounds(program, db, models, way, size):
    out = subprocess.run([program, "predict", "--evaluate", "--json", "--db", db, *models], env={**os.environ, "WAY": way, **size},
                         check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)["rounds"]


def main():
    program, db, *models = sys.argv[1:]
    for way, size in WAYS:
        name = " ".join([way, *(f"{what.lower()} {n}" for what, n in size.items())])
        for one in rounds(program, db, models, way, size):
            sums = one["all"][0]
            print(f"{name}: {one['left_out']}, {one['few']:g} measured: networks {100 * sums['predicted']:.1f} %, calls by time {100 * sums['calls']:.1f} %, "
                  f"problems {100 * sums['median']:.1f} %, inside {100 * one['printed']:.1f} %")
            if one["left_out"] == "system" and not one["few"]:
                print(f"{name}: by system:", *(f"{s['name'].split('@')[0]} {100 * s['predicted']:.1f} %" for s in one["systems"]))
                print(f"{name}: calls by kind:", *(f"{k['name']} {100 * k['calls']:.1f} %" for k in one["kinds"]), flush=True)


if __name__ == "__main__":
    main()
