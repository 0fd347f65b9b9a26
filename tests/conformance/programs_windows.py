"""Programs that never ran, seventh part: what a profiler's window shows of a program, and devices whose clocks differ. Written before anybody looked
at how they are cut."""
from programs import ARGMAX, ELEMENTWISE, EMBEDDING, NORM, PRODUCTS, SOFTMAX, SPLIT, VECTORS
from programs_today import SAMPLE, Today

CLASSES = ("schedule", "windows", "graph a token", "batches", "tuned and aborted", "clocks")


class Windowed(Today):
    def __init__(self, seed, kind=None):
        super().__init__(seed, kind or CLASSES[seed % len(CLASSES)])

    def cycles(self, marked):
        """torch.profiler's schedule: some steps are waited for and warmed up, which the recording does not hold, then some are active."""
        r = self.random
        cycles, active, skipped = r.randint(1, 4), r.randint(2, 6), r.randint(1, 20)
        train, number = r.random() < 0.6, 0

        def step():
            self.step()
            if train:
                self.way_back(self.layers)
                self.update(2)
        for _ in range(cycles):
            number += skipped
            self.now += skipped * r.randint(2, 9) * 1_000_000
            for _ in range(active):
                if marked:
                    self.marked(f"ProfilerStep#{number}", step, device_copy=True)
                else:
                    step()
                number += 1
            self.wait()
        self.steps = cycles * active

    def schedule(self):
        self.cycles(True)

    def windows(self):
        self.cycles(False)

    def graph_a_token(self):
        """A prompt kernel by kernel, then a graph for each token, and the sampling behind it kernel by kernel."""
        r = self.random
        self.layers, tokens, length = r.randint(2, 32), r.randint(6, 50), r.choice((128, 900))
        self.set_up()
        self.copy(1, 8 * length)
        self.transformer(self.layers, length, length, PRODUCTS, sample=SAMPLE)
        self.copy(2, 8, wait=True)
        for token in range(tokens):
            self.copy(1, 8)
            c = self.ask("cudaGraphLaunch", self.vary(9000))
            for name, grid in [(EMBEDDING, (1, 1, 1))] + self.layers * [(NORM, (1, 1, 1)), (VECTORS[0], (128, 1, 1)), (SPLIT, (1, 8, 8)),
                                                                        (VECTORS[1], (64, 1, 1)), (ELEMENTWISE.format("Residual"), (4, 1, 1))]:
                self.launch(name, grid, graph=5, correlation=c)
            self.launch(VECTORS[0], (4000, 1, 1))
            self.launch(SOFTMAX, (1, 1, 1))
            self.launch(ARGMAX, (1, 1, 1))
            self.copy(2, 8, wait=True)
        self.steps = tokens + 1
        self.truth.update(prefill=1, decode=tokens)

    def batches(self):
        """A server takes as many requests as there are: sizes differ from batch to batch, and kernels with them."""
        r = self.random
        self.layers = r.randint(2, 24)
        self.steps = max(3, self.steps)
        self.set_up()
        for _ in range(self.steps):
            size = r.choice((1, 2, 4, 8, 13, 16, 27, 32, 64))
            product = VECTORS[0] if size == 1 else PRODUCTS[size > 8]
            self.copy(1, 4000 * size)
            self.launch(EMBEDDING, (size, 1, 1))
            for _ in range(self.layers):
                self.launch(NORM, (size, 1, 1))
                self.launch(product, (size, 24, 1), ns=self.size * (1 + size // 8))
                self.launch(ELEMENTWISE.format("Gelu"), (4 * size, 1, 1))
                self.launch(product, (size, 8, 1), ns=self.size * (1 + size // 8))
                self.launch(ELEMENTWISE.format("Residual"), (size, 1, 1))
            self.launch(NORM, (size, 1, 1))
            self.launch(PRODUCTS[0], (999, 1, 1))
            self.copy(2, 400 * size, wait=True)
            self.now += r.randrange(0, 3_000_000)
        self.wait()

    def tuned_and_aborted(self):
        self.steps = max(6, self.steps)
        self.tuned()
        until = self.api[-1 - self.random.randrange(1, len(self.api) // self.steps // 2 + 2)][2]
        self.api = [a for a in self.api if a[2] <= until]
        asked = {a[4] for a in self.api}
        self.kernel = [k for k in self.kernel if k[5] in asked]
        self.copies = [c for c in self.copies if c[5] in asked]
        self.truth["steps"] = (self.steps - 1, self.steps)

    def clocks(self):
        """Each device has a clock of its own."""
        self.many()
        skew = [self.random.choice((-1, 0, 1)) * self.random.randrange(1000, 400_000) for _ in range(8)]
        self.kernel = [(name, a + skew[device], b + skew[device], device, *rest) for name, a, b, device, *rest in self.kernel]
        self.copies = [(kind, a + skew[device], b + skew[device], device, *rest) for kind, a, b, device, *rest in self.copies]
