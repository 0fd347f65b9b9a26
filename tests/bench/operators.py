#!/usr/bin/python3
"""operators.py BENANZA [WORD...]: what one layer costs by its best record and by PyTorch's operator, on one thread, in the same minutes.

A bound is none where PyTorch does a layer in less than its best record: such rows are marked. Both are processor time with operands in the caches: records are
made in an empty database, PyTorch's is the lower quartile of calls that repeat for a while. Only problems whose text has one of the words run. Products, and
convolutions, are PyTorch's by the same library."""
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # OpenBLAS asks when it is loaded, and nobody later
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
R = torch.randn


def back(forward, *inputs):
    """The backward pass alone."""
    leaves = [x.requires_grad_() for x in inputs]
    y = forward(*leaves)
    dy = torch.ones_like(y)
    return lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True)


X, ROWS = (1, 64, 56, 56), (197, 768)
x, rows = R(*X), R(*ROWS)
FUNCTIONS = {"relu": F.relu, "leaky": F.leaky_relu, "elu": F.elu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "gelu_erf": F.gelu,
             "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"), "swish": F.silu, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "mish": F.mish,
             "softplus": F.softplus, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "abs": torch.abs, "square": torch.square,
             "round": torch.round, "floor": torch.floor, "ceil": torch.ceil, "sign": torch.sign, "erf": torch.erf, "softsign": F.softsign,
             "sin": torch.sin, "cos": torch.cos}
CASES = {f"activation fn={n} x=1x64x56x56 dtype=f32": (lambda f=f: f(x)) for n, f in FUNCTIONS.items()}
for name in ("relu", "sigmoid", "tanh", "gelu_erf", "swish", "hardswish", "elu", "leaky"):
    CASES[f"activation_grad fn={name}{' of_y=1' if name in ('sigmoid', 'tanh') else ''} x=1x64x56x56 dtype=f32"] = back(FUNCTIONS[name], R(*X))
for name, f in (("add", torch.add), ("mul", torch.mul), ("sub", torch.sub), ("div", torch.div), ("max", torch.maximum), ("min", torch.minimum)):
    CASES[f"binary fn={name} a=1x64x56x56 b=1x64x56x56 dtype=f32"] = lambda f=f, b=R(*X): f(x, b)
    CASES[f"binary fn={name} a=1x64x56x56 b=1x64x1x1 dtype=f32"] = lambda f=f, b=R(1, 64, 1, 1): f(x, b)
    CASES[f"binary fn={name} a=197x768 b=1x768 dtype=f32"] = lambda f=f, b=R(1, 768): f(rows, b)
    CASES[f"binary fn={name} a=197x768 b=197x1 dtype=f32"] = lambda f=f, b=R(197, 1): f(rows, b)
for name, f in (("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax)):
    CASES[f"reduce fn={name} x=197x768 y=197x1 dtype=f32"] = lambda f=f: f(rows, dim=1, keepdim=True)
    CASES[f"reduce fn={name} x=197x768 y=1x768 dtype=f32"] = lambda f=f: f(rows, dim=0, keepdim=True)
    CASES[f"reduce fn={name} x=1x64x56x56 y=1x64x1x1 dtype=f32"] = lambda f=f: f(x, dim=(2, 3), keepdim=True)
    CASES[f"reduce fn={name} x=8x64x28x28 y=1x64x1x1 dtype=f32"] = lambda f=f, v=R(8, 64, 28, 28): f(v, dim=(0, 2, 3), keepdim=True)
for shape, dims in (("128x1000", (128, 1000)), ("12x197x197", (12, 197, 197)), ("2048x10", (2048, 10)), ("8x32000", (8, 32000))):
    CASES[f"softmax x={shape} axis={len(dims) - 1} dtype=f32"] = lambda v=R(*dims): torch.softmax(v, -1)
    CASES[f"logsoftmax x={shape} axis={len(dims) - 1} dtype=f32"] = lambda v=R(*dims): torch.log_softmax(v, -1)
    CASES[f"softmax_grad x={shape} axis={len(dims) - 1} dtype=f32"] = back(lambda v: torch.softmax(v, -1), R(*dims))
    CASES[f"logsoftmax_grad x={shape} axis={len(dims) - 1} dtype=f32"] = back(lambda v: torch.log_softmax(v, -1), R(*dims))
CASES["softmax x=1x21x128x128 axis=1 dtype=f32"] = lambda v=R(1, 21, 128, 128): torch.softmax(v, 1)
CASES["logsoftmax x=1x21x128x128 axis=1 dtype=f32"] = lambda v=R(1, 21, 128, 128): torch.log_softmax(v, 1)
CASES["softmax_grad x=1x21x128x128 axis=1 dtype=f32"] = back(lambda v: torch.softmax(v, 1), R(1, 21, 128, 128))
for shape in ((128, 1000), (2048, 10), (2, 3, 64, 64), (1, 21, 128, 128), (64, 32000)):
    v, labels, text = R(*shape), torch.randint(0, shape[1], (shape[0],) + shape[2:]), "x".join(map(str, shape))
    CASES[f"softmax_loss x={text} reduction=mean dtype=f32:i64:f32"] = lambda v=v, t=labels: F.cross_entropy(v, t)
    CASES[f"softmax_loss_grad x={text} reduction=mean dtype=f32:i64:f32"] = back(lambda v, t=labels: F.cross_entropy(v, t), v.clone())
scale, shift = R(768), R(768)
CASES["layernorm x=197x768 axis=1 dtype=f32"] = lambda: F.layer_norm(rows, (768,), scale, shift)
CASES["layernorm x=3136x96 axis=1 dtype=f32"] = lambda v=R(3136, 96), a=R(96), b=R(96): F.layer_norm(v, (96,), a, b)
CASES["layernorm_grad x=197x768 axis=1 dtype=f32"] = back(lambda v, a, b: F.layer_norm(v, (768,), a, b), R(*ROWS), R(768), R(768))
for groups in (1, 8, 32, 64):
    CASES[f"groupnorm x=1x64x56x56 group={groups} dtype=f32"] = lambda g=groups, a=R(64), b=R(64): F.group_norm(x, g, a, b)
    CASES[f"groupnorm_grad x=1x64x56x56 group={groups} dtype=f32"] = back(lambda v, a, b, g=groups: F.group_norm(v, g, a, b), R(*X), R(64), R(64))
stats = (torch.zeros(64), torch.ones(64), R(64), R(64))
CASES["batchnorm x=1x64x56x56 dtype=f32"] = lambda: F.batch_norm(x, *stats)
CASES["batchnorm x=196x512 dtype=f32"] = lambda v=R(196, 512), s=(torch.zeros(512), torch.ones(512), R(512), R(512)): F.batch_norm(v, *s)
CASES["batchnorm x=8x64x28x28 training=1 dtype=f32"] = lambda v=R(8, 64, 28, 28): F.batch_norm(v, *stats, training=True)
CASES["batchnorm_grad x=8x64x28x28 dtype=f32"] = back(lambda v, a, b: F.batch_norm(v, stats[0], stats[1], a, b, training=True), R(8, 64, 28, 28), R(64), R(64))
CASES["transpose x=1x197x12x64 perm=0x2x1x3 dtype=f32"] = lambda v=R(1, 197, 12, 64): v.permute(0, 2, 1, 3).contiguous()
CASES["transpose x=1x12x197x64 perm=0x1x3x2 dtype=f32"] = lambda v=R(1, 12, 197, 64): v.permute(0, 1, 3, 2).contiguous()
CASES["transpose x=768x3072 perm=1x0 dtype=f32"] = lambda v=R(768, 3072): v.t().contiguous()
CASES["transpose x=1x96x56x56 perm=0x2x3x1 dtype=f32"] = lambda v=R(1, 96, 56, 56): v.permute(0, 2, 3, 1).contiguous()
CASES["transpose x=1x56x56x96 perm=0x3x1x2 dtype=f32"] = lambda v=R(1, 56, 56, 96): v.permute(0, 3, 1, 2).contiguous()
CASES["concat y=1x128x28x28 axis=1 sizes=64x64 dtype=f32"] = lambda a=R(1, 64, 28, 28), b=R(1, 64, 28, 28): torch.cat((a, b), 1)
CASES["concat y=197x1536 axis=1 sizes=768x768 dtype=f32"] = lambda: torch.cat((rows, rows), 1)
CASES["pad x=1x64x56x56 pad=1x1x1x1 dtype=f32"] = lambda: F.pad(x, (1, 1, 1, 1))
CASES["slice x=1x64x56x56 y=1x32x56x56 start=0x16x0x0 step=1x1x1x1 dtype=f32"] = lambda: x[:, 16:48].clone()
CASES["slice x=1x64x56x56 y=1x64x28x28 start=0x0x0x0 step=1x1x2x2 dtype=f32"] = lambda: x[:, :, ::2, ::2].clone()
CASES["expand x=1x1x768 y=1x197x768 dtype=f32"] = lambda v=R(1, 1, 768): v.expand(1, 197, 768).clone()
CASES["gather x=30000x768 n=128 axis=0 dtype=f32:i64:f32"] = lambda w=R(30000, 768), i=torch.randint(0, 30000, (128,)): F.embedding(i, w)
CASES["scatter_add x=3000x768 n=128 axis=0 dtype=f32:i64:f32"] = lambda i=torch.randint(0, 3000, (128,)), d=R(128, 768): torch.ops.aten.embedding_dense_backward(d, i, 3000, -1, False)
CASES["where c=12x197x197 a=12x197x197 b=1x1x1 dtype=f32"] = lambda c=R(12, 197, 197) > 0, a=R(12, 197, 197), b=R(1, 1, 1): torch.where(c, a, b)
CASES["prelu x=1x64x56x56 dtype=f32"] = lambda a=R(64): F.prelu(x, a)
CASES["pool mode=max x=1x64x112x112 kernel=3x3 stride=2x2 pad=1x1x1x1 dtype=f32"] = lambda v=R(1, 64, 112, 112): F.max_pool2d(v, 3, 2, 1)
CASES["pool mode=avg x=1x64x56x56 kernel=2x2 stride=2x2 dtype=f32"] = lambda: F.avg_pool2d(x, 2)
CASES["pool mode=avg x=1x512x7x7 kernel=7x7 dtype=f32"] = lambda v=R(1, 512, 7, 7): F.avg_pool2d(v, 7)
CASES["pool mode=max x=1x256x13x13 kernel=5x5 stride=1x1 pad=2x2x2x2 dtype=f32"] = lambda v=R(1, 256, 13, 13): F.max_pool2d(v, 5, 1, 2)
CASES["lrn x=1x64x56x56 size=5 alpha=0.0001 beta=0.75 bias=1 dtype=f32"] = lambda: F.local_response_norm(x, 5)
CASES["resample mode=nearest coord=asymmetric x=1x128x28x28 y=1x128x56x56 dtype=f32"] = lambda v=R(1, 128, 28, 28): F.interpolate(v, scale_factor=2)
CASES["resample mode=linear coord=half_pixel x=1x128x28x28 y=1x128x56x56 dtype=f32"] = lambda v=R(1, 128, 28, 28): F.interpolate(v, scale_factor=2, mode="bilinear")
CASES["dropout x=197x768 training=1 ratio=0.1 dtype=f32"] = lambda: F.dropout(rows, 0.1)
for rule, make in (("sgd", lambda p: torch.optim.SGD(p, 0.01)), ("momentum", lambda p: torch.optim.SGD(p, 0.01, momentum=0.9)), ("adam", lambda p: torch.optim.Adam(p))):
    w = torch.nn.Parameter(R(768, 768))
    w.grad = R(768, 768)
    CASES[f"update rule={rule} x=768x768 dtype=f32"] = make([w]).step


def seconds(call, least=0.05):
    taken = []
    for _ in range(3):
        call()
    while sum(taken) < least or len(taken) < 8:
        begin = time.process_time()
        call()
        taken.append(time.process_time() - begin)
    return sorted(taken)[len(taken) // 4]


def main():
    benanza, words = sys.argv[1], sys.argv[2:]
    cases = {p: c for p, c in CASES.items() if not words or any(w in p for w in words)}
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([benanza, "gen", "--all", "-o", work + "/g", *[w for p in cases for w in ("--problem", p)]], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([benanza, "run", work + "/g", "--db", work + "/db", "--time-limit", "0.02"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        best = {}
        lines = subprocess.run([benanza, "db", "export", "--db", work + "/db"], check=True, capture_output=True, text=True).stdout.splitlines()
        for record in map(json.loads, lines):
            parts = set(record.get("problem", "").split())
            for problem in cases:  # the record's text has all members, those too that a case leaves out
                if set(problem.split()) <= parts and record["status"] == "ok" and record["median"] < best.get(problem, (9e9,))[0]:
                    best[problem] = record["median"], record["backend"] + " " + record["algorithm"]
    above = 0
    print("| problem | best record | PyTorch | record over PyTorch | by |\n|---|---|---|---|---|")
    for problem, call in cases.items():
        took = best.get(problem)
        if not took:
            print(f"| {problem} | none | | | |")
            continue
        theirs = seconds(call)
        high = took[0] > 1.15 * theirs
        above += high
        print(f"| {problem} | {took[0] * 1e6:.1f} us | {theirs * 1e6:.1f} us | {took[0] / theirs:.2f}{' **above**' if high else ''} | {took[1]} |", flush=True)
    print(f"\n{above} of {len(cases)} problems take over 1.15 times what PyTorch takes.")


main()
