#!/usr/bin/python3
"""published_bound.py BENANZA SHARED: ResNet-50 on a V100, by the published records and recordings.

Imports SHARED/published_db into a database of its own and analyzes SHARED/zoo30/ResNet050-v1.onnx with it, held against
the recording of MXNet in SHARED/v100. What is expected is known from the publication and from the recordings. Skipped (exit
status 77) where SHARED has no such folders.
"""
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from complete import complete

PADS, PAD_SHARE = 53, 0.058  # of the time that the device was busy
ALGORITHMS = {"IMPLICIT_GEMM": 27, "IMPLICIT_PRECOMP_GEMM": 10, "WINOGRAD": 16}
BUSY, TOLERANCE = 3.777e-3, 0.05


def check_alignment(a, p):
    """Every layer has its call; MXNet pads before each convolution, and gives the padding that it knows of to none."""
    causes = {c["id"]: c for c in a["causes"]}
    rows = a["rows"]
    assert a["asked"] + sum(c["seconds"] for c in a["causes"]) == p["latency"]
    # a multiplication by a number besides
    assert a["missing"] == a["fused"] == a["moved"] == 0 and a["extra"] == 1 and a["made"] > a["expected"] >= 174, a["made"]
    assert all(r["seconds"] > 0 and (r["layers"] or r["kind"] == "extra") for r in rows)
    padded = [r for r in rows if r["call"] == "cudnnConvolutionForward" and r["kind"] == "changed"]
    assert len(padded) == 17 and all({c["parameter"] for c in r["changes"]} == {"x", "pad"} for r in padded)
    assert Counter(c["expected"] for r in padded for c in r["changes"] if c["parameter"] == "pad") == \
        {"3x3x3x3": 1, "1x1x1x1": 16}
    assert all(c["found"] == "0x0x0x0" for r in padded for c in r["changes"] if c["parameter"] == "pad")
    # the biases of its convolutions are calls of their own
    assert sum(r["kind"] == "split" and r["call"] == "cudnnAddTensor" for r in rows) == 32
    pads = causes["input-padded"]
    assert pads["count"] == PADS and pads["busy"], pads
    assert abs(pads["seconds"] / p["busy"] - PAD_SHARE) <= 0.05 * PAD_SHARE, pads
    assert not causes["launches"]["busy"] and causes["launches"]["seconds"] > 0
    return pads


def check_rebuilt(a, status):
    """Without the model: the same convolutions at the same prices, as a chain."""
    assert status == 4 and a["rebuilt"] == a["n_layers"] == 87 and a["parallel"] == a["sequential"], a["rebuilt"]
    convs = [l for l in a["layers"] if l["key"].startswith("conv ")]
    assert len(convs) == 53 and all(l["seconds"] for l in convs) and a["imported"] == 53
    assert "cublasSgemmStridedBatched" in a["left_out"]
    changed = [r for r in a["profiles"][0]["alignment"]["rows"] if r["kind"] == "changed"]
    assert len(changed) == 17


def main():
    benanza, shared = sys.argv[1], Path(sys.argv[2])
    model = shared / "zoo30/ResNet050-v1.onnx"
    records = shared / "published_db/Tesla_V100-SXM2-16GB.1.json.gz"
    profile = [shared / "v100/nsys/mxnet/17_b1.sqlite.gz", shared / "v100/cudnn_log/mxnet/17_b1.log.gz"]
    if not all(p.exists() for p in [model, records, *profile]):
        print("published_bound: skipped: no recordings")
        return 77
    with tempfile.TemporaryDirectory() as work:
        db = ["--db", os.path.join(work, "db")]
        subprocess.run([benanza, "db", "import", *db, "--system", "v100@cudnn7.6.3", records], check=True,
                       stdout=subprocess.DEVNULL)
        analyze = [benanza, "analyze", *db, "--system", "v100", "--json", "--profile", ",".join(map(str, profile))]
        run = subprocess.run([*analyze, model], stdout=subprocess.PIPE, check=False)
        alone = subprocess.run(analyze, stdout=subprocess.PIPE, check=False)
        complete(benanza, db, str(model))
        whole = subprocess.run([*analyze, model], stdout=subprocess.PIPE, check=False)
    assert run.returncode == 4, run.returncode  # batch normalizations have no record by channel
    a = json.loads(run.stdout)["models"][0]
    layers = {l["name"]: l for l in a["layers"]}
    seconds = sum(l["seconds"] for l in a["layers"] if l["seconds"])
    assert a["n_layers"] == 175 and a["imported"] == 119 and not a["complete"], a["n_layers"]
    assert a["sequential"] == seconds == a["streams"][0]["seconds"]
    assert a["parallel"] <= a["streams"][-1]["seconds"] <= a["sequential"]
    # both branches of the four blocks that have two are there, and nothing else is parallel
    gain = sum(m["sequential"] - m["parallel"] for m in a["modules"] if m["within"] < 0)
    assert len(a["modules"]) == 4 and gain == a["sequential"] - a["parallel"], a["modules"]
    assert a["above_roofline"] == 0 and 0 < a["hardware"] < a["parallel"]
    assert Counter(l["variant"].split()[-1] for l in layers.values() if l["key"].startswith("conv x")
                   and " w=512x512x3x3" in l["key"] and "stride=1x1" in l["key"]) == {"WINOGRAD": 3}
    # the records carry a floor, so what they add up to is above what the device was busy: that must be said
    p = a["profiles"][0]
    assert abs(p["busy"] - BUSY) <= TOLERANCE * BUSY, p["busy"]
    assert a["sequential"] > p["busy"] and any("is above what the device was busy" in w for w in p["warnings"])
    # a tenth of the modelled time has no record: nothing is derived from the total; with all priced, the parts add up
    assert p["excess"] is None and p["overlap"] is None and p["idle"] > 0
    b = json.loads(whole.stdout)["models"][0]
    q = b["profiles"][0]
    assert whole.returncode == 0 and b["complete"] and q["idle"] + q["excess"] + q["overlap"] + b["parallel"] == q["latency"]
    # the algorithms that the log names, all known, with what they lose; paddings of the program are seen through
    r = p["algorithms"]
    used = Counter()
    for row in r["rows"]:
        used[row["variant"].partition("_ALGO_")[2]] += row["calls"]
    assert used == ALGORITHMS, used
    assert r["calls"] == r["known"] == 53 and sum(row["calls"] for row in r["rows"] if row["padded"]) == 17, r["known"]
    assert r["best"] <= r["chosen"] <= r["used"] and r["faster"] > 0
    # all calls were faster than the best of their records, which carry the floor of an event pair: nothing can be said to be lost
    assert r["loss"] == 0 < r["used"] - r["best"], (r["loss"], r["used"] - r["best"])
    pads = check_alignment(p["alignment"], p)
    check_rebuilt(json.loads(alone.stdout)["models"][0], alone.returncode)
    print(f"published_bound: {pads['count']:g} inputs padded by the program: {pads['seconds'] * 1e6:.0f} µs, "
          f"{pads['seconds'] / p['busy']:.1%} of the time that the device was busy")
    print(f"published_bound: sequential {a['sequential'] * 1e3:.3f} ms, parallel {a['parallel'] * 1e3:.3f} ms, "
          f"device busy {p['busy'] * 1e3:.3f} ms; algorithms: used {r['used'] * 1e3:.3f} ms, the library's own picks "
          f"{r['chosen'] * 1e3:.3f} ms, best {r['best'] * 1e3:.3f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
