#!/usr/bin/python3
"""Exports every torchvision network, and transformer and recurrent ones, as weight-free ONNX models.

    tests/conformance/export_zoo.py OUTDIR [NAME...]

The models are food for the shape oracle (shape_oracle.py): many graphs, as PyTorch writes them, at opsets 11 to 17.
Too many and too big to keep in the tree; scripts/export-models makes the few that are. Each is exported in a
process of its own under a memory and a time limit; one line says how it went. What OUTDIR already has is skipped.
Needs `benanza strip`, found as scripts/export-models finds it.
"""
import argparse
import resource
import subprocess
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import onnx
import torch
from torch import nn
from torch.onnx import symbolic_opset9
from torchvision import models

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT = 900                # seconds
MEMORY_LIMIT = 8 << 30          # bytes
FILE_LIMIT = 1 << 30            # bytes of weights; protobuf ends at 2 GiB, and the exporter holds several copies

# Newest first: a network that an older opset can't express gets a newer one.
OPSETS = {"classification": (17, 16, 13, 11), "segmentation": (16, 11), "detection": (16, 11), "video": (16, 13),
          "sequence": (17, 16, 13, 11)}

# Detection networks scale their input to 800 pixels; less does for shapes and takes a tenth of the time.
DETECTION_SIZE = {"min_size": 320, "max_size": 480}


def torchvision_zoo():
    """{name: family}"""
    families = {"classification": models, "segmentation": models.segmentation, "detection": models.detection,
                "video": models.video}
    return {name: family for family, module in families.items() for name in models.list_models(module)}


def vision(name, family):
    """Returns (network, {input name: example})."""
    options = {}
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = False
    if family in ("segmentation", "detection"):
        options["weights_backbone"] = None
    if family == "detection" and not name.startswith("ssd"):
        options.update(DETECTION_SIZE)
    network = models.get_model(name, weights=None, **options)

    if family == "video":
        frames = 16 if not name.startswith("s3d") else 32
        side = 224 if name.startswith(("mvit", "s3d")) else 112
        return network, {"input": torch.zeros(1, 3, frames, side, side)}
    if family == "segmentation":
        return Values(network), {"input": torch.zeros(1, 3, 224, 224)}
    if family == "detection":
        return Images(network), {"image": torch.rand(3, 240, 320)}
    side = {"inception_v3": 299}.get(name, 224)
    return network, {"input": torch.zeros(1, 3, side, side)}


class Values(nn.Module):
    """Tensors instead of a dictionary of them."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return tuple(self.network(x).values())


class Images(Values):
    """A detection network takes a list of images and gives one dictionary per image."""

    def forward(self, image):
        return tuple(self.network([image])[0].values())


class InitialState(Values):
    """A recurrent network that does not begin at zero."""

    def forward(self, x, hidden, cell):
        return self.network(x, (hidden, cell))


class SelfAttention(Values):
    """Attention with one input, which is query, key and value."""

    def forward(self, x):
        return self.network(x, x, x)


def causal_mask(x):
    """Minus infinity above the diagonal; made in the graph, from the input's length."""
    return torch.triu(torch.full((x.size(1), x.size(1)), float("-inf")), diagonal=1)


class CausalDecoder(Values):
    """A decoder that looks only at what came before."""

    def forward(self, x, memory):
        return self.network(x, memory, tgt_mask=causal_mask(x))


class EncoderDecoder(Values):
    """Encoder and causal decoder in one."""

    def forward(self, source, target):
        return self.network(source, target, tgt_mask=causal_mask(target))


@torch.jit.script
def unroll(weight, state, steps: int):
    """Scripted, not traced: stays a Loop in the graph."""
    for _ in range(steps):
        state = torch.tanh(state @ weight)
    return state


class Unrolled(nn.Module):
    """Encodes with a GRU, then feeds its own state back for as many steps as the input has."""

    def __init__(self, width):
        super().__init__()
        self.encoder, self.step = nn.GRU(width, width, batch_first=True), nn.Linear(width, width)

    def forward(self, x):
        return unroll(self.step.weight, self.encoder(x)[1][0], x.size(1))


def sequence_zoo():
    """{name: constructor of (network, {input name: example})} for what torchvision does not have."""
    length, width = 20, 64
    x = torch.rand(1, length, width)
    memory = torch.rand(1, 12, width)
    zoo = {}

    for cell in (nn.LSTM, nn.GRU, nn.RNN):
        for layers in (1, 3):
            for both in (False, True):
                for first in (False, True):
                    name = f"{cell.__name__.lower()}{layers}" + ("_bidirectional" if both else "") + \
                           ("_batch_first" if first else "")
                    zoo[name] = lambda cell=cell, layers=layers, both=both, first=first: (
                        cell(width, 48, num_layers=layers, bidirectional=both, batch_first=first),
                        {"input": x if first else x.transpose(0, 1).contiguous()})
    zoo["rnn_relu"] = lambda: (nn.RNN(width, 48, nonlinearity="relu", batch_first=True), {"input": x})
    zoo["lstm_no_bias"] = lambda: (nn.LSTM(width, 48, bias=False, batch_first=True), {"input": x})
    zoo["lstm_projection"] = lambda: (nn.LSTM(width, 48, proj_size=24, batch_first=True), {"input": x})
    zoo["lstm_initial_state"] = lambda: (InitialState(nn.LSTM(width, 48, batch_first=True)), {
        "input": x, "hidden": torch.zeros(1, 1, 48), "cell": torch.zeros(1, 1, 48)})
    zoo["lstm_cell"] = lambda: (nn.LSTMCell(width, 48), {"input": x[:, 0]})
    zoo["gru_cell"] = lambda: (nn.GRUCell(width, 48), {"input": x[:, 0]})
    zoo["attention"] = lambda: (SelfAttention(nn.MultiheadAttention(width, 4, batch_first=True)), {"input": x})
    zoo["cross_attention"] = lambda: (nn.MultiheadAttention(width, 4, batch_first=True),
                                      {"query": x, "key": memory, "value": memory})
    for first in (False, True):
        for activation in ("relu", "gelu"):
            order = "norm_first" if first else "norm_last"
            make = dict(d_model=width, nhead=4, dim_feedforward=4 * width, activation=activation, batch_first=True,
                        norm_first=first)
            zoo[f"encoder_{order}_{activation}"] = lambda make=make: (
                nn.TransformerEncoder(nn.TransformerEncoderLayer(**make), 3), {"input": x})
            zoo[f"decoder_{order}_{activation}"] = lambda make=make: (
                CausalDecoder(nn.TransformerDecoder(nn.TransformerDecoderLayer(**make), 3)),
                {"input": x, "memory": memory})
    zoo["encoder_decoder"] = lambda: (
        EncoderDecoder(nn.Transformer(width, 4, 2, 2, 4 * width, batch_first=True)), {"source": memory, "target": x})
    zoo["gru_loop"] = lambda: (Unrolled(width), {"input": x})
    return zoo


def families():
    """{name: family} of everything, in the order of export."""
    return {**{name: "sequence" for name in sequence_zoo()}, **torchvision_zoo()}


def opsets(name, everything):
    """The opsets to try. Which comes first is arbitrary, but fixed: it goes by the name's place in its family."""
    family = sorted(other for other in everything if everything[other] == everything[name])
    choice = OPSETS[everything[name]]
    first = family.index(name) % len(choice)
    return [choice[first], *choice[:first], *choice[first + 1:]]


def weightless(network):
    """Lets every big parameter share one number, so that a network of gigabytes takes none."""
    for parameter in network.parameters():
        parameter.data = torch.full((1,), 0.01).expand(parameter.shape)


def inputs_to_initializers(path, inputs):
    """Turns the graph inputs that stand for weights into the sparse, all-zero initializers which `benanza strip`
    makes of weights: for networks too big to be written with them.
    """
    model = onnx.load(path)
    graph = model.graph
    for value in [value for value in graph.input if value.name not in inputs]:
        tensor = value.type.tensor_type
        sparse = graph.sparse_initializer.add(dims=[dim.dim_value for dim in tensor.shape.dim])
        sparse.values.name, sparse.values.data_type = value.name, tensor.elem_type
        sparse.values.dims.append(0)
        sparse.indices.data_type = onnx.TensorProto.INT64
        sparse.indices.dims.append(0)
        graph.input.remove(value)
    Path(path).write_bytes(model.SerializeToString(deterministic=True))


def script(name):
    """One of scripts/ as a module; they have no .py at the end."""
    loader = SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = module_from_spec(spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def export_one(name, target):
    """Runs in the child process."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    exporter = script("export-models")
    exporter.cheap_initialisers()
    # Swin v2 zeroes a part of its bias in place, for which the exporter lacks the operator.
    torch.onnx.register_custom_op_symbolic("aten::zero", symbolic_opset9.zeros_like, 9)
    torch.manual_seed(0)

    everything = families()
    family = everything[name]
    network, inputs = sequence_zoo()[name]() if family == "sequence" else vision(name, family)
    big = sum(p.numel() * p.element_size() for p in network.parameters()) > FILE_LIMIT
    weightless(network) if big else exporter.make_distinct(network)
    network.eval()
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "model.onnx"
        for attempt in opsets(name, everything):
            try:
                exporter.export(network, full, inputs, [], attempt, family == "sequence", export_params=not big)
                break
            except torch.onnx.errors.UnsupportedOperatorError as unsupported:
                error = unsupported
        else:
            raise error
        if big:
            inputs_to_initializers(full, inputs)
        exporter.strip(full, target)
    onnx.checker.check_model(str(target))
    model = onnx.load(target)
    print(f"exported, opset {model.opset_import[0].version}, {len(model.graph.node)} nodes, "
          f"{target.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outdir", type=Path, metavar="OUTDIR")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.outdir.mkdir(parents=True, exist_ok=True)
    if arguments.one:
        return export_one(arguments.names[0], arguments.outdir / f"{arguments.names[0]}.onnx")

    for name in arguments.names or families():
        if (arguments.outdir / f"{name}.onnx").exists():
            print(f"{name}: present", flush=True)
            continue
        try:
            child = subprocess.run([sys.executable, __file__, "--one", arguments.outdir, name], text=True,
                                   capture_output=True, timeout=TIME_LIMIT)
            lines = (child.stdout if child.returncode == 0 else child.stderr).strip().splitlines() or ["no message"]
            print(f"{name}: {lines[-1] if child.returncode == 0 else f'not exported: {reason(lines, child)}'}", flush=True)
        except subprocess.TimeoutExpired:
            print(f"{name}: not exported: more than {TIME_LIMIT} s", flush=True)
    return 0


def reason(lines, child):
    """The exception's first line; a killed process leaves none."""
    if child.returncode < 0:
        return f"killed by signal {-child.returncode}"
    errors = [line for line in lines if not line.startswith(" ") and ": " in line]
    return (errors or lines)[-1][:200]


if __name__ == "__main__":
    sys.exit(main())
