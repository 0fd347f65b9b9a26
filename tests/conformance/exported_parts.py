"""Quantized models in the styles of several tools, functions, dimensions by name, types, and graphs within graphs."""
from onnx import AttributeProto, SparseTensorProto, TensorProto as T, helper

from exported_graph import BF16, F8, G, I4, MS, call, case, func, info, ref


@case
def qdq_asymmetric_conv():
    """uint8 activations with zero points, int8 weights per channel, int32 bias dequantized; residual, pool, flatten, Gemm"""
    g = G()
    g.c('xs', T.FLOAT, [], [0.02]); g.c('xz', T.UINT8, [], [114])
    def qdq(x):
        return g.op('DequantizeLinear', g.op('QuantizeLinear', x, 'xs', 'xz'), 'xs', 'xz')
    def conv(x, name, co, ci, k, group=1, **a):
        w = g.op('DequantizeLinear', g.w(name + 'w', T.INT8, co, ci // group, k, k), g.w(name + 's', T.FLOAT, co), g.w(name + 'z', T.INT8,
                co), axis=0)
        b = g.op('DequantizeLinear', g.w(name + 'b', T.INT32, co), g.w(name + 'bs', T.FLOAT, co), g.w(name + 'bz', T.INT32, co), axis=0)
        return g.op('Conv', x, w, b, kernel_shape=[k, k], group=group, **a)
    x = qdq('x')
    a = qdq(g.op('Relu', conv(x, 'c1', 16, 3, 3, pads=[1, 1, 1, 1], strides=[2, 2])))
    b = qdq(conv(a, 'c2', 16, 16, 3, group=16, pads=[1, 1, 1, 1]))
    s = qdq(g.op('Add', a, b))
    p = qdq(g.op('GlobalAveragePool', s))
    f = g.op('Flatten', p)
    w = g.op('DequantizeLinear', g.w('fw', T.INT8, 10, 16), g.w('fs', T.FLOAT, 10), g.w('fz', T.INT8, 10), axis=0)
    y = g.op('Gemm', f, w, g.w('fb', T.FLOAT, 10), transB=1)
    m = g.model([info('x', T.FLOAT, ['N', 3, 32, 32])], [info(y, T.FLOAT, None)], {'': 13})
    N = 4
    return m, ['--batch=4'], N * (16 * 16 * 16 * 3 * 9 + 16 * 16 * 16 * 9 + 160), {y: [4, 10]}


@case
def qdq_transposed_matmul_blocked():
    """int4 weights in blocks along the last axis, uint4 zero points, transposed before the product; f16"""
    g = G()
    w = g.op('DequantizeLinear', g.w('w', I4, 96, 64), g.w('s', T.FLOAT16, 96, 2), g.w('z', I4, 96, 2), axis=1, block_size=32)
    y = g.op('MatMul', 'x', g.op('Transpose', w, perm=[1, 0]))
    m = g.model([info('x', T.FLOAT16, ['B', 'S', 64])], [info(y, T.FLOAT16, ['B', 'S', 96])], {'': 21}, 10)
    return m, ['--dim=B=2', '--dim=S=5'], 2 * 5 * 64 * 96, {y: [2, 5, 96]}


@case
def qdq_float8():
    g = G()
    g.c('s', T.FLOAT, [], [0.5]); g.w('z', F8)
    x = g.op('DequantizeLinear', g.op('QuantizeLinear', 'x', 's', 'z'), 's', 'z')
    w = g.op('DequantizeLinear', g.w('w', F8, 64, 32), 's', 'z')
    y = g.op('Relu', g.op('MatMul', x, w))
    m = g.model([info('x', T.FLOAT, [7, 64])], [info(y, T.FLOAT, None)], {'': 19}, 9)
    return m, [], 7 * 64 * 32, {y: [7, 32]}


@case
def qdq_16_bits_microsoft():
    """com.microsoft QuantizeLinear with uint16 activations and int4 weights, before opset 21"""
    g = G()
    g.c('s', T.FLOAT, [], [0.5]); g.c('z', T.UINT16, [], [32768])
    x = g.op('DequantizeLinear', g.op('QuantizeLinear', 'x', 's', 'z', domain=MS), 's', 'z', domain=MS)
    w = g.op('DequantizeLinear', g.w('w', T.INT8, 8, 4, 3, 3), g.w('ws', T.FLOAT, 8), g.w('wz', T.INT8, 8), axis=0, domain=MS)
    y = g.op('Conv', x, w, auto_pad='SAME_UPPER', strides=[2, 2])
    m = g.model([info('x', T.FLOAT, [1, 4, 15, 15])], [info(y, T.FLOAT, None)], {'': 17, MS: 1})
    return m, [], 8 * 8 * 8 * 4 * 9, {y: [1, 8, 8, 8]}


@case
def qoperator():
    g = G()
    for n in 'abcdef':
        g.c(n + 's', T.FLOAT, [], [0.1]); g.c(n + 'z', T.UINT8, [], [128])
    q = g.op('QuantizeLinear', 'x', 'as', 'az')
    c1 = g.op('QLinearConv', q, 'as', 'az', g.w('w1', T.INT8, 24, 3, 5, 5), g.w('w1s', T.FLOAT, 24), g.w('w1z', T.INT8, 24), 'bs', 'bz',
              g.w('b1', T.INT32, 24), kernel_shape=[5, 5], pads=[2, 2, 2, 2], strides=[2, 2])
    l = g.op('QLinearLeakyRelu', c1, 'bs', 'bz', 'bs', 'bz', domain=MS, alpha=0.1)
    c2 = g.op('QLinearConv', l, 'bs', 'bz', g.w('w2', T.UINT8, 24, 1, 3, 3), 'cs', 'cz', 'ds', 'dz', kernel_shape=[3, 3], pads=[1, 1, 1,
            1], group=24, dilations=[1, 1])
    s = g.op('QLinearSigmoid', c2, 'ds', 'dz', 'es', 'ez', domain=MS)
    mul = g.op('QLinearMul', c2, 'ds', 'dz', s, 'es', 'ez', 'fs', 'fz', domain=MS)
    add = g.op('QLinearAdd', mul, 'fs', 'fz', l, 'bs', 'bz', 'as', 'az', domain=MS)
    cat = g.op('QLinearConcat', 'cs', 'cz', add, 'as', 'az', c1, 'bs', 'bz', domain=MS, axis=1)
    ap = g.op('QLinearAveragePool', cat, 'cs', 'cz', 'ds', 'dz', domain=MS, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    gp = g.op('QLinearGlobalAveragePool', ap, 'ds', 'dz', 'es', 'ez', domain=MS)
    fl = g.op('Flatten', gp)
    ge = g.op('QGemm', fl, 'es', 'ez', g.w('w3', T.INT8, 48, 12), g.w('w3s', T.FLOAT, 12), g.w('w3z', T.INT8, 12), g.w('b3', T.INT32, 12),
            'fs', 'fz', domain=MS, alpha=1.0)
    sm = g.op('QLinearSoftmax', ge, 'fs', 'fz', 'as', 'az', domain=MS, axis=-1, opset=13)
    y = g.op('DequantizeLinear', sm, 'as', 'az')
    m = g.model([info('x', T.FLOAT, ['n', 3, 'h', 'w'])], [info(y, T.FLOAT, None)], {'': 13, MS: 1})
    n, o = 2, 20
    return m, ['--dim=n=2', '--dim=h=40', '--dim=w=40'], n * (o * o * 24 * 75 + o * o * 24 * 9 + 48 * 12), {y: [2, 12], ap: [2, 48, 10, 10]}


@case
def qlinear_matmul_ranks():
    g = G()
    for n in 'ab':
        g.c(n + 's', T.FLOAT, [], [0.1]); g.c(n + 'z', T.INT8, [], [0])
    y = g.op('QLinearMatMul', 'x', 'as', 'az', g.w('w', T.INT8, 6, 32, 16), g.w('ws', T.FLOAT, 6, 1, 16), g.w('wz', T.INT8, 6, 1, 16),
            'bs', 'bz')
    m = g.model([info('x', T.INT8, [5, 1, 7, 32])], [info(y, T.INT8, None)], {'': 10})
    return m, [], 5 * 6 * 7 * 32 * 16, {y: [5, 6, 7, 16]}


@case
def nhwc_qlinear():
    g = G()
    for n in 'ab':
        g.c(n + 's', T.FLOAT, [], [0.1]); g.c(n + 'z', T.UINT8, [], [128])
    y = g.op('QLinearConv', 'x', 'as', 'az', g.w('w', T.INT8, 16, 8, 3, 3), g.w('ws', T.FLOAT, 16), g.w('wz', T.INT8, 16), 'bs', 'bz',
            g.w('bi', T.INT32, 16), domain=MS, channels_last=1, pads=[1, 1, 1, 1], strides=[2, 2], kernel_shape=[3, 3])
    p = g.op('QLinearGlobalAveragePool', y, 'bs', 'bz', 'as', 'az', domain=MS, channels_last=1)
    m = g.model([info('x', T.UINT8, [2, 14, 10, 8])], [info(p, T.UINT8, None)], {'': 15, MS: 1})
    return m, [], 2 * 7 * 5 * 16 * 72, {y: [2, 7, 5, 16], p: [2, 1, 1, 16]}


@case
def dynamic():
    """as ONNX Runtime's quantize_dynamic writes a feed-forward block: scales multiplied beside"""
    g = G()
    def linear(x, name, k, n):
        q, s, z = g.op('DynamicQuantizeLinear', x, n=3)
        p = g.op('MatMulInteger', q, g.w(name, T.INT8, k, n), z, g.w(name + 'z', T.INT8, n))
        sc = g.op('Mul', s, g.w(name + 's', T.FLOAT, n))
        return g.op('Add', g.op('Mul', g.op('Cast', p, to=T.FLOAT), sc), g.w(name + 'b', T.FLOAT, n))
    h = linear('x', 'w1', 128, 512)
    y = linear(g.op('Relu', h), 'w2', 512, 128)
    m = g.model([info('x', T.FLOAT, ['batch', 'seq', 128])], [info(y, T.FLOAT, None)], {'': 11})
    return m, ['--dim=batch=3', '--dim=seq=9'], 27 * 128 * 512 * 2, {y: [3, 9, 128]}


@case
def dynamic_fused():
    g = G()
    a = g.op('DynamicQuantizeMatMul', 'x', g.w('w', T.INT8, 64, 192), g.w('ws', T.FLOAT, 192), '', g.w('wb', T.FLOAT, 192), domain=MS)
    q, s, z = g.op('DynamicQuantizeLinear', a, n=3)
    b = g.op('MatMulIntegerToFloat', q, g.w('v', T.INT8, 192, 10), s, g.w('vs', T.FLOAT, 10), z, g.w('vz', T.INT8, 10), domain=MS)
    m = g.model([info('x', T.FLOAT, [2, 3, 64])], [info(b, T.FLOAT, None)], {'': 13, MS: 1})
    return m, [], 6 * 64 * 192 + 6 * 192 * 10, {b: [2, 3, 10]}


@case
def dynamic_conv():
    g = G()
    q, s, z = g.op('DynamicQuantizeLinear', 'x', n=3)
    p = g.op('ConvInteger', q, g.w('w', T.UINT8, 8, 3, 3, 3), z, g.c('wz', T.UINT8, [], [128]), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    y = g.op('Mul', g.op('Cast', p, to=T.FLOAT), g.op('Mul', s, g.c('ws', T.FLOAT, [], [0.1])))
    m = g.model([info('x', T.FLOAT, [2, 3, 16, 16])], [info(y, T.FLOAT, None)], {'': 12})
    return m, [], 2 * 256 * 8 * 27, {y: [2, 8, 16, 16]}


@case
def qattention():
    g = G()
    g.c('xs', T.FLOAT, [], [0.1]); g.c('ws', T.FLOAT, [], [0.1]); g.c('z', T.UINT8, [], [128]); g.c('wz', T.INT8, [], [0])
    y = g.op('QAttention', 'x', g.w('w', T.INT8, 64, 192), g.w('b', T.FLOAT, 192), 'xs', 'ws', '', 'z', 'wz', domain=MS, num_heads=4)
    m = g.model([info('x', T.UINT8, [2, 10, 64])], [info(y, T.FLOAT, None)], {'': 13, MS: 1})
    return m, [], 2 * 10 * 64 * 192 + 2 * 2 * 10 * 10 * 64, {y: [2, 10, 64]}


def functions_of_other_opsets():
    """the function's operators are of opset 12 (axes as attribute), the model's of 18 (axes as input); names of values are the same in both"""
    g = G()
    f = func('pkg.mine', 'Pooled', ['x', 'w'], ['y'],
             [helper.make_node('ReduceMean', ['x'], ['m'], axes=[1], keepdims=0), helper.make_node('Unsqueeze', ['m'], ['u'], axes=[0]),
              helper.make_node('MatMul', ['u', 'w'], ['y'])], {'': 12})
    g.nodes.append(helper.make_node('Pooled', ['x', 'w'], ['h'], domain='pkg.mine', name='p'))
    g.w('w', T.FLOAT, 32, 8)
    y = g.op('ReduceSum', 'h', g.c('ax', T.INT64, [1], [0]), keepdims=0)
    m = g.model([info('x', T.FLOAT, ['b', 6, 32])], [info(y, T.FLOAT, None)], {'': 18, 'pkg.mine': 1}, functions=[f])
    return m, ['--dim=b=5'], 5 * 32 * 8, {y: [5, 8]}


def functions_overloaded():
    """two functions of one name and domain, told apart by their overload (IR 10)"""
    g = G()
    def make(o, n):
        return func('pkg.torch', 'Linear', ['x', 'w'], ['y'], [helper.make_node('Transpose', ['w'], ['t'], perm=[1, 0]),
                helper.make_node('MatMul', ['x', 't'], ['m'])] +
                    ([helper.make_node('Relu', ['m'], ['y'])] if n else [helper.make_node('Concat', ['m', 'm'], ['y'],
                            axis=-1)]), {'': 18}, overload=o)
    g.nodes.append(call(helper.make_node('Linear', ['x', 'w1'], ['h'], domain='pkg.torch', name='a'), 'relu'))
    g.nodes.append(call(helper.make_node('Linear', ['h', 'w2'], ['y'], domain='pkg.torch', name='b'), 'twice'))
    g.w('w1', T.FLOAT, 32, 16); g.w('w2', T.FLOAT, 4, 32)
    m = g.model([info('x', T.FLOAT, ['s0', 16])], [info('y', T.FLOAT, None)], {'': 18, 'pkg.torch': 1}, 10, functions=[make('relu', 1),
            make('twice', 0)])
    return m, ['--dim=s0=3'], 3 * (512 + 128), {'y': [3, 8]}


def functions_nested_with_defaults():
    """pkg.onnxscript.torch_lib: attributes with defaults, passed on through two levels; If within a function"""
    g = G()
    inner = func('pkg.onnxscript.torch_lib.common', 'Rank', ['x'], ['r'], [helper.make_node('Shape', ['x'], ['s']),
            helper.make_node('Size', ['s'], ['r'])], {'': 18})
    then = helper.make_graph([helper.make_node('Identity', ['x'], ['t'])], 't', [], [info('t', T.FLOAT, None)])
    other = helper.make_graph([ref(helper.make_node('Concat', ['x', 'x'], ['e']), 'axis', 'axis', AttributeProto.INT)], 'e', [],
            [info('e', T.FLOAT, None)])
    flag = AttributeProto(name='axis', i=1, type=AttributeProto.INT)
    two = helper.make_node('Constant', [], ['two'], value=helper.make_tensor('v', T.INT64, [], [2]))
    mid = func('pkg.onnxscript.torch_lib', 'aten_double', ['x'], ['y'],
               [helper.make_node('Rank', ['x'], ['r'], domain='pkg.onnxscript.torch_lib.common'), two, helper.make_node('Equal', ['r',
                       'two'], ['c']),
                helper.make_node('Not', ['c'], ['nc']), helper.make_node('If', ['nc'], ['y'], then_branch=then, else_branch=other)],
               {'': 18, 'pkg.onnxscript.torch_lib.common': 1}, defaults=[flag])
    outer = func('pkg.model', 'Block', ['x', 'w'], ['z'],
                 [ref(helper.make_node('aten_double', ['x'], ['d'], domain='pkg.onnxscript.torch_lib'), 'axis', 'dim', AttributeProto.INT),
                  helper.make_node('MatMul', ['d', 'w'], ['z'])], {'': 18, 'pkg.onnxscript.torch_lib': 1}, attrs=['dim'])
    g.nodes.append(helper.make_node('Block', ['x', 'w1'], ['h'], domain='pkg.model', dim=-1, name='b0'))
    g.nodes.append(helper.make_node('aten_double', ['h'], ['i'], domain='pkg.onnxscript.torch_lib', name='b1'))
    g.nodes.append(helper.make_node('Block', ['i', 'w2'], ['j'], domain='pkg.model', dim=0, name='b2'))
    g.w('w1', T.FLOAT, 32, 24); g.w('w2', T.FLOAT, 48, 10)
    m = g.model([info('x', T.FLOAT, [5, 16])], [info('j', T.FLOAT, None)], {'': 18, 'pkg.model': 1, 'pkg.onnxscript.torch_lib': 1,
            'pkg.onnxscript.torch_lib.common': 1}, functions=[outer, mid, inner])
    return m, [], 5 * 32 * 24 + 10 * 48 * 10, {'j': [10, 10]}


def function_in_microsofts_domain():
    """a local function stands in for an operator that the runtime knows"""
    g = G()
    f = func(MS, 'FusedMatMul', ['a', 'b'], ['y'], [helper.make_node('Transpose', ['b'], ['t'], perm=[1, 0]), helper.make_node('MatMul',
            ['a', 't'], ['y'])], {'': 17})
    g.nodes.append(helper.make_node('FusedMatMul', ['x', 'w'], ['y'], domain=MS, name='f'))
    g.w('w', T.FLOAT, 5, 16)
    m = g.model([info('x', T.FLOAT, [3, 16])], [info('y', T.FLOAT, None)], {'': 17, MS: 1}, functions=[f])
    return m, [], 3 * 16 * 5, {'y': [3, 5]}


@case
def many_opsets():
    """three domains, a function that imports a fourth, an operator of ai.onnx.ml behind a network"""
    g = G()
    f = func('my.inner', 'Act', ['x'], ['y'], [helper.make_node('Gelu', ['x'], ['y'], domain=MS)], {MS: 1})
    h = g.op('Gemm', 'x', g.w('w', T.FLOAT, 16, 8), g.w('b', T.FLOAT, 8))
    g.nodes.append(helper.make_node('Act', [h], ['a'], domain='my.inner', name='act'))
    y = g.op('Normalizer', 'a', domain='ai.onnx.ml', norm='L2')
    m = g.model([info('x', T.FLOAT, ['n', 16])], [info(y, T.FLOAT, None)], {'': 15, 'ai.onnx.ml': 3, 'my.inner': 1, MS: 1}, functions=[f])
    return m, ['--dim=n=4'], 4 * 128, {y: [4, 8]}


@case
def dynamo_dims():
    """s0 in the inputs, s1+1 and 2*s0 in declared shapes of others"""
    g = G()
    c = g.op('Concat', 'past', 'x', axis=1)
    k = g.op('MatMul', c, g.w('w', T.FLOAT, 16, 8))
    y = g.op('Concat', k, k, axis=0)
    m = g.model([info('x', T.FLOAT, ['s0', 's2', 16]), info('past', T.FLOAT, ['s0', 's1', 16])], [info(y, T.FLOAT, ['2*s0', 's1 + s2',
            8]), info(c, T.FLOAT, ['s0', 's1+s2', 16])], {'': 20}, 10)
    return m, ['--dim=s0=2', '--dim=s1=30', '--dim=s2=4'], 2 * 34 * 16 * 8, {y: [4, 34, 8], c: [2, 34, 16]}


@case
def dynamo_dims_of_inputs():
    """the mask's length is the sum of two others: it need not be given"""
    g = G()
    c = g.op('Concat', 'past', 'x', axis=1)
    s = g.op('MatMul', 'x', g.op('Transpose', c, perm=[0, 2, 1]))
    y = g.op('Add', s, 'mask')
    m = g.model([info('x', T.FLOAT, ['s0', 's2', 16]), info('past', T.FLOAT, ['s0', 's1', 16]), info('mask', T.FLOAT, ['s0', 1,
            's1 + s2'])], [info(y, T.FLOAT, ['s0', 's2', 's1 + s2'])], {'': 20}, 10)
    return m, ['--dim=s0=2', '--dim=s1=30', '--dim=s2=4'], 2 * 4 * 34 * 16, {y: [2, 4, 34]}


@case
def odd_names_of_dims():
    g = G()
    a = g.op('MaxPool', 'x', kernel_shape=[2, 2], strides=[2, 2])
    y = g.op('Conv', a, g.w('w', T.FLOAT, 8, 3, 1, 1))
    m = g.model([info('x', T.FLOAT, ['batch*beams', 3, 'floor(h/1)', 'Max(1, s1 - 1)'])], [info(y, T.FLOAT, ['batch*beams', 8,
            'floor(h/2)', 's1//2'])], {'': 17})
    return m, ['--dim=x=2x3x10x8'], 2 * 5 * 4 * 24, {y: [2, 8, 5, 4]}


@case
def odd_dims_by_name():
    g = G()
    y = g.op('MatMul', 'x', g.w('w', T.FLOAT, 8, 3))
    z = g.op('Concat', 'past', 'x', axis=1)
    m = g.model([info('x', T.FLOAT, ['batch*beams', 's', 8]), info('past', T.FLOAT, ['batch*beams', 'p - 1', 8])], [info(y, T.FLOAT,
            None), info(z, T.FLOAT, ['batch*beams', 'p + s - 1', 8])], {'': 17})
    return m, ['--dim=batch=2', '--dim=beams=5', '--dim=s=4', '--dim=p=8'], 10 * 4 * 24, {y: [10, 4, 3], z: [10, 11, 8]}


@case
def bf16_island():
    g = G()
    b = g.op('Cast', g.op('LayerNormalization', 'x', g.w('ls', T.FLOAT, 64), g.w('lb', T.FLOAT, 64), axis=-1), to=BF16)
    h = g.op('Gemm', b, g.w('w1', BF16, 256, 64), g.w('b1', BF16, 256), transB=1)
    f = g.op('Cast', h, to=T.FLOAT)
    ge = g.op('Gelu', f, approximate='tanh')
    y = g.op('Add', 'x', g.op('MatMul', ge, g.op('Cast', g.w('w2', BF16, 256, 64), to=T.FLOAT)))
    m = g.model([info('x', T.FLOAT, ['t', 64])], [info(y, T.FLOAT, None)], {'': 20}, 9)
    return m, ['--dim=t=11'], 2 * 11 * 64 * 256, {y: [11, 64]}, {'dtypes': {'Gemm': 'bf16', 'MatMul': 'f32'}}


@case
def external_many_files():
    g = G()
    x = 'x'
    for i in range(40):
        x = g.op('Relu', g.op('Conv', x, g.w(f'w{i}', T.FLOAT, 8, 8, 3, 3, location=f'blobs/part {i}/weight.{i}'), g.w(f'b{i}', T.FLOAT,
                8, location=f'blobs/b{i}'), pads=[1, 1, 1, 1]))
    m = g.model([info('x', T.FLOAT, [1, 8, 14, 14])], [info(x, T.FLOAT, None)], {'': 17})
    return m, [], 40 * 196 * 64 * 9, {x: [1, 8, 14, 14]}


@case
def both_names_of_the_domain():
    g = G()
    a = g.op('MatMul', 'x', g.w('w', T.FLOAT, 8, 9), domain='ai.onnx')
    y = g.op('Softmax', a, axis=1)
    m = g.model([info('x', T.FLOAT, [2, 3, 8])], [info(y, T.FLOAT, None)], {'ai.onnx': 11})
    return m, [], 6 * 72, {y: [2, 3, 9]}


@case
def sparse_weights():
    g = G()
    y = g.op('MatMul', 'x', 'w')
    m = g.model([info('x', T.FLOAT, [3, 16])], [info(y, T.FLOAT, None)], {'': 13})
    s = SparseTensorProto(dims=[16, 8])
    s.values.CopyFrom(helper.make_tensor('w', T.FLOAT, [3], [1., 2., 3.]))
    s.indices.CopyFrom(helper.make_tensor('i', T.INT64, [3], [0, 9, 100]))
    m.graph.sparse_initializer.append(s)
    return m, [], 3 * 16 * 8, {y: [3, 8]}


@case
def shadowed_names():
    """the branch's own names are those of values outside; it reads an initializer from outside"""
    g = G()
    t = helper.make_graph([helper.make_node('MatMul', ['x', 'w'], ['h2']), helper.make_node('Relu', ['h2'], ['o'])], 't', [], [info('o',
            T.FLOAT, None)])
    w2 = helper.make_tensor('wb', T.FLOAT, [8, 8], [0.0] * 64)
    e = helper.make_graph([helper.make_node('MatMul', ['x', 'wb'], ['h3']), helper.make_node('MatMul', ['h3', 'w'], ['o2'])], 'e', [],
            [info('o2', T.FLOAT, None)], [w2])
    g.w('w', T.FLOAT, 8, 8)
    y = g.op('If', 'c', then_branch=t, else_branch=e)
    m = g.model([info('x', T.FLOAT, [4, 8]), info('c', T.BOOL, [])], [info(y, T.FLOAT, None)], {'': 17})
    return m, [], 4 * 64, {y: [4, 8]}


@case
def branches_of_different_sizes():
    """One cache, which an If appends to or leaves: what is behind it counts with the sizes of the branch that makes less"""
    g = G()
    t = helper.make_graph([helper.make_node('Concat', ['past', 'k'], ['long'], axis=1)], 't', [], [info('long', T.FLOAT, ['b', 'all', 8])])
    e = helper.make_graph([helper.make_node('Identity', ['k'], ['short'])], 'e', [], [info('short', T.FLOAT, ['b', 's', 8])])
    y = g.op('MatMul', g.op('If', 'use', then_branch=t, else_branch=e), g.w('w', T.FLOAT, 8, 4))
    m = g.model([info('use', T.BOOL, [1]), info('past', T.FLOAT, ['b', 'p', 8]), info('k', T.FLOAT, ['b', 's', 8])], [info(y, T.FLOAT, None)], {'': 17})
    return m, ['--dim=b=2', '--dim=s=3', '--dim=p=10'], 2 * 3 * 32, {y: [2, 3, 4]}, {'said': 'its else_branch, whose results are smaller, is counted'}


@case
def nothing_found():
    """A branch without a result is no cheaper way to the layers behind it: they stay open"""
    g = G()
    t = helper.make_graph([helper.make_node('Identity', ['none'], ['no'])], 't', [], [info('no', T.FLOAT, [0, 8])])
    e = helper.make_graph([helper.make_node('Relu', ['x'], ['yes'])], 'e', [], [info('yes', T.FLOAT, [50, 8])])
    g.inits.append(helper.make_tensor('none', T.FLOAT, [0, 8], []))
    y = g.op('MatMul', g.op('If', 'empty', then_branch=t, else_branch=e), g.w('w', T.FLOAT, 8, 4))
    m = g.model([info('empty', T.BOOL, []), info('x', T.FLOAT, [50, 8])], [info(y, T.FLOAT, None)], {'': 17})
    return m, [], 0, {}, {'unknown': True}


@case
def scan_of_a_cell():
    body = helper.make_graph([helper.make_node('MatMul', ['h', 'wh'], ['a']), helper.make_node('MatMul', ['xt', 'wx'], ['b']),
            helper.make_node('Add', ['a', 'b'], ['c']), helper.make_node('Tanh', ['c'], ['ho']),
                              helper.make_node('Identity', ['ho'], ['yt'])], 'b', [info('h', T.FLOAT, None), info('xt', T.FLOAT,
                                      None)], [info('ho', T.FLOAT, None), info('yt', T.FLOAT, None)])
    g = G()
    g.w('wh', T.FLOAT, 24, 24); g.w('wx', T.FLOAT, 10, 24)
    h, y = g.op('Scan', 'h0', 'x', n=2, body=body, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1], scan_input_directions=[1])
    m = g.model([info('h0', T.FLOAT, ['b', 24]), info('x', T.FLOAT, ['b', 't', 10])], [info(h, T.FLOAT, None), info(y, T.FLOAT, None)],
            {'': 16})
    return m, ['--dim=b=3', '--dim=t=13'], 13 * 3 * (24 * 24 + 240), {h: [3, 24], y: [3, 13, 24]}


@case
def sequence_map():
    g = G()
    body = helper.make_graph([helper.make_node('MatMul', ['e', 'w'], ['o'])], 'b', [info('e', T.FLOAT, None)], [info('o', T.FLOAT, None)])
    g.w('w', T.FLOAT, 8, 5)
    s = g.op('SplitToSequence', 'x', g.c('one', T.INT64, [], [1]), axis=0, keepdims=1)
    q = g.op('SequenceMap', s, body=body)
    y = g.op('ConcatFromSequence', q, axis=0)
    m = g.model([info('x', T.FLOAT, [6, 3, 8])], [info(y, T.FLOAT, None)], {'': 17})
    return m, [], 6 * 3 * 40, {y: [6, 3, 5]}


@case
def loop_that_decodes():
    """a scripted decoder: the cache grows in a Loop with a condition from the data"""
    g = G()
    g.w('e', T.FLOAT, 50, 16); g.w('w', T.FLOAT, 16, 50)
    b = [helper.make_node('Gather', ['e', 't'], ['x']), helper.make_node('Concat', ['cache', 'x'], ['c2'], axis=1),
            helper.make_node('Transpose', ['c2'], ['ct'], perm=[0, 2, 1]),
         helper.make_node('MatMul', ['x', 'ct'], ['s']), helper.make_node('Softmax', ['s'], ['p'], axis=-1), helper.make_node('MatMul',
                 ['p', 'c2'], ['y']), helper.make_node('MatMul', ['y', 'w'], ['l']),
         helper.make_node('ArgMax', ['l'], ['t2'], axis=-1, keepdims=0), helper.make_node('ReduceMin', ['t2'], ['mn'],
                 keepdims=0), helper.make_node('Constant', [], ['zero'], value=helper.make_tensor('z', T.INT64, [], [0])),
         helper.make_node('Greater', ['mn', 'zero'], ['go']), helper.make_node('Identity', ['t2'], ['out'])]
    body = helper.make_graph(b, 'b', [info('i', T.INT64, []), info('c', T.BOOL, []), info('t', T.INT64, None), info('cache', T.FLOAT,
            None)],
                             [info('go', T.BOOL, []), info('t2', T.INT64, None), info('c2', T.FLOAT, None), info('out', T.INT64, None)])
    t, c, o = g.op('Loop', g.c('m', T.INT64, [], [20]), '', 't0', 'c0', n=3, body=body)
    m = g.model([info('t0', T.INT64, ['b', 1]), info('c0', T.FLOAT, ['b', 'p', 16])], [info(o, T.INT64, None)], {'': 17})
    return m, ['--dim=b=2', '--dim=p=0', '--trips=20'], 20 * 2 * 16 * 50, {}, {'unknown': True}


@case
def while_loop_of_tensor_lists():
    """a recurrent layer as tf2onnx writes it: a while loop with a counter of its own, which appends states to a list; as often as a dimension says"""
    g, T_, B, H = G(), 90, 2, 16
    body = helper.make_graph([
        helper.make_node('Gather', ['X', 'k'], ['xt'], axis=1), helper.make_node('MatMul', ['xt', 'kw'], ['a']), helper.make_node('MatMul', ['h', 'rw'], ['b']),
        helper.make_node('Add', ['a', 'b'], ['c']), helper.make_node('Tanh', ['c'], ['h2']), helper.make_node('Add', ['k', 'one'], ['k2']),
        helper.make_node('Less', ['k2', 'steps'], ['more']), helper.make_node('Identity', ['more'], ['go2'])], 'body',
        [info('i', T.INT64, []), info('go', T.BOOL, []), info('k', T.INT64, []), info('h', T.FLOAT, None)],
        [info('go2', T.BOOL, []), info('k2', T.INT64, []), info('h2', T.FLOAT, None), info('h2', T.FLOAT, None)])
    g.w('kw', T.FLOAT, 8, H); g.w('rw', T.FLOAT, H, H); g.c('one', T.INT64, [], [1]); g.c('zero', T.INT64, [], [0]); g.c('many', T.INT64, [], [2**31 - 1])
    g.nodes += [helper.make_node('Shape', ['X'], ['shape']), helper.make_node('Gather', ['shape', 'one'], ['steps']), helper.make_node('Less', ['zero', 'steps'], ['start']),
                helper.make_node('Loop', ['many', 'start', 'zero', 'h0'], ['last_k', 'last', 'all'], name='n_loop', body=body)]
    m = g.model([info('X', T.FLOAT, ['B', 'T', 8]), info('h0', T.FLOAT, ['B', H])], [info('all', T.FLOAT, None)], {'': 13})
    return m, [f'--dim=B={B}', f'--dim=T={T_}'], T_ * B * H * (8 + H), {'all': [T_, B, H]}


@case
def optional_that_is_there():
    g = G()
    g.w('w', T.FLOAT, 6, 10)
    yes = helper.make_graph([helper.make_node('OptionalGetElement', ['o'], ['e']), helper.make_node('MatMul', ['e', 'w'], ['a'])], 'yes', [], [info('a', T.FLOAT, None)])
    no = helper.make_graph([helper.make_node('Constant', [], ['b'], value=helper.make_tensor('', T.FLOAT, [3, 10], [0.0] * 30))], 'no', [], [info('b', T.FLOAT, None)])
    g.nodes += [helper.make_node('Optional', ['x'], ['o']), helper.make_node('OptionalHasElement', ['o'], ['there']),
                helper.make_node('If', ['there'], ['y'], name='n_if', then_branch=yes, else_branch=no)]
    return g.model([info('x', T.FLOAT, [3, 6])], [info('y', T.FLOAT, None)], {'': 18}), [], 180, {'y': [3, 10]}
