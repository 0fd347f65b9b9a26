#!/usr/bin/python3
"""strip.py BENANZA [FOLDER...]: strips every model of the ONNX package's test data and of the folders given, with
nothing kept and with small tensors kept, and holds the result against the original: onnx.checker takes it if
it took the original; names, shapes, types and nodes are the same; stripping again changes nothing."""
import glob
import os
import subprocess
import sys
import tempfile

try:
    import onnx
except ImportError:
    print("python3-onnx is not installed: skipped")
    sys.exit(77)

TESTDATA = "/usr/share/libonnx-testdata/data"


def accepted(path):
    """None, or what the checker dislikes. By path, so that external data is found."""
    try:
        onnx.checker.check_model(path)
    except Exception as e:  # whatever it raises, is its verdict
        return f"{type(e).__name__}: {e}".splitlines()[0]


def tensors(graph):
    """Name -> (type, dims) of every initializer."""
    found = {t.name: (t.data_type, list(t.dims)) for t in graph.initializer}
    found.update({s.values.name: (s.values.data_type, list(s.dims)) for s in graph.sparse_initializer})
    return found


def graphs(graph):
    yield graph
    for node in graph.node:
        for a in node.attribute:
            for g in [a.g] if a.HasField("g") else a.graphs:
                yield from graphs(g)


def differences(before, after):
    for a, b in zip(graphs(before.graph), graphs(after.graph)):
        if tensors(a) != tensors(b):
            yield "other initializers"
        if [(n.op_type, n.name, list(n.input), list(n.output)) for n in a.node] != [
                (n.op_type, n.name, list(n.input), list(n.output)) for n in b.node]:
            yield "other nodes"
        if list(a.input) != list(b.input) or list(a.output) != list(b.output):
            yield "other inputs or outputs"
    if before.metadata_props != after.metadata_props or before.opset_import != after.opset_import:
        yield "other metadata"


def check(benanza, model, keeps, work):
    out, again = os.path.join(work, "out.onnx"), os.path.join(work, "again.onnx")
    for keep in keeps:
        run = subprocess.run([benanza, "strip", "--keep", keep, model, out], capture_output=True, text=True)
        if run.returncode:
            return run.stderr.strip() if accepted(model) is None else None
        subprocess.run([benanza, "strip", "--keep", keep, out, again], capture_output=True, check=True)
        with open(out, "rb") as f, open(again, "rb") as g:
            if f.read() != g.read():
                return "stripping again changes it"
        verdict = accepted(out)
        if verdict and not accepted(model):
            return verdict
        for difference in differences(onnx.load(model, load_external_data=False), onnx.load(out)):
            return difference


def main():
    benanza, folders = os.path.abspath(sys.argv[1]), [TESTDATA] + [f for f in sys.argv[2:] if os.path.isdir(f)]
    models = sorted(m for f in folders for m in glob.glob(f + "/**/*.onnx", recursive=True))
    failures = 0
    with tempfile.TemporaryDirectory() as work:
        keeps = ["0", "64"]  # of the test data each in one of the ways: there are a thousand
        for i, model in enumerate(models):
            problem = check(benanza, model, [keeps[i % 2]] if model.startswith(TESTDATA) else keeps, work)
            if problem:
                print(f"{model}: {problem}")
                failures += 1
    print(f"{len(models)} models, {failures} failures")
    if not models:
        print("libonnx-testdata is not installed: skipped")
        sys.exit(77)
    sys.exit(1 if failures else 0)


main()
