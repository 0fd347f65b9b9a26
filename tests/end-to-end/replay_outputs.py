#!/usr/bin/python3
"""replay_outputs.py BENANZA [MODEL...] [--dtype TYPE] [--db DIR]: models with weights replayed on seeded inputs give what ONNX
Runtime gives (NODE_PATH must have onnxruntime-node), as written and fused. Without models those in $BENANZA_WEIGHTS are taken
(scripts/export-models --with-weights --out makes them). Exit status 77 where there is no runtime or no model.

Tolerance: the largest difference over the largest magnitude of the output. Models add up thousands of rounded products, and
in other orders than ONNX Runtime does: 1e-4 in f32. In bf16, with 8 bits of mantissa in each of some hundred layers: 2e-2.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TOLERANCE = {"f32": 1e-4, "bf16": 2e-2}
TYPES = {"f32": np.float32, "i64": np.int64, "i32": np.int32, "bool": np.uint8}


def make_inputs(ends, path, seed=8):
    """Normal numbers; integers that index tables stay small, masks are ones."""
    random = np.random.default_rng(seed)
    with open(path, "wb") as f:
        for end in ends:
            if end["dtype"] == "f32":
                values = random.standard_normal(end["shape"])
            elif "mask" in end["name"]:
                values = np.ones(end["shape"])
            else:
                values = random.integers(0, 2 if "type" in end["name"] else 100, end["shape"])
            f.write(values.astype(TYPES[end["dtype"]]).tobytes())


def split(ends, data):
    values, at = {}, 0
    for end in ends:
        dtype = np.dtype(TYPES[end["dtype"]])
        size = int(np.prod(end["shape"])) * dtype.itemsize
        values[end["name"]] = np.frombuffer(data[at:at + size], dtype).astype(np.float64)
        at += size
    assert at == len(data), (at, len(data))
    return values


def difference(benanza, model, options, dtype, work):
    """Of the replay from ONNX Runtime, over the output's largest magnitude."""
    base = [benanza, "replay", model, "--json", *options]
    ends = json.loads(subprocess.run([*base, "--no-run"], check=True, capture_output=True).stdout)
    make_inputs(ends["inputs"], f"{work}/inputs")
    subprocess.run(["node", HERE.parent / "programs/ort_outputs.js", model, f"{work}/inputs", f"{work}/ort"], check=True)
    make_inputs(ends["inputs"], f"{work}/others", 9)
    subprocess.run(["node", HERE.parent / "programs/ort_outputs.js", model, f"{work}/others", f"{work}/ort-others"], check=True)
    report = json.loads(subprocess.run([*base, "--time-limit", "0", "--inputs", f"{work}/inputs", "--outputs",
                                        f"{work}/outputs"], check=True, capture_output=True).stdout)
    got, wanted = Path(f"{work}/outputs").read_bytes(), Path(f"{work}/ort").read_bytes()
    worst = 0
    mine, theirs = split(report["outputs"], got), split(report["outputs"], wanted)
    other = split(report["outputs"], Path(f"{work}/ort-others").read_bytes())
    for name, value in theirs.items():
        assert not np.array_equal(value, other[name]), f"{name} does not depend on the inputs: comparing it proves nothing"
        assert np.isfinite(mine[name]).all() and np.abs(value).max() > 0, name
        worst = max(worst, np.abs(mine[name] - value).max() / np.abs(value).max())
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("benanza")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--db")
    args = parser.parse_args()
    if not shutil.which("node") or subprocess.run(["node", "-e", "require('onnxruntime-node')"], capture_output=True).returncode:
        print("skipped: there is no node, or NODE_PATH has no onnxruntime-node")
        sys.exit(77)
    folder = os.environ.get("BENANZA_WEIGHTS")
    models = args.models or sorted(str(p) for p in Path(folder).glob("*.onnx")) if folder or args.models else []
    if not models:
        print("skipped: no models; BENANZA_WEIGHTS names a folder of models with weights")
        sys.exit(77)
    bad = 0
    for model in models:
        for options in ([], ["--fuse"]):
            with tempfile.TemporaryDirectory() as work:
                options = [*options, "--db", args.db or f"{work}/db"]
                options += ["--dtype", args.dtype] if args.dtype != "f32" else []
                worst = difference(args.benanza, model, options, args.dtype, work)
                bad += not worst <= TOLERANCE[args.dtype]
                print(f"{Path(model).stem:20} {'fused' if '--fuse' in options else 'as written':12} off by {worst:.2e} of the largest")
    sys.exit(bool(bad))


main()
