#!/usr/bin/python3
"""predict_ways.py BENCH_PREDICT_WAYS DB MODEL...: would it be better to choose a way of predicting for each kind of problem?

Each machine of the database is left out. The way of each kind is chosen by how far off it is on the other machines, and each of those is predicted without itself
and without the machine that is left out: nothing that chooses has seen it. Beside it: each way alone, and what would have been chosen by somebody who knew.
"""
import collections
import math
import subprocess
import sys

WAYS = ("rule", "learned", "roofline", "mean", "ratio", "waves", "peak", "bandwidth", "dense", "dense ratio")


class Table:
    def __init__(self, lines):
        self.machine, self.kind, self.log, self.work, self.told = {}, {}, {}, [], collections.defaultdict(dict)
        for what, *word in (line.split() for line in lines):
            if what == "machine":
                self.machine[int(word[0])] = word[1]
            elif what == "problem":
                self.kind[int(word[0])] = word[1]
                self.log[int(word[0])] = [float(v) for v in word[2:]]
            elif what == "work":
                self.work.append([tuple(map(int, w.split(":"))) for w in word[2:]])
            elif what == "told":
                rule = float(word[3])
                self.told[int(word[0]), int(word[1])][int(word[2])] = [rule if math.isnan(v) else v for v in map(float, word[3:])]
        self.times = collections.Counter()
        for work in self.work:
            for problem, times in work:
                self.times[problem] += times

    def by_kind(self, to, out):
        """{kind: the error of its calls by each way}, where neither machine was learned from."""
        off, total = collections.defaultdict(lambda: [0.0] * len(WAYS)), collections.Counter()
        for problem, told in self.told[to, out].items():
            weight = self.times[problem] * math.exp(self.log[problem][to])
            total[self.kind[problem]] += weight
            for i, v in enumerate(told):
                off[self.kind[problem]][i] += weight * abs(math.exp(v - self.log[problem][to]) - 1)
        return {k: [v / total[k] for v in off[k]] for k in off if total[k]}

    def judge(self, to, way):
        """The mean error of a network's time, and that of all calls, where way(kind) predicts."""
        errors, off, total = [], 0, 0
        for work in self.work:
            told = is_ = 0
            for problem, times in work:
                if problem in self.told[to, to]:
                    a, b = times * math.exp(self.log[problem][to]), times * math.exp(self.told[to, to][problem][way(self.kind[problem])])
                    is_, told, off, total = is_ + a, told + b, off + abs(b - a), total + a
            if is_:
                errors.append(abs(told / is_ - 1))
        return sum(errors) / len(errors), off / total


def best(rows):
    """The way with the least mean of these lists of errors."""
    return min(range(len(WAYS)), key=lambda i: sum(r[i] for r in rows))


def surely(rows, errors):
    """The way whose errors are smaller than the rule's by so many of their own standard errors, over at least five machines; else the rule."""
    chosen, least = 0, 0.0
    for way in range(1, len(WAYS)):
        off = [math.log(max(r[way], 1e-4) / max(r[0], 1e-4)) for r in rows]
        if len(off) < 5:
            break
        mean = sum(off) / len(off)
        if mean + errors * math.sqrt(sum((v - mean) ** 2 for v in off) / (len(off) - 1) / len(off)) < 0 and mean < least:
            chosen, least = way, mean
    return chosen


def show(name, results):
    print(f"{name:18}" + "".join(f" {100 * r[0]:5.1f}" for r in results) + "".join(f"  {100 * sum(r[i] for r in results) / len(results):5.1f}" for i in (0, 1)))


def main():
    table = Table(subprocess.run(sys.argv[1:], capture_output=True, text=True, check=True).stdout.splitlines())
    machines = [m for m in table.machine if (m, m) in table.told]
    print("a network's time is off by, %: " + ", ".join(table.machine[m].split("@")[0] for m in machines) + "; the mean; all calls")
    for i, name in enumerate(WAYS):
        show(name, [table.judge(m, lambda kind, i=i: i) for m in machines])
    chosen, one, two, known, count = [], [], [], [], collections.Counter()
    for d in machines:
        kinds = {table.kind[p] for p in table.told[d, d]}
        others = [table.by_kind(m, d) for m in machines if m != d]
        rows = {k: [o[k] for o in others if k in o] for k in kinds}
        pick = {k: best(rows[k]) if rows[k] else 0 for k in kinds}
        count.update((k, WAYS[w]) for k, w in pick.items())
        chosen.append(table.judge(d, pick.get))
        one.append(table.judge(d, lambda kind, rows=rows: surely(rows[kind], 1)))
        two.append(table.judge(d, lambda kind, rows=rows: surely(rows[kind], 2)))
        own = table.by_kind(d, d)
        known.append(table.judge(d, lambda kind, own=own: best([own[kind]]) if kind in own else 0))
    show("chosen by kind", chosen)
    show("by 1 error", one)
    show("by 2 errors", two)
    show("by one who knew", known)
    print("\nchosen: " + "; ".join(f"{k} by {w} in {n}" for (k, w), n in sorted(count.items())))


main()
