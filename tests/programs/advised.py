"""A bundled network in PyTorch, as it is or with what an advice says done to it: advised.py NETWORK N [CHANGE…]

CHANGE: freeze, trace, channels-last, bf16. Prints the latency of every iteration in milliseconds, one a line, on stderr. In the
environment: THREADS, how many (1); CLOCK=cpu: the processor's time instead of the clock's, where others run, too; NEIGHBOUR: behind each latency the milliseconds that copying within the first-level cache
took around it, which is longer while somebody else works on the same core; OPERATORS: the file that PyTorch's
own profiler writes its operators to, and no latencies then."""

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", os.environ.get("THREADS", "1")) # OpenBLAS asks when it is loaded, and nobody later

import numpy
import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
EXPORT = os.path.join(ROOT, "scripts", "export-models")
sys.path.insert(0, os.path.join(ROOT, "python"))

import benanza # marks iterations: a transformer repeats its blocks, too


def exporter():
    """scripts/export-models knows how the bundled models are built."""
    loader = importlib.machinery.SourceFileLoader("export_models", EXPORT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("export_models", loader))
    loader.exec_module(module)
    return module


def neighbour(here=numpy.ones(4096, numpy.float32), there=numpy.ones(4096, numpy.float32)):
    many = numpy.lib.stride_tricks.as_strided(there, (128, 4096), (0, 4))
    took = []
    for _ in range(3):
        t = time.perf_counter()
        numpy.copyto(many, here)
        took.append(time.perf_counter() - t)
    return min(took) * 1e3


def main():
    name, iterations, changes = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(int(os.environ.get("THREADS", "1")))
    models = exporter()
    models.cheap_initialisers()
    network, _, inputs, _, _ = models.construct(name)
    models.make_distinct(network)
    network.eval()
    # no zeros: they are quicker
    inputs = [torch.randn_like(x) if x.is_floating_point() else x for x in inputs.values()]
    if "channels-last" in changes:
        network = network.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]
    low = "bf16" in changes
    with torch.no_grad() if "freeze" in changes or "trace" in changes else torch.inference_mode():
        with torch.autocast("cpu", dtype=torch.bfloat16) if low else contextlib.nullcontext():
            if "freeze" in changes:
                network = torch.jit.trace(network, tuple(inputs), check_trace=False, strict=False)
                network = torch.jit.optimize_for_inference(torch.jit.freeze(network))
            elif "trace" in changes:
                network = torch.jit.freeze(torch.jit.trace(network, tuple(inputs), check_trace=False, strict=False))
            clock = time.process_time if os.environ.get("CLOCK") == "cpu" else time.perf_counter
            look = neighbour if "NEIGHBOUR" in os.environ else lambda: 0
            before = look()
            if "OPERATORS" in os.environ:
                with torch.autograd.profiler.profile() as recorded:
                    for _ in range(iterations):
                        with torch.autograd.profiler.record_function("benanza_iteration"):
                            network(*inputs)
                recorded.export_chrome_trace(os.environ["OPERATORS"])
                return
            for _ in range(iterations):
                benanza.iteration_begin()
                t = clock()
                network(*inputs)
                took = (clock() - t) * 1e3
                benanza.iteration_end()
                after = look()
                print("%.4f" % took + (" %.4f" % max(before, after) if after else ""), file=sys.stderr)
                before = after


main()
