"""Programs that never ran, third part: what servers, large models on small devices and training in parts record. It was written before
anybody looked at how they are cut."""
from programs import ARGMAX, ATTENTION, CONV, ELEMENTWISE, EMBEDDING, NORM, POOL, PRODUCTS, SOFTMAX, SPLIT, VECTORS, WINOGRAD
from programs_today import ALL_REDUCE, LOSS, SAMPLE, TOP, Today

CLASSES = ("offloaded", "guided", "server", "routed", "one forward one back", "host optimizer", "recomputed", "sized", "seen and told",
           "adversaries", "cascade", "parallel", "clipped", "embedder")
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


class Served(Today):
    def __init__(self, seed, kind=None):
        super().__init__(seed, kind or CLASSES[seed % len(CLASSES)])

    def offloaded(self):
        """Weights lie in the host's memory: before each layer they are copied, at once or ahead on a stream of their own."""
        r = self.random
        self.layers, self.steps = r.randint(4, 40), r.choice((1, 1, 2, 3, r.randint(4, 12)))
        sizes = [r.choice((8192, 16384, 50_000_000, 67_000_000, 168_000_000)) for _ in range(r.choice((1, 4, 9)))]
        ahead, bias, result = r.random() < 0.5, r.random() < 0.3, r.random() < 0.6
        window = r.random() < 0.3  # the recording was begun within the first step

        def weights(stream):
            for size in sizes:
                self.copy(1, size, stream=stream)
        for _ in range(self.steps):
            self.copy(1, 4096)
            self.embed()
            if ahead:
                weights(13)
            for i in range(self.layers):
                if not ahead:
                    weights(7)
                elif i + 1 < self.layers:
                    weights(13)
                    self.free[0, 7] = max(self.free.get((0, 7), 0), self.free[0, 13])
                if bias:  # positions are looked up in each layer
                    self.embed()
                self.layer()
                if window and i == self.layers // 8:
                    self.api, self.kernel, self.copies, window = [], [], [], False
                    self.truth["unknown" if self.steps == 1 else "open"] = True
                    self.truth["steps"] = (self.steps - 1, self.steps)
            if self.steps > 1 or not self.truth.get("unknown"):
                self.head()
                if result:
                    self.copy(2, 65536, wait=True)
            self.rest()
        self.wait()

    def guided(self):
        """Diffusion where each step runs the network with the prompt and without it; two prompts are encoded before."""
        r = self.random
        self.steps, denoise = r.randint(1, 5), r.choice((4, 20, 28, 50))
        unet, decoder, twice = self.network(r.randint(30, 160)), self.network(r.randint(10, 60)), r.random() < 0.7
        self.layers, scheduler = r.randint(4, 24), r.randint(3, 9)
        self.set_up()
        for _ in range(self.steps):
            for _ in range(2):
                self.copy(1, 616)
                self.embed()
                for _ in range(self.layers):
                    self.layer()
                self.launch(NORM, (77, 1, 1))
            for _ in range(denoise):
                for _ in range(2 if twice else 1):
                    self.launch(ELEMENTWISE.format("Cos"), (2, 1, 1))
                    self.run(unet)
                for k in range(scheduler):
                    self.launch(ELEMENTWISE.format(("Sub", "Mul", "Add")[k % 3]), (16, 1, 1))
            self.run(decoder)
            self.copy(2, 786432, wait=True)
            self.rest()
        self.wait()
        self.truth.update(steps=(self.steps, self.steps * denoise))

    def server(self):
        """Continuous batching: requests come and go; tokens of many run in one step, as a captured graph if nothing but tokens does; new
        prompts run in parts beside them."""
        r = self.random
        self.layers, self.steps = r.randint(4, 32), r.randint(8, 60)
        graphs, running, feeds = r.random() < 0.5, r.randint(1, 20), r.randint(2, 5)
        self.set_up()
        for _ in range(self.steps):
            prompt = r.choice((0, 0, 0, 128, 512, 2048))
            running = max(1, running + r.randint(-3, 3) + (prompt > 0))
            tokens = prompt + running
            graph = graphs and not prompt
            padded = 1 << (running - 1).bit_length() if graph else tokens
            for size in (8, 8, 4, 64, 4)[:feeds]:
                self.copy(1, size * tokens)
            c = self.ask("cudaGraphLaunch", self.vary(9000)) if graph else None

            def run(name, grid):
                self.launch(name, grid, graph=5 + padded if graph else 0, correlation=c)
            large = PRODUCTS[2:] if tokens > 200 else PRODUCTS[:2]
            run(EMBEDDING, (padded, 1, 1))
            for _ in range(self.layers):
                run(NORM, (padded, 1, 1))
                run(large[0], (1 + padded // 16, 24, 1))
                if prompt:
                    run(ATTENTION, (prompt // 64, 8, 1))
                run(SPLIT, (running, 8, 1))
                run(large[1], (1 + padded // 16, 8, 1))
                run(NORM, (padded, 1, 1))
                run(large[0], (1 + padded // 16, 86, 1))
                run(ELEMENTWISE.format("Silu"), (padded, 1, 1))
                run(large[1], (1 + padded // 16, 9, 1))
            run(NORM, (padded, 1, 1))
            run(PRODUCTS[0], (500, 1 + running // 16, 1))
            self.launch(SAMPLE, (running, 1, 1))
            if r.random() < 0.3:  # somebody asks for the likeliest ones
                self.launch(TOP, (running, 1, 1))
            self.copy(2, 8 * running, wait=True)
            self.now += r.choice((0, 50_000, 400_000)) + r.randrange(10_000)
        self.wait()

    def routed(self):
        """Each second layer has experts; how many tokens go to which is told to the host, which waits for it in each such layer."""
        r = self.random
        self.layers, experts, told = r.randint(2, 16), r.choice((4, 8, 16)), r.random() < 0.6
        self.set_up()
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 8192)
            self.embed()
            for i in range(self.layers):
                self.layer()
                if i % 2:
                    self.launch(SOFTMAX, (64, 1, 1))
                    self.launch(TOP, (64, 1, 1))
                    if told:
                        self.copy(2, 8 * experts, wait=True)
                    for _ in range(r.randint(1, experts)):
                        grid = r.randint(1, 64)
                        self.launch(PRODUCTS[2] if grid > 8 else PRODUCTS[1], (grid, 2, 1))
                        self.launch(ELEMENTWISE.format("Silu"), (grid, 1, 1))
                        self.launch(PRODUCTS[3], (grid, 1, 1))
                    self.launch(ELEMENTWISE.format("Scatter"), (64, 1, 1))
            self.head()
            self.answer(4000)
        self.wait()

    def one_forward_one_back(self):
        """A pipeline of two devices, a thread for each: some parts go forward before the first comes back, then they take turns."""
        r = self.random
        parts, self.steps, self.layers = r.randint(2, 8), min(max(2, self.steps), 20), r.randint(1, 10)
        self.devices = 2
        self.set_up()
        for _ in range(self.steps):
            begin = self.now
            for d in range(2):
                self.now = begin
                order = ["f"] * min(parts, 2 - d) + ["b", "f"] * max(0, parts - 2 + d)
                for what in order + ["b"] * (parts - order.count("b")):
                    thread = d + 1
                    if what == "f":
                        if d:
                            self.launch(SEND, (8, 1, 1), device=1, stream=20, thread=2)
                        else:
                            self.copy(1, 40_000)
                            self.embed()
                        for _ in range(self.layers):
                            self.layer(d, thread)
                        if d:
                            self.head(1, 2)
                            self.launch(LOSS, (1, 1, 1), device=1, thread=2)
                        else:
                            self.launch(SEND, (8, 1, 1), stream=20)
                    else:
                        self.way_back(self.layers, d, thread)
                        self.launch(SEND, (8, 1, 1), device=d, stream=20, thread=thread)
                self.update(3, d, thread)
                if d and self.waits:
                    self.copy(2, 4, 1, thread=2, wait=True)
            self.rest()
        self.wait()
        self.wait(1, 2)
        self.truth["devices"] = 2

    def host_optimizer(self):
        """Gradients go to the host layer by layer, which updates the weights and copies them back."""
        r = self.random
        self.layers, self.steps = r.randint(3, 24), r.randint(2, 20)
        size = r.choice((2_000_000, 30_000_000))
        for _ in range(self.steps):
            self.copy(1, 8192)
            self.forward()
            self.launch(LOSS, (1, 1, 1))
            for _ in range(self.layers):
                self.way_back(1)
                self.copy(2, size, stream=13)
            self.copy(2, 4, wait=True)
            self.now += 20_000_000
            for _ in range(self.layers):
                self.copy(1, size)
        self.wait()

    def recomputed(self):
        """Training that keeps no activations: on the way back each layer runs forward again."""
        self.layers = self.random.randint(2, 24)
        every = self.random.choice((1, 1, 4))
        self.set_up()
        for i in range(self.steps):
            if self.inputs:
                self.copy(1, 40_000)
            self.forward()
            self.launch(LOSS, (1, 1, 1))
            for _ in range(self.layers):
                self.layer()
                self.way_back(1)
            self.update(1 + self.layers // 4)
            if self.waits and i % every == every - 1:  # the loss is printed now and then
                self.copy(2, 4, wait=True)
            self.rest()
        self.wait()

    def sized(self):
        """Images of many sizes: other grids, and a library that chooses other kernels for some."""
        r = self.random
        net = [r.choice((CONV, POOL, ELEMENTWISE.format("Relu"), NORM, ELEMENTWISE.format("Add"))) for _ in range(r.randint(20, 120))]
        self.set_up()
        for _ in range(self.steps):
            edge = r.choice((224, 256, 320, 480, 640, 800))
            self.copy(1, 12 * edge * edge)
            for i, name in enumerate(net):
                fast = name == CONV and (edge > 300) == (i % 3 > 0)
                if fast and edge > 500:
                    self.launch(ELEMENTWISE.format("NchwToNhwc"), (edge, 1, 1))
                self.launch(WINOGRAD if fast else name, (1 + edge * edge // 256 // (1 + i // 8), 1, 1))
            self.answer(4000)
        self.wait()

    def seen_and_told(self):
        """A network for images runs once, its result is a part of the prompt, then tokens come one by one."""
        r = self.random
        asked, tower, decoder = r.randint(1, 3), r.randint(4, 24), r.randint(4, 32)
        tokens = [r.randint(6, 40) for _ in range(asked)]
        self.set_up()
        for n in tokens:
            self.copy(1, 600_000)
            self.launch(CONV, (256, 1, 1))
            for _ in range(tower):
                self.layer()
            self.launch(PRODUCTS[3], (36, 9, 1))
            self.copy(1, 8 * 700)
            self.transformer(decoder, 700, 700, PRODUCTS)
            self.copy(2, 8, wait=True)
            for t in range(n):
                self.copy(1, 8)
                self.transformer(decoder, 1, 700 + t, VECTORS)
                self.copy(2, 8, wait=True)
        self.wait()
        self.truth.update(steps=(sum(tokens), sum(tokens) + asked, sum(tokens) + 2 * asked))

    def adversaries(self):
        """One network makes images, another tells them from real ones: each is updated once in a step."""
        r = self.random
        maker, judge, self.steps = self.network(r.randint(8, 60)), self.network(r.randint(8, 60)), r.randint(3, 30)
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 300_000)
            self.run(maker)
            for _ in range(2):
                self.run(judge)
            self.run([(n + "_bwd", g) for n, g in reversed(judge)])
            self.update(2)
            self.run(maker)
            self.run(judge)
            for net in judge, maker:
                self.run([(n + "_bwd", g) for n, g in reversed(net)])
            self.update(3)
            self.answer(8)
        self.wait()

    def cascade(self):
        """A network finds things in a frame, another looks at each: how many there are varies."""
        r = self.random
        finder, looker = self.network(r.randint(20, 120)), self.network(r.randint(6, 40))
        most = r.choice((2, 5, 12))
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 1_200_000)
            self.run(finder)
            self.launch(TOP, (9, 1, 1))
            self.copy(2, 400, wait=True)
            for _ in range(r.randint(1, most)):
                self.run(looker)
            self.copy(2, 4000, wait=True)
            self.rest()
        self.wait()

    def parallel(self):
        """Layers are split over devices of several threads, sums go over all twice in each layer; tokens come one by one."""
        r = self.random
        self.devices, self.layers, self.steps = r.choice((2, 4)), r.randint(2, 16), min(self.steps, 16)
        self.set_up()
        begin = self.now
        for d in range(self.devices):
            self.now = begin + r.randrange(20_000)
            for t in range(self.steps):
                self.copy(1, 8, d, thread=d + 1)
                self.embed(d, d + 1)
                for _ in range(self.layers):
                    for name, grid in ((NORM, 1), (VECTORS[0], 99), (SPLIT, 1 + (500 + t) // 64), (VECTORS[1], 50)):
                        self.launch(name, (grid, 1, 1), device=d, thread=d + 1)
                    self.launch(ALL_REDUCE, (4, 1, 1), device=d, thread=d + 1)
                    for name, grid in ((NORM, 1), (VECTORS[0], 300), (ELEMENTWISE.format("Silu"), 9), (VECTORS[1], 150)):
                        self.launch(name, (grid, 1, 1), device=d, thread=d + 1)
                    self.launch(ALL_REDUCE, (4, 1, 1), device=d, thread=d + 1)
                self.head(d, d + 1)
                self.launch(ARGMAX, (1, 1, 1), device=d, thread=d + 1)
                self.copy(2, 8, d, thread=d + 1, wait=True)
        self.truth["devices"] = self.devices

    def clipped(self):
        """Training in 16 bits: gradients are looked through for what is not finite, and now and then a step is left out."""
        r = self.random
        self.layers, self.steps = r.randint(2, 24), r.randint(4, 30)
        self.set_up()
        for i in range(self.steps):
            self.copy(1, 40_000)
            self.forward()
            self.launch(LOSS, (1, 1, 1))
            self.way_back(self.layers)
            self.launch("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1>, UnscaleFunctor>()", (320, 1, 1))
            self.copy(2, 4, wait=True)
            self.launch("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor>()", (320, 1, 1))
            if i < 1 or r.random() > 0.1:
                self.update(1 + self.layers // 4)
            self.rest()
        self.wait()

    def embedder(self):
        """Texts of any length become vectors, as many at once as fit; sometimes a list of candidates is sorted by another network."""
        r = self.random
        self.layers, other = r.randint(2, 24), r.random() < 0.3
        self.set_up()
        count = 0
        for _ in range(self.steps):
            length = r.randint(8, 512)
            for _ in range(3):
                self.copy(1, 8 * length)
            self.transformer(self.layers, length, length, PRODUCTS[:2], head=False)
            self.launch(NORM, (length, 1, 1))
            self.launch(ELEMENTWISE.format("Pool"), (length, 1, 1))
            self.copy(2, 3072, wait=True)
            count += 1
            if other and r.random() < 0.3:
                for _ in range(3):
                    self.copy(1, 8 * 256)
                self.transformer(self.layers + 2, 256, 256, PRODUCTS[2:], head=False)
                self.launch(SOFTMAX, (20, 1, 1))
                self.copy(2, 80, wait=True)
                count += 1
        self.wait()
        self.truth.update(steps=(count, self.steps))
