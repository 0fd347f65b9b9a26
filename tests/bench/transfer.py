#!/usr/bin/env python3
"""tests/bench/transfer.py [--rounds N]: what benanza says of memory, held against others' figures, in turns.

1. STREAM, built here from its definition (four loops over arrays of doubles, the best of ten runs, gcc -O3 -march=native with
   vectors of 256 and of 512 bits, of which the faster counts), in memory
   and in the second-level cache; beside it the same loop of benanza's (the faster of "wide" and "halves", for copy "memcpy") and benanza's best variant.
2. likwid-bench, where it is installed (Debian: likwid): load, copy and stream in the same sizes.
3. Sizes that were not measured: what the line between their neighbours says, these measured in the same turns, and the curve as stored.
Medians over the rounds. Wants a machine with nothing else to do."""
import argparse, json, math, os, re, shutil, statistics, subprocess, tempfile

STREAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static double *array(size_t n) { double *a = aligned_alloc(2 << 20, (8 * n + (2 << 20)) >> 21 << 21); madvise(a, 8 * n, MADV_HUGEPAGE); return a; }
int main(int argc, char **argv)
{
    size_t n = strtoul(argv[1], NULL, 10), times = 1 + (64 << 20) / (8 * n);
    double *a = array(n), *b = array(n) + 5 * 512, *c = array(n) + 10 * 512, best[4] = {1e9, 1e9, 1e9, 1e9};
    (void)argc;
    for (size_t i = 0; i < n; i++) a[i] = 1, b[i] = 2, c[i] = 0;
    for (int k = 0; k < 10; k++)
        for (int w = 0; w < 4; w++) {
            double start = now();
            for (size_t t = 0; t < times; t++) {
                if (w == 0) for (size_t i = 0; i < n; i++) c[i] = a[i];
                if (w == 1) for (size_t i = 0; i < n; i++) b[i] = 3.0 * c[i];
                if (w == 2) for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
                if (w == 3) for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
                __asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");
            }
            double s = (now() - start) / (double)times;
            if (k && s < best[w]) best[w] = s;
        }
    for (int w = 0; w < 4; w++) printf("%.17g\n", (w < 2 ? 16.0 : 24.0) * (double)n / best[w]);
}
"""
WAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
LIKWID = {"read": ("load", 1), "copy": ("copy", 2), "triad": ("stream", 3)}


def bench(a, problems):
    """{problem: {algorithm: (best, median)}}, seconds"""
    out = subprocess.run([a.benanza, "bench", "--backend", "memory", "--layout", "plain", "--wait", "0", "--time-limit", str(a.time_limit), "-"],
                         input="\n".join(problems), capture_output=True, text=True, check=True).stdout
    found = {}
    for line in map(json.loads, out.splitlines()):
        if line.get("status") in ("ok", "dropped"):
            found.setdefault(line["problem"], {})[line["algorithm"]] = (line["min"], line["median"])
    return found


def likwid(test, size):
    isa = "_avx512" if "avx512f" in open("/proc/cpuinfo").read() else "_avx"
    out = subprocess.run(["likwid-bench", "-t", test + isa, "-w", f"N:{size}B:1", "-s", "1"], capture_output=True, text=True).stdout
    found = re.search(r"MByte/s:\s+([\d.]+)", out)
    return float(found[1]) * 1e6 if found else None


def against_stream(a, folder):
    for where, n in ((w, n) for w, n in (("memory", a.memory // 8), ("L2", 16384)) if a.only in (None, w)):
        rows = {w: {"STREAM": [], "same loop": [], "best": []} for w in WAYS}
        others = {w: [] for w in LIKWID}
        reads = []
        problems = [f"transfer way={w} x={n} dtype=f64" for w in (*WAYS, "read")]
        for _ in range(a.rounds):
            both = [subprocess.run([folder + name, str(n)], capture_output=True, text=True, check=True).stdout.split() for name in ("/stream", "/stream512")]
            stream = [max(map(float, pair)) for pair in zip(*both)]
            ours = bench(a, problems)
            for w, rate in zip(WAYS, stream):
                v = ours[f"transfer way={w} x={n} dtype=f64"]
                rows[w]["STREAM"].append(float(rate))
                rows[w]["same loop"].append(8 * n * WAYS[w] / min(v[k][0] for k in (("memcpy",) if w == "copy" else ("wide", "halves"))))
                rows[w]["best"].append(8 * n * WAYS[w] / min(s[0] for s in v.values()))
            reads.append(8 * n / min(s[0] for s in ours[problems[-1]].values()))
            for w, (test, arrays) in LIKWID.items():
                rate = likwid(test, 8 * n * arrays) if shutil.which("likwid-bench") else None
                if rate:
                    others[w].append(rate)
        print(f"{where}: arrays of {8 * n / 1e6:.3g} MB, GB/s")
        for w, r in rows.items():
            s, l, b = (statistics.median(r[k]) / 1e9 for k in ("STREAM", "same loop", "best"))
            more = f"  likwid {statistics.median(others[w]) / 1e9:7.1f}" if others.get(w) else ""
            print(f"  {w:6} STREAM {s:7.1f}  same loop {l:7.1f} ({100 * l / s - 100:+.1f} %)  best {b:7.1f} ({100 * b / s - 100:+.1f} %){more}")
        if others["read"]:
            r, o = statistics.median(reads) / 1e9, statistics.median(others["read"]) / 1e9
            print(f"  read   likwid {o:7.1f}  best      {r:7.1f} ({100 * r / o - 100:+.1f} %)")


def between(a, folder):
    """Sizes in the middle between two that were measured. In each round they are measured together with these: what the line between the
    two is off by then is the curve's own mistake, and what the two have moved by since they were stored is the machine's."""
    db = a.db or folder + "/db"
    if not a.db:
        subprocess.run([a.benanza, "transfer", "--db", db, "--wait", "0"], capture_output=True, check=False)
    sheets = json.loads(subprocess.run([a.benanza, "transfer", "--db", db, "--no-run", "--json"], capture_output=True, text=True).stdout)
    stored = {}
    for row in next(s for s in sheets["sheets"] if s["id"] == "points")["rows"]:
        stored.setdefault(row["way"], {})[row["size"]] = row["time"]
    arrays = {"read": 1, "write": 1, "copy": 2, "scale": 2, "add": 3, "triad": 3, "strided": 1}
    show = lambda off: f"{100 * statistics.median(off):5.1f} {100 * max(off):6.1f} {sum(o > 0.1 for o in off):4d} of {len(off):2d}"
    print("way         off by: median, worst, how many by more than 10 %; the line between neighbours, the curve as stored, the sizes themselves")
    for way, times in stored.items():
        if way == "scattered" or (a.ways and way not in a.ways.split(",")):
            continue  # only powers of two, which are measured
        of = arrays.get(way)
        x = [round(size / (8 * of if of else 1)) for size in times]
        mid = [int((lo * hi) ** 0.5) // (8 if of else 64) * (8 if of else 64) if of or way.startswith("chase") else int((lo * hi) ** 0.5)
               for lo, hi in zip(x, x[1:])]
        mid = [m for m, lo, hi in zip(mid, x, x[1:]) if lo < m < hi]
        text = {v: f"transfer way={way} x={v} dtype={'f64' if of else 'u8'}" for v in sorted(x + mid)}
        rounds = [bench(a, text.values()) for _ in range(a.rounds)]
        loads = lambda v: min(v // 64, 32768) if way.startswith("chase") else 1
        now = {v: min(s[1] for r in rounds for s in r[t].values()) / loads(v) for v, t in text.items() if all(t in r for r in rounds)}
        stores = dict(zip(x, times.values()))
        off = {"line": [], "curve": [], "self": [abs(stores[v] / now[v] - 1) for v in x if v in now]}
        if a.each:
            print("  " + way + " " + " ".join(f"{v}{'' if v in stores else '*'}:{1e9 * t:.3g}" for v, t in now.items()))
        for m in mid:
            lo, hi = max(v for v in x if v < m), min(v for v in x if v > m)
            if not all(v in now for v in (lo, m, hi)):
                continue
            share = math.log(m / lo) / math.log(hi / lo)
            for name, t in (("line", now), ("curve", stores)):
                off[name].append(abs(t[lo] * (t[hi] / t[lo]) ** share / now[m] - 1))
        if off["line"]:
            print(f"  {way:10}" + "   ".join(show(off[k]) for k in ("line", "curve", "self")), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--benanza", default="build/release/benanza")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--memory", type=int, default=128 << 20, help="bytes of each array in memory")
    p.add_argument("--time-limit", type=float, default=0.1, help="seconds of each variant")
    p.add_argument("--db", help="for sizes between: where all others are measured")
    p.add_argument("--ways", help="for sizes between: these alone, with commas")
    p.add_argument("--each", action="store_true", help="for sizes between: print what each took, in ns")
    p.add_argument("--only", choices=["memory", "L2", "between"])
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if a.only != "between":
            with open(folder + "/stream.c", "w") as f:
                f.write(STREAM)
            for name, width in (("/stream", 256), ("/stream512", 512)):
                subprocess.run(["gcc", "-O3", "-march=native", f"-mprefer-vector-width={width}", "-o", folder + name, folder + "/stream.c"], check=True)
            against_stream(a, folder)
        if a.only in (None, "between"):
            between(a, folder)


if __name__ == "__main__":
    main()
