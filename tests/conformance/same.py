#!/usr/bin/python3
"""same.py OLD NEW [SHARED] [--only WORD] [--write DIR]: whether two builds of benanza print the same bytes.

For changes of structure, which are to change no output. Both programs run the same commands: all models of the tree and of
SHARED (../shared/data unless told otherwise), all recordings of both, the records of perfdb/reference and of SHARED, in
every format. What a command prints, its messages, its exit status and the files that it writes are compared. Differences are listed
with their first differing lines; --write keeps both outputs, to be read whole. Exit status 1 where there is one, 0 where there is none.
Each has its own database, and no command measures anything, so that nothing depends on the hour; the number that a page is made with by
chance is left out. OLD lies in a folder beside NEW's (build/old): a program looks for the models around it. A few minutes.
"""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HIDE = ("BENANZA_DB", "XDG_DATA_HOME", "BENANZA_RUNTIME", "LINES", "COLUMNS")


def commands(shared):
    """(what it is, arguments) of every command; {db} is the database, {out} a folder for what is written."""
    own = sorted(ROOT.glob("models/*.onnx"))
    others = sorted(shared.glob("zoo30/*.onnx"))
    recordings = sorted(p for folder in ("v100", "kineto", "nsys", "nvidia_logs") for p in shared.glob(folder + "/**/*")
                        if p.name.endswith((".gz", ".log"))) + sorted(ROOT.glob("examples/*.bz"))
    for m in own + others:
        yield "layers", ["layers", m]
        yield "layers-json", ["layers", "--json", "--unique", m]
        yield "bound", ["bound", m, "--no-run", "--system", "epyc-9xx5", "--fuse"]
    yield "layers-all", ["layers", "--unique", *own]
    for m in own:
        yield "gen", ["gen", m, "-o", "{out}/gen", "--fuse"]
        yield "gen-gpu", ["gen", m, "-o", "{out}/gen", "--backend", "cudnn", "--backend", "cublas", "--dtype", "f16", "--system", "v100"]
        yield "strip", ["strip", m, "{out}/stripped.onnx"]
        for system in ("epyc-9xx5", "v100"):
            for form in (["--json"], ["--csv"], ["--dot", "{out}/a.dot"], ["--html", "{out}/a.html"]):
                yield "analyze" + form[0], ["analyze", m, "--system", system, "--fuse", *form]
        yield "replay", ["replay", m, "--no-run", "--plan", "{out}/plan", "--folder", "{out}/program", "--system", "epyc-9xx5"]
    yield "sweep", ["analyze", *own[:4], "--system", "v100,epyc-9xx5", "--batch", "1,4", "--json"]
    yield "sweep-csv", ["analyze", *own[:4], "--system", "v100,epyc-9xx5", "--batch", "1,4", "--csv", "--models"]
    resnet = shared / "zoo30/ResNet050-v1.onnx"
    for r in recordings:
        yield "show", ["profile", "show", r]
        yield "show-json", ["profile", "show", "--json", r]
        yield "recording", ["analyze", "--profile", r]
        yield "recording-json", ["analyze", "--profile", r, "--json", "--html", "{out}/a.html"]
        yield "held", ["analyze", resnet if resnet.exists() else own[10], "--system", "v100", "--fuse", "--profile", r]
        yield "held-json", ["analyze", own[11], "--system", "v100", "--json", "--profile", r]
    for r in ROOT.glob("examples/*.bz"):
        yield "story", ["analyze", ROOT / "models/resnet18.onnx", "--system", "epyc-9xx5", "--fuse", "--profile", r]
    for a, b in zip(recordings, recordings[1:]):
        yield "compare", ["compare", a, b]
    yield "compare-systems", ["compare", "v100", "epyc-9xx5", "--json"]
    yield "compare-layers", ["compare", "v100", "epyc-9xx5", *own[:3], "--csv"]
    for what in (["ls"], ["ls", "--json"], ["show", "--system", "epyc-9xx5"], ["check"], ["export"], ["gc", "--keep", "1"]):
        yield "db", ["db", *what]


def environment(home):
    env = {k: v for k, v in os.environ.items() if k not in HIDE}
    return dict(env, HOME=str(home), XDG_DATA_HOME=str(home), BENANZA_WAIT="0", NO_COLOR="1", COLUMNS="100")


def prepare(program, home, shared):
    env = environment(home)
    for args in (["--system", "v100@cudnn7.6.3", shared / "published_db/Tesla_V100-SXM2-16GB.1.json.gz"],
                 ["--system", "v100@cudnn7.6.3", shared / "published_db/Tesla_V100-SXM2-16GB.1.f16.json.gz"],
                 [ROOT / "perfdb/reference/epyc-9xx5.jsonl.zst"]):
        subprocess.run([program, "db", "import", *args], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def run(program, home, args):
    """Everything that a command leaves behind, as text by name."""
    with tempfile.TemporaryDirectory() as out:
        filled = [str(a).replace("{out}", out) for a in args]
        try:
            p = subprocess.run([program, *filled], env=environment(home), cwd=out, timeout=600, check=False, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            found = {"status": str(p.returncode).encode(), "stdout": p.stdout, "stderr": p.stderr}
        except subprocess.TimeoutExpired:
            found = {"status": b"still running after 600 s"}
        for path in sorted(Path(out).rglob("*")):
            if path.is_file():
                found[str(path.relative_to(out))] = path.read_bytes()
        found = {name: re.sub(rb'nonce(-|=")[0-9a-f]{32}', rb"nonce\1", text) for name, text in found.items()}
        return {name: text.replace(out.encode(), b"OUT").replace(str(home).encode(), b"HOME").replace(program.encode(), b"benanza")
                for name, text in found.items()}


def differences(old, new):
    for name in sorted(old.keys() | new.keys()):
        a, b = old.get(name), new.get(name)
        if a == b:
            continue
        lines = [x.decode(errors="replace").splitlines() if x is not None else ["(not written)"] for x in (a, b)]
        yield name, [line[:300] for line in difflib.unified_diff(*lines, "old", "new", lineterm="", n=0)][2:10]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("shared", nargs="?", default=str(ROOT / "../shared/data"))
    parser.add_argument("--only", default="", help="commands whose name begins so")
    parser.add_argument("--write", help="keep what differs in this folder")
    o = parser.parse_args()
    shared = Path(o.shared).resolve()
    programs = [os.path.abspath(o.old), os.path.abspath(o.new)]
    todo = [(what, args) for what, args in commands(shared) if what.startswith(o.only)]
    with tempfile.TemporaryDirectory() as homes, ThreadPoolExecutor(2) as pool:
        home = [Path(homes) / side for side in ("old", "new")]
        for program, h in zip(programs, home):
            h.mkdir()
            prepare(program, h, shared)
        different = 0
        for number, (what, args) in enumerate(todo):
            old, new = pool.map(run, programs, home, [args, args])
            found = list(differences(old, new))
            different += bool(found)
            for name, lines in found:
                print(f"{what}: {' '.join(str(a) for a in args)}: {name} differs", *lines, sep="\n    ")
            if found and o.write:
                for side, files in (("old", old), ("new", new)):
                    for name, text in files.items():
                        path = Path(o.write) / f"{number}-{what}" / side / name
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(text)
    print(f"{len(todo)} commands, {different} with differences")
    return 1 if different or not todo else 0


if __name__ == "__main__":
    sys.exit(main())
