#!/usr/bin/env python3
"""What somebody meets who has neither a GPU nor some of the networks: their rows are taken out of the published tables before anything is
imported or trained, the rest is imported by the program, and what it predicts is held against the rows that were taken out.

    python3 tests/bench/predict_hidden.py build/release/benanza TABLES ZOO [--gpu T4,...] [--apart 1] [--trained]

Each GPU of TABLES is hidden in turn, together with every third network; --apart N begins with another third. With --trained what --train
writes of the rest predicts, without records. With --launch one number of the hidden GPU is known beside its data sheet: what a call takes at the
least, the hundredth part of its rows. A sum is compared where each of the network's layers has a row."""
import argparse, collections, csv, gzip, io, math, os, statistics, subprocess, sys, tempfile

SLUG = {"GRID_K520": "grid-k520", "Tesla_K80": "k80", "Tesla_M60": "m60", "Tesla_T4": "t4", "TITAN_V": "titan-v",
        "TITAN_Xp": "titan-xp", "Tesla_V100-SXM2-16GB": "v100"}
ap = argparse.ArgumentParser()
ap.add_argument("benanza"), ap.add_argument("tables"), ap.add_argument("zoo")
ap.add_argument("--gpu", default=""), ap.add_argument("--apart", type=int, default=0)
ap.add_argument("--trained", action="store_true"), ap.add_argument("--launch", action="store_true"), ap.add_argument("--batch", default="1,2,4,8,16,32,64,128")
ap.add_argument("--points", help="write each total into this file")
args = ap.parse_args()


def run(*words):
    done = subprocess.run([args.benanza, *words], capture_output=True, text=True)
    if done.returncode not in (0, 4):
        raise RuntimeError(done.stderr)
    return done.stdout


tables = {}
for name in sorted(os.listdir(args.tables)):
    with gzip.open(os.path.join(args.tables, name), "rt") as f:
        tables[name.split(".")[0]] = [line.rstrip("\n").split("\t") for line in f][1:]
networks = sorted({r[1] for rows in tables.values() for r in rows})
hidden = set(networks[args.apart % 3::3])
layers = collections.defaultdict(set)  # of a network, at any batch on any GPU
truth = collections.defaultdict(lambda: collections.defaultdict(float))
for gpu, rows in tables.items():
    seen = collections.defaultdict(set)
    for batch, model, layer, kind, ms in rows:
        truth[gpu][model, int(batch)] += float(ms) / 1e3
        seen[model, int(batch)].add((layer, kind))
    for key, of in seen.items():
        layers[key[0]] |= of
    truth[gpu, "seen"] = seen


def complete(gpu, key):
    return len(truth[gpu, "seen"].get(key, ())) == len(layers[key[0]])


def takes_any_batch(model):
    path = os.path.join(args.zoo, model + ".onnx")
    return subprocess.run([args.benanza, "layers", path, "--batch", "2"], capture_output=True).returncode == 0


def described(gpu, path):
    """The hidden GPU as a file: its row of the data sheets, as the program reads it, and its floor."""
    sheets = os.path.join(os.path.dirname(__file__), "../../runtime/gpus.txt")
    row = next(line.split() for line in open(sheets) if line.split()[:1] == [SLUG[gpu]])
    left = 1 if not row[9].endswith("+") else 0.78 if row[9].startswith("gddr5") else 0.88  # that error correction leaves of the bandwidth
    floor = sorted(float(r[4]) for r in tables[gpu])[len(tables[gpu]) // 100] * 1e3
    with open(path, "w") as f:
        f.write(f"capability {row[1]}\nmultiprocessors {row[2]}\nclock {row[3]}\nbase {row[4]}\nbandwidth {float(row[8]) * left}\nf32 {row[11]}\nlaunch {floor}\n")
    return path


free = {m: takes_any_batch(m) for m in networks}
points = []
for gpu in tables:
    if args.gpu and gpu not in args.gpu.split(","):
        continue
    with tempfile.TemporaryDirectory() as where:
        db = os.path.join(where, "db")
        for other, rows in tables.items():
            if other == gpu:
                continue
            path = os.path.join(where, other + ".tsv")
            with open(path, "w") as f:
                f.write("batch\tmodel\tlayer\ttype\tms\n")
                f.writelines("\t".join(r) + "\n" for r in rows if r[1] not in hidden)
            run("db", "import", "--models", args.zoo, path, "--db", db)
        more = []
        if args.trained:
            run("predict", "--train", os.path.join(where, "set"), "--db", db)
            more = ["--trained", os.path.join(where, "set")]
            db = os.path.join(where, "empty")
        to = described(gpu, os.path.join(where, "hidden.txt")) if args.launch else SLUG[gpu]
        for batches, models in ((args.batch, [m for m in networks if free[m]]), ("1", [m for m in networks if not free[m]])):
            text = run("predict", *[os.path.join(args.zoo, m + ".onnx") for m in models], "--to", to, "--batch", batches,
                       "--csv", "--db", db, *more)
            for row in csv.DictReader(io.StringIO(text)):
                key = os.path.basename(row["model"])[:-5], int(row["batch"])
                if complete(gpu, key):
                    points.append((gpu, key[0], key[1], truth[gpu][key], row))


found = [(gpu, model, batch, is_, *(float(row[c]) for c in ("sequential", "from", "to"))) for gpu, model, batch, is_, row in points]
if args.points:
    with open(args.points, "w") as f:
        for p in found:
            f.write("\t".join(map(str, p)) + "\n")


def line(name, of):
    if of:
        error = [abs(p[4] / p[3] - 1) for p in of]
        print(f"{name:28} {len(of):4}  {100 * statistics.mean(error):6.1f} %  {100 * statistics.mean(p[4] / p[3] - 1 for p in of):+6.1f} %"
              f"  {100 * max(error):6.1f} %  {100 * statistics.mean(p[5] <= p[3] <= p[6] for p in of):6.1f} %")


# Networks with a layer that was timed at another size than it has, which no GPU does in that time: 'db import' leaves those lines out.
WRONG = {"ArcFace", "DUC", "VGG16-BN", "VGG19", "VGG19-BN"}
print(f"{'hidden with a third':28} sums  error     bias      worst     inside")
line("all", found), line("all but those mistimed", [p for p in found if p[1] not in WRONG])
line("known networks", [p for p in found if p[1] not in hidden]), line("hidden networks", [p for p in found if p[1] in hidden])
for i, what in ((0, "GPU"), (2, "batch"), (1, "network")):
    print(what)
    for v in sorted({p[i] for p in found}):
        line(f"  {v}{' (hidden)' if v in hidden else ''}", [p for p in found if p[i] == v])
pairs = right = 0
for a in found:
    for b in found:
        if a[0] < b[0] and a[1:3] == b[1:3]:
            pairs, right = pairs + 1, right + ((a[3] < b[3]) == (a[4] < b[4]))
if pairs:
    print(f"pairs of GPUs in order: {100 * right / pairs:.1f} % of {pairs}")
