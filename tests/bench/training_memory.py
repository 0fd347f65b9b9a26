#!/usr/bin/python3
"""training_memory.py BENANZA [--all]: predicted memory of an iteration of training against what PyTorch takes on the processor.

Six networks (tests/conformance/training_networks.py) at three batches, Adam. A preloaded library counts live bytes of posix_memalign, with which
PyTorch allocates tensors and oneDNN its scratchpads; the peak is that of the third iteration. Prints a table in Markdown."""
import ctypes
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
enum { SLOTS = 1 << 20 };
static struct { void *p; size_t n; } slot[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long live, peak;
long counted_live(void) { return live; }
long counted_peak(void) { return peak; }
void counted_reset(void) { peak = live; }
static size_t place(void *p) { return ((uintptr_t)p >> 4) * 2654435761u % SLOTS; }
int posix_memalign(void **out, size_t align, size_t n)
{
    static int (*real)(void **, size_t, size_t);
    if (!real) real = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    int rc = real(out, align, n);
    if (rc) return rc;
    pthread_mutex_lock(&lock);
    size_t i = place(*out);
    while (slot[i].p && slot[i].p != (void *)1) i = (i + 1) % SLOTS;
    slot[i].p = *out, slot[i].n = n;
    live += (long)n;
    if (live > peak) peak = live;
    pthread_mutex_unlock(&lock);
    return 0;
}
void free(void *p)
{
    static void (*real)(void *);
    if (!real) real = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    if (p) {
        pthread_mutex_lock(&lock);
        for (size_t i = place(p); slot[i].p; i = (i + 1) % SLOTS)
            if (slot[i].p == p) { live -= (long)slot[i].n; slot[i].p = (void *)1; break; }
        pthread_mutex_unlock(&lock);
    }
    real(p);
}
"""


def measure(name, batch, path):
    import torch
    import training_networks as networks
    torch.set_num_threads(1)
    torch.manual_seed(0)
    counter = ctypes.CDLL(None)
    counter.counted_peak.restype = ctypes.c_long
    module, x, targets = networks.make(name, batch, SCALE)
    optimizer = torch.optim.Adam(module.parameters())
    for _ in range(3):
        counter.counted_reset()
        optimizer.zero_grad(set_to_none=True)
        loss = networks.loss(module(x), targets)
        loss.backward()
        optimizer.step()
        del loss
    peak = counter.counted_peak()
    networks.export(module, x, path)
    print(json.dumps({"peak": peak}))


SCALE = 2
if len(sys.argv) == 5 and sys.argv[1] == "--measure":
    measure(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    sys.exit()

import training_networks as networks
benanza = os.path.abspath(sys.argv[1])
with tempfile.TemporaryDirectory() as work:
    with open(work + "/counter.c", "w") as f:
        f.write(COUNTER)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", work + "/counter.so", work + "/counter.c", "-ldl", "-lpthread"], check=True)
    print("| network | batch | PyTorch | predicted | ratio | weights | gradients | optimizer | activations | inputs | rest |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in networks.NAMES:
        for batch in 4, 16, 64:
            path = f"{work}/{name}.onnx"
            out = subprocess.run([sys.executable, "-W", "ignore", __file__, "--measure", name, str(batch), path], capture_output=True, text=True,
                                 env=dict(os.environ, LD_PRELOAD=work + "/counter.so"))
            assert out.returncode == 0, out.stderr[-2000:]
            peak = json.loads(out.stdout.splitlines()[-1])["peak"]
            said = subprocess.run([benanza, "layers", "--train=adam", "--json", path], capture_output=True, text=True)
            assert said.returncode == 0, said.stderr
            memory = json.loads(said.stdout)[0]["training"]["memory"]
            at = {c["class"]: c["at_peak"] for c in memory["classes"]}
            mb = lambda n: f"{n / 1e6:.2f}"
            print(f"| {name} | {batch} | {mb(peak)} | {mb(memory['peak'])} | {memory['peak'] / peak:.3f} | "
                  + " | ".join(mb(at[c]) for c in ("weights", "gradients", "optimizer", "activations", "inputs", "rest")) + f" | {memory['layer']}", flush=True)
