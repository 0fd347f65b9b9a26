"""Programs that never ran, fourth part: adapters that come and go, graphs that are replayed, two networks in turns, batches that are loaded
ahead. It was written before anybody looked at how they are cut."""
from programs import ARGMAX, ATTENTION, CONV, ELEMENTWISE, EMBEDDING, NORM, PRODUCTS
from programs_today import LOSS, Today

CLASSES = ("adapters", "remainder", "other batch", "replayed", "two players", "distilled", "ahead", "chunked", "on the host", "ensemble")
SHRINK = "_sgmv_shrink_kernel_0d1d2d3d4d5"
EXPAND = "_sgmv_expand_slice_kernel_0d1d2d3d4d5"
OTHER_OPTIMIZER = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<3>, FusedSgdMathFunctor<float, 3> >()"


class Tuned(Today):
    def __init__(self, seed, kind=None):
        super().__init__(seed, kind or CLASSES[seed % len(CLASSES)])

    def adapters(self):
        """A language model serves requests, some of them with an adapter: two more kernels behind each product."""
        r = self.random
        self.layers, self.steps = r.randint(2, 30), r.randint(6, 40)
        with_adapter = False
        self.set_up()
        for _ in range(self.steps):
            if r.random() < 0.3:
                with_adapter = not with_adapter
            self.copy(1, 64)
            self.embed()
            for _ in range(self.layers):
                for name, grid in self.per_layer:
                    self.launch(name, grid)
                    if with_adapter and name in PRODUCTS:
                        self.launch(SHRINK, (8, 4, 1))
                        self.launch(EXPAND, (8, 16, 1))
            self.head()
            self.launch(ARGMAX, (1, 1, 1))
            self.copy(2, 8, wait=True)
            self.rest()
        self.wait()

    def remainder(self):
        """Gradients of k batches are summed up; an epoch ends with fewer of them."""
        r = self.random
        k, epochs, each = r.randint(2, 5), r.randint(1, 3), r.randint(2, 6)
        self.layers, self.steps, batches = r.randint(2, 16), epochs * (each + 1), 0
        rest = r.randint(1, k - 1)
        self.set_up()
        for _ in range(epochs):
            for update in range(each + 1):
                for _ in range(k if update < each else rest):
                    self.copy(1, 100_000)
                    self.forward()
                    self.launch(LOSS, (1, 1, 1))
                    self.way_back(self.layers)
                    batches += 1
                self.update(1 + self.layers // 3)
            if r.random() < 0.5:
                self.copy(2, 8, wait=True)
        self.wait()
        self.truth["inner"] = batches

    def other_batch(self):
        """Warm-up of another batch: the same kernels, other grids, other times."""
        r = self.random
        self.steps = r.randint(4, 40)
        warm, times = r.randint(1, 3), r.choice((2, 4, 8))
        plain = self.per_layer
        self.set_up()
        self.per_layer = [(n, (max(1, g[0] // times), g[1], g[2])) for n, g in plain]
        for _ in range(warm):
            self.step()
        self.wait()
        self.per_layer = plain
        for _ in range(self.steps):
            self.step()
        self.wait()
        self.truth["steps"] = (self.steps, self.steps + warm)

    def replayed(self):
        """Compiled: some steps run kernel by kernel, then each is one to three graphs with single kernels between."""
        r = self.random
        warm, parts, self.steps = r.randint(1, 4), r.randint(1, 3), r.randint(4, 50)
        pieces = [self.network(r.randint(8, 120)) for _ in range(parts)]
        feeds = r.random() < 0.8
        self.set_up()
        for step in range(warm + self.steps):
            if feeds:
                self.copy(1, 600_000)
            for g, piece in enumerate(pieces):
                c = self.ask("cudaGraphLaunch", self.vary(9000)) if step >= warm else None
                for name, grid in piece:
                    self.launch(name, grid, graph=g + 1 if c else 0, correlation=c)
                if g + 1 < parts:
                    self.launch(ELEMENTWISE.format("Copy"), (4, 1, 1))
            if self.waits or not feeds:
                self.copy(2, 4000, wait=True)
            self.rest()
        self.wait()
        self.truth["steps"] = (self.steps, self.steps + warm)

    def two_players(self):
        """A network is trained against another one: each step updates both, by an optimizer of its own."""
        r = self.random
        self.steps = r.randint(3, 25)
        makes, judges = self.network(r.randint(10, 70)), self.network(r.randint(10, 60))
        twice = r.choice((1, 1, 2, 5))  # the judge is updated more often
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 800_000)
            for _ in range(twice):
                self.run(makes)
                self.run(judges)
                self.launch(LOSS, (1, 1, 1))
                self.run([(n + "_bwd", g) for n, g in reversed(judges)])
                self.update(r.choice((2, 2, 3)))
            self.run(makes)
            self.run(judges)
            self.launch(LOSS, (1, 1, 1))
            self.run([(n + "_bwd", g) for n, g in reversed(judges)])
            self.run([(n + "_bwd", g) for n, g in reversed(makes)])
            for _ in range(3):
                self.launch(OTHER_OPTIMIZER, (320, 1, 1))
            self.rest()
        self.wait()
        self.truth["inner"] = (twice + 1) * self.steps

    def distilled(self):
        """A large network looks at each batch first, then a small one is trained."""
        r = self.random
        self.steps = r.randint(3, 30)
        self.layers, small = r.randint(4, 40), r.randint(1, 6)
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 800_000)
            self.forward()
            self.embed()
            for _ in range(small):
                self.layer()
            self.head()
            self.launch(LOSS, (1, 1, 1))
            self.way_back(small)
            self.update(1 + small)
            if self.waits:
                self.copy(2, 8, wait=True)
            self.rest()
        self.wait()

    def ahead(self):
        """The next batch is copied while this one is worked on, by a thread of its own and on a stream of its own."""
        r = self.random
        self.steps, split = r.randint(3, 40), r.random()
        pictures, thread = r.choice((1, 1, 2)), r.choice((1, 2))
        self.set_up()
        for _ in range(pictures):
            self.copy(1, 600_000, stream=13, thread=thread)
        for step in range(self.steps):
            self.embed()
            for layer in range(self.layers):
                if layer == int(split * self.layers) and step + 1 < self.steps:
                    for _ in range(pictures):
                        self.copy(1, 600_000, stream=13, thread=thread)
                self.layer()
            self.head()
            self.answer(4000)
        self.wait()

    def chunked(self):
        """A server: each step has tokens of running requests, and a chunk of a prompt where one came. Answers are fetched each step."""
        r = self.random
        self.layers, self.steps, past = r.randint(2, 24), r.randint(8, 50), r.randint(50, 900)
        attends = r.choice(("both", "own"))  # one kernel for all tokens, or one for chunks and one for tokens
        self.set_up()
        waiting = 0
        for _ in range(self.steps):
            waiting += r.choice((0, 0, 0, 300, 2000))
            chunk, running = min(waiting, 512), r.randint(1, 30)
            waiting -= chunk
            rows = chunk + running
            self.copy(1, 8 * rows)
            self.copy(1, 4 * running)
            self.launch(EMBEDDING, (rows, 1, 1))
            for _ in range(self.layers):
                self.launch(NORM, (rows, 1, 1))
                self.launch(PRODUCTS[0 if rows > 64 else 1], (max(1, rows // 16), 24, 1))
                if chunk or attends == "both":
                    self.launch(ATTENTION, (max(1, rows // 64), 8, 1))
                if attends == "own":
                    self.launch("void paged_attention_v2_kernel<__half, 128, 16, 128, 512>(float*)", (32, running, 1 + past // 512))
                self.launch(PRODUCTS[0 if rows > 64 else 1], (max(1, rows // 16), 8, 1))
                self.launch(ELEMENTWISE.format("SiluMul"), (rows * 2, 1, 1))
                self.launch(PRODUCTS[2], (max(1, rows // 16), 16, 1))
            self.launch(NORM, (running, 1, 1))
            self.launch(PRODUCTS[3], (500, 1, 1))
            self.launch(ARGMAX, (running, 1, 1))
            self.copy(2, 8 * running, wait=True)
            past += 1
            self.now += self.vary(r.choice((50_000, 400_000)))
        self.wait()

    def on_the_host(self):
        """PyTorch without a device; other threads load and turn pictures meanwhile."""
        r = self.random
        self.steps, loaders = r.randint(3, 30), r.choice((0, 0, 1, 3))
        net = [r.choice(("aten::conv2d", "aten::linear", "aten::layer_norm", "aten::gelu", "aten::softmax", "aten::add_", "aten::matmul"))
               for _ in range(r.randint(6, 80))]
        begin = self.now
        for _ in range(self.steps):
            for name in net:
                self.op.append((name, self.now, self.now + self.vary(60_000), 1))
                self.now += self.vary(60_000) + 62_000
            self.now += self.vary(r.choice((10_000, 900_000)))
        end = self.now
        for t in range(loaders):
            at = begin + r.randrange(0, 500_000)
            while at < end:
                for name in ("aten::empty", "aten::copy_", "aten::upsample_bilinear2d", "aten::div_"):
                    took = r.randrange(8000, 90_000)
                    self.op.append((name, at, at + took, 20 + t))
                    at += took + 5000
                at += r.randrange(10_000, 3_000_000)

    def ensemble(self):
        """Each request goes through several networks; one answer comes back."""
        r = self.random
        self.steps = r.randint(3, 30)
        nets = [self.network(r.randint(10, 90)) for _ in range(r.randint(2, 4))]
        same = r.random() < 0.3  # one network, several sets of weights
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 600_000)
            for net in nets:
                self.run(nets[0] if same else net)
            self.launch(ELEMENTWISE.format("Mean"), (1, 1, 1))
            self.launch(CONV, (1, 1, 1))
            self.copy(2, 4000, wait=True)
            self.rest()
        self.wait()
