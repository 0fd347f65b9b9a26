#!/usr/bin/python3
"""random_shapes.py BENANZA: types of random nodes, held against the ONNX package's own inference, and products of convolutions and matrix
products against counts by their definition.

Operands, attributes and axes are drawn; what the package's inference refuses is drawn anew. NODES: how many (1500), SEED: which (1)."""
import json
import math
import os
import random
import subprocess
import sys
import tempfile

try:
    import onnx
    from onnx import helper
except ImportError:
    print("skipped: no onnx here")
    sys.exit(77)
import shape_oracle

benanza = os.path.abspath(sys.argv[1])
chance = random.Random(int(os.environ.get("SEED", "1")))
OPSET = 16
F32, I64 = 1, 7


class Draw:
    """One node: its operands, constants and attributes."""

    def __init__(self, number):
        self.name, self.inputs, self.types, self.constants, self.attributes = f"n{number}", [], [], [], {}
        self.op, self.outputs, self.macs, self.mend = None, 1, None, None

    def tensor(self, shape, dtype=F32):
        name = f"{self.name}_{len(self.inputs)}"
        self.inputs.append(name)
        self.types.append(helper.make_tensor_value_info(name, dtype, shape))
        return shape

    def constant(self, values, dtype=I64, shape=None):
        name = f"{self.name}_{len(self.inputs)}"
        self.inputs.append(name)
        self.constants.append(helper.make_tensor(name, dtype, [len(values)] if shape is None else shape, values))

    def absent(self):
        self.inputs.append("")

    def node(self):
        return helper.make_node(self.op, self.inputs, [f"{self.name}_y{k}" for k in range(self.outputs)], name=self.name, **self.attributes)


def dims(rank, least=1, most=7):
    return [chance.randint(least, most) for _ in range(rank)]


def some_axes(rank):
    axes = chance.sample(range(rank), chance.randint(1, rank))
    return [a - rank if chance.random() < 0.4 else a for a in axes]


def maybe(d, name, value, p=0.6):
    if chance.random() < p:
        d.attributes[name] = value
        return value
    return None


def window(d, n, size):
    """Kernel, strides, padding, dilations of n axes."""
    kernel = [chance.randint(1, 3) for _ in range(n)]
    stride = maybe(d, "strides", dims(n, 1, 3)) or [1] * n
    dilation = maybe(d, "dilations", dims(n, 1, 2), 0.4) or [1] * n
    how = chance.choice(["pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID", "none"])
    pads = [0] * 2 * n
    if how == "pads":
        d.attributes["pads"] = pads = [chance.randint(0, k - 1) for k in kernel * 2]
    elif how != "none":
        d.attributes["auto_pad"] = how
    return kernel, stride, dilation, pads if how in ("pads", "none", "VALID") else None


def conv(d):
    n, group = chance.randint(1, 3), chance.choice([1, 1, 2, 3])
    x = d.tensor([chance.randint(1, 3), group * chance.randint(1, 3)] + dims(n, 5, 9))
    kernel, stride, dilation, pads = window(d, n, x)
    maybe(d, "group", group, 1 if group > 1 else 0.3)
    w = d.tensor([group * chance.randint(1, 3), x[1] // group] + kernel)
    if chance.random() < 0.5:
        maybe(d, "kernel_shape", kernel, 1)
    if chance.random() < 0.5:
        d.tensor([w[0]])
    d.macs = lambda y: math.prod(y) * math.prod(w[1:])


def deconv(d):
    n, group = chance.randint(1, 3), chance.choice([1, 2])
    x = d.tensor([chance.randint(1, 3), group * chance.randint(1, 3)] + dims(n, 3, 6))
    kernel = dims(n, 1, 3)
    stride = maybe(d, "strides", dims(n, 1, 3)) or [1] * n
    maybe(d, "dilations", dims(n, 1, 2), 0.4)
    maybe(d, "group", group, 1)
    if chance.random() < 0.5:
        d.attributes["pads"] = [chance.randint(0, (k - 1) // 2) for k in kernel * 2]
    if chance.random() < 0.4:
        d.attributes["output_padding"] = [chance.randint(0, s - 1) for s in stride]
    w = d.tensor([x[1], chance.randint(1, 3)] + kernel)
    d.macs = lambda y: math.prod(x) * math.prod(w[1:])


def pool(d):
    n = chance.randint(1, 3)
    x = d.tensor([chance.randint(1, 3), chance.randint(1, 4)] + dims(n, 5, 9))
    kernel, stride, _, pads = window(d, n, x)
    d.attributes["kernel_shape"] = kernel
    if d.op != "MaxPool":
        d.attributes.pop("dilations", None)
    if d.op != "LpPool" and "auto_pad" not in d.attributes and maybe(d, "ceil_mode", 1, 0.3):
        # windows that would begin behind the input and its padding are none: the standard says so since set 22, this package does not yet
        d.mend = lambda y: y[:2] + [m - ((m - 1) * s >= size + before) for m, s, size, before in zip(y[2:], stride, x[2:], pads)]


def global_pool(d):
    d.tensor(dims(chance.randint(3, 5)))


def broadcast(d, n=2):
    """Operands that stretch to one shape."""
    shape = dims(chance.randint(0, 4))
    for _ in range(n):
        own = [s if chance.random() < 0.7 else 1 for s in shape]
        d.tensor(own[chance.randint(0, len(own)):] if chance.random() < 0.4 else own)


def where(d):
    shape = dims(3)
    d.tensor([s if chance.random() < 0.7 else 1 for s in shape], 9)
    d.tensor(shape[chance.randint(0, 2):])
    d.tensor([s if chance.random() < 0.7 else 1 for s in shape])


def matmul(d):
    m, n, k = dims(3)
    batch = dims(chance.randint(0, 2))
    a = d.tensor(([s if chance.random() < 0.7 else 1 for s in batch] + [m, k]) if batch or chance.random() < 0.8 else [k])
    b = [s if chance.random() < 0.7 else 1 for s in batch]
    d.tensor((b[chance.randint(0, len(b)):] + [k, n]) if len(a) > 1 or chance.random() < 0.8 else [k])
    d.macs = lambda y: math.prod(y) * k


def gemm(d):
    m, n, k = dims(3)
    a, b = maybe(d, "transA", 1, 0.5), maybe(d, "transB", 1, 0.5)
    d.tensor([k, m] if a else [m, k])
    d.tensor([n, k] if b else [k, n])
    if chance.random() < 0.6:
        d.tensor(chance.choice([[m, n], [n], [1, n], [m, 1], []]))
    d.macs = lambda y: m * n * k


def reduction(d):
    rank = chance.randint(1, 4)
    d.tensor(dims(rank))
    maybe(d, "axes", some_axes(rank), 0.8)
    maybe(d, "keepdims", chance.randint(0, 1))


def reduce_sum(d):
    rank = chance.randint(1, 4)
    d.tensor(dims(rank))
    if chance.random() < 0.8:
        d.constant(some_axes(rank))
    maybe(d, "keepdims", chance.randint(0, 1))
    maybe(d, "noop_with_empty_axes", 1, 0.3)


def extreme(d):
    rank = chance.randint(1, 4)
    d.tensor(dims(rank))
    maybe(d, "axis", chance.randint(-rank, rank - 1))
    maybe(d, "keepdims", chance.randint(0, 1))


def transpose(d):
    rank = chance.randint(1, 5)
    d.tensor(dims(rank))
    maybe(d, "perm", chance.sample(range(rank), rank), 0.8)


def reshape(d):
    x = d.tensor(dims(chance.randint(1, 4)))
    shape, left = [], math.prod(x)
    while left > 1 and len(shape) < 4:
        f = chance.choice([f for f in range(1, left + 1) if left % f == 0])
        shape.append(f)
        left //= f
    shape.append(left)
    for k, s in enumerate(shape):
        if chance.random() < 0.4 and k < len(x) and x[k] == s:
            shape[k] = 0
    if chance.random() < 0.5:
        shape[chance.randrange(len(shape))] = -1
    d.constant(shape)


def flatten(d):
    rank = chance.randint(1, 4)
    d.tensor(dims(rank))
    maybe(d, "axis", chance.randint(-rank, rank), 0.8)


def squeeze(d):
    x = d.tensor([1 if chance.random() < 0.5 else s for s in dims(4)])
    ones = [k for k, s in enumerate(x) if s == 1]
    if ones and chance.random() < 0.7:
        d.constant([a - 4 if chance.random() < 0.5 else a for a in chance.sample(ones, chance.randint(1, len(ones)))])


def unsqueeze(d):
    rank, more = chance.randint(0, 3), chance.randint(1, 3)
    d.tensor(dims(rank))
    d.constant([a - rank - more if chance.random() < 0.5 else a for a in chance.sample(range(rank + more), more)])


def concat(d):
    rank = chance.randint(1, 4)
    axis, shape = chance.randrange(rank), dims(rank)
    for _ in range(chance.randint(1, 4)):
        d.tensor([chance.randint(0, 5) if k == axis else s for k, s in enumerate(shape)])
    d.attributes["axis"] = axis - rank if chance.random() < 0.5 else axis


def split(d):
    rank = chance.randint(1, 4)
    axis, d.outputs, shape = chance.randrange(rank), chance.randint(1, 4), dims(rank)
    parts = [chance.randint(1, 4) for _ in range(d.outputs)]
    given = chance.random() < 0.6
    shape[axis] = sum(parts) if given else d.outputs * chance.randint(1, 3)
    d.tensor(shape)
    if given:
        d.constant(parts)
    maybe(d, "axis", axis - rank if chance.random() < 0.5 else axis, 1 if axis else 0.5)


def cut(d):
    rank = chance.randint(1, 4)
    x = d.tensor(dims(rank, 2, 9))
    axes = some_axes(rank)
    steps = [chance.choice([1, 1, 2, 3, -1, -2]) for _ in axes]
    edge = [0, 1, 2, -1, -2, -20, 20, 2**31 - 1, -(2**31)]
    d.constant([chance.choice(edge) for _ in axes])
    d.constant([chance.choice(edge) for _ in axes])
    if chance.random() < 0.9 or axes != list(range(len(axes))):
        d.constant(axes)
        if chance.random() < 0.8:
            d.constant(steps)


def gather(d):
    rank = chance.randint(1, 4)
    x = d.tensor(dims(rank))
    axis = chance.randrange(rank)
    d.tensor(dims(chance.randint(0, 3)), I64)
    maybe(d, "axis", axis - rank if chance.random() < 0.5 else axis, 0.8)


def gather_nd(d):
    rank = chance.randint(2, 4)
    x = d.tensor(dims(rank))
    batch = chance.randint(0, rank - 2)
    d.tensor(x[:batch] + dims(chance.randint(0, 2)) + [chance.randint(1, rank - batch)], I64)
    maybe(d, "batch_dims", batch, 1 if batch else 0.3)


def tile(d):
    x = d.tensor(dims(chance.randint(1, 4)))
    d.constant([chance.randint(1, 3) for _ in x])


def expand(d):
    shape = dims(chance.randint(1, 4))
    d.tensor([s if chance.random() < 0.5 else 1 for s in shape][chance.randint(0, len(shape)):])
    d.constant([s if chance.random() < 0.8 else 1 for s in shape])


def padding(d):
    x = d.tensor(dims(chance.randint(1, 4), 3, 6))
    d.constant([chance.randint(-1, 3) for _ in x * 2])
    maybe(d, "mode", chance.choice(["constant", "edge"]))


def resize(d):
    x = d.tensor(dims(chance.randint(1, 4), 1, 8))
    d.absent()
    if chance.random() < 0.5:
        d.constant([chance.choice([0.5, 1, 1.5, 2, 3]) for _ in x], F32)
    else:
        d.inputs.append("")
        d.constant(dims(len(x), 1, 9))
    maybe(d, "mode", chance.choice(["nearest", "linear"]))


def blocks(d):
    b = chance.randint(1, 3)
    d.attributes["blocksize"] = b
    d.tensor([2, 3 * b * b, 4, 5] if d.op == "DepthToSpace" else [2, 3, 4 * b, 5 * b])


def one_hot(d):
    rank = chance.randint(1, 3)
    d.tensor(dims(rank), I64)
    d.constant([chance.randint(2, 9)], I64, [] if chance.random() < 0.5 else [1])
    d.constant([0.0, 1.0], F32)
    maybe(d, "axis", chance.randint(-rank - 1, rank))


def top(d):
    rank = chance.randint(1, 4)
    axis = chance.randrange(rank)
    d.outputs = 2
    x = d.tensor(dims(rank, 3))
    d.constant([chance.randint(1, 3)])
    maybe(d, "axis", axis - rank if chance.random() < 0.5 else axis, 0.8)


def recurrent(d):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[d.op]
    steps, batch, size, hidden = dims(4)
    ways = maybe(d, "direction", chance.choice(["forward", "reverse", "bidirectional"]))
    n = 2 if ways == "bidirectional" else 1
    d.attributes["hidden_size"] = hidden
    d.tensor([steps, batch, size])
    d.tensor([n, gates * hidden, size])
    d.tensor([n, gates * hidden, hidden])
    d.outputs = chance.randint(1, 3 if gates == 4 else 2)
    d.macs = lambda y: n * steps * batch * gates * hidden * (size + hidden)


def shape_of(d):
    rank = chance.randint(0, 5)
    d.tensor(dims(rank))
    maybe(d, "start", chance.randint(-rank - 1, rank), 0.5)
    maybe(d, "end", chance.randint(-rank - 1, rank + 1), 0.5)


def einsum(d):
    size = dict(zip("abcde", dims(5)))
    left, right = ("".join(chance.sample("abcde", chance.randint(1, 4))) for _ in range(2))
    both = sorted(set(left + right))
    out = "".join(chance.sample(both, chance.randint(0, len(both))))
    for letters in left, right:
        d.tensor([size[c] for c in letters])
    d.attributes["equation"] = f"{left},{right}->{out}"


def alike(d):
    d.tensor(dims(chance.randint(1, 4)))


def cast(d):
    alike(d)
    d.attributes["to"] = chance.choice([1, 6, 7, 9, 10, 11])


def normalized(d):
    c = chance.randint(1, 5)
    d.tensor([2, c] + dims(chance.randint(1, 3)))
    for _ in range(4 if d.op == "BatchNormalization" else 2):
        d.tensor([c])


KINDS = [(conv, "Conv"), (conv, "Conv"), (deconv, "ConvTranspose"), (pool, "MaxPool AveragePool LpPool"), (global_pool, "GlobalMaxPool GlobalAveragePool"),
         (broadcast, "Add Mul Sub Div Pow PRelu"), (broadcast, "Less Greater Equal"), (where, "Where"), (matmul, "MatMul"), (gemm, "Gemm"),
         (reduction, "ReduceMean ReduceMax ReduceMin ReduceProd ReduceL2 ReduceLogSumExp"), (reduce_sum, "ReduceSum"), (extreme, "ArgMax ArgMin"),
         (transpose, "Transpose"), (reshape, "Reshape"), (flatten, "Flatten"), (squeeze, "Squeeze"), (unsqueeze, "Unsqueeze"), (concat, "Concat"),
         (split, "Split"), (cut, "Slice"), (gather, "Gather"), (gather_nd, "GatherND"), (tile, "Tile"), (expand, "Expand"), (padding, "Pad"), (resize, "Resize"),
         (blocks, "DepthToSpace SpaceToDepth"), (one_hot, "OneHot"), (top, "TopK"), (recurrent, "LSTM GRU RNN"), (shape_of, "Shape"), (einsum, "Einsum"),
         (alike, "Relu Softmax Size Identity"), (cast, "Cast"), (normalized, "BatchNormalization InstanceNormalization")]


def model_of(draws, outputs):
    g = helper.make_graph([d.node() for d in draws], "g", [t for d in draws for t in d.types], outputs, [c for d in draws for c in d.constants])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", OPSET)])


def known(d):
    """The node's results by the package's inference, all of them static; None where it refuses the node or leaves something open."""
    names = [f"{d.name}_y{k}" for k in range(d.outputs)]
    try:
        m = onnx.shape_inference.infer_shapes(model_of([d], [onnx.ValueInfoProto(name=n) for n in names]), strict_mode=True, data_prop=True)
    except Exception:  # the binding raises its own
        return None
    types = {v.name: shape_oracle.tensor_type(v.type) for v in m.graph.output}
    return types if all(types.get(n) and types[n].is_static() for n in names) else None


draws, expected, tries = [], {}, 0
while len(draws) < int(os.environ.get("NODES", "1500")):
    make, ops = KINDS[tries % len(KINDS)]
    tries += 1
    d = Draw(len(draws))
    d.op = chance.choice(ops.split())
    make(d)
    types = known(d)
    if types:
        for t in types.values():
            t.dims = d.mend(t.dims) if d.mend else t.dims
        draws.append(d)
        expected.update(types)
with tempfile.NamedTemporaryFile(suffix=".onnx") as f:
    code = {name: number for number, name in shape_oracle.DTYPES.items()}
    onnx.save(model_of(draws, [helper.make_tensor_value_info(n, code[t.dtype], t.dims) for n, t in expected.items()]), f.name)
    run = subprocess.run([benanza, "layers", "--json", f.name], capture_output=True, text=True)
    assert run.returncode == 0, (run.returncode, run.stderr)
    [answer] = json.loads(run.stdout)
layers = {l["name"]: l for l in answer["layers"]}
wrong = 0
for d in draws:
    l = layers[d.name]
    for o in l["outputs"]:
        want = expected[o["name"]]
        if (o["dtype"], o["shape"]) != (want.dtype, want.dims):
            wrong += 1
            print(f"{o['name']} is {o['dtype']} {o['shape']}, not {want}: {d.op} {[(t.name, [x.dim_value for x in t.type.tensor_type.shape.dim]) for t in d.types]}"
                  f" {[list(c.int64_data or c.float_data) for c in d.constants]} {d.attributes}")
    macs = d.macs and d.macs(l["outputs"][0]["shape"])
    if d.macs and macs != l["macs"]:
        wrong += 1
        print(f"{d.op} {l['key']}: {l['macs']} products, not {macs}")
print(f"{len(draws)} nodes of {len(set(d.op for d in draws))} operators in {tries} tries: {wrong} wrong")
sys.exit(wrong > 0)
