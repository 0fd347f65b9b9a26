#!/usr/bin/env python3
"""tests/bench/bound.py [MODEL [SECOND]]: what the bound of a model costs, from nothing to the end.

  generating       lowering and writing sources, per thousand layers, over all bundled models (bench_generate)
  compiling        configuring and building the folder of the model's benchmarks, without a compiler cache
  per variant      what a variant costs besides being measured: all of them are prepared, run once and checked
  first, again     `benanza bound MODEL` from an empty database, and once more
  second           a second model on the same database: the share of its problems that need no run, and the time
--all adds every bundled model, each on the database that the others have filled. Wants a quiet machine."""
import argparse, glob, json, os, subprocess, tempfile, time

os.environ.pop("CMAKE_C_COMPILER_LAUNCHER", None)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", nargs="?", default="models/resnet50.onnx")
    p.add_argument("second", nargs="?", default="models/resnet101.onnx")
    p.add_argument("--build", default="build/release")
    p.add_argument("--all", action="store_true")
    p.add_argument("--time-limit", default="0.1", help="as of benanza bound: for a quick look")
    return p.parse_args()


def timed(*command, status=(0,)):
    begin = time.monotonic()
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode not in status:
        raise SystemExit(f"{' '.join(command)}: exit status {r.returncode}\n{r.stderr}")
    return time.monotonic() - begin, r.stdout


def say(what, figure, aim="", more=""):
    print(f"{what:28} {figure:>14}  {aim:18} {more}", flush=True)


def bound(a, model, db):
    seconds, out = timed(a.build + "/benanza", "bound", model, "--db", db, "--json", "--time-limit", a.time_limit,
                         status=(0, 4))
    return seconds, json.loads(out)["models"][0]


def describe(b):
    return (f"{b['sequential'] * 1e3:.2f} ms, {b['n_layers'] - b['unpriced']} of {b['n_layers']} layers, "
            f"{b['modelled']} modelled, {b['noisy']} noisy, {b['benchmarks']} benchmarks")


def main():
    a = arguments()
    benanza = a.build + "/benanza"
    with tempfile.TemporaryDirectory() as work:
        g = json.loads(timed(a.build + "/bench_generate", "9", work + "/gen", *sorted(glob.glob("models/*.onnx")))[1])
        say("generating, 1000 layers", f"{g['ms_per_thousand']:.2f} ms", "aim 5 ms",
            f"{g['layers']} layers, {g['unique']} unique; with the files on this disk {g['files_ms_per_thousand']:.2f} ms")
        db, folder = work + "/db", work + "/folder"
        seconds, out = timed(benanza, "gen", a.model, "--db", db, "-o", folder, "--json")
        families = json.loads(out)["families"]
        say("gen, whole process", f"{seconds * 1e3:.1f} ms", "", f"{families} families")
        seconds, _ = timed(benanza, "run", folder, "--db", db, "--filter", "no problem holds this",
                           status=(2,))  # builds, then finds none of them
        say("compiling", f"{seconds:.1f} s", "aim 15 s")
        seconds, out = timed(folder + "/build/benchmarks", "--check-only")
        n = len(out.splitlines())
        say("per variant", f"{seconds / n * 1e3:.1f} ms", "aim 20 ms", f"{n} records")
        seconds, b = bound(a, a.model, db)
        say("first", f"{seconds:.1f} s", "aim 90 s", describe(b))
        seconds, b = bound(a, a.model, db)
        say("again", f"{seconds * 1e3:.0f} ms", "aim 100 ms, 0 runs", describe(b))
        others = [a.second] + [m for m in sorted(glob.glob("models/*.onnx")) if a.all and m not in (a.model, a.second)]
        for model in others:
            seconds, b = bound(a, model, db)
            say(os.path.basename(model), f"{seconds:.1f} s", f"{b['problems_known'] / b['problems'] * 100:.0f} % saved",
                f"{b['problems'] - b['problems_known']} of {b['problems']} problems were new; {describe(b)}")


main()
