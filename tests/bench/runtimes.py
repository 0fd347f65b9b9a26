"""Runtimes that run an ONNX file in this process, on one thread: PyTorch, node by node, and ONNX Runtime, from its shared library.

loaded("torch" or LIBRARY)(FILE) is a function that runs it once; `written` are its inputs. These, and weights that the file does not hold or has a node fill, are small random numbers. Of PyTorch
those operators that convolutional networks of torchvision have; another one ends with its name."""
import ctypes

import numpy
import onnx
from onnx import numpy_helper

TYPES = {numpy.dtype(t): n for n, t in ((1, "float32"), (2, "uint8"), (3, "int8"), (6, "int32"), (7, "int64"), (9, "bool"), (10, "float16"), (11, "float64"))}


def some(dims, dtype):
    draw = numpy.random.default_rng(1)
    return draw.uniform(0.01, 0.03, dims).astype(dtype) if numpy.issubdtype(dtype, numpy.floating) else numpy.ones(dims, dtype)


def dtype_of(element):
    return onnx.helper.tensor_dtype_to_np_dtype(element) if hasattr(onnx.helper, "tensor_dtype_to_np_dtype") else onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[element]


def shape_of(value):
    return [d.dim_value or 1 for d in value.type.tensor_type.shape.dim], dtype_of(value.type.tensor_type.elem_type)


def filled(path):
    """The model with constants where a node fills one from its shape, and what its inputs are."""
    model = onnx.load(path)
    graph = model.graph
    known = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    for node in [n for n in graph.node if n.op_type == "ConstantOfShape" and n.input[0] in known]:
        value = next((numpy_helper.to_array(a.t) for a in node.attribute if a.name == "value"), numpy.zeros(1, "float32"))
        known[node.output[0]] = some(known[node.input[0]], value.dtype)
        graph.initializer.append(numpy_helper.from_array(known[node.output[0]], node.output[0]))
        graph.node.remove(node)
    for tensor in graph.sparse_initializer:
        known[tensor.values.name] = some(tensor.dims, dtype_of(tensor.values.data_type))
        graph.initializer.append(numpy_helper.from_array(known[tensor.values.name], tensor.values.name))
    del graph.sparse_initializer[:]
    at = {}
    return model, known, {i.name: shared(*shape_of(i), at) for i in graph.input if i.name not in known}


MOST = 1 << 23  # elements
POOL = {}


def shared(dims, dtype, at):
    """All models' inputs of a type lie in the same memory, behind one another, as a model's tensors take each other's place."""
    n, dtype = int(numpy.prod(dims)), numpy.dtype(dtype)
    begin = at.get(dtype, 0)
    at[dtype] = begin + (n + 15) // 16 * 16
    if begin + n > MOST:
        return some(dims, dtype)
    if dtype not in POOL:
        POOL[dtype] = some([MOST], dtype)
    return POOL[dtype][begin:begin + n].reshape(dims)


# ---- PyTorch ----------------------------------------------------------------------------------------------------------

def pads_of(a, rank):
    """Equal on both sides, or what to pad before."""
    pads = a.get("pads", [0] * 2 * rank)
    begin, end = pads[:rank], pads[rank:]
    if begin == end:
        return begin, None
    return [0] * rank, [p for d in reversed(range(rank)) for p in (begin[d], end[d])]


def of_torch():
    import os
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # OpenBLAS asks when it is loaded, and nobody later
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(1)

    def window(x, a, run, fill):
        rank = len(a["kernel_shape"])
        pads, before = pads_of(a, rank)
        if before:
            x = F.pad(x, before, value=fill)
        return run(x, a["kernel_shape"], a.get("strides", [1] * rank), pads, bool(a.get("ceil_mode", 0)))

    def conv(x, w, b=None, **a):
        rank = w.dim() - 2
        pads, before = pads_of(a, rank)
        x = F.pad(x, before) if before else x
        return (F.conv1d, F.conv2d, F.conv3d)[rank - 1](x, w, b, a.get("strides", 1), pads, a.get("dilations", 1), a.get("group", 1))

    def gemm(x, w, c=None, **a):
        x = x.t() if a.get("transA") else x
        if a.get("alpha", 1) == 1 and a.get("beta", 1) == 1 and a.get("transB") and (c is None or c.dim() == 1):
            return F.linear(x, w, c)
        y = a.get("alpha", 1) * (x @ (w.t() if a.get("transB") else w))
        return y if c is None else y + a.get("beta", 1) * c

    def pad(x, given=None, value=None, **a):
        pads = a.get("pads") if given is None else given
        n = x.dim()
        return F.pad(x, [int(pads[k]) for d in reversed(range(n)) for k in (d, n + d)], a.get("mode", b"constant").decode(), float(value) if value is not None else 0)

    def cut(x, starts, ends, axes=None, steps=None):
        where = [slice(None)] * x.dim()
        for i, (low, high) in enumerate(zip(starts.tolist(), ends.tolist())):
            where[int(axes[i]) if axes is not None else i] = slice(low, min(high, 1 << 62), int(steps[i]) if steps is not None else 1)
        return x[tuple(where)]

    def reshape(x, to, **a):
        return x.reshape([x.shape[i] if not n and not a.get("allowzero") else n for i, n in enumerate(to.tolist())])

    def mean(x, given=None, **a):
        axes = a.get("axes") if given is None else given.tolist()
        return x.mean(axes if axes else list(range(x.dim())), keepdim=bool(a.get("keepdims", 1)))

    def squeeze(x, given=None, **a):
        for d in sorted(a.get("axes") or given.tolist(), reverse=True):
            x = x.squeeze(d)
        return x

    def unsqueeze(x, given=None, **a):
        for d in sorted(a.get("axes") or given.tolist()):
            x = x.unsqueeze(d)
        return x

    run = {
        "Conv": conv, "Gemm": gemm, "Pad": pad, "Slice": cut, "Reshape": reshape, "ReduceMean": mean, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
        "Identity": lambda x: x, "Relu": F.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Erf": torch.erf, "Sqrt": torch.sqrt,
        "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": lambda x, y: x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="floor"), "Pow": torch.pow, "MatMul": torch.matmul,
        "Flatten": lambda x, **a: x.flatten(a.get("axis", 1)), "Concat": lambda *x, **a: torch.cat(x, a["axis"]),
        "Transpose": lambda x, **a: x.permute(a["perm"]).contiguous(), "Softmax": lambda x, **a: F.softmax(x, a.get("axis", -1)),
        "Clip": lambda x, low=None, high=None, **a: x.clamp(low, high), "Dropout": lambda x, *_, **a: x,
        "HardSigmoid": lambda x, **a: F.hardsigmoid(x), "HardSwish": F.hardswish,
        "GlobalAveragePool": lambda x: x.mean(list(range(2, x.dim())), keepdim=True),
        "MaxPool": lambda x, **a: window(x, a, lambda x, k, s, p, c: F.max_pool2d(x, k, s, p, 1, c), float("-inf")),
        "AveragePool": lambda x, **a: window(x, a, lambda x, k, s, p, c: F.avg_pool2d(x, k, s, p, c, bool(a.get("count_include_pad", 0))), 0),
        "BatchNormalization": lambda x, w, b, m, v, **a: F.batch_norm(x, m, v, w, b, False, 0, a.get("epsilon", 1e-5)),
        "Shape": lambda x: torch.tensor(x.shape), "Gather": lambda x, i, **a: torch.index_select(x, a.get("axis", 0), i.reshape(-1)).reshape(
            x.shape[:a.get("axis", 0)] + i.shape + x.shape[a.get("axis", 0) + 1:]),
        "Constant": lambda **a: a["value"],
    }

    def attribute(a):
        value = onnx.helper.get_attribute_value(a)
        return torch.from_numpy(numpy_helper.to_array(value).copy()) if a.type == onnx.AttributeProto.TENSOR else list(value) if isinstance(value, (list, tuple)) else value

    def load(path):
        model, known, inputs = filled(path)
        known = {k: torch.from_numpy(v.copy()) for k, v in known.items()}
        known[""] = None
        given = {k: torch.from_numpy(v) for k, v in inputs.items()}
        steps, values = [], {**known, **given}
        for node in model.graph.node:  # once: what is the same each time is known from then on
            if node.op_type not in run:
                raise SystemExit(f"{path}: {node.op_type} is not written for PyTorch here")
            f, a, names = run[node.op_type], {k.name: attribute(k) for k in node.attribute}, list(node.input)
            with torch.inference_mode():
                values[node.output[0]] = f(*[values[i] for i in names], **a)
            if node.op_type == "Shape" or all(i in known for i in names):
                known[node.output[0]] = values[node.output[0]]
            else:
                steps.append((f, names, a, node.output[0]))
        last = {i: n for n, (_, names, _, _) in enumerate(steps) for i in names if i not in known}
        kept = {o.name for o in model.graph.output} | set(given)
        free = [[i for i in set(names) if last.get(i) == n and i not in kept] for n, (_, names, _, _) in enumerate(steps)]

        def once():
            values = {**known, **given}
            with torch.inference_mode():
                for (f, names, a, result), dead in zip(steps, free):
                    values[result] = f(*[values[i] for i in names], **a)
                    for name in dead:
                        del values[name]
            return [values[o.name] for o in model.graph.output]
        once.written = list(inputs.values())
        return once
    return load


# ---- ONNX Runtime -----------------------------------------------------------------------------------------------------

# where these functions stand in the table of its C interface, which only grows at its end
MESSAGE, ENVIRONMENT, SESSION, RUN, OPTIONS, NO_ARENA, THREADS, TENSOR, CPU, END_SESSION, END_VALUE = 2, 3, 8, 9, 10, 19, 24, 49, 69, 95, 96


def of_ort(library):
    class Base(ctypes.Structure):
        _fields_ = [("api", ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)), ("version", ctypes.c_void_p)]
    ort = ctypes.CDLL(library)
    ort.OrtGetApiBase.restype = ctypes.POINTER(Base)
    table = ort.OrtGetApiBase()[0].api(12)
    P = ctypes.c_void_p

    def function(at, *types, result=P):
        return ctypes.CFUNCTYPE(result, *types)(table[at])
    message = function(MESSAGE, P, result=ctypes.c_char_p)

    def call(at, types, *given):
        why = function(at, *types)(*given)
        if why:
            raise SystemExit(message(why).decode())
    env, options, cpu = P(), P(), P()
    call(ENVIRONMENT, (ctypes.c_int, ctypes.c_char_p, P), 3, b"benanza", ctypes.byref(env))
    call(OPTIONS, (P,), ctypes.byref(options))
    call(THREADS, (P, ctypes.c_int), options, 1)
    call(NO_ARENA, (P,), options)  # what a sequence leaves is the next one's memory, as in a model
    call(CPU, (ctypes.c_int, ctypes.c_int, P), 0, 0, ctypes.byref(cpu))
    end_session, end_value = function(END_SESSION, P, result=None), function(END_VALUE, P, result=None)

    def load(path):
        model, _, inputs = filled(path)
        data = model.SerializeToString()
        session = P()
        call(SESSION, (P, ctypes.c_char_p, ctypes.c_size_t, P, P), env, data, len(data), options, ctypes.byref(session))
        values = (P * len(inputs))()
        for i, x in enumerate(inputs.values()):
            dims = (ctypes.c_int64 * x.ndim)(*x.shape)
            call(TENSOR, (P, P, ctypes.c_size_t, P, ctypes.c_size_t, ctypes.c_int, P), cpu, x.ctypes.data, x.nbytes, dims, x.ndim, TYPES[x.dtype],
                 ctypes.byref(values, i * ctypes.sizeof(P)))
        names = (ctypes.c_char_p * len(inputs))(*(k.encode() for k in inputs))
        results = (ctypes.c_char_p * len(model.graph.output))(*(o.name.encode() for o in model.graph.output))
        made = (P * len(results))()
        run = function(RUN, P, P, P, P, ctypes.c_size_t, P, ctypes.c_size_t, P)

        class Loaded:
            written = list(inputs.values())

            def __call__(self):
                why = run(session, None, names, values, len(values), results, len(results), made)
                if why:
                    raise SystemExit(message(why).decode())
                for i in range(len(made)):
                    end_value(made[i])
                    made[i] = None

            def __del__(self):
                for v in values:
                    end_value(v)
                end_session(session)
        return Loaded()
    return load


def loaded(by):
    return of_torch() if by == "torch" else of_ort(by)
