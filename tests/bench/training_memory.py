#!/usr/bin/python3
"""training_memory.py BENANZA [NETWORK...]: predicted memory of an iteration of training against what PyTorch takes on the processor.

Six networks (tests/conformance/training_networks.py), or those that are named, also `gru`, `tagger` and torchvision's of images, at three batches, Adam, recorded by `benanza profile --memory`: the peak of the steady
iterations, by class. Prints a table in Markdown; of two figures the first is PyTorch's."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "conformance"), os.path.join(HERE, "..", "..", "suite")]


def judge(name, batch, networks):
    """Networks that nothing in the model was made after."""
    import torch
    import torchvision
    from torch import nn

    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.body, self.head = nn.Embedding(100, 96), nn.GRU(96, 128, 2, bidirectional=True), nn.Linear(256, 10)

        def forward(self, x):
            return self.head(self.body(self.words(x.transpose(0, 1)))[0][-1])

    class Tagger(Gru):
        def __init__(self):
            super().__init__()
            self.body = nn.LSTM(96, 128, bidirectional=True)

    targets = torch.randint(10, (batch,))
    if name in ("gru", "tagger"):
        return {"gru": Gru, "tagger": Tagger}[name](), torch.randint(100, (batch, 20)), targets
    make = getattr(torchvision.models, name, None)
    if not callable(make):
        sys.exit(f"there is no network {name}: there are {', '.join(networks.NAMES)}, gru, tagger, and torchvision's")
    return make(num_classes=10), torch.randn(batch, 3, 64, 64), targets


def measure(name, batch, path):
    import torch
    import train
    import training_networks as networks
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, x, targets = networks.make(name, batch, SCALE) if name in networks.NAMES else judge(name, batch, networks)
    optimizer = torch.optim.Adam(module.parameters())
    for _ in range(4):
        train.step(lambda: networks.loss(module(x), targets), optimizer)
    networks.export(module, x, path)


SCALE = 2
if len(sys.argv) == 5 and sys.argv[1] == "--measure":
    measure(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    sys.exit()

import training_networks as networks
benanza = os.path.abspath(sys.argv[1])


def call(*arguments):
    done = subprocess.run([benanza, *arguments], capture_output=True, text=True)
    assert done.returncode in (0, 4), done.stderr[-2000:]
    return json.loads(done.stdout) if "--json" in arguments else None


CLASSES = ("weights and data", "gradients", "optimizer", "activations", "rest")
print("| network | batch | peak, MB | off by | " + " | ".join(CLASSES) + " |")
print("|---" * (4 + len(CLASSES)) + "|")
with tempfile.TemporaryDirectory() as work:
    for name in sys.argv[2:] or networks.NAMES:
        for batch in 4, 16, 64:
            path, recording = f"{work}/{name}.onnx", f"{work}/{name}.bz"
            call("profile", "--memory", "--force", "-o", recording, "--", sys.executable, "-W", "ignore", __file__, "--measure", name, str(batch), path)
            rows = call("profile", "tables", recording, "--table", "training-memory", "--json")["tables"][0]["rows"]
            took = {r["class"]: r["at_peak"] / 1e6 for r in rows}
            memory = call("layers", "--train=adam", "--json", path)[0]["training"]["memory"]
            said = {c["class"]: c["at_peak"] / 1e6 for c in memory["classes"]}
            said["weights and data"] = said["weights"] + said["inputs"]
            print(f"| {name} | {batch} | {took['all']:.2f} {memory['peak'] / 1e6:.2f} | {memory['peak'] / 1e6 / took['all'] - 1:+.1%} | "
                  + " | ".join(f"{took[c]:.2f} {said[c]:.2f}" for c in CLASSES) + " |", flush=True)
