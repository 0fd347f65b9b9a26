"""Programs that never ran, eighth part: kernels of today's servers and compilers by their names, which take what their bytes and products take on
a device, so that a short prompt takes as long as a token. Written before anybody looked at how they are cut."""
from programs import ARGMAX, SOFTMAX
from programs_today import LOSS, SAMPLE, Today

CLASSES = ("pages", "eager prompts", "drafts", "stage", "summed up", "two passes", "looked at", "tokens", "compiled training", "chosen experts",
           "pictures")
BYTES, PRODUCTS = 3.0e12, 6.0e14  # of a second
LOOK_UP = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
RMS, RMS_ADD = ("std::enable_if<(8 > 0), void>::type vllm::%s_kernel<c10::BFloat16, 8>(c10::BFloat16*, float, int, int)" % n
                for n in ("rms_norm", "fused_add_rms_norm"))
ROTARY = "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, int, long, int, int, int)"
CACHE = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, long const*)"
GATE = "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(c10::BFloat16*, c10::BFloat16 const*, int)"
FLASH = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > > >(Params)"
COMBINE = "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>, 4, 1, true>(Flash_fwd_params)"
SMALL = ("nvjet_tst_64x8_64x16_2x1_v_bz_TNN", "nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT", "nvjet_tst_128x8_64x12_2x1_v_bz_TNT")
LARGE = ("nvjet_tst_128x128_64x6_2x1_v_bz_TNT", "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT")
VECTOR = "void gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, false, true, true, false, 7, false>(Params)"
EXPERT, ALIGN = "fused_moe_kernel", "void vllm::moe::moe_align_block_size_kernel<int>(int*, int*, int*, int, int, int, int, int*)"
GATING = "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32>(float const*, bool const*, float*, int, int*, int*, int, int, int)"
ADAM = ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, "
        "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false> >()")
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
REDUCE = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
POINTWISE = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::{}<c10::Half> > >(int)"
CONVOLUTION = "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn"
GROUP_NORM = "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<c10::Half>(long, float, c10::Half const*, float*, float*)"


class Rooflines(Today):
    def __init__(self, seed, kind=None):
        super().__init__(seed, kind or CLASSES[seed % len(CLASSES)])

    def product(self, m, n, k, **more):
        """A product of a matrix of m rows and weights of n times k."""
        ns = max(2000, 1e9 * max(2 * (n * k + m * k + m * n) / BYTES, 2 * m * n * k / PRODUCTS))
        name, tile = (VECTOR, (1, 8)) if m == 1 and self.vectors else (SMALL[n % 3], (8, 64)) if m <= 64 else (LARGE[n % 3], (128, 128))
        self.launch(name, (-(-m // tile[0]) * -(-n // tile[1]), 1, 1), ns=int(ns), **more)

    def rows(self, name, m, width, **more):
        self.launch(name, (m, 1, 1), ns=int(max(1800, 4e9 * m * width / BYTES)), **more)

    def size_up(self):
        """A decoder of a size by chance."""
        r = self.random
        self.layers, self.width = r.randint(3, 40), r.choice((1024, 2048, 4096))
        self.inner, self.words = self.width * 7 // 2, r.choice((32000, 128256))
        self.vectors = r.random() < 0.4
        self.set_up()

    def decoder(self, m, past, prompt=False, layers=None, experts=0, look_up=True, head=1, **more):
        w = self.width
        if look_up:
            self.rows(LOOK_UP, m, w, **more)
        for layer in range(layers or self.layers):
            self.rows(RMS_ADD if layer else RMS, m, w, **more)
            self.product(m, 3 * w // 2, w, **more)
            self.rows(ROTARY, m, w, **more)
            self.rows(CACHE, m, w // 4, **more)
            self.launch(FLASH, (132, 1, 1), ns=3000 + int(m * past / 40), **more)
            if not prompt and past > 512:
                self.launch(COMBINE, (m, 4, 1), ns=2200, **more)
            self.product(m, w, w, **more)
            self.rows(RMS_ADD, m, w, **more)
            if experts:
                self.product(m, 64, w, **more)
                self.rows(GATING, m, 64, **more)
                self.launch(ALIGN, (1, 1, 1), ns=4000, **more)
                for n in (2 * self.inner, w):
                    self.launch(EXPERT, (64 + experts * m // 16, n // 128, 1), ns=20_000 + 900 * m, **more)
                    if n > w:
                        self.rows(GATE, 2 * m, self.inner, **more)
                self.rows(POINTWISE.format("SumTop"), m, w, **more)
                continue
            self.product(m, 2 * self.inner, w, **more)
            self.rows(GATE, m, self.inner, **more)
            self.product(m, w, self.inner, **more)
        self.rows(RMS_ADD, m, w, **more)
        if head:
            self.product(head, self.words, w, **more)

    def chosen(self, m):
        if self.sampled:
            self.rows(POINTWISE.format("DivTemperature"), m, self.words)
            self.rows(SAMPLE, m, self.words)
        self.rows(ARGMAX, m, self.words)

    def serve(self, experts=0):
        """Continuous batching: tokens of many requests at a time, prompts in parts among them; captured graphs where nothing but tokens run."""
        r = self.random
        self.size_up()
        self.steps, running, self.sampled = r.randint(6, 60), r.randint(1, 30), r.random() < 0.5
        graphs, asynchronous = r.random() < 0.5, r.random() < 0.3
        for step in range(self.steps):
            prompt = r.choice((0, 0, 0, 0, 17, 200, 2048))
            running = max(1, running + r.randint(-2, 2) + (prompt > 0))
            for size in (8, 8, 4, 4, 64)[:r.choice((5, 5, 5, 4))]:
                self.copy(1, size * (running + prompt))
            c = self.ask("cudaGraphLaunch", self.vary(15000)) if graphs and not prompt else None
            m = 8 * -(-running // 8) if c else running + prompt
            self.decoder(m, 900, experts=experts, head=0, **({"graph": 100 + m, "correlation": c} if c else {}))
            self.rows(LOOK_UP, running, self.width)  # the last token of each
            self.product(running, self.words, self.width)
            self.chosen(running)
            self.copy(2, 8 * running, wait=not asynchronous)
            self.now += r.randrange(100_000, 2_000_000)
        self.wait()

    def pages(self):
        self.serve()

    def chosen_experts(self):
        self.serve(experts=r if (r := self.random.choice((2, 8))) else 2)

    def eager_prompts(self):
        """One request behind the other: its prompt kernel by kernel, a captured graph for each token; sampling in the graph or behind it."""
        r = self.random
        self.size_up()
        requests, self.sampled, within = r.randint(1, 5), r.random() < 0.5, r.random() < 0.3
        tokens = [r.randint(4, 30) for _ in range(requests)]
        for n in tokens:
            length = r.choice((9, 60, 128, 900, 3000))
            self.copy(1, 8 * length)
            self.decoder(length, length, prompt=True)
            self.chosen(1)
            self.copy(2, 8, wait=True)
            for t in range(n):
                self.copy(1, 8)
                c = self.ask("cudaGraphLaunch", self.vary(12000))
                self.decoder(1, length + t, graph=7, correlation=c)
                if within:
                    self.rows(ARGMAX, 1, self.words, graph=7, correlation=c)
                else:
                    self.chosen(1)
                self.copy(2, 8, wait=True)
        n = sum(tokens)
        self.truth.update(steps=(n + requests,), prefill=requests, decode=n)

    def tokens(self):
        """Tokens one by one, no prompt in the recording; the host looks at each or at none of them."""
        r = self.random
        self.size_up()
        self.steps, past, self.sampled, looks = r.randint(4, 60), r.randint(4, 4000), r.random() < 0.4, r.random() < 0.6
        batch = r.choice((1, 1, 4, 32))
        for t in range(self.steps):
            self.decoder(batch, past + t, head=batch)
            self.chosen(batch)
            if looks:
                self.copy(2, 8 * batch, wait=True)
        self.wait()

    def drafts(self):
        """A draft of one layer, or of a few, proposes tokens; the model checks them in one pass. Each pass is a captured graph, or none is."""
        r = self.random
        self.size_up()
        self.layers = max(8, self.layers)
        rounds, k, small, graphs, self.sampled = r.randint(5, 40), r.randint(2, 7), r.choice((1, 1, 3)), r.random() < 0.5, False

        def one(m, graph, **more):
            c = self.ask("cudaGraphLaunch", self.vary(9000)) if graphs else None
            self.decoder(m, 700, head=m, **more, **({"graph": graph, "correlation": c} if graphs else {}))
        for _ in range(rounds):
            self.copy(1, 8 * (k + 1))
            one(k + 1, 3)
            self.rows(SOFTMAX, k + 1, self.words)
            self.rows("rejection_greedy_sample_kernel", 1, 64)
            self.copy(2, 8 * (k + 1), wait=True)
            for _ in range(k):
                one(1, 4, layers=small)
                self.rows(ARGMAX, 1, self.words)
        self.wait()
        self.truth.update(steps=(rounds,))

    def way_back_of(self, layers, m):
        for _ in range(layers):
            for n in (self.width, 2 * self.inner, self.width, 3 * self.width // 2):
                self.product(m, self.width, n)
                self.product(m, n, self.width)
                self.rows("triton_red_fused_native_layer_norm_backward_%d" % (n % 7), m, n)
            self.launch("void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128> >(Flash_bwd_params)",
                        (m // 128 + 1, 8, 1), ns=20_000)

    def stage(self):
        """A stage of a pipeline by itself: forwards first, then forward and backward in turns, then the backwards that are left."""
        r = self.random
        self.size_up()
        self.layers, self.steps = r.randint(1, 8), r.randint(2, 12)
        parts, ahead, m, first = r.randint(2, 8), r.randint(1, 3), 2048, r.random() < 0.5
        ahead = min(ahead, parts)

        def forward():
            if first:
                self.copy(1, 16384)
            else:
                self.launch(SEND, (2, 1, 1), ns=30_000, stream=20)
            self.decoder(m, m, prompt=True, look_up=first, head=0)
            self.launch(SEND, (2, 1, 1), ns=30_000, stream=20)

        def backward():
            self.launch(SEND, (2, 1, 1), ns=30_000, stream=21)
            self.way_back_of(self.layers, m)
        for _ in range(self.steps):
            for part in range(parts + ahead):
                if part < parts:
                    forward()
                if part >= ahead:
                    backward()
            self.launch(REDUCE, (16, 1, 1), ns=200_000, stream=22)
            for _ in range(3):
                self.launch(ADAM, (600, 1, 1), ns=90_000)
            self.rest()
        self.wait()
        self.truth["inner"] = parts * self.steps

    def summed_up(self):
        """Gradients of several batches are summed up; their exchange is with the last one, or with each."""
        r = self.random
        self.size_up()
        self.layers, self.steps, k, each = r.randint(1, 10), r.randint(2, 12), r.choice((2, 4, 8)), r.random() < 0.4
        for _ in range(self.steps):
            for i in range(k):
                self.copy(1, 16384)
                self.decoder(1024, 1024, prompt=True, head=1024)
                self.rows(LOSS, 1, 4096)
                self.way_back_of(self.layers, 1024)
                if each or i == k - 1:
                    self.launch(REDUCE, (16, 1, 1), ns=200_000, stream=22)
            self.launch("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float> >()", (320, 1, 1))
            for _ in range(r.choice((1, 1))):
                self.launch(ADAM, (600, 1, 1), ns=90_000)
            if self.waits:
                self.copy(2, 4, wait=True)
        self.wait()
        self.truth["inner"] = k * self.steps

    def unet(self, blocks):
        for b in blocks:
            self.rows(GROUP_NORM, 64, b)
            self.rows(POINTWISE.format("Silu"), 128, b)
            self.launch(CONVOLUTION, (b // 8, 1, 1), ns=9000 + 20 * b)
            if b % 3 == 0:
                self.rows("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>(int, float)", 128, b)
                self.product(1024, b, b)
                self.launch(FLASH, (64, 1, 1), ns=12_000)
                self.product(1024, b, b)

    def noise(self, passes, told=False):
        r = self.random
        self.size_up()
        blocks = [r.choice((320, 640, 1280, 960, 1000)) for _ in range(r.randint(8, 40))]
        self.steps, denoise, feeds = r.randint(1, 4), r.choice((8, 20, 30, 50)), r.random() < 0.5
        for _ in range(self.steps):
            for _ in range(2):  # both prompts
                self.copy(1, 616)
                self.decoder(77, 77, prompt=True, layers=4, head=0)
            for _ in range(denoise):
                for _ in range(passes):
                    if feeds:
                        self.copy(1, 8)
                    self.rows(POINTWISE.format("Sin"), 1, 320)
                    self.product(2, 1280, 320)
                    self.unet(blocks)
                for name in ("Sub", "Mul", "Add", "Mul", "Add"):
                    self.rows(POINTWISE.format(name), 16, 4096)
            self.unet(blocks[:5])
            self.launch("void at::native::(anonymous namespace)::upsample_nearest2d_out_frame<c10::Half>(int)", (512, 1, 1))
            self.copy(2, 786432, wait=True)
        self.wait()
        self.truth.update(steps=(self.steps, self.steps * denoise))

    def two_passes(self):
        self.noise(2)

    def pictures(self):
        self.noise(1)

    def learn(self, steps, look_each=0):
        looks = 0
        for i in range(steps):
            self.copy(1, 16384)
            self.decoder(2048, 2048, prompt=True, head=2048)
            self.rows(LOSS, 1, 4096)
            self.way_back_of(self.layers, 2048)
            self.launch(ADAM, (600, 1, 1), ns=90_000)
            if look_each and i % look_each == look_each - 1:
                for _ in range(self.looks):
                    self.copy(1, 16384)
                    self.decoder(2048, 2048, prompt=True, head=2048)
                    self.rows(LOSS, 1, 4096)
                    self.copy(2, 4, wait=True)
                    looks += 1
        self.wait()
        return looks

    def looked_at(self):
        """Epochs, and the loss on other data behind each."""
        r = self.random
        self.size_up()
        self.layers, self.looks = r.randint(1, 8), r.randint(1, 6)
        each = r.randint(3, 12)
        self.steps = each * r.randint(1, 4)
        looks = self.learn(self.steps, each)
        self.truth.update(steps=(self.steps, self.steps + looks))

    def compiled_training(self):
        """Kernels of a compiler, numbered; gathered parameters before each layer, as shards are trained."""
        r = self.random
        self.size_up()
        self.layers, self.steps, shards = r.randint(2, 12), r.randint(2, 20), r.random() < 0.5
        for _ in range(self.steps):
            self.copy(1, 16384)
            self.rows("triton_poi_fused_embedding_0", 1024, self.width)
            for way in ("", "_backward"):
                for layer in range(self.layers):
                    if shards:
                        self.launch(GATHER, (8, 1, 1), ns=50_000, stream=22)
                    self.rows("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt%s_1" % way, 1024, self.width)
                    for n in (3 * self.width // 2, self.width, 2 * self.inner):
                        self.product(1024, n, self.width)
                    self.rows("triton_poi_fused_mul_silu%s_2" % way, 1024, self.inner)
                    self.product(1024, self.width, self.inner)
                    if shards and way:
                        self.launch(REDUCE, (8, 1, 1), ns=50_000, stream=22)
                if not way:
                    self.product(1024, self.words, self.width)
                    self.rows("triton_red_fused__log_softmax_nll_loss_forward_3", 1024, self.words)
            self.launch("triton_for_fused_4", (3000, 1, 1), ns=200_000)  # the compiled optimizer
            self.answer(4)
        self.wait()
