#!/usr/bin/env python3
"""Recordings of MXNet on a V100, predicted for other GPUs ('predict --profile', what ships), held against published times of the same networks on both
GPUs: how many times as long the device is busy. No program was recorded on two GPUs, so only the factor is compared, and the published sums have
the floor of an event pair for each call, which the recording has not.

    python3 tests/bench/predict_profile.py build/release/benanza ../shared/data"""
import collections, glob, gzip, json, os, statistics, subprocess, sys, tempfile

benanza, data = sys.argv[1:3]
SLUG = {"GRID_K520": "grid-k520", "Tesla_K80": "k80", "Tesla_M60": "m60", "Tesla_T4": "t4", "TITAN_V": "titan-v",
        "TITAN_Xp": "titan-xp", "Tesla_V100-SXM2-16GB": "v100"}
RECORDED = (("17_b1", "ResNet050-v1", 1), ("17_b16", "ResNet050-v1", 16), ("24_b1", "Squeezenet-v1.1", 1), ("2_b1", "BVLC_AlexNet", 1))
published, off = collections.defaultdict(float), collections.defaultdict(list)
for path in glob.glob(data + "/published_layers/*.tsv.gz"):
    with gzip.open(path, "rt") as f:
        for batch, model, _, _, ms in (line.split("\t") for line in list(f)[1:]):
            published[SLUG[os.path.basename(path)[:-7]], model, int(batch)] += float(ms)
with tempfile.TemporaryDirectory() as empty:
    for name, model, batch in RECORDED:
        files = [f"{data}/v100/nsys/mxnet/{name}.sqlite.gz", f"{data}/v100/cudnn_log/mxnet/{name}.log.gz"]
        ask = [w for f in files if os.path.exists(f) for w in ("--profile", f)]
        done = subprocess.run([benanza, "predict", *ask, "--to", ",".join(SLUG.values()), "--db", empty, "--json"], capture_output=True, text=True)
        busy = {r["system"]: r["device_busy"] for r in json.loads(done.stdout)["rows"]}
        for gpu in busy:
            if gpu != "v100":
                told, is_ = busy[gpu] / busy["v100"], published[gpu, model, batch] / published["v100", model, batch]
                off[name].append(abs(told / is_ - 1)), off[gpu].append(abs(told / is_ - 1)), off["all"].append(abs(told / is_ - 1))
                print(f"{name:7} {len(ask) // 2} files  {gpu:10} {told:5.2f} times as long, published {is_:5.2f}  {100 * (told / is_ - 1):+.0f} %")
print(", ".join(f"{k} {100 * statistics.mean(v):.1f} %" for k, v in off.items()))
