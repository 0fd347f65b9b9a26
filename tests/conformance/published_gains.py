#!/usr/bin/python3
"""published_gains.py BENANZA SHARED: fusion, Tensor Cores, waterfall and advice on recordings of a V100.

MXNet ran ResNet-50 in f32 and, as mxnet_tcu, in f16. What is expected is known from the recordings: in f32 no Tensor Core
was used and nothing was fused, in f16 all convolutions but the first used them; every convolution's input was padded by a
kernel of its own. Skipped (exit status 77) where SHARED has no such folders.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from complete import complete

PADS = 53
FOR_PROCESSORS = {"best-implementations", "prepack-weights", "keep-blocked", "framework-overhead"}
JOINT = ["framework", "algorithms", "fusion", "precision", "parallel"]


def analyze(benanza, db, model, *profiles):
    command = [benanza, "analyze", model, *db, "--system", "v100", "--fuse", "--json"]
    for p in profiles:
        command += ["--profile", p]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    assert run.returncode == 4, run.returncode  # not every layer has a record
    return json.loads(run.stdout)["models"][0]


def check_waterfall(w):
    rest = w["from"]
    for step in w["steps"]:
        rest -= step["seconds"]
    assert rest == w["to"], (rest, w["to"])  # to the last bit
    joint = {frozenset(j["ways"]): j["seconds"] for j in w["joint"]}
    assert len(joint) == 32 and joint[frozenset()] == w["from"] and joint[frozenset(JOINT)] == w["to"]


def main():
    benanza, shared = sys.argv[1], Path(sys.argv[2])
    model = shared / "zoo30/ResNet050-v1.onnx"
    records = [shared / f"published_db/Tesla_V100-SXM2-16GB.1{kind}.json.gz" for kind in ("", ".f16")]
    timeline = {kind: shared / f"v100/nsys/{kind}/17_b1.sqlite.gz" for kind in ("mxnet", "mxnet_tcu")}
    log = {kind: shared / f"v100/cudnn_log/{kind}/17_b1.log.gz" for kind in ("mxnet", "mxnet_tcu")}
    if not all(p.exists() for p in [model, *records, *timeline.values(), *log.values()]):
        print("published_gains: skipped: no recordings")
        return 77
    with tempfile.TemporaryDirectory() as work:
        db = ["--db", os.path.join(work, "db")]
        for r in records:
            subprocess.run([benanza, "db", "import", *db, "--system", "v100@cudnn7.6.3", r], check=True,
                           stdout=subprocess.DEVNULL)
        complete(benanza, db, str(model))
        both = {kind: f"{timeline[kind]},{log[kind]}" for kind in timeline}
        a = analyze(benanza, db, model, both["mxnet"], log["mxnet"], both["mxnet_tcu"], log["mxnet_tcu"])
    f32, f32_log, f16, f16_log = a["profiles"]
    # Tensor Cores: none in f32, and why; by kernels and by the log alone in f16
    for p, products in (f32, 54), (f32_log, 53):  # cuDNN's log does not see the classifier's product
        u = p["units"]
        assert u["unit"] == "Tensor Cores" and u["used"] == 0 and u["could"] == products, (u["used"], u["could"])
        assert all(row["why"].startswith("computes in f32, not in f16") for row in u["rows"])
        assert sum("3 input channels: no multiple of 8" in row["why"] for row in u["rows"]) == 1
    assert f16["units"]["used"] == 51 and all("_s884cudnn_" in row["evidence"] for row in f16["units"]["rows"] if row["used"])
    assert f16_log["units"]["used"] == 51, f16_log["units"]["used"]
    # f16 has records: it gains, and its conversions are counted
    way = {w["name"]: w for w in a["units"]["ways"]}["f16"]
    assert way["gain"] > 0 and way["converted"] > 0 and way["fused"] == a["fused"]["sequential"] - way["gain"]
    assert way["parallel"] <= way["sequential"] and way["fused"] <= way["sequential"]
    # fusion: records of convolution, bias and activation; nobody fused them
    fusion = a["fusion"]
    rows = {row["pattern"]: row for row in fusion["patterns"]}
    assert fusion["sequential"] == sum(row["gain"] for row in rows.values()) > 0
    assert all(not row["fused"] for row in rows.values()), rows
    assert max(rows.values(), key=lambda row: row["gain"])["pattern"] == "conv+batchnorm+act"
    for p in (f32, f16, f32_log, f16_log):
        check_waterfall(p["waterfall"])
        assert p["framework"] == (None if p in (f32_log, f16_log) else "MXNet")
    # logs tell when calls began, not how long they took; and they are of a device, though none of its kernels are in them
    for p in (f32_log, f16_log):
        assert any("when calls began" in w for w in p["warnings"]), p["warnings"]
        assert p["alignment"]["asked"] is None and not {x["id"] for x in p["advice"]} & FOR_PROCESSORS, p["advice"]
    # advice: the padding, priced; none on algorithms, where no call took longer than its best record
    advice = {x["id"]: x for x in f32["advice"]}
    pads = advice["padding-inside"]
    # their kernels are 5 to 7 % of the work; what their launches cost besides is at most the time that the device waits
    waits = f32["latency"] - f32["busy"]
    assert pads["by"] == "simulation" and 0.05 * f32["busy"] < pads["gain"] < 0.07 * f32["busy"] + waits, pads
    assert "mx.sym.pad" in pads["step"]
    assert re.match(rf"({PADS}|{PADS + 1}) × ", pads["evidence"]), pads  # one more pads by the edge
    assert "best-algorithms" not in advice and f32["algorithms"]["loss"] == 0
    order = [(x["unsure"] is not None, -x["gain"]) for x in f32["advice"] if x["gain"] is not None]
    assert order == sorted(order) and all(x["low"] <= x["gain"] <= x["high"]
                                                        for x in f32["advice"] if x["gain"] is not None)
    print(f"published_gains: Tensor Cores in {f16['units']['used']} of 53 convolutions in f16, none in f32; pads take "
          f"{pads['gain'] / f32['busy']:.1%} of device time; fusion gains {fusion['sequential'] * 1e6:.0f} µs, f16 "
          f"{way['gain'] * 1e6:.0f} µs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
