#!/usr/bin/env python3
"""tests/bench/verbose.py [MODEL]: records held against oneDNN's own clock.

Runs a model's benchmarks with ONEDNN_VERBOSE=1, so that oneDNN logs how long each call took by its own measure, while
benanza times the same calls in the same process. `ratio` is the record's median over the median of the log's times of
that primitive. A logged call ends with a line being formatted and written, which the record's wall clock sees and the
log's does not: its cost, the difference that the log makes to an empty call, is taken off. `plain` is the same ratio for
a record made without the log, in another process. Samples are long, since the log also holds the call that warms the
caches before each. Variants whose name is not unique in their layout, and calls below --least µs, are left out."""
import argparse, json, os, statistics, subprocess, tempfile


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", nargs="?", default="models/resnet50.onnx")
    p.add_argument("--benanza", default="build/release/benanza")
    p.add_argument("--layout", default="any")
    p.add_argument("--filter", default="conv ")
    p.add_argument("--least", type=float, default=50)
    p.add_argument("--limit", type=float, default=3, help="%% of difference that is allowed")
    return p.parse_args()


def run(a, folder, name, verbose):
    """Records by problem and implementation, and the log's times by the same."""
    env = dict(os.environ, ONEDNN_VERBOSE="1" if verbose else "0")
    program = folder + "/build/benchmarks"
    # progress goes between the log's lines: it says which problem they belong to
    with open(f"{folder}/{name}.log", "w+") as log:
        out = subprocess.run([program, "--progress", "2", "--filter", a.filter, "--sample-time", "0.01",
                              "--time-limit", "0.2"], stdout=subprocess.PIPE, stderr=log,
                             text=True, check=True, env=env).stdout
        log.seek(0)
        times, problem = {}, None
        for line in log:
            if problem and line.startswith("onednn_verbose,exec,"):
                f = line.rstrip().split(",")
                if f[3] != "reorder" or problem.startswith(("reorder", "transpose")):
                    times.setdefault((problem, f[4]), []).append(float(f[-1]) * 1e-3)
            elif line[:1].isdigit():
                problem = line.rstrip("\n").split(" ", 2)[-1]
    records, seen = {}, {}
    for line in out.splitlines():
        r = json.loads(line)
        if r.get("record") == "system":
            continue
        key = (r["problem"], r["algorithm"])
        base = (r["problem"], r["algorithm"].split(" #")[0])
        seen[base] = seen.get(base, 0) + 1
        if r["status"] == "ok":
            records[key] = r
    return {k: r for k, r in records.items() if seen.get(k) == 1}, times


def main():
    a = arguments()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as work:
        folder = work + "/folder"
        subprocess.run([a.benanza, "gen", a.model, "--all", "--backend", "onednn", "--layout", a.layout, "--db",
                        work + "/db", "-o", folder], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([a.benanza, "run", folder, "--db", work + "/db", "--filter", "no problem holds this"],
                       stderr=subprocess.DEVNULL)  # builds, then finds none of them
        plain, _ = run(a, folder, "plain", False)
        records, times = run(a, folder, "verbose", True)
    launch = {r["launch"] for r in records.values()}, {r["launch"] for r in plain.values()}
    logging = launch[0].pop() - launch[1].pop()
    rows = []
    for key, r in records.items():
        if key in times and r["median"] * 1e6 >= a.least:
            log = statistics.median(times[key])
            rows.append(((r["median"] - logging) / log, plain[key]["median"] / log if key in plain else float("nan"), log,
                         r["noisy"], *key))
    rows.sort(key=lambda x: -abs(x[0] - 1))
    print(f"{'ratio':>7} {'plain':>7} {'log':>10}        implementation              layer")
    for ratio, without, log, noisy, problem, algorithm in rows:
        print(f"{ratio:7.4f} {without:7.4f} {log * 1e6:8.1f}µs {'noisy' if noisy else '':5}  {algorithm:27} {problem}")
    off = [r for r in rows if abs(r[0] - 1) * 100 > a.limit]
    ratios = [r[0] for r in rows]
    print(f"\nwriting a line of the log costs {logging * 1e6:.2f} µs")
    print(f"{len(rows)} records of {a.least:g} µs and more; ratio: median {statistics.median(ratios):.4f}, "
          f"from {min(ratios):.4f} to {max(ratios):.4f}")
    print(f"within {a.limit:g} %: {len(rows) - len(off)}; not: {len(off)}, of them {sum(r[3] for r in off)} marked noisy")


main()
