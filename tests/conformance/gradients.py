#!/usr/bin/python3
"""gradients.py BENANZA SOURCE: the gradients of `layers --train` are those of PyTorch's autograd and of finite differences.

Every row of the derivative tables (training/rules_*.c) has a case: a model whose layers are weights, that operator, and the loss. The iteration that
benanza derives is run in double precision (training_run.py) with the rate 1, so that old weights less new ones are the gradients; they are held against
autograd through the original model, and some of their elements against finite differences of its loss."""
import os
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import onnx
    import torch
    from onnx import TensorProto as T, helper, numpy_helper
except ImportError as e:
    print(f"skipped: {e.name} is not there")
    sys.exit(77)
import training_networks as networks
import training_run as run

warnings.simplefilter("ignore")
benanza, source = os.path.abspath(sys.argv[1]), sys.argv[2]
work = tempfile.TemporaryDirectory()
random = np.random.default_rng(7)
MS = "com.microsoft"
cases, met = [], set()


def case(op, operands, opset=17, domain="", n_out=1, loss="squares", offset=0.0, spread=1.0, then=None, **attributes):
    """`operands`: a shape (list) is a trained tensor, an array a constant, None one that is left out."""
    cases.append((op, domain, operands, opset, n_out, loss, offset, spread, then, attributes))


def make(op, domain, operands, opset, n_out, loss, offset, spread, then, attributes):
    nodes, inputs, weights, names = [], [], [], []
    for k, o in enumerate(operands):
        if o is None:
            names.append("")
        elif isinstance(o, list):
            w = (offset + spread * random.normal(size=o)).astype(np.float32)
            weights.append(numpy_helper.from_array(w, f"w{k}"))
            inputs.append(helper.make_tensor_value_info(f"x{k}", T.FLOAT, o))
            nodes.append(helper.make_node("Add", [f"w{k}", f"x{k}"], [f"a{k}"], f"weights{k}"))
            names.append(f"a{k}")
        else:
            weights.append(numpy_helper.from_array(np.asarray(o), f"c{k}"))
            names.append(f"c{k}")
    outs = [f"y{i}" for i in range(n_out)]
    nodes.append(helper.make_node(op, names, outs, "tested", domain=domain, **attributes))
    if then:  # every then-th result counts
        nodes += [helper.make_node("Flatten", [o], [o + "f"], axis=0) for o in outs[::then]]
        nodes.append(helper.make_node("Concat", [o + "f" for o in outs[::then]], ["y"], axis=1))
        outs = ["y"]
    graph = helper.make_graph(nodes, "case", inputs, [helper.make_tensor_value_info(outs[0], T.FLOAT, None)], weights)
    sets = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


def iteration(path, loss, *options):
    out = path[:-5] + ".train.onnx"
    p = subprocess.run([benanza, "layers", "--train=sgd", "--loss", loss, *options, "--write", out, path], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    return onnx.load(out)


def inputs_of(model, given, spread=1.0):
    """Values for inputs: those given, others by chance; targets of classes are whole numbers."""
    values = dict(given, rate=torch.tensor(1.0, dtype=run.D), step=torch.tensor(0))
    for v in model.graph.input:
        if v.name not in values:
            shape = [d.dim_value for d in v.type.tensor_type.shape.dim]
            whole = v.type.tensor_type.elem_type == T.INT64
            values[v.name] = torch.randint(0, 2, shape) if whole else min(spread, 1.0) * torch.randn(shape, dtype=run.D)
    return values


def loss_of(model, values, targets):
    """The loss by its definition, from the original model's first result."""
    found = run.run(model, values)
    y = found[model.graph.output[0].name]
    if targets is None:
        return y.reshape(())
    if targets.is_floating_point():
        return ((y - targets) ** 2).mean()
    last = model.graph.node[-1]
    if last.op_type in ("Softmax", "LogSoftmax"):
        y = found[last.input[0]]
    if y.dim() == targets.dim() + 2:
        y = y.flatten(0, 1)
    return torch.nn.functional.cross_entropy(y, targets)


def is_known(model):
    """Whether the installed package, which may be older, knows all operators of this model."""
    version = next(o.version for o in model.opset_import if not o.domain)
    return version <= onnx.defs.onnx_opset_version() and all(n.domain or onnx.defs.has(n.op_type) for n in model.graph.node)


def check(name, model, loss="squares", spread=1.0, differences=3):
    path = os.path.join(work.name, "case.onnx")
    onnx.save(model, path)
    try:
        train = iteration(path, loss)
        if is_known(model):
            onnx.checker.check_model(train)
        weights = run.initializers(model.graph)
        trained = {n.input[2]: n.output[0] for n in train.graph.node if n.op_type == "SGD"}
        torch.manual_seed(1)
        given = {k: v for k, v in weights.items() if k in trained or k in [i.name for i in train.graph.input]}
        values = inputs_of(train, given, spread)
        found = run.run(train, values)
        inputs = {v.name: values[v.name] for v in model.graph.input if v.name in values}
        leaves = {k: weights[k].clone().requires_grad_() for k in trained}
        targets = values.get("targets")
        value = loss_of(model, {**inputs, **leaves}, targets)
        stated = [found[o.name] for o in train.graph.output if not o.type.tensor_type.shape.dim]
        assert any(abs(float(value) - float(v)) < 1e-6 * max(1, abs(float(value))) for v in stated), "the loss is another one"
        autograd = dict(zip(leaves, torch.autograd.grad(value, list(leaves.values()), allow_unused=True)))
        for k, updated in trained.items():
            mine = values[k] - found[updated]
            theirs = autograd[k] if autograd[k] is not None else torch.zeros_like(mine)
            scale = max(1e-3, float(theirs.abs().max()))
            worst = float((mine - theirs).abs().max()) / scale
            assert worst < 1e-5, f"{k}: autograd differs by {worst:.2g}"
            for at in random.choice(mine.numel(), min(differences, mine.numel()), replace=False):
                both = []
                for d in (1e-6, -1e-6):
                    moved = weights[k].clone()
                    moved.view(-1)[at] += d
                    with torch.no_grad():
                        both.append(float(loss_of(model, {**inputs, **weights, k: moved}, targets)))
                difference = (both[0] - both[1]) / 2e-6
                assert abs(difference - float(mine.view(-1)[at])) < 1e-4 * scale + 1e-7, f"{k}[{at}]: a finite difference is {difference}, not {float(mine.view(-1)[at])}"
        return len(trained)
    except Exception as e:  # one line for each case that is wrong
        print(f"{name}: {type(e).__name__}: {str(e)[:300]}")
        return 0


ints = lambda *v: np.array(v, np.int64)
real = lambda *v: np.array(v, np.float32)

for op in "Erf Sigmoid Tanh Softplus Softsign Sin Cos Sinh Cosh Asinh Atan Exp Relu HardSigmoid LeakyRelu Elu Celu Selu ThresholdedRelu Shrink Abs Neg Identity".split():
    case(op, [[3, 5]])
for op in "Log Sqrt Reciprocal Acosh Tan".split():
    case(op, [[3, 5]], offset=6.0 if op != "Tan" else 0, spread=0.1)
for op in "Asin Acos Atanh".split():
    case(op, [[3, 5]], spread=0.05)
case("HardSwish", [[3, 5]]), case("Mish", [[3, 5]], opset=18), case("LeakyRelu", [[3, 5]], alpha=0.3), case("Elu", [[3, 5]], alpha=0.7)
case("Selu", [[3, 5]], alpha=1.5, gamma=1.1), case("Celu", [[3, 5]], alpha=0.7), case("HardSigmoid", [[3, 5]], alpha=0.3, beta=0.4)
case("Gelu", [[3, 5]], opset=20), case("Gelu", [[3, 5]], opset=20, approximate="tanh"), case("Swish", [[3, 5]], opset=24, alpha=0.5)
case("Gelu", [[3, 5]], domain=MS), case("QuickGelu", [[3, 5]], domain=MS), case("FastGelu", [[3, 5]], domain=MS), case("FastGelu", [[3, 5], [5]], domain=MS)
case("BiasGelu", [[3, 5], [5]], domain=MS), case("SwiGLU", [[3, 5], [3, 5]], opset=27)
case("Clip", [[3, 5], np.float32(-0.5), np.float32(1.0)]), case("Clip", [[3, 5], None, np.float32(0.2)]), case("Cast", [[3, 5]], to=1)
case("CastLike", [[3, 5], real(1)])
for op in "Add Sub Mul Div".split():
    for a, b in ([3, 5], [3, 5]), ([3, 5], [5]), ([2, 1, 5], [3, 1]), ([4, 5], [1, 1]), ([5], [2, 3, 5]):
        case(op, [a, b], offset=3.0 if op == "Div" else 0, spread=0.5)
case("Pow", [[3, 5], np.float32(2)]), case("Pow", [[3, 5], np.float32(3)]), case("Pow", [[3, 5], [5]], offset=4.0, spread=0.1), case("Pow", [[3, 5], np.float32(0.5)], offset=8.0, spread=0.1)
places = np.array([[0, 2, 1, 0, 2], [2, 1, 0, 1, 0]], np.int64)
for more in ({}, {"reduction": "add"}):
    case("ScatterElements", [[3, 5], places, [2, 5]], opset=16, axis=0, **more)
    case("ScatterND", [[4, 5], np.array([[3], [1]], np.int64), [2, 5]], opset=16, **more)
case("ReverseSequence", [[4, 2, 3], ints(3, 2)]), case("ReverseSequence", [[2, 4, 3], ints(1, 4)], batch_axis=0, time_axis=1)
case("MeanVarianceNormalization", [[2, 3, 4, 4]]), case("MeanVarianceNormalization", [[3, 6]], axes=[1])
angle = random.normal(size=(6, 2)).astype(np.float32)
for turned in 0, 1:
    case("RotaryEmbedding", [[2, 3, 4, 4], np.cos(angle), np.sin(angle), np.array([[0, 1, 2, 3], [2, 3, 4, 5]], np.int64)], opset=23, interleaved=turned)
for how in "mean", "sum":
    case("NegativeLogLikelihoodLoss", [[4, 5], ints(0, 4, 2, 1)], reduction=how), case("NegativeLogLikelihoodLoss", [[4, 5], ints(0, 4, 2, 1), real(1, .5, 2, 1, 3)], reduction=how)
case("NegativeLogLikelihoodLoss", [[2, 5, 3], np.array([[0, 4, 2], [1, 3, 1]], np.int64)], ignore_index=3)
case("Dropout", [[3, 5], np.float32(0), np.array(True)]), case("Dropout", [[3, 5], np.float32(0)])
case("Sum", [[3, 5], [5], [1, 5]]), case("Mean", [[3, 5], [3, 5]]), case("Max", [[3, 5], [5]]), case("Min", [[3, 5], [3, 5], [1]])
case("Where", [np.array([[True], [False], [True]]), [3, 5], [5]]), case("PRelu", [[3, 5], [5]]), case("PRelu", [[2, 3, 4], [3, 1]])
case("CumSum", [[3, 5], np.array(1)]), case("CumSum", [[3, 5], np.array(0)], exclusive=1, reverse=1)

case("Reshape", [[3, 4], ints(2, -1)]), case("Flatten", [[2, 3, 4]], axis=2), case("Squeeze", [[2, 1, 4], ints(1)]), case("Unsqueeze", [[2, 4], ints(0, 3)])
case("Squeeze", [[2, 1, 4]], opset=11, axes=[1]), case("Unsqueeze", [[2, 4]], opset=11, axes=[1])
case("Transpose", [[2, 3, 4]], perm=[2, 0, 1]), case("Transpose", [[2, 3]]), case("Concat", [[2, 3], [2, 4], [2, 1]], axis=1), case("Concat", [[2, 3], [2, 4]], axis=-1, opset=11)
case("Split", [[6, 4], ints(1, 3, 2)], n_out=3, then=1, axis=0), case("Split", [[6, 4]], n_out=2, axis=0), case("Split", [[6, 4]], opset=11, n_out=2, axis=1, split=[1, 3])
case("Slice", [[6, 5], ints(1, 0), ints(5, 4), ints(0, 1), ints(2, 1)]), case("Slice", [[6, 5], ints(-1), ints(-20), ints(0), ints(-2)]), case("Slice", [[6, 5], ints(4), ints(1), ints(1), ints(-1)])
case("Slice", [[6, 5]], opset=9, starts=[1], ends=[-1], axes=[1])
case("Expand", [[3, 1], ints(2, 3, 4)]), case("Tile", [[2, 3], ints(2, 3)]), case("Pad", [[3, 4], ints(1, 0, 2, 3)]), case("Pad", [[3, 4], ints(1, 2, 2, 3)], mode="reflect")
case("Pad", [[3, 4], ints(0, 1, 2, 0)], mode="edge"), case("Pad", [[3, 4]], opset=10, pads=[1, 0, 0, 2]), case("Pad", [[3, 4], ints(-1, 0, 2, -1)])
case("Gather", [[5, 4], ints(0, 3, 3)]), case("Gather", [[2, 5, 3], np.array([[0, -1], [2, 2]])], axis=1), case("GatherElements", [[3, 4], np.array([[0, 1], [2, -1], [3, 3]])], axis=1)
case("GatherND", [[3, 4, 2], np.array([[0, 1], [2, 3], [0, 1]])]), case("GatherND", [[2, 4, 2], np.array([[1], [3]])], batch_dims=1)
case("TopK", [[3, 6], ints(2)], n_out=2, axis=1), case("Trilu", [[4, 5]], upper=0, opset=17), case("Trilu", [[4, 5], np.array(1)], upper=1)
case("DepthToSpace", [[1, 8, 2, 3]], blocksize=2), case("DepthToSpace", [[1, 8, 2, 3]], blocksize=2, mode="CRD"), case("SpaceToDepth", [[1, 2, 4, 6]], blocksize=2)
for op in "Sum Mean Max Min L1 L2 SumSquare LogSumExp LogSum Prod".split():
    offset, spread = (4.0, 0.3) if op in ("LogSum", "Prod") else (0, 1.0)
    name, axes = "Reduce" + op, {} if op == "Sum" else {"axes": [1]}
    case(name, [[2, 3, 4]] + ([ints(1)] if op == "Sum" else []), keepdims=0, offset=offset, spread=spread, **axes)
    case(name, [[2, 3, 4]] + ([ints(0, 2)] if op == "Sum" else []), keepdims=1, offset=offset, spread=spread, **({} if op == "Sum" else {"axes": [0, 2]}))
case("ReduceMean", [[2, 3]], keepdims=0), case("ReduceSum", [[2, 3, 4]], opset=11, axes=[-1], keepdims=0)

for a, b in ([3, 4], [4, 5]), ([2, 3, 4], [4, 5]), ([2, 3, 4], [2, 4, 5]), ([6, 2, 3, 4], [2, 4, 5]), ([1, 3, 4], [5, 4, 2]), ([4], [4, 5]), ([3, 4], [4]), ([2, 3, 4], [4]), ([4], [2, 4, 5]), ([4, 5], [7, 5, 2]):
    case("MatMul", [a, b])
for ta in 0, 1:
    for tb in 0, 1:
        case("Gemm", [[4, 3] if ta else [3, 4], [5, 4] if tb else [4, 5], [5]], transA=ta, transB=tb, alpha=0.7, beta=1.3)
        case("FusedMatMul", [[2, 4, 3] if ta else [2, 3, 4], [2, 5, 4] if tb else [2, 4, 5]], domain=MS, transA=ta, transB=tb, alpha=0.5)
case("Gemm", [[3, 4], [4, 5]]), case("Gemm", [[3, 4], [4, 5], [3, 1]]), case("FusedGemm", [[3, 4], [4, 5], [5]], domain=MS), case("TransposeMatMul", [[2, 4, 3], [2, 4, 5]], domain=MS, transA=1)
case("Einsum", [[2, 3, 4], [4, 5]], equation="bik,kj->bij"), case("Einsum", [[2, 3, 4, 5], [2, 6, 4, 5]], equation="bqhd,bkhd->bhqk"), case("Einsum", [[2, 3, 4]], equation="abc->cab")

for more in {}, {"strides": [2, 2], "pads": [1, 1, 1, 1]}, {"dilations": [2, 1], "pads": [0, 1, 2, 0]}, {"strides": [3, 2], "auto_pad": "SAME_UPPER"}:
    case("Conv", [[2, 4, 7, 6], [6, 4, 3, 3], [6]], **more) if "auto_pad" not in more else None
case("Conv", [[2, 4, 7, 6], [6, 2, 3, 3], [6]], group=2), case("Conv", [[1, 4, 5, 5], [4, 1, 3, 3]], group=4, pads=[1, 1, 1, 1]), case("Conv", [[2, 3, 9], [4, 3, 3], [4]], strides=[2]), case("Conv", [[1, 2, 4, 4, 4], [3, 2, 2, 2, 2]])
case("Conv", [[1, 2, 8, 8], [3, 2, 3, 3]], strides=[2, 2])
case("ConvTranspose", [[2, 4, 3, 4], [4, 3, 3, 3], [3]], strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]), case("ConvTranspose", [[1, 4, 3, 4], [4, 2, 2, 2]], group=2), case("ConvTranspose", [[1, 3, 5], [3, 2, 4], [2]], strides=[2], pads=[1, 0])
case("MaxPool", [[2, 3, 6, 7]], kernel_shape=[2, 3], strides=[2, 2]), case("MaxPool", [[2, 3, 6, 6]], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), case("MaxPool", [[1, 2, 6, 6]], opset=7, kernel_shape=[2, 2], strides=[2, 2])
case("AveragePool", [[2, 3, 6, 7]], kernel_shape=[2, 3], strides=[2, 1]), case("AveragePool", [[2, 3, 6, 6]], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1), case("AveragePool", [[2, 3, 6, 6]], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
case("GlobalAveragePool", [[2, 3, 4, 5]]), case("GlobalMaxPool", [[2, 3, 4, 5]])
for p in 1, 2, 3:
    case("LpPool", [[2, 3, 6, 7]], kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 2], p=p), case("GlobalLpPool", [[2, 3, 4, 5]], p=p)
case("MaxUnpool", [[1, 1, 2, 3], np.array([[[[7, 2, 10], [18, 15, 23]]]], np.int64)], kernel_shape=[2, 2], strides=[2, 2])
case("Col2Im", [[2, 12, 12], ints(5, 4), ints(2, 2)]), case("Col2Im", [[1, 2 * 6, 6], ints(5, 6), ints(3, 2)], opset=18, strides=[2, 2], pads=[1, 0, 0, 1], dilations=[1, 2]), case("Col2Im", [[1, 8, 36], ints(3, 4, 5), ints(1, 2, 2)], opset=18)
case("Col2Im", [[2, 6, 7], ints(9), ints(3)], opset=18)
case("CenterCropPad", [[5, 4, 6], ints(4, 7, 6)], opset=18), case("CenterCropPad", [[5, 4, 6], ints(8, 3)], opset=18, axes=[0, 2])
for opset, axis in (17, {"axis": 1}), (20, {}):
    along = [None, np.array(1, np.int64)] if opset == 20 else []
    for n in 4, 5:
        case("DFT", [[2, n, 3, 2], *along], opset=opset, **axis), case("DFT", [[2, n, 3, 2], *along], opset=opset, inverse=1, **axis), case("DFT", [[2, n, 3, 1], *along], opset=opset, **axis)
        case("DFT", [[2, n, 3, 1], *along], opset=opset, onesided=1, **axis)
        for length in 3, 7:
            along = [np.array(length, np.int64), *along[1:]]
            case("DFT", [[2, n, 3, 2], *along], opset=opset, **axis), case("DFT", [[2, n, 3, 2], *along], opset=opset, inverse=1, **axis)
            case("DFT", [[2, n, 3, 1], *along], opset=opset, onesided=1, **axis)
window = np.hanning(6).astype(np.float32) + 0.1
case("STFT", [[2, 17, 1], np.array(3, np.int64), window]), case("STFT", [[2, 16, 1], np.array(5, np.int64), None, np.array(6, np.int64)], onesided=0), case("STFT", [[1, 16, 2], np.array(2, np.int64), window], onesided=0)
case("STFT", [[2, 17, 1], np.array(3, np.int64), [6]]), case("STFT", [[1, 16, 2], np.array(5, np.int64), [6]], onesided=0), case("STFT", [np.random.default_rng(3).normal(size=(2, 16, 1)).astype(np.float32), np.array(2, np.int64), [5]])
case("Det", [[2, 3, 3]]), case("Det", [[2, 3, 4, 4]])
for corners in 0, 1:
    case("AffineGrid", [[2, 2, 3], ints(2, 3, 4, 5)], opset=20, align_corners=corners), case("AffineGrid", [[1, 3, 4], ints(1, 2, 3, 4, 2)], opset=20, align_corners=corners)
    for padding in "zeros", "border", "reflection":
        case("GridSample", [[2, 3, 5, 4], [2, 3, 6, 2]], spread=0.6, mode="bilinear", padding_mode=padding, align_corners=corners)
case("GridSample", [[1, 2, 5, 4], [1, 3, 6, 2]], spread=0.6, mode="bicubic"), case("GridSample", [[1, 2, 5, 4], [1, 3, 6, 2]], spread=0.6, mode="nearest"), case("GridSample", [[1, 2, 5, 4], [1, 3, 6, 2]], domain=MS, spread=0.6)
rois = real(0.5, 1, 6, 5, 2, 0.3, 7.5, 6).reshape(2, 4)
case("RoiAlign", [[2, 3, 8, 8], rois, ints(1, 0)], output_height=2, output_width=3, sampling_ratio=2), case("RoiAlign", [[2, 3, 8, 8], rois, ints(1, 0)], output_height=3, output_width=2, sampling_ratio=1, spatial_scale=0.5, coordinate_transformation_mode="output_half_pixel")
case("DeformConv", [[1, 4, 5, 5], [6, 2, 2, 3], [1, 24, 4, 3], [6], [1, 12, 4, 3]], opset=19, spread=0.4, group=2, offset_group=2), case("DeformConv", [[2, 2, 5, 6], [3, 2, 3, 3], [2, 18, 3, 6]], opset=19, spread=0.4, strides=[2, 1], pads=[1, 1, 1, 1])
case("CumProd", [[3, 5], np.array(1)], opset=26, offset=2.0, spread=0.3), case("CumProd", [[3, 5], np.array(0)], opset=26, offset=2.0, spread=0.3, exclusive=1, reverse=1)
for mode in "nearest", "linear":
    for how in "half_pixel", "asymmetric", "align_corners":
        case("Resize", [[1, 2, 4, 5], None, real(1, 1, 2, 2)], mode=mode, coordinate_transformation_mode=how)
case("Resize", [[1, 2, 6, 6], None, None, ints(1, 2, 3, 4)], mode="linear")
case("Upsample", [[1, 2, 3, 3], real(1, 1, 2, 2)], opset=9, mode="nearest")
case("LRN", [[1, 6, 3, 3]], size=3, alpha=0.5, beta=0.6, bias=1.2), case("LpNormalization", [[3, 5]], axis=1, p=2), case("LpNormalization", [[3, 5]], axis=0, p=1)
case("InstanceNormalization", [[2, 3, 4, 4], [3], [3]], epsilon=1e-3), case("GroupNormalization", [[2, 6, 3, 3], [6], [6]], opset=21, num_groups=3)
case("LayerNormalization", [[2, 3, 4], [4], [4]]), case("LayerNormalization", [[2, 3, 4], [3, 4]], axis=1, epsilon=1e-3), case("RMSNormalization", [[2, 3, 4], [4]], opset=23), case("SimplifiedLayerNormalization", [[2, 3, 4], [4]], domain=MS, epsilon=1e-4)
case("SimplifiedLayerNormalization", [[2, 3, 4], [4]], axis=-1)
for then in None, 3:
    n = 4 if then else 1
    case("SkipLayerNormalization", [[2, 3, 4], [2, 3, 4], [4], [4], [4]], domain=MS, n_out=n, then=then, epsilon=1e-3), case("SkipLayerNormalization", [[2, 3, 4], [3, 4], [4]], domain=MS, n_out=n, then=then)
    case("SkipSimplifiedLayerNormalization", [[2, 3, 4], [2, 3, 4], [4], [4]], domain=MS, n_out=n, then=then), case("SkipSimplifiedLayerNormalization", [[2, 3, 4], [1, 3, 4], [4]], domain=MS, n_out=n, then=then)
case("BatchNormalization", [[4, 3, 2, 2], [3], [3], np.zeros(3, np.float32), np.ones(3, np.float32)], epsilon=1e-3), case("BatchNormalization", [[6, 3], [3], [3], np.zeros(3, np.float32), np.ones(3, np.float32)])
for op in "Softmax", "LogSoftmax":
    case(op, [[3, 5]], axis=-1), case(op, [[2, 3, 4]], axis=1), case(op, [[2, 3, 4]], axis=1, opset=11), case(op, [[2, 3]], opset=11)
case("Attention", [[2, 2, 3, 4], [2, 2, 5, 4], [2, 2, 5, 6]], opset=23), case("Attention", [[2, 4, 8], [2, 4, 4], [2, 4, 4]], opset=23, q_num_heads=4, kv_num_heads=2, is_causal=1)
case("Attention", [[1, 2, 3, 4], [1, 2, 5, 4], [1, 2, 5, 4], np.ones((3, 5), bool)], opset=23, scale=0.3, softcap=2.0), case("MultiHeadAttention", [[2, 3, 8], [2, 5, 8], [2, 5, 8]], domain=MS, num_heads=2)
for direction, d in ("forward", 1), ("reverse", 1), ("bidirectional", 2):
    case("LSTM", [[4, 2, 3], [d, 20, 3], [d, 20, 5], [d, 40]], hidden_size=5, direction=direction, n_out=3, then=1)
    case("GRU", [[4, 2, 3], [d, 15, 3], [d, 15, 5], [d, 30]], hidden_size=5, direction=direction, n_out=2, then=1)
case("LSTM", [[4, 2, 3], [1, 20, 3], [1, 20, 5], [1, 40], None, [1, 2, 5], [1, 2, 5]], hidden_size=5), case("GRU", [[4, 2, 3], [1, 15, 3], [1, 15, 5], [1, 30], None, [1, 2, 5]], hidden_size=5, linear_before_reset=1)
for f, direction, d in ("Relu", "forward", 1), ("Sigmoid", "reverse", 1), ("Tanh", "bidirectional", 2), ("Relu", "bidirectional", 2):
    case("RNN", [[4, 2, 3], [d, 5, 3], [d, 5, 5], [d, 10], None, [d, 2, 5]], hidden_size=5, direction=direction, activations=[f] * d, n_out=2, then=1)
case("RNN", [[4, 2, 3], [1, 5, 3], [1, 5, 5]], hidden_size=5), case("LSTM", [[4, 2, 3], [1, 20, 3], [1, 20, 5], [1, 40]], hidden_size=5, activations=["Sigmoid", "Tanh", "Tanh"])
for reduction in "mean", "sum":
    case("SoftmaxCrossEntropyLoss", [[4, 5], ints(0, 3, 4, 3)], reduction=reduction), case("SoftmaxCrossEntropyLoss", [[4, 5], ints(0, 3, 4, 3)], reduction=reduction, ignore_index=3)
case("SoftmaxCrossEntropyLoss", [[2, 5, 3], np.array([[0, 3, 4], [3, 1, 1]])], n_out=2), case("SoftmaxCrossEntropyLoss", [[4, 5], ints(0, 3, 4, 3), real(1, 2, 3, 4, 5)])
case("Softmax", [[3, 5]], loss="classes"), case("Relu", [[2, 5, 3, 3]], loss="classes")


def branches(taken):
    """An If in an If, whose conditions are known: weights stand in the branches, and around them."""
    info = lambda name: helper.make_tensor_value_info(name, T.FLOAT, [3, 5])
    real = lambda name: numpy_helper.from_array(random.normal(size=(3, 5)).astype(np.float32), name)
    yes = [numpy_helper.from_array(np.array(taken), "outer"), numpy_helper.from_array(np.array(not taken), "inner")]
    inner = helper.make_node("If", ["inner"], ["deep"], then_branch=helper.make_graph([helper.make_node("Mul", ["m", "w1"], ["a"])], "a", [], [info("a")], [real("w1")]),
                             else_branch=helper.make_graph([helper.make_node("Sub", ["w2", "m"], ["b"])], "b", [], [info("b")], [real("w2")]))
    then = helper.make_graph([helper.make_node("Sin", ["h"], ["m"]), inner, helper.make_node("Add", ["deep", "h"], ["t"])], "t", [], [info("t")])
    other = helper.make_graph([helper.make_node("Mul", ["h", "w3"], ["e"])], "e", [], [info("e")], [real("w3")])
    nodes = [helper.make_node("Add", ["x", "w0"], ["h"]), helper.make_node("If", ["outer"], ["o"], then_branch=then, else_branch=other), helper.make_node("Tanh", ["o"], ["y"])]
    graph = helper.make_graph(nodes, "branches", [info("x")], [info("y")], [*yes, real("w0")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check_network(name):
    """Gradients of a module's parameters: PyTorch's, and those of the iteration from its file."""
    torch.manual_seed(3)
    module, x, targets = networks.make(name, 3)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.1 * torch.randn_like(p))
    path = os.path.join(work.name, name + ".onnx")
    networks.export(module, x, path)
    train = iteration(path, "auto")
    onnx.checker.check_model(train)
    module = module.double()
    x = x.double() if x.is_floating_point() else x
    networks.loss(module(x), targets).backward()
    weights = {t.name: run.tensor(t) for t in onnx.load(path).graph.initializer}
    values = inputs_of(train, {**weights, "input": x})
    values["targets"] = targets.flatten() if name == "gpt" else targets
    found = run.run(train, values)
    updated = {n.input[2]: n.output[0] for n in train.graph.node if n.op_type == "SGD"}
    compared = 0
    for k, p in module.named_parameters():
        k = k if k in updated else next((n for n in updated if n in weights and weights[n].numel() == p.numel() and torch.equal(weights[n].flatten().float(), p.detach().flatten().float())), None)
        if not k:  # an LSTM's: ONNX has its gates in another order
            assert name == "lstm", f"{name}: a parameter is not updated"
            continue
        mine, scale = (values[k] - found[updated[k]]).reshape(p.shape), max(1e-4, float(p.grad.abs().max()))
        worst = float((mine - p.grad).abs().max()) / scale
        assert worst < 1e-4, f"{name}: {k} differs from PyTorch's by {worst:.2g}"
        compared += 1
    return compared


rows = set()
for table in "elementwise", "shape", "product", "layer", "norm", "sample":
    with open(f"{source}/training/rules_{table}.c") as f:
        text = f.read()
    for names, rest in re.findall(r'\{\.ops = ((?:\s*"[^"]*")+)([^}]*)\}', text):
        rows |= set(" ".join(re.findall(r'"([^"]*)"', names)).split()) if ".back" in rest else set()
assert len(rows) > 100, "the tables of derivatives are written otherwise: this test reads them"
right = sum(check(" ".join(map(str, (c[0], *(o if isinstance(o, list) else type(o).__name__ for o in c[2]), c[9]))), make(*c), c[5], c[7]) > 0 for c in cases)
known = sum(check(f"If {taken}", branches(taken)) == 2 for taken in (True, False))
missing = rows - {c[0] for c in cases}  # of Dropout only what drops nothing: the rest is chance
for op in sorted(missing):
    print(f"{op} has a derivative, and no case")
print(f"{right} of {len(cases)} cases right, {len(rows)} operators")
wrong = 0
for name in (*networks.NAMES, "norms"):
    try:
        print(f"{name}: gradients of {check_network(name)} tensors are PyTorch's")
    except Exception as e:
        print(f"{name}: {type(e).__name__}: {str(e)[:400]}")
        wrong += 1
sys.exit(right != len(cases) or known != 2 or bool(missing) or wrong)
