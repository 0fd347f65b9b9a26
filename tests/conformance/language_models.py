#!/usr/bin/python3
"""language_models.py MODEL STYLE WEIGHTS OUT: an ONNX graph of a published language model, without its weights.

MODEL is a row of CONFIGS (numbers from the published config.json). STYLE is who exports:
  optimum  plain operators: RMSNorm, rotary embedding, repeated heads and masks spelled out, shapes computed in the graph
  genai    ONNX Runtime GenAI's model builder: com.microsoft GroupQueryAttention and norms, packed or separate projections
  merged   optimum's decoder for prompts and tokens in one file: an If with a branch that reads the cache, and one that has none
  dynamo   torch's exporter: opset 23 Attention, RotaryEmbedding and RMSNormalization, blocks as local functions
WEIGHTS: f32, f16, bf16, or int4 (blocks of 32, the rest f16; optimum and genai as MatMulNBits, dynamo as DequantizeLinear).
Initializers point into files that do not exist, one for each layer, as large models are saved."""
import sys

import onnx
from onnx import NodeProto, TensorProto as T, ValueInfoProto, helper, save

OPSETS = {'optimum': 18, 'genai': 21, 'dynamo': 23, 'merged': 18}
BLOCK = 32
U4, MICROSOFT = 21, 'com.microsoft'
REAL = {'f32': T.FLOAT, 'f16': T.FLOAT16, 'bf16': T.BFLOAT16, 'int4': T.FLOAT16}


class Config:
    def __init__(self, hidden, inner, layers, heads, kv, vocab, head=None, bias=False, tied=False, window=0, packed=False,
                 norms=2, act='Sigmoid', published=0):
        self.hidden, self.inner, self.layers, self.heads, self.kv, self.vocab = hidden, inner, layers, heads, kv, vocab
        self.head = head or hidden // heads
        self.bias, self.tied, self.window, self.packed, self.norms, self.act = bias, tied, window, packed, norms, act
        self.published = published  # parameters that its makers state

    def weights(self):
        """Elements of the matrices of one block."""
        q, k = self.heads * self.head, self.kv * self.head
        return self.hidden * (q + 2 * k) + q * self.hidden + 3 * self.hidden * self.inner

    def parameters(self):
        block = self.weights() + self.norms * self.hidden
        block += (self.heads + 2 * self.kv) * self.head if self.bias else 0
        return self.layers * block + self.hidden + self.vocab * self.hidden * (1 if self.tied else 2)

    def macs(self, past, tokens, batch=1):
        """Of products: blocks, head, and both products of attention over all keys."""
        matrices = self.layers * self.weights() + self.vocab * self.hidden
        attention = self.layers * 2 * self.heads * self.head * (past + tokens)
        return batch * tokens * (matrices + attention)


CONFIGS = {
    'llama-2-7b': Config(4096, 11008, 32, 32, 32, 32000, published=6738415616),
    'llama-3-8b': Config(4096, 14336, 32, 32, 8, 128256, published=8030261248),
    'mistral-7b': Config(4096, 14336, 32, 32, 8, 32000, window=4096, published=7241732096),
    'qwen2-7b': Config(3584, 18944, 28, 28, 4, 152064, bias=True, published=7615616512),
    'qwen2-0.5b': Config(896, 4864, 24, 14, 2, 151936, bias=True, tied=True, published=494032768),
    'phi-3-mini': Config(3072, 8192, 32, 32, 32, 32064, packed=True, published=3821079552),
    'gemma-2-9b': Config(3584, 14336, 42, 16, 8, 256000, head=256, tied=True, norms=4, act='Gelu', published=9241705984),
}


class Graph:
    """Nodes and weights in the making. Names of values are those of their nodes."""

    def __init__(self, real):
        self.real, self.nodes, self.weights, self.constants, self.file, self.offset = real, [], [], {}, 'model', {}
        self.n = 0

    def op(self, kind, *inputs, n=1, domain='', **attributes):
        name = f'{kind}_{self.n}'
        self.n += 1
        outs = [name] if n == 1 else [f'{name}.{i}' for i in range(n)]
        self.nodes.append(helper.make_node(kind, list(inputs), outs, name=name, domain=domain, **attributes))
        return outs[0] if n == 1 else outs

    def ints(self, *values, scalar=False, kind=T.INT64):
        key = (values, scalar, kind)
        if key not in self.constants:
            name = f'const_{len(self.constants)}'
            self.constants[key] = helper.make_tensor(name, kind, [] if scalar else [len(values)], values)
        return self.constants[key].name

    def real_constant(self, value, kind=None):
        key = (value, 'real', kind or self.real)
        if key not in self.constants:
            cast = helper.make_tensor(f'real_{len(self.constants)}', kind or self.real, [], [value])
            self.constants[key] = cast
        return self.constants[key].name

    def weight(self, name, *dims, kind=None):
        """An initializer in a file that is not there."""
        kind = kind or self.real
        bits = {T.FLOAT: 32, T.FLOAT16: 16, T.BFLOAT16: 16, T.UINT8: 8, U4: 4}[kind]
        size = bits
        for d in dims:
            size *= d
        size //= 8
        t = T(name=name, data_type=kind, dims=dims, data_location=T.EXTERNAL)
        at = self.offset.get(self.file, 0)
        for k, v in (('location', self.file + '.onnx_data'), ('offset', at), ('length', size)):
            t.external_data.add(key=k, value=str(v))
        self.offset[self.file] = at + size
        self.weights.append(t)
        return name


def linear(g, c, x, name, k, n, int4, style, bias=False):
    if int4 and style != 'dynamo':
        blocks = k // BLOCK
        y = g.op('MatMulNBits', x, g.weight(name + '_Q4', n, blocks, BLOCK // 2, kind=T.UINT8),
                 g.weight(name + '_scales', n, blocks), g.weight(name + '_zeros', n, (blocks + 1) // 2, kind=T.UINT8),
                 domain=MICROSOFT, K=k, N=n, bits=4, block_size=BLOCK, accuracy_level=4)
    elif int4:
        w = g.op('DequantizeLinear', g.weight(name + '_Q4', k, n, kind=U4), g.weight(name + '_scales', k // BLOCK, n),
                 g.weight(name + '_zeros', k // BLOCK, n, kind=U4), axis=0, block_size=BLOCK)
        y = g.op('MatMul', x, w)
    elif style == 'dynamo':
        y = g.op('MatMul', x, g.op('Transpose', g.weight(name, n, k), perm=[1, 0]))
    else:
        y = g.op('MatMul', x, g.weight(name, k, n))
    return g.op('Add', g.weight(name + '.bias', n), y) if bias else y


# ---- plain operators -------------------------------------------------------------------------------

def size(g, x, axis):
    return g.op('Gather', g.op('Shape', x), g.ints(axis, scalar=True), axis=0)


def shape_of(g, *parts):
    """1-d shape from scalars in the graph and numbers."""
    return g.op('Concat', *[g.op('Unsqueeze', p, g.ints(0)) if isinstance(p, str) else g.ints(p) for p in parts], axis=0)


def expanded(g, x, shape, rank):
    """Expand as torch writes it: -1 keeps what is there."""
    ones = g.op('ConstantOfShape', g.ints(rank), value=helper.make_tensor('v', T.INT64, [1], [1]))
    keep = g.op('Equal', shape, g.op('Mul', ones, g.ints(-1, scalar=True)))
    return g.op('Expand', x, g.op('Where', keep, ones, shape))


def plain_norm(g, c, x, name):
    y = g.op('Cast', x, to=T.FLOAT) if g.real != T.FLOAT else x
    mean = g.op('ReduceMean', g.op('Pow', y, g.real_constant(2.0, T.FLOAT)), g.ints(-1), keepdims=1)
    root = g.op('Sqrt', g.op('Add', mean, g.real_constant(1e-5, T.FLOAT)))
    y = g.op('Mul', y, g.op('Div', g.real_constant(1.0, T.FLOAT), root))
    y = g.op('Cast', y, to=g.real) if g.real != T.FLOAT else y
    return g.op('Mul', g.weight(name, c.hidden), y)


def plain_mask(g, past, tokens, total, batch, mask):
    """Where a key comes behind its query, and where the attention mask has a 0: the smallest number."""
    low = -65504.0 if g.real == T.FLOAT16 else -3.3895e38
    full = g.op('Expand', g.real_constant(low), shape_of(g, tokens, total))
    upper = g.op('Trilu', full, g.ints(1, scalar=True), upper=1)
    queries = g.op('Reshape', g.op('Range', past, total, g.ints(1, scalar=True)), g.ints(-1, 1))
    later = g.op('Greater', g.op('Range', g.ints(0, scalar=True), total, g.ints(1, scalar=True)), queries)
    causal = g.op('Mul', upper, g.op('Cast', later, to=g.real))
    causal = g.op('Unsqueeze', g.op('Unsqueeze', causal, g.ints(0)), g.ints(1))
    causal = expanded(g, causal, shape_of(g, batch, 1, -1, -1), 4)
    seen = g.op('Cast', g.op('Unsqueeze', g.op('Unsqueeze', mask, g.ints(1)), g.ints(2)), to=g.real)
    part = g.op('Slice', causal, g.ints(0), g.op('Unsqueeze', size(g, mask, 1), g.ints(0)), g.ints(3), g.ints(1))
    hidden = g.op('Equal', g.op('Add', part, seen), g.real_constant(0.0))
    return g.op('Where', hidden, g.real_constant(low), part)


def plain_angles(g, c, batch, positions):
    inverse = expanded(g, g.weight('inv_freq', 1, c.head // 2, 1, kind=T.FLOAT), shape_of(g, batch, -1, 1), 3)
    at = g.op('Cast', g.op('Unsqueeze', positions, g.ints(1)), to=T.FLOAT)
    angle = g.op('Transpose', g.op('MatMul', inverse, at), perm=[0, 2, 1])
    angle = g.op('Concat', angle, angle, axis=-1)
    out = []
    for f in ('Cos', 'Sin'):
        y = g.op(f, angle)
        y = g.op('Cast', y, to=g.real) if g.real != T.FLOAT else y
        out.append(g.op('Unsqueeze', y, g.ints(1)))
    return out


def plain_rotary(g, x, cos, sin):
    half = g.op('Unsqueeze', g.op('Div', size(g, x, 3), g.ints(2, scalar=True)), g.ints(0))
    first = g.op('Slice', x, g.ints(0), half, g.ints(3), g.ints(1))
    second = g.op('Slice', x, half, g.ints(2 ** 63 - 1), g.ints(3), g.ints(1))
    turned = g.op('Concat', g.op('Neg', second), first, axis=-1)
    return g.op('Add', g.op('Mul', x, cos), g.op('Mul', turned, sin))


def plain_repeat(g, c, x, batch):
    if c.heads == c.kv:
        return x
    times = c.heads // c.kv
    total = size(g, x, 2)
    x = expanded(g, g.op('Unsqueeze', x, g.ints(2)), shape_of(g, batch, c.kv, times, total, c.head), 5)
    heads = g.op('Mul', g.ints(c.kv, scalar=True), g.ints(times, scalar=True))
    return g.op('Reshape', x, shape_of(g, batch, heads, total, c.head))


def projections(g, c, x, name, int4, style):
    q, k = c.heads * c.head, c.kv * c.head
    if not c.packed:
        return [linear(g, c, x, f'{name}.{p}_proj', c.hidden, n, int4, style, c.bias) for p, n in (('q', q), ('k', k), ('v', k))]
    y = linear(g, c, x, f'{name}.qkv_proj', c.hidden, q + 2 * k, int4, style)
    if style == 'genai':
        return [y]
    ends = [0, q, q + k, q + 2 * k]
    return [g.op('Slice', y, g.ints(a), g.ints(b), g.ints(-1), g.ints(1)) for a, b in zip(ends, ends[1:])]


def gated(g, c, x, name, int4, style):
    if c.packed:
        both = linear(g, c, x, f'{name}.gate_up_proj', c.hidden, 2 * c.inner, int4, style)
        gate, up = g.op('Split', both, n=2, axis=-1, num_outputs=2)
    else:
        gate, up = (linear(g, c, x, f'{name}.{p}_proj', c.hidden, c.inner, int4, style) for p in ('gate', 'up'))
    if c.act == 'Gelu' and style == 'dynamo':
        gate = g.op('Gelu', gate, approximate='tanh')
    elif c.act == 'Gelu' and style == 'genai':
        gate = g.op('FastGelu', gate, domain=MICROSOFT)
    elif c.act == 'Gelu':
        cube = g.op('Mul', g.op('Pow', gate, g.real_constant(3.0)), g.real_constant(0.044715))
        inner = g.op('Tanh', g.op('Mul', g.op('Add', gate, cube), g.real_constant(0.7978845)))
        gate = g.op('Mul', g.op('Mul', gate, g.real_constant(0.5)), g.op('Add', inner, g.real_constant(1.0)))
    else:
        gate = g.op('Mul', gate, g.op('Sigmoid', gate))
    return linear(g, c, g.op('Mul', gate, up), f'{name}.down_proj', c.inner, c.hidden, int4, style)


def plain_attention(g, c, y, i, name, int4, shared):
    batch, tokens, mask, cos, sin = shared
    heads = []
    for p, n in zip(projections(g, c, y, name + '.attn', int4, 'optimum'), (c.heads, c.kv, c.kv)):
        heads.append(g.op('Transpose', g.op('Reshape', p, shape_of(g, batch, tokens, n, c.head)), perm=[0, 2, 1, 3]))
    q, k = (plain_rotary(g, x, cos, sin) for x in heads[:2])
    caches = []
    for x, what in ((k, 'key'), (heads[2], 'value')):
        g.nodes.append(helper.make_node('Concat', [f'past_key_values.{i}.{what}', x], [f'present.{i}.{what}'], axis=2))
        caches.append(plain_repeat(g, c, f'present.{i}.{what}', batch))
    scores = g.op('MatMul', q, g.op('Transpose', caches[0], perm=[0, 1, 3, 2]))
    scores = g.op('Div', scores, g.real_constant(c.head ** 0.5))
    part = g.op('Slice', mask, g.ints(0), g.op('Unsqueeze', size(g, caches[0], 2), g.ints(0)), g.ints(3), g.ints(1))
    scores = g.op('Add', scores, part)
    if g.real != T.FLOAT:
        scores = g.op('Cast', g.op('Softmax', g.op('Cast', scores, to=T.FLOAT), axis=-1), to=g.real)
    else:
        scores = g.op('Softmax', scores, axis=-1)
    y = g.op('Transpose', g.op('MatMul', scores, caches[1]), perm=[0, 2, 1, 3])
    y = g.op('Reshape', y, shape_of(g, batch, tokens, c.heads * c.head))
    return linear(g, c, y, name + '.attn.o_proj', c.heads * c.head, c.hidden, int4, 'optimum')


def optimum(g, c, int4):
    batch, tokens = size(g, 'input_ids', 0), size(g, 'input_ids', 1)
    past = size(g, 'past_key_values.0.key', 2)
    total = g.op('Add', past, tokens)
    x = g.op('Gather', g.weight('embed_tokens', c.vocab, c.hidden), 'input_ids')
    mask = plain_mask(g, past, tokens, total, batch, 'attention_mask')
    shared = (batch, tokens, mask, *plain_angles(g, c, batch, 'position_ids'))
    for i in range(c.layers):
        g.file = name = f'layers.{i}'
        y = plain_attention(g, c, plain_norm(g, c, x, name + '.norm1'), i, name, int4, shared)
        x = g.op('Add', x, plain_norm(g, c, y, name + '.norm2') if c.norms == 4 else y)
        y = gated(g, c, plain_norm(g, c, x, name + f'.norm{c.norms // 2 + 1}'), name + '.mlp', int4, 'optimum')
        x = g.op('Add', x, plain_norm(g, c, y, name + '.norm4') if c.norms == 4 else y)
    g.file = 'model'
    x = plain_norm(g, c, x, 'norm')
    w = g.op('Transpose', 'embed_tokens', perm=[1, 0]) if c.tied else None
    y = g.op('MatMul', x, w) if w else linear(g, c, x, 'lm_head', c.hidden, c.vocab, int4, 'optimum')
    g.nodes.append(helper.make_node('Cast', [y], ['logits'], to=T.FLOAT))


# ---- fused by ONNX Runtime's model builder ----------------------------------------------------------

def genai(g, c, int4):
    lengths = g.op('Cast', g.op('Sub', g.op('ReduceSum', 'attention_mask', g.ints(1), keepdims=0), g.ints(1)), to=T.INT32)
    total = g.op('Cast', size(g, 'attention_mask', 1), to=T.INT32)
    cos, sin = (g.weight(f'{f}_cache', 4096, c.head // 2) for f in ('cos', 'sin'))
    x = g.op('Gather', g.weight('embed_tokens', c.vocab, c.hidden), 'input_ids')

    def norm(x, skip, name):
        if skip is None:
            return g.op('SimplifiedLayerNormalization', x, g.weight(name, c.hidden), axis=-1, epsilon=1e-5, stash_type=1), x
        n = f'SkipSimplifiedLayerNormalization_{g.n}'
        g.n += 1
        g.nodes.append(helper.make_node('SkipSimplifiedLayerNormalization', [x, skip, g.weight(name, c.hidden)],
                                        [n, '', '', n + '.sum'], name=n, domain=MICROSOFT, epsilon=1e-5))
        return n, n + '.sum'

    skip = None
    for i in range(c.layers):
        g.file = name = f'layers.{i}'
        y, x = norm(x, skip, name + '.norm1')
        parts = projections(g, c, y, name + '.attn', int4, 'genai')
        parts += [''] * (3 - len(parts))
        outs = [f'GroupQueryAttention_{i}', f'present.{i}.key', f'present.{i}.value']
        g.nodes.append(helper.make_node(
            'GroupQueryAttention', [*parts, f'past_key_values.{i}.key', f'past_key_values.{i}.value', lengths, total, cos, sin],
            outs, name=outs[0], domain=MICROSOFT, num_heads=c.heads, kv_num_heads=c.kv, do_rotary=1, rotary_interleaved=0,
            scale=c.head ** -0.5, local_window_size=c.window or -1))
        y = linear(g, c, outs[0], name + '.attn.o_proj', c.heads * c.head, c.hidden, int4, 'genai')
        if c.norms == 4:
            y, _ = norm(y, None, name + '.norm2')
        y, x = norm(x, y, name + f'.norm{c.norms // 2 + 1}')
        skip = gated(g, c, y, name + '.mlp', int4, 'genai')
        if c.norms == 4:
            skip, _ = norm(skip, None, name + '.norm4')
    g.file = 'model'
    x, _ = norm(x, skip, 'norm')
    if c.tied:
        y = g.op('MatMul', x, g.op('Transpose', 'embed_tokens', perm=[1, 0]))
    else:
        y = linear(g, c, x, 'lm_head', c.hidden, c.vocab, int4, 'genai')
    g.nodes.append(helper.make_node('Identity', [y], ['logits']))


# ---- torch's dynamo exporter: operator set 23, a function for each kind of block ----------------------

def dynamo(g, c, int4):
    cos, sin = (g.weight(f'{f}_cache', 4096, c.head // 2) for f in ('cos', 'sin'))
    x = g.op('Gather', g.weight('embed_tokens', c.vocab, c.hidden), 'input_ids')
    mask = g.op('Cast', g.op('Unsqueeze', 'attention_mask', g.ints(1, 2)), to=T.BOOL)
    block = Block(g, c, int4)
    for i in range(c.layers):
        g.file = f'layers.{i}'
        x = block.call(g, x, i, mask, cos, sin)
    g.file = 'model'
    x = g.op('RMSNormalization', x, g.weight('norm', c.hidden), axis=-1, epsilon=1e-5)
    w = g.op('Transpose', 'embed_tokens', perm=[1, 0]) if c.tied else None
    y = g.op('MatMul', x, w) if w else linear(g, c, x, 'lm_head', c.hidden, c.vocab, int4, 'dynamo')
    g.nodes.append(helper.make_node('Identity', [y], ['logits']))
    return [block.function]


class Block:
    """One transformer block as a local function; its weights are its operands."""

    def __init__(self, g, c, int4):
        f = Graph(g.real)
        self.names, self.templates = [], []
        real_weight = f.weight
        f.weight = self.note(real_weight)
        y = f.op('RMSNormalization', 'x', f.weight('norm1', c.hidden), axis=-1, epsilon=1e-5)
        q, k, v = projections(f, c, y, 'attn', int4, 'dynamo')
        q, k = (f.op('RotaryEmbedding', p, 'cos', 'sin', 'position_ids', num_heads=n) for p, n in ((q, c.heads), (k, c.kv)))
        y, *present = f.op('Attention', q, k, v, 'mask', 'past_key', 'past_value', n=3, q_num_heads=c.heads,
                           kv_num_heads=c.kv, is_causal=1, scale=c.head ** -0.5)
        y = linear(f, c, y, 'attn.o_proj', c.heads * c.head, c.hidden, int4, 'dynamo')
        if c.norms == 4:
            y = f.op('RMSNormalization', y, f.weight('norm2', c.hidden), axis=-1, epsilon=1e-5)
        x = f.op('Add', 'x', y)
        y = f.op('RMSNormalization', x, f.weight('norm3', c.hidden), axis=-1, epsilon=1e-5)
        y = gated(f, c, y, 'mlp', int4, 'dynamo')
        if c.norms == 4:
            y = f.op('RMSNormalization', y, f.weight('norm4', c.hidden), axis=-1, epsilon=1e-5)
        y = f.op('Add', x, y)
        nodes = [helper.make_node('Constant', [], [t.name], value=t) for t in f.constants.values()] + f.nodes
        self.function = helper.make_function(
            'pkg.transformers', 'DecoderLayer', ['x', 'past_key', 'past_value', 'mask', 'cos', 'sin', 'position_ids'] + self.names,
            [y, *present], nodes, [helper.make_opsetid('', OPSETS['dynamo'])])

    def note(self, weight):
        def take(name, *dims, kind=None):
            self.names.append(name)
            self.templates.append((name, dims, kind))
            return name
        return take

    def call(self, g, x, i, mask, cos, sin):
        operands = [g.weight(f'layers.{i}.{name}', *dims, kind=kind) for name, dims, kind in self.templates]
        out = f'block_{i}'
        g.nodes.append(helper.make_node(
            'DecoderLayer', [x, f'past_key_values.{i}.key', f'past_key_values.{i}.value', mask, cos, sin, 'position_ids'] + operands,
            [out, f'present.{i}.key', f'present.{i}.value'], name=out, domain='pkg.transformers'))
        return out


# ---- the model ------------------------------------------------------------------------------------------

PLAIN = ('batch_size', 'sequence_length', 'past_sequence_length', 'past_sequence_length + sequence_length')
NAMES = {'optimum': PLAIN, 'merged': PLAIN,
         'genai': ('batch_size', 'sequence_length', 'past_sequence_length', 'total_sequence_length'),
         'dynamo': ('batch', 's27', 's77', 's27 + s77')}


def without_past(c, real, graph):
    """The graph again under other names, with empty caches of its own."""
    outer = {t.name for t in graph.initializer} | {i.name for i in graph.input if not i.name.startswith('past')}
    sizes = [helper.make_tensor('new.zero', T.INT64, [1], [0]), helper.make_tensor('new.sizes', T.INT64, [3], [c.kv, 0, c.head])]
    nodes = [helper.make_node('Shape', ['input_ids'], ['new.shape']), helper.make_node('Gather', ['new.shape', 'new.zero'], ['new.batch']),
             helper.make_node('Concat', ['new.batch', 'new.sizes'], ['new.empty.sizes'], axis=0)]
    for i in graph.input:
        if i.name.startswith('past'):
            nodes.append(helper.make_node('ConstantOfShape', ['new.empty.sizes'], ['new.' + i.name],
                                          value=helper.make_tensor('value', real, [1], [0.0])))
    for node in graph.node:
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = 'new.' + copy.name
        copy.output[:] = ['new.' + name for name in node.output]
        copy.input[:] = [name if name in outer or not name else 'new.' + name for name in node.input]
        nodes.append(copy)
    outputs = []
    for o in graph.output:
        copy = ValueInfoProto()
        copy.CopyFrom(o)
        copy.name = 'new.' + o.name
        outputs.append(copy)
    return helper.make_graph(nodes, 'without_past', [], outputs, sizes)


def merged(c, real, model):
    graph = model.graph
    branch = helper.make_node('If', ['use_cache_branch'], [o.name for o in graph.output], name='optimum::if',
                              then_branch=helper.make_graph(graph.node, 'with_past', [], graph.output),
                              else_branch=without_past(c, real, graph))
    inputs = list(graph.input) + [helper.make_tensor_value_info('use_cache_branch', T.BOOL, [1])]
    return helper.make_model(helper.make_graph([branch], 'merged', inputs, list(graph.output), list(graph.initializer)),
                             opset_imports=list(model.opset_import), producer_name='optimum-onnx', ir_version=10)


def make(name, style, weights):
    if style == 'merged':
        return merged(CONFIGS[name], REAL[weights], make(name, 'optimum', weights))
    c, real = CONFIGS[name], REAL[weights]
    g = Graph(real)
    functions = {'optimum': optimum, 'genai': genai, 'dynamo': dynamo}[style](g, c, weights == 'int4')
    batch, tokens, past, total = NAMES[style]
    info = helper.make_tensor_value_info
    inputs = [info('input_ids', T.INT64, [batch, tokens]), info('attention_mask', T.INT64, [batch, total])]
    if style != 'genai':
        inputs.append(info('position_ids', T.INT64, [batch, tokens]))
    outputs = [info('logits', T.FLOAT if style == 'optimum' else real, [batch, tokens, c.vocab])]
    for i in range(c.layers):
        for what in ('key', 'value'):
            inputs.append(info(f'past_key_values.{i}.{what}', real, [batch, c.kv, past, c.head]))
            outputs.append(info(f'present.{i}.{what}', real, [batch, c.kv, total, c.head]))
    graph = helper.make_graph(g.nodes, 'main_graph', inputs, outputs, list(g.constants.values()) + g.weights)
    opsets = [helper.make_opsetid('', OPSETS[style]), helper.make_opsetid(MICROSOFT, 1)]
    if functions:
        opsets.append(helper.make_opsetid('pkg.transformers', 1))
    model = helper.make_model(graph, opset_imports=opsets, functions=functions or [], producer_name=style)
    model.ir_version = 10
    return model


if __name__ == '__main__':
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    save(make(*sys.argv[1:4]), sys.argv[4])
