#!/usr/bin/python3
"""bricks.py BENANZA [-G 1,3,10] [--time-limit S] [--busy] MODEL...: what models take by their sequences, held against the model as replayed.

Each model by itself, from an empty database: `bricks -G N --replay`. Prints a table in Markdown: the model by its sequences, as a whole, the quotient; how much longer the model takes than running each unique
sequence once; and the same calls each by itself with all they need in the caches. The last lines are geometric means. On a machine that others use, --busy counts the time that a program has a processor and not the time on the
wall: a library between the programs and the clock, built here from C."""
import argparse
import json
import math
import os
import subprocess
import tempfile

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
asked = parser.parse_args()
print("| model | layers of a sequence, at most | by its sequences | as a whole | quotient | each once | by themselves, hot |")
print("|---|---|---|---|---|---|---|")
with tempfile.TemporaryDirectory() as work:
    environment = dict(os.environ)
    if asked.busy:
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{work}/clock.so"], input=CLOCK, text=True, check=True)
        environment["LD_PRELOAD"] = f"{work}/clock.so"
    for most in asked.G.split(","):
        quotients, once, whole = [], 0, 0
        for model in asked.models:
            database = f"{work}/{len(quotients)}.{most}"
            done = subprocess.run([asked.benanza, "bricks", model, "-G", most, "--replay", "--time-limit", asked.time_limit, "--db", database, "--json"],
                                  env=environment, capture_output=True, text=True)
            assert done.returncode in (0, 4), done.stderr
            sheets = {s["id"]: s["rows"] for s in json.loads(done.stdout)["sheets"]}
            row, sequences = sheets["models"][0], sheets["sequences"]
            if not row["built"] or not row["measured"]:
                print(f"| {row['model']} | {most} | not all of it ran | | | | |", flush=True)
                continue
            each = sum(s["time"] for s in sequences)
            quotients.append(row["built"] / row["measured"])
            once, whole = once + each, whole + row["measured"]
            print(f"| {row['model']} | {most} | {row['built'] * 1e3:.2f} ms | {row['measured'] * 1e3:.2f} ms | {quotients[-1]:.1%} | {row['measured'] / each:.1f} × | "
                  f"{sum((s['hot'] or 0) * s['times'] for s in sequences) * 1e3:.2f} ms |", flush=True)
        off = math.exp(sum(abs(math.log(q)) for q in quotients) / len(quotients)) - 1
        print(f"| {len(quotients)} models | {most} | | | off by {off:.1%} | {whole / once:.1f} × | |", flush=True)
