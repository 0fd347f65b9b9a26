#!/usr/bin/python3
"""fused.py BENANZA: encoders as ONNX Runtime fuses them. Each model is one to five nodes of com.microsoft, and its MACs are a closed formula;
16-bit islands stand between; an operator that nobody knows ends with status 4 and its name."""
import json
import math
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto as T
from onnx import helper

benanza = sys.argv[1]
B, S, KV, D, H, OUT = 2, 128, 77, 64, 4, 32  # batch, tokens, tokens of the other sequence, width, heads, another width
SIZE = {T.FLOAT: 4, T.INT8: 1, T.UINT8: 1, T.BFLOAT16: 2, T.FLOAT16: 2}
X, Y = ("x", T.FLOAT, [B, S, D]), ("y", T.FLOAT, None)
ATTENTION = B * S * D * 3 * D + 2 * B * S * S * D
QKV, HEADS = {"w": [D, 3 * D], "bias": [3 * D]}, {"num_heads": H}
IDS = [(n, T.INT32, [B, S]) for n in ("ids", "segments")]
Q, K, V = (("q", T.FLOAT, [B, S, D]), ("k", T.FLOAT, [B, KV, D]), ("v", T.FLOAT, [B, KV, D]))


def ours(op, inputs, outputs="y", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), domain="com.microsoft", **attributes)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


# nodes; inputs; weights by shape, or by type and shape; MACs
MODELS = {
    "attention": ([ours("Attention", "x w bias", **HEADS)], [X], QKV, ATTENTION),
    "masked": ([ours("Attention", "x w bias mask", **HEADS)], [X, ("mask", T.INT32, [B])], QKV, ATTENTION),
    "cached": ([helper.make_node("Attention", ["x", "w", "bias", "", "past"], ["y", "present"], domain="com.microsoft", **HEADS)],
               [("x", T.FLOAT, [B, 1, D]), ("past", T.FLOAT, [2, B, H, S, D // H])], QKV, B * D * 3 * D + 2 * B * (S + 1) * D),
    "quantized": ([ours("QAttention", "x w bias xs ws mask xz wz", **HEADS)], [("x", T.UINT8, [B, S, D]), ("mask", T.INT32, [B])],
                  {"w": (T.INT8, [D, 3 * D]), "bias": [3 * D], "xs": [], "ws": [], "xz": (T.UINT8, []), "wz": (T.INT8, [])}, ATTENTION),
    "heads": ([ours("MultiHeadAttention", "q k v", **HEADS)], [Q, K, V], {}, 2 * B * S * KV * D),
    "packed keys": ([ours("MultiHeadAttention", "q k", **HEADS)], [Q, ("k", T.FLOAT, [B, KV, H, 2, D // H])], {}, 2 * B * S * KV * D),
    "packed": ([ours("MultiHeadAttention", "q", **HEADS)], [("q", T.FLOAT, [B, S, H, 3, D // H])], {}, 2 * B * S * S * D),
    "skip": ([ours("SkipLayerNormalization", "x r g b bias"), ours("SkipSimplifiedLayerNormalization", "y r g", "z")],
             [X, ("r", T.FLOAT, [B, S, D])], {"g": [D], "b": [D], "bias": [D]}, 0),
    "embedding": ([ours("EmbedLayerNormalization", "ids segments words places kinds g b", "y mask")], IDS,
                  {"words": [100, D], "places": [S, D], "kinds": [2, D], "g": [D], "b": [D]}, 0),
    "products": ([ours("FusedMatMul", "a b", transB=1, alpha=0.125)], [(n, T.FLOAT, [B, H, S, 16]) for n in "ab"], {}, B * H * S * S * 16),
    "activated": ([ours("FusedMatMulActivation", "x w", activation="Relu")], [X], {"w": [D, OUT]}, B * S * D * OUT),
    "gelu": ([ours("GemmFastGelu", "x w bias", "h"), ours("BiasGelu", "h bias", "i"), ours("FastGelu", "i", "j"), ours("QuickGelu", "j")], [X],
             {"w": [D, OUT], "bias": [OUT]}, B * S * D * OUT),
    "gemm": ([ours("FusedGemm", "a w bias", activation="Relu", transB=1)], [("a", T.FLOAT, [S, D])], {"w": [OUT, D], "bias": [OUT]}, S * D * OUT),
    "islands": ([node("MatMul", "x w", "h"), node("Cast", "h", "hb", to=T.BFLOAT16), node("MatMul", "hb wb", "i"), node("Cast", "i", "j", to=T.FLOAT16),
                 node("LayerNormalization", "j g", "k"), node("Cast", "k", "y", to=T.FLOAT)], [X], {"w": [D, OUT], "wb": (T.BFLOAT16, [OUT, 16]), "g": (T.FLOAT16, [16])},
                B * S * (D * OUT + OUT * 16)),
}


def weight(name, of):
    dtype, shape = of if isinstance(of, tuple) else (T.FLOAT, of)
    return helper.make_tensor(name, dtype, shape, bytes(SIZE[dtype] * math.prod(shape)), raw=True)


def layers(nodes, inputs, weights):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs], [helper.make_tensor_value_info(*Y)],
                              [weight(n, of) for n, of in weights.items()])
    with tempfile.NamedTemporaryFile(suffix=".onnx") as f:
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]), f.name)
        return subprocess.run([benanza, "layers", "--json", f.name], capture_output=True, text=True)


for name, (nodes, inputs, weights, macs) in MODELS.items():
    done = layers(nodes, inputs, weights)
    assert done.returncode == 0, (name, done.returncode, done.stderr)
    model = json.loads(done.stdout)[0]
    assert model["totals"]["macs"] == macs, (name, model["totals"]["macs"], macs)
    for layer in model["layers"]:
        shapes = [o["shape"] for o in layer["outputs"] if o["name"]]
        assert shapes and all(isinstance(d, int) for s in shapes for d in s), (name, layer)
done = layers([ours("NoSuchFusion", "x")], [X], {})
assert done.returncode == 4 and "NoSuchFusion is not known" in done.stderr, (done.returncode, done.stderr)
print(f"{len(MODELS)} fused models have the MACs of their formula")
