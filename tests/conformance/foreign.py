#!/usr/bin/python3
"""foreign.py BENANZA MODELS SHARED: is a recording that is not of a model told from one that is?

oneDNN's log of each of some bundled models is written by its layers' keys, and held against all of them, in its own batch and
in another. Where SHARED is, the recordings there are held against models of their own and against others."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

benanza, models, shared = sys.argv[1:4]
work = tempfile.mkdtemp()
environment = dict(os.environ, BENANZA_DB=work + "/db", LC_ALL="C.UTF-8")
tried, wrong = {}, 0


def run(*arguments):
    return subprocess.run([benanza, *arguments], capture_output=True, text=True, env=environment)


def ladder_of(model, profile, batch):
    p = run("analyze", model, "--batch", str(batch), "--profile", profile, "--json")
    if p.returncode not in (0, 4):
        sys.exit(f"{model} {profile}: {p.returncode} {p.stderr}")
    return json.loads(p.stdout)["models"][0]["profiles"][0]


def foreign(model, profile, batch):
    ladder = ladder_of(model, profile, batch)
    if ladder["foreign"] and any(ladder[k] is not None for k in ("speedup", "ratio", "excess", "overlap")):
        sys.exit(f"{model} {profile}: is foreign, and has a speed-up")
    return ladder["foreign"]


def check(kind, model, profile, batch, wanted):
    global wrong
    got = foreign(model, profile, batch) is not None
    tried.setdefault(kind, []).append(got == wanted)
    if got != wanted:
        wrong += 1
        print(f"{kind}: {os.path.basename(model)} batch {batch}, {profile}: {'warned' if got else 'not warned'}")


def numbers(text):
    return [int(n) for n in text.split("x")]


def log_of(model, batch, path, whole=True):
    """The convolutions and fully connected layers of a model, five times, as oneDNN tells them. Without `whole` as where the program
    has BLAS do products and convolutions with kernels of one element, as PyTorch does."""
    layers = json.loads(run("layers", model, "--batch", str(batch), "--json").stdout)[0]["layers"]
    lines = ["onednn_verbose,info,oneDNN v2.6.3 (commit 52b5f107dd9cf10910aaa19cb47f3abf9b349815)",
             "onednn_verbose,info,cpu,runtime:OpenMP,nthr:1"]
    calls = []
    for layer in layers:
        key = dict(re.findall(r"(\w+)=(\S+)", layer["key"] or ""))
        if layer["kind"] == "conv":
            x, w, y = numbers(key["x"]), numbers(key["w"]), layer["outputs"][0]["shape"]
            if not whole and w[2:] == [1, 1]:
                continue
            s, p, d, g = numbers(key["stride"]), numbers(key["pad"]), numbers(key["dilation"]), int(key["group"])
            size = "_".join(f"i{a}{x[2 + i]}o{a}{y[2 + i]}k{a}{w[2 + i]}s{a}{s[i]}d{a}{d[i] - 1}p{a}{p[i]}" for i, a in enumerate("hw"))
            calls.append(f"convolution,jit:avx2,forward_inference,src_f32::blocked:abcd:f0 wei_f32::blocked:{'a' * (g > 1)}bcde:f0 "
                         f"dst_f32::blocked:abcd:f0,,alg:convolution_direct,mb{x[0]}_{f'g{g}' if g > 1 else ''}ic{x[1]}oc{w[0]}_{size}")
        elif layer["kind"] == "gemm" and whole:
            (m, k), n = layer["inputs"][0]["shape"], layer["outputs"][0]["shape"][1]
            calls.append("inner_product,gemm:jit,forward_inference,src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 "
                         f"dst_f32::blocked:ab:f0,,,mb{m}ic{k}oc{n}")
    for _ in range(5):
        lines += [f"onednn_verbose,exec,cpu,{c},{0.01 + len(c) % 7 / 10}" for c in calls]
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")


def written():
    names = ["resnet18", "vgg16", "squeezenet1_1", "mobilenet_v2", "googlenet"]
    for name in names:
        for batch in (1, 3):
            path = f"{work}/{name}.{batch}.log"
            log_of(f"{models}/{name}.onnx", batch, path)
            for other in names:
                check("written, " + ("own" if other == name and batch == 3 else "own network, other batch" if other == name else "other network"),
                      f"{models}/{other}.onnx", path, 3, other != name or batch != 3)
        log_of(f"{models}/{name}.onnx", 3, path, whole=False)
        for other in names:
            check("written in part, " + ("own" if other == name else "other network"), f"{models}/{other}.onnx", path, 3, other != name)


OWN = {2: "BVLC_AlexNet", 4: "BVLC_GoogleNet", 6: "DenseNet-121", 17: "ResNet050-v1", 24: "Squeezenet-v1.1", 27: "VGG16"}


def recorded():
    paths = glob.glob(shared + "/v100/nsys/*/*_b1.sqlite.gz") + glob.glob(shared + "/v100/cudnn_log/*/*_b1.log.gz")
    names = list(OWN.values()) + ["VGG19", "ResNet101-v1"]
    for i, path in enumerate(sorted(paths)):
        own = OWN.get(int(os.path.basename(path).split("_")[0]))
        if not own:  # without kernels: nothing tells
            continue
        for other in {own, *(names[(i + k) % len(names)] for k in (1, 4, 6))}:
            check("recorded, " + ("own" if other == own else "other network"), f"{shared}/zoo30/{other}.onnx", path, 1, other != own)
    for batch in 1, 4:  # kernels without sizes, inputs that stay on the device: the batch is open, and that is said
        ladder = ladder_of(f"{shared}/zoo30/ResNet050-v1.onnx", shared + "/v100/nsys/mxnet/17_b1.sqlite.gz", batch)
        if not any("nothing in the recording tells its batch" in w for w in ladder["warnings"]):
            sys.exit(f"a recording that tells no batch is held against batch {batch} without a warning")
    check("recorded, training", f"{shared}/zoo30/ResNet050-v1.onnx", shared + "/kineto/resnet50_profiler_api_num_workers_0.json.gz", 1, True)


written()
if os.path.isdir(shared):
    recorded()
for kind, results in tried.items():
    print(f"{kind}: {sum(results)} of {len(results)} right")
sys.exit(wrong > 0)
