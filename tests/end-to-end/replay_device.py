#!/usr/bin/python3
"""replay_device.py BENANZA STANDIN: `benanza replay` on a device, which STANDIN/benanza-cudnn.so and -cublas.so stand in for: on
one stream and on several, as calls and as a graph, fused and not, in each layout and data type the outputs are those of the
processor, and each call has the result of its definition. A device that computes wrongly, that does not wait, or whose
graph lacks a call is found out. Without the ONNX package: exit status 77."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnx.numpy_helper
    from onnx import TensorProto, helper
except ImportError:
    print("skipped: there is no ONNX package")
    sys.exit(77)

BENANZA, STANDIN = sys.argv[1:3]
GPU = {"v": 1, "record": "system", "slug": "gpu", "stack": "any", "device": "gpu"}
UNEVEN = "conv x=1x4x8x8 w=8x4x3x3 stride=1x1 pad=0x0x2x2 dilation=1x1 group=1"
REFUSED = {"v": 1, "backend": "cudnn", "algorithm": "", "layout": "plain", "math": "default", "threads": 1, "cache": "hot",
           "clock": "", "status": "unsupported", "reason": "padding is uneven", "variants": 0, "system": "gpu@any"}


def branches(path):
    """Three branches of convolutions behind one whose padding is uneven, that come together in sums; loops of ours (Slice,
    Transpose); a product."""
    random = np.random.default_rng(7)

    def weights(name, *dims):
        values = random.standard_normal(dims) / np.sqrt(np.prod(dims[1:]) or 1)
        return onnx.numpy_helper.from_array(values.astype(np.float32), name)

    def conv(x, w, y, pads=(1, 1, 1, 1)):
        return helper.make_node("Conv", [x, w], [y], pads=pads)

    nodes = [conv("x", "w0", "a", (0, 0, 2, 2)), helper.make_node("Relu", ["a"], ["r"])]
    for i in "123":
        nodes += [conv("r", "u" + i, "b" + i), helper.make_node("Relu", ["b" + i], ["c" + i]), conv("c" + i, "v" + i, "d" + i)]
    nodes += [
        helper.make_node("Add", ["d1", "d2"], ["e"]),
        helper.make_node("Add", ["e", "d3"], ["f"]),
        helper.make_node("Slice", ["f", "from", "to"], ["g"]),
        helper.make_node("MaxPool", ["g"], ["h"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Transpose", ["h"], ["i"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["i", "m"], ["y"]),
        helper.make_node("Softmax", ["y"], ["z"]),
    ]
    stored = [weights("w0", 8, 4, 3, 3), weights("m", 8, 12)]
    stored += [weights(name + i, 8, 8, 3, 3) for name in "uv" for i in "123"]
    stored += [onnx.numpy_helper.from_array(np.array(at), name) for name, at in (("from", [0, 0, 2, 2]), ("to", [1, 8, 8, 8]))]
    graph = helper.make_graph(
        nodes, "branches", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "yz"], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def replay(work, *options, lie="", status=0):
    """What `replay --json` says, and the outputs."""
    outputs = work / "outputs"
    outputs.unlink(missing_ok=True)
    env = {**os.environ, "BENANZA_MODULES": STANDIN, "BENANZA_STANDIN": lie}
    ran = subprocess.run([BENANZA, "replay", work / "branches.onnx", "--db", work / "db", "--outputs", outputs, "--json", *options],
                         env=env, capture_output=True, text=True)
    assert ran.returncode == status, (options, lie, ran.returncode, ran.stderr)
    return json.loads(ran.stdout) if ran.stdout else ran.stderr, np.fromfile(outputs, "f4") if outputs.exists() else None


def know(work, lines):
    (work / "lines").write_text("".join(json.dumps(line) + "\n" for line in lines))
    subprocess.run([BENANZA, "db", "import", "--db", work / "db", work / "lines"], check=True, capture_output=True)


def off(values, expected):
    """NaN is as far off as it gets."""
    far = np.abs(values - expected).max() / np.abs(expected).max()
    return far if far == far else np.inf


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        branches(work / "branches.onnx")
        know(work, [GPU])
        once, gpu = ["--time-limit", "0"], ["--system", "gpu"]
        _, expected = replay(work, *once)
        assert len(expected) == 2 * 9 * 12 and np.isfinite(expected).all()
        ways = [], ["--fuse"], ["--layout", "nhwc", "--layout", "packed", "--fuse"], ["--dtype", "f16"]
        runs = [[*options, "--streams", streams, *graph] for options in ways
                for streams in "13" for graph in ([], ["--graph"])]
        for options in runs:
            said, outputs = replay(work, *gpu, *once, "--check", "--plan", work / "plan", *options)
            far = off(outputs, expected)
            assert far < (2e-2 if "f16" in options else 1e-5), (options, far)
            assert said["checked"] > 8 and said["wrong"] == 0, (options, said)
            assert said["streams"] == int(options[options.index("--streams") + 1]) and said["graph"] == ("--graph" in options)
            assert "nhwc" not in options or '"nhwc"' in (work / "plan").read_text(), options
        print(f"{len(runs)} replays have the processor's outputs")

        # Where no library takes uneven padding in one call, a border of zeros comes first: in memory that others had before.
        know(work, [GPU] + [{**REFUSED, "problem": f"{UNEVEN}{post} dtype=f32"} for post in ("", " post=relu")])
        for options in [], ["--fuse"], ["--fuse", "--streams", "3", "--graph"]:
            said, outputs = replay(work, *gpu, *once, "--check", "--plan", work / "plan", *options)
            assert "pad x=1x4x8x8 pad=0x0x2x2 dtype=f32" in (work / "plan").read_text(), options
            assert off(outputs, expected) < 1e-5 and said["wrong"] == 0, (options, off(outputs, expected))

        # By the device's clock, which is made up: a call takes 5 µs at the least.
        said, outputs = replay(work, *gpu, "--time-limit", "0.05", "--fuse", "--streams", "2", "--graph", "--check")
        assert off(outputs, expected) < 1e-5 and said["wrong"] == 0
        assert said["calls"] > 5e-6 * said["checked"] and said["loops"] > 1e-5 and said["latency"] > 0, said

        # Streams that do not wait, and what a graph lacks, show in the outputs; each call by itself is right.
        lies = ("order", ["--streams", "3"]), ("order", ["--streams", "3", "--graph"]), ("graph", ["--graph"])
        for lie, options in lies:
            said, outputs = replay(work, *gpu, *once, "--check", *options, lie=lie)
            assert said["wrong"] == 0 and off(outputs, expected) > 1e-2, (lie, options, said["wrong"])
        said, _ = replay(work, *gpu, *once, "--check", lie="wrong", status=1)
        assert said["wrong"] == said["checked"] > 8, said
        said, _ = replay(work, *gpu, *once, lie="none", status=1)
        assert "no GPU can be used: this is a stand-in that has none" in said, said
        print("devices that lie are found out")


main()
