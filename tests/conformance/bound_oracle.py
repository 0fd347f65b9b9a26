#!/usr/bin/python3
"""bound_oracle.py BENANZA: bounds of random networks with random records, held against sums, paths and covers that are computed here.

Convolutions, activations, poolings and sums, branched at random; a system with one rate of arithmetic and one of memory; every variant
of every problem has a time, or none, at random. Sequential, parallel, fused and roofline bounds must be what the definitions say: the sum
of the cheapest, the longest path, the cheapest of all covers by convolutions with their sums and activations, and what the bytes and products
of a layer or a group cannot do without. NETWORKS: how many (8), SEED: which (1)."""
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

benanza = os.path.abspath(sys.argv[1])
RATE = 4e9  # bytes a second


def call(*arguments):
    r = subprocess.run([benanza, *arguments], capture_output=True, text=True)
    assert r.returncode in (0, 4), (arguments, r.stderr)
    return r.stdout


def needed_share(x, y, k, pad, stride, dilation):
    """Of a convolution's products along one axis, those that no algorithm can do without: they meet no padding, counted one by one; or where
    the kernel goes step by step, what Winograd's tiles of four leave."""
    inside = sum(0 <= o * stride - pad + t * dilation < x for o in range(y) for t in range(k)) / (y * k)
    return min(inside, (4 + k - 1) / (4 * k)) if stride == dilation == 1 and k > 1 else inside


def network(chance, path):
    """Of some 20 layers; what reads a tensor is drawn, so that there are branches. Returns {convolution: the share of its products that it needs}."""
    needed = {}
    nodes, weights, tensors = [], [], [("x", 4, 16)]  # name, channels, height and width
    for i in range(chance.randint(8, 20)):
        name, c, size = chance.choice(tensors[-3:])
        kind = chance.choice(["Conv", "Conv", "Relu", "Relu", "MaxPool", "Add"])
        alike = [t for t in tensors if t[1:] == (c, size) and t[0] != name]
        y = f"t{i}"
        if kind == "Conv":
            out, k, group = chance.choice([2, 4, 8]), chance.choice([1, 1, 2, 3, 5]), chance.choice([1, 1, 2])
            pad, stride, dilation = chance.randint(0, k - 1), chance.choice([1, 1, 2]), chance.choice([1, 1, 2])
            after = (size + 2 * pad - dilation * (k - 1) - 1) // stride + 1
            if size + 2 * pad <= dilation * (k - 1) or after < 2 or c % group:
                k, group, pad, stride, dilation, after = 1, 1, 0, 1, 1, size
            weights.append(helper.make_tensor(f"w{i}", 1, (out, c // group, k, k), [0.5 + i / 64] * (out * c // group * k * k)))
            nodes.append(helper.make_node("Conv", [name, f"w{i}"], [y], name=y, kernel_shape=[k, k], pads=[pad] * 4, strides=[stride] * 2,
                                          dilations=[dilation] * 2, group=group))
            tensors.append((y, out, after))
            needed[y] = needed_share(size, after, k, pad, stride, dilation) ** 2
        elif kind == "Add" and alike:
            nodes.append(helper.make_node("Add", [name, chance.choice(alike)[0]], [y], name=y))
            tensors.append((y, c, size))
        elif kind == "MaxPool" and size > 4:
            nodes.append(helper.make_node("MaxPool", [name], [y], name=y, kernel_shape=[2, 2], strides=[2, 2]))
            tensors.append((y, c, size // 2))
        else:
            nodes.append(helper.make_node("Relu", [name], [y], name=y))
            tensors.append((y, c, size))
    read = {i for n in nodes for i in n.input}
    outputs = [helper.make_tensor_value_info(t, 1, (1, c, s, s)) for t, c, s in tensors[1:] if t not in read]
    inputs = [helper.make_tensor_value_info("x", 1, (1, 4, 16, 16))]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, weights), opset_imports=[helper.make_opsetid("", 13)]), path)
    return needed


def record_all(chance, work, holes=0, peaks=True, flops=1e9):
    """Times for what gen wants, some twice, with all that stands beside a time; {problem: least time}, {problem: its records, the least first}, and
    {layer's key: its problem}."""
    call("gen", work + "/m.onnx", "--fuse", "--all", "-o", work + "/g", "--db", work + "/none", "--json")
    rows = json.load(open(work + "/g/manifest.json"))["layers"]
    wanted = {(p["problem"], f) for l in rows for p in l["problems"] for f in p["families"]}
    least, records = {}, {}
    with open(work + "/r.jsonl", "w") as f:
        bandwidth = [dict(bytes=1 << 20, read=RATE, copy=RATE, copy_cold=RATE)]
        measured = dict(threads=1, flops=dict(f32=flops), launch=dict(onednn=0), bandwidth=bandwidth)
        print(json.dumps(dict(v=1, record="system", slug="box", stack="onednn2.6.3", date=7, device="cpu", name="Box",
                              **({"measured": measured} if peaks else {}))), file=f)
        absent = {p for p in sorted({p for p, _ in wanted}) if chance.random() < holes}
        for problem, family in sorted(wanted):
            backend, layout, mode = family.split()
            for k in range(chance.randint(1, 2)):
                time = chance.randint(1, 400) * 1e-6
                if layout != "plain" or problem in absent:
                    continue
                r = dict(v=1, problem=problem, backend=backend, algorithm=f"a{k}", layout=layout, math=mode, threads=1, cache="hot", status="ok",
                         median=time, q25=time, q75=time, low=time * chance.randint(80, 99) / 100, high=time * chance.randint(101, 120) / 100, n=9,
                         noisy=chance.random() < 0.2, provenance=chance.choice(["measured", "imported"]), date=8, system="box@onednn2.6.3")
                print(json.dumps(r), file=f)
                least[problem] = min(least.get(problem, 1), time)
                records.setdefault(problem, []).append(r)
    call("db", "import", work + "/r.jsonl", "--db", work + "/db")
    return least, {p: sorted(r, key=lambda r: r["median"]) for p, r in records.items()}, \
        {l["key"]: l["problems"][0]["problem"] for l in rows if "pattern" not in l}


def longest(layers, cost):
    end = {}
    for l in layers:
        name = l["outputs"][0]["name"]
        end[name] = max((end.get(i["name"], 0) for i in l["inputs"]), default=0) + cost[l["index"]]
    return max(end.values())


def best_cover(alone, groups):
    """Every way to take groups that share no layer: the least sum, and what it is of."""
    if not groups:
        return sum(alone), []
    (group, together), rest = groups[0], groups[1:]
    without = best_cover(alone, rest)
    if together is None:
        return without
    taken = [0 if i in group else t for i, t in enumerate(alone)]
    taken[group[-1]] = together
    within = best_cover(taken, [g for g in rest if not set(group) & set(g[0])])
    return min(without, (within[0], within[1] + [(group, together)]), key=lambda w: w[0])


def spared(layers):
    """Those that do the same as one before them, to the same, and ReLUs of what is not negative; {what such a layer makes: the value that is the same}."""
    value, positive, found, stands, first = {}, set(), [], {}, {}
    for l in layers:
        reads, y = [value.get(t["name"], t["name"]) for t in l["inputs"]], l["outputs"][0]["name"]
        value[y] = made = reads[0] if l["op"] == "Relu" and reads[0] in positive else (l["key"], *reads)
        if made in first:
            found.append(l["index"])
            stands[y] = first[made]
        first.setdefault(made, y)
        if l["op"] == "Relu" or (l["op"] != "Conv" and positive.issuperset(reads)):
            positive.add(made)
    return found, stands


def same(name, got, want):
    assert abs(got - want) <= 1e-6 * want + 1e-11, f"seed {seed}, network {number}: {name} is {got}, not {want}"


def judge(chance, work):
    needed = network(chance, work + "/m.onnx")
    flops = 1e9 if number % 2 else 1e8  # of f32 a second; with few of them also an activation's take longer than its bytes
    least, records, _ = record_all(chance, work, flops=flops)
    layers = json.loads(call("layers", work + "/m.onnx", "--json"))[0]["layers"]
    said = json.loads(call("analyze", work + "/m.onnx", "--db", work + "/db", "--system", "box", "--fuse", "--json"))["models"][0]
    price = {l["node"]: l for l in said["layers"]}
    alone, roof, products = [], [], {}
    for l in layers:
        p = price[l["index"]]
        alone.append(least[p["problems"][0]])
        same(f"the time of {l['key']}", p["seconds"], alone[-1])
        best, *others = records[p["problems"][0]]
        if not others or others[0]["median"] > alone[-1]:
            assert {k: p[k] for k in ("low", "high", "noisy", "provenance")} == {k: best[k] for k in ("low", "high", "noisy", "provenance")}, (p, best)
        assert (p["runner_up"] is None) == (not others), (p, others)
        same("the second best time", p["runner_up"] or 0, others[0]["median"] if others else 0)
        size = sum(bytes_of(t) for t in l["inputs"] + l["outputs"])
        values = math.prod(l["outputs"][0]["shape"])
        work_of = {"Conv": 2 * l["macs"] * needed.get(l["outputs"][0]["name"], 1), "MaxPool": 4 * values}  # a window of 2x2
        products[l["index"]] = work_of.get(l["op"], values) / flops
        roof.append(max(products[l["index"]], size / RATE))
        same(f"the roofline of {l['key']}", p["hardware"], roof[-1])
    spare, stands = spared(layers)
    read = {t["name"] for l in layers for t in l["inputs"]}

    def stays_inside(name, members):
        """Whether only members read a value, by whichever layers that need not run."""
        makers = {l["outputs"][0]["name"]: l["index"] for l in layers}
        outside = any(name in [t["name"] for t in l["inputs"]] for l in layers if l["index"] not in [*spare, *members])
        return name in read and not outside and all(makers[w] in members or stays_inside(w, members) for w in stands if stands[w] == name)

    def past(name, members):
        while name in stands and name not in members:
            name = stands[name]
        return name

    def readers_of(l, op):
        """Layers of that operator that read its result once."""
        name = l["outputs"][0]["name"]
        return [r for r in layers if r["op"] == op and [past(t["name"], [name]) for t in r["inputs"]].count(name) == 1]

    groups, roofs = [], []
    for first in [l for l in layers if l["op"] in ("Conv", "Add")]:
        adds = readers_of(first, "Add") if first["op"] == "Conv" else []
        chains = [("relu", [act]) for act in readers_of(first, "Relu")] + [("add", [add]) for add in adds]
        chains += [("add,relu", [add, act]) for add in adds for act in readers_of(add, "Relu")]
        for post, group in chains:
            members = [first, *group]
            numbers = [l["index"] for l in members]
            if not all(stays_inside(l["outputs"][0]["name"], numbers) for l in members[:-1]):
                continue
            inside = {l["outputs"][0]["name"] for l in members[:-1]}
            outside = [t for l in members for t in l["inputs"] if past(t["name"], inside) not in inside] + members[-1]["outputs"]
            problem = price[first["index"]]["problems"][0].replace(" dtype=", f" post={post} dtype=")
            groups.append((numbers, least.get(problem)))
            roofs.append((numbers, max(sum(products[l["index"]] for l in (members if first["op"] == "Add" else [first])), sum(map(bytes_of, outside)) / RATE)))
    same("sequential", said["sequential"], sum(alone))
    whence = [price[l["index"]]["provenance"] for l in layers]
    counts = dict(n_layers=len(layers), measured=whence.count("measured"), imported=whence.count("imported"), modelled=0, unpriced=0, free=0,
                  noisy=sum(price[l["index"]]["noisy"] for l in layers), macs=sum(l["macs"] for l in layers),
                  **{"macs_" + w: sum(l["macs"] for l, f in zip(layers, whence) if f == w) for w in ("measured", "imported")})
    assert counts == {k: said[k] for k in counts}, (counts, {k: said[k] for k in counts})
    path = [layers[i] for i in said["path"]]
    same("the sum of the longest path", sum(alone[i] for i in said["path"]), longest(layers, alone))
    for a, b in zip(path, path[1:]):
        assert a["outputs"][0]["name"] in [t["name"] for t in b["inputs"]], said["path"]
    for s in said["streams"]:  # Graham's bound: a list of tasks on k resources takes no longer than that, and no less than the two below
        low, total = max(longest(layers, alone), sum(alone) / s["k"]), sum(alone)
        assert low * (1 - 1e-6) <= s["seconds"] <= (total / s["k"] + longest(layers, alone) * (s["k"] - 1) / s["k"]) * (1 + 1e-6), said["streams"]
    same("parallel", said["parallel"], longest(layers, alone))
    same("hardware", said["hardware"], sum(roof))
    assert {s["layer"] for s in said["fused"]["spared"]} == {layers[i]["name"] for i in spare}, (seed, number, spare)
    alone, roof = ([0 if i in spare else t for i, t in enumerate(some)] for some in (alone, roof))
    fused, taken = best_cover(alone, groups)
    same("fused", said["fused"]["sequential"], fused)
    assert len(said["fused"]["groups"]) == len(taken), (seed, number, said["fused"]["groups"], taken)
    same("fused hardware", said["fused"]["hardware"], best_cover(roof, roofs)[0])
    at = list(alone)
    for group, together in taken:
        for i in group:
            at[i] = together if i == group[-1] else 0
    same("fused parallel", said["fused"]["parallel"], longest(layers, at))
    return len(layers), len(taken), sum(t is not None for _, t in groups)


def judge_with_holes(chance, work):
    """Some problems have no record, and a system has no peaks: what is left is summed, and whether that is enough is said by what is priced."""
    network(chance, work + "/m.onnx")
    peaks = chance.random() < 0.5
    least, _, problem = record_all(chance, work, chance.choice([0.03, 0.1, 0.4]), peaks)
    layers = json.loads(call("layers", work + "/m.onnx", "--json"))[0]["layers"]
    said = json.loads(call("analyze", work + "/m.onnx", "--db", work + "/db", "--system", "box", "--json"))["models"][0]
    price = {l["node"]: l for l in said["layers"]}
    known = [l for l in layers if problem[l["key"]] in least]
    for l in layers:
        seconds = price[l["index"]]["seconds"]
        assert (seconds is not None) == (l in known), price[l["index"]]
        same("a time", seconds or 0, least[problem[l["key"]]] if l in known else 0)
    lacks = len(layers) - len(known)
    same("sequential", said["sequential"], sum(price[l["index"]]["seconds"] for l in known))
    macs, all_macs = (sum(l["macs"] for l in some) for some in (known, layers))
    assert (said["unpriced"], said["macs_unpriced"], said["complete"]) == (lacks, all_macs - macs, not lacks), said
    goal, what = said["goal"], "priced_time" if peaks else "priced_bytes"

    def work_of(l):
        return price[l["index"]]["hardware"] if peaks else sum(bytes_of(t) for t in l["inputs"] + l["outputs"])

    share = sum(map(work_of, known)) / sum(map(work_of, layers))
    same("the share of products", goal["priced_macs"], macs / all_macs if all_macs else 1)
    same("the share of the rest", goal[what], share)
    assert goal["enough"] == ((macs >= 0.99 * all_macs) and share >= 0.95) and goal["unpriced"] == lacks, (goal, share)
    return goal["enough"], lacks


def bytes_of(tensor):
    return 4 * math.prod(tensor["shape"])


asked, totals = int(os.environ.get("SEED", "1")), [0, 0, 0]
found = [(2, 43)]  # a sum of two convolutions, the first of which another layer reads, too: the second is not left alone
for seed, number in [(asked, n) for n in range(int(os.environ.get("NETWORKS", "8")))] + found:
    with tempfile.TemporaryDirectory() as work:
        totals = [a + b for a, b in zip(totals, judge(random.Random(seed * 1000 + number), work))]
assert totals[1] and totals[1] < totals[2], totals
holes = []
for seed, number in [(asked, n) for n in range(int(os.environ.get("NETWORKS", "8")))]:
    with tempfile.TemporaryDirectory() as work:
        holes.append(judge_with_holes(random.Random(seed * 1000 + 500 + number), work))
assert any(lacks for _, lacks in holes) and {e for e, _ in holes} == {True, False}, holes
print(f"{len(found) + int(os.environ.get('NETWORKS', '8'))} networks, {totals[0]} layers: bounds as they are defined; {totals[1]} of {totals[2]} groups are cheaper together")
