"""What the scripts of the suite share: a script has a table of networks and calls main(TABLE).

A network is a function of (batch, full) that returns (module, loss): loss() computes the loss of one iteration on synthetic data of
that batch, in the small size or the full one. Weights and data are random: only speed and memory are looked at."""
import argparse
import ctypes
import time

import torch


def _mark(name, *types):
    """A function of the capture library that `benanza profile` loads in front of the program; without it, none."""
    function = getattr(ctypes.CDLL(None), name, None)
    if function:
        function.argtypes, function.restype = types, None
    return function or (lambda *_: None)


begin, end = _mark("benanza_iteration_begin"), _mark("benanza_iteration_end")
range_begin, range_end = _mark("benanza_range_begin", ctypes.c_char_p), _mark("benanza_range_end")
_fact = _mark("benanza_fact", ctypes.c_char_p, ctypes.c_char_p)


def fact(key, value):
    _fact(key.encode(), str(value).encode())


OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, 1e-4), "momentum": lambda p: torch.optim.SGD(p, 1e-4, momentum=0.9),
              "adam": lambda p: torch.optim.Adam(p, 1e-4), "adamw": lambda p: torch.optim.AdamW(p, 1e-4)}


def step(loss, optimizer):
    begin()
    optimizer.zero_grad(set_to_none=True)
    range_begin(b"forward")
    value = loss()
    range_end()
    range_begin(b"backward")
    value.backward()
    range_end()
    range_begin(b"update")
    optimizer.step()
    range_end()
    value = value.detach()
    if value.is_cuda:
        torch.cuda.synchronize()
    end()
    return value


def main(networks):
    parser = argparse.ArgumentParser()
    parser.add_argument("network", choices=sorted(networks))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--size", choices=("ci", "full"), default="ci")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    # Built below, networks and data are made on the device.
    if a.device != "cpu":
        torch.set_default_tensor_type(torch.cuda.FloatTensor)
    module, loss, rule = (tuple(networks[a.network](a.batch, a.size == "full")) + ("momentum",))[:3]
    optimizer = OPTIMIZERS[rule](module.parameters())
    fact("batch", a.batch)
    fact("parameters", sum(p.numel() for p in module.parameters()))
    for _ in range(2):
        value = step(loss, optimizer)
    start, used = time.perf_counter(), time.process_time()
    for _ in range(a.iterations):
        value = step(loss, optimizer)
    start, used = time.perf_counter() - start, time.process_time() - used
    fact("processors used", used / start)
    print(f"{a.network} batch {a.batch}: {a.batch * a.iterations / start:.4g} samples/s, loss {float(value):.4g}")
    if not bool(torch.isfinite(value)):
        raise SystemExit("the loss is not finite")
