#!/usr/bin/python3
"""bricks.py BENANZA [-G 1,3,10] [--time-limit S] [--busy] [--joint] [--by torch|LIBRARY [--cuts N]] [--fusions] MODEL...: what models take by their sequences, held against the model.

Each model by itself, from an empty database: `bricks -G N --replay`; with --joint all as one set, so that a sequence of several models runs once. --by: run by PyTorch, or by
ONNX Runtime of that shared library (`bricks --exec`), in this process (runtimes.py), in turns: one run of each sequence of a model and of the model, the next of each, and of
each the lower quartile, as what others do on the machine only adds. --cuts N and --fusions as in `bricks`. Prints a table in Markdown: the model by its sequences, as a whole, the quotient; how much longer the model takes than running each unique
sequence once; and the same calls each by itself with all they need in the caches. The last lines are geometric means. On a machine that others use, --busy counts the time that a program has a processor and not the time on the
wall: a library between the programs and the clock, built here from C."""
import socket
import sys
sys.dont_write_bytecode = True
if sys.argv[1:2] == ["--ask"]:  # what --exec runs: the other process has the runtime loaded
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(sys.argv[2])
        line.sendall(sys.argv[3].encode() + b"\n")
        said = line.makefile().read()
    print(said)
    sys.exit(not said.strip())
import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import threading
import time

CLOCK = r"""
#define _GNU_SOURCE
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int replay = -1;
    if (replay < 0) {
        char path[4096];
        ssize_t n = readlink("/proc/self/exe", path, sizeof path);
        replay = n > 7 && !memcmp(path + n - 7, "/replay", 7);
    }
    if (replay && clock == CLOCK_MONOTONIC)
        clock = CLOCK_THREAD_CPUTIME_ID;
    return (int)syscall(SYS_clock_gettime, clock, time);
}
"""

parser = argparse.ArgumentParser()
parser.add_argument("benanza")
parser.add_argument("models", nargs="+")
parser.add_argument("-G", default="1,3,10")
parser.add_argument("--time-limit", default="0.02")
parser.add_argument("--busy", action="store_true")
parser.add_argument("--joint", action="store_true")
parser.add_argument("--by")
parser.add_argument("--cuts")
parser.add_argument("--fusions", action="store_true")
asked = parser.parse_args()
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "68719476736", "MALLOC_ARENA_MAX": "1"}
if asked.by and "MALLOC_MMAP_MAX_" not in os.environ:  # memory that is freed is kept for the next layer, as in a model: taking it anew takes as long as the layers
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **KEEP_MEMORY})


def serve(listening, load):
    """A list of files comes, and their times go back; nothing where one does not run. They run in turns: so weights come from where they do in the model."""
    clock = time.thread_time if asked.busy else time.perf_counter
    while True:
        line, _ = listening.accept()
        with line:
            try:
                files = open(line.makefile().readline().strip()).read().splitlines()
                runs, begin = [load(f) for f in files], clock()
                taken = [[] for _ in runs]
                while len(taken[0]) < 5 or (clock() - begin < float(asked.time_limit) * len(runs) and len(taken[0]) < 60):
                    for once, times in zip(runs, taken):
                        for operand in once.written:  # by the layer before
                            operand.fill(0.02 if operand.dtype.kind == "f" else 1)
                        start = clock()
                        once()
                        times.append(clock() - start)
                line.sendall("".join(f"{statistics.quantiles(t, n=4)[0]:.9f}\n" for t in taken).encode())
            except SystemExit as why:
                print(why, file=sys.stderr)


print("| model | layers of a sequence, at most | by its sequences | as a whole | quotient | each once | by themselves, hot |")
print("|---|---|---|---|---|---|---|")
with tempfile.TemporaryDirectory() as work:
    environment = dict(os.environ)
    if asked.busy:
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{work}/clock.so"], input=CLOCK, text=True, check=True)
        environment["LD_PRELOAD"] = f"{work}/clock.so"
    way = ["--replay", "--time-limit", asked.time_limit]
    if asked.by:
        from runtimes import loaded
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(work + "/line")
        listening.listen()
        threading.Thread(target=serve, args=(listening, loaded(asked.by)), daemon=True).start()
        way = ["--exec", f"{sys.executable} -S {os.path.abspath(__file__)} --ask {work}/line {{list}}", *(["--cuts", asked.cuts] if asked.cuts else [])]
    for most in asked.G.split(","):
        quotients, once, whole = [], 0, 0
        for n, set_ in enumerate([asked.models] if asked.joint else [[m] for m in asked.models]):
            at = f"{work}/{n}.{most}"
            done = subprocess.run([asked.benanza, "bricks", *set_, "-G", most, *(["--fusions"] if asked.fusions else []), *way, "--output" if asked.by else "--db", at, "--json"], env=environment, capture_output=True, text=True)
            assert done.returncode in (0, 4), done.stderr
            sheets = {s["id"]: s["rows"] for s in json.loads(done.stdout)["sheets"]}
            each = sum(s["time"] or 0 for s in sheets["sequences"])
            for row in sheets["models"]:
                if not row["built"] or not row["measured"]:
                    print(f"| {row['model']} | {most} | not all of it ran | | | | |", flush=True)
                    continue
                quotients.append(row["built"] / row["measured"])
                whole += row["measured"]
                hot = sum((s["hot"] or 0) * s["times"] for s in sheets["sequences"])
                ends = ["" if asked.joint else f"{row['measured'] / each:.1f} ×", f"{hot * 1e3:.2f} ms" if hot and not asked.joint else ""]
                print("|", " | ".join([row["model"], most, f"{row['built'] * 1e3:.2f} ms", f"{row['measured'] * 1e3:.2f} ms", f"{quotients[-1]:.1%}", *ends]), "|", flush=True)
            once += each
        off = math.exp(sum(abs(math.log(q)) for q in quotients) / len(quotients)) - 1
        print(f"| {len(quotients)} models | {most} | | | off by {off:.1%} | {whole / once:.1f} × | |", flush=True)
