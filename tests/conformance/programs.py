"""Programs that never ran: what a profiler would have recorded of them, with the truth.

A program is made from a seed alone. Its host asks for work on a clock of its own; each device takes its work in order, so steps
queue where the host does not wait. `Program.write` writes the recording as a trace of PyTorch's profiler or as an export of
Nsight Systems; `Program.truth` says what is to be found in it."""
import json
import random
import sqlite3

TABLES = (
    "create table StringIds (id INTEGER, value TEXT)",
    "create table CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, "
    "gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER, "
    "dynamicSharedMemory INTEGER, graphId INTEGER)",
    "create table CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER, returnValue INTEGER)",
    "create table CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER)",
    "create table NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, text TEXT)",
)
PROCESS = 4711
CLASSES = ("plain", "queued", "one", "nested", "many devices", "skewed", "aborted", "tuned", "halves", "language", "marks",
           "layer marks", "graphs", "convolutional", "loader", "perceptron", "training")

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}Functor<float>, at::detail::Array<char*, 2> >(int)"
EMBEDDING = "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::Half, long, unsigned int, 2, 2, -2, true>(int)"
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>(int, float)"
PRODUCTS = ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", "ampere_fp16_s16816gemm_fp16_64x64_sliced1x2_ldg8_tn",
            "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x128x32_stage4", "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize256x128x64")
VECTORS = ("void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16, 4, 4, false>(float)",
           "void gemvNSP_kernel<__half, __half, __half, float, 1, 32, 4, 1024>(float)")
ATTENTION = "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::half_t> >(Flash_fwd_params)"
SPLIT = "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::half_t> >(Flash_fwd_params)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<c10::Half, c10::Half, float, 10, false, false>(c10::Half*, int)"
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::Half, at::native::ArgMaxOps<float>, unsigned int, long, 4> >()"
OPTIMIZER = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float, 4> >()"
CONV = "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true, false, true>(int, int, int)"
WINOGRAD = "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1"
POOL = "void cudnn::detail::pooling_fw_4d_kernel<float, float, cudnn::detail::maxpooling_func<float, 0>, 0, false>(int)"


class Program:
    def __init__(self, seed, kind=None):
        self.random = r = random.Random(f"steps {seed}")
        self.kind = kind or CLASSES[seed % len(CLASSES)]
        self.api, self.kernel, self.copies, self.range, self.device_range, self.op = [], [], [], [], [], []
        self.now = r.randrange(10**9, 10**12)
        self.correlation = r.randrange(1, 10**6)
        self.free = {}
        self.jitter = r.choice((0, 0.02, 0.1, 0.3))
        self.launch_ns = r.choice((2500, 4000, 8000))
        self.skew = 0
        self.devices = 1
        self.steps = r.choice((r.randint(2, 50), r.randint(2, 8), r.randint(2, 20)))
        self.layers = r.randint(1, 50)
        self.inputs = r.random() < 0.7
        self.waits = r.random() < 0.6
        self.gap = r.choice((0, 20_000, 300_000))
        self.per_layer = self.make_layer(r.randint(3, 14))
        self.size = r.choice((2000, 15_000, 120_000))  # ns of a kernel
        self.truth = {"kind": self.kind}
        getattr(self, self.kind.replace("many devices", "many").replace(" ", "_"))()
        self.truth.setdefault("steps", self.steps)

    # ---- the host, and devices that work behind it

    def vary(self, ns):
        return max(1, int(ns * (1 + self.jitter * self.random.uniform(-1, 1))))

    def ask(self, name, took, thread=1):
        self.correlation += 1
        self.api.append((name, self.now, self.now + took, thread, self.correlation))
        self.now += took
        return self.correlation

    def begins(self, device, stream):
        at = max(self.free.get((device, stream), 0), self.now + 1500)
        return at

    def launch(self, name, grid=(8, 1, 1), ns=None, device=0, stream=7, thread=1, graph=0, correlation=None):
        c = correlation or self.ask("cudaLaunchKernel", self.vary(self.launch_ns), thread)
        at = self.begins(device, stream)
        end = at + self.vary(ns or self.size)
        self.kernel.append((name, at, end, device, stream, c, grid, graph))
        self.free[device, stream] = end + 800
        self.now += self.vary(1500) if not correlation else 0

    def copy(self, kind, size, device=0, stream=7, thread=1, wait=False):
        c = self.ask("cudaMemcpyAsync", self.vary(3000), thread)
        at = self.begins(device, stream)
        end = at + 1000 + size // 10
        self.copies.append((kind, at, end, device, stream, c, size))
        self.free[device, stream] = end + 500
        if wait:
            self.wait(device, thread)

    def wait(self, device=0, thread=1, stream=7):
        start = self.now
        self.now = max(self.now + 1000, self.free.get((device, stream), 0) + 3000)
        self.correlation += 1
        self.api.append(("cudaStreamSynchronize", start, self.now, thread, self.correlation))

    def marked(self, name, body, device_copy=False, thread=1, op=False):
        start, first = self.now, len(self.kernel)
        self.now += 700
        body()
        self.now += 700
        (self.op if op else self.range).append((name, start, self.now, thread))
        mine = self.kernel[first:]
        if device_copy and mine:
            self.device_range.append((name, mine[0][1], mine[-1][2], mine[0][3], mine[0][4]))

    # ---- what networks launch

    def make_layer(self, n):
        r = self.random
        pool = [(NORM, (r.randrange(1, 500), 1, 1)), (ATTENTION, (r.randrange(1, 64), 8, 1))]
        pool += [(p, (r.randrange(1, 90), r.randrange(1, 9), 1)) for p in r.sample(PRODUCTS, 3)]
        pool += [(ELEMENTWISE.format(f), (r.randrange(1, 900), 1, 1)) for f in ("Add", "Gelu", "Mul", "Silu")] + [(SOFTMAX, (64, 1, 1))]
        return [pool[0]] + [r.choice(pool) for _ in range(n - 2)] + [(ELEMENTWISE.format("Residual"), (77, 1, 1))]

    def embed(self, device=0, thread=1):
        self.launch(EMBEDDING, (31, 1, 1), device=device, thread=thread)

    def layer(self, device=0, thread=1):
        for name, grid in self.per_layer:
            self.launch(name, grid, device=device, thread=thread)

    def head(self, device=0, thread=1):
        self.launch(NORM, (3, 1, 1), device=device, thread=thread)
        self.launch(PRODUCTS[0], (999, 1, 1), ns=3 * self.size, device=device, thread=thread)

    def forward(self, device=0, thread=1):
        self.embed(device, thread)
        for _ in range(self.layers):
            self.layer(device, thread)
        self.head(device, thread)

    def way_back(self, layers, device=0, thread=1):
        for _ in range(layers):
            for name, grid in reversed(self.per_layer):
                self.launch(name.replace("kernel", "backward_kernel") + "_bwd", grid, device=device, thread=thread)

    def update(self, n, device=0, thread=1):
        for _ in range(n):
            self.launch(OPTIMIZER, (320, 1, 1), device=device, thread=thread)

    def rest(self):
        self.now += self.vary(self.gap) if self.gap else 0

    def answer(self, size, device=0, thread=1):
        """The end of a step: its result is fetched, by programs that do."""
        if self.waits:
            self.copy(2, size, device, thread=thread, wait=True)
        self.rest()

    def step(self, device=0, thread=1):
        if self.inputs:
            self.copy(1, 100_000, device, thread=thread)
        self.forward(device, thread)
        self.answer(4000, device, thread)

    def set_up(self):
        """Weights are copied, and some of them made by kernels."""
        r = self.random
        for _ in range(r.choice((0, 3, 40))):
            self.copy(1, r.randrange(1000, 10**6))
        for _ in range(r.choice((0, 0, 2, 9))):
            self.launch("void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>()", (r.randrange(1, 99), 1, 1))
        if r.random() < 0.7:
            self.wait()
            self.now += r.randrange(10**5, 10**8)

    # ---- the programs

    def plain(self):
        self.set_up()
        for _ in range(self.steps):
            self.step()
        self.wait()

    def queued(self):
        self.waits, self.gap, self.size = False, 0, 40_000
        self.plain()

    def one(self):
        self.steps = 1
        self.layers = max(2, self.layers)
        self.inputs = self.waits = True
        self.plain()

    def nested(self):
        """Epochs of steps of layers of heads, and a small validation behind each epoch."""
        r = self.random
        epochs, steps, heads = r.randint(2, 4), r.randint(3, 12), r.randint(2, 6)
        self.layers = r.randint(2, 16)
        self.inputs = True
        self.steps = epochs * steps
        whole = self.layer

        def layer(device, thread):
            whole(device, thread)
            for _ in range(heads):
                self.launch(PRODUCTS[1], (5, 5, 1))
                self.launch(SOFTMAX, (5, 1, 1))
        self.layer = layer
        self.set_up()
        for _ in range(epochs):
            for _ in range(steps):
                self.step()
            for _ in range(2):
                self.launch(ELEMENTWISE.format("Metric"), (2, 1, 1))
            self.wait()
            self.now += 500_000
        self.truth["outer"] = epochs

    def many(self):
        """One thread for each device; they run at different speeds, and who asks first is chance."""
        r = self.random
        self.devices = r.randint(1, 8)
        self.layers, self.steps = min(self.layers, 12), min(self.steps, 20)
        self.set_up()
        begin = self.now
        ends = []
        for device in range(self.devices):
            self.now = begin + r.randrange(0, 20_000)
            for _ in range(self.steps):
                self.step(device, device + 1)
                self.now += r.randrange(0, 5000)
            self.wait(device, device + 1)
            ends.append(self.now)
        self.now = max(ends)
        self.truth["devices"] = self.devices

    def skewed(self):
        self.plain()
        self.skew = self.random.choice((-1, 1)) * self.random.choice((30_000, 200_000, 2_000_000))

    def aborted(self):
        """The recording ends within the last step."""
        self.steps = max(3, self.steps)
        self.set_up()
        for _ in range(self.steps - 1):
            self.step()
        keep = len(self.kernel), len(self.api), len(self.copies)
        self.step()
        part = self.random.uniform(0.1, 0.9)
        self.kernel, self.api, self.copies = (
            all_[:n + int((len(all_) - n) * part)] for all_, n in zip((self.kernel, self.api, self.copies), keep))
        asked = {a[4] for a in self.api}
        self.kernel = [k for k in self.kernel if k[5] in asked]
        self.copies = [c for c in self.copies if c[5] in asked]
        self.truth["steps"] = (self.steps - 1, self.steps)

    def tuned(self):
        """The first steps try several kernels for each product."""
        self.set_up()
        whole, warm = self.layer, self.random.randint(1, 2)
        tries = self.random.randint(2, 8)

        def layer(device, thread):
            for name, grid in self.per_layer:
                if "gemm" in name:
                    for k in range(tries):
                        self.launch(f"{name}_try{k}", grid)
                    if self.random.random() < 0.3:
                        self.wait()
                self.launch(name, grid)
        self.steps = max(self.steps, 4)
        self.layer = layer
        for i in range(self.steps):
            if i == warm:
                self.layer = whole
            self.step()
        self.wait()

    def halves(self):
        """Gradients of two or more small steps are summed up before the optimizer runs."""
        k = self.random.choice((2, 2, 3, 4))
        self.set_up()
        self.steps = max(2, self.steps // k)
        for _ in range(self.steps):
            for i in range(k):
                self.step()
                for _ in range(self.layers):
                    self.launch(PRODUCTS[2], (11, 3, 1))
                    self.launch(ELEMENTWISE.format("GeluBackward"), (11, 1, 1))
            for _ in range(20 + self.layers):
                self.launch(OPTIMIZER, (320, 1, 1), ns=4 * self.size)
        self.wait()
        self.truth["inner"] = k * self.steps

    def training(self):
        self.set_up()
        for _ in range(self.steps):
            self.step()
            self.way_back(self.layers)
            for _ in range(1 + self.layers // 4):
                self.launch(OPTIMIZER, (320, 1, 1))
        self.wait()

    def language(self):
        """Prompts of many tokens, each followed by tokens one by one. The cache that attention reads grows."""
        r = self.random
        prompts, tokens = r.choice((1, 1, 1, 2, 3)), r.randint(6, 50)
        self.layers = r.randint(2, 40)
        graphs = r.random() < 0.3
        feeds = r.random() < 0.7  # the token comes back to the host
        self.set_up()
        for _ in range(prompts):
            length = r.choice((128, 500, 2000))
            self.copy(1, 8 * length)
            self.launch(EMBEDDING, (length, 1, 1))
            for _ in range(self.layers):
                self.launch(NORM, (length, 1, 1), ns=20 * self.size)
                self.launch(PRODUCTS[0], (length // 16, 32, 1), ns=60 * self.size)
                self.launch(ATTENTION, (length // 16, 8, 1), ns=30 * self.size)
                for n in range(3):
                    self.launch(PRODUCTS[1], (length // 16, 40 + n, 1), ns=60 * self.size)
                self.launch(ELEMENTWISE.format("Residual"), (length * 4, 1, 1), ns=5 * self.size)
            self.launch(NORM, (1, 1, 1))
            self.launch(PRODUCTS[3], (999, 1, 1))
            self.launch(ARGMAX, (1, 1, 1))
            if feeds:
                self.copy(2, 8, wait=True)
            for token in range(tokens):
                if feeds:
                    self.copy(1, 8)
                c = self.ask("cudaGraphLaunch", self.vary(9000)) if graphs else None
                run = lambda name, grid: self.launch(name, grid, graph=5 if graphs else 0, correlation=c)
                run(EMBEDDING, (1, 1, 1))
                for _ in range(self.layers):
                    run(NORM, (1, 1, 1))
                    run(VECTORS[0], (128, 1, 1))
                    run(SPLIT, (1, 1 + (length + token) // 64, 8))
                    if (length + token) // 64 % 2:
                        run("void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4> >()", (1, 1, 1))
                    for n in range(3):
                        run(VECTORS[1], (64 + n, 1, 1))
                    run(ELEMENTWISE.format("Residual"), (4, 1, 1))
                run(NORM, (1, 1, 1))
                run(VECTORS[0], (4000, 1, 1))
                run(ARGMAX, (1, 1, 1))
                if feeds:
                    self.copy(2, 8, wait=True)
        self.wait()
        self.truth.update(steps=prompts * (tokens + 1), prefill=prompts, decode=prompts * tokens)

    def marks(self):
        r = self.random
        name = r.choice(("ProfilerStep#{}", "iter {}", "step_{}", "Iteration {}", "batch {}", "train_step {}", "frame {}", "{}: step",
                         "request {}"))
        first = r.choice((0, 1, 12, 1000))
        layers = r.random() < 0.5
        whole, self.index = self.layer, 0

        def layer(device, thread):
            self.marked(f"layer_{self.index % self.layers}", lambda: whole(device, thread))
            self.index += 1
        if layers:
            self.layer = layer
        self.set_up()
        if r.random() < 0.3:  # what came before the schedule began
            self.step()
        for i in range(self.steps):
            def body():
                self.step()
                if r.random() < 0.5:
                    self.marked("Optimizer.step#SGD.step", lambda: self.launch(OPTIMIZER, (320, 1, 1)))
            self.marked(name.format(first + i), body, device_copy=True)
        self.wait()

    def layer_marks(self):
        r = self.random
        name = r.choice(("layer_{}", "block {}", "layers.{}", "TransformerBlock_{}", "encoder.layer.{}", "h.{}"))
        whole, self.index = self.layer, 0

        def layer(device, thread):
            self.marked(name.format(self.index % self.layers), lambda: whole(device, thread))
            self.index += 1
        self.layer = layer
        self.plain()

    def graphs(self):
        """One launch of a captured graph for each step."""
        self.set_up()
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 50_000)
            c = self.ask("cudaGraphLaunch", self.vary(12_000))
            for _ in range(self.layers):
                for name, grid in self.per_layer:
                    self.launch(name, grid, graph=3, correlation=c)
            if self.waits:
                self.copy(2, 4000, wait=True)
            self.now += self.vary(self.gap) if self.gap else 0
        self.wait()

    def convolutional(self):
        r = self.random
        net = [(r.choice((CONV, WINOGRAD, POOL, ELEMENTWISE.format("Relu"), PRODUCTS[0])), (r.randrange(1, 700), 1, 1))
               for _ in range(r.randint(6, 160))]
        self.set_up()
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 600_000)
            for name, grid in net:
                self.launch(name, grid)
            if self.waits:
                self.copy(2, 4000, wait=True)
            self.now += self.vary(self.gap) if self.gap else 0
        self.wait()

    def loader(self):
        """A thread copies the next inputs while the network runs, at times that nothing rules."""
        r = self.random
        self.plain()
        begin, end = self.api[0][1], self.now
        for _ in range(self.steps):
            at = r.randrange(begin, end)
            self.correlation += 1
            self.api.append(("cudaMemcpyAsync", at, at + 2000, 2, self.correlation))
            self.copies.append((1, at + 3000, at + 90_000, 0, 13, self.correlation, 800_000))
            self.range.append(("fetch", at - 500, at + 5000, 2))
        if self.op is not None:
            for i in range(self.steps * 3):
                at = r.randrange(begin, end)
                self.op.append(("aten::copy_", at, at + 4000, 3))

    def perceptron(self):
        """Nothing but equal layers: copies and waits alone tell the steps."""
        self.layers = self.random.randint(1, 6)
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 50_000)
            for _ in range(self.layers):
                self.launch(PRODUCTS[0], (16, 4, 1))
                self.launch(ELEMENTWISE.format("Relu"), (64, 1, 1))
            self.copy(2, 1000, wait=True)
            self.now += self.vary(self.gap) if self.gap else 0

    # ---- recordings

    def times(self, start, end):
        return start + self.skew, end + self.skew

    def write(self, path):
        if path.endswith(".json"):
            self.write_trace(path)
        else:
            self.write_export(path)

    def write_trace(self, path):
        events = []

        def add(cat, name, start, end, pid, tid, **args):
            events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start / 1000, "dur": (end - start) / 1000,
                           "args": args})
        for name, a, b, thread, c in self.api:
            add("cuda_runtime", name, a, b, PROCESS, thread, correlation=c)
        for name, a, b, device, stream, c, grid, graph in self.kernel:
            a, b = self.times(a, b)
            add("kernel", name, a, b, device, stream, device=device, stream=stream, correlation=c, grid=grid, block=(128, 1, 1),
                **({"graph id": graph} if graph else {}))
        for kind, a, b, device, stream, c, size in self.copies:
            a, b = self.times(a, b)
            add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)" if kind == 1 else "Memcpy DtoH (Device -> Pageable)", a, b, device, stream,
                device=device, stream=stream, correlation=c, bytes=size)
        for name, a, b, thread in self.range:
            add("user_annotation", name, a, b, PROCESS, thread)
        for name, a, b, thread in self.op:
            add("cpu_op", name, a, b, PROCESS, thread)
        for name, a, b, device, stream in self.device_range:
            a, b = self.times(a, b)
            add("gpu_user_annotation", name, a, b, device, stream)
        self.random.shuffle(events)
        with open(path, "w") as f:
            json.dump({"schemaVersion": 1, "traceEvents": events}, f)

    def write_export(self, path):
        db = sqlite3.connect(path)
        ids = {}

        def string(text):
            return ids.setdefault(text, len(ids) + 1)
        process = PROCESS << 24
        for text in TABLES:
            db.execute(text)
        db.executemany("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?,?,0,?,?,?,0)",
                       [(a, b, process | thread, c, string(name + "_v7000")) for name, a, b, thread, c in self.api])
        db.executemany("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?,?,?,1,?,?,?,?,?,?,?,?,128,1,1,16,0,0,?)",
                       [(*self.times(a, b), device, stream, c, process, string(name), string(name), *grid, graph or None)
                        for name, a, b, device, stream, c, grid, graph in self.kernel])
        db.executemany("insert into CUPTI_ACTIVITY_KIND_MEMCPY values (?,?,?,1,?,?,?,?,?,0,2)",
                       [(*self.times(a, b), device, stream, c, process, size, kind) for kind, a, b, device, stream, c, size in self.copies])
        db.executemany("insert into NVTX_EVENTS values (?,?,59,?,?)",
                       [(a, b, process | thread, name) for name, a, b, thread in self.range])
        db.executemany("insert into StringIds values (?,?)", [(i, text) for text, i in ids.items()])
        db.commit()
        db.close()
