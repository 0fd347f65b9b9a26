#!/usr/bin/env python3
"""ResNet-50 in half precision by what f32 taught, layer by layer: published records of f16 (../shared/data/published_db, three GPUs) are imported into one
database, the published tables of f32 into another, and what 'bound --predict --dtype f16' tells by the second is held against the first.

    python3 tests/bench/predict_half.py build/release/benanza ../shared/data

For each GPU and batch: measured over predicted, of all calls and of each sort, with microseconds; and how many calls lie inside of their interval."""
import glob, json, os, subprocess, sys, tempfile

benanza, data = sys.argv[1:3]
model = os.path.join(data, "zoo30", "ResNet050-v1.onnx")


def layers(*more):
    done = subprocess.run([benanza, "bound", model, "--dtype", "f16", "--json", *more], capture_output=True, text=True)
    return {l["name"]: l for l in json.loads(done.stdout)["models"][0]["layers"]}


def sort(key):
    if not key.startswith("conv "):
        return key.split()[0]
    return "first conv" if "x3x224x224 " in key else "conv 3x3" if "x3x3 " in key else "conv 1x1"


with tempfile.TemporaryDirectory() as where:
    half, full = os.path.join(where, "half"), os.path.join(where, "full")
    records = sorted(glob.glob(data + "/published_db/more/f16.*.gz") + glob.glob(data + "/published_db/*.f16.json.gz"))
    tables = sorted(glob.glob(data + "/published_layers/*.tsv.gz"))
    subprocess.run([benanza, "db", "import", "--db", half, *records], check=True, capture_output=True)
    subprocess.run([benanza, "db", "import", "--db", full, "--models", data + "/zoo30", *tables], capture_output=True)  # status 4: six rows of each are no layers
    for gpu, batch in (("v100", 1), ("v100", 8), ("v100", 32), ("titan-v", 8), ("titan-v", 32), ("t4", 8), ("t4", 32)):
        measured = layers("--batch", str(batch), "--db", half, "--system", gpu + "@cudnn7.6.3")
        told = layers("--batch", str(batch), "--db", full, "--system", gpu + "@published", "--predict")
        sums, inside, off = {}, 0, 0
        both = [(m, told[n]) for n, m in measured.items() if m["provenance"] == "imported" and told[n]["seconds"]]
        for m, t in both:
            for s in ("all", sort(m["key"])):
                a, b = sums.get(s, (0, 0))
                sums[s] = a + m["seconds"], b + t["seconds"]
            inside += t["low"] <= m["seconds"] <= t["high"]
            off += abs(m["seconds"] - t["seconds"])
        print(f"{gpu}, batch {batch}: {len(both)} calls, off by {100 * off / sums['all'][0]:.0f} %, {100 * inside / len(both):.0f} % inside; " +
              ", ".join(f"{s} {a / b:.2f} ({1e6 * a:.0f} / {1e6 * b:.0f})" for s, (a, b) in sums.items()))
