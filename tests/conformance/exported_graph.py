"""What exported_*.py build their graphs with: weights without their bytes, types and fields that the package does not know."""
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto as T, helper

MS = 'com.microsoft'
U4, F8, I4, BF16 = 21, 17, 22, T.BFLOAT16
CASES = []


def case(f):
    """f() -> model, options, MACs, {result: shape} and what else: dtypes {operator: type}, said (a text), status, open (some layer is)."""
    CASES.append(f)
    return f


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


class G:
    """Nodes and weights in the making."""

    def __init__(self, prefix=''):
        self.nodes, self.inits, self.n, self.prefix = [], [], 0, prefix

    def op(self, kind, *ins, n=1, domain='', **attributes):
        self.n += 1
        name = f'{self.prefix}{kind}_{self.n}'
        outs = [name] if n == 1 else [f'{name}_{i}' for i in range(n)]
        self.nodes.append(helper.make_node(kind, list(ins), outs, name='n_' + name, domain=domain, **attributes))
        return outs[0] if n == 1 else outs

    def w(self, name, kind, *dims, location='weights.bin'):
        """An initializer in a file that is not there."""
        t = T(name=name, data_type=kind, dims=dims, data_location=T.EXTERNAL)
        t.external_data.add(key='location', value=location)
        self.inits.append(t)
        return name

    def c(self, name, kind, dims, values):
        self.inits.append(helper.make_tensor(name, kind, dims, values))
        return name

    def model(self, inputs, outputs, opsets, ir=8, functions=()):
        m = ModelProto(ir_version=ir, graph=helper.make_graph(self.nodes, 'g', inputs, outputs, self.inits))
        for d, v in opsets.items():
            m.opset_import.add(domain=d, version=v)
        m.functions.extend(functions)
        return m


def varint(n):
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def func(domain, name, ins, outs, nodes, opsets, attrs=(), defaults=(), overload=''):
    """A local function; the package has neither attribute_proto (11) nor overload (13)."""
    f = FunctionProto(name=name, domain=domain, input=ins, output=outs, node=nodes, attribute=attrs)
    for d, v in opsets.items():
        f.opset_import.add(domain=d, version=v)
    more = b''.join(field(11, a.SerializeToString()) for a in defaults) + (field(13, overload.encode()) if overload else b'')
    return FunctionProto.FromString(f.SerializeToString() + more)


def call(node, overload):
    return NodeProto.FromString(node.SerializeToString() + field(8, overload.encode()))


def ref(node, attr, name, kind):
    node.attribute.add(name=attr, type=kind).ref_attr_name = name
    return node
