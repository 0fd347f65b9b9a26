#!/usr/bin/python3
"""python.py BENANZA SOURCE: the module benanza says what the commands say, for each way in which a command can end."""
import json
import os
import subprocess
import sys
import tempfile

program, source = map(os.path.abspath, sys.argv[1:3])
os.environ["BENANZA_PROGRAM"] = program
sys.path.insert(0, source + "/python")
import benanza  # noqa: E402

cases = source + "/tests/cases"
model = cases + "/analyze/branches.onnx"
with tempfile.TemporaryDirectory() as folder:
    os.environ["BENANZA_DB"] = folder + "/db"
    added = benanza.db_import(cases + "/analyze/records.jsonl")
    assert added.record == "import" and added.sources[0].added == 75 and not added.incomplete, added

    one = benanza.bound(model, batch=1, system="testbox@onednn2.6.3")
    assert not one.incomplete and one.layers[0].node >= 0 and one["model"] == model, one
    lacking = benanza.analyze(model, batch=1, system="testbox")
    assert lacking.incomplete and "lacks 1 problem" in lacking.messages and lacking.unpriced == 1, lacking.messages
    both = benanza.analyze(model, batch=1, system="testbox,testbox@onednn2.6.3")
    assert [m.unpriced for m in both.models] == [1, 0] and both.incomplete, both

    listed = benanza.layers(model, batch=1)
    assert listed.record == "layers" and listed.totals.layers == 11, listed.totals
    assert [d.v for d in benanza.layers(model, cases + "/layers-json/small.onnx", batch=1)] == [1, 1]
    assert len(benanza.db_ls().systems) == 2 and benanza.db_check().clean
    assert benanza.db_show("conv", dtype="f32").records
    assert benanza.system().here
    slower = benanza.compare("testbox", "testbox@onednn2.6.3", model, batch=1, fail_if_slower="5%")
    assert slower.worse and not slower.incomplete and slower.verdicts.SLOWER == 4, slower.verdicts
    planned = benanza.replay(model, batch=1, system="testbox@onednn2.6.3", no_run=True)
    assert planned.record == "replay-report" and planned.planned > 0, planned
    lines = benanza.db_export()
    assert lines[0].record == "system" and len(lines) > 70 and lines[-1].problem and not lines.incomplete, lines[0]
    assert not benanza.db_export(output=folder + "/all.jsonl") and os.path.getsize(folder + "/all.jsonl") > 1000
    assert len(benanza.db_salvage()) == len(lines)
    assert "0 records deleted" in benanza.db_gc(keep=5) and " to " in benanza.db_compact()
    assert benanza.completion("bash").startswith("#")
    measured = benanza.bench("activation fn=relu x=64 dtype=f32", time_limit=0.001, wait=0, backend="loops")
    assert measured[-1].status == "ok" and measured[-1].median > 0, measured
    small = os.path.join(folder, "-small.onnx")  # a name that looks like an option
    assert benanza.strip(model, small).out_bytes == os.path.getsize(small)
    assert benanza.gen(model, batch=1, all=True, output=folder + "/bench", backend=["onednn", "cblas"]).written > 3
    recorded = folder + "/run.bz"
    assert benanza.profile(["sh", "-c", "exit 7"], recorded) in (1, 7)
    assert benanza.profile_show(cases + "/analyze-profile/slow.log").iterations.count > 0

    idle = benanza.profile_tables(cases + "/profile-tables/run.json", table="idle").tables[0]
    assert idle.id == "idle" and idle.rows[0].cause == "host wait", idle

    ranks = []
    for rank in range(2):
        ranks.append(f"{folder}/rank{rank}.json")
        events = [{"ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": 7, "ts": ts, "dur": duration,
                   "args": {"device": rank, "stream": 7}}
                  for name, ts, duration in (("gemm", 100, 50 + rank), ("ncclDevKernel_AllReduce_Sum_f32", 200, 30 - rank))]
        with open(ranks[-1], "w", encoding="utf-8") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}, f)
    rows = benanza.ranks(*ranks).ranks.rows
    assert [(row.rank, row.device) for row in rows] == [("rank 0", 0), ("rank 1", 1)], rows
    assert [round(1e6 * row.communication) for row in rows] == [30, 29], rows

    for call, text, status in [(lambda: benanza.bound("nowhere.onnx"), "nowhere.onnx", 3),
                               (lambda: benanza.layers(model, bath=1), "did you mean --batch?", 2),
                               (lambda: benanza.ranks(ranks[0]), "two or more ranks", 2),
                               (lambda: benanza.ranks(ranks[0], cases + "/profile-nan/nan.json"), "two or more ranks", 2),
                               (lambda: benanza.call("nonsense"), "no command 'nonsense'", 2)]:
        try:
            call()
        except benanza.Error as error:
            assert text in str(error) and error.status == status, (str(error), error.status)
        else:
            raise AssertionError(f"no error: {text}")
    try:
        one.layerz
    except AttributeError as error:
        assert "no member 'layerz'" in str(error)
    else:
        raise AssertionError("a member that does not exist has a value")
    os.environ["BENANZA_PROGRAM"] = folder + "/none"
    try:
        benanza.system()
    except OSError:
        pass

with benanza.iteration():  # outside of a recording: nothing
    pass

# a function for every command but help
def commands(*group):
    found = subprocess.run([program, *group, "--help=shell"], check=True, capture_output=True, text=True).stdout
    return [line.split("\t")[0] for line in found.splitlines() if not line.startswith("-")]


names = commands() + [f"{group}_{name}" for group in ("db", "fleet", "suite") for name in commands(group)]
assert len(names) > 30, names
missing = [name for name in names if not callable(getattr(benanza, name, None)) and name not in ("db", "fleet", "help", "suite")]
assert not missing, f"the module lacks {missing}"
# its manual's example, word by word
example = open(source + "/docs/python.md").read().split("```python\n")[1].split("```")[0]
compile(example, "docs/python.md", "exec")
for word in ("bound", "profile", "analyze", "compare"):
    assert f"benanza.{word}(" in example, word
