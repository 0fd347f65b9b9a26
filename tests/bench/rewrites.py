#!/usr/bin/python3
"""rewrites.py BENANZA [WORD...]: graphs that a runtime changes before it runs them: layers that nothing needs, equal ones, transposes that cancel.

Each model is small, written here, and has something that a compiler of graphs leaves out or takes along. Fused bounds, by records of an empty
database, stand beside what ONNX Runtime (onnxruntime-node by NODE_PATH) takes for the same file on one thread, as the lower quartile of its runs:
a bound that is above is none."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
RANDOM = numpy.random.default_rng(1)


class Graph:
    """Nodes one after the other; x is the input."""

    def __init__(self, *shape):
        self.shape, self.nodes, self.weights = shape, [], []

    def weight(self, *shape, value=None):
        name = f"w{len(self.weights)}"
        values = RANDOM.standard_normal(shape).astype("f") * 0.05 if value is None else numpy.asarray(value)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, channels_in, channels, kernel=3, pads=None):
        w = self.weight(channels, channels_in, kernel, kernel)
        return self.node("Conv", x, w, self.weight(channels), pads=pads or [kernel // 2] * 4)

    def matmul(self, x, k, n):
        return self.node("MatMul", x, self.weight(k, n))

    def transpose(self, x, *perm):
        return self.node("Transpose", x, perm=perm)

    def ints(self, *values):
        return self.weight(value=numpy.array(values, "i8"))

    def number(self, value):
        return self.weight(value=numpy.array(value, "f"))

    def save(self, path, *outputs):
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)]
        results = [helper.make_empty_tensor_value_info(o) for o in outputs]
        graph = helper.make_graph(self.nodes, "graph", inputs, results, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


IMAGE, LAST, ROWS, HEADS = (1, 64, 56, 56), (1, 56, 56, 64), (1, 196, 512), (1, 8, 196, 64)
MODELS = {}


def model(f):
    MODELS[f.__name__.replace("_", " ")] = f
    return f


@model
def dead_convolution():
    g = Graph(*IMAGE)
    g.conv(g.conv("x", 64, 64), 64, 64)
    return g, g.node("Relu", "x")


@model
def dead_second_result():
    g = Graph(*IMAGE)
    a, b = g.node("Split", "x", outputs=2, axis=1)
    g.conv(b, 32, 64)
    return g, g.conv(a, 32, 32)


@model
def equal_convolutions():
    g = Graph(*IMAGE)
    w, b = g.weight(64, 64, 3, 3), g.weight(64)
    y = [g.node("Relu", g.node("Conv", "x", w, b, pads=[1] * 4)) for _ in range(3)]
    return g, g.node("Sum", *y)


@model
def equal_activations():
    g = Graph(*IMAGE)
    y = [g.conv(g.node("Tanh", "x"), 64, 16, 1) for _ in range(3)]
    return g, g.node("Sum", *y)


@model
def transposes_cancel():
    g = Graph(*IMAGE)
    y = "x"
    for _ in range(3):
        y = g.transpose(g.transpose(g.conv(y, 64, 64, 1), 0, 2, 3, 1), 0, 3, 1, 2)
    return g, y


@model
def transposes_cancel_around_relu():
    g = Graph(*IMAGE)
    y = "x"
    for _ in range(3):
        y = g.transpose(g.node("Relu", g.transpose(g.conv(y, 64, 64, 1), 0, 2, 3, 1)), 0, 3, 1, 2)
    return g, y


@model
def channels_last_around_convolutions():
    g = Graph(*LAST)
    y = "x"
    for _ in range(3):
        y = g.node("Relu", g.transpose(g.conv(g.transpose(y, 0, 3, 1, 2), 64, 64, 1), 0, 2, 3, 1))
    return g, y


@model
def channels_last_residual():
    g = Graph(*LAST)
    y = "x"
    for _ in range(3):
        c = g.transpose(g.conv(g.transpose(y, 0, 3, 1, 2), 64, 64, 1), 0, 2, 3, 1)
        y = g.node("Add", g.node("Relu", c), y)
    return g, y


@model
def channels_last_pool():
    g = Graph(*LAST)
    p = g.transpose(g.node("MaxPool", g.transpose("x", 0, 3, 1, 2), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 0, 2, 3, 1)
    return g, g.transpose(g.conv(g.transpose(p, 0, 3, 1, 2), 64, 64, 1), 0, 2, 3, 1)


@model
def channels_last_concat():
    g = Graph(*LAST)
    y = g.transpose("x", 0, 3, 1, 2)
    a, b = (g.transpose(g.conv(y, 64, 32, 1), 0, 2, 3, 1) for _ in range(2))
    return g, g.transpose(g.conv(g.transpose(g.node("Concat", a, b, axis=3), 0, 3, 1, 2), 64, 64, 1), 0, 2, 3, 1)


@model
def transposed_operand_of_a_product():
    g = Graph(*HEADS)
    return g, g.node("MatMul", "x", g.transpose("x", 0, 1, 3, 2))


@model
def transposed_rows_into_a_product():
    g = Graph(512, 512)
    y = "x"
    for _ in range(4):
        y = g.matmul(g.transpose(y, 1, 0), 512, 512)
    return g, y


@model
def heads_of_attention():
    g = Graph(*ROWS)

    def heads(*perm):
        return g.transpose(g.node("Reshape", g.matmul("x", 512, 512), g.ints(1, 196, 8, 64)), *perm)
    s = g.node("Mul", g.node("MatMul", heads(0, 2, 1, 3), heads(0, 2, 3, 1)), g.number(0.125))
    y = g.transpose(g.node("MatMul", g.node("Softmax", s, axis=-1), heads(0, 2, 1, 3)), 0, 2, 1, 3)
    return g, g.matmul(g.node("Reshape", y, g.ints(1, 196, 512)), 512, 512)


@model
def transposes_that_compose():
    g = Graph(*HEADS)
    return g, g.matmul(g.transpose(g.transpose("x", 0, 2, 1, 3), 0, 3, 1, 2), 8, 64)


@model
def pad_before_convolution():
    g = Graph(*IMAGE)
    y = "x"
    for _ in range(3):
        y = g.conv(g.node("Pad", y, g.ints(0, 0, 1, 1, 0, 0, 1, 1)), 64, 64, 3, [0] * 4)
    return g, y


@model
def pad_before_pool():
    g = Graph(*IMAGE)
    p = g.node("Pad", "x", g.ints(0, 0, 1, 1, 0, 0, 1, 1), g.number(-numpy.inf))
    return g, g.node("MaxPool", p, kernel_shape=[3, 3], strides=[2, 2])


@model
def steps_that_change_nothing():
    g = Graph(*IMAGE)
    y = g.node("Mul", g.node("Add", "x", g.number(0)), g.number(1))
    y = g.node("Div", g.node("Sub", y, g.number(0)), g.number(1))
    return g, g.conv(y, 64, 16, 1)


@model
def relu_and_clip():
    g = Graph(*IMAGE)
    y = g.node("Clip", g.node("Relu", "x"), g.number(0), g.number(6))
    return g, g.node("Relu", g.node("Relu", y))


@model
def casts_that_cancel():
    g = Graph(*IMAGE)
    y = g.node("Cast", g.node("Cast", "x", to=TensorProto.DOUBLE), to=TensorProto.FLOAT)
    return g, g.node("Relu", y)


@model
def scale_of_a_product():
    g = Graph(*ROWS)
    return g, g.node("Mul", g.matmul(g.node("Mul", "x", g.number(0.5)), 512, 512), g.number(0.25))


@model
def scale_and_shift_behind_convolution():
    g = Graph(*IMAGE)
    y = "x"
    for _ in range(3):
        y = g.node("Mul", g.conv(y, 64, 64, 1), g.weight(1, 64, 1, 1))
        y = g.node("Relu", g.node("Add", y, g.weight(1, 64, 1, 1)))
    return g, y


@model
def batchnorm_behind_product():
    g = Graph(196, 512)
    y = "x"
    for _ in range(3):
        y = g.node("BatchNormalization", g.matmul(y, 512, 512), g.weight(512), g.weight(512), g.weight(512), g.weight(value=numpy.ones(512, "f")))
    return g, y


@model
def concat_then_slice():
    g = Graph(*IMAGE)
    c = g.node("Concat", "x", g.node("Relu", "x"), axis=1)
    return g, g.conv(g.node("Slice", c, g.ints(0), g.ints(64), g.ints(1)), 64, 32, 1)


@model
def split_then_concat():
    g = Graph(*IMAGE)
    a, b = g.node("Split", "x", outputs=2, axis=1)
    return g, g.conv(g.node("Concat", a, b, axis=1), 64, 32, 1)


@model
def expand_before_add():
    g = Graph(*IMAGE)
    m = g.node("ReduceMean", "x", axes=[2, 3], keepdims=1)
    return g, g.node("Add", "x", g.node("Expand", m, g.ints(*IMAGE)))


@model
def two_reciprocals():
    g = Graph(*IMAGE)
    return g, g.node("Mul", "x", g.node("Div", g.number(1), g.node("Exp", "x")))


@model
def not_before_where():
    g = Graph(*IMAGE)
    c = g.node("Not", g.node("Greater", "x", g.number(0)))
    return g, g.node("Where", c, "x", g.node("Tanh", "x"))


@model
def slices_of_channels():
    g = Graph(*IMAGE)
    y = [g.conv(g.node("Slice", "x", g.ints(k), g.ints(k + 16), g.ints(1)), 16, 16, 3) for k in range(0, 64, 16)]
    return g, g.node("Concat", *y, axis=1)


@model
def resize_by_one():
    g = Graph(*IMAGE)
    return g, g.node("Relu", g.node("Resize", "x", "", g.weight(value=numpy.ones(4, "f")), mode="nearest"))


@model
def pool_of_one():
    g = Graph(*IMAGE)
    return g, g.node("Relu", g.node("AveragePool", "x", kernel_shape=[1, 1]))


@model
def mean_of_a_transposed_image():
    g = Graph(*IMAGE)
    return g, g.node("ReduceMean", g.transpose(g.conv("x", 64, 64, 1), 0, 2, 3, 1), axes=[1, 2], keepdims=0)


@model
def softmax_of_a_transposed_image():
    g = Graph(1, 32, 56, 56)
    return g, g.transpose(g.node("Softmax", g.transpose("x", 0, 2, 3, 1), axis=-1), 0, 3, 1, 2)


@model
def shuffle_of_channels():
    g = Graph(*IMAGE)
    y = g.transpose(g.node("Reshape", g.conv("x", 64, 64, 1), g.ints(1, 2, 32, 56, 56)), 0, 2, 1, 3, 4)
    return g, g.conv(g.node("Reshape", y, g.ints(*IMAGE)), 64, 64, 1)


@model
def tile_by_one():
    g = Graph(*IMAGE)
    return g, g.node("Relu", g.node("Tile", "x", g.ints(1, 1, 1, 1)))


@model
def gather_of_one_row():
    g = Graph(*ROWS)
    return g, g.node("Gather", g.node("Tanh", "x"), g.weight(value=numpy.array(0)), axis=1)


def main():
    program, words = sys.argv[1], sys.argv[2:]
    above, rows = 0, []
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, make in MODELS.items():
            if not words or any(w in name for w in words):
                graph, *outputs = make()
                files[name] = f"{folder}/{name.replace(' ', '_')}.onnx"
                graph.save(files[name], *outputs)
        done = subprocess.run([program, "bound", *files.values(), "--fuse", "--threads", "1", "--db", f"{folder}/db", "--json", "--time-limit", "1"],
                              capture_output=True, text=True)
        if done.returncode not in (0, 4):
            sys.exit(done.stderr)
        bounds = {Path(b["model"]).stem: b for b in json.loads(done.stdout)["models"]}
        for name, path in files.items():
            b = bounds[Path(path).stem]
            ran = subprocess.run(["node", ROOT / "tests/programs/ort.js", path, "400"], env=os.environ | {"THREADS": "1"}, capture_output=True, text=True)
            times = sorted(float(t) for t in ran.stderr.split()[20:]) or [float("nan")]
            fused, theirs = b["fused"]["sequential"] * 1e3, statistics.quantiles(times)[0] if len(times) > 1 else times[0]
            above += fused > theirs
            print(f"{name:42} {fused:8.3f} {theirs:8.3f} {fused / theirs:6.2f} {'ABOVE' if fused > theirs else ''}", flush=True)
    print(f"{len(files)} models, {above} bounds above ONNX Runtime")


main()
