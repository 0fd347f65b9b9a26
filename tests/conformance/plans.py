#!/usr/bin/python3
"""plans.py BENANZA MODELS: what 'gen' writes for the bundled models, held against counts of their layers.

Every layer that has a library's call is in the manifest once by its key, with as many uses as the model has layers of that key with the same
operands constant (others with the same problems need no source); the sources ask
for the families that the manifest names; a plan of two models is the plans of both; groups use no more layers than there are; what a database
knows is left out, and nothing else."""
import collections, glob, json, os, re, subprocess, sys, tempfile

benanza, models = sys.argv[1], sorted(glob.glob(sys.argv[2] + "/*.onnx"))
assert len(models) > 10, models


def call(*arguments):
    r = subprocess.run([benanza, *arguments], capture_output=True, text=True)
    assert r.returncode in (0, 4), (arguments, r.returncode, r.stderr)
    return r.stdout


def plan(*arguments):
    """The manifest's layers by key, and the summary; the sources say the same."""
    with tempfile.TemporaryDirectory() as folder:
        said = json.loads(call("gen", *arguments, "-o", folder + "/g", "--json"))
        manifest = json.load(open(folder + "/g/manifest.json"))
        sources = {os.path.basename(f): open(f).read() for f in glob.glob(folder + "/g/*.c")}
    rows = {}
    for l in manifest["layers"]:
        assert l["key"] not in rows, l["key"]
        rows[l["key"]] = l
        text = sources[l["file"]]
        for p in l["problems"]:
            assert f"/* {p['problem']} */" in text, (l["file"], p["problem"])
        asked = collections.Counter(re.findall(r'\{&problem_\d+, "(\S+)", "(\S+)", "(\S+)"\}', text))
        named = collections.Counter(tuple(f.split()) for p in l["problems"] for f in p["families"])
        assert asked == named, (l["file"], asked - named, named - asked)
        for use in l["models"]:
            n = use.get("layers", use.get("groups"))
            assert re.search(rf"^ \* {re.escape(use['model'])}: {n} ", text, re.M), (l["file"], use)
    problems = {p["problem"] for l in rows.values() for p in l["problems"]}
    families = {(p["problem"], f) for l in rows.values() for p in l["problems"] for f in p["families"]}
    names = {l["file"][:-2] for l in rows.values()}
    assert set(sources) == {n + ".c" for n in names} | {"benchmarks.c"}, set(sources) ^ names
    assert set(re.findall(r"&(\w+),", sources["benchmarks.c"])) == names
    assert (said["written"], said["families"]) == (len(problems), len(families)), said
    assert abs(said["saved"] - (1 - said["written"] / said["problems"])) < 1e-9, said
    return rows, said, manifest


def uses(rows, model, what):
    return {k: u[what] for k, l in rows.items() for u in l["models"] if u["model"] == model and what in u}


layers, alike = {}, {}
for m in models:
    found = json.loads(call("layers", m, "--json"))[0]["layers"]
    found = [l for l in found if l["class"] in ("compute", "memory")]
    layers[os.path.basename(m)] = collections.Counter(l["key"] for l in found)
    alike[os.path.basename(m)] = collections.Counter((l["key"], tuple(i["constant"] for i in l["inputs"])) for l in found)

alone = {}
for m in models:
    name = os.path.basename(m)
    rows, said, _ = alone[name] = plan(m, "--db", "/nonexistent", "--fuse")
    used = uses(rows, name, "layers")
    assert used, name
    for key, n in used.items():
        assert n in [c for (k, _), c in alike[name].items() if k == key], (name, key, n, layers[name][key])
    assert sum(used.values()) > 0.5 * sum(layers[name].values()) or name == "gpt2.onnx", (name, sum(used.values()), sum(layers[name].values()))
    for key, n in uses(rows, name, "groups").items():
        for member, times in collections.Counter(key.split(": ", 1)[1].split("; ")).items():
            assert 0 < n * times <= layers[name][member], (name, key, member)

for a, b in zip(models[::2], models[1::2]):
    both, said, manifest = plan(a, b, "--db", "/nonexistent", "--fuse")
    names = [os.path.basename(m) for m in (a, b)]
    assert manifest["models"] == names
    assert set(both) == set(alone[names[0]][0]) | set(alone[names[1]][0])
    for name in names:
        for what in "layers", "groups":
            assert uses(both, name, what) == uses(alone[name][0], name, what), (name, what)

with tempfile.TemporaryDirectory() as work:
    rows = alone["mobilenet_v2.onnx"][0]
    wanted = sorted({(p["problem"], f) for l in rows.values() for p in l["problems"] for f in p["families"]})
    known = [w for i, w in enumerate(wanted) if i % 3 and w[0] != wanted[0][0]] + [w for w in wanted if w[0] == wanted[0][0]]
    with open(work + "/r.jsonl", "w") as f:
        print(json.dumps(dict(v=1, record="system", slug="box", stack="onednn2.6.3", date=7, device="cpu", name="Box")), file=f)
        for problem, family in known:
            backend, layout, mode = family.split()
            print(json.dumps(dict(v=1, problem=problem, backend=backend, algorithm="a", layout=layout, math=mode, threads=1, cache="hot", status="ok",
                                  median=1e-5, variants=1, n=9, date=8, system="box@onednn2.6.3")), file=f)
    call("db", "import", work + "/r.jsonl", "--db", work + "/db")
    left, said, _ = plan(os.path.dirname(models[0]) + "/mobilenet_v2.onnx", "--db", work + "/db", "--system", "box", "--fuse")
    asked = {(p["problem"], f) for l in left.values() for p in l["problems"] for f in p["families"]}
    assert asked == set(wanted) - set(known), (len(asked), len(wanted), len(known))
    assert said["problems"] == len({p for p, _ in wanted}), said
print(f"{len(models)} models, {sum(len(r) for r, _, _ in alone.values())} layers and groups in their plans: all as often as in the models")
