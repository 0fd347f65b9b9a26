#!/usr/bin/python3
"""published_counts.py BENANZA SHARED: counts over the 30 models of the published evaluation.

Holds what `BENANZA layers --json` says of SHARED/zoo30 against what was published: nodes, unique layers, MACs. Skipped
(exit status 77) where SHARED has no such folder.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

# The published evaluation told layers apart by type and shapes, and these types were coarser than ours.
PUBLISHED_TYPE = {kind: name for name, kinds in {
    "elementwise": "add sub mul div", "pooling": "maxpool avgpool globalavgpool globalmaxpool",
    "activation": "relu leakyrelu prelu sigmoid tanh"}.items() for kind in kinds.split()}
NODES, UNIQUE_BY_SHAPES, UNIQUE_KEYS = 5746, 1028, 1126
# Published with another input size (DUC).
OTHER_MACS = {"DUC"}
COUNTED_PER_ELEMENT = {"relu", "mul", "div", "lrn"}
TOLERANCE = 0.02


def shapes(layer):
    return tuple(tuple(v["shape"] or ()) for v in layer["inputs"]), tuple(tuple(v["shape"] or ()) for v in layer["outputs"])


def published_key(layer):
    return PUBLISHED_TYPE.get(layer["kind"], layer["kind"]), shapes(layer)


def elements(shape):
    n = 1
    for dim in shape:
        n *= dim
    return n


def published_macs(model):
    """Multiply-accumulates, and one operation an element for some kinds, as the published table has it."""
    return sum(layer["macs"] + (elements(layer["outputs"][0]["shape"]) if layer["kind"] in COUNTED_PER_ELEMENT else 0)
               for layer in model["layers"])


def number(text):
    return float(text[:-1]) * {"K": 1e3, "M": 1e6, "G": 1e9}[text[-1]]


def main():
    benanza, folder = sys.argv[1], Path(sys.argv[2]) / "zoo30"
    if not folder.is_dir():
        print(f"skipped: {folder} is not there")
        return 77
    paths = sorted(folder.glob("*.onnx"))
    models = json.loads(subprocess.run([benanza, "layers", "--json", *paths], capture_output=True, check=True).stdout)
    rows = [line.split("\t") for line in (folder / "table.tsv").read_text().splitlines()]
    table = {row[0]: dict(zip(rows[0], row)) for row in rows[1:]}
    failures = []

    def expect(what, found, wanted):
        print(f"{what}: {found}")
        if found != wanted:
            failures.append(f"{what}: {found}, expected {wanted}")

    keys, by_shapes, v1 = set(), set(), []
    for path, model in zip(paths, models):
        name, layers = os.path.basename(path)[:-5], model["layers"]
        own = {published_key(layer) for layer in layers}
        by_shapes |= own
        keys |= {layer["key"] for layer in layers}
        if name.startswith("ResNet") and name.endswith("-v1"):
            v1.append(model)
        expect(f"{name} nodes", model["nodes"], int(table[name]["nodes"]))
        expect(f"{name} unique by type and shapes", len(own), int(table[name]["unique"]))
        published, ours = number(table[name]["pub_macs"]), published_macs(model)
        off = ours / published - 1
        print(f"{name} MACs: {ours / 1e6:.0f} M, published {published / 1e6:.0f} M ({off:+.1%})")
        if abs(off) > TOLERANCE and name not in OTHER_MACS:
            failures.append(f"{name}: MACs are {off:+.1%} off the published figure")
    resnet50 = models[[p.stem for p in paths].index("ResNet050-v1")]
    expect("ResNet050-v1 unique layers", len({layer["key"] for layer in resnet50["layers"]}), 47)
    convs = [layer["key"] for layer in resnet50["layers"] if layer["kind"] == "conv"]
    expect("ResNet050-v1 convolutions", len(convs), 53)
    expect("ResNet050-v1 unique convolutions, bias left out", len({re.sub(" b=[0-9]+", "", key) for key in convs}), 20)
    expect("ResNet*-v1 nodes", sum(model["nodes"] for model in v1), 1229)
    expect("ResNet*-v1 unique layers", len({layer["key"] for model in v1 for layer in model["layers"]}), 60)
    expect("all nodes", sum(model["nodes"] for model in models), NODES)
    expect("all unique by type and shapes", len(by_shapes), UNIQUE_BY_SHAPES)
    expect("all unique keys", len(keys), UNIQUE_KEYS)
    print(f"{len(failures)} wrong", *failures, sep="\n  ")
    return bool(failures)


sys.exit(main())
