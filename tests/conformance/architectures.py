#!/usr/bin/python3
"""architectures.py BENANZA: ten architectures that language.py does not have, as exporters write them, from published configurations:
experts, packed projections, capped scores and windows, norms of queries and keys, latent attention, an encoder and its decoder with
caches, a state space, a diffusion transformer, windows with relative positions. Each in f16 (or f32) and in 4 bits, in prefill and
decode: parameters, products, and the bytes that one token must read are those of a formula beside the graph."""
import json
import os
import subprocess
import sys
import tempfile

from onnx import TensorProto as T, helper, save

import language_models as lm
from language_models import MICROSOFT, Graph, linear, size

info = helper.make_tensor_value_info


def finish(g, name, inputs, outputs, opset=21):
    graph = helper.make_graph(g.nodes, name, inputs, outputs, list(g.constants.values()) + g.weights)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset), helper.make_opsetid(MICROSOFT, 1)])
    m.ir_version = 10
    return m


def caches(layers, kv, head, real, batch='batch_size', past='past_sequence_length', total='total_sequence_length', vhead=None):
    i, o = [], []
    for n in range(layers):
        for what, h in (('key', head), ('value', vhead or head)):
            i.append(info(f'past_key_values.{n}.{what}', real, [batch, kv, past, h]))
            o.append(info(f'present.{n}.{what}', real, [batch, kv, total, h]))
    return i, o


def node(g, kind, ins, outs, domain=MICROSOFT, **a):
    g.nodes.append(helper.make_node(kind, ins, outs, name=outs[0], domain=domain, **a))
    return outs[0]


def rms(g, x, name, n):
    return g.op('SimplifiedLayerNormalization', x, g.weight(name, n), axis=-1, epsilon=1e-5, stash_type=1)


def skip(g, x, s, name, n):
    y = f'skip_{g.n}'; g.n += 1
    node(g, 'SkipSimplifiedLayerNormalization', [x, s, g.weight(name, n)], [y, '', '', y + '.sum'], epsilon=1e-5)
    return y, y + '.sum'


def lengths(g):
    l = g.op('Cast', g.op('Sub', g.op('ReduceSum', 'attention_mask', g.ints(1), keepdims=0), g.ints(1)), to=T.INT32)
    return l, g.op('Cast', size(g, 'attention_mask', 1), to=T.INT32)


def gqa(g, parts, i, lens, total, cos, sin, heads, kv, head, **a):
    node(g, 'GroupQueryAttention', [*parts, f'past_key_values.{i}.key', f'past_key_values.{i}.value', lens, total, cos, sin],
         [f'attn_{i}', f'present.{i}.key', f'present.{i}.value'], num_heads=heads, kv_num_heads=kv, do_rotary=1 if cos else 0, scale=head ** -0.5, **a)
    return f'attn_{i}'


def lm_io(real, layers, kv, head, vocab, vhead=None):
    i, o = caches(layers, kv, head, real, vhead=vhead)
    return ([info('input_ids', T.INT64, ['batch_size', 'sequence_length']), info('attention_mask', T.INT64, ['batch_size', 'total_sequence_length'])] + i,
            [info('logits', real, ['batch_size', 'sequence_length', vocab])] + o)


def mixtral(int4):
    h, inner, L, heads, kv, head, vocab, experts, top = 4096, 14336, 32, 32, 8, 128, 32000, 8, 2
    g = Graph(T.FLOAT16); cc = lm.Config(h, inner, L, heads, kv, vocab)
    lens, total = lengths(g); cos, sin = (g.weight(f + '_cache', 4096, head // 2) for f in ('cos', 'sin'))
    x = g.op('Gather', g.weight('embed', vocab, h), 'input_ids'); s = None
    for i in range(L):
        n = f'l{i}'; g.file = n
        y, x = (rms(g, x, n + '.n1', h), x) if s is None else skip(g, x, s, n + '.n1', h)
        q, k, v = (linear(g, cc, y, f'{n}.{p}', h, w, int4, 'genai') for p, w in (('q', 4096), ('k', 1024), ('v', 1024)))
        y = linear(g, cc, gqa(g, [q, k, v], i, lens, total, cos, sin, heads, kv, head), n + '.o', 4096, h, int4, 'genai')
        y, x = skip(g, x, y, n + '.n2', h)
        r = g.op('Reshape', g.op('MatMul', y, g.weight(n + '.router', h, experts)), g.ints(-1, experts))
        E, I, H = experts, inner, h
        if int4:
            s = node(g, 'QMoE', [y, r, g.weight(n+'.w1', E, 2*I, H//2, kind=T.UINT8), g.weight(n+'.s1', E, 2*I), '', g.weight(n+'.w2', E, H, I//2, kind=T.UINT8), g.weight(n+'.s2', E, H), ''],
                     [n + '.moe'], k=2, activation_type='swiglu', expert_weight_bits=4, normalize_routing_weights=1, swiglu_fusion=1)
        else:
            s = node(g, 'MoE', [y, r, g.weight(n+'.w1', E, I, H), '', g.weight(n+'.w2', E, H, I), '', g.weight(n+'.w3', E, I, H), ''],
                     [n + '.moe'], k=2, activation_type='silu', normalize_routing_weights=1)
    g.file = 'model'
    x, _ = skip(g, x, s, 'norm', h)
    g.nodes.append(helper.make_node('Identity', [linear(g, cc, x, 'lm_head', h, vocab, int4, 'genai')], ['logits']))
    attn = h * (4096 + 2048) + 4096 * h
    expert = 3 * h * inner
    def macs(b, p, t): return b * t * (L * (attn + h * experts + top * expert + 2 * heads * head * (p + t)) + vocab * h)
    params = L * (attn + h * experts + experts * expert + 2 * h) + h + 2 * vocab * h
    def floor(p): # bytes of one token
        w = L * (attn + top * expert) + vocab * h
        rest = L * h * experts
        return (w / 2 if int4 else 2 * w) + 2 * rest + 2 * 2 * L * kv * head * (p + 1)
    return finish(g, 'mixtral', *lm_io(T.FLOAT16, L, kv, head, vocab)), macs, params + 4096 * head, floor


def phi2(int4):
    h, inner, L, heads, head, vocab, rot = 2560, 10240, 32, 32, 80, 51200, 32
    g = Graph(T.FLOAT16); cc = lm.Config(h, inner, L, heads, heads, vocab)
    lens, total = lengths(g); cos, sin = (g.weight(f + '_cache', 2048, rot // 2) for f in ('cos', 'sin'))
    x = g.op('Gather', g.weight('embed', vocab, h), 'input_ids')
    for i in range(L):
        n = f'l{i}'; g.file = n
        y = g.op('LayerNormalization', x, g.weight(n + '.n', h), g.weight(n + '.nb', h), axis=-1)
        qkv = linear(g, cc, y, n + '.qkv', h, 3 * h, int4, 'genai', bias=True)
        a = gqa(g, [qkv, '', ''], i, lens, total, cos, sin, heads, heads, head)
        a = linear(g, cc, a, n + '.o', h, h, int4, 'genai', bias=True)
        m = linear(g, cc, y, n + '.fc1', h, inner, int4, 'genai', bias=True)
        m = linear(g, cc, g.op('FastGelu', m, domain=MICROSOFT), n + '.fc2', inner, h, int4, 'genai', bias=True)
        x = g.op('Add', x, g.op('Add', a, m))
    g.file = 'model'
    x = g.op('LayerNormalization', x, g.weight('norm', h), g.weight('normb', h), axis=-1)
    g.nodes.append(helper.make_node('Identity', [linear(g, cc, x, 'lm_head', h, vocab, int4, 'genai', bias=True)], ['logits']))
    w = 4 * h * h + 2 * h * inner
    def macs(b, p, t): return b * t * (L * (w + 2 * heads * head * (p + t)) + vocab * h)
    params = L * (w + 2 * h + 4 * h + inner + h) + 2 * h + 2 * vocab * h + vocab + 2048 * rot
    def floor(p): return (L * w + vocab * h) * (0.5 if int4 else 2) + 4 * L * heads * head * (p + 1)
    return finish(g, 'phi', *lm_io(T.FLOAT16, L, heads, head, vocab)), macs, params, floor


def gemma2(int4):
    h, inner, L, heads, kv, head, vocab = 2304, 9216, 26, 8, 4, 256, 256000
    g = Graph(T.FLOAT16); cc = lm.Config(h, inner, L, heads, kv, vocab, head=head)
    lens, total = lengths(g); cos, sin = (g.weight(f + '_cache', 8192, head // 2) for f in ('cos', 'sin'))
    x = g.op('Mul', g.op('Gather', g.weight('embed', vocab, h), 'input_ids'), g.real_constant(h ** .5)); s = None
    for i in range(L):
        n = f'l{i}'; g.file = n
        y, x = (rms(g, x, n + '.n1', h), x) if s is None else skip(g, x, s, n + '.n1', h)
        q, k, v = (linear(g, cc, y, f'{n}.{p}', h, w * head, int4, 'genai') for p, w in (('q', heads), ('k', kv), ('v', kv)))
        a = gqa(g, [q, k, v], i, lens, total, cos, sin, heads, kv, head, softcap=50.0, local_window_size=4096 if i % 2 == 0 else -1)
        a = rms(g, linear(g, cc, a, n + '.o', heads * head, h, int4, 'genai'), n + '.n2', h)
        y, x = skip(g, x, a, n + '.n3', h)
        u = g.op('Mul', g.op('FastGelu', linear(g, cc, y, n + '.gate', h, inner, int4, 'genai'), domain=MICROSOFT), linear(g, cc, y, n + '.up', h, inner, int4, 'genai'))
        s = rms(g, linear(g, cc, u, n + '.down', inner, h, int4, 'genai'), n + '.n4', h)
    g.file = 'model'
    x, _ = skip(g, x, s, 'norm', h)
    y = g.op('MatMul', x, g.op('Transpose', 'embed', perm=[1, 0]))
    y = g.op('Mul', g.op('Tanh', g.op('Div', y, g.real_constant(30.0))), g.real_constant(30.0))
    g.nodes.append(helper.make_node('Identity', [y], ['logits']))
    w = h * (heads + 2 * kv) * head + heads * head * h + 3 * h * inner
    def macs(b, p, t): return b * t * (L * w + vocab * h) + b * t * L * 2 * heads * head * (p + t) if p + t <= 4096 else None
    params = L * (w + 4 * h) + h + vocab * h + 8192 * head
    def floor(p): return L * w * (0.5 if int4 else 2) + 2 * vocab * h + 4 * L // 2 * kv * head * (p + 1 + min(p + 1, 4096))
    return finish(g, 'gemma', *lm_io(T.FLOAT16, L, kv, head, vocab)), macs, params, floor


def qwen3(int4):
    h, inner, L, heads, kv, head, vocab = 2560, 9728, 36, 32, 8, 128, 151936
    g = Graph(T.FLOAT16); cc = lm.Config(h, inner, L, heads, kv, vocab, head=head)
    lens, total = lengths(g); cos, sin = (g.weight(f + '_cache', 4096, head // 2) for f in ('cos', 'sin'))
    x = g.op('Gather', g.weight('embed', vocab, h), 'input_ids'); s = None
    for i in range(L):
        n = f'l{i}'; g.file = n
        y, x = (rms(g, x, n + '.n1', h), x) if s is None else skip(g, x, s, n + '.n1', h)
        q, k, v = (linear(g, cc, y, f'{n}.{p}', h, w * head, int4, 'genai') for p, w in (('q', heads), ('k', kv), ('v', kv)))
        for w, cnt in (('q', heads), ('k', kv)):
            t = q if w == 'q' else k
            t = g.op('Reshape', rms(g, g.op('Reshape', t, g.ints(0, -1, head)), f'{n}.{w}norm', head), g.ints(0, -1, cnt * head))
            if w == 'q': q = t
            else: k = t
        a = linear(g, cc, gqa(g, [q, k, v], i, lens, total, cos, sin, heads, kv, head), n + '.o', heads * head, h, int4, 'genai')
        y, x = skip(g, x, a, n + '.n2', h)
        gate = linear(g, cc, y, n + '.gate', h, inner, int4, 'genai')
        s = linear(g, cc, g.op('Mul', g.op('Mul', gate, g.op('Sigmoid', gate)), linear(g, cc, y, n + '.up', h, inner, int4, 'genai')), n + '.down', inner, h, int4, 'genai')
    g.file = 'model'
    x, _ = skip(g, x, s, 'norm', h)
    g.nodes.append(helper.make_node('Identity', [g.op('MatMul', x, g.op('Transpose', 'embed', perm=[1, 0]))], ['logits']))
    w = h * (heads + 2 * kv) * head + heads * head * h + 3 * h * inner
    def macs(b, p, t): return b * t * (L * (w + 2 * heads * head * (p + t)) + vocab * h)
    params = L * (w + 2 * h + 2 * head) + h + vocab * h + 4096 * head
    def floor(p): return L * w * (0.5 if int4 else 2) + 2 * vocab * h + 4 * L * kv * head * (p + 1)
    return finish(g, 'qwen3', *lm_io(T.FLOAT16, L, kv, head, vocab)), macs, params, floor


def deepseek(int4):
    """MLA of DeepSeek-V2-Lite, opset 23 Attention with keys of 192 and values of 128, as dynamo writes it (16 heads, first layers dense)."""
    h, inner, L, heads, nope, rope, vhead, rank, vocab = 2048, 10944, 27, 16, 128, 64, 128, 512, 102400
    g = Graph(T.FLOAT16); cc = lm.Config(h, inner, L, heads, heads, vocab)
    cos, sin = (g.weight(f + '_cache', 4096, rope // 2) for f in ('cos', 'sin'))
    x = g.op('Gather', g.weight('embed', vocab, h), 'input_ids')
    mask = g.op('Cast', g.op('Unsqueeze', 'attention_mask', g.ints(1, 2)), to=T.BOOL)
    st = 'dynamo'
    for i in range(L):
        n = f'l{i}'; g.file = n
        y = g.op('RMSNormalization', x, g.weight(n + '.n1', h), axis=-1)
        q = g.op('Transpose', g.op('Reshape', linear(g, cc, y, n + '.q', h, heads * (nope + rope), int4, st), g.ints(0, -1, heads, nope + rope)), perm=[0, 2, 1, 3])
        qn, qr = g.op('Split', q, g.ints(nope, rope), n=2, axis=-1)
        kv, kr = g.op('Split', linear(g, cc, y, n + '.kva', h, rank + rope, int4, st), g.ints(rank, rope), n=2, axis=-1)
        kr = g.op('Transpose', g.op('Reshape', kr, g.ints(0, -1, 1, rope)), perm=[0, 2, 1, 3])
        kv = linear(g, cc, g.op('RMSNormalization', kv, g.weight(n + '.kvn', rank), axis=-1), n + '.kvb', rank, heads * (nope + vhead), int4, st)
        kv = g.op('Transpose', g.op('Reshape', kv, g.ints(0, -1, heads, nope + vhead)), perm=[0, 2, 1, 3])
        kn, v = g.op('Split', kv, g.ints(nope, vhead), n=2, axis=-1)
        qr, kr = (g.op('RotaryEmbedding', t, cos, sin, 'position_ids') for t in (qr, kr))
        kr = g.op('Expand', kr, g.op('Concat', g.op('Shape', kn, start=0, end=3), g.ints(rope), axis=0))
        q, k = g.op('Concat', qn, qr, axis=-1), g.op('Concat', kn, kr, axis=-1)
        node(g, 'Attention', [q, k, v, mask, f'past_key_values.{i}.key', f'past_key_values.{i}.value'], [f'attn_{i}', f'present.{i}.key', f'present.{i}.value'], domain='', is_causal=1, scale=(nope + rope) ** -0.5)
        a = g.op('Reshape', g.op('Transpose', f'attn_{i}', perm=[0, 2, 1, 3]), g.ints(0, -1, heads * vhead))
        x = g.op('Add', x, linear(g, cc, a, n + '.o', heads * vhead, h, int4, st))
        y = g.op('RMSNormalization', x, g.weight(n + '.n2', h), axis=-1)
        gate = linear(g, cc, y, n + '.gate', h, inner, int4, st)
        x = g.op('Add', x, linear(g, cc, g.op('Mul', g.op('Mul', gate, g.op('Sigmoid', gate)), linear(g, cc, y, n + '.up', h, inner, int4, st)), n + '.down', inner, h, int4, st))
    g.file = 'model'
    x = g.op('RMSNormalization', x, g.weight('norm', h), axis=-1)
    g.nodes.append(helper.make_node('Identity', [linear(g, cc, x, 'lm_head', h, vocab, int4, st)], ['logits']))
    w = h * heads * (nope + rope) + h * (rank + rope) + rank * heads * (nope + vhead) + heads * vhead * h + 3 * h * inner
    def macs(b, p, t): return b * t * (L * (w + heads * (nope + rope + vhead) * (p + t)) + vocab * h)
    params = L * (w + 2 * h + rank) + h + 2 * vocab * h + 4096 * rope
    def floor(p): return (L * w + vocab * h) * (0.5 if int4 else 2) + 2 * L * heads * (nope + rope + vhead) * (p + 1)
    i, o = lm_io(T.FLOAT16, L, heads, nope + rope, vocab, vhead)
    return finish(g, 'deepseek', i + [info('position_ids', T.INT64, ['batch_size', 'sequence_length'])], o, opset=23), macs, params, floor


def whisper_encoder(int4):
    h, inner, L, heads, frames = 1280, 5120, 32, 20, 3000
    g = Graph(T.FLOAT16); cc = lm.Config(h, inner, L, heads, heads, 1)
    x = g.op('Gelu', g.op('Conv', 'input_features', g.weight('c1', h, 128, 3), g.weight('b1', h), kernel_shape=[3], pads=[1, 1]), domain=MICROSOFT)
    x = g.op('Gelu', g.op('Conv', x, g.weight('c2', h, h, 3), g.weight('b2', h), kernel_shape=[3], pads=[1, 1], strides=[2]), domain=MICROSOFT)
    x = g.op('Add', g.op('Transpose', x, perm=[0, 2, 1]), g.weight('pos', frames // 2, h))
    for i in range(L):
        n = f'l{i}'; g.file = n
        y = g.op('LayerNormalization', x, g.weight(n + '.n', h), g.weight(n + '.nb', h), axis=-1)
        q, k, v = (linear(g, cc, y, f'{n}.{p}', h, h, int4, 'genai') for p in 'qkv')
        a = node(g, 'MultiHeadAttention', [q, k, v, g.weight(n + '.qkvb', 3 * h)], [n + '.a'], num_heads=heads)
        x = g.op('Add', x, linear(g, cc, a, n + '.o', h, h, int4, 'genai', bias=True))
        y = g.op('LayerNormalization', x, g.weight(n + '.n2', h), g.weight(n + '.nb2', h), axis=-1)
        m = g.op('BiasGelu', linear(g, cc, y, n + '.fc1', h, inner, int4, 'genai'), g.weight(n + '.fb', inner), domain=MICROSOFT)
        x = g.op('Add', x, linear(g, cc, m, n + '.fc2', inner, h, int4, 'genai', bias=True))
    g.nodes.append(helper.make_node('LayerNormalization', [x, g.weight('n', h), g.weight('nb', h)], ['last_hidden_state'], axis=-1))
    w = 4 * h * h + 2 * h * inner
    t = frames // 2
    def macs(b, p, tt): return b * (frames * h * 128 * 3 + t * h * h * 3 + L * (t * w + 2 * t * t * h))
    params = 128 * 3 * h + h + 3 * h * h + h + t * h + L * (w + 3 * h + h + inner + h + 4 * h) + 2 * h
    return finish(g, 'whisper', [info('input_features', T.FLOAT16, ['batch_size', 128, frames])], [info('last_hidden_state', T.FLOAT16, ['batch_size', t, h])]), macs, params, None


def whisper_decoder(int4):
    h, inner, L, heads, head, vocab, t = 1280, 5120, 4, 20, 64, 51866, 1500   # large-v3-turbo
    g = Graph(T.FLOAT16); cc = lm.Config(h, inner, L, heads, heads, 1)
    x = g.op('Gather', g.weight('embed', vocab, h), 'input_ids')
    x = g.op('Add', x, g.op('Gather', g.weight('pos', 448, h), 'position_ids'))
    for i in range(L):
        n = f'l{i}'; g.file = n
        ln = lambda v, k: g.op('LayerNormalization', v, g.weight(f'{n}.n{k}', h), g.weight(f'{n}.nb{k}', h), axis=-1)
        y = ln(x, 1)
        q, k, v = (linear(g, cc, y, f'{n}.{p}', h, h, int4, 'genai') for p in 'qkv')
        node(g, 'MultiHeadAttention', [q, k, v, g.weight(n + '.qkvb', 3 * h), '', '', f'past_key_values.{i}.key', f'past_key_values.{i}.value'],
             [n + '.a', f'present.{i}.key', f'present.{i}.value'], num_heads=heads, unidirectional=1)
        x = g.op('Add', x, linear(g, cc, n + '.a', n + '.o', h, h, int4, 'genai', bias=True))
        q = linear(g, cc, ln(x, 2), n + '.cq', h, h, int4, 'genai')
        node(g, 'MultiHeadAttention', [q, f'cross.{i}.key', f'cross.{i}.value', g.weight(n + '.cqb', 3 * h)], [n + '.c'], num_heads=heads)
        x = g.op('Add', x, linear(g, cc, n + '.c', n + '.co', h, h, int4, 'genai', bias=True))
        m = g.op('BiasGelu', linear(g, cc, ln(x, 3), n + '.fc1', h, inner, int4, 'genai'), g.weight(n + '.fb', inner), domain=MICROSOFT)
        x = g.op('Add', x, linear(g, cc, m, n + '.fc2', inner, h, int4, 'genai', bias=True))
    x = g.op('LayerNormalization', x, g.weight('n', h), g.weight('nb', h), axis=-1)
    g.nodes.append(helper.make_node('MatMul', [x, g.op('Transpose', 'embed', perm=[1, 0])], ['logits']))
    w = 6 * h * h + 2 * h * inner
    def macs(b, p, tt): return b * tt * (L * (w + 2 * h * (p + tt) + 2 * h * t) + vocab * h)
    params = vocab * h + 448 * h + L * (w + 6 * h + 2 * h + inner + h + 6 * h) + 2 * h
    i, o = caches(L, heads, head, T.FLOAT16)
    i = [info('input_ids', T.INT64, ['batch_size', 'sequence_length']), info('position_ids', T.INT64, ['batch_size', 'sequence_length'])] + i
    i += [info(f'cross.{n}.{w2}', T.FLOAT16, ['batch_size', heads, t, head]) for n in range(L) for w2 in ('key', 'value')]
    def floor(p): return L * w * (0.5 if int4 else 2) + 2 * vocab * h + 4 * L * h * (p + 1 + t)
    return finish(g, 'whisperd', i, [info('logits', T.FLOAT16, ['batch_size', 'sequence_length', vocab])] + o), macs, params, floor


def mamba(int4):
    """Mamba-130m: a causal convolution and a selective scan; the scan as ONNX Scan over time."""
    h, L, vocab, N, K = 768, 24, 50280, 16, 4
    d, r = 2 * h, 48
    g = Graph(T.FLOAT); cc = lm.Config(h, d, L, 1, 1, vocab)
    x = g.op('Gather', g.weight('embed', vocab, h), 'input_ids')
    for i in range(L):
        n = f'l{i}'; g.file = n
        y = g.op('RMSNormalization', x, g.weight(n + '.n', h), axis=-1)
        u, z = g.op('Split', linear(g, cc, y, n + '.in', h, 2 * d, int4, 'genai'), n=2, axis=-1, num_outputs=2)
        u = g.op('Transpose', u, perm=[0, 2, 1])
        u = g.op('Conv', u, g.weight(n + '.cw', d, 1, K), g.weight(n + '.cb', d), group=d, kernel_shape=[K], pads=[K - 1, 0])
        u = g.op('Transpose', g.op('Mul', u, g.op('Sigmoid', u)), perm=[0, 2, 1])
        dt, Bm, C = g.op('Split', linear(g, cc, u, n + '.x', d, r + 2 * N, False, 'genai'), g.ints(r, N, N), n=3, axis=-1)
        dt = g.op('Softplus', linear(g, cc, dt, n + '.dt', r, d, False, 'genai', bias=True))
        # state: h = exp(dt A) h + dt B u ; y = C h + D u ; scanned over axis 1 of everything
        nn = []
        mk = lambda op, ins, out, **a: nn.append(helper.make_node(op, ins, [out], **a))
        mk('Unsqueeze', ['dt_t', 'last'], 'dt3'); mk('Mul', ['dt3', f'{n}.A'], 'dA'); mk('Exp', ['dA'], 'eA'); mk('Mul', ['eA', 'h_in'], 'hA')
        mk('Mul', ['dt_t', 'u_t'], 'du'); mk('Unsqueeze', ['du', 'last'], 'du3'); mk('Unsqueeze', ['b_t', 'mid'], 'b3'); mk('Mul', ['du3', 'b3'], 'hB'); mk('Add', ['hA', 'hB'], 'h_out')
        mk('Unsqueeze', ['c_t', 'last'], 'c3'); mk('MatMul', ['h_out', 'c3'], 'y3'); mk('Squeeze', ['y3', 'last'], 'y_t')
        F = T.FLOAT
        body = helper.make_graph(nn, 'step', [info('h_in', F, None), info('dt_t', F, None), info('u_t', F, None), info('b_t', F, None), info('c_t', F, None)],
                                 [info('h_out', F, None), info('y_t', F, None)], [helper.make_tensor('last', T.INT64, [1], [-1]), helper.make_tensor('mid', T.INT64, [1], [1])])
        g.weight(n + '.A', d, N)
        g.nodes.append(helper.make_node('Scan', [f'past.{i}', dt, u, Bm, C], [f'present.{i}', n + '.y'], name=n + '.scan', body=body, num_scan_inputs=4, scan_input_axes=[1, 1, 1, 1], scan_output_axes=[1]))
        y = g.op('Add', n + '.y', g.op('Mul', u, g.weight(n + '.D', d)))
        y = g.op('Mul', y, g.op('Mul', z, g.op('Sigmoid', z)))
        x = g.op('Add', x, linear(g, cc, y, n + '.out', d, h, int4, 'genai'))
    x = g.op('RMSNormalization', x, g.weight('n', h), axis=-1)
    g.nodes.append(helper.make_node('MatMul', [x, g.op('Transpose', 'embed', perm=[1, 0])], ['logits']))
    def macs(b, p, t): return b * L * (t * (h * 2 * d + d * (r + 2 * N) + r * d + d * h + d * N) + d * K * t) + b * t * vocab * h
    params = vocab * h + L * (h * 2 * d + d * K + d + d * (r + 2 * N) + r * d + d + d * N + d + d * h + h) + h
    i = [info('input_ids', T.INT64, ['batch_size', 'sequence_length'])] + [info(f'past.{k}', T.FLOAT, ['batch_size', d, N]) for k in range(L)]
    o = [info('logits', T.FLOAT, ['batch_size', 'sequence_length', vocab])] + [info(f'present.{k}', T.FLOAT, ['batch_size', d, N]) for k in range(L)]
    return finish(g, 'mamba', i, o, opset=23), macs, params, None


def dit(int4):
    """DiT-XL/2 at 256: patches of latents, blocks with adaptive norms."""
    h, L, heads, size_, patch = 1152, 28, 16, 32, 2
    inner, t = 4 * h, (size_ // patch) ** 2
    g = Graph(T.FLOAT16); cc = lm.Config(h, inner, L, heads, heads, 1)
    x = g.op('Conv', 'latent', g.weight('patch', h, 4, patch, patch), g.weight('patchb', h), strides=[patch, patch], kernel_shape=[patch, patch])
    x = g.op('Add', g.op('Transpose', g.op('Reshape', x, g.ints(0, h, -1)), perm=[0, 2, 1]), g.weight('pos', 1, t, h))
    c = g.op('Gemm', 'time_embedding', g.weight('t1', h, 256), g.weight('t1b', h), transB=1)
    c = g.op('Gemm', g.op('Mul', c, g.op('Sigmoid', c)), g.weight('t2', h, h), g.weight('t2b', h), transB=1)
    c = g.op('Add', c, g.op('Gather', g.weight('labels', 1001, h), 'label'))
    act = g.op('Mul', c, g.op('Sigmoid', c))
    ones, zeros = g.weight('ones', h), g.weight('zeros', h)
    def mod(v, shift, scale):
        v = g.op('LayerNormalization', v, ones, zeros, axis=-1)
        one = g.op('Add', g.op('Unsqueeze', scale, g.ints(1)), g.real_constant(1.0))
        return g.op('Add', g.op('Mul', v, one), g.op('Unsqueeze', shift, g.ints(1)))
    for i in range(L):
        n = f'l{i}'; g.file = n
        m = g.op('Split', g.op('Gemm', act, g.weight(n + '.ada', 6 * h, h), g.weight(n + '.adab', 6 * h), transB=1), n=6, axis=1, num_outputs=6)
        y = linear(g, cc, mod(x, m[0], m[1]), n + '.qkv', h, 3 * h, int4, 'genai', bias=True)
        y = g.op('Transpose', g.op('Reshape', y, g.ints(0, -1, 3, heads, h // heads)), perm=[2, 0, 3, 1, 4])
        q, k, v = (g.op('Squeeze', s, g.ints(0)) for s in g.op('Split', y, n=3, axis=0, num_outputs=3))
        a = g.op('Softmax', g.op('MatMul', g.op('Mul', q, g.real_constant((h // heads) ** -0.5)), g.op('Transpose', k, perm=[0, 1, 3, 2])), axis=-1)
        a = g.op('Reshape', g.op('Transpose', g.op('MatMul', a, v), perm=[0, 2, 1, 3]), g.ints(0, -1, h))
        a = linear(g, cc, a, n + '.o', h, h, int4, 'genai', bias=True)
        x = g.op('Add', x, g.op('Mul', g.op('Unsqueeze', m[2], g.ints(1)), a))
        y = linear(g, cc, g.op('Gelu', linear(g, cc, mod(x, m[3], m[4]), n + '.fc1', h, inner, int4, 'genai', bias=True), approximate='tanh'), n + '.fc2', inner, h, int4, 'genai', bias=True)
        x = g.op('Add', x, g.op('Mul', g.op('Unsqueeze', m[5], g.ints(1)), y))
    s = g.op('Split', g.op('Gemm', act, g.weight('fa', 2 * h, h), g.weight('fab', 2 * h), transB=1), n=2, axis=1, num_outputs=2)
    y = linear(g, cc, mod(x, *s), 'final', h, patch * patch * 8, int4, 'genai', bias=True)
    y = g.op('Transpose', g.op('Reshape', y, g.ints(0, 16, 16, 2, 2, 8)), perm=[0, 5, 1, 3, 2, 4])
    g.nodes.append(helper.make_node('Reshape', [y, g.ints(0, 8, 32, 32)], ['noise']))
    w = 4 * h * h + 2 * h * inner
    def macs(b, p, tt): return b * (t * h * 16 + h * 256 + h * h + L * (6 * h * h + t * w + 2 * t * t * h) + 2 * h * h + t * h * 32)
    params = 16 * h + h + t * h + 256 * h + h + h * h + h + 1001 * h + 2 * h + L * (6 * h * h + 6 * h + w + 3 * h + h + inner + h) + 2 * h * h + 2 * h + 32 * h + 32
    return finish(g, 'dit', [info('latent', T.FLOAT16, ['batch_size', 4, 32, 32]), info('time_embedding', T.FLOAT16, ['batch_size', 256]), info('label', T.INT64, ['batch_size'])],
                  [info('noise', T.FLOAT16, ['batch_size', 8, 32, 32])]), macs, params, None


def sam(int4):
    """The image encoder of SAM ViT-B: windows of 14, four global blocks, relative positions by Einsum."""
    h, L, heads, res, win = 768, 12, 12, 64, 14
    head, inner = h // heads, 4 * h
    g = Graph(T.FLOAT16); cc = lm.Config(h, inner, L, heads, heads, 1)
    x = g.op('Conv', 'image', g.weight('patch', h, 3, 16, 16), g.weight('pb', h), strides=[16, 16], kernel_shape=[16, 16])
    x = g.op('Add', g.op('Transpose', x, perm=[0, 2, 3, 1]), g.weight('pos', 1, res, res, h))
    mac = res * res * h * 768
    params = h * 768 + h + res * res * h
    for i in range(L):
        n = f'l{i}'; g.file = n
        glob = i in (2, 5, 8, 11)
        y = g.op('LayerNormalization', x, g.weight(n + '.n', h), g.weight(n + '.nb', h), axis=-1)
        s = res if glob else win
        if not glob:
            y = g.op('Pad', y, g.ints(0, 0, 0, 0, 0, 6, 6, 0))
            y = g.op('Reshape', y, g.ints(0, 5, 14, 5, 14, h))
            y = g.op('Reshape', g.op('Transpose', y, perm=[0, 1, 3, 2, 4, 5]), g.ints(-1, 14, 14, h))
        wins = 1 if glob else 25
        qkv = linear(g, cc, y, n + '.qkv', h, 3 * h, int4, 'genai', bias=True)
        qkv = g.op('Transpose', g.op('Reshape', qkv, g.ints(wins, s * s, 3, heads, head)), perm=[2, 0, 3, 1, 4])
        qkv = g.op('Reshape', qkv, g.ints(3, wins * heads, s * s, head))
        q, k, v = (g.op('Squeeze', p, g.ints(0)) for p in g.op('Split', qkv, n=3, axis=0, num_outputs=3))
        a = g.op('MatMul', g.op('Mul', q, g.real_constant(head ** -0.5)), g.op('Transpose', k, perm=[0, 2, 1]))
        r = g.op('Reshape', q, g.ints(wins * heads, s, s, head))
        def table(name):
            at = g.op('Range', g.ints(0, scalar=True), g.ints(s, scalar=True), g.ints(1, scalar=True))
            return g.op('Gather', g.weight(n + name, 2 * s - 1, head), g.op('Add', g.op('Unsqueeze', at, g.ints(1)), at))
        rh = g.op('Einsum', r, table('.rh'), equation='bhwc,hkc->bhwk')
        rw = g.op('Einsum', r, table('.rw'), equation='bhwc,wkc->bhwk')
        a = g.op('Reshape', a, g.ints(wins * heads, s, s, s, s))
        a = g.op('Add', g.op('Add', a, g.op('Unsqueeze', rh, g.ints(-1))), g.op('Unsqueeze', rw, g.ints(-2)))
        a = g.op('Softmax', g.op('Reshape', a, g.ints(wins * heads, s * s, s * s)), axis=-1)
        a = g.op('Reshape', g.op('MatMul', a, v), g.ints(wins, heads, s, s, head))
        a = g.op('Reshape', g.op('Transpose', a, perm=[0, 2, 3, 1, 4]), g.ints(wins, s, s, h))
        a = linear(g, cc, a, n + '.o', h, h, int4, 'genai', bias=True)
        if not glob:
            a = g.op('Transpose', g.op('Reshape', a, g.ints(1, 5, 5, 14, 14, h)), perm=[0, 1, 3, 2, 4, 5])
            a = g.op('Slice', g.op('Reshape', a, g.ints(1, 70, 70, h)), g.ints(0, 0), g.ints(64, 64), g.ints(1, 2))
        x = g.op('Add', x, a)
        y = g.op('LayerNormalization', x, g.weight(n + '.n2', h), g.weight(n + '.nb2', h), axis=-1)
        y = g.op('Gelu', linear(g, cc, y, n + '.fc1', h, inner, int4, 'genai', bias=True), domain=MICROSOFT)
        x = g.op('Add', x, linear(g, cc, y, n + '.fc2', inner, h, int4, 'genai', bias=True))
        tok = wins * s * s
        mac += tok * 4 * h * h + res * res * 2 * h * inner + 2 * tok * s * s * h + 2 * tok * heads * s * head
        params += 4 * h * h + 4 * h + 2 * h * inner + h + inner + 4 * h + 2 * (2 * s - 1) * head
    x = g.op('Conv', g.op('Transpose', x, perm=[0, 3, 1, 2]), g.weight('neck1', 256, h, 1, 1), kernel_shape=[1, 1])
    g.nodes.append(helper.make_node('Conv', [x, g.weight('neck2', 256, 256, 3, 3)], ['embedding'], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    mac += res * res * 256 * (h + 256 * 9)
    params += 256 * (h + 256 * 9)
    return finish(g, 'sam', [info('image', T.FLOAT16, [1, 3, 1024, 1024])], [info('embedding', T.FLOAT16, [1, 256, 64, 64])]), lambda b, p, t: mac, params, None


MODELS = (mixtral, phi2, gemma2, qwen3, deepseek, whisper_encoder, whisper_decoder, mamba, dit, sam)
POINTS = [('prefill', 2, 0, 512), ('decode', 1, 1024, 1), ('chunk', 1, 512, 128), ('decode of many', 16, 3000, 1)]
SCALES = 1.16  # 4 bits in blocks of 32, with a scale of 16 bits and a zero point of 4


def check(path, where, values, macs, params, least):
    dims = [f'--dim={k}={v}' for k, v in values.items()]
    done = subprocess.run([sys.argv[1], 'layers', '--json', path] + dims, capture_output=True, text=True)
    assert done.returncode == 0, (where, done.stderr)
    m = json.loads(done.stdout)[0]
    assert all(layer['priced'] for layer in m['layers']), (where, [layer['name'] for layer in m['layers'] if not layer['priced']])
    assert macs is None or m['totals']['macs'] == macs, (where, m['totals']['macs'], macs)
    assert m['totals']['params'] == params, (where, m['totals']['params'], params)
    assert least is None or least <= m['totals']['bytes'] <= SCALES * least, (where, m['totals']['bytes'] / least)


def main():
    for make in MODELS:
        for int4 in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, 'model.onnx')
                model, macs, params, least = make(int4)
                save(model, path)
                named = {d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim}
                for what, batch, past, tokens in POINTS:
                    values = {'batch_size': batch, 'sequence_length': tokens, 'past_sequence_length': past}
                    values = {k: v for k, v in values.items() if k in named}
                    of_token = least(past) if least and what == 'decode' else None
                    check(path, (make.__name__, int4, what), values, macs(batch, past, tokens), params, of_token)
    print(f'{2 * len(MODELS)} graphs of {len(MODELS)} architectures have the parameters, products and bytes of their configurations')


main()
