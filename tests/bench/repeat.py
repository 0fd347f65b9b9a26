#!/usr/bin/env python3
"""tests/bench/repeat.py [MODEL] [--runs N]: how far do records move when nothing changed?

Runs the convolutions of a model N times, each time into an empty database, and holds the runs against each other: of
each layer the median of its cheapest variant. `movement` is the distance between the extremes over all runs, `step` the
largest between neighbouring runs, both relative to the median over the runs. `noisy` counts the runs in which the
record was marked so. The rows that moved by more than --limit come first. At the end record by record: which are further than
--limit from the median of their layer, and which are marked. Wants a machine with nothing else to do."""
import argparse, json, statistics, subprocess, tempfile, time


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", nargs="?", default="models/resnet50.onnx")
    p.add_argument("--benanza", default="build/release/benanza")
    p.add_argument("--runs", type=int, default=20)
    p.add_argument("--filter", default="conv ", help="only problems whose text holds this")
    p.add_argument("--layout", action="append", default=[])
    p.add_argument("--limit", type=float, default=3, help="%% of movement that is no news")
    p.add_argument("--save", help="write all records of all runs there, a line each")
    return p.parse_args()


def one_run(a, folder, db):
    subprocess.run([a.benanza, "run", folder, "--db", db, "--filter", a.filter], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    text = subprocess.run([a.benanza, "db", "export", "--db", db], capture_output=True, text=True, check=True).stdout
    best = {}
    for line in text.splitlines():
        r = json.loads(line)
        if r.get("status") == "ok" and (r["problem"] not in best or r["median"] < best[r["problem"]]["median"]):
            best[r["problem"]] = r
    return best, text


def main():
    a = arguments()
    runs, begin = [], time.time()
    save = open(a.save, "w") if a.save else None
    with tempfile.TemporaryDirectory() as work:
        layouts = [x for l in a.layout for x in ("--layout", l)]
        subprocess.run([a.benanza, "gen", a.model, "--db", work + "/db", "--all", "-o", work + "/folder", *layouts],
                       stdout=subprocess.DEVNULL, check=True)
        for i in range(a.runs):
            best, text = one_run(a, work + "/folder", f"{work}/db{i}")
            runs.append(best)
            if save:
                save.write(text)
            print(f"run {i + 1}: {sum(r['median'] for r in best.values()) * 1e3:.3f} ms over {len(best)} layers, "
                  f"{sum(r['noisy'] for r in best.values())} marked noisy", flush=True)
    rows, away = [], {(far, noisy): 0 for far in (False, True) for noisy in (False, True)}
    for problem in runs[0]:
        records = [r[problem] for r in runs if problem in r]
        m = [r["median"] for r in records]
        middle = statistics.median(m)
        for r in records:
            away[abs(r["median"] / middle - 1) * 100 > a.limit, r["noisy"]] += 1
        step = max((abs(x - y) for x, y in zip(m, m[1:])), default=0)
        rows.append(((max(m) - min(m)) / middle * 100, step / middle * 100, sum(r["noisy"] for r in records), middle,
                     len({(r["algorithm"], r["layout"], r["backend"]) for r in records}), problem))
    print(f"\n{'movement':>9} {'step':>7} {'noisy':>5} {'median':>10} {'variants':>8}  layer")
    for movement, step, noisy, middle, variants, problem in sorted(rows, reverse=True):
        print(f"{movement:8.2f}% {step:6.2f}% {noisy:5d} {middle * 1e6:8.1f}µs {variants:8d}  {problem}")
    moved = [r for r in rows if r[0] > a.limit]
    stepped = [r for r in rows if r[1] > a.limit]
    marked = [r for r in rows if r[2]]
    silent = [r for r in moved if not r[2]]
    print(f"\n{len(rows)} layers, {a.runs} runs, {time.time() - begin:.0f} s")
    print(f"movement ≤ {a.limit:g} %: {len(rows) - len(moved)} layers; step ≤ {a.limit:g} %: {len(rows) - len(stepped)}")
    print(f"moved more: {len(moved)}, of them {len(moved) - len(silent)} marked noisy in some run, {len(silent)} never")
    print(f"marked noisy in some run: {len(marked)}, of them {sum(r[0] <= a.limit for r in marked)} did not move")
    print(f"records within {a.limit:g} % of the layer's median: {away[False, False]}, and {away[False, True]} marked noisy; "
          f"further: {away[True, True]} marked noisy, {away[True, False]} not")
    total = [sum(r[p]["median"] for p in r) for r in runs]
    print(f"sum over the layers: movement {(max(total) - min(total)) / statistics.median(total) * 100:.2f} %")


main()
