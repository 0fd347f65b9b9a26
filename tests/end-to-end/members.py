#!/usr/bin/python3
"""members.py FORMATS.md BENANZA CASES, or members.py FORMATS.md < DOCUMENTS.

Every member of every JSON document that benanza prints stands in docs/formats.md, in the section that names the document's kind
("Kind: `layers`"), as code; every document begins with its kind and version; and the module benanza has every member as an
attribute. The first form runs all commands that print
JSON, those of tests/cases and some more; the second checks what another test has printed."""
import glob
import json
import keyword
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../../python")
import benanza as wrapper  # noqa: E402

FREE = {"details", "meta"}  # their members are facts of a machine: the section about them lists them, or nobody does


def read_sections(path):
    """Of each kind the names that its section has as code."""
    known = {}
    with open(path) as f:
        for section in re.split(r"(?m)^##+ ", f.read()):
            names = set()
            for code in re.findall(r"(?s)```.*?```|`[^`\n]+`", section):
                names |= set(re.findall(r"[A-Za-z_][A-Za-z0-9_-]*", code))
                names |= set(re.findall(r'"([^"]+)"', code))
            for kind in re.findall(r"Kinds?: ((?:`[a-z-]+`(?:, | and )?)+)", section):
                for one in re.findall(r"`([a-z-]+)`", kind):
                    known[one] = known.get(one, set()) | names
    return known


def documents(text):
    """All JSON documents in a text, which may have other lines, too."""
    found, decoder, at = [], json.JSONDecoder(), 0
    for begin in re.finditer(r"(?m)^[\[{]", text):
        if begin.start() < at:
            continue
        try:
            document, at = decoder.raw_decode(text, begin.start())
        except ValueError:
            continue
        found += document if isinstance(document, list) else [document]
    return found


def members(value, path=()):
    if isinstance(value, dict):
        for name, below in value.items():
            yield path + (name,)
            if name not in FREE:
                yield from members(below, path + (name,))
    elif isinstance(value, list):
        for below in value:
            yield from members(below, path)


def reach(document, where, wrong):
    """Members that the module benanza does not have under their names."""
    found = json.loads(json.dumps(document), object_hook=wrapper.Document)
    found.__class__ = wrapper.Outcome
    below = [found]
    while below:
        value = below.pop()
        if isinstance(value, dict):
            for name, member in value.items():
                spelled = re.sub("[^A-Za-z0-9_]", "_", name)
                spelled += "_" if keyword.iskeyword(name) or name in dir(dict) else ""
                if getattr(value, spelled, below) is not member:
                    wrong.add(f"{where}: not reached from Python: {name}")
                below += [member] if name not in FREE else []
        below += value if isinstance(value, list) else []


def check(known, text, where, wrong):
    kinds = set()
    for document in documents(text):
        if not document or ("problem" in document and "record" not in document):  # a file that a case made; a line of records, whose text form has a table of its own
            continue
        kind = document.get("record")
        if not isinstance(kind, str) or not isinstance(document.get("v"), int):
            wrong.add(f"{where}: a document without \"record\" and \"v\": {sorted(document)[:6]}")
            continue
        if "slug" in document:  # the line of a system
            continue
        kinds.add(kind)
        reach(document, where, wrong)
        if kind not in known:
            wrong.add(f"no section of formats.md says 'Kind: `{kind}`'")
            continue
        for path in members(document):
            if path not in (("record",), ("v",)) and path[-1] not in known[kind]:
                wrong.add(f"{kind}: {'.'.join(path)}")
    return kinds


def check_sources(known, root, wrong):
    """Members that the cases never show: what a source file writes by name is in a section of one of its documents."""
    for path in sorted(glob.glob(root + "/*/*.c")):
        if os.path.basename(os.path.dirname(path)) in ("tests", "runtime"):  # theirs is between programs of benanza's own
            continue
        with open(path) as f:
            source = f.read()
        for kind in (kinds := re.findall(r'bz_(?:json_document\(&?\w+, |json_document_to\(\w+, -?\d+, |members_document\()"([^"]+)"', source)):
            if kind not in known:
                wrong.add(f"no section of formats.md says 'Kind: `{kind}`'")
        if not kinds and os.path.dirname(path).endswith("/report") and not path.endswith("/html_drawing.c"):  # parts of documents
            kinds = ["analysis", "layers"]
        names = set().union(*(known.get(kind, set()) for kind in kinds))
        tables = re.findall(r"BZ_MEMBER(?:_WITHIN|_IF_KNOWN)?\((?:struct )?\w+,\s+(\w+)[,)]", source)  # named as in C
        tables += re.findall(r'BZ_MEMBER_[A-Z]+\([^"()]*"(\w+)"', source)
        for several in re.findall(r"BZ_FIELDS\((?:struct )?\w+,([^)]*)\)|BZ_PUT\(&?\w+,\s+\w+,\s+[^,]+,([^)]*)\)", source):
            tables += re.findall(r"\w+", "".join(several))
        tables += re.findall(r'BZ_JSON_(?:EACH|EACH_ARRAY|LIST) ?\(&?\w+, "([^"]+)"', source)
        for name in tables + re.findall(r'bz_json_key\w*\(&?\w+, "([^"]+)"', source) if kinds else []:
            if name not in names:
                wrong.add(f"{' or '.join(kinds)}: {name}, in {os.path.relpath(path, root)}")


def run_case(cases, name, benanza, arguments=None):
    folder = tempfile.mkdtemp()
    shutil.copytree(os.path.join(cases, name), folder, dirs_exist_ok=True)
    environment = dict(os.environ, LC_ALL="C.UTF-8", cases=cases, benanza=benanza, BENANZA_DB=folder + "/none")
    if os.path.exists(folder + "/setup"):
        subprocess.run(["./setup"], cwd=folder, env=environment, capture_output=True, check=True)
    if arguments is None:
        with open(folder + "/args") as f:
            arguments = f.read()
    out = subprocess.run(["sh", "-c", f"'{benanza}' {arguments}"], cwd=folder, env=environment, capture_output=True)
    shutil.rmtree(folder)
    return out.stdout.decode(errors="replace")


MORE = [("analyze", "analyze branches.onnx --batch 1,4 --db db --system testbox,testbox@onednn2.6.3 --json"),
        ("analyze", "db ls --db db --json"), ("analyze", "db show --db db --json conv"), ("analyze", "db check --db db --json"),
        ("analyze", "db merge --db other db --json"), ("analyze", "system --db db --json"),
        ("analyze", "compare testbox@onednn2.6.3 testbox --db db --json"),
        ("analyze-profile", "analyze branches.onnx --batch 1 --db db --system testbox@onednn2.6.3 --profile slow.log --fuse --json"),
        ("analyze-profile", "compare slow.log fast.log --json"), ("analyze-profile", "profile show slow.log --json"),
        ("profile-tables", "profile tables run.json --json"), ("profile-tables", "profile tables --table help --json"),
        ("compare-reports", "compare first.json second.json --json"),
        ("layers-fusions", "layers *.onnx --fusions --json"), ("layers-unique", "layers *.onnx --unique --json"),
        ("bound-trips", "layers m.onnx --json"), ("strip", "strip *.onnx out.onnx --json"),
        ("replay-plan", "db import --db db lines.jsonl > import && '{0}' replay fused.onnx --db db --system box --fuse --no-run --json"),
        ("gen-json", "gen *.onnx --all -o out && cat out/manifest.json")]


def main():
    known = read_sections(sys.argv[1])
    wrong, kinds = set(), set()
    if len(sys.argv) == 2:
        kinds = check(known, sys.stdin.read(), "input", wrong)
        if not kinds:
            wrong.add("no document was read")
    else:
        benanza, cases = os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
        for name in sorted(os.listdir(cases)):
            path = os.path.join(cases, name, "args")
            if os.path.exists(path) and "json" in open(path).read():
                kinds |= check(known, run_case(cases, name, benanza), name, wrong)
        check_sources(known, os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[1]))), wrong)
        for name, arguments in MORE:
            found = check(known, run_case(cases, name, benanza, arguments.format(benanza)), name, wrong)
            if not found:
                wrong.add(f"benanza {arguments}: no document, in the case {name}")
            kinds |= found
    print("\n".join(sorted(wrong)) or f"{len(kinds)} kinds of documents: {', '.join(sorted(kinds))}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
