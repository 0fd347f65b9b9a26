#!/usr/bin/python3
"""layers.py BUILD [--runs N] [--weights DIR] MODEL...: how long shapes take, beside the ONNX package's own inference.

BUILD is a release build folder. For every model, load + infer with and without keys (bench_layers) and
onnx.load + onnx.shape_inference.infer_shapes (strict, data_prop) from Python, which makes no keys, take turns. Each has
a process of its own, loads the model once to warm up, and then IN_A_ROW times. The peer does so twice: with Python's own
settings, and with a malloc that keeps its memory, as ours does (bz_keep_memory). So do the whole commands `benanza layers`
and a Python process that does the same. Prints a Markdown table of medians. Models in DIR carry their weights; of the
others the peer gets a copy whose initializers are dense but without payload, because it cannot read sparse ones.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from onnx import TensorProto


IN_A_ROW = 5


def densify(path, out):
    """Sparse initializers become dense ones without data: what the peer accepts, and as cheap to load."""
    model = onnx.load(path, load_external_data=False)
    for sparse in model.graph.sparse_initializer:
        model.graph.initializer.append(TensorProto(name=sparse.values.name, data_type=sparse.values.data_type,
                                                   dims=sparse.dims))
    del model.graph.sparse_initializer[:]
    onnx.save(model, out)


PEER = """import statistics, sys, time, onnx
times = []
for _ in range(1 + int(sys.argv[1])):
    start = time.perf_counter()
    onnx.shape_inference.infer_shapes(onnx.load(sys.argv[2], load_external_data=False), True, True, True)
    times.append((time.perf_counter() - start) * 1e3)
print(statistics.median(times[1:]))
"""
KEEP = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}    # as in bz_keep_memory


def peer(path, environment):
    """Milliseconds, or None: a file over 2 GB, or one it refuses."""
    out = subprocess.run(["/usr/bin/python3", "-c", PEER, str(IN_A_ROW), path], capture_output=True, env=dict(os.environ, **environment))
    return float(out.stdout) if out.returncode == 0 else None


def ours(build, path):
    out = subprocess.run([f"{build}/bench_layers", str(IN_A_ROW), path], capture_output=True, check=True).stdout
    return json.loads(out)


def process(build, *command):
    """Wall time in ms and peak resident memory in MB of a whole process."""
    out = subprocess.run([f"{build}/bench_process", "1", *command], capture_output=True, check=True).stdout
    result = json.loads(out)
    return result["ms"], result["mb"]


def measure(build, path, peer_path, runs):
    times, keyless, rivals, kept, whole, rival_whole = [], [], [], [], [], []
    script = ("import onnx,sys; onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1], load_external_data=False),"
              " True, True, True)")
    for _ in range(runs):
        result = ours(build, path)
        times.append(result["ms"])
        keyless.append(result["without_keys_ms"])
        rivals.append(peer(peer_path, {}))
        kept.append(peer(peer_path, KEEP))
        whole.append(process(build, f"{build}/benanza", "layers", path))
        rival_whole.append(process(build, "/usr/bin/python3", "-c", script, peer_path) if rivals[-1] else None)
    rival = None not in rivals + kept
    return {"nodes": result["nodes"], "ms": statistics.median(times), "keyless": statistics.median(keyless),
            "peer": statistics.median(rivals) if rival else None, "kept": statistics.median(kept) if rival else None,
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
    print("| model | nodes | file MB | benanza ms | without keys | onnx ms | ratio | without keys | onnx ms, memory kept | "
          "ratio | without keys | `benanza layers` ms | MB | Python process ms | MB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for path in options.models:
            heavy = options.weights and Path(path).resolve().is_relative_to(Path(options.weights).resolve())
            peer_path = path
            if not heavy:
                peer_path = f"{folder}/peer.onnx"
                densify(path, peer_path)
            m = measure(options.build, path, peer_path, options.runs)
            cells = [Path(path).stem, m["nodes"], cell(os.path.getsize(path) / 1e6, 1), cell(m["ms"]), cell(m["keyless"])]
            for rival in [m["peer"], m["kept"]]:
                cells += [cell(rival)] + [cell(rival and rival / mine, 0) for mine in [m["ms"], m["keyless"]]]
            cells += [cell(m["whole"], 1), cell(m["rss"], 1), cell(m["peer_whole"], 0), cell(m["peer_rss"], 0)]
            print("| " + " | ".join(str(c) for c in cells) + " |")
            sys.stdout.flush()


main()
