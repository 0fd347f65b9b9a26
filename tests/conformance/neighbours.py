#!/usr/bin/python3
"""neighbours.py UNIT_MODELPROC_NEIGHBOURS: types of the neighbours of the tables' rows, held against the ONNX package's own inference.

The program writes a model of one node or two, and the types that benanza gives its results, for each neighbour that benanza takes. What the
package's inference refuses, or an attribute or operand that its schema does not have, is not compared: benanza takes more, as files do."""
import subprocess
import sys

try:
    import onnx
except ImportError:
    print("skipped: no onnx here")
    sys.exit(77)

# Where the package is wrong, or the model is (sizes that do not fit each other, an attribute's value that the operator does not have): sizes that a deconvolution is asked for, halves of spectra (mended in 1.13), a slice of nothing, sizes of 31 bits that are
# scaled in floats of 24. By an operator of one set alone, what newer packages have: windows that begin in the padding count for pools until 1.18.
WRONG = {"ConvTranspose": ("auto_pad=s:SAME", "output_shape"), "STFT": ("",), "Slice": ("(f32:0 ",), "Resize": ("214748364",), "Upsample": ("214748364",), "Constant": ("214748364",),
         "AveragePool-19": ("ceil_mode",), "LpPool-18": ("ceil_mode",), "AffineGrid-20": ("",), "MaxUnpool-22": ("",), "Split-18": ("num_outputs=i:4",),
         "ReduceMax-20": ("keepdims=i:-1",), "Einsum-12": ("(f32:1x4x9x7 f32:2x4",)}


def is_known(node, version):
    schema = onnx.defs.get_schema(node.op_type, version)
    names = [a.name for a in node.attribute]
    return len(node.input) <= schema.max_input and all(n in schema.attributes for n in names) and not {"auto_pad", "pads"} <= set(names)


def types_of(model):
    """(data type, [size or None] or None) of the graph's outputs; None for what is no tensor."""
    names = [o.name for o in model.graph.output]
    del model.graph.output[:]
    found = {v.name: v.type for v in onnx.shape_inference.infer_shapes(model, strict_mode=True, check_type=True, data_prop=True).graph.value_info}
    for name in names:
        if name not in found or found[name].WhichOneof("value") != "tensor_type":
            yield None
            continue
        t = found[name].tensor_type
        yield t.elem_type, [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in t.shape.dim] if t.HasField("shape") else None


def agrees(ours, theirs):
    dtype, _, sizes = ours.partition(":")
    if theirs is None or dtype == "0":
        return True
    if int(dtype) != theirs[0]:
        return False
    if theirs[1] is None or sizes == "?":
        return True
    sizes = [int(s) for s in sizes.split("x")] if sizes else []
    return len(sizes) == len(theirs[1]) and all(a == -1 or b is None or a == b for a, b in zip(sizes, theirs[1]))


last, compared, wrong = onnx.defs.onnx_opset_version(), 0, 0
for line in subprocess.run([sys.argv[1], "models"], capture_output=True, text=True, check=True).stdout.splitlines():
    name, data, ours = line.split("\t")
    model = onnx.ModelProto.FromString(bytes.fromhex(data))
    op, version = model.graph.node[0].op_type, model.opset_import[0].version
    if version > last or any(w in name for key in (op, f"{op}-{version}") for w in WRONG.get(key, ())):
        continue
    try:
        if not all(is_known(n, version) for n in model.graph.node):
            continue
        theirs = list(types_of(model))
    except Exception:  # the binding raises exceptions of its own: it refuses the model, or has no such operator
        continue
    compared += 1
    if not all(map(agrees, ours.split(" "), theirs)):
        print(f"{name}: {ours}, says benanza; {theirs}, says onnx")
        wrong += 1
print(f"{compared} models compared, {wrong} differ")
sys.exit(wrong > 0 or compared < 5000)
