#!/usr/bin/python3
"""formats.py BENANZA [SEED...]: recordings as other tools and other versions write them.

Programs of random steps, whose kernels and calls are known, are written in the forms of PyTorch's, TensorFlow's, JAX's, MXNet's and
rocprof's traces and of oneDNN's logs from 0.x to 3.x, with what is around them in practice: marks that the profiler leaves behind, lines that
others break into. Steps, kernels and busy time must be the program's. Files of tools that tell no timeline must be refused by name."""
import bz2
import gzip
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import tarfile
import zipfile

benanza, seeds = sys.argv[1], [int(s) for s in sys.argv[2:]] or [*range(1, 6), random.randrange(10**9)]
work = tempfile.mkdtemp()
environment = dict(os.environ, BENANZA_DB=work + "/db", LC_ALL="C.UTF-8")
failures = programs = 0


def check(what, got, wanted):
    global failures
    if got != wanted:
        failures += 1
        print(f"{what}: {got!r}, not {wanted!r}")


def show(path, *more):
    p = subprocess.run([benanza, "profile", "show", path, "--json", *more], capture_output=True, text=True, env=environment)
    return json.loads(p.stdout) if p.returncode == 0 else p.stderr


def write(name, data):
    path = f"{work}/{name}"
    with open(path, "wb" if isinstance(data, bytes) else "w", **({} if isinstance(data, bytes) else {"newline": ""})) as f:
        f.write(data)
    return path


NAMES = ["volta_sgemm_128x64_nn", "implicit_convolve_sgemm", "void relu_kernel<float>(float*)", "softmax_warp_forward", "loop_add_fusion_3",
         "layer_norm_kernel", "Cijk_Ailk_Bljk_SB_MT64x64x16", "reduce_kernel"]


class Program:
    """Steps of the same kernels; times in whole microseconds."""

    def __init__(self, r):
        self.random = r
        self.steps = r.randint(2, 12)
        self.kernels = [(name, r.randint(20, 400)) for name in r.sample(NAMES, r.randint(4, len(NAMES)))]
        self.gap = r.randint(40, 90)
        self.busy = sum(took for _, took in self.kernels)

    def timeline(self, start):
        """(step's begin, its kernels as (name, launch, start, took), its end)"""
        out, t = [], start
        for _ in range(self.steps):
            begin, work = t, []
            t += 10
            for name, took in self.kernels:
                work.append((name, t, t + self.gap // 2, took))
                t += self.gap // 2 + took
            t += 10
            out.append((begin, work, t))
            t += 5
        return out


def check_steps(what, found, program, busy=True):
    global programs
    programs += 1
    if isinstance(found, str):
        check(what, found, "a recording that is read")
        return
    it = found["iterations"]
    check(f"{what}: steps", it["count"], program.steps)
    if not it["steady"]:
        check(f"{what}: steady steps", 0, program.steps)
        return
    if busy and it["steady"]["device_busy"] is None:
        check(f"{what}: busy", None, program.busy)
    elif busy:
        check(f"{what}: kernels of a step", it["steady"]["kernels"]["p50"], len(program.kernels))
        check(f"{what}: busy", round(it["steady"]["device_busy"]["mean"] * 1e6), program.busy)


def pytorch(program, number, tail, process="python"):
    """`tail`: kernels that the mark holds which the profiler leaves behind; None: there is no such mark"""
    events, correlation = [{"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "args": {"name": process}}], 1
    line = program.timeline(10**6)
    if tail is not None:
        end = line[-1][2] + 5
        line.append((end, [(NAMES[0], end + 1, end + 4, 3)] * tail, end + 50))
    for i, (begin, work, end) in enumerate(line):
        for name, launch, start, took in work:
            args = {"correlation": correlation, "External id": correlation}
            events.append({"ph": "X", "cat": "cpu_op", "name": "aten::op", "pid": 77, "tid": 77, "ts": number(launch - 1), "dur": number(8), "args": {"External id": correlation}})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 77, "tid": 77, "ts": number(launch), "dur": number(5), "args": args})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": number(start), "dur": number(took),
                           "args": dict(args, device=0, stream=7, grid=[1, 1, 1], block=[128, 1, 1])})
            correlation += 1
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 77, "tid": 77, "ts": number(begin), "dur": number(end - begin), "args": {}})
    return events


def tensorflow(program):
    r = program.random
    events = [{"ph": "M", "pid": 1 + d, "name": "process_name", "args": {"name": f"/device:GPU:{d}"}} for d in range(2)]
    events += [{"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}}]
    for tid, name in ((14, "Stream #14(MemcpyH2D)"), (15, "Stream #15(Compute)"), (90, "XLA Ops"), (91, "XLA Modules"), (92, "Steps")):
        events.append({"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}})
    events.append({"ph": "M", "pid": 701, "tid": 3, "name": "thread_name", "args": {"name": "python"}})
    correlation, text = 1, r.random() < 0.5
    for i, (begin, work, end) in enumerate(program.timeline(100)):
        events.append({"ph": "X", "pid": 701, "tid": 3, "ts": begin, "dur": end - begin, "name": "train", "args": {"step_num": str(i) if text else i, "group_id": str(i)}})
        events.append({"ph": "X", "pid": 1, "tid": 92, "ts": begin, "dur": end - begin, "name": str(i), "args": {}})
        events.append({"ph": "X", "pid": 1, "tid": 91, "ts": begin + 10, "dur": end - begin - 20, "name": "jit_step(123)", "args": {}})
        for name, launch, start, took in work:
            args = {"correlation_id": str(correlation), "kernel_details": "regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1 block:128,1,1 occ_pct:100"}
            events.append({"ph": "X", "pid": 701, "tid": 3, "ts": launch, "dur": 5, "name": "cuLaunchKernel", "args": {"correlation_id": str(correlation)}})
            events.append({"ph": "X", "pid": 1, "tid": 15, "ts": start, "dur": took, "name": name, "args": dict(args, hlo_module="jit_step")})
            events.append({"ph": "X", "pid": 1, "tid": 90, "ts": start, "dur": took, "name": "fusion.1", "args": {}})
            correlation += 1
    return {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events + [{}]}


def timeline_of_tensorflow(program):
    device = "/job:localhost/replica:0/task:0/device:GPU:0"
    names = [device + " Compute", "/device:GPU:0/stream:all Compute", "/device:GPU:0/stream:14 Compute", device + " Tensors"]
    events = [{"ph": "M", "pid": i, "name": "process_name", "args": {"name": n}} for i, n in enumerate(names)]
    for _, work, _ in program.timeline(1500000000000000):
        for name, launch, start, took in work:
            events.append({"ph": "X", "cat": "Op", "pid": 0, "tid": 0, "name": name, "ts": launch, "dur": 5, "args": {"name": "n", "op": name}})
            events += [{"ph": "X", "cat": "Op", "pid": pid, "tid": 0, "name": name, "ts": start, "dur": took, "args": {"name": "n", "op": name}} for pid in (1, 2)]
    return {"traceEvents": events}


def rocprof(program):
    events = [{"ph": "M", "pid": str(p), "name": "process_name", "args": {"name": n}} for p, n in ((0, "0 COPY"), (1, "1 CPU HSA API"), (2, "2 CPU HIP API"), (6, "6 GPU0"))]
    for _, work, _ in program.timeline(1000):
        for name, launch, start, took in work:
            for pid, what, at, dur in (("2", "hipLaunchKernel", launch, 5), ("1", "hsa_signal_store_screlease", launch + 1, 2), ("6", name + ".kd", start, took)):
                events.append({"ts": str(at), "dur": str(dur), "ph": "X", "name": what, "pid": pid, "tid": "0" if pid == "6" else "4711",
                               "args": {"BeginNs": str(at * 1000), "EndNs": str((at + dur) * 1000)}})
    return {"traceEvents": events, "otherData": {}}


def mxnet(program):
    events = [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "cpu/0"}}]
    for _, work, _ in program.timeline(0):
        for name, _, start, took in work:
            events += [{"name": name, "cat": "operator", "ph": p, "ts": t, "pid": 0, "tid": 5} for p, t in (("B", start), ("E", start + took))]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def paddle(program):
    """Each name ends in how long it took; threads of the host are texts; whole microseconds stand in ts, parts of them in start_time"""
    def event(name, pid, tid, at, took, category, **args):
        return {"name": f"{name}[{took / 1000:.3f} ms]", "pid": pid, "tid": tid, "ts": int(at), "dur": took, "ph": "X", "cat": category, "cname": "c",
                "args": {"start_time": f"{at - 1000:.3f} us", "end_time": f"{at - 1000 + took:.3f} us", **args}}
    events, correlation = [], 1
    for i, (begin, work, end) in enumerate(program.timeline(1000)):
        events.append(event(f"ProfileStep#{i}", 77, "78(Python)", begin, end - begin, "ProfileStep"))
        for name, launch, start, took in work:
            events.append(event("conv2d dygraph", 77, "78(C++)", launch - 1, 8, "Operator"))
            events.append(event("conv2d infer_shape", 77, "78(C++)", launch - 1, 1, "OperatorInner"))
            events.append(event("cudaLaunchKernel", 77, "78(C++)", launch, 5, "CudaRuntime", **{"correlation id": correlation}))
            events.append({"name": "launch", "id": correlation, "pid": 77, "tid": "78(C++)", "ts": launch + 2, "ph": "s", "cat": "async"})
            events.append(event(name, 0, 13, start, took + program.random.choice((0, 0.25)), "Kernel", **{"device": 0, "context": 1, "stream": 13, "correlation id": correlation,
                "registers per thread": 32, "shared memory": 0, "grid": [4, 1, 1], "block": [128, 1, 1], "theoretical achieved occupancy %": 50.0}))
            events.append({"name": "launch", "id": correlation, "pid": 0, "tid": 13, "ts": start, "ph": "f", "cat": "async", "bp": "e"})
            correlation += 1
    for pid, tid, name in ((77, "78(C++)", "Process 77 (CPU)"), (0, 13, "Deivce 0 (GPU)")):
        events.append({"name": "process_name", "pid": pid, "tid": tid, "ph": "M", "args": {"name": name}})
    return {"schemaVersion": "1.0.0", "displayTimeUnit": "ms", "span_indx": "0", "deviceProperties": [{"id": 0, "name": "Tesla V100", "smCount": 80}],
            "traceEvents": events + [{}], "ExtraInfo": {"Process Cpu Utilization": "1"}}


def traces(program):
    r = program.random
    forms = {"whole": lambda v: v, "text": str, "float": lambda v: v + 0.0, "exponent": lambda v: float(f"{v}e0")}
    for name, number in forms.items():
        for tail in (None, 0, *([1] if len(program.kernels) > 4 else [])):
            text = json.dumps({"schemaVersion": 1, "traceEvents": pytorch(program, number, tail)})
            text = "\ufeff" * r.randint(0, 1) + text
            check_steps(f"PyTorch, numbers as {name}, tail {tail}", show(write("t.json", text)), program)
    shuffled = pytorch(program, forms["whole"], 0)
    r.shuffle(shuffled)
    check_steps("PyTorch, in any order", show(write("t.json", json.dumps(shuffled))), program)
    for runtime, launch in (("mtia_runtime", "cudaLaunchKernel"), ("xpu_runtime", "urEnqueueKernelLaunch"), ("privateuse1_driver", "hipExtModuleLaunchKernel")):
        text = json.dumps({"traceEvents": pytorch(program, forms["whole"], None)}).replace("cuda_runtime", runtime).replace("cudaLaunchKernel", launch)
        found = show(write("t.json", text))
        check_steps(f"PyTorch, {runtime}", found, program)
        check(f"{runtime}: calls", found["events"]["api"], program.steps * len(program.kernels))
        check(f"{launch}: launches", found["iterations"]["steady"]["launches"]["p50"], len(program.kernels))
    text = json.dumps({"traceEvents": pytorch(program, forms["whole"], None)}).replace('"kernel"', '"npu_events"')
    check_steps("PyTorch, a category that is not known", show(write("t.json", text)), program)
    text = text.replace('"correlation"', '"number"').replace('"External id"', '"other"')
    check("unknown categories that nothing ties to a call are told", any("such as npu_events" in c["text"] for c in show(write("t.json", text))["coverage"]), True)
    found = show(write("tf.json", json.dumps(tensorflow(program))))
    check_steps("TensorFlow", found, program)
    check("TensorFlow's format", found["files"][0]["format"], "TensorFlow or JAX trace")
    check_steps("TensorFlow, packed", show(write("tf.json.gz", gzip.compress(json.dumps(tensorflow(program)).encode()))), program)
    check("TensorFlow 1: kernels", show(write("t.json", json.dumps(timeline_of_tensorflow(program))))["events"]["kernel"], program.steps * len(program.kernels))
    found = show(write("p.json", json.dumps(paddle(program))))
    check_steps("Paddle", found, program, busy=False)  # parts of a microsecond
    check("Paddle's format, kernels, calls, operators", (found["files"][0]["format"], len(found["kernels"]), found["events"]["api"], found["events"]["op"]),
          ("Paddle trace", len(program.kernels), *[program.steps * len(program.kernels) * n for n in (1, 2)]))
    check("Paddle: launches", found["iterations"]["steady"]["launches"]["p50"], len(program.kernels))
    found = show(write("r.json", json.dumps(rocprof(program))))
    check("rocprof: kernels, calls", (found["events"]["kernel"], found["events"]["api"]), (program.steps * len(program.kernels),) * 2)
    found = show(write("m.json", json.dumps(mxnet(program))))
    check("MXNet: operators", (found["events"]["op"], found["files"][0]["format"]), (program.steps * len(program.kernels), "MXNet profile"))


# ---- oneDNN's logs

CALLS = [("convolution", "jit:avx2", "forward_inference", "src_f32::blocked:abcd:f0 wei_f32::blocked:Acdb8a:f0 bia_f32::blocked:a:f0 dst_f32::blocked:aBcd8b:f0", "",
          "alg:convolution_direct", "mb1_ic3oc64_ih224oh112kh7sh2dh0ph3_iw224ow112kw7sw2dw0pw3"),
         ("pooling", "jit:avx2", "forward_inference", "src_f32::blocked:aBcd8b:f0 dst_f32::blocked:aBcd8b:f0 ws_undef::undef::f0", "", "alg:pooling_max",
          "mb1ic64_ih112oh56kh3sh2dh0ph1_iw112ow56kw3sw2dw0pw1"),
         ("convolution", "jit_1x1:avx2", "forward_inference", "src_f32::blocked:aBcd8b:f0 wei_f32::blocked:ABcd8b8a:f0 bia_undef::undef::f0 dst_f32::blocked:aBcd8b:f0",
          "attr-post-ops:eltwise_relu ", "alg:convolution_direct", "mb1_ic64oc64_ih56oh56kh1sh1dh0ph0_iw56ow56kw1sw1dw0pw0"),
         ("eltwise", "jit:avx2", "forward_inference", "data_f32::blocked:aBcd8b:f0 diff_undef::undef::f0", "", "alg:eltwise_relu alpha:0 beta:0", "1x64x56x56"),
         ("inner_product", "gemm:jit", "forward_inference", "src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 bia_f32::blocked:a:f0 dst_f32::blocked:ab:f0", "", "", "mb1ic2048oc1000")]
TEMPLATE = "operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,exec_time"
# name, marker, engine, attributes, component in front, template, stamps possible
DIALECTS = [("MKL-DNN 0.18", "mkldnn_verbose", False, False, "", False, False), ("MKL-DNN 1.0", "mkldnn_verbose", True, False, "", False, False),
            ("DNNL 1.1", "dnnl_verbose", True, False, "", False, False), ("DNNL 1.4", "dnnl_verbose", True, True, "", False, False),
            ("oneDNN 2.7", "onednn_verbose", True, True, "", True, True), ("oneDNN 3.2", "onednn_verbose", True, True, "primitive,", True, True),
            ("oneDNN 3.5", "onednn_verbose,v1", True, True, "primitive,", True, True), ("oneDNN 3.5, its head lost", "onednn_verbose,v1", True, True, "primitive,", False, True)]


def log(dialect, calls, steps, times, stamped, gap):
    name, marker, engine, attributes, component, template, _ = dialect
    lines, clock = [], 1700000000000.0
    if template:
        lines += [f"{marker},info,oneDNN v3.5.0 (commit 52b5f107)", f"{marker},info,cpu,runtime:OpenMP,nthr:4",
                  f"{marker},{component}info,template:{'timestamp,' if stamped else ''}{TEMPLATE}"]
    for step in range(steps):
        for (kind, implementation, prop, memory, attr, auxiliary, problem), took in zip(calls, times):
            fields = ["exec"] + ["cpu"] * engine + [kind, implementation, prop, memory] + [attr] * attributes + [auxiliary, problem, f"{took:g}"]
            lines.append(f"{marker}," + (f"{clock:.4f}," if stamped else "") + component + ",".join(fields))
            clock += took + gap
    return lines


def noise(r, lines):
    """What may be in front of each line, and between lines."""
    front = r.choice([lambda i: "", lambda i: "[1,0]<stdout>:", lambda i: f"2024-05-01T12:00:{i % 60:02}.123456789Z ", lambda i: f"\rEpoch {i}:  50%|###  | 3/6 [00:01<00:01, 2.8it/s]",
                      lambda i: "worker-0 | ", lambda i: "\x1b[32mINFO\x1b[0m "])
    out = []
    for i, line in enumerate(lines):
        out.append(front(i) + line)
        if r.random() < 0.1:
            out.append(r.choice(["loss 0.25", "", "WARNING: onednn_verbose is set", "a,b,c", "{\"ph\": 1}"]))
    return r.choice(["\n", "\r\n"]).join(out) + "\n"


def logs(program):
    global programs
    r = program.random
    for dialect in DIALECTS:
        calls = r.sample(CALLS, r.randint(3, len(CALLS)))
        steps, times, stamped = r.randint(2, 9), [r.randint(1, 4000) / 1024 for _ in calls], dialect[6] and r.random() < 0.5
        lines = log(dialect, calls, steps, times, stamped, gap=0.5)
        found = show(write("v.log", noise(r, lines)), "--iterations", str(steps))
        what = f"{dialect[0]}{', stamped' if stamped else ''}"
        programs += 1
        check(f"{what}: calls", found["events"]["call"] if isinstance(found, dict) else found, steps * len(calls))
        if isinstance(found, dict):
            check(f"{what}: damaged", [c["text"] for c in found["coverage"] if c["level"] == "broken"], [])
            check(f"{what}: stamps lack", any(c["lack"] == "stamps" for c in found["coverage"]), not stamped)
            spent = {}
            for call, took in zip(calls, times):
                spent[call[0]] = spent.get(call[0], 0) + took
            got = {}
            for c in found["calls"]:
                got[c["name"]] = got.get(c["name"], 0) + c["seconds"]
            total = sum(got.values()) / sum(spent.values()) if got else 0  # of a step, or of the whole log
            apart = {k: v for k, v in spent.items() if not abs(got.get(k, 0) / (total or 1) - v) < 0.002}
            check(f"{what}: shares of calls {got}", apart, {})
        # two processes write at once: a line breaks into another one, which is lost, and that is told
        first = len(lines) - steps * len(calls)
        at = r.randrange(first, len(lines) - 1)
        cut = r.randint(len(dialect[1]) + 1, len(lines[at]) - 1)
        broken = lines[:at] + [lines[at][:cut] + lines[at + 1]] + [lines[at][cut:]] + lines[at + 2:]
        found = show(write("v.log", "\n".join(broken) + "\n"))
        check(f"{what}, a line broken by another at {cut}: calls", found["events"]["call"] if isinstance(found, dict) else found, steps * len(calls) - 1)
        torn = lines[:at] + [lines[at][:cut] + "loss: nan"] + [lines[at][cut:]] + lines[at + 1:]
        check(f"{what}, a line torn by other output at {cut}: calls", show(write("v.log", "\n".join(torn) + "\n"))["events"]["call"], steps * len(calls) - 1)
        check(f"{what}, a line broken by another: told", any("1 line was" in c["text"] for c in found["coverage"]), True)


def nvidia_logs(r):
    """cuDNN's and cuBLAS's logs behind what a container or mpirun puts in front of each line"""
    date = "2024-05-01T12:00:0%d.125542"
    calls = r.randint(4, 12)
    cudnn = [line for i in range(calls) for line in (
        "I! CuDNN (v8204) function cudnnConvolutionForward() called:", "i!     handle: type=cudnnHandle_t; streamId=0x7f74f40024d0;", "i!     algo: type=cudnnConvolutionFwdAlgo_t; val=1;",
        f"i! Time: {date % (i % 10)} (0d+0h+0m+16s since start)", "i! Process=24402; Thread=24489; GPU=0; Handle=0x7f74d07e8900; StreamId=0x7f74f40024d0.")]
    cublas = [line for i in range(calls) for line in (
        "I! cuBLAS (v11.0) function cublasStatus_t cublasSetMathMode(cublasContext*, int) called:", "i!  mode: type=int; val=1", f"i! Time: {date % (i % 10)} elapsed from start 0.1 minutes or 6.0 seconds",
        "i!Process=8655; Thread=139715869128448; GPU=0; Handle=POINTER (IN HEX:0x(nil))", "i! COMPILED WITH: GNU GCC/G++ / 4.1.2 20080704 (Red Hat 4.1.2-48)")]
    for name, lines in (("cuDNN", cudnn), ("cuBLAS", cublas)):
        for front in "", "[1,0]<stdout>:", "2024-05-01T12:00:00.123456789Z ", "worker-0 | ", "INFO [train] ":
            found = show(write("n.log", "".join(front + line + "\n" for line in lines)))
            check(f"{name}'s log behind {front!r}: calls", found["events"]["call"] if isinstance(found, dict) else found, calls)


# ---- what is no recording

def refused():
    cases = [("a.bz2", bz2.compress(b"onednn_verbose,exec"), "bzip2"), ("a.log", "onednn_verbose,exec".encode("utf-16"), "UTF-16"), ("a.html", "<!DOCTYPE html>", "web page"),
             ("times.json", json.dumps([{"startInMs": 1, "startComputeMs": 1, "latencyMs": 2}]), "exportTimes"),
             ("profile.json", json.dumps([{"count": 9}, {"name": "conv", "averageMs": 1, "percentage": 3}]), "exportProfile"),
             ("layers.json", json.dumps({"Layers": [], "Bindings": []}), "exportLayerInfo"), ("et.json", json.dumps({"nodes": [{"name": "[pytorch|profiler|execution_trace|process]"}]}), "execution trace"),
             ("r.json", json.dumps({"rocprofiler-sdk-tool": []}), "rocprofv3"), ("n.csv", '"ID","Metric Name","Metric Unit","Metric Value"\n', "Nsight Compute"),
             ("s.csv", "Time (%),Total Time (ns),Instances\n", "nsys stats"), ("t.txt", "Name  Self CPU %  Self CPU\n", "PyTorch's table"), ("c.log", "Average Forward pass: 1 ms.\n", "caffe"),
             ("o.csv", "layerName;execStatus;layerType\n", "OpenVINO"), ("trt.log", "&&&& RUNNING TensorRT.trtexec [TensorRT v100300]\n", "trtexec says"),
             ("nccl.log", "h:1:1 [0] NCCL INFO Bootstrap\n", "NCCL"),
             ("stats.csv", '"Name","Calls","TotalDurationNs","AverageNs"\n', "rocprof's table"), ("kernel_details.csv", "Step Id,Name,Duration(us),Task ID\n", "trace_view.json"),
             ("llama.log", "llama_perf_context_print:   load time = 1 ms\n", "llama.cpp"), ("x.pftrace", b"\x0a\x1c\x50\x01", "traceconv"), ("x.xplane.pb", b"\x0a\x40\x08\x01", "trace.json.gz"),
             ("x.gz", b"\x1f\x8b\x08\x00garbage", "damaged"), ("empty.json", b"", "is empty"), ("other.json", "{}", "is no recording")]
    for name, data, words in cases:
        found = show(write(name, data))
        check(f"{name} is refused as {words}", isinstance(found, str) and words in found, True)
    with zipfile.ZipFile(work + "/t.zip", "w") as z:
        z.writestr("trace.json", "[]")
    check("zip", "zip archive" in show(work + "/t.zip"), True)
    with tarfile.open(work + "/t.tar.gz", "w:gz") as tar:
        tar.add(work + "/other.json")
    check("tar", "archive of tar" in show(work + "/t.tar.gz"), True)
    for name, sql, words in (("rpd.db", "create table rocpd_op(id integer primary key autoincrement); create table zebra(id)", "rocmProfileData"), ("other.db", "create table invoices(id)", "table invoices"),
                             ("none.db", "create table t(a); drop table t", "without tables")):
        db = sqlite3.connect(f"{work}/{name}")
        db.executescript(sql)
        db.close()
        found = show(f"{work}/{name}")
        check(f"{name} is refused: {found}", isinstance(found, str) and words in found, True)


for seed in seeds:
    before = failures
    p = Program(random.Random(seed))
    traces(p)
    logs(p)
    nvidia_logs(p.random)
    if failures > before:
        print(f"seed {seed}")
refused()
print(f"{programs} recordings of {len(seeds)} programs, {failures} wrong")
sys.exit(failures > 0)
