"""check_trace.py FILE: is the Chrome trace one that Perfetto shows whole? Prints what it holds, or what is wrong."""
import collections
import json
import sys

trace = json.load(open(sys.argv[1]))
bad = []
slices = collections.defaultdict(list)
named = {"process_name": set(), "thread_name": set()}
flows = collections.defaultdict(list)
spans = collections.defaultdict(list)
for e in trace["traceEvents"]:
    where = (e["pid"], e["tid"])
    assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and e["name"], e
    if e["ph"] == "M":
        if e["name"] in named:
            named[e["name"]].add(e["pid"] if e["name"] == "process_name" else where)
    elif e["ph"] == "X":
        if e["ts"] < 0 or e["dur"] < 0:
            bad.append(f"a slice of negative time: {e}")
        slices[where].append((round(e["ts"] * 1000), -round(e["dur"] * 1000), e["name"]))
    elif e["ph"] in "sf":
        flows[e["id"]].append((e["ph"], where, round(e["ts"] * 1000)))
    elif e["ph"] in "be":
        spans[e["cat"], e["id"], e["name"]].append((e["ph"], round(e["ts"] * 1000)))
    else:
        bad.append(f"a phase that was not expected: {e}")

crossing = 0
for where, rows in slices.items():
    if where not in named["thread_name"] or where[0] not in named["process_name"]:
        bad.append(f"{where} has no name")
    open_ends = []
    for start, minus, name in sorted(rows):
        end = start - minus
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        crossing += bool(open_ends) and end > open_ends[-1]
        open_ends.append(end)
starts = {where: set(r[0] for r in rows) for where, rows in slices.items()}
for number, ends in flows.items():
    phases = sorted(p for p, _, _ in ends)
    if phases != ["f", "s"]:
        bad.append(f"arrow {number} has {phases}")
        continue
    for phase, where, at in ends:
        if at not in starts[where]:
            bad.append(f"arrow {number} ({phase}) begins in no slice")
for what, ends in spans.items():
    if sorted(p for p, _ in ends) != ["b", "e"] or min(t for p, t in ends if p == "e") < min(t for p, t in ends if p == "b"):
        bad.append(f"span {what} has {ends}")
print(f"{sum(map(len, slices.values()))} slices on {len(slices)} tracks, {len(flows)} arrows, {len(spans)} spans, {crossing} cross, {len(bad)} bad")
for b in bad[:10]:
    print("BAD", b)
sys.exit(bool(bad))
