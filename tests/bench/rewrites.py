#!/usr/bin/python3
"""rewrites.py BENANZA [WORD...]: graphs that a runtime changes before it runs them: layers that nothing needs, equal ones, steps that change nothing,
constants that a product takes along, transposes that cancel. With --chance FIRST COUNT in place of words: such layers and real ones, mixed by seed.

Each model is small, written here, and has something that a compiler of graphs leaves out or takes along. Fused bounds, by records of an empty
database (DB: one that stays), stand beside what ONNX Runtime (onnxruntime-node by NODE_PATH) takes for the same file on one thread, as the lower quartile of its runs:
a bound that is above is none."""
import json
import os
import random
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


def repeated(steps, count=3, shape=IMAGE):
    """A model of steps that each keep the shape, several times in a row."""
    def make():
        g = Graph(*shape)
        y = "x"
        for _ in range(count):
            for step in steps:
                y = step(g, y)
        return g, y
    return make


def op(name, *constants, **attributes):
    """A step by an operator: behind its operand these constants, arrays or numbers."""
    arrays = [c if isinstance(c, numpy.ndarray) else numpy.array(c, "f") for c in constants]
    return lambda g, x: g.node(name, x, *(g.weight(value=a) for a in arrays), **attributes)


def ints(*values):
    return numpy.array(values, "i8")


def by_channel(name, value=None):
    """With a constant for each channel of an image; without a value, a weight."""
    def step(g, x):
        numbers = 1 + RANDOM.random((64, 1, 1)) * 0.1 if value is None else numpy.full((64, 1, 1), value)
        return g.node(name, x, g.weight(value=numbers.astype("f")))
    return step


def two(name):
    """Of the same value twice."""
    return lambda g, x: g.node(name, x, x)


def chain(*steps):
    def step(g, x):
        for s in steps:
            x = s(g, x)
        return x
    return step


def twice(*steps):
    return chain(*steps, *steps)


def conv1(g, x):
    return g.conv(x, 64, 64, 1)


def conv3(g, x):
    return g.conv(x, 64, 64, 3)


def bare(g, x):
    return g.node("Conv", x, g.weight(64, 64, 1, 1))


def depthwise(g, x):
    return g.node("Conv", x, g.weight(64, 1, 3, 3), g.weight(64), group=64, pads=[1] * 4)


def linear(g, x):
    return g.node("Add", g.matmul(x, 512, 512), g.weight(512))


def gemm(g, x):
    return g.node("Gemm", x, g.weight(512, 512), g.weight(512))


def batchnorm(g, x):
    return g.node("BatchNormalization", x, g.weight(64), g.weight(64), g.weight(64), g.weight(value=numpy.ones(64, "f")))


def parts(g, x):
    """Cuts it in two and puts it together again."""
    return g.node("Concat", *g.node("Split", x, outputs=2, axis=1), axis=1)


def other_way(g, x):
    """Puts it together with another and takes that off again."""
    return g.node("Split", g.node("Concat", x, g.node("Sigmoid", x), axis=1), outputs=2, axis=1)[0]


def dead(g, x):
    g.node("Tanh", x)
    return x


def equal_relus(g, x):
    return g.node("Add", g.node("Relu", x), g.node("Relu", x))


def transposed(*steps):
    return chain(op("Transpose", perm=[0, 2, 3, 1]), *steps, op("Transpose", perm=[0, 3, 1, 2]))


def through_rows(*steps):
    return chain(op("Reshape", ints(1, 64, 3136)), *steps, op("Reshape", ints(*IMAGE)))


def mask(*steps):
    def step(g, x):
        c = g.node("Greater", x, g.number(0))
        for s in steps:
            c = s(g, c)
        return g.node("Where", c, x, g.number(0.5))
    return step


def larger_zeros():
    g = Graph(1, 1, 56, 56)
    return g, g.node("Relu", g.node("Add", "x", g.weight(value=numpy.zeros((64, 1, 1), "f"))))


def transposed_residual(g, x):
    c, y = (op("Transpose", perm=[0, 2, 3, 1])(g, v) for v in (bare(g, x), x))
    return op("Transpose", perm=[0, 3, 1, 2])(g, relu(g, g.node("Add", c, y)))


def gelu(g, x):
    e = g.node("Add", g.node("Erf", g.node("Div", x, g.number(2 ** 0.5))), g.number(1))
    return g.node("Mul", g.node("Mul", x, g.number(0.5)), e)


relu, sigmoid, tanh = op("Relu"), op("Sigmoid"), op("Tanh")
whole = op("Slice", ints(0, 0), ints(64, 56), ints(1, 2))
NOTHING = {  # steps that leave an image as it is
    "times one": op("Mul", 1), "by one": op("Div", 1), "plus zero": op("Add", 0), "minus zero": op("Sub", 0), "to the first": op("Pow", 1),
    "zeros by channel": by_channel("Add", 0.0), "ones by channel": by_channel("Mul", 1.0),
    "negated twice": twice(op("Neg")), "greater of the same": two("Max"), "smaller of the same": two("Min"),
    "clip of no limits": op("Clip"), "clip to all": op("Clip", -3e38, 3e38),
    "double and back": chain(op("Cast", to=TensorProto.DOUBLE), op("Cast", to=TensorProto.FLOAT)), "cast to itself": op("Cast", to=TensorProto.FLOAT),
    "identity": op("Identity"), "dropout": op("Dropout"), "expand to itself": op("Expand", ints(*IMAGE)), "expand by ones": op("Expand", ints(1)),
    "whole slice": whole, "pad of none": op("Pad", ints(*[0] * 8)), "tile of one": op("Tile", ints(1, 1, 1, 1)), "concat of one": op("Concat", axis=1),
    "split of one": op("Split", axis=1), "sum of one": op("Sum"), "reshape to itself": op("Reshape", ints(*IMAGE)), "rows and back": through_rows(),
    "maxpool of one": op("MaxPool", kernel_shape=[1, 1]), "avgpool of one": op("AveragePool", kernel_shape=[1, 1]),
    "mean of one": chain(op("Unsqueeze", ints(1)), op("ReduceMean", axes=[1], keepdims=0)),
    "parts": parts, "other way": other_way, "gather of all": op("Gather", numpy.arange(64), axis=1), "depth to space by one": op("DepthToSpace", blocksize=1),
    "transposed and back": transposed(), "rows turned and back": twice(op("Transpose", perm=[0, 1, 3, 2])), "dead": dead,
    "sum along one": chain(op("Unsqueeze", ints(1)), op("CumSum", numpy.array(1)), op("Squeeze", ints(1))),
}
REAL = {"conv1": conv1, "conv3": conv3, "bare": bare, "depthwise": depthwise, "relu": relu, "sigmoid": sigmoid, "softmax": op("Softmax", axis=1),
        "maxpool": op("MaxPool", kernel_shape=[3, 3], pads=[1] * 4), "batchnorm": batchnorm, "scale": by_channel("Mul"), "shift": by_channel("Add"), "half": op("Mul", 0.5),
        "transposed relu": transposed(relu), "transposed shift": transposed(op("Add", numpy.ones(64, "f")))}
MATRIX = (196, 512)
columns = {"Mul": op("Mul", numpy.full(512, 1.1, "f")), "Add": op("Add", numpy.full(512, 0.1, "f"))}
MODELS |= {f"only {name}": repeated([step], 24) for name, step in NOTHING.items()}
MODELS |= {f"{name} between convolution and relu": repeated([bare, step, relu]) for name, step in NOTHING.items()}
MODELS |= {
    "relu of what is not negative": repeated([sigmoid, relu, op("Exp"), relu, op("Abs"), relu, op("Softmax", axis=1), relu]),
    "clips of what lies within": repeated([sigmoid, op("Clip", 0, 1), tanh, op("Clip", -1, 1), op("Clip", 0, 6), op("Clip", 0, 6)]),
    "absolute values of absolute values": repeated([op("Abs"), op("Abs"), relu, op("Abs")]),
    "relu of pools of relu": repeated([relu, REAL["maxpool"], relu, op("AveragePool", kernel_shape=[3, 3], pads=[1] * 4), relu]),
    "relu of turned and cut relu": repeated([relu, op("Transpose", perm=[0, 1, 3, 2]), relu, whole, relu]),
    "relu of relus side by side": repeated([relu, parts, relu]),
    "whole numbers rounded": repeated([op("Floor"), op("Ceil"), op("Round"), op("Floor")]),
    "not of not": repeated([mask(op("Not"), op("Not"))]),
    "mask as numbers and back": repeated([mask(op("Cast", to=TensorProto.FLOAT), op("Cast", to=TensorProto.BOOL))]),
    "scale behind bare convolution": repeated([bare, REAL["scale"], relu]),
    "shift, scale and shift behind convolution": repeated([bare, REAL["shift"], REAL["scale"], REAL["shift"], relu]),
    "two batch normalizations behind convolution": repeated([bare, batchnorm, batchnorm, relu]),
    "scale before convolution": repeated([REAL["scale"], conv1, relu]),
    "shift before convolution without pads": repeated([REAL["shift"], conv1, relu]),
    "scales and shifts in a row": repeated([REAL["scale"], REAL["shift"], REAL["scale"], REAL["shift"]]),
    "numbers in a row": repeated([op("Mul", 2), op("Mul", 0.5), op("Div", 3), op("Add", 1), op("Sub", 0.5)]),
    "scale in the channels' order": repeated([bare, transposed(op("Mul", numpy.full(64, 1.1, "f")), op("Add", numpy.ones(64, "f"))), relu]),
    "columns scaled behind gemm": repeated([gemm, columns["Mul"], columns["Add"]], 3, MATRIX),
    "columns scaled behind matmul": repeated([linear, columns["Mul"], relu], 3, ROWS),
    "columns scaled before matmul": repeated([columns["Mul"], linear, relu], 3, ROWS),
    "number behind bias": repeated([linear, op("Mul", 0.5), op("Div", 0.7)], 3, ROWS),
    "number before gemm": repeated([op("Mul", 0.5), gemm, relu], 3, MATRIX),
    "negated behind gemm": repeated([gemm, op("Neg")], 3, MATRIX),
    "number through transposes": repeated([op("Mul", 0.5), op("Transpose", perm=[0, 2, 1]), lambda g, x: g.node("MatMul", g.weight(512, 512), x), op("Transpose", perm=[0, 2, 1])], 3, ROWS),
    "relu between transposes behind convolution": repeated([bare, transposed(relu)]),
    "relu as rows behind convolution": repeated([bare, through_rows(relu)]),
    "residual between transposes": repeated([transposed_residual]),
    "equal relus behind convolution": repeated([bare, equal_relus]),
    "dead reader of a convolution": repeated([lambda g, x: relu(g, dead(g, bare(g, x)))]),
    "pad before depthwise": repeated([op("Pad", ints(0, 0, 1, 1, 0, 0, 1, 1)), lambda g, x: g.node("Conv", x, g.weight(64, 1, 3, 3), group=64)], 6),
    "uneven pad before convolution": repeated([op("Pad", ints(0, 0, 0, 0, 0, 0, 2, 2)), lambda g, x: g.node("Conv", x, g.weight(64, 64, 3, 3))]),
    "pad before average": repeated([op("Pad", ints(0, 0, 1, 1, 0, 0, 1, 1)), op("AveragePool", kernel_shape=[3, 3])], 6),
    "pad of pad": repeated([op("Pad", ints(0, 0, 1, 0, 0, 0, 1, 0)), op("Pad", ints(0, 0, 0, 1, 0, 0, 0, 1)), lambda g, x: g.node("Conv", x, g.weight(64, 64, 3, 3))]),
    "shuffle of one group": repeated([conv1, op("Reshape", ints(1, 1, 64, 56, 56)), op("Transpose", perm=[0, 2, 1, 3, 4]), op("Reshape", ints(*IMAGE))]),
    "larger zeros": larger_zeros,
    "gelu behind identity": repeated([linear, op("Identity"), gelu, op("Dropout")], 3, ROWS),
}


def by_chance(seed):
    """Steps that change nothing among real ones."""
    def make():
        chance = random.Random(seed)
        steps = [chance.choice([*NOTHING.values(), *REAL.values()]) for _ in range(chance.randint(6, 20))]
        return repeated(steps, 1)()
    return make


def main():
    program, words = sys.argv[1], sys.argv[2:]
    if words[:1] == ["--chance"]:
        first, count = map(int, words[1:3])
        models = {f"by chance {seed}": by_chance(seed) for seed in range(first, first + count)}
    else:
        models = {name: make for name, make in MODELS.items() if not words or any(w in name for w in words)}
    above = 0
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, make in models.items():
            graph, *outputs = make()
            files[name] = f"{folder}/{name.replace(' ', '_')}.onnx"
            graph.save(files[name], *outputs)
        done = subprocess.run([program, "bound", *files.values(), "--fuse", "--threads", "1", "--db", os.environ.get("DB", f"{folder}/db"), "--json", "--time-limit", "1"],
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
            print(f"{name:50} {fused:8.3f} {theirs:8.3f} {fused / theirs:6.2f} {'ABOVE' if fused > theirs else ''}", flush=True)
    print(f"{len(files)} models, {above} bounds above ONNX Runtime")


main()
