"""Programs that never ran, fifth part: steps whose number of passes, layers or kernels is chance, ranks of something larger, and recordings that a
schedule cut. It was written before anybody looked at how they are cut."""
from programs import ARGMAX, ATTENTION, CONV, ELEMENTWISE, EMBEDDING, NORM, PRODUCTS, SOFTMAX, SPLIT, VECTORS
from programs_today import ALL_REDUCE, LOSS, SAMPLE, TOP, Today

CLASSES = ("compiled", "early exit", "unrolled", "scheduled", "pipeline rank", "sharded", "second order", "logged", "rollouts", "two clients",
           "several at once", "transcribed", "detector", "recommender", "neighbours", "one by one", "perturbed", "unbalanced")
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
GATHER_ALL = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SCATTER_SUMS = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
FOREACH = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<{}>, at::native::(anonymous namespace)::{}<float, {}, 1, 0> >()"
SELECT = "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::OpaqueType<4> > > >(long)"
BAG = "void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_sum_mean<float, long>(long*, long*, float*)"
SCATTER = "void at::native::_scatter_gather_elementwise_kernel<128, 8, at::native::_cuda_scatter_gather_internal_kernel<true, float> >(int)"
SUPPRESS = "void vision::ops::(anonymous namespace)::nms_kernel_impl<float>(int, double, float const*, unsigned long long*)"
NONZERO = "void at_cuda_detail::cub::DeviceSelectSweepKernel<at_cuda_detail::cub::DispatchSelectIf<long*> >()"
SORT = "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<float, long, int> >()"


class Mixed(Today):
    def __init__(self, seed, kind=None):
        super().__init__(seed, kind or CLASSES[seed % len(CLASSES)])

    def foreach(self, metadata, functor, times=1):
        for _ in range(times):
            self.launch(FOREACH.format(metadata, functor, metadata), (200, 1, 1))

    def compiled(self):
        """Compiled code: at some step an input has another shape, the host compiles for long, and kernels of other names and sizes run from then on."""
        r = self.random
        self.steps, self.layers = r.randint(4, 40), r.randint(1, 24)
        change = sorted(r.sample(range(1, self.steps), r.choice((1, 1, 2)) if self.steps > 4 else 1))
        train, feeds = r.random() < 0.5, r.random() < 0.8
        version = 0

        def code():
            fused = [(f"triton_{r.choice(('poi', 'per', 'red'))}_fused_{r.choice(('add', 'gelu', 'mul_silu', 'native_layer_norm'))}_{k + 10 * version}",
                      (r.randrange(1, 600), 1, 1)) for k in range(r.randint(1, 3))]
            layer = []
            for k, one in enumerate(fused):
                layer += [(PRODUCTS[k], (r.randrange(1, 90), 2, 1)), one]
            return layer + [(ATTENTION, (r.randrange(1, 64), 8, 1))]
        self.per_layer = code()
        self.set_up()
        for step in range(self.steps):
            if step in change:
                version += 1
                self.per_layer = code() if r.random() < 0.5 else [(n, (g[0] * 2, g[1], g[2])) for n, g in self.per_layer]
            if feeds:
                self.copy(1, 80_000)
            if step in change:
                self.now += r.randrange(10**8, 10**9)
            self.launch(f"triton_poi_fused_embedding_{100 + version}", (64, 1, 1))
            for _ in range(self.layers):
                self.layer()
            self.launch(f"triton_red_fused_native_layer_norm_{101 + version}", (3, 1, 1))
            self.launch(PRODUCTS[0], (999, 1, 1))
            if train:
                self.launch(LOSS, (1, 1, 1))
                self.way_back(self.layers)
                self.update(1 + self.layers // 6)
            if self.waits or not feeds:
                self.copy(2, 4, wait=True)
            self.rest()
        self.wait()

    def early_exit(self):
        """Behind every few layers a small head tells whether that is enough; the host looks at it and goes on or not."""
        r = self.random
        stages, each, self.steps = r.randint(2, 8), r.randint(1, 6), r.randint(4, 50)
        told = r.random() < 0.7
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 600_000)
            self.launch(CONV, (112, 1, 1))
            self.launch(ELEMENTWISE.format("Relu"), (112, 1, 1))
            for _ in range(r.randint(1, stages)):
                for _ in range(each):
                    self.layer()
                self.launch(ELEMENTWISE.format("Pool"), (1, 1, 1))
                self.launch(PRODUCTS[3], (4, 1, 1))
                self.launch(SOFTMAX, (1, 1, 1))
                if told:
                    self.copy(2, 4, wait=True)
            if not told:
                self.copy(2, 4000, wait=True)
            self.rest()
        self.wait()

    def unrolled(self):
        """A recurrent network is trained on sequences of differing lengths."""
        r = self.random
        layers, longest, self.steps = r.randint(1, 3), r.randint(10, 60), r.randint(4, 40)
        feeds = r.random() < 0.8
        self.set_up()
        for _ in range(self.steps):
            length = r.randint(longest // 4 + 1, longest)
            if feeds:
                self.copy(1, 8 * length)
            self.launch(EMBEDDING, (length, 1, 1))
            for _ in range(layers * length):
                self.launch(PRODUCTS[1], (4, 4, 1))
                self.launch("void at::native::(anonymous namespace)::lstm_cell_forward<float, float, int, 1>(int)", (4, 1, 1))
            self.launch(PRODUCTS[0], (300, 1, 1))
            self.launch(LOSS, (1, 1, 1))
            self.launch(PRODUCTS[2], (300, 1, 1))
            for _ in range(layers * length):
                self.launch("void at::native::(anonymous namespace)::lstm_cell_backward<float, float, int, 1>(int)", (4, 1, 1))
                self.launch(PRODUCTS[2], (4, 4, 1))
                self.launch(PRODUCTS[3], (4, 4, 1))
            self.update(r.choice((1, 1, 1)) + layers)
            self.answer(4)
        self.wait()

    def scheduled(self):
        """The profiler waits, warms up and records by turns: the recording begins and ends anywhere, and between two turns nothing is recorded."""
        r = self.random
        rounds, active, self.layers = r.randint(1, 3), r.randint(2, 8), r.randint(1, 24)
        marks, train = r.random() < 0.5, r.random() < 0.5
        number = r.randint(0, 30)
        for _ in range(rounds):
            number += r.randint(1, 20)
            for _ in range(active):
                def body():
                    self.step()
                    if train:
                        self.launch(LOSS, (1, 1, 1))
                        self.way_back(self.layers)
                        self.update(2)
                if marks:
                    self.marked(f"ProfilerStep#{number}", body, device_copy=r.random() < 0.8)
                else:
                    body()
                number += 1
            self.wait()
            self.now += r.randrange(10**7, 10**9)
        self.steps = rounds * active

    def pipeline_rank(self):
        """One rank of a pipeline: it gets activations from another process, and gives gradients back, one part forward and one back by turns."""
        r = self.random
        stage, stages = r.choice(((0, 4), (1, 4), (2, 4), (3, 4))) 
        parts, self.steps, self.layers = r.randint(2, 10), r.randint(2, 20), r.randint(1, 12)
        self.set_up()
        for _ in range(self.steps):
            ahead = min(parts, stages - stage)
            order = ["f"] * ahead + ["b", "f"] * (parts - ahead)
            for what in order + ["b"] * (parts - order.count("b")):
                if what == "f":
                    if stage:
                        self.launch(SEND, (8, 1, 1), stream=20)
                    else:
                        self.copy(1, 40_000)
                        self.embed()
                    for _ in range(self.layers):
                        self.layer()
                    if stage + 1 == stages:
                        self.head()
                        self.launch(LOSS, (1, 1, 1))
                    else:
                        self.launch(SEND, (8, 1, 1), stream=20)
                else:
                    if stage + 1 < stages:
                        self.launch(SEND, (8, 1, 1), stream=20)
                    self.way_back(self.layers)
                    if stage:
                        self.launch(SEND, (8, 1, 1), stream=20)
            if r.random() < 2:
                self.launch(ALL_REDUCE, (24, 1, 1), stream=21)
            self.update(1 + self.layers // 3)
            if self.waits:
                self.copy(2, 4, wait=True)
            self.rest()
        self.wait()

    def sharded(self):
        """Each layer's weights are gathered from all ranks before it, forward and back, and its gradients are scattered."""
        r = self.random
        self.layers, self.steps = r.randint(2, 24), r.randint(2, 20)
        k = r.choice((1, 1, 2, 4))
        self.set_up()
        for _ in range(self.steps):
            for _ in range(k):
                if self.inputs:
                    self.copy(1, 40_000)
                self.embed()
                for _ in range(self.layers):
                    self.launch(GATHER_ALL, (24, 1, 1), stream=20)
                    self.layer()
                self.head()
                self.launch(LOSS, (1, 1, 1))
                for _ in range(self.layers):
                    self.launch(GATHER_ALL, (24, 1, 1), stream=20)
                    self.way_back(1, thread=2)
                    self.launch(SCATTER_SUMS, (24, 1, 1), stream=21, thread=2)
            self.foreach(1, "LpNormFunctor", 2)
            self.launch(ALL_REDUCE, (1, 1, 1), stream=20)
            self.foreach(1, "BinaryOpScalarFunctor", 2)
            self.update(1 + self.layers // 3)
            if self.waits:
                self.copy(2, 4, wait=True)
            self.rest()
        self.wait()
        self.truth["inner"] = k * self.steps

    def second_order(self):
        """Diffusion with two passes of the network in each step but the last; both prompts go through it together or one after the other."""
        r = self.random
        self.steps, denoise = r.randint(1, 6), r.choice((4, 10, 20, 25))
        net, decoder = self.network(r.randint(30, 160)), self.network(r.randint(10, 60))
        self.layers, twice, text = r.randint(4, 24), r.random() < 0.4, r.random() < 0.8
        back = r.random() < 0.3  # a progress bar: the host waits after each step
        self.set_up()
        for _ in range(self.steps):
            if text:
                self.copy(1, 616)
                self.embed()
                for _ in range(self.layers):
                    self.layer()
                self.launch(NORM, (77, 1, 1))
            for step in range(denoise):
                for order in range(2 if step + 1 < denoise else 1):
                    for _ in range(2 if twice else 1):
                        self.launch(ELEMENTWISE.format("Cos"), (2, 1, 1))
                        self.run(net)
                    self.launch(ELEMENTWISE.format("Mul"), (16, 1, 1))
                    for k in range(3 + 2 * order):
                        self.launch(ELEMENTWISE.format(("Sub", "Div", "Add")[k % 3]), (16, 1, 1))
                if back:
                    self.wait()
            self.run(decoder)
            self.launch(CONV, (700, 1, 1))
            self.copy(2, 786432, wait=True)
            self.rest()
        self.wait()
        self.truth.update(steps=(self.steps, self.steps * denoise, self.steps * (2 * denoise - 1)))

    def logged(self):
        """The data lie on the device: a batch is chosen there; the loss is fetched every few steps, and behind each epoch a validation runs."""
        r = self.random
        epochs, each, every = r.randint(1, 3), r.randint(4, 20), r.choice((2, 5, 10))
        looks, self.layers = r.choice((0, 1, 3, 6)), r.randint(1, 16)
        self.set_up()
        for _ in range(epochs):
            self.launch(SORT, (9, 1, 1))
            for i in range(each):
                self.foreach(1, "ZeroFunctor")
                self.launch(SELECT, (64, 1, 1))
                self.launch(SELECT, (1, 1, 1))
                for _ in range(self.layers):
                    self.layer()
                self.head()
                self.launch(LOSS, (1, 1, 1))
                self.way_back(self.layers)
                self.update(1 + self.layers // 4)
                if i % every == every - 1:
                    self.copy(2, 4, wait=True)
            for _ in range(looks):
                self.launch(SELECT, (64, 1, 1))
                self.launch(SELECT, (1, 1, 1))
                for _ in range(self.layers):
                    self.layer()
                self.head()
                self.launch(ARGMAX, (1, 1, 1))
                self.launch(ELEMENTWISE.format("Eq"), (1, 1, 1))
            if looks:
                self.copy(2, 4, wait=True)
        self.wait()
        n = epochs * each
        self.truth.update(steps=(n, n + epochs * looks))

    def rollouts(self):
        """A language model writes answers, token by token; a small network judges them; then the model is trained on them."""
        r = self.random
        self.steps, tokens, self.layers = r.randint(2, 8), r.randint(4, 24), r.randint(2, 12)
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 8 * 64)
            self.transformer(self.layers, 64, 64, PRODUCTS)
            for t in range(tokens):
                self.transformer(self.layers, 1, 64 + t, VECTORS, sample=SAMPLE)
            self.copy(2, 8 * tokens, wait=True)
            self.copy(1, 8 * 90)
            self.transformer(2, 90, 90, PRODUCTS[2:])
            self.copy(2, 64, wait=True)
            self.copy(1, 8 * 90)
            self.forward()
            self.launch(LOSS, (1, 1, 1))
            self.way_back(self.layers)
            self.update(1 + self.layers // 4)
            self.rest()
        self.wait()

    def two_clients(self):
        """Two threads ask one device for the same network, each on a stream of its own."""
        r = self.random
        self.layers, n, m = r.randint(1, 16), r.randint(4, 25), r.randint(4, 25)
        left = [n, m]
        self.set_up()
        at = [self.now, self.now + r.randrange(10**5)]
        while any(left):
            d = 0 if left[0] and (not left[1] or at[0] <= at[1]) else 1
            self.now = at[d]
            thread, stream = d + 1, 7 + 6 * d
            self.copy(1, 100_000, stream=stream, thread=thread)
            self.launch(EMBEDDING, (31, 1, 1), stream=stream, thread=thread)
            for _ in range(self.layers):
                for name, grid in self.per_layer:
                    self.launch(name, grid, stream=stream, thread=thread)
            self.launch(NORM, (3, 1, 1), stream=stream, thread=thread)
            self.launch(PRODUCTS[0], (999, 1, 1), stream=stream, thread=thread)
            self.copy(2, 4000, stream=stream, thread=thread)
            self.wait(thread=thread, stream=stream)
            self.now += r.randrange(1, 300_000)
            left[d] -= 1
            at[d] = self.now
        self.now = max(at)
        self.truth.update(steps=(n + m, n, m), all=n + m)

    def several_at_once(self):
        """A server asks for several tokens before it looks at any of them; each is a captured graph, or not."""
        r = self.random
        k, rounds, self.layers = r.choice((4, 8, 10)), r.randint(2, 12), r.randint(2, 32)
        graphs, running = r.random() < 0.5, r.randint(1, 32)
        self.set_up()
        for i in range(rounds):
            for size in (8, 4, 64)[:r.choice((2, 2, 3))] if i % 4 else (8, 4, 64):
                self.copy(1, size * running)
            for t in range(k):
                c = self.ask("cudaGraphLaunch", self.vary(9000)) if graphs else None

                def run(name, grid):
                    self.launch(name, grid, graph=5 if graphs else 0, correlation=c)
                run(EMBEDDING, (running, 1, 1))
                for _ in range(self.layers):
                    run(NORM, (running, 1, 1))
                    run(PRODUCTS[0], (24, 2, 1))
                    run("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>(int)", (running, 1, 1))
                    run(SPLIT, (1, 1 + (500 + i * k + t) // 64, 8))
                    run(PRODUCTS[1], (8, 2, 1))
                    run("void vllm::act_and_mul_kernel<c10::BFloat16>(int)", (running, 1, 1))
                    run(PRODUCTS[2], (8, 2, 1))
                run(NORM, (running, 1, 1))
                run(PRODUCTS[3], (999, 1, 1))
                self.launch(SAMPLE, (running, 1, 1))
                self.launch(ARGMAX, (running, 1, 1))
                self.launch("void vllm::advance_step_flashattn_kernel(int, int)", (1, 1, 1))
            self.copy(2, 8 * k * running, wait=True)
            self.rest()
        self.wait()
        self.truth["steps"] = (rounds, rounds * k)

    def transcribed(self):
        """Speech: an encoder for each half minute, then as many tokens as were said; each looks at the encoder's result."""
        r = self.random
        windows, encoder, decoder = r.randint(1, 5), r.randint(2, 24), r.randint(2, 24)
        tokens = [r.randint(8, 60) for _ in range(windows)]
        told = r.random() < 0.6
        self.set_up()
        for n in tokens:
            self.copy(1, 480_000)
            self.run(((CONV, (300, 1, 1)), (CONV, (150, 2, 1))))
            for _ in range(encoder):
                self.layer()
            self.launch(NORM, (1500, 1, 1))
            for t in range(n):
                if told:
                    self.copy(1, 8)
                self.launch(EMBEDDING, (1, 1, 1))
                for _ in range(decoder):
                    self.launch(NORM, (1, 1, 1))
                    self.launch(VECTORS[0], (40, 1, 1))
                    self.launch(SPLIT, (1, 1 + t // 64, 8))
                    self.launch(VECTORS[1], (20, 1, 1))
                    self.launch(SPLIT, (1, 24, 8))
                    self.launch(VECTORS[1], (20, 1, 1))
                    self.launch(ELEMENTWISE.format("Gelu"), (4, 1, 1))
                self.launch(NORM, (1, 1, 1))
                self.launch(VECTORS[0], (900, 1, 1))
                self.launch(ARGMAX, (1, 1, 1))
                if told:
                    self.copy(2, 8, wait=True)
            self.copy(2, 8 * n, wait=True)
            self.rest()
        self.wait()
        self.truth.update(steps=(sum(tokens), sum(tokens) + windows, windows))

    def detector(self):
        """Objects are found, those that overlap are left out: how many there are is asked several times in each step, and each class has kernels of its own."""
        r = self.random
        self.steps, most = r.randint(4, 40), r.choice((3, 10))
        body, heads = self.network(r.randint(30, 150)), self.network(r.randint(4, 20))
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 1_200_000)
            self.run(body)
            for level in range(5):
                self.launch(TOP, (9, 1, 1))
                self.launch(ELEMENTWISE.format("Exp"), (level + 1, 1, 1))
            for _ in range(r.randint(1, most)):
                self.launch(NONZERO, (r.randint(1, 40), 1, 1))
                self.copy(2, 8, wait=True)
                self.launch(SELECT, (r.randint(1, 40), 1, 1))
                self.launch(SORT, (r.randint(1, 9), 1, 1))
                self.launch(SUPPRESS, (r.randint(1, 9), 1, 1))
                self.copy(2, 500, wait=True)
            self.run(heads)
            for _ in range(3):
                self.copy(2, r.randint(10, 400), wait=True)
            self.rest()
        self.wait()

    def recommender(self):
        """Many tables of embeddings, a small network for numbers, all pairs, another network; mostly trained."""
        r = self.random
        tables, bottom, top = r.choice((8, 26)), r.randint(2, 4), r.randint(2, 5)
        train, self.steps = r.random() < 0.6, r.randint(3, 50)
        feeds = r.choice((1, 3, 1 + tables))
        self.set_up()
        for _ in range(self.steps):
            for k in range(feeds if self.inputs else 0):
                self.copy(1, 50_000 + k)
            for k in range(bottom):
                self.launch(PRODUCTS[0], (64 >> k, 4, 1))
                self.launch(ELEMENTWISE.format("Relu"), (64 >> k, 1, 1))
            for _ in range(tables):
                self.launch(BAG, (512, 1, 1))
            self.launch("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 3, 64, 64>(float*)", (90, 1, 1))
            self.launch(PRODUCTS[2], (27, 1, 512))
            for k in range(top):
                self.launch(PRODUCTS[1], (128 >> k, 4, 1))
                self.launch(ELEMENTWISE.format("Relu"), (128 >> k, 1, 1))
            self.launch(ELEMENTWISE.format("Sigmoid"), (1, 1, 1))
            if train:
                self.launch(LOSS, (1, 1, 1))
                for k in reversed(range(top + bottom)):
                    self.launch(PRODUCTS[2], (128 >> k, 4, 1))
                    self.launch(PRODUCTS[3], (128 >> k, 4, 1))
                for _ in range(tables):
                    self.launch(SORT, (20, 1, 1))
                    self.launch("void at::native::(anonymous namespace)::compute_grad_weight_bags<float, long>(long*, float*)", (60, 1, 1))
                self.update(1)
            self.answer(4)
        self.wait()

    def neighbours(self):
        """A network on graphs: in each layer rows of neighbours are gathered and summed up; batches have other sizes."""
        r = self.random
        layers, train, self.steps = r.randint(2, 5), r.random() < 0.6, r.randint(4, 40)
        self.set_up()
        for _ in range(self.steps):
            size = r.randint(100, 4000)
            for k in range(layers):
                self.copy(1, 16 * size)
            self.launch(SELECT, (size, 1, 1))
            for k in range(layers):
                self.launch(EMBEDDING, (size >> k, 1, 1))
                self.launch(SCATTER, (size >> k, 1, 1))
                self.launch(PRODUCTS[0], (1 + (size >> k) // 64, 2, 1))
                self.launch(PRODUCTS[1], (1 + (size >> k) // 64, 2, 1))
                self.launch(ELEMENTWISE.format("Relu"), (size >> k, 1, 1))
            self.launch("void (anonymous namespace)::softmax_warp_forward<float, float, float, 6, true, false>(float*, int)", (64, 1, 1))
            if train:
                self.launch(LOSS, (1, 1, 1))
                for k in range(layers):
                    self.launch(PRODUCTS[2], (9, 2, 1))
                    self.launch(PRODUCTS[3], (9, 2, 1))
                    self.launch(SELECT, (size >> k, 1, 1))
                self.update(1)
            self.answer(4)
        self.wait()

    def one_by_one(self):
        """An optimizer without a kernel of its own: lists of sums, products and roots, a running mean of the weights behind it, zeros before."""
        r = self.random
        self.layers, self.steps, mean = r.randint(1, 16), r.randint(3, 40), r.random() < 0.5
        each = r.choice((1, 1, 1, 2, 4))
        self.set_up()
        for _ in range(self.steps):
            self.foreach(1, "ZeroFunctor")
            for _ in range(each):
                if self.inputs:
                    self.copy(1, 40_000)
                self.forward()
                self.launch(LOSS, (1, 1, 1))
                self.way_back(self.layers)
            for functor, lists in (("BinaryOpScalarFunctor", 1), ("TernaryOpScalarFunctor", 3), ("BinaryOpScalarFunctor", 1),
                                   ("PointwiseOpScalarFunctor", 3), ("UnaryOpFunctor", 2), ("BinaryOpScalarListFunctor", 1),
                                   ("PointwiseOpScalarListFunctor", 3)):
                self.foreach(lists, functor, 1 + self.layers // 8)
            if mean:
                self.foreach(3, "TernaryOpScalarFunctor", 1 + self.layers // 8)
            if self.waits:
                self.copy(2, 4, wait=True)
            self.rest()
        self.wait()
        self.truth["inner"] = each * self.steps

    def perturbed(self):
        """Weights are moved where the loss is worst, gradients are taken there, and the real update follows: two passes and two changes in each step."""
        r = self.random
        self.layers, self.steps = r.randint(1, 16), r.randint(3, 25)
        self.set_up()
        for _ in range(self.steps):
            self.copy(1, 100_000)
            for half in range(2):
                self.forward()
                self.launch(LOSS, (1, 1, 1))
                self.way_back(self.layers)
                if not half:
                    self.foreach(1, "LpNormFunctor")
                    self.foreach(2, "BinaryOpListAlphaFunctor")
                else:
                    self.foreach(2, "BinaryOpListAlphaFunctor")
                    self.update(1 + self.layers // 4)
            self.answer(4)
        self.wait()

    def unbalanced(self):
        """Experts of differing sizes in each layer, each called where it has tokens; trained, so that the way back has as many calls as the way there."""
        r = self.random
        self.layers, experts, self.steps = r.randint(2, 12), r.choice((4, 8, 16)), r.randint(3, 25)
        shared = r.random() < 0.5
        self.set_up()
        for _ in range(self.steps):
            if self.inputs:
                self.copy(1, 40_000)
            self.embed()
            chosen = []
            for i in range(self.layers):
                self.launch(NORM, (64, 1, 1))
                self.launch(PRODUCTS[0], (24, 4, 1))
                self.launch(ATTENTION, (8, 8, 1))
                self.launch(PRODUCTS[1], (8, 4, 1))
                if shared and not i:
                    self.layer()
                    continue
                self.launch(SOFTMAX, (64, 1, 1))
                self.launch(TOP, (64, 1, 1))
                there = [e for e in range(experts) if r.random() < 0.6]
                for e in there:
                    self.launch(SELECT, (1 + e, 1, 1))
                    self.launch(PRODUCTS[2], (r.randint(1, 64), 2, 1))
                    self.launch(ELEMENTWISE.format("Silu"), (1 + e, 1, 1))
                    self.launch(PRODUCTS[3], (r.randint(1, 64), 1, 1))
                    self.launch("void at::native::(anonymous namespace)::indexFuncLargeIndex<c10::BFloat16, long, unsigned int, 2>(int)", (1 + e, 1, 1))
                chosen.append(there)
            self.head()
            self.launch(LOSS, (1, 1, 1))
            for there in reversed(chosen):
                for e in there:
                    for name in PRODUCTS[2], PRODUCTS[3], PRODUCTS[2], PRODUCTS[3]:
                        self.launch(name, (r.randint(1, 64), 3, 1))
                    self.launch(ELEMENTWISE.format("SiluBackward"), (1 + e, 1, 1))
                for name in PRODUCTS[0], ATTENTION + "_bwd", PRODUCTS[1], NORM + "_bwd":
                    self.launch(name, (24, 4, 1))
            self.update(1 + self.layers // 3)
            self.answer(4)
        self.wait()
