"""Programs that never ran, sixth part: the host looks at results within a step, other threads work on the device as well, caches are moved between
steps. It was written before anybody looked at how they are cut, and after the rules that the fifth part brought."""
from programs import ARGMAX, CONV, ELEMENTWISE, EMBEDDING, NORM, POOL, PRODUCTS, SOFTMAX, VECTORS
from programs_mixed import NONZERO, SELECT
from programs_today import LOSS, RESIZE, SAMPLE, TOP, Today

CLASSES = ("transducer", "tracker", "decoded there", "calibrated", "swapped", "tasks", "frozen", "long prompt", "tree", "scored")
HISTOGRAM = "void at::native::(anonymous namespace)::kernelHistogram1D<float, float, long, 1, 2, -1, (CUDAHistogramMemoryType)0>(float)"
JPEG = "void nvjpeg::DecodeSingleGPU::idct8x8<2, 3>(unsigned char*, int)"


class Watched(Today):
    def __init__(self, seed, kind=None):
        super().__init__(seed, kind or CLASSES[seed % len(CLASSES)])

    def transducer(self):
        """Speech as it comes: an encoder for each piece of it, then a small network again and again until it says nothing more, which the host looks at."""
        r = self.random
        self.layers, self.steps = r.randint(2, 18), r.randint(5, 40)
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 20_000)
            self.launch(CONV, (40, 1, 1))
            for _ in range(self.layers):
                self.layer()
            self.launch(NORM, (8, 1, 1))
            for _ in range(r.randint(1, 12)):
                self.launch(EMBEDDING, (1, 1, 1))
                self.launch(PRODUCTS[1], (10, 1, 1))
                self.launch("void at::native::(anonymous namespace)::lstm_cell_forward<float, float, int, 1>(int)", (4, 1, 1))
                self.launch(ELEMENTWISE.format("Tanh"), (1, 1, 1))
                self.launch(VECTORS[0], (40, 1, 1))
                self.launch(ARGMAX, (1, 1, 1))
                self.copy(2, 8, wait=True)
            self.rest()
        self.wait()

    def tracker(self):
        """Frames of a video: a large network looks at each k-th one, a small one at all."""
        r = self.random
        k, self.steps = r.randint(2, 8), r.randint(8, 60)
        large, small = self.network(r.randint(60, 160)), self.network(r.randint(10, 40))
        self.set_up()
        for i in range(self.steps):
            self.copy(1, 900_000)
            self.launch(RESIZE, (512, 1, 1))
            if i % k == 0:
                self.run(large)
                self.launch(TOP, (9, 1, 1))
            self.run(small)
            self.copy(2, 800, wait=True)
            self.rest()
        self.wait()

    def decoded_there(self):
        """Pictures are decoded on the device by another thread and stream, ahead of the network that is trained or asked."""
        r = self.random
        train, self.steps, self.layers = r.random() < 0.5, r.randint(4, 40), r.randint(1, 20)
        self.set_up()
        marks = []
        for _ in range(self.steps):
            marks.append(self.now)
            self.embed()
            for _ in range(self.layers):
                self.layer()
            self.head()
            if train:
                self.launch(LOSS, (1, 1, 1))
                self.way_back(self.layers)
                self.update(2)
            self.answer(4)
        self.wait()
        end = self.now
        pictures = r.randint(2, 6)
        for at in marks:
            self.now = max(marks[0], at - r.randrange(1, 200_000))
            for _ in range(pictures):
                self.copy(1, 80_000, stream=13, thread=5)
                for _ in range(3):
                    self.launch(JPEG, (r.randint(20, 90), 1, 1), stream=13, thread=5)
                self.launch(RESIZE, (224, 1, 1), stream=13, thread=5)
        self.now = end

    def calibrated(self):
        """Before a network is quantized: batches go through it, and of each layer the host fetches the range of what came out."""
        r = self.random
        self.layers, self.steps, told = r.randint(3, 30), r.randint(4, 40), r.choice((1, 2))
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 600_000)
            self.launch(CONV, (112, 1, 1))
            for _ in range(self.layers):
                self.layer()
                self.launch(HISTOGRAM, (80, 1, 1))
                for _ in range(told):
                    self.copy(2, 8192, wait=True)
            self.launch(POOL, (1, 1, 1))
            self.launch(PRODUCTS[0], (16, 1, 1))
            self.rest()
        self.wait()

    def swapped(self):
        """A server of a language model moves parts of the cache to the host and back between steps."""
        r = self.random
        self.layers, self.steps, running = r.randint(2, 28), r.randint(8, 60), r.randint(4, 30)
        self.set_up()
        for i in range(self.steps):
            if r.random() < 0.3:
                for _ in range(r.randint(1, 2) * self.layers):
                    self.copy(r.choice((1, 2)), 2_000_000)
            for size in (8, 8, 64):
                self.copy(1, size * running)
            self.transformer(self.layers, running if running > 15 else 16, 300 + i, PRODUCTS, sample=SAMPLE)
            self.copy(2, 8 * running, wait=True)
            self.rest()
        self.wait()

    def tasks(self):
        """One body, several heads: which one is trained in a step depends on the batch."""
        r = self.random
        self.layers, self.steps = r.randint(2, 20), r.randint(6, 40)
        heads = [self.network(r.randint(3, 30)) for _ in range(r.randint(2, 4))]
        self.set_up()
        for _ in range(self.steps):
            head = r.choice(heads)
            if self.inputs:
                self.copy(1, 40_000)
            self.embed()
            for _ in range(self.layers):
                self.layer()
            self.run(head)
            self.launch(LOSS, (1, 1, 1))
            self.run([(n + "_bwd", g) for n, g in reversed(head)])
            self.way_back(self.layers)
            self.update(1 + self.layers // 4)
            self.answer(4)
        self.wait()

    def frozen(self):
        """The body is kept as it is, adapters and a head are trained: the way back is short, or as long as the way there and thinner."""
        r = self.random
        self.layers, self.steps, k = r.randint(4, 30), r.randint(3, 30), r.choice((1, 1, 2, 8))
        part, every = r.randint(1, self.layers), r.choice((1, 10))
        self.set_up()
        for i in range(self.steps):
            for _ in range(k):
                if self.inputs:
                    self.copy(1, 40_000)
                self.forward()
                self.launch(LOSS, (1, 1, 1))
                for _ in range(part):
                    self.launch(PRODUCTS[2], (8, 1, 1))
                    self.launch(PRODUCTS[3], (8, 1, 1))
                    self.launch(ELEMENTWISE.format("GeluBackward"), (8, 1, 1))
            self.update(1)
            if self.waits and i % every == 0:
                self.copy(2, 4, wait=True)
            self.rest()
        self.wait()
        self.truth["inner"] = k * self.steps

    def long_prompt(self):
        """A prompt goes through in chunks, one behind the other without an answer, then tokens come one by one."""
        r = self.random
        self.layers, chunks, tokens = r.randint(2, 28), r.randint(2, 12), r.randint(8, 60)
        told = r.random() < 0.7
        self.set_up()
        for i in range(chunks):
            self.copy(1, 8 * 512)
            self.transformer(self.layers, 512, 512 * (i + 1), PRODUCTS, head=i + 1 == chunks)
        self.copy(2, 8, wait=True)
        for t in range(tokens):
            if told:
                self.copy(1, 8)
            self.transformer(self.layers, 1, 512 * chunks + t, VECTORS)
            if told:
                self.copy(2, 8, wait=True)
        self.wait()
        self.truth.update(steps=(tokens + chunks, tokens + 1, tokens))

    def tree(self):
        """A language model with heads that propose several tokens: a pass looks at a tree of them, the host asks how many hold."""
        r = self.random
        self.layers, self.steps, heads = r.randint(4, 32), r.randint(6, 40), r.randint(2, 5)
        past = r.choice((60, 500, 1500))
        self.set_up()
        self.copy(1, 8 * past)
        self.transformer(self.layers, past, past, PRODUCTS)
        self.copy(2, 8, wait=True)
        for _ in range(self.steps):
            self.copy(1, 8 * 63)
            self.transformer(self.layers, 63, past, PRODUCTS[1:3])
            for _ in range(heads):
                self.launch(PRODUCTS[0], (4, 1, 1))
                self.launch(ELEMENTWISE.format("Silu"), (4, 1, 1))
                self.launch(PRODUCTS[3], (500, 1, 1))
            self.launch(TOP, (heads, 1, 1))
            self.launch(SOFTMAX, (63, 1, 1))
            self.copy(2, 8, wait=True)
            hold = r.randint(1, heads + 1)
            for _ in range(2):
                self.launch(SELECT, (hold, self.layers, 1))
            self.copy(2, 8 * hold, wait=True)
            past += hold
        self.wait()
        self.truth.update(steps=(self.steps, self.steps + 1))

    def scored(self):
        """Texts of differing lengths are scored by the loss of a language model; those that are too long are cut into pieces; the sum is fetched at the end."""
        r = self.random
        self.layers, texts = r.randint(2, 24), r.randint(3, 15)
        count, fetch = 0, r.random() < 0.6
        self.set_up()
        for _ in range(texts):
            pieces = r.choice((1, 1, 1, 2, 4))
            for _ in range(pieces):
                length = 512 if pieces > 1 else r.randint(20, 512)
                self.copy(1, 8 * length)
                self.transformer(self.layers, length, length, PRODUCTS[:2], head=False)
                self.launch(PRODUCTS[3], (500, 1, 1))
                self.launch(LOSS, (length, 1, 1))
                count += 1
            if fetch:
                self.copy(2, 4, wait=True)
        self.launch(NONZERO, (1, 1, 1))
        self.copy(2, 4, wait=True)
        self.wait()
        self.truth.update(steps=(count, texts))
