#!/usr/bin/python3
"""aligned.py BENANZA [NETWORK...]: recordings of trainings by PyTorch's profiler, held against the iterations that models say.

Networks of tests/conformance/training_networks.py and a few besides are exported, trained by Adam for six iterations, recorded, and given to
`benanza analyze --train=adam --profile`. A row tells how many layers it says were done as they are, fused, in parts, by nothing, need not run, and
what belongs to no layer. Nothing is measured."""
import json
import os
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
import training_networks as networks


class Ctc(nn.Module):
    """Two layers in both directions, a result for each step."""
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.LSTM(20, 32, 2, bidirectional=True), nn.Linear(64, 11)

    def forward(self, x):
        return self.head(self.body(x)[0]).flatten(0, 1)


class Translator(nn.Module):
    """The one's last states are the other's first ones."""
    def __init__(self):
        super().__init__()
        self.reader, self.writer, self.head = nn.LSTM(12, 24), nn.LSTM(8, 24), nn.Linear(24, 9)

    def forward(self, x, y):
        return self.head(self.writer(y, self.reader(x)[1])[0]).flatten(0, 1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.body = nn.Embedding(50, 24), nn.LSTM(24, 32, 3, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 9)

    def forward(self, x):
        return self.head(self.body(self.words(x))[0]).flatten(0, 1)


class Checkpointed(nn.Module):
    """Blocks that are computed once more for the way back; the exported model keeps them."""
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(32, 48), nn.Linear(48, 5)
        self.body = nn.ModuleList(nn.Sequential(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, 48), nn.Tanh()) for _ in range(3))

    def forward(self, x):
        x = self.stem(x)
        for block in self.body:
            x = x + (block(x) if torch.onnx.is_in_onnx_export() else checkpoint(block, x))
        return self.head(x)


class Variance(nn.Module):
    """Layer normalizations of which a program writes all but the variance."""
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(20, 32), nn.Linear(32, 7)
        self.body = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))
        self.scale, self.shift = (nn.ParameterList(nn.Parameter(torch.rand(32)) for _ in range(2)) for _ in range(2))

    def forward(self, x):
        x = self.stem(x)
        for layer, scale, shift in zip(self.body, self.scale, self.shift):
            y = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5) * scale + shift
            x = x + torch.tanh(layer(y))
        return self.head(x)


OTHERS = {"tagger": lambda: (Tagger(), torch.randint(50, (4, 20)), torch.randint(9, (80,))),
          "ctc": lambda: (Ctc(), torch.randn(18, 4, 20), torch.randint(11, (72,))),
          "translator": lambda: (Translator(), (torch.randn(10, 4, 12), torch.randn(7, 4, 8)), torch.randint(9, (28,))),
          "variance": lambda: (Variance(), torch.randn(8, 20), torch.randint(7, (8,))),
          "checkpointed": lambda: (Checkpointed(), torch.randn(16, 32), torch.randint(5, (16,)))}
NAMES = ("lstm", "gru", "rnn", "encoder", "gpt", "unet", "cnn", "mobile", "norms", *OTHERS)


def record(module, x, targets, path):
    operands = x if isinstance(x, tuple) else (x,)
    optimizer = torch.optim.Adam(module.parameters())
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as recording:
        for _ in range(6):
            optimizer.zero_grad()
            networks.loss(module(*operands), targets).backward()
            optimizer.step()
            recording.step()
    recording.export_chrome_trace(path)


def main():
    torch.set_num_threads(1)
    kinds = ("same", "fused", "split", "missing", "spared", "extra")
    print("| network | " + " | ".join(kinds) + " |\n|---|" + "---|" * len(kinds))
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:] or NAMES:
            torch.manual_seed(0)
            module, x, targets = OTHERS[name]() if name in OTHERS else networks.make(name, 4)
            model, trace = f"{folder}/{name}.onnx", f"{folder}/{name}.json"
            torch.onnx.export(module, x, model, opset_version=15, do_constant_folding=False,
                              training=torch.onnx.TrainingMode.TRAINING)
            record(module, x, targets, trace)
            p = subprocess.run([sys.argv[1], "analyze", model, "--train=adam", "--profile", trace, "--db", folder + "/db", "--json"],
                               capture_output=True, text=True, check=False)
            if p.returncode not in (0, 4):
                sys.exit(f"{name}: {p.stderr}")
            found = json.loads(p.stdout)["models"][0]["profiles"][0]["alignment"]
            print(f"| {name} | " + " | ".join(str(found[kind]) for kind in kinds) + " |", flush=True)


if __name__ == "__main__":
    main()
