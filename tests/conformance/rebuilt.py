#!/usr/bin/python3
"""rebuilt.py BENANZA [NETWORK...]: layers rebuilt from PyTorch's trace alone, against the same network's ONNX model.

Networks of torchvision run with random weights under PyTorch's profiler, which records shapes. The trace is written as Kineto
writes it, from the profiler's own list of events: Debian's PyTorch has no Kineto, and its export leaves shapes out. Layers are
the same where their keys are; they count by their multiply-accumulates. Without PyTorch and torchvision the test is skipped."""

import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import torchvision
except ImportError:
    print("skipped: there is no PyTorch with torchvision")
    sys.exit(77)

NETWORKS = ("resnet18", "densenet121", "googlenet", "mobilenet_v3_large", "efficientnet_b0", "shufflenet_v2_x1_0", "squeezenet1_1",
            "swin_t")
LEAST = 0.95
REFERENCE = Path(__file__).resolve().parents[2] / "perfdb/reference/epyc-9xx5.jsonl.zst"


def record(model, x, path):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as p:
        for _ in range(2):
            with torch.profiler.record_function("benanza_iteration"):
                model(x)
    events = [{"ph": "X", "cat": "user_annotation" if e.name == "benanza_iteration" else "cpu_op", "name": e.name, "pid": 1, "tid": e.thread,
               "ts": e.time_range.start, "dur": e.time_range.end - e.time_range.start,
               "args": {"External id": i + 1, "Input Dims": e.input_shapes or [], "Input type": []}} for i, e in enumerate(p.events())]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")


def compare(benanza, name, folder):
    """Share of the model's multiply-accumulates in layers that were rebuilt; products that the model does not have."""
    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None).eval()
    x = torch.randn(1, 3, *[299 if name == "inception_v3" else 224] * 2)
    with torch.set_grad_enabled(name.startswith("vit")):  # else it runs as one operator, which cannot be exported
        record(model, x, folder / "run.json")
        torch.onnx.export(model, x, str(folder / "m.onnx"), training=torch.onnx.TrainingMode.PRESERVE, opset_version=13)

    def layers(*args):
        p = subprocess.run([benanza, *args, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return json.loads(p.stdout)

    wanted = [x for x in layers("layers", folder / "m.onnx")[0]["layers"] if x["macs"]]
    macs = {x["key"]: x["macs"] for x in wanted}
    wanted = collections.Counter(x["key"] for x in wanted)
    analysis = layers("analyze", "--profile", folder / "run.json", "--system", "epyc-9xx5", "--db", folder / "db")
    found = collections.Counter(x["key"] for x in analysis["models"][0]["layers"])
    same = sum(min(n, found[k]) * macs[k] for k, n in wanted.items())
    others = [k for k in found - wanted if k.split()[0] in ("conv", "gemm", "matmul")]
    return same / sum(n * macs[k] for k, n in wanted.items()), others


def main():
    benanza, networks = sys.argv[1], sys.argv[2:] or NETWORKS
    torch.set_num_threads(1)
    failed = False
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        subprocess.run([benanza, "db", "import", "--db", folder / "db", REFERENCE], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, HOME=work))
        for name in networks:
            share, others = compare(benanza, name, folder)
            print(f"{name}: {100 * share:.2f} % of the MACs, {len(others)} products that the model lacks", *others, sep="\n    ")
            failed |= share < LEAST or len(others) > 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
