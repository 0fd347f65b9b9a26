#!/usr/bin/python3
"""training_gradients.py BENANZA NETWORK [BATCH SIZE SEED]: who rounds, where the gradients of a replayed iteration are not PyTorch's.

NETWORK is one of torchvision's classifiers, trained on noise. Gradients of `replay --train`, of PyTorch in f32, and of PyTorch in f64 whose input and
weights were moved by 6e-8 of themselves (half of a rounding of f32) are held against PyTorch's in f64, each tensor by its largest element (at least 1 %
of the largest of all). Where the last two are off as far as the first, it is rounding, which the network makes large."""
import copy
import json
import math
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
import numpy as np
import onnx
import torch
import torchvision
from onnx import numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))
import training_networks as networks

TYPES = {"f32": "f4", "i64": "i8", "i32": "i4", "bool": "?", "u8": "u1"}


def by_pytorch(net, x, targets):
    net = copy.deepcopy(net)
    networks.loss(net(x), targets).backward()
    return [p.grad.double().numpy() for p in net.parameters()]


def moved(net, x):
    g = torch.Generator().manual_seed(1)
    net = copy.deepcopy(net)
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(1 + 6e-8 * torch.randn(p.shape, generator=g, dtype=torch.float64))
    return net, x * (1 + 6e-8 * torch.randn(x.shape, generator=g, dtype=torch.float64))


def replayed(benanza, net, x, targets, work):
    """Gradients in the order of the network's parameters: by their names; those that the file has turned lose them, and are told by their values."""
    networks.export(copy.deepcopy(net), x, f"{work}/model.onnx")
    first = {t.name: numpy_helper.to_array(t) for t in onnx.load(f"{work}/model.onnx").graph.initializer}
    Path(f"{work}/inputs").write_bytes(x.numpy().tobytes() + targets.numpy().tobytes())
    command = [benanza, "replay", f"{work}/model.onnx", "--json", "--db", f"{work}/db", "--time-limit", "0", "--train=sgd", "--rate", "0.01",
               "--inputs", f"{work}/inputs", "--steps", "1", "--outputs", f"{work}/outputs"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr
    data, at, found = Path(f"{work}/outputs").read_bytes(), 0, {}
    for end in json.loads(done.stdout)["outputs"]:
        v = np.frombuffer(data, TYPES[end["dtype"]], math.prod(end["shape"]), at)
        at += v.nbytes
        if "gradient_of" in end:
            found[end["gradient_of"]] = v.reshape(end["shape"])
    gradients = []
    for name, p in ((n, p.detach().numpy()) for n, p in net.named_parameters()):
        turned = [found[n].T for n, w in first.items() if n in found and w.T.shape == p.shape and np.array_equal(w.T, p)]
        gradients.append(found[name] if name in found else (turned or [None])[0])
    return gradients


def main(benanza, name, batch=2, size=64, seed=1):
    torch.set_num_threads(1)
    torch.manual_seed(int(seed))
    net = getattr(torchvision.models, name)(num_classes=10).train()
    x, targets = torch.randn(int(batch), 3, int(size), int(size)), torch.randint(10, (int(batch),))
    net64, x64 = copy.deepcopy(net).double(), x.double()
    exact = by_pytorch(net64, x64, targets)
    other_net, other_x = moved(net64, x64)
    with tempfile.TemporaryDirectory() as work:
        ways = {"replayed": replayed(benanza, net, x, targets, work), "PyTorch in f32": by_pytorch(net, x, targets),
                "PyTorch in f64, moved": by_pytorch(other_net, other_x, targets)}
    largest = max(np.abs(g).max() for g in exact)
    print(f"{name}, batch {batch}, {size} pixels, seed {seed}: off from PyTorch in f64")
    for way, gradients in ways.items():
        off = [np.abs(g - e).max() / max(np.abs(e).max(), 1e-2 * largest) for g, e in zip(gradients, exact) if g is not None]
        print(f"  {way:22} {len(off)} tensors: at most {max(off):.1e}, median {np.median(off):.1e}, beyond 1e-4 {sum(o > 1e-4 for o in off)}")


main(os.path.abspath(sys.argv[1]), *sys.argv[2:])
