#!/usr/bin/python3
"""Compares benanza's shape inference with the ONNX package's own.

    tests/conformance/shape_oracle.py BENANZA MODEL...

For every model, the outputs of all nodes of the main graph, as `BENANZA layers --json MODEL` reports them, are held
against onnx.shape_inference (strict, with data propagation). What the oracle does not know is not compared; what
benanza leaves open is listed, since it is meant to leave nothing open. Exit status: 0 when nothing differs, 1 when
something does or benanza fails, 2 for wrong usage.
"""
import argparse
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from onnx import TensorProto
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

# onnx 1.12 ends at bf16; the later numbers are the standard's.
DTYPES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 8: "string", 9: "bool", 10: "f16",
          11: "f64", 12: "u32", 13: "u64", 14: "c64", 15: "c128", 16: "bf16", 17: "f8e4m3", 18: "f8e4m3fnuz",
          19: "f8e5m2", 20: "f8e5m2fnuz", 21: "u4", 22: "i4"}
INTEGER_BYTES = {TensorProto.INT32: 4, TensorProto.INT64: 8}
PAYLOADS = ("raw_data", "float_data", "int32_data", "int64_data", "string_data", "double_data", "uint64_data")
PAYLOAD_LIMIT = 4096    # bytes; more than that of numbers that are not integers is weights
LISTED = 5              # open outputs named per model


@dataclass
class Type:
    """Of a tensor: dtype None = unknown; dims None = unknown rank; in dims, None or a name = unknown size."""
    dtype: str | None = None
    dims: list | None = None

    def is_static(self):
        return self.dims is not None and all(isinstance(dim, int) for dim in self.dims)

    def __str__(self):
        dims = "?" if self.dims is None else "x".join("?" if dim is None else str(dim) for dim in self.dims) or "scalar"
        return f"{self.dtype or '?'} {dims}"


@dataclass
class Result:
    """What the comparison of one model came to. The lists hold one line for each finding."""
    compared: int = 0       # outputs of which the oracle knows dtype or rank: equal + different + behind
    equal: int = 0
    partly: int = 0         # of those compared, the ones whose shape the oracle does not know in full
    behind: int = 0         # of the open ones, those of which the oracle knows more
    unknown: int = 0        # to the oracle
    different: list = field(default_factory=list)
    open: list = field(default_factory=list)
    open_operators: Counter = field(default_factory=Counter)
    remarks: list = field(default_factory=list)


# The oracle

def oracle_types(model):
    """Returns ({value name: Type, or None for what is not a tensor}, remarks). Changes the model."""
    forget_payloads(model.graph)
    remarks = []
    for strict in (True, False):
        # The binding raises exceptions of its own, and others: all mean that there is no answer.
        try:
            graph = onnx.shape_inference.infer_shapes(model, strict_mode=strict, data_prop=True).graph
            return {value.name: tensor_type(value.type) for value in [*graph.value_info, *graph.output]}, remarks
        except Exception as error:
            mode = "strict inference" if strict else "inference"
            remarks.append(f"the oracle's {mode} failed: {' '.join(str(error).split())[:160]}")
    return {}, remarks


def tensor_type(proto):
    if proto.WhichOneof("value") != "tensor_type":
        return None
    tensor = proto.tensor_type
    dims = None
    if tensor.HasField("shape"):
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    return Type(DTYPES.get(tensor.elem_type), dims)


def forget_payloads(graph):
    """Drops weights and value_info, here and in subgraphs. The oracle copies the whole model several times and stops
    at 2 GiB; value_info it would merely echo. Sparse initializers, which is what a model without weights has, become
    dense: onnx 1.12 gives them a sparse type that no operator accepts.
    """
    del graph.value_info[:]
    for sparse in graph.sparse_initializer:
        graph.initializer.add(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    del graph.sparse_initializer[:]
    for tensor in graph.initializer:
        forget_payload(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                forget_payload(attribute.t)
            if attribute.HasField("g"):
                forget_payloads(attribute.g)
            for subgraph in attribute.graphs:
                forget_payloads(subgraph)


def forget_payload(tensor):
    """Keeps integers, as they may be shapes (zeros, where the file has none of them), and what is small."""
    if tensor.data_type in INTEGER_BYTES:
        if not any(len(getattr(tensor, name)) for name in PAYLOADS):
            size = INTEGER_BYTES[tensor.data_type]
            for dim in tensor.dims:
                size *= dim
            tensor.raw_data = bytes(size)
    elif tensor.ByteSize() > PAYLOAD_LIMIT or uses_external_data(tensor):
        tensor.CopyFrom(TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims))


def load(path):
    """Loads the model, and of its external data only the integers."""
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        if uses_external_data(tensor) and tensor.data_type in INTEGER_BYTES:
            load_external_data_for_tensor(tensor, str(Path(path).parent))
    return model


# The comparison

def benanza_types(benanza, path):
    """Returns {value name: Type}. Raises RuntimeError when benanza fails or answers something else than expected."""
    run = subprocess.run([benanza, "layers", "--json", path], capture_output=True, text=True, errors="replace")
    if run.returncode not in (0, 4):
        lines = run.stderr.strip().splitlines() or ["no message"]
        raise RuntimeError(f"benanza: exit status {run.returncode}: {lines[-1][:200]}")
    try:
        [answer] = json.loads(run.stdout)
        return {output["name"]: Type(output["dtype"], output["shape"])
                for layer in answer["layers"] for output in layer["outputs"]}
    except (ValueError, KeyError, TypeError) as error:
        raise RuntimeError(f"benanza: unexpected JSON: {error!r}") from error


def agree(ours, oracle):
    """Whether two types contradict each other nowhere. Only sizes that both know can."""
    if oracle.dtype is not None and ours.dtype != oracle.dtype:
        return False
    if ours.dims is None or oracle.dims is None:
        return True
    return len(ours.dims) == len(oracle.dims) and all(
        a == b for a, b in zip(ours.dims, oracle.dims) if isinstance(a, int) and isinstance(b, int))


def knows_more(oracle, ours):
    """Whether the oracle has the rank or a size that we lack."""
    if oracle.dims is None or ours.dims is None:
        return oracle.dims is not None
    return any(isinstance(b, int) and not isinstance(a, int) for a, b in zip(ours.dims, oracle.dims))


def compare(nodes, ours, oracle, result):
    """Holds the outputs of the nodes in `ours` against those in `oracle`; both are {name: Type}."""
    for index, node in enumerate(nodes):
        for name in filter(None, node.output):
            place = f"{node.name or f'{node.op_type}_{index}'} ({node.op_type}), output {name}"
            truth = oracle.get(name, Type())
            if truth is None or (truth.dtype is None and truth.dims is None):
                result.unknown += 1
            else:
                result.compared += 1
                result.partly += not truth.is_static()
            if truth is None:
                continue
            if name not in ours:
                result.different.append(f"{place}: ours is missing, theirs is {truth}")
                continue

            mine = ours[name]
            if not mine.is_static():
                result.open.append(f"{place}: {mine}" + (f", theirs is {truth}" if knows_more(truth, mine) else ""))
                result.open_operators[node.op_type] += 1
            if not agree(mine, truth):
                result.different.append(f"{place}: ours is {mine}, theirs is {truth}")
            elif knows_more(truth, mine):
                result.behind += 1
            elif truth.dtype is not None or truth.dims is not None:
                result.equal += 1


def check(benanza, path):
    result = Result()
    try:
        model = load(path)
        nodes = list(model.graph.node)
        ours = benanza_types(benanza, path)
    except Exception as error:      # a broken model is a finding, whatever the parser raises
        result.different.append(f"{error}")
        return result
    oracle, result.remarks = oracle_types(model)
    compare(nodes, ours, oracle, result)
    return result


# The report

def summary(name, compared, partly, equal, different, open_, behind, unknown):
    partly = f" ({partly} in part)" if partly else ""
    behind = f" ({behind} known to the oracle)" if behind else ""
    return f"{name}: {compared} compared{partly}, {equal} equal, {different} different, {open_} open{behind}, " \
           f"{unknown} unknown to the oracle"


def report(name, result):
    print(summary(name, result.compared, result.partly, result.equal, len(result.different), len(result.open),
                  result.behind, result.unknown))
    for remark in result.remarks:
        print(f"  note: {remark}")
    for line in result.different:
        print(f"  different: {name}: {line}")
    if result.open:
        print("  open, by operator: " + ", ".join(f"{op} {n}" for op, n in result.open_operators.most_common()))
    for line in result.open[:LISTED]:
        print(f"  open: {line}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benanza", metavar="BENANZA", help="the program")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    arguments = parser.parse_args()

    results = []
    for path in arguments.models:
        results.append(check(arguments.benanza, path))
        report(path, results[-1])

    def total(name):
        return sum(value if isinstance(value, int) else len(value) for value in (getattr(r, name) for r in results))

    print(summary(f"total of {len(results)} models", *map(total, (
        "compared", "partly", "equal", "different", "open", "behind", "unknown"))))
    return 1 if total("different") else 0


if __name__ == "__main__":
    sys.exit(main())
