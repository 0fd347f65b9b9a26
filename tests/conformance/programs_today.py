"""More programs that never ran: what people run today. Each class is a way in which a step is more, or less, than one pass of a network."""
from programs import ARGMAX, ATTENTION, CONV, ELEMENTWISE, EMBEDDING, NORM, PRODUCTS, SOFTMAX, SPLIT, VECTORS, Program

CLASSES = ("diffusion", "speculative", "pipeline", "accumulated", "experts", "pieces", "turns", "buckets", "dropped", "recurrent",
           "autograd", "bare", "bare rests", "modules", "evaluated", "beams")
ALL_TO_ALL = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TOP = "void at::native::sbtopk::gatherTopK<c10::Half, unsigned int, 2, false>(int)"
RESIZE = "void at::native::(anonymous namespace)::upsample_nearest2d_out_frame<c10::Half>(int)"
LOSS = "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, int)"
SAMPLE = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, SoftMaxForwardEpilogue>(float*, int)"
CELL = "void at::native::(anonymous namespace)::lstm_cell_forward<float, float, int, 1>(int)"


class Today(Program):
    def __init__(self, seed, kind=None):
        super().__init__(seed, kind or CLASSES[seed % len(CLASSES)])

    def network(self, n):
        """A list of kernels with shapes: a network of convolutions, attention and norms."""
        r = self.random
        pool = (CONV, PRODUCTS[1], NORM, ELEMENTWISE.format("Silu"), ELEMENTWISE.format("Add"), ATTENTION, SOFTMAX)
        return [(r.choice(pool), (r.randrange(1, 300), r.choice((1, 2, 8)), 1)) for _ in range(n)]

    def run(self, kernels, **more):
        for name, grid in kernels:
            self.launch(name, grid, **more)

    def diffusion(self):
        """A prompt is encoded, an image is denoised in many passes of one network, and decoded."""
        r = self.random
        self.steps, denoise = r.randint(1, 6), r.choice((4, 20, 20, 25, 50))
        unet, decoder, after = self.network(r.randint(30, 160)), self.network(r.randint(10, 60)), r.randint(2, 7)
        self.layers = r.randint(4, 24)
        skips = r.random() < 0.4  # the schedule's values come from the host, one small copy for each pass
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 616)
            self.embed()
            for _ in range(self.layers):
                self.layer()
            self.launch(NORM, (77, 1, 1))
            for _ in range(denoise):
                if skips:
                    self.copy(1, 8)
                self.launch(ELEMENTWISE.format("Cos"), (2, 1, 1))
                self.launch(PRODUCTS[2], (2, 2, 1))
                self.run(unet)
                for k in range(after):
                    self.launch(ELEMENTWISE.format(("Add", "Mul", "Sub", "Div")[k % 4]), (16, 1, 1))
            self.run(decoder)
            self.launch(RESIZE, (512, 1, 1))
            self.launch(CONV, (700, 1, 1))
            self.copy(2, 786432, wait=True)
            self.rest()
        self.wait()
        self.truth["inner"] = denoise * self.steps

    def transformer(self, layers, length, past, products, head=True, sample=ARGMAX):
        self.launch(EMBEDDING, (length, 1, 1))
        for _ in range(layers):
            self.launch(NORM, (length, 1, 1))
            self.launch(products[0], (max(1, length // 16), 24, 1))
            self.launch(SPLIT if length < 16 else ATTENTION, (1, 1 + past // 64, 8))
            self.launch(products[1], (max(1, length // 16), 8, 1))
            self.launch(products[0], (max(1, length // 16), 43, 1))
            self.launch(ELEMENTWISE.format("Silu"), (length * 2, 1, 1))
            self.launch(products[1], (max(1, length // 16), 16, 1))
            self.launch(ELEMENTWISE.format("Residual"), (length, 1, 1))
        if head:
            self.launch(NORM, (length, 1, 1))
            self.launch(products[0], (500, 1, 1))
            self.launch(sample, (1, 1, 1))

    def speculative(self):
        """A small model proposes some tokens, one by one; the large one checks all of them in a single pass."""
        r = self.random
        rounds, k, small, large = r.randint(4, 30), r.randint(2, 6), r.randint(2, 8), r.randint(10, 40)
        past, feeds = r.choice((100, 700)), r.random() < 0.3
        self.set_up()
        for layers in small, large:
            self.copy(1, 8 * past)
            self.transformer(layers, past, past, PRODUCTS)
            self.copy(2, 8, wait=True)
        for _ in range(rounds):
            for i in range(k):
                if feeds:
                    self.copy(1, 8)
                self.transformer(small, 1, past + i, VECTORS)
                if feeds:
                    self.copy(2, 8, wait=True)
            self.copy(1, 8 * (k + 1))
            self.transformer(large, k + 1, past + k, PRODUCTS[1:3], sample=SAMPLE)
            self.launch(TOP, (k, 1, 1))
            self.copy(2, 8 * k, wait=True)
            past += r.randint(1, k + 1)
        self.wait()
        self.truth.update(steps=(rounds, rounds + 1, rounds + 2))

    def pipeline(self):
        """Stages of a model on four devices; a batch goes through them in small parts."""
        r = self.random
        parts, stages, training = r.randint(1, 8), r.choice((2, 4, 4)), r.random() < 0.6
        self.devices, self.steps, self.layers = stages, min(max(2, self.steps), 25), r.randint(1, 10)
        self.set_up()
        for _ in range(self.steps):
            for part in range(parts):
                self.copy(1, 40_000)
                for d in range(stages):
                    if not d:
                        self.embed(d)
                    for _ in range(self.layers):
                        self.layer(d)
                    if d + 1 < stages:
                        self.copy(10, 65536, d)
                        self.free[d + 1, 7] = max(self.free.get((d + 1, 7), 0), self.free[d, 7])
                    else:
                        self.head(d)
                        if training:
                            self.launch(LOSS, (1, 1, 1), device=d)
            if training:
                for part in range(parts):
                    for d in reversed(range(stages)):
                        self.way_back(self.layers, d)
                        if d:
                            self.copy(10, 65536, d)
                for d in range(stages):
                    self.update(2, d)
            if self.waits or not training:
                self.copy(2, 4, stages - 1, wait=True)
            self.rest()
        self.wait(stages - 1)
        if not training:
            self.truth.update(steps=(self.steps, self.steps * parts))
        self.truth["devices"] = stages

    def accumulated(self):
        """Four small steps, forward and backward, before the weights are updated."""
        k = self.random.choice((4, 4, 8))
        self.set_up()
        self.steps, self.layers = max(2, self.steps // 3), min(self.layers, 16)
        for _ in range(self.steps):
            for _ in range(k):
                self.copy(1, 40_000)
                self.forward()
                self.launch(LOSS, (1, 1, 1))
                self.way_back(self.layers)
                if self.waits:
                    self.copy(2, 4, wait=True)
            self.update(1 + self.layers // 4)
        self.wait()
        self.truth["inner"] = k * self.steps

    def experts(self):
        """A router sends tokens to experts on other devices: how many of them have work here is chance."""
        r = self.random
        most = r.randint(4, 16)
        self.layers = r.randint(2, 24)
        self.set_up()
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 8192)
            self.embed()
            for _ in range(self.layers):
                self.launch(NORM, (64, 1, 1))
                self.launch(PRODUCTS[0], (24, 4, 1))
                self.launch(ATTENTION, (8, 8, 1))
                self.launch(PRODUCTS[1], (8, 4, 1))
                self.launch(SOFTMAX, (64, 1, 1))
                self.launch(TOP, (64, 1, 1))
                self.launch(ALL_TO_ALL, (16, 1, 1), stream=20)
                for _ in range(r.randint(1, most)):
                    grid = r.randint(1, 64)
                    self.launch(PRODUCTS[2], (grid, 2, 1))
                    self.launch(ELEMENTWISE.format("Silu"), (grid, 1, 1))
                    self.launch(PRODUCTS[3], (grid, 1, 1))
                self.launch(ALL_TO_ALL, (16, 1, 1), stream=20)
                self.launch(ELEMENTWISE.format("Residual"), (64, 1, 1))
            self.head()
            self.answer(4000)
        self.wait()

    def pieces(self):
        """Each layer is a captured graph, with attention between them."""
        self.set_up()
        self.layers = max(2, self.layers)
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 50_000)
            self.embed()
            for _ in range(self.layers):
                c = self.ask("cudaGraphLaunch", self.vary(7000))
                for name, grid in self.per_layer:
                    self.launch(name, grid, graph=3, correlation=c)
                self.launch(SPLIT, (1, 9, 8))
            self.head()
            self.answer(4000)
        self.wait()

    def turns(self):
        """Two networks, one after the other, in each step."""
        r = self.random
        a, b = self.network(r.randint(8, 120)), self.network(r.randint(8, 120))
        both = r.random() < 0.5
        self.set_up()
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 600_000)
            self.run(a)
            if both and self.waits:
                self.copy(2, 4000, wait=True)
            if both and self.inputs:
                self.copy(1, 3_000)
            self.run(b)
            self.answer(4000)
        self.wait()

    def buckets(self):
        """Batches of different lengths: other sizes, and from some lengths on other kernels."""
        r = self.random
        self.layers = r.randint(1, 24)
        self.set_up()
        for _ in range(self.steps):
            length = r.choice((32, 64, 128, 256, 512))
            if self.inputs:
                self.copy(1, 8 * length)
            self.transformer(self.layers, length, length, PRODUCTS[:2] if length < 200 else PRODUCTS[2:])
            self.answer(4000)
        self.wait()

    def dropped(self):
        """Layers are left out by chance, in training."""
        r = self.random
        share = r.choice((0.05, 0.1, 0.2))
        self.layers = r.randint(6, 40)
        self.set_up()
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 40_000)
            self.embed()
            there = [r.random() > share for _ in range(self.layers)]
            for one in there:
                if one:
                    self.layer()
            self.head()
            self.launch(LOSS, (1, 1, 1))
            for one in there:
                if one:
                    self.way_back(1)
            self.update(2)
            self.rest()
        self.wait()

    def recurrent(self):
        """Time steps of a recurrent network within each pass."""
        r = self.random
        times, layers = r.randint(5, 60), r.randint(1, 3)
        self.set_up()
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 40_000)
            self.embed()
            for _ in range(layers):
                self.launch(PRODUCTS[0], (64, 4, 1))
                for _ in range(times):
                    self.launch(PRODUCTS[1], (4, 4, 1))
                    self.launch(CELL, (4, 1, 1))
            self.head()
            self.answer(4000)
        self.wait()

    def autograd(self):
        """The backward pass is asked for by a thread of its own; gradients are summed up over devices on another stream meanwhile."""
        r = self.random
        self.layers = r.randint(2, 24)
        every = r.randint(1, 4)
        self.set_up()
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 40_000)
            self.forward()
            self.launch(LOSS, (1, 1, 1))
            for i in range(self.layers):
                self.way_back(1, thread=2)
                if i % every == every - 1:
                    self.launch(ALL_REDUCE, (24, 1, 1), stream=20, thread=2)
            self.update(1 + self.layers // 4)
            self.answer(4)
        self.wait()

    def body(self, steps):
        for i in range(steps):
            for _ in range(self.layers):
                self.layer()
            if i + 1 < steps:
                self.rest()

    def bare(self):
        """Equal layers and nothing else: no embedding, no head, no copies, no pause. Nobody can tell steps from layers."""
        self.gap, self.jitter = 0, self.random.choice((0.02, 0.1))
        self.layers = self.random.randint(2, 32)
        self.steps = self.random.choice((1, self.steps))
        self.body(self.steps)
        self.wait()
        self.truth["unknown"] = True

    def bare_rests(self):
        """The same, and the host does something else for a moment between two passes."""
        self.gap, self.jitter = self.random.choice((30_000, 100_000)), self.random.choice((0, 0.02, 0.1))
        self.launch_ns, self.layers, self.steps = 4000, self.random.randint(2, 32), max(3, self.steps)
        self.body(self.steps)
        self.wait()

    def modules(self):
        """The same without a pause, and PyTorch tells which modules were called: an encoder, or its layers by a loop of the program."""
        whole, self.index, by_hand = self.layer, 0, self.random.random() < 0.3
        self.gap, self.layers, self.steps = 0, self.random.randint(2, 24), self.random.choice((1, 2, self.steps))

        def layer(device=0, thread=1):
            self.marked(f"nn.Module: Block_{self.index % self.layers}", lambda: whole(device, thread))
            self.index += 1
        self.layer = layer
        for _ in range(self.steps):
            if by_hand:
                self.body(1)
            else:
                self.marked("nn.Module: Encoder_0", lambda: self.body(1))
        self.wait()

    def evaluated(self):
        """Training, and after each so many steps a look at other data without a backward pass."""
        r = self.random
        every, looks = r.randint(3, 10), r.randint(1, 4)
        self.steps = max(every, self.steps)
        self.layers = r.randint(2, 16)
        self.set_up()
        for i in range(self.steps):
            self.copy(1, 40_000)
            self.forward()
            self.way_back(self.layers)
            self.update(2)
            if i % every == every - 1:
                for _ in range(looks):
                    self.copy(1, 40_000)
                    self.forward()
                    self.copy(2, 4, wait=True)
        self.wait()
        n = self.steps
        self.truth.update(steps=(n, n + n // every * looks))

    def beams(self):
        """An encoder once, then tokens of several candidates: the cache is put into another order after each."""
        r = self.random
        tokens, encoder, decoder = r.randint(6, 40), r.randint(2, 24), r.randint(2, 24)
        self.set_up()
        self.copy(1, 480_000)
        self.run(((CONV, (300, 1, 1)), (CONV, (150, 2, 1))))
        for _ in range(encoder):
            self.layer()
        self.launch(NORM, (1500, 1, 1))
        for t in range(tokens):
            self.transformer(decoder, 5, t, VECTORS, sample=SAMPLE)
            self.launch(TOP, (5, 1, 1))
            for _ in range(2 * decoder):
                self.launch(EMBEDDING, (5, 40, 1))
            self.copy(2, 40, wait=True)
        self.wait()
        self.truth.update(steps=(tokens, tokens + 1))
