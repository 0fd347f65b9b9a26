#!/usr/bin/python3
"""replay_training.py BENANZA [torch]: an iteration of training that is replayed trains.

Without `torch`: gradients of the replay against finite differences of its own loss, every weight of a small network at some of its
elements; weights change by rate times gradient; the loss falls, by each optimizer; each call has the result of its definition.
With `torch`: seven networks of tests/conformance/training_networks.py against PyTorch, gradients within 1e-4 and losses over ten iterations; exit status 77 without PyTorch."""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

BENANZA = os.path.abspath(sys.argv[1])
HERE = Path(__file__).resolve().parent
TYPES = {"f32": "f", "i64": "q", "i32": "i", "bool": "?", "u8": "B"}


def replay(model, work, *options, code=0):
    done = subprocess.run([BENANZA, "replay", model, "--json", "--db", f"{work}/db", "--time-limit", "0", *options], capture_output=True, text=True)
    assert done.returncode in (code, 4), (done.returncode, done.stderr)
    return json.loads(done.stdout)


def count(end):
    return math.prod(end["shape"])


def outputs(report, path):
    data, at, values = Path(path).read_bytes(), 0, {}
    for end in report["outputs"]:
        kind = TYPES[end["dtype"]]
        size = count(end) * struct.calcsize(kind)
        values[end["name"]] = struct.unpack(f"<{count(end)}{kind}", data[at:at + size])
        at += size
    assert at == len(data), (at, len(data))
    return values


def differences(model, work):
    """Weights lie in weights.bin as the program's table says: the program is run with one of them moved up, and down."""
    folder = f"{work}/program"
    report = replay(model, work, "--train=sgd", "--steps", "1", "--rate", "0.5", "--folder", folder, "--outputs", f"{work}/outputs", "--check")
    assert report["checked"] > 20 and report["wrong"] == 0, (report["checked"], report["wrong"])
    values = outputs(report, f"{work}/outputs")
    gradient = {end["gradient_of"]: values[end["name"]] for end in report["outputs"] if "gradient_of" in end}
    updated = {end["replaces"]: values[end["name"]] for end in report["outputs"] if "replaces" in end}
    places = {}
    for line in Path(folder, "replay.c").read_text().splitlines():
        if "BZ_VALUE_KEPT" in line and ".at = -1" not in line:
            places[line.split('.name = "')[1].split('"')[0]] = int(line.split(".at = ")[1].split(",")[0].split("}")[0])
    weights = Path(folder, "weights.bin").read_bytes()

    def loss(changed):
        Path(f"{work}/changed").write_bytes(changed)
        done = subprocess.run([f"{folder}/build/replay", "--steps", "1", "--time-limit", "0", "--weights", f"{work}/changed"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["losses"][0]

    assert len(gradient) == 10 and set(gradient) <= set(places), (sorted(gradient), sorted(places))
    largest, compared = max(abs(g) for v in gradient.values() for g in v), 0
    for name, g in gradient.items():
        old = struct.unpack_from(f"<{len(g)}f", weights, places[name])
        worst = max(abs(o - 0.5 * d - n) for o, d, n in zip(old, g, updated[name]))
        assert worst <= 1e-6, f"{name}: the update is off by {worst}"
        for k in {0, len(g) // 2, len(g) - 1}:
            step, sides = 0.01, []
            for sign in (1, -1):
                changed = bytearray(weights)
                struct.pack_into("<f", changed, places[name] + 4 * k, old[k] + sign * step)
                sides.append(loss(bytes(changed)))
            slope = (sides[0] - sides[1]) / (2 * step)
            assert abs(slope - g[k]) <= 0.01 * largest, f"{name}[{k}]: the gradient is {g[k]}, the loss changes by {slope}"
            compared += 1
    assert updated["mean1"] != struct.unpack_from("<4f", weights, places["mean1"])
    print(f"{compared} elements of {len(gradient)} weights: gradients are the slopes of the loss")
    for optimizer, rate in (("sgd", "0.2"), ("momentum", "0.05"), ("adam", "0.02"), ("adamw", "0.02")):
        for more in ((), ("--fused-update",)) if optimizer == "adam" else ((),):
            losses = replay(model, work, "--train=" + optimizer, "--steps", "40", "--rate", rate, *more)["losses"]
            assert len(losses) == 40 and losses[39] < 0.7 * losses[0], (optimizer, more, losses)
    print("the loss falls by each optimizer")
    plain, parts = (replay(model, work, "--train=momentum", "--steps", "8", *more)["losses"] for more in ((), ("--checkpoint", "3")))
    assert all(abs(a - b) < 1e-5 for a, b in zip(plain, parts)), (plain, parts)
    print("what is computed again gives the same losses")


def narrow(model, work):
    """With weights in f32 and work in bf16 the losses are those of f32, as far as bf16 tells them. Not every processor has such calls."""
    options = ("--train=sgd", "--steps", "8", "--rate", "0.05")
    command = [BENANZA, "replay", model, "--json", "--db", f"{work}/db", "--time-limit", "0", "--mixed", "bf16", "--check", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if "no implementation of it for this processor" in done.stderr:
        assert done.returncode == 1, done
        print("oneDNN computes no bf16 on this processor, and says so")
        return
    assert done.returncode in (0, 4), (done.returncode, done.stderr)
    report, wide = json.loads(done.stdout), replay(model, work, *options)["losses"]
    assert report["checked"] > 20 and report["wrong"] == 0, (report["checked"], report["wrong"])
    assert all(abs(a - b) < 0.02 * abs(b) for a, b in zip(report["losses"], wide, strict=True)), (report["losses"], wide)
    print("what is computed in bf16 gives the losses of f32 within 2 %")


def against_torch(work):
    try:
        import numpy as np
        import onnx
        from onnx import numpy_helper
        import torch
    except ImportError as e:
        print(f"skipped: {e.name} is not there")
        sys.exit(77)
    import warnings
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(HERE.parent / "conformance"))
    import training_networks as networks
    torch.set_num_threads(1)
    rules = {"sgd": torch.optim.SGD, "momentum": lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9), "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    for name, rule, rate in (("cnn", "momentum", 0.01), ("mobile", "sgd", 0.02), ("encoder", "adam", 0.001),
                             ("gpt", "adamw", 0.001), ("unet", "sgd", 0.05), ("lstm", "sgd", 0.05), ("gru", "adam", 0.001), ("rnn", "sgd", 0.05)):
        torch.manual_seed(3)
        net, x, targets = networks.make(name, 2)
        model = f"{work}/{name}.onnx"
        networks.export(net.train(), x, model, 14 if name == "gpt" else 17)  # before 17 layer normalizations are written out
        Path(f"{work}/inputs").write_bytes(x.numpy().tobytes() + targets.numpy().tobytes())
        first = {t.name: numpy_helper.to_array(t) for t in onnx.load(model).graph.initializer}
        # transposed weights have names of their own in the file, so parameters are told by their values
        parameters = [(p, p.detach().numpy().copy()) for p in net.parameters()]
        options = ("--train=" + rule, "--rate", str(rate), "--inputs", f"{work}/inputs")
        report = replay(model, work, *options, "--steps", "1", "--outputs", f"{work}/outputs")
        values = outputs(report, f"{work}/outputs")
        losses = replay(model, work, *options, "--steps", "10")["losses"]
        optimizer, wanted, slope = rules[rule](net.parameters(), lr=rate), [], []
        for i in range(10):
            optimizer.zero_grad()
            loss = networks.loss(net(x), targets)
            loss.backward()
            if i == 0:
                slope = [p.grad.numpy().copy() for p, _ in parameters]
            optimizer.step()
            wanted.append(loss.item())
        largest, compared, worst = max(np.abs(g).max() for g in slope), 0, 0
        for end in report["outputs"]:
            if "gradient_of" not in end:
                continue
            w = first[end["gradient_of"]].reshape(end["shape"])
            got, best = np.array(values[end["name"]]).reshape(end["shape"]), math.inf
            for (_, p), g in zip(parameters, slope):
                for p, g in ((p, g), (p.T, g.T)):
                    if p.size == w.size and np.array_equal(p.ravel(), w.ravel()):
                        # a gradient that is 0 but for rounding (a bias before a normalization) is held against the largest
                        best = min(best, np.abs(got.ravel() - g.ravel()).max() / max(np.abs(g).max(), 1e-2 * largest))
            assert best < 1e-4, f"{name}: the gradient of {end['gradient_of']} is off by {best}"
            worst, compared = max(worst, best), compared + 1
        assert compared == len(parameters), (name, compared, len(parameters))
        off = max(abs(a - b) for a, b in zip(losses, wanted))
        assert losses[9] < losses[0] and off < 1e-4, (name, losses, wanted)
        print(f"{name}, {rule}: {compared} gradients within {worst:.1e}, ten losses within {off:.1e}: {losses[0]:.4f} to {losses[9]:.4f}")


with tempfile.TemporaryDirectory() as folder:
    if "torch" in sys.argv[2:]:
        against_torch(folder)
    else:
        differences(str(HERE.parent / "cases/replay-train/trained.onnx"), folder)
        narrow(str(HERE.parent / "cases/replay-train/trained.onnx"), folder)
