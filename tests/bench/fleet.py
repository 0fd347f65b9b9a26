#!/usr/bin/python3
"""fleet.py BENANZA [SHARED]: planning 1,000 models on 20 systems, merging 200 result files with a million records, and how
even shards are. The peer of the merge is Python's json and sqlite3 doing the same with the same files.

Models are made up: convolutional networks of 20 to 60 convolutions, whose widths and sizes differ from model to model.
The records are made up for their problems. SHARED: the published records of a V100, for the balance of the shards.
"""
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time

from onnx import TensorProto, helper, save

MODELS, SYSTEMS, FILES, RECORDS = 1000, 20, 200, 1_000_000


def sparse(name, dims):
    values = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[0])
    return helper.make_sparse_tensor(values, TensorProto(data_type=TensorProto.INT64, dims=[0]), dims)


def make_model(path, r):
    nodes, weights, channels, size = [], [], 3, 224
    x = "x"
    for i in range(r.randint(20, 60)):
        stride = 2 if size > 7 and r.random() < 0.25 else 1
        out, k = 8 * r.randint(2, 64), r.choice([1, 3, 3, 5])
        weights += [sparse(f"w{i}", [out, channels, k, k]), sparse(f"b{i}", [out])]
        nodes.append(helper.make_node("Conv", [x, f"w{i}", f"b{i}"], [f"c{i}"], strides=[stride] * 2, pads=[k // 2] * 4))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        x, channels, size = f"r{i}", out, (size + stride - 1) // stride
    weights.append(sparse("w", [channels, 1000]))
    nodes += [helper.make_node("GlobalAveragePool", [x], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
              helper.make_node("MatMul", ["f", "w"], ["y"])]
    graph = helper.make_graph(nodes, "m", [helper.make_tensor_value_info("x", 1, [1, 3, 224, 224])],
                              [helper.make_tensor_value_info("y", 1, [1, 1000])], sparse_initializer=weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def run(*argv, want=(0,)):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    r = subprocess.run(argv, capture_output=True, text=True)
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if r.returncode not in want:
        sys.exit(f"{argv[:6]}: {r.returncode}\n{r.stdout[-1000:]}{r.stderr[-1000:]}")
    user = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return r.stdout, seconds, user


def report(what, seconds, user, aim):
    print(f"{what:<58} {seconds:7.2f} s wall {user:7.2f} s processor   aim {aim}", flush=True)


def write_results(night, manifest):
    """A shard's results: problems of the models, each with its families, until a file has its share of the records."""
    problems = [(p["problem"], [f.split() for f in p["families"]]) for l in manifest["layers"] for p in l["problems"]]
    r, share = random.Random(2), RECORDS // FILES
    for f in range(FILES):
        kind = f"g{f % SYSTEMS:02d}"
        folder = f"{night}/{kind}/1-{f // SYSTEMS:03d}/attempts"
        os.makedirs(folder)
        with open(folder + "/1-1-0-node-1.jsonl", "w") as out:
            out.write(f'{{"v":1,"record":"system","slug":"{kind}","stack":"lib1","date":1700000000,"gpu":"made up"}}\n')
            n, at = 0, f // SYSTEMS * len(problems) // (FILES // SYSTEMS)
            while n < share:
                problem, families = problems[at % len(problems)]
                at += 1
                for backend, layout, math in families:
                    variants = 4
                    for v in range(variants if n < share else 0):
                        t = r.uniform(1e-5, 1e-3)
                        out.write(json.dumps(dict(
                            v=1, problem=problem, backend=backend, algorithm=f"algorithm{v}", layout=layout, math=math,
                            threads=1, cache="hot", clock="", status="ok", reason="", median=t, q25=t, q75=t, min=t, max=t,
                            low=t * 0.99, high=t * 1.01, n=30, iterations=int(0.1 / t), launch=4e-6, workspace=0,
                            variants=variants, bytes=1e6, flops=1e9, chosen=v == 0, noisy=False, throttled=False,
                            checked="ok", timing="device", provenance="measured", date=1700000000 + at, system=kind + "@lib1",
                            meta={"node": "node-1", "spread": 0.01})) + "\n")
                        n += 1
    return problems


def write_night(folder, night):
    shards = [dict(round=1, index=i, problems=1, families=1, estimate=1) for i in range(FILES // SYSTEMS)]
    systems = [dict(name=f"g{i:02d}", system="", before="", until=0, pace=1, note="", families={}, jobs=[], shards=shards)
               for i in range(SYSTEMS)]
    with open(f"{folder}/{night}/night.json", "w") as f:
        json.dump(dict(record="night", v=1, id=night, begin=1, fleet="/x", benanza="x", merge_job=0, models=[],
                       systems=systems), f)


def peer(files, path):
    """The same lines into an SQLite table with the same identity as its key."""
    start = time.process_time()
    db = sqlite3.connect(path)
    db.execute("create table r (system, problem, backend, algorithm, layout, math, threads, cache, clock, date, line,"
               " primary key (system, problem, backend, algorithm, layout, math, threads, cache, clock, date)) without rowid")
    keys = ["system", "problem", "backend", "algorithm", "layout", "math", "threads", "cache", "clock", "date"]
    for name in files:
        with open(name) as f:
            rows = [[r[k] for k in keys] + [l] for l in f for r in [json.loads(l)] if "record" not in r]
        db.executemany("insert or replace into r values (" + ",".join("?" * 11) + ")", rows)
        db.commit()
    return time.process_time() - start


def balance(benanza, shared, work):
    records = f"{shared}/published_db/Tesla_V100-SXM2-16GB.1.json.gz"
    if not os.path.exists(records):
        print("balance: skipped: no published records")
        return
    run(benanza, "db", "import", "--db", work + "/v100", "--system", "v100@cudnn7.6.3", records, want=(0, 4))
    os.makedirs(work + "/v100-nights")
    with open(work + "/v100-nights/stacks.json", "w") as f:
        json.dump(dict(record="stacks", v=1, stacks=[dict(name="v100", system="v100@cudnn9", before="", seen=1, pace=1)]), f)
    with open(work + "/v100.json", "w") as f:
        json.dump(dict(folder=work + "/v100-nights", models=[shared + "/zoo30/ResNet050-v1.onnx"], shard_minutes=0.01,
                       systems={"v100": dict(backends=["cudnn"], layouts=["plain"], shards=4)}), f)
    out, _, _ = run(benanza, "fleet", "plan", "--config", work + "/v100.json", "--db", work + "/v100", "--json")
    s = json.loads(out)["systems"][0]
    mean = sum(s["shards"]) / len(s["shards"])
    print(f"V100, ResNet-50 on a new stack, {s['stack']} of {s['new'] + s['stack']} families by published records: "
          f"{len(s['shards'])} shards of {mean:.1f} s, the longest {max(s['shards']) / mean:.3f} and the shortest "
          f"{min(s['shards']) / mean:.3f} of the mean   aim 1.1")


def main():
    benanza = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        if len(sys.argv) > 2:
            balance(benanza, sys.argv[2], work)
        r = random.Random(1)
        os.mkdir(work + "/models")
        for i in range(MODELS):
            make_model(f"{work}/models/m{i:04d}.onnx", r)
        models = sorted(f"{work}/models/{m}" for m in os.listdir(work + "/models"))
        print(f"{MODELS} models are made", flush=True)
        run(benanza, "gen", *models[: MODELS // 2], "--all", "--backend", "cudnn", "--layout", "plain", "-o", work + "/gen",
            "--db", work + "/none")
        with open(work + "/gen/manifest.json") as f:
            manifest = json.load(f)
        night = "20261121T020000Z"
        write_results(f"{work}/nights/{night}", manifest)
        write_night(work + "/nights", night)
        kinds = {f"g{i:02d}": dict(backends=["cudnn", "cublas"], layouts=["plain"]) for i in range(SYSTEMS)}
        with open(work + "/fleet.json", "w") as f:
            json.dump(dict(folder=work + "/nights", models=[work + "/models/*.onnx"], systems=kinds), f)
        fleet = ["--config", work + "/fleet.json", "--db", work + "/db", "--json"]
        print("records are made", flush=True)
        out, seconds, user = run(benanza, "fleet", "collect", *fleet)
        merged = json.loads(out)
        assert merged["files"] == FILES and merged["added"] == RECORDS, merged
        report(f"merge {FILES} files with {RECORDS:,} records", seconds, user, "20 s")
        files = sorted(os.path.join(d, f) for d, _, fs in os.walk(work + "/nights") for f in fs if f.endswith(".jsonl"))
        other = peer(files, work + "/peer")
        print(f"  the same in Python, json and sqlite3: {other:.1f} s processor, {other / user:.1f} times as long")
        out, seconds, user = run(benanza, "fleet", "collect", *fleet)
        report("merge them once more, all known", seconds, user, "")
        size = sum(os.stat(f"{work}/db/{f}").st_blocks * 512 for f in os.listdir(work + "/db"))
        text = sum(os.path.getsize(f) for f in files)
        print(f"  the database takes {size / 1e6:,.0f} MB, {size / RECORDS:.0f} bytes a record; the lines {text / 1e6:,.0f} MB")
        out, seconds, user = run(benanza, "fleet", "plan", *fleet)
        systems = json.loads(out)["systems"]
        report(f"plan {MODELS:,} models ({systems[0]['problems']:,} problems) on {len(systems)} systems", seconds, user, "5 s")
        print(f"  of g00's families {systems[0]['known']:,} are known, {systems[0]['new']:,} not")

main()
