#!/usr/bin/python3
"""tests/bench/replay.py FOLDER [MODEL...]: replays beside the frameworks, in one interleaved run.

FOLDER has models with weights (scripts/export-models --with-weights --out FOLDER). For each model, with one thread and with two:
the replay of the fused plan, PyTorch eager, PyTorch frozen for inference (torch.jit.freeze, optimize_for_inference) and ONNX
Runtime. Rounds take turns, each program a process of its own for a round, so that drift hits all alike; told are
the medians over all rounds, and the quartiles. The replay's plan is made once, from the records of --db (benanza bound --fuse)."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = ["resnet50", "mobilenet_v2", "inception_v3", "vgg16", "bert_base", "gpt2"]

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


def numbers(text):
    return [float(line) for line in text.split()]


def run(argv, **environment):
    return subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True,
                          env=dict(os.environ, **environment))


def torch_round(name, threads, kind, n):
    return numbers(run(["/usr/bin/python3", "-c", TORCH, ROOT, name, threads, kind, n], OMP_NUM_THREADS=str(threads)).stdout)


def ort_round(model, threads, n):
    return numbers(run(["node", ROOT / "tests/programs/ort.js", model, n + 3], THREADS=str(threads)).stderr)[3:]


def replay_round(program, threads, seconds):
    report = json.loads(run([program, "--threads", threads, "--time-limit", seconds]).stdout)
    return [report["latency"]["median"] * 1e3]


def build(args, model, threads, folder):
    """The program of the fused plan; the report tells the bound."""
    options = ["--fuse", "--threads", threads, "--db", args.db] if args.db else ["--fuse", "--threads", threads]
    report = json.loads(run([args.benanza, "replay", model, "--json", "--folder", folder, "--time-limit", "0.5",
                             *options]).stdout)
    return Path(folder) / "build/replay", report


def bench(args, name, threads):
    model = Path(args.folder) / f"{name}.onnx"
    times = {}
    with tempfile.TemporaryDirectory() as work:
        program, report = build(args, model, threads, f"{work}/program")
        ways = {
            "replay": lambda: replay_round(program, threads, args.seconds),
            "eager": lambda: torch_round(name, threads, "eager", args.n),
            "frozen": lambda: torch_round(name, threads, "frozen", args.n),
            "onnxruntime": lambda: ort_round(model, threads, args.n),
        }
        for _ in range(args.rounds):
            for way, one in ways.items():
                try:
                    times.setdefault(way, []).extend(one())
                except subprocess.CalledProcessError as error:
                    times.setdefault(way, [])
                    print(f"  {way}: {error.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    print(f"{name}, {threads} thread(s): bound {1e3 * (report['bound'] or float('nan')):.2f} ms"
          f"{'' if report['complete'] else ' (not complete)'}, {report['guessed']} calls without a record")
    for way, values in sorted(times.items(), key=lambda item: statistics.median(item[1] or [float("inf")])):
        if values:
            low, middle, high = statistics.quantiles(values * 2 if len(values) == 1 else values, n=4)
            print(f"  {way:12} {middle:9.2f} ms   {low:.2f} … {high:.2f}   n={len(values)}")
    sys.stdout.flush()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("models", nargs="*", default=MODELS)
    p.add_argument("--benanza", default=ROOT / "build/release/benanza")
    p.add_argument("--db")
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--n", type=int, default=10, help="runs of a framework in a round")
    p.add_argument("--seconds", type=float, default=1, help="of the replay in a round")
    args = p.parse_args()
    for name in args.models:
        for threads in args.threads:
            bench(args, name, threads)


main()
