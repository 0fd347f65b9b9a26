#!/usr/bin/python3
"""written_norms.py BENANZA [--blocks N] [--keep DIR]: a bound of a network whose layer normalizations are written out.

Layer normalization as a program that has no operator for it writes it: a mean, a difference, a square, a mean, a root and a
division. Over the channels of images that lie channels last, oneDNN has only its reference implementation for the difference
and the division. The network is made and exported by PyTorch; then

    bound    what the libraries and the loops could do, layer by layer, with the layers that rest on reference code
    onednn   the same without the backend `loops`
    replay   the cheapest plan, run
    pytorch  what PyTorch takes for the same network

are printed as one JSON object; it is an error if the bound is above the replay or PyTorch."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # OpenBLAS asks when it is loaded, and nobody later
import torch


class Norm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(size))
        self.shift = torch.nn.Parameter(torch.rand(size))

    def forward(self, x):
        difference = x - x.mean(-1, keepdim=True)
        variance = difference.pow(2).mean(-1, keepdim=True)
        return difference / (variance + 1e-5).sqrt() * self.scale + self.shift


class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = Norm(size)
        self.up = torch.nn.Linear(size, 4 * size)
        self.down = torch.nn.Linear(4 * size, size)

    def forward(self, x):
        y = self.up(self.norm(x))
        y = y * 0.5 * (1 + torch.erf(y / 2 ** 0.5))
        return x + self.down(y)


def run(command, statuses=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in statuses:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def pytorch(model, x):
    times = []
    with torch.inference_mode():
        frozen = torch.jit.freeze(torch.jit.trace(model, x))
        end = time.monotonic() + 3
        while len(times) < 20 or time.monotonic() < end:
            begin = time.perf_counter()
            frozen(x)
            times.append(time.perf_counter() - begin)
    return statistics.median(times[5:])


def bound_of(benanza, file, db, *more):
    a = run([benanza, "bound", file, "--db", db, "--json", "--threads", "1", *more], (0, 4))["models"][0]
    return {"sequential": a["sequential"], "priced": f"{a['n_layers'] - a['unpriced']} of {a['n_layers']}",
            "modelled": a["modelled"], "reference": a["reference"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benanza")
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--keep", help="leave the model and the databases in this folder")
    a = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    size, x = 96, torch.rand(1, 56, 56, 96)
    model = torch.nn.Sequential(*[Block(size) for _ in range(a.blocks)]).eval()
    with tempfile.TemporaryDirectory() as folder:
        folder = a.keep or folder
        os.makedirs(folder, exist_ok=True)
        file = os.path.join(folder, "written_norms.onnx")
        torch.onnx.export(model, x, file, opset_version=13, input_names=["x"], output_names=["y"])
        without = bound_of(a.benanza, file, os.path.join(folder, "onednn"), "--backend", "onednn", "--backend", "cblas",
                           "--backend", "memory")
        bound = bound_of(a.benanza, file, os.path.join(folder, "all"))
        replay = run([a.benanza, "replay", file, "--db", os.path.join(folder, "all"), "--threads", "1", "--json",
                      "--time-limit", "3"])
        result = {"blocks": a.blocks, "onednn": without, "bound": bound,
                  "replay": {k: replay[k] for k in ("latency", "planned", "conversions", "loops")},
                  "pytorch": pytorch(model, x)}
    print(json.dumps(result, indent=2))
    if bound["sequential"] is None or bound["sequential"] > min(replay["latency"], result["pytorch"]):
        sys.exit("written_norms.py: the bound is above what a program takes")


if __name__ == "__main__":
    main()
