#!/usr/bin/python3
"""tests/bench/replay.py [OPTIONS] STEP...: replays held against their bounds, and beside the frameworks.

Steps, each of which goes on where it was interrupted:

records   measures what the database lacks of each model: benanza bound --fuse
replay    plans, generates, compiles, checks and runs each model, and holds it against its bound
compare   the replay, PyTorch eager, PyTorch frozen for inference (torch.jit.freeze, optimize_for_inference) and ONNX Runtime in
          turns, each a process of its own for a round, so that drift hits all alike
kinds     what ONNX Runtime and the replay spend on each kind of operation, for those models where the replay is not the fastest
tables    prints what --results has

A model is looked for in the folders of --models, then in models/. ONNX Runtime wants weights (scripts/export-models
--with-weights --out FOLDER), and NODE_PATH onnxruntime-node. Bounds are of hot records; cold is here what the same calls
take when nothing that they need is in the caches."""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FRAMEWORKS = ["resnet50", "mobilenet_v2", "inception_v3", "vgg16", "bert_base", "gpt2"]
CONVOLUTIONAL = ["densenet121", "efficientnet_b0", "googlenet", "inception_v3", "mobilenet_v2", "mobilenet_v3_large", "resnet101",
                 "resnet18", "resnet50", "squeezenet1_1", "vgg16"]

# Builds the network as the exporter does, so that all run the same layers.
TORCH = """
import importlib.util, importlib.machinery, sys, time, warnings
warnings.simplefilter('ignore')
import torch
root, name, threads, frozen, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == 'frozen', int(sys.argv[5])
loader = importlib.machinery.SourceFileLoader('export_models', root + '/scripts/export-models')
module = importlib.util.module_from_spec(importlib.util.spec_from_loader('export_models', loader))
loader.exec_module(module)
torch.set_num_threads(threads)
module.cheap_initialisers()
module.no_dropout()
network, _, inputs, _, _ = module.construct(name)
network.eval()
inputs = tuple(inputs.values())
with torch.inference_mode():
    if frozen:
        network = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(network, inputs, strict=False)))
    for i in range(n + 3):
        start = time.perf_counter()
        network(*inputs)
        if i >= 3:
            print((time.perf_counter() - start) * 1e3)
"""


def run(argv, good=(0,), **environment):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, env=dict(os.environ, **environment))
    if done.returncode not in good:
        raise RuntimeError("%s: status %d: %s" % (argv[0], done.returncode, done.stderr.strip()[-500:]))
    return done


def numbers(text):
    return [float(line) for line in text.split()]


class Results:
    """A line of JSON for each thing measured; the last one of a kind counts."""

    def __init__(self, path, again):
        self.path, self.again, self.lines = Path(path), again, {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                self.keep(json.loads(line))

    def keep(self, line):
        self.lines[line["step"], line["model"], line["dtype"], line["threads"]] = line

    def has(self, *key):
        return key in self.lines and not self.again

    def add(self, line):
        self.keep(line)
        with open(self.path, "a") as f:
            f.write(json.dumps(line) + "\n")


def find_model(args, name):
    for folder in [*args.models, ROOT / "models"]:
        if (Path(folder) / f"{name}.onnx").exists():
            return Path(folder) / f"{name}.onnx"
    sys.exit(f"{name}: there is no such model")


def options(args, dtype, threads):
    return ["--fuse", "--db", args.db, "--threads", threads, *(["--dtype", dtype] if dtype != "f32" else [])]


# ---- steps ------------------------------------------------------------------------------------


def records(args, results, name, dtype, threads):
    run([args.benanza, "bound", find_model(args, name), *options(args, dtype, threads), "--time-limit", args.record_time], (0, 4))


def replay(args, results, name, dtype, threads):
    """planned: the whole process. ready: that, and generated, compiled, opened and run once. Each the fastest of three; two."""
    base = [args.benanza, "replay", find_model(args, name), "--json", *options(args, dtype, threads)]
    line = {"step": "replay", "model": name, "dtype": dtype, "threads": threads}

    def wall(argv):
        begin = time.perf_counter()
        run(argv)
        return time.perf_counter() - begin

    line["planned"] = min(wall([*base, "--no-run"]) for _ in range(3))
    line["ready"] = min(wall([*base, "--time-limit", "0"]) for _ in range(1 if args.quick else 2))
    report = json.loads(run([*base, "--time-limit", args.seconds, "--check"]).stdout)
    for key in ("bound", "complete", "guessed", "latency", "low", "high", "ratio", "calls", "conversions", "loops", "cold", "hot",
                "flushed", "peak", "least", "weights", "opened", "checked", "wrong", "excess"):
        line[key] = report[key]
    line["layers"] = [layer for layer in report["layers"] if layer.get("seconds")]
    results.add(line)


def ways(args, name, threads, program):
    model = find_model(args, name)

    def torch(kind):
        return numbers(run(["/usr/bin/python3", "-c", TORCH, ROOT, name, threads, kind, args.n], OMP_NUM_THREADS=str(threads)).stdout)

    def ort():
        return numbers(run(["node", ROOT / "tests/programs/ort.js", model, args.n + 3], THREADS=str(threads)).stderr)[3:]

    def own():
        report = json.loads(run([program, "--threads", threads, "--time-limit", args.seconds / 2, "--alone", "0"]).stdout)
        return [report["latency"]["median"] * 1e3]

    return {"replay": own, "eager": lambda: torch("eager"), "frozen": lambda: torch("frozen"), "onnxruntime": ort}


def compare(args, results, name, dtype, threads):
    line = {"step": "compare", "model": name, "dtype": dtype, "threads": threads, "times": {}, "failed": {}}
    with tempfile.TemporaryDirectory() as work:
        report = json.loads(run([args.benanza, "replay", find_model(args, name), "--json", "--folder", f"{work}/program",
                                 "--time-limit", "0", *options(args, dtype, threads)]).stdout)
        line["bound"] = report["bound"]
        for _ in range(args.rounds):
            for way, one in ways(args, name, threads, f"{work}/program/build/replay").items():
                if way in line["failed"]:
                    continue
                try:
                    line["times"].setdefault(way, []).extend(one())
                except RuntimeError as error:
                    line["failed"][way] = str(error)[-200:]
    results.add(line)


# What the operations of ONNX Runtime and of the replay are called together.
KINDS = [("convolution", ("conv",)), ("product", ("gemm", "matmul", "gemv")), ("attention", ("attention",)),
         ("normalization", ("norm",)), ("softmax", ("softmax",)), ("pooling", ("pool",)), ("gelu", ("gelu", "erf", "tanh")),
         ("layout", ("reorder", "transpose", "convert"))]


def kind_of(text):
    for kind, words in KINDS:
        if any(word in text.lower() for word in words):
            return kind
    return "other"


def kinds(args, results, name, dtype, threads):
    """Medians over the runs of each node in ONNX Runtime's own profile; of the replay what its layers took."""
    mine = results.lines.get(("replay", name, dtype, threads))
    compared = results.lines.get(("compare", name, dtype, threads))
    fastest = compared and min(compared["times"], key=lambda way: statistics.median(compared["times"][way] or [1e9]))
    if not mine or not compared or fastest == "replay":
        return
    with tempfile.TemporaryDirectory() as work:
        run(["node", ROOT / "tests/programs/ort.js", find_model(args, name), args.n + 3, f"{work}/ort"], THREADS=str(threads))
        events = json.loads(Path(glob.glob(f"{work}/ort*.json")[0]).read_text())
    nodes = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            nodes.setdefault((event["name"], event["args"].get("op_name", "")), []).append(event["dur"] / 1e6)
    sums = {}
    for (_, op), seconds in nodes.items():
        sums.setdefault(kind_of(op), [0, 0])[0] += statistics.median(seconds)
    for layer in mine["layers"]:
        sums.setdefault(kind_of(layer["kind"]), [0, 0])[1] += layer["seconds"] - layer["conversion"]
        sums.setdefault("layout", [0, 0])[1] += layer["conversion"]
    results.add({"step": "kinds", "model": name, "dtype": dtype, "threads": threads, "kinds": sums})


# ---- tables -----------------------------------------------------------------------------------


def ms(seconds):
    return "" if seconds is None else "%.3g" % (seconds * 1e3) if seconds < 0.1 else "%.1f" % (seconds * 1e3)


def reasons(line):
    """The three largest, of those that are more than a hundredth of the bound."""
    parts = sorted(((v, k) for k, v in line["excess"].items() if v is not None), key=lambda p: -abs(p[0]))
    return ", ".join("%s %+.1f %%" % (k, 100 * v / line["bound"]) for v, k in parts[:3] if abs(v) > 0.01 * line["bound"])


def between(line):
    return "" if line["flushed"] is None else "yes" if line["bound"] <= line["latency"] <= line["flushed"] else "no"


def replay_table(results, dtype, threads):
    lines = [r for (step, _, d, t), r in sorted(results.lines.items()) if (step, d, t) == ("replay", dtype, threads) and r["bound"]]
    if not lines:
        return
    print(f"\n{dtype}, {threads} thread{'s' if threads > 1 else ''}, milliseconds:\n")
    print("| model | hot bound | replay | cold | between | replay / bound | of which, of the bound | guessed | memory / least "
          "| planned | ready | checked, wrong |")
    print("|---" * 12 + "|")
    for r in lines:
        print(f"| {r['model']} | {ms(r['bound'])} | {ms(r['latency'])} | {ms(r['flushed'])} | {between(r)} | {r['latency'] / r['bound']:.3f} "
              f"| {reasons(r)} | {r['guessed'] or ''} | {r['peak'] / r['least']:.3f} | {ms(r['planned'])} "
              f"| {r['ready']:.1f} s | {r['checked']}, {r['wrong']} |")


def compare_table(results, threads):
    lines = [r for (step, _, _, t), r in sorted(results.lines.items()) if step == "compare" and t == threads]
    if not lines:
        return
    print(f"\nBeside the frameworks, {threads} thread{'s' if threads > 1 else ''}, f32, milliseconds (median, quartiles):\n")
    print("| model | hot bound | replay | ONNX Runtime | PyTorch frozen | PyTorch eager | fastest |\n" + "|---" * 7 + "|")
    for r in lines:
        cells = {}
        for way, v in r["times"].items():
            low, middle, high = statistics.quantiles(v * 2 if len(v) == 1 else v, n=4)
            cells[way] = "%.2f (%.2f … %.2f)" % (middle, low, high)
        fastest = min(cells, key=lambda way: statistics.median(r["times"][way]))
        print("| " + " | ".join([r["model"], ms(r["bound"])] +
                                [cells.get(w, "fails") for w in ("replay", "onnxruntime", "frozen", "eager")] + [fastest]) + " |")
        for way, why in r["failed"].items():
            print(f"  {way}: {why}", file=sys.stderr)


def kinds_table(results, threads):
    for (step, name, _, t), r in sorted(results.lines.items()):
        if step == "kinds" and t == threads:
            print(f"\n{name}, {threads} thread(s), ms in ONNX Runtime and in the replay: " +
                  ", ".join("%s %.2f %.2f" % (k, a * 1e3, b * 1e3) for k, (a, b) in sorted(r["kinds"].items(), key=lambda i: -i[1][0])))


def tables(args, results):
    for threads in args.threads:
        for dtype in args.dtype:
            replay_table(results, dtype, threads)
    for threads in args.threads:
        compare_table(results, threads)
        kinds_table(results, threads)


# ---- all of it --------------------------------------------------------------------------------

STEPS = {"records": records, "replay": replay, "compare": compare, "kinds": kinds}


def concerns(step, name, dtype):
    if step in ("compare", "kinds"):
        return name in FRAMEWORKS and dtype == "f32"
    return dtype == "f32" or name in CONVOLUTIONAL


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("step", nargs="*", help="all, where none is named")
    p.add_argument("--model", nargs="+", default=sorted(path.stem for path in (ROOT / "models").glob("*.onnx")))
    p.add_argument("--models", action="append", default=[], help="a folder of models with weights")
    p.add_argument("--benanza", default=ROOT / "build/release/benanza")
    p.add_argument("--db", required=True)
    p.add_argument("--results", required=True, help="a file; what it has is not measured again")
    p.add_argument("--again", action="store_true", help="measure all the same")
    p.add_argument("--quick", action="store_true", help="compile once")
    p.add_argument("--dtype", nargs="+", default=["f32", "bf16"])
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--n", type=int, default=10, help="runs of a framework in a round")
    p.add_argument("--seconds", type=float, default=3, help="of a replay")
    p.add_argument("--record-time", type=float, default=0.05, help="seconds of a record")
    p.add_argument("--budget", type=float, default=1e9, help="seconds: nothing is begun behind them")
    args = p.parse_args()
    if not set(args.step) <= {*STEPS, "tables"}:
        p.error("there is no such step")
    results, begin = Results(args.results, args.again), time.monotonic()
    for step in [s for s in args.step or [*STEPS, "tables"] if s != "tables"]:
        for threads in args.threads:
            for dtype in args.dtype:
                for name in args.model:
                    if not concerns(step, name, dtype) or results.has(step, name, dtype, threads):
                        continue
                    if time.monotonic() - begin > args.budget:
                        sys.exit("the time is over; the same command goes on")
                    started = time.monotonic()
                    try:
                        STEPS[step](args, results, name, dtype, threads)
                        done = "%.0f s" % (time.monotonic() - started)
                    except RuntimeError as error:
                        done = str(error)
                    print(f"{step} {name} {dtype} {threads}: {done}", file=sys.stderr, flush=True)
    if not args.step or "tables" in args.step:
        tables(args, results)


main()
