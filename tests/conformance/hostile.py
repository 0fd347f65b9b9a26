#!/usr/bin/python3
"""hostile.py BENANZA [FIRST COUNT]: recordings of five kinds that were damaged, or made to mislead, from seeds.

Whatever a recording says, benanza ends by itself within a time and a memory that its size allows, with a status that it documents; what it
prints is JSON, or one sentence that names the file; no share lies outside of 0 to 1 and no time is negative."""
import json
import math
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time

from programs import Program

benanza = sys.argv[1]
first, count = (int(a) for a in sys.argv[2:4]) if len(sys.argv) > 3 else (7000, 40)
keep = os.environ.get("KEEP")  # a folder for those that do harm
work = tempfile.mkdtemp()
environment = dict(os.environ, BENANZA_DB=work + "/db", LC_ALL="C.UTF-8")
SECONDS, BYTES = 20, 2 << 30
KINDS = ("trace", "nodes", "export", "cudnn", "onednn")
COMMANDS = (("profile", "show", "--json"), ("analyze", "--json", "--profile"), ("profile", "tables", "--json"), ("whatif", "--json"),
            ("profile", "show"))
WILD = ("NaN", "-Infinity", "1e999", "-1", "0", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "null", '""', "{}", "[]",
        "1e-320", "true", '"\\u0000"', "00", "0x10", "4.5e15", "99999999999999999999999999999999999999")
NAMES = ("", "\x1b[31mred\x1b[0m", "<script>alert(1)</script>", "%s%n%x", "../../etc/passwd", "a" * 70000, "'; drop table StringIds; --", "\u202egnp",
         "\ud800", "ProfilerStep#", "ProfilerStep#99999999999999999999", "step_" + "9" * 400, "nccl" * 5000, "aten::" * 3000, "x\ny", "\x00")


# ---- recordings that are as they should be

def nodes(r):
    """ONNX Runtime's profile."""
    events, at = [], 10
    for _ in range(r.randint(1, 5)):
        begin = at
        for k in range(r.randint(2, 30)):
            took = r.randint(1, 500)
            events.append({"cat": "Node", "pid": 1, "tid": 2, "dur": took, "ts": at, "ph": "X", "name": f"conv{k}_kernel_time", "args": {
                "op_name": r.choice(("Conv", "Relu", "MatMul", "Add")), "node_index": str(k), "provider": "CPUExecutionProvider",
                "input_type_shape": [{"float": [1, 3, 8, 8]}, {"float": [4, 3, 3, 3]}], "output_type_shape": [{"float": [1, 4, 6, 6]}]}})
            at += took
        events.append({"cat": "Session", "pid": 1, "tid": 2, "dur": at - begin, "ts": begin, "ph": "X", "name": "model_run", "args": {}})
    return json.dumps(events, indent=0)


def cudnn(r):
    text = ""
    for k in range(r.randint(3, 60)):
        text += (f"\nI! CuDNN (v7603) function cudnn{r.choice(('ConvolutionForward', 'AddTensor', 'PoolingForward'))}() called:\n"
                 "i!     xDesc: type=cudnnTensorDescriptor_t:\ni!         dataType: type=cudnnDataType_t; val=CUDNN_DATA_FLOAT (0);\n"
                 f"i!         nbDims: type=int; val=4;\ni!         dimA: type=int; val=[1,{r.randint(1, 512)},56,56];\n"
                 "i!         strideA: type=int; val=[200704,3136,56,1];\ni!     xData: location=dev; addr=0x7f753ec00000;\n"
                 f"i! Time: 2019-09-29T01:25:{k // 10:02d}.{k * 1000:06d} (0d+0h+0m+14s since start)\n"
                 "i! Process=24402; Thread=24489; GPU=0; Handle=0x7f74d07e8900; StreamId=(nil) (defaultStream).\n\n")
    return text


def onednn(r):
    lines = ["onednn_verbose,info,oneDNN v2.6.3 (commit 52b5f107dd9cf10910aaa19cb47f3abf9b349815)", "onednn_verbose,info,cpu,runtime:OpenMP,nthr:2"]
    for k in range(r.randint(3, 80)):
        m, n = r.randint(1, 512), r.randint(1, 512)
        lines.append("onednn_verbose,exec,cpu,matmul,gemm:jit,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 dst_f32::blocked:ab:f0,,,"
                     f"{m}x64:64x{n}:{m}x{n},0.{r.randint(1, 9999):04d}")
    return "\n".join(lines) + "\n"


def make(kind, r, path):
    if kind in ("trace", "export"):
        p = Program(r.randrange(10**6))
        while len(p.kernel) > 4000:
            p = Program(r.randrange(10**6))
        for i in range(min(20, len(p.kernel))):
            p.op.append(("aten::linear", p.kernel[i][1] - 9000, p.kernel[i][1] - 4000, 1))
        made = f"{work}/made." + ("json" if kind == "trace" else "sqlite")
        p.write(made)
        os.replace(made, path)
    else:
        with open(path, "w") as f:
            f.write({"nodes": nodes, "cudnn": cudnn, "onednn": onednn}[kind](r))


# ---- damage

def cut(r, data):
    return data[:r.randrange(len(data))]


def flip(r, data):
    data = bytearray(data)
    for _ in range(r.choice((1, 10, 1000))):
        data[r.randrange(len(data))] = r.randrange(256)
    return bytes(data)


def swap(r, data):
    """Pieces change places, come twice, or are missing."""
    ends = sorted(r.randrange(len(data)) for _ in range(6))
    pieces = [data[a:b] for a, b in zip([0] + ends, ends + [len(data)])]
    return b"".join(r.choice(pieces) for _ in range(8))


def recode(r, data):
    how = r.choice(("utf-16", "utf-32", "bom", "latin", "zeros", "lines"))
    if how in ("utf-16", "utf-32"):
        return data.decode("latin-1").encode(how)
    if how == "bom":
        return b"\xef\xbb\xbf" + data
    if how == "zeros":
        return data + bytes(5000)
    if how == "lines":
        return data.replace(b"\n", b"\r\n") if b"\n" in data else data.replace(b",", b",\r")
    return data.replace(b"aten", "\u00e4t\u00e9n".encode("latin-1")).replace(b"function", "f\u00fcnction".encode("latin-1"))


def numbers(r, data):
    """Some numbers of a text are others, or none."""
    out, i, share = bytearray(), 0, r.choice((0.001, 0.05, 0.5))
    while i < len(data):
        j = i
        while j < len(data) and data[j:j + 1].isdigit():
            j += 1
        if j > i and r.random() < share:
            out += r.choice(WILD).encode()
        else:
            out += data[i:max(j, i + 1)]
        i = max(j, i + 1)
    return bytes(out)


def mislead(r, events):
    """A trace whose events are well formed, and whose times, ties and names are not."""
    how = r.choice(("negative", "same time", "ends of time", "one correlation", "ties in a circle", "names", "lanes", "nested", "shuffled", "devices"))
    share = r.choice((0.01, 0.3, 1))
    for n, e in enumerate(events):
        args = e.setdefault("args", {})
        if r.random() > share:
            continue
        if how == "negative":
            e["dur"] = -r.choice((1, 1e6, 9e15))
        elif how == "same time":
            e["ts"], e["dur"] = 5, 0
        elif how == "ends of time":
            e["ts"] = r.choice((9.2e15, -9.2e15, 0, 1e300, 9223372036854775))
            e["dur"] = r.choice((0, 9.2e15, 1e300))
        elif how == "one correlation":
            args["correlation"] = args["External id"] = 1
        elif how == "ties in a circle":
            other = events[r.randrange(len(events))].get("args", {})
            args["correlation"], args["External id"] = other.get("External id", n), other.get("correlation", n)
            args["wait_on_cuda_event_record_corr_id"], args["wait_on_stream"] = args["correlation"], r.choice((-1, 7, 2**32))
            if r.random() < 0.3:
                e["cat"] = "cuda_sync"
        elif how == "names":
            e["name"] = r.choice(NAMES)
        elif how == "lanes":
            e["pid"], e["tid"] = r.choice((-1, 2**63 - 1, "x" * 3000, n, "stream 9999999999999999999")), r.choice((n, -n, "", None))
        elif how == "nested":
            e["ts"], e["dur"], e["cat"] = n, 2 * (len(events) - n), "cpu_op"
        elif how == "shuffled":
            e["ts"] = r.choice(events)["ts"]
        elif how == "devices":
            args["device"], args["stream"], args["grid"] = r.choice((n, -5, 2**40)), r.choice((n, -1)), [2**31, 2**31, 2**31]
            args["graph id"] = r.choice((n, 2**31, -1))
    return how


def spoil(r, path):
    """The same for a database."""
    db = sqlite3.connect(path)
    tables = [t for (t,) in db.execute("select name from sqlite_master where type = 'table'")]
    for _ in range(r.randint(1, 4)):
        table = r.choice(tables)
        columns = [c[1] for c in db.execute(f"pragma table_info({table})")]
        column, how = r.choice(columns), r.randrange(8)
        some = f"where rowid % {r.choice((1, 2, 50))} = 0"
        if how == 0:
            db.execute(f"update {table} set {column} = ? {some}", (r.choice((None, "text", b"\xff\x00", 2**63 - 1, -2**63, 1e308, float("inf"), -1, 0)),))
        elif how == 1 and "end" in columns and "start" in columns:
            db.execute(f"update {table} set end = start - {r.choice((1, 10**9, 10**15))} {some}")
        elif how == 2 and "correlationId" in columns:
            db.execute(f"update {table} set correlationId = {r.choice(('1', 'rowid % 3', 'random()'))} {some}")
        elif how == 3:
            db.execute(f"alter table {table} rename column {column} to lost")
        elif how == 4:
            db.execute("update StringIds set value = ? " + some, (r.choice(NAMES[:8]),))
        elif how == 5:
            db.execute(f"insert into {table} select * from {table}")
        elif how == 6:
            db.execute(f"drop table {table}")
            tables.remove(table)
            db.execute(f"create view {table} as select * from {tables[0]}" if r.random() < 0.5 else f"create table {table} (a, b, c)")
        elif how == 7 and "start" in columns:
            db.execute(f"update {table} set start = {r.choice(('random()', '0', '9223372036854775807', '-9223372036854775808 + rowid'))} {some}")
        if not tables:
            break
    db.commit()
    db.close()


def damage(kind, r, path):
    how = r.randrange(6)
    if how < 4 or kind in ("cudnn", "onednn"):
        data = open(path, "rb").read()
        change = r.choice((cut, flip, swap, recode, numbers))
        open(path, "wb").write(change(r, data))
        return change.__name__
    if kind == "export":
        spoil(r, path)
        return "spoilt"
    with open(path) as f:
        found = json.load(f)
    what = mislead(r, found if isinstance(found, list) else found["traceEvents"])
    with open(path, "w") as f:
        json.dump(found, f)
    return what


# ---- what must hold

def limit():
    if "SANITIZED" not in os.environ:  # the shadow alone of an address sanitizer is larger
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def bad_number(value, where=""):
    """A share outside of 0 to 1, or a time below 0."""
    if isinstance(value, dict):
        for k, v in value.items():
            found = bad_number(v, f"{where}.{k}")
            if found:
                return found
    elif isinstance(value, list):
        for v in value[:2000]:
            found = bad_number(v, where)
            if found:
                return found
    elif isinstance(value, float):
        name = where.rsplit(".", 1)[-1]
        if not math.isfinite(value):
            return f"{where} = {value}"
        if name in ("busy", "idle", "latency", "span", "kernel_time") and value < 0:
            return f"{where} = {value}"
        if name in ("share", "busy_share", "idle_share") and not -1e-9 <= value <= 1 + 1e-9:
            return f"{where} = {value}"
    return None


def one_sentence(command, says):
    """Why it ends; before it, of a file that is cut off, that it is."""
    lines = says.rstrip("\n").split("\n")
    return lines[-1].startswith(f"benanza {command}: ") and all(
        l.startswith(f"benanza {command}: warning: ") and "is cut off" in l for l in lines[:-1])


def run(path, what):
    bad = []
    for command in COMMANDS:
        begin = time.monotonic()
        try:
            p = subprocess.run([benanza, *command, path], capture_output=True, env=environment, timeout=SECONDS, preexec_fn=limit)
        except subprocess.TimeoutExpired:
            bad.append(f"{' '.join(command)}: longer than {SECONDS} s")
            continue
        says = p.stderr.decode(errors="replace")
        if p.returncode not in (0, 3, 4):
            bad.append(f"{' '.join(command)}: exit {p.returncode}: {says[-300:]}")
        elif p.returncode == 3 and (not one_sentence(command[0], says) or len(says) > 5000 or "\x1b" in says):
            bad.append(f"{' '.join(command)}: says {says[:200]!r}")
        elif "--json" in command and p.returncode != 3 and p.stdout:
            try:
                found = bad_number(json.loads(p.stdout.decode()))
            except ValueError as e:
                found = f"no JSON: {e}"
            if found:
                bad.append(f"{' '.join(command)}: {found}")
        elif b"\x1b" in p.stdout:
            bad.append(f"{' '.join(command)}: prints control characters")
        if time.monotonic() - begin > 5:
            print(f"  {what}: {' '.join(command)} took {time.monotonic() - begin:.1f} s")
    return bad


wrong = 0
for seed in range(first, first + count):
    r = random.Random(f"hostile {seed}")
    kind = KINDS[seed % len(KINDS)]
    path = f"{work}/{seed}." + {"trace": "json", "nodes": "json", "export": "sqlite"}.get(kind, "log")
    make(kind, r, path)
    what = f"{seed} {kind}, {damage(kind, r, path)}"
    bad = run(path, what)
    for line in bad:
        print(f"{what}: {line}")
    wrong += bool(bad)
    if bad and keep:
        os.replace(path, f"{keep}/{os.path.basename(path)}")
    else:
        os.unlink(path)
print(f"{wrong} of {count} hostile recordings did harm")
sys.exit(wrong > 0)
