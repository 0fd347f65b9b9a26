#!/usr/bin/env python3
"""tests/end-to-end/words.py BENANZA BENCH FOLDER: what a capture says of oneDNN's primitives is what the library's own log
says of the same calls, word by word. Runs benchmarks of all kinds under a capture, with the log on."""
import collections, os, re, sqlite3, subprocess, sys

benanza, bench, folder = sys.argv[1:]
# a list of the runtime's problems
PROBLEMS = """conv x=1x8x9x9 w=16x8x3x3 stride=2x2 pad=1x1x1x1 dilation=1x1 group=1 post=bias,clip:0:6 dtype=f32
conv x=2x8x9x9 w=8x4x3x3 pad=2x2x2x2 dilation=2x2 group=2 post=add,relu dtype=f32
conv x=1x8x20 w=8x8x3 post=bias,elu:0.5 dtype=f32
conv x=1x4x5x6x7 w=8x4x3x3x3 dtype=f32
conv x=1x16x9x9 w=16x16x3x3 dtype=u8:i8:u8 post=bias,relu
deconv x=1x8x5x5 w=8x4x3x3 stride=2x2 dtype=f32
gemm m=7 n=10 k=20 transb=1 post=bias,mul dtype=f32
matmul a=3x4x8 b=3x8x5 dtype=f32
matmul a=3x4x8 b=3x8x5 dtype=bf16
pool mode=max x=1x16x9x9 kernel=3x3 stride=2x2 dtype=f32
pool mode=avg_pad x=1x16x4x9x9 kernel=2x3x3 dtype=f32
batchnorm x=2x16x5x5 dtype=f32
layernorm x=2x7x64 axis=2 dtype=f32
groupnorm x=2x16x5x5 group=4 dtype=f32
softmax x=2x8x3 axis=1 dtype=f32
logsoftmax x=2x8 axis=1 dtype=f32
lrn x=1x16x5x5 size=5 alpha=0.0001 beta=0.75 bias=1 dtype=f32
activation fn=leaky x=1x16x5x5 alpha=0.1 dtype=f32
activation fn=clip x=1x16 alpha=-1 beta=6 dtype=f32
prelu x=1x16x5x5 dtype=f32
binary fn=mul a=2x8x4x4 b=2x8x1x1 dtype=f32
binary fn=add a=2x8x4x4 b=2x8x4x4 post=linear:2:1 dtype=f32
reduce fn=mean x=2x8x4x4 y=2x8x1x1 dtype=f32
reduce fn=l2 x=2x8 y=2x1 dtype=f32
resample mode=linear coord=half_pixel x=1x8x4x4 y=1x8x8x8 dtype=f32
concat y=1x12x4x4 axis=1 sizes=8x4 dtype=f32
transpose x=2x3x4 perm=2x0x1 dtype=f32
reorder x=2x16x4x4 from=plain to=plain scale=16 dtype=f32:f32:u8
lstm seq=3 batch=2 input=8 hidden=16 dir=bidirectional dtype=f32
gru seq=3 batch=2 input=8 hidden=16 lbr=1 dtype=f32
rnn fn=relu seq=3 batch=2 input=8 hidden=16 dtype=f32""".splitlines()


def calls(path):
    """What was executed, in words. The log knows two things more: which layouts were left to the library, and of version 3,
    that there are scales."""
    rows = sqlite3.connect(path).execute(
        "SELECT n.value, v.value, d.value FROM BENANZA_CALLS c JOIN StringIds n ON n.id = c.nameId "
        "LEFT JOIN StringIds v ON v.id = c.variantId LEFT JOIN StringIds d ON d.id = c.detailId WHERE c.library = 4 "
        "AND c.flags & 1")
    return collections.Counter((name, variant, re.sub(r"(=[a-z0-9]+):a([p0]*):", r"\1:\2:",
                                                       re.sub(";attr-scales:[^; ]*", "", detail or "")))
                               for name, variant, detail in rows)


log, captured, logged = (os.path.join(folder, name) for name in ("words.log", "words.bz", "words.log.bz"))
with open(log, "w") as out:
    subprocess.run([benanza, "profile", "-o", captured, "--", bench, "--check-only", "-o", os.path.join(folder, "words.jsonl"),
                    "--backend", "onednn", *PROBLEMS],
                   stdout=out, stderr=out, check=False,
                   # built with sanitizers, the benchmark does without being first in the list of libraries
                   env=dict(os.environ, ONEDNN_VERBOSE="1", ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0"))
subprocess.run([benanza, "profile", "show", "-o", logged, log], stdout=subprocess.DEVNULL, check=True)
theirs, ours = calls(logged), calls(captured)
kinds = {name for name, _, _ in theirs}
for name, variant, detail in sorted((theirs - ours)):
    print("the log:    ", name, variant, detail)
for name, variant, detail in sorted((ours - theirs)):
    print("the capture:", name, variant, detail)
print(f"{sum((theirs & ours).values())} of {sum(theirs.values())} calls alike, {len(kinds)} kinds")
sys.exit(theirs != ours or len(kinds) < 14)
