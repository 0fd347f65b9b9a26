#!/usr/bin/python3
"""layers.py BUILD [--runs N] [--weights DIR] MODEL...: how long shapes take, beside the ONNX package's own inference.

BUILD is a release build folder. For every model, load + infer with and without keys in one process (bench_layers) and
onnx.load + onnx.shape_inference.infer_shapes (strict, data_prop), which makes no keys, from Python take turns, and so do the whole commands `benanza
layers` and a Python process that does the same. In its turn each loads the model once to warm up, and then IN_A_ROW times.
Prints Markdown tables of medians. Models in DIR carry their weights; of the others the peer gets a copy whose initializers are dense but without payload, because it cannot read sparse ones.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
from onnx import TensorProto, shape_inference


IN_A_ROW = 5


def densify(path, out):
    """Sparse initializers become dense ones without data: what the peer accepts, and as cheap to load."""
    model = onnx.load(path, load_external_data=False)
    for sparse in model.graph.sparse_initializer:
        model.graph.initializer.append(TensorProto(name=sparse.values.name, data_type=sparse.values.data_type,
                                                   dims=sparse.dims))
    del model.graph.sparse_initializer[:]
    onnx.save(model, out)


def peer(path):
    times = []
    for _ in range(1 + IN_A_ROW):
        start = time.perf_counter()
        try:
            shape_inference.infer_shapes(onnx.load(path, load_external_data=False), True, True, True)
        except (ValueError, RuntimeError, onnx.checker.ValidationError, shape_inference.InferenceError):
            return None    # a file over 2 GB, or one it refuses
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[1:])


def ours(build, path):
    out = subprocess.run([f"{build}/bench_layers", str(IN_A_ROW), path], capture_output=True, check=True).stdout
    return json.loads(out)


def process(build, *command):
    """Wall time in ms and peak resident memory in MB of a whole process."""
    out = subprocess.run([f"{build}/bench_process", "1", *command], capture_output=True, check=True).stdout
    result = json.loads(out)
    return result["ms"], result["mb"]


def measure(build, path, peer_path, runs):
    times, keyless, rivals, whole, rival_whole = [], [], [], [], []
    script = ("import onnx,sys; onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1], load_external_data=False),"
              " True, True, True)")
    for _ in range(runs):
        result = ours(build, path)
        times.append(result["ms"])
        keyless.append(result["without_keys_ms"])
        rivals.append(peer(peer_path))
        whole.append(process(build, f"{build}/benanza", "layers", path))
        rival_whole.append(process(build, "/usr/bin/python3", "-c", script, peer_path) if rivals[-1] else None)
    rival = statistics.median(rivals) if None not in rivals else None
    return {"nodes": result["nodes"], "ms": statistics.median(times),
            "keyless": statistics.median(keyless), "peer": rival,
            "whole": statistics.median(t for t, _ in whole), "rss": max(m for _, m in whole),
            "peer_whole": statistics.median(t for t, _ in rival_whole) if rival else None,
            "peer_rss": max(m for _, m in rival_whole) if rival else None}


def cell(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--weights", default="")
    options = parser.parse_args()
    print("| model | nodes | file MB | benanza ms | without keys | onnx ms | ratio | without keys | `benanza layers` ms | MB | "
          "Python process ms | MB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for path in options.models:
            heavy = options.weights and Path(path).resolve().is_relative_to(Path(options.weights).resolve())
            peer_path = path
            if not heavy:
                peer_path = f"{folder}/peer.onnx"
                densify(path, peer_path)
            m = measure(options.build, path, peer_path, options.runs)
            ratio = m["peer"] / m["ms"] if m["peer"] else None
            keyless_ratio = m["peer"] / m["keyless"] if m["peer"] else None
            print(f"| {Path(path).stem} | {m['nodes']} | {os.path.getsize(path) / 1e6:.1f} | {m['ms']:.2f} | {m['keyless']:.2f} | "
                  f"{cell(m['peer'])} | {cell(ratio, 0)} | {cell(keyless_ratio, 0)} | {m['whole']:.1f} | {m['rss']:.1f} | {cell(m['peer_whole'], 0)} | {cell(m['peer_rss'], 0)} |")
            sys.stdout.flush()


main()
