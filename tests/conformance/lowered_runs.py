"""lowered_runs.py SURVEY BENCH LIST PATTERN...: every library call that layers of the models become must run.

Problems are taken once; those of more than MOST operations are left out, as they check nothing that small ones
don't. A problem may be beyond this machine or library only as a whole: then all that it has are refusals in the
library's own words, and it is of a data type that not every processor has, or of a kind that only libraries for
devices have. Wrong results of single
implementations are the library's: they are found, recorded, and counted here."""
import json
import math
import re
import subprocess
import sys
import tempfile

MOST = 1e6
RARE_TYPES = ("f16", "bf16")
ON_DEVICES = ("attention ", "attention_grad ", "grouped ")


def size(problem):
    """The largest tensor's elements, about."""
    return max((math.prod(map(int, n.split("x"))) for n in re.findall(r"=(\d+(?:x\d+)*)", problem)), default=0)


def main():
    survey, bench, expected, *patterns = sys.argv[1:]
    with tempfile.NamedTemporaryFile("r+") as file:
        done = subprocess.run([survey, "-p", file.name, expected, *patterns], stdout=subprocess.PIPE)
        if done.returncode == 77:
            print("skipped: no test models")
            return 77
        problems = sorted(set(file.read().splitlines()))
    problems = [p for p in problems if size(p) <= MOST]
    run = subprocess.run([bench, "--check-only", "-"], input="\n".join(problems) + "\n", text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    ran, refused, wrong = set(), {}, 0
    for line in run.stdout.splitlines():
        record = json.loads(line)
        if record.get("record") == "system":
            continue
        if record["status"] == "ok":
            ran.add(record["problem"])
        else:
            wrong += record["status"] != "unsupported"
            refused.setdefault(record["problem"], set()).add(record["status"])
    failed = 0
    for problem in problems:
        rare = refused.get(problem) == {"unsupported"} and (
            any(t in problem for t in RARE_TYPES) or problem.startswith(ON_DEVICES))
        if problem not in ran and not rare:
            print("runs nowhere:", problem)
            failed += 1
    print(f"{len(problems)} problems, {len(ran)} ran and are right, {wrong} results of single implementations are wrong, "
          f"{failed} ran nowhere")
    return failed > 0 or not ran


if __name__ == "__main__":
    sys.exit(main())
