"""Language models as ONNX Runtime's builders write them, its fused operators, and operators whose shapes are a formula of their own."""
from onnx import TensorProto as T, helper

from exported_graph import G, MS, case, info


@case
def gqa_shared_buffer():
    """GenAI: past and present are one buffer of a fixed longest length; how much of it is read stands in two small inputs"""
    g = G()
    heads, kv, hd, hidden = 8, 2, 16, 128
    q = g.op('MatMul', 'x', g.w('wq', T.FLOAT16, hidden, (heads + 2 * kv) * hd))
    o, pk, pv = g.op('GroupQueryAttention', q, '', '', 'past_key_values.0.key', 'past_key_values.0.value', 'seqlens_k', 'total_seq_len',
            g.w('cos', T.FLOAT16, 2048, hd // 2), g.w('sin', T.FLOAT16, 2048, hd // 2),
                     n=3, domain=MS, num_heads=heads, kv_num_heads=kv, do_rotary=1)
    y = g.op('MatMul', o, g.w('wo', T.FLOAT16, heads * hd, hidden))
    m = g.model([info('x', T.FLOAT16, ['batch_size', 'sequence_length', hidden])] + [info(f'past_key_values.0.{n}', T.FLOAT16,
            ['batch_size', kv, 'max_length', hd]) for n in ('key', 'value')] +
                [info('seqlens_k', T.INT32, ['batch_size']), info('total_seq_len', T.INT32, [])],
                [info(y, T.FLOAT16, ['batch_size', 'sequence_length', hidden]), info(pk, T.FLOAT16, ['batch_size', kv, 'max_length', hd]),
                        info(pv, T.FLOAT16, ['batch_size', kv, 'max_length', hd])], {'': 18, MS: 1})
    return m, ['--dim=batch_size=3', '--dim=sequence_length=1', '--dim=max_length=512'], 3 * hidden * (heads + 2 * kv) * hd + 3 * 2 * heads * hd * 512 + 3 * heads * hd * hidden, {y: [3, 1, 128], pk: [3, 2, 512, 16]}


@case
def attention_23():
    g = G()
    y, pk, pv = g.op('Attention', 'q', 'k', 'v', '', 'pk', 'pv', n=3, q_num_heads=8, kv_num_heads=2, is_causal=1, softcap=30.0)
    m = g.model([info('q', T.FLOAT16, ['b', 's', 128]), info('k', T.FLOAT16, ['b', 's', 32]), info('v', T.FLOAT16, ['b', 's', 64]),
            info('pk', T.FLOAT16, ['b', 2, 'p', 16]), info('pv', T.FLOAT16, ['b', 2, 'p', 32])],
                [info(y, T.FLOAT16, None), info(pk, T.FLOAT16, None), info(pv, T.FLOAT16, None)], {'': 23}, 11)
    return m, ['--dim=b=2', '--dim=s=3', '--dim=p=20'], 2 * 8 * 3 * 23 * (16 + 32), {y: [2, 3, 256], pk: [2, 2, 23, 16], pv: [2, 2, 23, 32]}


@case
def attention_24_scatter():
    """the cache is written in place (TensorScatter), the lengths that count stand in an input"""
    g = G()
    k = g.op('TensorScatter', 'kc', 'k', 'at', axis=-2)
    v = g.op('TensorScatter', 'vc', 'v', 'at', axis=-2)
    y = g.op('Attention', 'q', k, v, '', '', '', 'lengths', is_causal=1)
    m = g.model([info('q', T.FLOAT16, ['b', 8, 's', 16]), info('k', T.FLOAT16, ['b', 2, 's', 16]), info('v', T.FLOAT16, ['b', 2, 's',
            16]), info('kc', T.FLOAT16, ['b', 2, 'max', 16]), info('vc', T.FLOAT16, ['b', 2, 'max', 16]),
                 info('at', T.INT64, ['b']), info('lengths', T.INT64, ['b'])], [info(y, T.FLOAT16, None), info(k, T.FLOAT16,
                         None)], {'': 24}, 11)
    return m, ['--dim=b=2', '--dim=s=1', '--dim=max=64'], 2 * 8 * 64 * 32, {y: [2, 8, 1, 16], k: [2, 2, 64, 16]}


@case
def mha_cross_with_past():
    g = G()
    y, pk, pv = g.op('MultiHeadAttention', 'q', 'k', 'v', '', '', '', 'pk', 'pv', n=3, domain=MS, num_heads=4)
    c = g.op('MultiHeadAttention', y, 'ck', 'cv', domain=MS, num_heads=4)
    m = g.model([info(n, T.FLOAT, ['b', 's', 64]) for n in 'qkv'] + [info('pk', T.FLOAT, ['b', 4, 'p', 16]), info('pv', T.FLOAT, ['b', 4,
            'p', 16]), info('ck', T.FLOAT, ['b', 4, 'e', 16]), info('cv', T.FLOAT, ['b', 4, 'e', 16])],
                [info(c, T.FLOAT, None), info(pk, T.FLOAT, None)], {'': 17, MS: 1})
    return m, ['--dim=b=2', '--dim=s=1', '--dim=p=9', '--dim=e=50'], 2 * 64 * 2 * 10 + 2 * 64 * 2 * 50, {c: [2, 1, 64], pk: [2, 4, 10, 16]}


def chosen_tables(g, length):
    """Tables of cosines and of sines, for short and long contexts: an If takes them by the length"""
    def table(pre, n):
        t = [T(name=pre + x, data_type=T.FLOAT16, dims=[n, 8], data_location=T.EXTERNAL) for x in ('cos', 'sin')]
        for x in t:
            x.external_data.add(key='location', value='w')
        nodes = [helper.make_node('Constant', [], [pre + x.name + 'o'], value=x) for x in t]
        return helper.make_graph(nodes, pre, [], [info(pre + x.name + 'o', T.FLOAT16, None) for x in t])
    c = g.op('Greater', length, g.c('limit', T.INT64, [], [4096]))
    return g.op('If', c, n=2, then_branch=table('long', 131072), else_branch=table('short', 4096))


@case
def rope_by_length():
    """Phi-3 of GenAI: tables of cosines for short and long contexts, chosen by an If on the total length"""
    g = G()
    mx = g.op('ReduceMax', 'position_ids', keepdims=0)
    cos, sin = chosen_tables(g, mx)
    q = g.op('MatMul', 'x', g.w('w', T.FLOAT16, 64, 192))
    o, pk, pv = g.op('GroupQueryAttention', q, '', '', 'pk', 'pv', 'seqlens_k', 'total', cos, sin, n=3, domain=MS, num_heads=4,
            kv_num_heads=4, do_rotary=1)
    m = g.model([info('x', T.FLOAT16, ['b', 's', 64]), info('position_ids', T.INT64, ['b', 's']), info('pk', T.FLOAT16, ['b', 4, 'past',
            16]), info('pv', T.FLOAT16, ['b', 4, 'past', 16]), info('seqlens_k', T.INT32, ['b']), info('total', T.INT32, [])],
                [info(o, T.FLOAT16, None), info(pk, T.FLOAT16, ['b', 4, 'total_sequence_length', 16])], {'': 17, MS: 1})
    return m, ['--dim=b=1', '--dim=s=1', '--dim=past=99'], 64 * 192 + 2 * 4 * 99 * 16, {o: [1, 1, 64], pk: [1, 4, 99, 16]}, {'said': 'its else_branch, whose results are smaller, is counted'}


@case
def rope_by_mask():
    """Phi-3 of GenAI: tables of cosines for short and long contexts, chosen by an If on the total length"""
    g = G()
    mx = g.op('Gather', g.op('Shape', 'attention_mask'), g.c('one', T.INT64, [], [1]), axis=0)
    tot = g.op('Cast', mx, to=T.INT32)
    cos, sin = chosen_tables(g, mx)
    q = g.op('MatMul', 'x', g.w('w', T.FLOAT16, 64, 192))
    o, pk, pv = g.op('GroupQueryAttention', q, '', '', 'pk', 'pv', 'seqlens_k', tot, cos, sin, n=3, domain=MS, num_heads=4,
            kv_num_heads=4, do_rotary=1)
    m = g.model([info('x', T.FLOAT16, ['b', 's', 64]), info('attention_mask', T.INT64, ['b', 'past + s']), info('pk', T.FLOAT16, ['b', 4,
            'past', 16]), info('pv', T.FLOAT16, ['b', 4, 'past', 16]), info('seqlens_k', T.INT32, ['b'])],
                [info(o, T.FLOAT16, None), info(pk, T.FLOAT16, ['b', 4, 'total_sequence_length', 16])], {'': 17, MS: 1})
    return m, ['--dim=b=1', '--dim=s=1', '--dim=past=99'], 64 * 192 + 2 * 4 * 100 * 16, {o: [1, 1, 64], pk: [1, 4, 100, 16]}


@case
def moe():
    g = G()
    t, h, i, e, k = 12, 64, 128, 8, 2
    y = g.op('MoE', 'x', 'r', g.w('w1', T.FLOAT, e, h, i), g.w('b1', T.FLOAT, e, i), g.w('w2', T.FLOAT, e, i, h), g.w('b2', T.FLOAT, e,
            h), domain=MS, k=k, activation_type='gelu')
    m = g.model([info('x', T.FLOAT, [t, h]), info('r', T.FLOAT, [t, e])], [info(y, T.FLOAT, None)], {'': 17, MS: 1})
    return m, [], t * k * 2 * h * i, {y: [t, h]}


@case
def experts_in_plain_operators():
    """Mixtral as torch exports it: where tokens of an expert are is NonZero's result"""
    g = G()
    r = g.op('MatMul', 'x', g.w('r', T.FLOAT, 32, 4))
    v, i = g.op('TopK', g.op('Softmax', r, axis=-1), g.c('k', T.INT64, [1], [2]), n=2, axis=-1)
    h = g.op('OneHot', i, g.c('d', T.INT64, [], [4]), g.c('v', T.INT64, [2], [0, 1]))
    out = g.op('Mul', 'x', g.c('zero', T.FLOAT, [], [0.0]))
    for e in range(4):
        hit = g.op('Gather', h, g.c(f'e{e}', T.INT64, [], [e]), axis=2)
        nz = g.op('NonZero', hit)
        rows = g.op('Gather', nz, g.c(f'z{e}', T.INT64, [], [0]), axis=0)
        xe = g.op('Gather', 'x', rows, axis=0)
        y = g.op('MatMul', g.op('Relu', g.op('MatMul', xe, g.w(f'u{e}', T.FLOAT, 32, 64))), g.w(f'd{e}', T.FLOAT, 64, 32))
        out = g.op('ScatterND', out, g.op('Unsqueeze', rows, g.c(f'a{e}', T.INT64, [1], [1])), y, reduction='add')
    m = g.model([info('x', T.FLOAT, ['t', 32])], [info(out, T.FLOAT, None)], {'': 18})
    return m, ['--dim=t=10'], 10 * 32 * 4, {out: [10, 32]}, {'unknown': True}


@case
def nbits_variants():
    g = G()
    a = g.op('MatMulNBits', 'x', g.w('w8', T.UINT8, 96, 2, 32), g.w('s8', T.FLOAT16, 96 * 2), '', '', g.w('bias', T.FLOAT16, 96),
            domain=MS, K=64, N=96, bits=8, block_size=32)
    b = g.op('MatMulNBits', a, g.w('w2', T.UINT8, 40, 1, 32), g.w('s2', T.FLOAT16, 40), g.w('z2', T.UINT8, 40), domain=MS, K=96, N=40,
            bits=2, block_size=128)
    c = g.op('MatMulBnb4', b, g.w('w4', T.UINT8, 40 * 16 // 2), g.w('am', T.FLOAT16, 40 * 16 // 64), domain=MS, K=40, N=16, block_size=64,
            quant_type=1)
    m = g.model([info('x', T.FLOAT16, ['t', 64])], [info(c, T.FLOAT16, None)], {'': 21, MS: 1}, 10)
    return m, ['--dim=t=7'], 7 * (64 * 96 + 96 * 40 + 40 * 16), {c: [7, 16]}


@case
def embedding_in_blocks():
    g = G()
    e = g.op('GatherBlockQuantized', g.w('q', T.UINT8, 1000, 32), 'ids', g.w('s', T.FLOAT16, 1000, 2), g.w('z', T.UINT8, 1000, 1),
            domain=MS, bits=4, block_size=32, gather_axis=0, quantize_axis=1)
    n = g.op('SimplifiedLayerNormalization', e, g.w('g', T.FLOAT16, 64), axis=-1, epsilon=1e-5, stash_type=1)
    s, _, _, r = g.op('SkipSimplifiedLayerNormalization', n, e, g.w('g2', T.FLOAT16, 64), n=4, domain=MS)
    g.nodes[-1].output[1] = ''; g.nodes[-1].output[2] = ''
    y = g.op('MatMul', s, g.w('w', T.FLOAT16, 64, 8))
    m = g.model([info('ids', T.INT64, ['b', 's'])], [info(y, T.FLOAT16, None), info(r, T.FLOAT16, None)], {'': 17, MS: 1})
    return m, ['--dim=b=2', '--dim=s=3'], 6 * 64 * 8, {y: [2, 3, 8], r: [2, 3, 64], e: [2, 3, 64]}


@case
def linear_attention_and_state():
    g = G()
    c, st = g.op('CausalConvWithState', 'x', g.w('w', T.FLOAT, 32, 1, 4), g.w('b', T.FLOAT, 32), 'state', n=2, domain=MS, activation='silu')
    m = g.model([info('x', T.FLOAT, ['b', 32, 'l']), info('state', T.FLOAT, ['b', 32, 3])], [info(c, T.FLOAT, None), info(st, T.FLOAT,
            None)], {'': 17, MS: 1})
    return m, ['--dim=b=2', '--dim=l=5'], 2 * 32 * 5 * 4, {c: [2, 32, 5], st: [2, 32, 3]}


def tiny_decoder(prefix, hidden, vocab, layers):
    """a decoder of GreedySearch: input_ids, position_ids, attention_mask, past_i -> logits, present_i"""
    g = G()
    x = g.op('Gather', g.w(prefix + 'emb', T.FLOAT, vocab, hidden), 'input_ids')
    x = g.op('Add', x, g.op('Gather', g.w(prefix + 'pos', T.FLOAT, 64, hidden), 'position_ids'))
    presents = []
    for i in range(layers):
        y, p = g.op('Attention', x, g.w(f'{prefix}w{i}', T.FLOAT, hidden, 3 * hidden), g.w(f'{prefix}b{i}', T.FLOAT, 3 * hidden),
                'attention_mask', f'past_{i}', n=2, domain=MS, num_heads=4, unidirectional=1)
        x = g.op('Add', x, y)
        presents.append(p)
    logits = g.op('MatMul', x, g.w(prefix + 'head', T.FLOAT, hidden, vocab))
    graph = helper.make_graph(g.nodes, prefix, [info(n, T.INT32, ['batch', 'seq']) for n in ('input_ids',
            'position_ids')] + [info('attention_mask', T.INT32, ['batch', 'total'])] +
                              [info(f'past_{i}', T.FLOAT, [2, 'batch', 4, 'past', hidden // 4]) for i in range(layers)],
                              [info(logits, T.FLOAT, ['batch', 'seq', vocab])] + [info(p, T.FLOAT, [2, 'batch', 4, 'total',
                                      hidden // 4]) for p in presents], g.inits)
    return graph


def decoded(rows, tokens, past, hidden=32, vocab=100, layers=2):
    """products of tiny_decoder"""
    return rows * tokens * (layers * (3 * hidden * hidden + 2 * hidden * (past + tokens)) + hidden * vocab)


def search(op, known, *more, **graphs):
    """ids of two prompts of five; the longest text is a constant of 30, or an input"""
    g = G()
    inputs = [info('ids', T.INT32, ['batch_size', 'sequence_length'])]
    if known:
        g.c('max', T.INT32, [1], [30])
    else:
        inputs.append(info('max', T.INT32, [1]))
    for name, v in (('min', 1), *more):
        g.c(name, T.INT32, [1], [v])
    y = g.op(op, 'ids', 'max', 'min', *[name for name, _ in more], domain=MS, eos_token_id=2, pad_token_id=0, **graphs)
    m = g.model(inputs, [info(y, T.INT32, None)], {'': 17, MS: 1})
    return m, y, ['--dim=batch_size=2', '--dim=sequence_length=5']


@case
def greedy_search():
    m, y, dims = search('GreedySearch', True, model_type=0, decoder=tiny_decoder('d', 32, 100, 2))
    return m, dims, decoded(2, 5, 0) + 24 * decoded(2, 1, 5 + 23 // 2), {y: [2, 30]}


@case
def greedy_search_of_open_length():
    """by --trips, with a graph of its own for the prompt"""
    m, y, dims = search('GreedySearch', False, model_type=0, decoder=tiny_decoder('d', 32, 100, 2), init_decoder=tiny_decoder('i', 32, 100, 2))
    return m, dims + ['--trips=9'], decoded(2, 5, 0) + 9 * decoded(2, 1, 5 + 8 // 2), {}, {'unknown': True}


@case
def beam_search():
    m, y, dims = search('BeamSearch', True, ('beams', 4), ('ret', 3), model_type=0, decoder=tiny_decoder('d', 32, 100, 2))
    return m, dims, decoded(8, 5, 0) + 24 * decoded(8, 1, 5 + 23 // 2), {y: [2, 3, 30]}


@case
def search_without_its_graph():
    m, y, dims = search('GreedySearch', True)
    said = 'how much operator com.microsoft.GreedySearch computes is not known: it has no price'
    return m, dims, 0, {y: [2, 30]}, {'said': said, 'status': 4}


def cached(g, x, w, name):
    """keys or values of x, by head"""
    return g.op('Transpose', g.op('Reshape', g.op('MatMul', x, w), 'heads'), perm=[0, 2, 1, 3])


def cache_info(names):
    return [info(n, T.FLOAT, ['batch', 4, 'past' if 'self' in n else 'source', 8]) for n in names]


@case
def beam_search_with_an_encoder():
    """the encoder also makes the caches, those of its own tokens and those of the first one; the decoder looks at both"""
    kinds, h, v = ['self_key', 'self_value', 'cross_key', 'cross_value'], 32, 100
    e = G('e')
    e.c('heads', T.INT64, [4], [0, -1, 4, 8])
    x, first = (e.op('Gather', e.w('emb' + i, T.FLOAT, v, h), i) for i in ('encoder_input_ids', 'decoder_input_ids'))
    states = e.op('MatMul', x, e.w('we', T.FLOAT, h, h))
    logits = e.op('MatMul', first, e.w('lm', T.FLOAT, h, v))
    made = [cached(e, first if 'self' in k else states, e.w('w' + k, T.FLOAT, h, h), k) for k in kinds]
    ids = [info(n, T.INT32, ['batch', 'source']) for n in ('encoder_input_ids', 'encoder_attention_mask')]
    outs = [info(n, T.FLOAT, None) for n in (logits, states, *made)]
    encoder = helper.make_graph(e.nodes, 'encoder', [*ids, info('decoder_input_ids', T.INT32, ['batch', 1])], outs, e.inits)
    d = G('d')
    d.c('heads', T.INT64, [4], [0, -1, 4, 8]); d.c('flat', T.INT64, [3], [0, -1, 32])
    x = d.op('Gather', d.w('emb', T.FLOAT, v, h), 'input_ids')
    present = [d.op('Concat', 'past_' + k, cached(d, x, d.w('w' + k, T.FLOAT, h, h), k), axis=2) for k in kinds[:2]]
    for k, (key, value) in enumerate((present, ('past_cross_key', 'past_cross_value'))):
        q = cached(d, x, d.w(f'q{k}', T.FLOAT, h, h), 'q')
        scores = d.op('Softmax', d.op('MatMul', q, d.op('Transpose', key, perm=[0, 1, 3, 2])), axis=-1)
        x = d.op('Reshape', d.op('Transpose', d.op('MatMul', scores, value), perm=[0, 2, 1, 3]), 'flat')
    logits = d.op('MatMul', x, d.w('lm', T.FLOAT, h, v))
    ids = [info('input_ids', T.INT32, ['batch', 1]), info('encoder_attention_mask', T.INT32, ['batch', 'source']), info('encoder_hidden_states', T.FLOAT, ['batch', 'source', h])]
    decoder = helper.make_graph(d.nodes, 'decoder', ids + cache_info(['past_' + k for k in kinds]), [info(n, T.FLOAT, None) for n in (logits, *present)], d.inits)
    m, y, dims = search('BeamSearch', True, ('beams', 3), ('ret', 1), model_type=1, encoder=encoder, decoder=decoder, decoder_start_token_id=0)
    once = 2 * (5 * h * h + h * v + 2 * h * h + 2 * 5 * h * h)
    past = 1 + 27 // 2
    return m, dims, once + 28 * 6 * (4 * h * h + 2 * h * (past + 1) + 2 * h * 5 + h * v), {y: [2, 1, 30]}


@case
def fused_matmul():
    g = G()
    y = g.op('FusedMatMul', 'a', 'b', domain=MS, transA=1, transB=1, transBatchA=1, transBatchB=0, alpha=0.5)
    m = g.model([info('a', T.FLOAT, [6, 4, 10]), info('b', T.FLOAT, [4, 7, 6])], [info(y, T.FLOAT, None)], {'': 17, MS: 1})
    return m, [], 4 * 10 * 6 * 7, {y: [4, 10, 7]}


@case
def nhwc():
    g = G()
    x = g.op('NhwcFusedConv', 'x', g.w('w', T.FLOAT16, 16, 8, 3, 3), g.w('b', T.FLOAT16, 16), domain=MS, activation='Relu',
            kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    p = g.op('NhwcMaxPool', g.op('QuantizeLinear', x, g.c('s', T.FLOAT16, [], [0.1]), g.c('z', T.UINT8, [], [0])), domain=MS,
            kernel_shape=[2, 2], strides=[2, 2])
    m = g.model([info('x', T.FLOAT16, ['n', 17, 21, 8])], [info(p, T.UINT8, None)], {'': 19, MS: 1})
    return m, ['--dim=n=2'], 2 * 9 * 11 * 16 * 8 * 9, {x: [2, 9, 11, 16], p: [2, 4, 5, 16]}


@case
def diffusion_fused():
    g = G()
    a = g.op('GroupNorm', 'x', g.w('gs', T.FLOAT16, 64), g.w('gb', T.FLOAT16, 64), domain=MS, groups=32, activation=1, epsilon=1e-5)
    c = g.op('NhwcConv', a, g.w('w', T.FLOAT16, 64, 64, 3, 3), domain=MS, pads=[1, 1, 1, 1])
    s, r = g.op('SkipGroupNorm', c, g.w('s2', T.FLOAT16, 64), g.w('b2', T.FLOAT16, 64), 'x', g.w('bias', T.FLOAT16, 64), n=2, domain=MS,
            groups=32, activation=0)
    f = g.op('Reshape', s, g.c('sh', T.INT64, [3], [0, -1, 64]))
    w = g.op('MatMul', f, g.w('wf', T.FLOAT16, 64, 512))
    y = g.op('BiasSplitGelu', w, g.w('bf', T.FLOAT16, 512), domain=MS)
    z = g.op('BiasAdd', g.op('MatMul', y, g.w('wz', T.FLOAT16, 256, 64)), g.w('bz', T.FLOAT16, 64), f, domain=MS)
    m = g.model([info('x', T.FLOAT16, [2, 8, 8, 64])], [info(z, T.FLOAT16, None)], {'': 17, MS: 1})
    return m, [], 2 * 64 * 64 * 64 * 9 + 2 * 64 * 64 * 512 + 2 * 64 * 256 * 64, {z: [2, 64, 64]}


@case
def embed_skip_bias():
    g = G()
    e, mask, s = g.op('EmbedLayerNormalization', 'ids', 'seg', g.w('we', T.FLOAT, 100, 32), g.w('pe', T.FLOAT, 50, 32), g.w('se', T.FLOAT,
            2, 32), g.w('lg', T.FLOAT, 32), g.w('lb', T.FLOAT, 32), 'mask', n=3, domain=MS)
    a = g.op('Attention', e, g.w('wa', T.FLOAT, 32, 96), g.w('ba', T.FLOAT, 96), mask, domain=MS, num_heads=2)
    n = g.op('SkipLayerNormalization', a, e, g.w('g2', T.FLOAT, 32), g.w('b2', T.FLOAT, 32), g.w('bb', T.FLOAT, 32), domain=MS)
    f = g.op('BiasGelu', g.op('MatMul', n, g.w('w1', T.FLOAT, 32, 128)), g.w('c1', T.FLOAT, 128), domain=MS)
    y = g.op('MatMul', f, g.w('w2', T.FLOAT, 128, 32))
    m = g.model([info(n_, T.INT32, ['b', 's']) for n_ in ('ids', 'seg', 'mask')], [info(y, T.FLOAT, None)], {'': 12, MS: 1})
    b, sq = 3, 20
    return m, ['--dim=b=3', '--dim=s=20'], b * sq * 32 * 96 + 2 * b * sq * sq * 32 + 2 * b * sq * 32 * 128, {y: [3, 20, 32]}


@case
def fused_conv_with_sum():
    g = G()
    y = g.op('FusedConv', 'x', g.w('w', T.FLOAT, 8, 8, 1, 1), g.w('b', T.FLOAT, 8), 'z', domain=MS, activation='LeakyRelu',
            activation_params=[0.1], kernel_shape=[1, 1])
    m = g.model([info('x', T.FLOAT, [1, 8, 6, 6]), info('z', T.FLOAT, [1, 8, 6, 6])], [info(y, T.FLOAT, None)], {'': 17, MS: 1})
    return m, [], 36 * 64, {y: [1, 8, 6, 6]}


def split(g, x):
    return g.op('Transpose', g.op('Reshape', x, g.prefix + 'shape'), perm=[0, 2, 1, 3])


def attend(g, q, k, v):
    scores = g.op('MatMul', q, g.op('Transpose', k, perm=[0, 1, 3, 2]))
    return g.op('MatMul', g.op('Softmax', scores, axis=-1), v)


def decoder_branch(prefix, cached, hidden):
    """Of encoder_decoder_merged: with a cache the keys of the encoder pass through, without one they are computed."""
    g = G(prefix)
    g.c(prefix + 'shape', T.INT64, [4], [0, 0, 4, 8])
    e = g.op('Gather', 'emb', 'input_ids')
    q, k, v = (split(g, g.op('MatMul', e, w)) for w in ('wq', 'wk', 'wv'))
    if cached:
        k, v = g.op('Concat', 'past.k', k, axis=2), g.op('Concat', 'past.v', v, axis=2)
        ek, ev = g.op('Identity', 'past.ek'), g.op('Identity', 'past.ev')
    else:
        ek, ev = (split(g, g.op('MatMul', 'encoder_hidden_states', w)) for w in ('wek', 'wev'))
    y = attend(g, attend(g, q, k, v), ek, ev)
    y = g.op('Reshape', g.op('Transpose', y, perm=[0, 2, 1, 3]), g.c(prefix + 'back', T.INT64, [3], [0, 0, hidden]))
    y = g.op('MatMul', y, 'head')
    return helper.make_graph(g.nodes, prefix, [], [info(o, T.FLOAT, None) for o in (y, k, v, ek, ev)], g.inits)


@case
def encoder_decoder_merged():
    """optimum's decoder of an encoder and a decoder, for the first token and the others in one file"""
    g, hidden = G(), 32
    g.w('emb', T.FLOAT, 100, hidden)
    g.w('head', T.FLOAT, hidden, 100)
    for w in ('wq', 'wk', 'wv', 'wek', 'wev'):
        g.w(w, T.FLOAT, hidden, hidden)
    outs = g.op('If', 'use_cache_branch', n=5, then_branch=decoder_branch('t', True, hidden), else_branch=decoder_branch('e', False, hidden))
    length = 'encoder_sequence_length'
    m = g.model([info('input_ids', T.INT64, ['batch_size', 'decoder_sequence_length']), info('encoder_hidden_states', T.FLOAT, ['batch_size', length, hidden])] +
                [info(f'past.{n}', T.FLOAT, ['batch_size', 4, 'past_decoder_sequence_length', 8]) for n in 'kv'] +
                [info(f'past.e{n}', T.FLOAT, ['batch_size', 4, length + '_out', 8]) for n in 'kv'] +
                [info('use_cache_branch', T.BOOL, [1])], [info(o, T.FLOAT, None) for o in outs], {'': 14})
    b, s, e, p = 2, 1, 40, 7
    macs = b * s * 3 * hidden * hidden + 2 * b * s * (p + s) * hidden + 2 * b * s * e * hidden + b * s * hidden * 100
    dims = ['--dim=batch_size=2', '--dim=decoder_sequence_length=1', '--dim=past_decoder_sequence_length=7',
            '--dim=encoder_sequence_length=40', '--dim=encoder_sequence_length_out=40']
    return (m, dims, macs, {outs[0]: [2, 1, 100], outs[1]: [2, 4, 8, 8], outs[3]: [2, 4, 40, 8]},
            {'said': 'use_cache_branch is taken as true: past.k is not empty'})


@case
def einsum_forms():
    g = G()
    a = g.op('Einsum', 'q', 'k', equation='b h i d, b h j d -> b h i j')
    s = g.op('Softmax', a, axis=-1)
    y = g.op('Einsum', s, 'v', equation='...ij,...jd->...id')
    z = g.op('Einsum', y, g.w('w', T.FLOAT, 4, 8, 20), equation='bhid,hde->bie')
    m = g.model([info('q', T.FLOAT, ['b', 4, 's', 8]), info('k', T.FLOAT, ['b', 4, 't', 8]), info('v', T.FLOAT, ['b', 4, 't', 8])],
            [info(z, T.FLOAT, None)], {'': 17})
    return m, ['--dim=b=2', '--dim=s=3', '--dim=t=11'], 2 * 4 * 3 * 11 * 8 * 2 + 2 * 3 * 20 * 32, {z: [2, 3, 20]}


@case
def conv_transpose_and_3d():
    g = G()
    a = g.op('Conv', 'x', g.w('w', T.FLOAT, 8, 2, 1, 3, 3), kernel_shape=[1, 3, 3], pads=[0, 1, 1, 0, 1, 1], group=2, strides=[1, 2, 2])
    y = g.op('ConvTranspose', a, g.w('v', T.FLOAT, 8, 3, 2, 2, 2), strides=[2, 2, 2], output_padding=[1, 0, 1], group=1)
    m = g.model([info('x', T.FLOAT, [1, 4, 5, 8, 8])], [info(y, T.FLOAT, None)], {'': 11})
    return m, [], 5 * 4 * 4 * 8 * 2 * 9 + 5 * 4 * 4 * 8 * 3 * 8, {a: [1, 8, 5, 4, 4], y: [1, 3, 11, 8, 9]}


@case
def lstm_peephole_bidirectional():
    g = G()
    y, h, c = g.op('LSTM', 'x', g.w('w', T.FLOAT, 2, 64, 10), g.w('r', T.FLOAT, 2, 64, 16), g.w('b', T.FLOAT, 2, 128), 'lens', '', '',
            g.w('p', T.FLOAT, 2, 48), n=3, hidden_size=16, direction='bidirectional')
    m = g.model([info('x', T.FLOAT, ['t', 'b', 10]), info('lens', T.INT32, ['b'])], [info(y, T.FLOAT, None), info(h, T.FLOAT, None)],
            {'': 14})
    return m, ['--dim=t=12', '--dim=b=3'], 2 * 12 * 3 * 64 * 26, {y: [12, 2, 3, 16], h: [2, 3, 16]}


@case
def audio_front():
    """frames, window, transform, mel, log"""
    g = G()
    w = g.op('HannWindow', g.c('n', T.INT64, [], [400]))
    s = g.op('STFT', 'x', g.c('step', T.INT64, [], [160]), w, g.c('len', T.INT64, [], [400]), onesided=1)
    p = g.op('ReduceSumSquare', s, g.c('ax', T.INT64, [1], [-1]), keepdims=0)
    mel = g.op('MelWeightMatrix', g.c('nm', T.INT64, [], [80]), g.c('nd', T.INT64, [], [400]), g.c('sr', T.INT64, [], [16000]), g.c('lo',
            T.FLOAT, [], [0.0]), g.c('hi', T.FLOAT, [], [8000.0]))
    y = g.op('Log', g.op('MatMul', p, mel))
    m = g.model([info('x', T.FLOAT, ['b', 'samples'])], [info(y, T.FLOAT, None)], {'': 18})
    frames = (16000 - 400) // 160 + 1
    return m, ['--dim=b=2', '--dim=samples=16000'], 2 * frames * 201 * 80, {y: [2, frames, 80]}


@case
def resizes():
    g = G()
    a = g.op('Resize', 'x', '', '', g.c('s', T.INT64, [2], [20, 30]), mode='linear', axes=[2, 3], keep_aspect_ratio_policy='not_larger')
    b = g.op('Resize', a, '', g.c('f', T.FLOAT, [4], [1, 1, 2, 2]), mode='nearest')
    c = g.op('CenterCropPad', b, g.c('sh', T.INT64, [2], [16, 16]), axes=[2, 3])
    y = g.op('Conv', c, g.w('w', T.FLOAT, 4, 3, 3, 3))
    m = g.model([info('x', T.FLOAT, [1, 3, 10, 10])], [info(y, T.FLOAT, None)], {'': 18})
    return m, [], 14 * 14 * 4 * 27, {a: [1, 3, 20, 20], b: [1, 3, 40, 40], y: [1, 4, 14, 14]}


@case
def deformable_and_grid():
    g = G()
    o = g.op('Conv', 'x', g.w('wo', T.FLOAT, 18, 8, 3, 3), pads=[1, 1, 1, 1])
    d = g.op('DeformConv', 'x', g.w('wd', T.FLOAT, 16, 8, 3, 3), o, pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    gr = g.op('AffineGrid', 'theta', g.c('sz', T.INT64, [4], [1, 16, 7, 9]))
    y = g.op('GridSample', d, gr)
    m = g.model([info('x', T.FLOAT, [1, 8, 12, 12]), info('theta', T.FLOAT, [1, 2, 3])], [info(y, T.FLOAT, None)], {'': 20}, 9)
    macs = 12 * 12 * 18 * 72 + 12 * 12 * 16 * 72 + 7 * 9 * 2 * 3
    return m, [], macs, {d: [1, 16, 12, 12], y: [1, 16, 7, 9]}


@case
def split_variants():
    g = G()
    a, b, c = g.op('Split', 'x', n=3, axis=-1, num_outputs=3)
    s = g.op('MatMul', a, g.op('Transpose', b, perm=[0, 2, 1]))
    y = g.op('MatMul', s, c)
    m = g.model([info('x', T.FLOAT, ['b', 5, 16])], [info(y, T.FLOAT, None)], {'': 18})
    return m, ['--dim=b=2'], 2 * 25 * 6 + 2 * 25 * 4, {a: [2, 5, 6], c: [2, 5, 4], y: [2, 5, 4]}


@case
def group_conv1d_and_attributes_left_out():
    g = G()
    a = g.op('Conv', 'x', g.w('w', T.FLOAT, 32, 1, 5), auto_pad='SAME_LOWER', group=16, dilations=[2])
    y = g.op('ConvTranspose', a, g.w('v', T.FLOAT, 32, 4, 4), strides=[2], auto_pad='SAME_UPPER', group=4)
    m = g.model([info('x', T.FLOAT, [2, 16, 50])], [info(y, T.FLOAT, None)], {'': 11})
    return m, [], 2 * 50 * 32 * 5 + 2 * 50 * 32 * 4 * 4, {a: [2, 32, 50], y: [2, 16, 100]}
