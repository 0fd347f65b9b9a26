"""Runs an ONNX model in double precision with PyTorch: operators of inference, and those of a training iteration
(modelproc/ops_gradient.c), each by its definition. A gradient operator is the vector-Jacobian product of what it is the gradient of, as
autograd computes it from the operator's own operands: so what is tested is whether a model asks the right operators for the right things."""
import itertools
import math

import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

D = torch.float64


def attributes(node):
    out = {}
    for a in node.attribute:
        v = helper.get_attribute_value(a)
        out[a.name] = v.decode() if isinstance(v, bytes) else v
    return out


def tensor(t):
    t = torch.tensor(numpy_helper.to_array(t).copy())
    return t.to(D) if t.is_floating_point() else t


def vjp(f, operands, dy):
    """Gradients of f's operands (None where it has none) for the gradient dy of its result."""
    xs = [x.detach().clone().requires_grad_() if x is not None and x.is_floating_point() else x for x in operands]
    with torch.enable_grad():
        y = f(*xs)
    wanted = [x for x in xs if x is not None and x.is_floating_point()]
    found = iter(torch.autograd.grad(y, wanted, dy, allow_unused=True))
    return [next(found) if x is not None and x.is_floating_point() else None for x in xs]


def clip(x, low, high):
    return torch.clamp(x, low, high)


def function(name, a):
    """Functions of one value by the kind of their layer; parameters have ONNX's usual values."""
    g = a.get
    return {
        "relu": F.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "softplus": F.softplus, "softsign": F.softsign,
        "hardswish": F.hardswish, "mish": F.mish, "leakyrelu": lambda x: F.leaky_relu(x, g("alpha", 0.01)),
        "elu": lambda x: F.elu(x, g("alpha", 1.0)),
        "celu": lambda x: F.celu(x, g("alpha", 1.0)),
        "selu": lambda x: g("gamma", 1.0507) * torch.where(x > 0, x, g("alpha", 1.67326) * (torch.exp(x) - 1)),
        "hardsigmoid": lambda x: clip(g("alpha", 0.2) * x + g("beta", 0.5), 0, 1),
        "thresholdedrelu": lambda x: torch.where(x > g("alpha", 1.0), x, torch.zeros_like(x)),
        "shrink": lambda x: torch.where(x < -g("lambd", 0.5), x + g("bias", 0.0), torch.where(x > g("lambd", 0.5), x - g("bias", 0.0), torch.zeros_like(x))),
        "swish": lambda x: x * torch.sigmoid(g("alpha", 1.0) * x),
        "gelu": lambda x: F.gelu(x, approximate=g("approximate", "none")),
        "fastgelu": lambda x: F.gelu(x, approximate="tanh"),
        "quickgelu": lambda x: x * torch.sigmoid(g("alpha", 1.702) * x),
        "clip": lambda x: clip(x, g("min", -math.inf), g("max", math.inf)),
        "reciprocal": torch.reciprocal, "erf": torch.erf, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "abs": torch.abs,
        "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan,
        "sinh": torch.sinh, "cosh": torch.cosh, "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh,
    }[name]


OF_Y = {"relu": lambda y: (y > 0).to(D), "sigmoid": lambda y: y * (1 - y), "tanh": lambda y: 1 - y * y, "exp": lambda y: y,
        "sqrt": lambda y: 0.5 / y, "reciprocal": lambda y: -y * y}
UNARY = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Softplus": "softplus", "Softsign": "softsign", "HardSwish": "hardswish",
         "Mish": "mish", "LeakyRelu": "leakyrelu", "Elu": "elu", "Celu": "celu", "Selu": "selu", "HardSigmoid": "hardsigmoid",
         "ThresholdedRelu": "thresholdedrelu", "Shrink": "shrink", "Swish": "swish", "Gelu": "gelu", "QuickGelu": "quickgelu",
         **{n: n.lower() for n in ("Reciprocal Erf Exp Log Sqrt Abs Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh").split()}}


def reverse_sequence(x, lengths, batch, time):
    x = x.movedim((batch, time), (0, 1))
    y = torch.stack([torch.cat([row[:n].flip(0), row[n:]]) for row, n in zip(x, lengths.tolist())])
    return y.movedim((0, 1), (batch, time))


def rotary(x, cos, sin, places, interleaved):
    """x [batch, heads, length, size]; tables by place."""
    c, s = (t[places][:, None] if places is not None else t[:, None] for t in (cos, sin))
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    y = a * c - b * s, b * c + a * s
    return torch.stack(y, -1).flatten(-2) if interleaved else torch.cat(y, -1)


def pads_of(a, n):
    p = a.get("pads", [0] * 2 * n)
    return p[:n], p[n:]


def padded(x, a, n, value=0.0):
    begin, end = pads_of(a, n)
    flat = [v for i in reversed(range(n)) for v in (begin[i], end[i])]
    return F.pad(x, flat, value=value)


def conv(x, w, b, a):
    n = w.dim() - 2
    f = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    return f(padded(x, a, n), w, b, stride=a.get("strides", [1] * n), dilation=a.get("dilations", [1] * n), groups=a.get("group", 1))


def deconv(x, w, b, a):
    n = w.dim() - 2
    f = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
    y = f(x, w, b, stride=a.get("strides", [1] * n), dilation=a.get("dilations", [1] * n), groups=a.get("group", 1),
          output_padding=a.get("output_padding", [0] * n))
    begin, end = pads_of(a, n)
    for i in range(n):
        y = y.narrow(2 + i, begin[i], y.shape[2 + i] - begin[i] - end[i])
    return y


def windows(x, a, value):
    """Every window's elements in a last dimension, of a 4-d tensor."""
    kh, kw = a["kernel_shape"]
    sh, sw = a.get("strides", [1, 1])
    dh, dw = a.get("dilations", [1, 1])
    x = padded(x, a, 2, value)
    oh = (x.shape[2] - dh * (kh - 1) - 1) // sh + 1
    ow = (x.shape[3] - dw * (kw - 1) - 1) // sw + 1
    cut = [x[:, :, i * dh:i * dh + (oh - 1) * sh + 1:sh, j * dw:j * dw + (ow - 1) * sw + 1:sw] for i in range(kh) for j in range(kw)]
    return torch.stack(cut, -1)


def maxpool(x, a):
    numbers = torch.arange(x.numel(), dtype=D).reshape(x.shape)
    v, at = windows(x, a, -math.inf).max(-1)
    return v, windows(numbers, a, -1).gather(-1, at.unsqueeze(-1)).squeeze(-1).long()


def avgpool(x, a):
    s = windows(x, a, 0).sum(-1)
    n = math.prod(a["kernel_shape"]) if a.get("count_include_pad", 0) else windows(torch.ones_like(x), a, 0).sum(-1)
    return s / n


def resize(x, shape, a):
    """Nearest and linear, by their definition: each axis in turn."""
    for axis in range(x.dim()):
        n, m = x.shape[axis], shape[axis]
        if n == m:
            continue
        i = torch.arange(m, dtype=D)
        how = a.get("coordinate_transformation_mode", "half_pixel")
        at = {"half_pixel": (i + 0.5) * n / m - 0.5, "pytorch_half_pixel": (i + 0.5) * n / m - 0.5 if m > 1 else i * 0,
              "asymmetric": i * n / m, "align_corners": i * (n - 1) / max(m - 1, 1)}[how]
        if a.get("mode", "nearest") == "nearest":
            r = a.get("nearest_mode", "round_prefer_floor")
            k = {"floor": torch.floor(at), "ceil": torch.ceil(at), "round_prefer_ceil": torch.floor(at + 0.5),
                 "round_prefer_floor": torch.ceil(at - 0.5)}[r].clamp(0, n - 1).long()
            x = x.index_select(axis, k)
        else:
            at = at.clamp(0, n - 1)
            low = at.floor().long()
            high = (low + 1).clamp(max=n - 1)
            t = (at - low).reshape([-1 if d == axis else 1 for d in range(x.dim())])
            x = x.index_select(axis, low) * (1 - t) + x.index_select(axis, high) * t
    return x


def layernorm(x, scale, bias, a):
    axes = list(range(a.get("axis", -1) % x.dim(), x.dim()))
    mean = x.mean(axes, keepdim=True)
    inverse = torch.rsqrt(((x - mean) ** 2).mean(axes, keepdim=True) + a.get("epsilon", 1e-5))
    y = (x - mean) * inverse * scale
    return y if bias is None else y + bias, mean, inverse


def rmsnorm(x, scale, a):
    axes = list(range(a.get("axis", -1) % x.dim(), x.dim()))
    inverse = torch.rsqrt((x * x).mean(axes, keepdim=True) + a.get("epsilon", 1e-5))
    return x * inverse * scale, inverse


def groupnorm(x, scale, bias, groups, epsilon):
    n, c = x.shape[:2]
    y = F.group_norm(x, groups, eps=epsilon)
    wide = lambda t: (t if t.numel() == c else t.repeat_interleave(c // groups)).reshape([1, c] + [1] * (x.dim() - 2))
    return y * wide(scale) + wide(bias)


def batchnorm(x, scale, bias, a):
    axes = [i for i in range(x.dim()) if i != 1]
    shape = [1, -1] + [1] * (x.dim() - 2)
    mean = x.mean(axes)
    var = ((x - mean.reshape(shape)) ** 2).mean(axes)
    inverse = torch.rsqrt(var + a.get("epsilon", 1e-5))
    return (x - mean.reshape(shape)) * (inverse * scale).reshape(shape) + bias.reshape(shape), mean, var, inverse


def lrn(x, a):
    size = a["size"]
    square = F.pad((x * x).unsqueeze(1), [0] * 2 * (x.dim() - 2) + [(size - 1) // 2, size // 2]).squeeze(1)
    s = sum(square[:, i:i + x.shape[1]] for i in range(size))
    return x / (a.get("bias", 1.0) + a.get("alpha", 1e-4) / size * s) ** a.get("beta", 0.75)


def softmax(x, a, opset, f):
    axis = a.get("axis", -1 if opset >= 13 else 1)
    return f(x, axis) if opset >= 13 else f(x.flatten(axis % x.dim()), -1).reshape(x.shape)


def attention(q, k, v, mask, a):
    flat = q.dim() == 3
    if flat:
        h, g = a["q_num_heads"], a["kv_num_heads"]
        q, k, v = (t.reshape(t.shape[0], t.shape[1], n, -1).transpose(1, 2) for t, n in ((q, h), (k, g), (v, g)))
    r = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(r, 1), v.repeat_interleave(r, 1)
    s = q @ k.transpose(-1, -2) * a.get("scale", 1 / math.sqrt(q.shape[-1]))
    if a.get("softcap", 0):
        s = a["softcap"] * torch.tanh(s / a["softcap"])
    if a.get("is_causal", 0):
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    if mask is not None:
        s = s + mask if mask.is_floating_point() else s.masked_fill(~mask, -math.inf)
    y = torch.softmax(s, -1) @ v
    return (y.transpose(1, 2).flatten(2) if flat else y), torch.logsumexp(s, -1)


def recurrent(gates, x, w, r, b, h0, c0, a):
    """All states, the last one, the last cell; gates i, o, f, c, or z, r, h, as ONNX orders them."""
    T, B, _ = x.shape
    H = r.shape[-1]
    ways, lasts, cells = [], [], []
    for d in range(w.shape[0]):
        h = h0[d] if h0 is not None else x.new_zeros(B, H)
        c = c0[d] if c0 is not None else x.new_zeros(B, H)
        wb, rb = (b[d][:gates * H], b[d][gates * H:]) if b is not None else (x.new_zeros(gates * H),) * 2
        states = [None] * T
        back = d == 1 or a.get("direction", "forward") == "reverse"
        for t in reversed(range(T)) if back else range(T):
            p, q = x[t] @ w[d].T + wb, h @ r[d].T + rb
            if gates == 4:
                i, o, f, n = (p + q).chunk(4, -1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(n)
                h = torch.sigmoid(o) * torch.tanh(c)
            elif gates == 1:
                h = getattr(torch, a["activations"][d].decode().lower() if "activations" in a else "tanh")(p + q)
            else:
                z, s = torch.sigmoid(p + q)[:, :H], torch.sigmoid(p + q)[:, H:2 * H]
                if a.get("linear_before_reset", 0):
                    n = torch.tanh(p[:, 2 * H:] + s * q[:, 2 * H:])
                else:
                    n = torch.tanh(p[:, 2 * H:] + (s * h) @ r[d][2 * H:].T + rb[2 * H:])
                h = (1 - z) * n + z * h
            states[t] = h
        ways.append(torch.stack(states)), lasts.append(h), cells.append(c)
    return torch.stack(ways, 1), torch.stack(lasts), torch.stack(cells)


def cut(x, starts, ends, axes, steps):
    """A slice by ONNX's rules, as indices of each axis."""
    picks = []
    for s, e, axis, step in zip(starts, ends, axes, steps):
        n = x.shape[axis]
        s, e = (v + n if v < 0 else v for v in (s, e))
        s = min(max(s, 0), n if step > 0 else n - 1)
        e = min(max(e, 0), n) if step > 0 else min(max(e, -1), n - 1)
        picks.append((axis % x.dim(), torch.tensor(list(range(s, e, step)), dtype=torch.long)))
    for axis, at in picks:
        x = x.index_select(axis, at)
    return x


def gather(x, at, axis):
    at = torch.where(at < 0, at + x.shape[axis], at)
    y = x.index_select(axis, at.flatten())
    return y.reshape(list(x.shape[:axis]) + list(at.shape) + list(x.shape[axis + 1:]))


def gather_nd(x, at, batch):
    if batch:
        return torch.stack([gather_nd(p, q, batch - 1) for p, q in zip(x, at)])
    flat = at.reshape(-1, at.shape[-1])
    return torch.stack([x[tuple(int(v) for v in row)] for row in flat]).reshape(list(at.shape[:-1]) + list(x.shape[at.shape[-1]:]))


def pad(x, pads, mode, value=0.0):
    n = x.dim()
    if mode == "constant":
        flat = [v for i in reversed(range(n)) for v in (pads[i], pads[n + i])]
        return F.pad(x, flat, value=value)
    for i in range(n):
        at = torch.arange(-pads[i], x.shape[i] + pads[n + i])
        m = x.shape[i]
        at = at.clamp(0, m - 1) if mode == "edge" else torch.where(at < 0, -at, torch.where(at >= m, 2 * m - 2 - at, at))
        x = x.index_select(i, at)
    return x


def reduce(op, x, axes, keep):
    axes = axes if axes else list(range(x.dim()))
    f = {"Sum": lambda: x.sum(axes, keepdim=keep), "Mean": lambda: x.mean(axes, keepdim=keep), "Max": lambda: x.amax(axes, keepdim=keep),
         "Min": lambda: x.amin(axes, keepdim=keep), "L1": lambda: x.abs().sum(axes, keepdim=keep),
         "L2": lambda: (x * x).sum(axes, keepdim=keep).sqrt(), "SumSquare": lambda: (x * x).sum(axes, keepdim=keep),
         "LogSumExp": lambda: torch.logsumexp(x, axes, keepdim=keep), "LogSum": lambda: x.sum(axes, keepdim=keep).log()}
    if op == "Prod":
        for axis in sorted((a % x.dim() for a in axes), reverse=True):
            x = x.prod(axis, keepdim=keep)
        return x
    return f[op]()


def blocks(x, s, mode, to_space):
    n, c, h, w = x.shape
    if not to_space:
        return x.reshape(n, c, h // s, s, w // s, s).permute(0, 3, 5, 1, 2, 4).reshape(n, c * s * s, h // s, w // s)
    k = c // (s * s)
    y = x.reshape(n, s, s, k, h, w).permute(0, 3, 4, 1, 5, 2) if mode == "DCR" else x.reshape(n, k, s, s, h, w).permute(0, 1, 4, 2, 5, 3)
    return y.reshape(n, k, h * s, w * s)


def cross_entropy(x, target, a, weight=None):
    logp = F.log_softmax(x, 1)
    return F.nll_loss(logp, target, weight, reduction=a.get("reduction", "mean"), ignore_index=a.get("ignore_index", -100)), logp


def lppool(x, a):
    return (windows(x.abs() ** a.get("p", 2), a, 0).sum(-1)) ** (1 / a.get("p", 2))


def max_unpool(x, at, a):
    k, s, p = a["kernel_shape"], a.get("strides", [1, 1]), a.get("pads", [0] * 4)
    shape = list(x.shape[:2]) + [(n - 1) * s[i] + k[i] - p[i] - p[i + 2] for i, n in enumerate(x.shape[2:])]
    return torch.zeros(math.prod(shape), dtype=D).index_add(0, at.flatten(), x.flatten()).reshape(shape)


def col2im(x, image, block, a):
    """Every element of every window added where it belongs, one after the other."""
    n = len(image)
    strides, dilations, pads = a.get("strides", [1] * n), a.get("dilations", [1] * n), a.get("pads", [0] * 2 * n)
    counts = [(image[i] + pads[i] + pads[n + i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(n)]
    y = torch.zeros([x.shape[0], x.shape[1] // math.prod(block)] + list(image), dtype=D)
    x = x.reshape(list(y.shape[:2]) + list(block) + counts)
    for k in itertools.product(*map(range, block)):
        for l in itertools.product(*map(range, counts)):
            at = [l[i] * strides[i] + k[i] * dilations[i] - pads[i] for i in range(n)]
            if all(0 <= v < m for v, m in zip(at, image)):
                place = torch.zeros(list(image), dtype=D)
                place[tuple(at)] = 1
                y = y + x[(slice(None), slice(None), *k, *l)].reshape(list(y.shape[:2]) + [1] * n) * place
    return y


def center_crop_pad(x, sizes, axes):
    for axis, m in zip(axes if axes else range(x.dim()), sizes):
        n = x.shape[axis]
        if m <= n:
            x = x.narrow(axis, (n - m) // 2, m)
        else:
            zeros = lambda k: torch.zeros([k if i == axis else v for i, v in enumerate(x.shape)], dtype=x.dtype)
            x = torch.cat([zeros((m - n) // 2), x, zeros(m - n - (m - n) // 2)], axis)
    return x


def dft(x, axis, inverse, onesided, length=None):
    n = length or x.shape[axis]
    x = torch.cat([x, torch.zeros(*x.shape[:axis], max(0, n - x.shape[axis]), *x.shape[axis + 1:], dtype=D)], axis).narrow(axis, 0, n)
    c = torch.complex(x[..., 0], x[..., 1] if x.shape[-1] == 2 else torch.zeros_like(x[..., 0]))
    y = torch.view_as_real((torch.fft.ifft if inverse else torch.fft.fft)(c, dim=axis))
    return y.narrow(axis, 0, x.shape[axis] // 2 + 1) if onesided else y


def stft(x, step, window, frame, onesided):
    n = window.numel() if window is not None else frame
    frames = torch.stack([x[:, i * step:i * step + n] for i in range((x.shape[1] - n) // step + 1)], 1)
    return dft(frames * (window if window is not None else torch.ones(n, dtype=D))[:, None], 2, False, onesided)


def grid_sample(x, grid, a):
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(a.get("mode", "bilinear"), a.get("mode", "bilinear"))
    return F.grid_sample(x, grid, mode, a.get("padding_mode", "zeros"), bool(a.get("align_corners", 0)))


def pixels(x, h, w, outside):
    """x [C, H, W] between pixels, at places h and w of one shape. Of what lies outside: nothing, or the nearest pixel."""
    H, W = x.shape[1:]
    if outside == "edge":
        inside = (h >= -1) & (h <= H) & (w >= -1) & (w <= W)
        h, w = h.clamp(0, H - 1), w.clamp(0, W - 1)
    else:
        inside = torch.ones_like(h, dtype=torch.bool)
    low_h, low_w, y = h.floor(), w.floor(), 0
    for dh in 0, 1:
        for dw in 0, 1:
            at_h, at_w = low_h + dh, low_w + dw
            share = (1 - (h - at_h).abs()) * (1 - (w - at_w).abs()) * ((at_h >= 0) & (at_h < H) & (at_w >= 0) & (at_w < W) & inside)
            y = y + x[:, at_h.clamp(0, H - 1).long(), at_w.clamp(0, W - 1).long()] * share
    return y


def roi_align(x, rois, batch, a):
    height, width, ratio, scale = a.get("output_height", 1), a.get("output_width", 1), a["sampling_ratio"], a.get("spatial_scale", 1.0)
    half = 0.5 if a.get("coordinate_transformation_mode", "half_pixel") == "half_pixel" else 0
    out = []
    for (x1, y1, x2, y2), n in zip((rois * scale - half).tolist(), batch.tolist()):
        h, w = y2 - y1, x2 - x1
        if not half:
            h, w = max(h, 1), max(w, 1)
        at = lambda begin, size, count: begin + (torch.arange(count * ratio, dtype=D) + 0.5) * size / (count * ratio)
        grid = torch.meshgrid(at(y1, h, height), at(x1, w, width), indexing="ij")
        out.append(pixels(x[n], *grid, "edge").reshape(-1, height, ratio, width, ratio).mean((2, 4)))
    return torch.stack(out)


def deform_conv(x, w, offset, bias, mask, a):
    """A convolution of samples: each kernel element of each group of channels reads where its offset says."""
    kh, kw = w.shape[2:]
    sh, sw = a.get("strides", [1, 1])
    dh, dw = a.get("dilations", [1, 1])
    top, left = a.get("pads", [0] * 4)[:2]
    groups, parts = a.get("offset_group", 1), a.get("group", 1)
    N, C = x.shape[:2]
    oh, ow = offset.shape[2:]
    offset = offset.reshape(N, groups, kh, kw, 2, oh, ow)
    base_h, base_w = torch.meshgrid(torch.arange(oh, dtype=D) * sh - top, torch.arange(ow, dtype=D) * sw - left, indexing="ij")
    images = []
    for n in range(N):
        channels = []
        for g, xs in enumerate(x[n].chunk(groups)):
            taps = []
            for i in range(kh):
                for j in range(kw):
                    s = pixels(xs, base_h + i * dh + offset[n, g, i, j, 0], base_w + j * dw + offset[n, g, i, j, 1], "zeros")
                    taps.append(s if mask is None else s * mask.reshape(N, groups, kh, kw, oh, ow)[n, g, i, j])
            channels.append(torch.stack(taps, 1))
        images.append(torch.cat(channels))
    columns = torch.stack(images).reshape(N, parts, C // parts, kh * kw, oh, ow)
    y = torch.einsum("npcthw,pmct->npmhw", columns, w.reshape(parts, -1, C // parts, kh * kw)).reshape(N, -1, oh, ow)
    return y if bias is None else y + bias.reshape(1, -1, 1, 1)


def cumprod(x, axis, exclusive, reverse):
    x = x.flip(axis) if reverse else x
    y = torch.cumprod(x, axis)
    if exclusive:
        y = torch.cat([torch.ones_like(y.narrow(axis, 0, 1)), y.narrow(axis, 0, y.shape[axis] - 1)], axis)
    return y.flip(axis) if reverse else y


SAMPLED = {"GridSample": grid_sample, "RoiAlign": roi_align, "DeformConv": lambda x, w, offset, *rest: deform_conv(x, w, offset, *(list(rest[:-1]) + [None, None])[:2], rest[-1])}


def run_node(node, x, opset):
    """Results of a node for its operands, None where one is left out."""
    op, a, g = node.op_type, attributes(node), attributes(node).get
    ints = lambda k: [int(v) for v in x[k].flatten()] if k < len(x) and x[k] is not None else None
    at = lambda k: x[k] if k < len(x) else None
    op = {"FusedGemm": "Gemm", "TransposeMatMul": "FusedMatMul"}.get(op, op)
    if op in UNARY:
        return [function(UNARY[op], a)(x[0])]
    if op == "EltwiseGrad":
        name = g("function")
        return [x[0] * OF_Y[name](x[1])] if g("uses") == "y" else vjp(function(name, a), [x[1]], x[0])
    if op.startswith("Reduce"):
        axes = ints(1) if len(x) > 1 else g("axes")
        return [reduce(op[6:], x[0], axes, bool(g("keepdims", 1)))]
    if op in ("Softmax", "LogSoftmax"):
        return [softmax(x[0], a, opset, torch.softmax if op == "Softmax" else torch.log_softmax)]
    if op.startswith(("SoftmaxGrad", "LogSoftmaxGrad")):
        old = 13 if op.endswith("_13") else 1
        y, axis = x[1], g("axis")
        dy = x[0] if old == 13 else x[0].flatten(axis)
        y = y if old == 13 else y.flatten(axis)
        axis = axis if old == 13 else -1
        dx = dy - y.exp() * dy.sum(axis, keepdim=True) if op[0] == "L" else y * (dy - (y * dy).sum(axis, keepdim=True))
        return [dx.reshape(x[0].shape)]
    simple = {
        "Add": lambda: x[0] + x[1], "Sub": lambda: x[0] - x[1], "Mul": lambda: x[0] * x[1], "Div": lambda: x[0] / x[1] if x[0].is_floating_point() else torch.div(x[0], x[1], rounding_mode="trunc"), "Neg": lambda: -x[0],
        "Pow": lambda: x[0] ** x[1], "Sum": lambda: sum(x[1:], x[0]), "Mean": lambda: sum(x[1:], x[0]) / len(x), "Sign": lambda: torch.sign(x[0]),
        "Equal": lambda: x[0] == x[1], "Greater": lambda: x[0] > x[1], "Less": lambda: x[0] < x[1], "Identity": lambda: x[0],
        "Where": lambda: torch.where(x[0], x[1], x[2]), "Shape": lambda: torch.tensor(x[0].shape), "Floor": lambda: torch.floor(x[0]),
        "Cast": lambda: x[0].to({1: D, 10: D, 11: D, 7: torch.int64, 6: torch.int64, 9: torch.bool}[g("to")]),
        "CastLike": lambda: x[0].to(x[1].dtype), "PRelu": lambda: torch.where(x[0] > 0, x[0], x[0] * x[1]), "Clip": lambda: clip(x[0], float(at(1)) if at(1) is not None else -math.inf, float(at(2)) if at(2) is not None else math.inf),
        "MatMul": lambda: x[0] @ x[1], "Einsum": lambda: torch.einsum(g("equation"), *x), "SwiGLU": lambda: x[0] * torch.sigmoid(g("alpha", 1.0) * x[0]) * x[1],
        "FusedMatMul": lambda: g("alpha", 1.0) * ((x[0].transpose(-1, -2) if g("transA", 0) else x[0]) @ (x[1].transpose(-1, -2) if g("transB", 0) else x[1])),
        "Gemm": lambda: g("alpha", 1.0) * ((x[0].T if g("transA", 0) else x[0]) @ (x[1].T if g("transB", 0) else x[1])) + (g("beta", 1.0) * x[2] if at(2) is not None else 0),
        "Reshape": lambda: x[0].reshape([x[0].shape[i] if v == 0 else v for i, v in enumerate(ints(1))]), "Flatten": lambda: x[0].flatten(g("axis", 1)).flatten(0, g("axis", 1) - 1) if g("axis", 1) > 0 else x[0].reshape(1, -1),
        "Transpose": lambda: x[0].permute(g("perm", list(reversed(range(x[0].dim()))))), "Expand": lambda: x[0] + torch.zeros(ints(1), dtype=x[0].dtype),
        "Concat": lambda: torch.cat(x, g("axis")), "Tile": lambda: x[0].repeat(ints(1)), "Gather": lambda: gather(x[0], x[1], g("axis", 0) % x[0].dim()),
        "GatherElements": lambda: x[0].gather(g("axis", 0), torch.where(x[1] < 0, x[1] + x[0].shape[g("axis", 0)], x[1])), "GatherND": lambda: gather_nd(x[0], x[1], g("batch_dims", 0)),
        "ScatterElements": lambda: x[0].scatter(g("axis", 0), x[1], x[2]) if g("reduction", "none") == "none" else x[0].scatter_add(g("axis", 0), x[1], x[2]),
        "ScatterND": lambda: x[0].index_put(tuple(x[1].movedim(-1, 0)), x[2], accumulate=g("reduction", "none") == "add"),
        "ReverseSequence": lambda: reverse_sequence(x[0], x[1], g("batch_axis", 1), g("time_axis", 0)),
        "MeanVarianceNormalization": lambda: (x[0] - x[0].mean(g("axes", [0, 2, 3]), keepdim=True)) / x[0].var(g("axes", [0, 2, 3]), unbiased=False, keepdim=True).sqrt(),
        "RotaryEmbedding": lambda: rotary(x[0], x[1], x[2], at(3), g("interleaved", 0)),
        "NegativeLogLikelihoodLoss": lambda: F.nll_loss(x[0], x[1], at(2), ignore_index=g("ignore_index", -100), reduction=g("reduction", "mean")),
        "NegativeLogLikelihoodLossGrad": lambda: vjp(lambda v: F.nll_loss(v, x[2], at(3), ignore_index=g("ignore_index", -100), reduction=g("reduction", "mean")), [x[1]], x[0])[0],
        "DepthToSpace": lambda: blocks(x[0], g("blocksize"), g("mode", "DCR"), True), "SpaceToDepth": lambda: blocks(x[0], g("blocksize"), "DCR", False),
        "Trilu": lambda: (torch.triu if g("upper", 1) else torch.tril)(x[0], int(x[1]) if at(1) is not None else 0),
        "Conv": lambda: conv(x[0], x[1], at(2), a), "ConvTranspose": lambda: deconv(x[0], x[1], at(2), a),
        "ConvData": lambda: vjp(lambda v: conv(v, x[1], None, a), [torch.zeros(g("input_shape"), dtype=D)], x[0])[0],
        "ConvWeights": lambda: vjp(lambda w: conv(x[0], w, None, a), [torch.zeros([x[1].shape[1], x[0].shape[1] // g("group", 1)] + g("kernel_shape"), dtype=D)], x[1])[0],
        "AveragePool": lambda: avgpool(x[0], a), "GlobalAveragePool": lambda: x[0].mean([2, 3], keepdim=True), "GlobalMaxPool": lambda: x[0].amax([2, 3], keepdim=True),
        "AveragePoolGrad": lambda: vjp(lambda v: avgpool(v, a), [torch.zeros(g("input_shape"), dtype=D)], x[0])[0],
        "Resize": lambda: resize(x[0], ints(3) or [int(n * float(s)) for n, s in zip(x[0].shape, x[2])], a),
        "Upsample": lambda: resize(x[0], [int(n * float(s)) for n, s in zip(x[0].shape, x[1] if len(x) > 1 else g("scales"))], {**a, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
        "ResizeGrad": lambda: vjp(lambda v: resize(v, x[0].shape, a), [torch.zeros(g("input_shape"), dtype=D)], x[0])[0],
        "PadGrad": lambda: vjp(lambda v: pad(v, g("pads"), g("mode")), [torch.zeros(g("input_shape"), dtype=D)], x[0])[0],
        "LRN": lambda: lrn(x[0], a), "LRNGrad": lambda: vjp(lambda v: lrn(v, a), [x[1]], x[0])[0],
        "InstanceNormalization": lambda: groupnorm(x[0], x[1], x[2], x[0].shape[1], g("epsilon", 1e-5)),
        "GroupNormalization": lambda: groupnorm(x[0], x[1], x[2], g("num_groups"), g("epsilon", 1e-5)),
        "RMSNormalization": lambda: rmsnorm(x[0], x[1], a)[0],
        "LpNormalization": lambda: x[0] / x[0].norm(g("p", 2), g("axis", -1), keepdim=True),
        "GatherGrad": lambda: vjp(lambda v: gather(v, x[1], g("axis", 0)), [torch.zeros(ints(0), dtype=D)], x[2])[0],
        "GatherElementsGrad": lambda: vjp(lambda v: v.gather(g("axis", 0), torch.where(x[2] < 0, x[2] + v.shape[g("axis", 0)], x[2])), [torch.zeros(ints(1), dtype=D)], x[0])[0],
        "GatherNDGrad": lambda: vjp(lambda v: gather_nd(v, x[1], g("batch_dims", 0)), [torch.zeros(ints(0), dtype=D)], x[2])[0],
        "SliceGrad": lambda: vjp(lambda v: cut(v, ints(2), ints(3), ints(4), ints(5)), [torch.zeros(ints(1), dtype=D)], x[0])[0],
        "CumProd": lambda: cumprod(x[0], int(x[1]), g("exclusive", 0), g("reverse", 0)), "LpPool": lambda: lppool(x[0], a),
        "GlobalLpPool": lambda: (x[0].abs() ** g("p", 2)).sum([2, 3], keepdim=True) ** (1 / g("p", 2)), "MaxUnpool": lambda: max_unpool(x[0], x[1], a),
        "Col2Im": lambda: col2im(x[0], ints(1), ints(2), a), "CenterCropPad": lambda: center_crop_pad(x[0], ints(1), g("axes")),
        "DFT": lambda: dft(x[0], int(x[2]) if at(2) is not None else g("axis", 1), bool(g("inverse", 0)), bool(g("onesided", 0)), int(x[1]) if at(1) is not None else None),
        "STFT": lambda: stft(x[0], int(x[1]), at(2), int(x[3]) if at(3) is not None else 0, bool(g("onesided", 1))), "Det": lambda: torch.linalg.det(x[0]), "Inverse": lambda: torch.linalg.inv(x[0]),
        "AffineGrid": lambda: F.affine_grid(x[0], ints(1), bool(g("align_corners", 0))), "Range": lambda: torch.arange(int(x[0]), int(x[1]), int(x[2])),
        "CumSum": lambda: (torch.cumsum(x[0].flip(int(x[1])), int(x[1])).flip(int(x[1])) if g("reverse", 0) else torch.cumsum(x[0], int(x[1]))) - (x[0] if g("exclusive", 0) else 0),
        "ArgMax": lambda: x[0].argmax(g("axis", 0), keepdim=bool(g("keepdims", 1))), "NonZero": lambda: torch.nonzero(x[0]).T,
        "FastGelu": lambda: F.gelu(x[0] + (at(1) if at(1) is not None else 0), approximate="tanh"), "BiasGelu": lambda: F.gelu(x[0] + x[1]),
        "SGD": lambda: x[2] - x[0] * x[3], "ConstantOfShape": lambda: torch.full(ints(0), float(tensor(a["value"])) if "value" in a else 0.0, dtype=D),
        "SoftmaxCrossEntropyLossGrad": lambda: entropy_grad(x[0], x[1], x[2], a, at(3)),
        "Dropout": lambda: x[0], "Constant": lambda: tensor(a["value"]) if "value" in a else torch.tensor(g("value_ints", g("value_int", g("value_float")))),
    }
    if op in SAMPLED:
        return [SAMPLED[op](*x, a)]
    if op[:-4] in SAMPLED:
        return vjp(lambda *v: SAMPLED[op[:-4]](*v, a), x[1:], x[0])[:len(node.output)]
    if op in simple:
        return [simple[op]()]
    if op in ("Max", "Min"):
        y = x[0]
        for v in x[1:]:
            y = (torch.maximum if op == "Max" else torch.minimum)(y, v)
        return [y]
    if op in ("Squeeze", "Unsqueeze"):
        axes = ints(1) if len(x) > 1 else g("axes")
        y = x[0]
        if op == "Squeeze":
            return [y.squeeze() if axes is None else y.reshape([n for i, n in enumerate(y.shape) if i not in [v % y.dim() for v in axes]])]
        for v in sorted(v % (y.dim() + len(axes)) for v in axes):
            y = y.unsqueeze(v)
        return [y]
    if op == "Split":
        sizes = ints(1) if len(x) > 1 else g("split")
        axis = g("axis", 0)
        return list(x[0].split(sizes or x[0].shape[axis] // len(node.output), axis))
    if op == "Slice":
        starts, ends = (ints(1), ints(2)) if len(x) > 1 else (g("starts"), g("ends"))
        axes = (ints(3) if len(x) > 1 else g("axes")) or list(range(len(starts)))
        return [cut(x[0], starts, ends, axes, ints(4) or [1] * len(starts))]
    if op == "Pad":
        return [pad(x[0], ints(1) if len(x) > 1 else g("pads"), g("mode", "constant"), float(x[2]) if at(2) is not None else 0.0)]
    if op == "MaxPool":
        return list(maxpool(x[0], a))
    if op == "MaxPoolGrad":
        if x[1] is None:
            return vjp(lambda v: maxpool(v, a)[0], [x[2]], x[0])
        return [torch.zeros(math.prod(g("input_shape")), dtype=D).index_add(0, x[1].flatten(), x[0].flatten()).reshape(g("input_shape"))]
    if op == "TopK":
        v, i = x[0].topk(int(x[1]), g("axis", -1), bool(g("largest", 1)))
        return [v, i]
    if op == "LayerNormalization":
        return list(layernorm(x[0], x[1], at(2), a))
    if op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        rms = "Simplified" in op
        total = x[0] + x[1] + (at(3 if rms else 4) if at(3 if rms else 4) is not None else 0)
        y, *rest = rmsnorm(total, x[2], a) if rms else layernorm(total, x[2], at(3), a)
        return ([y, None, *rest] if rms else [y, *rest]) + [total]
    if op == "LayerNormalizationGrad":
        y, bias = (x[1] - x[3]) * x[4] * x[2], torch.zeros_like(x[2])
        centred = x[1] - x[3]
        epsilon = float((1 / x[4] ** 2 - (centred ** 2).mean(list(range(a["axis"] % x[1].dim(), x[1].dim())), keepdim=True)).flatten()[0])
        return vjp(lambda v, s, b: layernorm(v, s, b, {**a, "epsilon": epsilon})[0], [x[1], x[2], bias], x[0])
    if op == "SimplifiedLayerNormalization":
        return list(rmsnorm(x[0], x[1], a))
    if op == "SimplifiedLayerNormalizationGrad":
        epsilon = float((1 / x[3] ** 2 - (x[1] ** 2).mean(list(range(a["axis"] % x[1].dim(), x[1].dim())), keepdim=True)).flatten()[0])
        return vjp(lambda v, s: rmsnorm(v, s, {**a, "epsilon": epsilon})[0], [x[1], x[2]], x[0])
    if op == "GroupNormalizationGrad":
        return vjp(lambda v, s, b: groupnorm(v, s, b, g("num_groups"), g("epsilon", 1e-5)), [x[1], x[2], torch.zeros_like(x[2])], x[0])
    if op in ("BatchNormInternal", "BatchNormalization"):
        y, mean, var, inverse = batchnorm(x[0], x[1], x[2], a)
        m = g("momentum", 0.9)
        return [y, x[3] * m + mean.detach() * (1 - m), x[4] * m + var.detach() * (1 - m), mean, inverse][:len(node.output)]
    if op == "BatchNormalizationGrad":
        axes = [i for i in range(x[1].dim()) if i != 1]
        shape = [1, -1] + [1] * (x[1].dim() - 2)
        epsilon = float((1 / x[4] ** 2 - ((x[1] - x[3].reshape(shape)) ** 2).mean(axes)).flatten()[0])
        return vjp(lambda v, s, b: batchnorm(v, s, b, {"epsilon": epsilon})[0], [x[1], x[2], torch.zeros_like(x[2])], x[0])
    if op in ("SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyLossInternal"):
        return list(cross_entropy(x[0], x[1], a, at(2)))
    if op == "SoftmaxCrossEntropyLossInternalGrad":
        return [entropy_grad(x[0], x[1], x[2], a)]
    if op in ("Attention", "MultiHeadAttention", "AttentionTraining"):
        mask = at(5) if op == "MultiHeadAttention" else at(3)
        if op == "MultiHeadAttention":
            a.update(q_num_heads=a["num_heads"], kv_num_heads=a["num_heads"], is_causal=a.get("unidirectional", 0))
        return list(attention(x[0], x[1], x[2], mask, a))[:len(node.output)]
    if op == "AttentionGrad":
        return vjp(lambda q, k, v: attention(q, k, v, x[3], a)[0], x[:3], x[4])
    if op in ("LSTM", "GRU", "RNN", "LSTMTraining", "GRUTraining", "RNNTraining"):
        n = {"L": 4, "G": 3, "R": 1}[op[0]]
        y, h, c = recurrent(n, x[0], x[1], x[2], at(3), at(5), at(6), a)
        gates = torch.zeros(0, dtype=D)
        return ([y, h, c] if n == 4 else [y, h]) if not op.endswith("Training") else [y, h, c, gates, gates] if n == 4 else [y, h, gates]
    if op in ("LSTMGrad", "GRUGrad", "RNNGrad"):
        n = {"L": 4, "G": 3, "R": 1}[op[0]]
        wxr, rest = x[:3], x[3:] if n == 4 else x[4:]
        h0, c0, dys = (rest[1], rest[2], rest[6:9]) if n == 4 else (rest[1], None, rest[4:6])
        D_, B, H = x[1].shape[0], x[0].shape[1], x[2].shape[2]
        b = torch.zeros(D_, 2 * n * H, dtype=D) if n == 4 else (x[3] if x[3] is not None else torch.zeros(D_, 2 * n * H, dtype=D))
        if n == 4:
            b = BIAS.get(node.input[8], b)
        h = h0 if h0 is not None else torch.zeros(D_, B, H, dtype=D)
        c = c0 if c0 is not None else torch.zeros(D_, B, H, dtype=D)
        def total(xx, w, r, bb, hh, cc):
            ys = recurrent(n, xx, w, r, bb, hh, cc, a)
            return sum((y * d).sum() for y, d in zip(ys, dys) if d is not None)
        found = vjp(total, [*wxr, b, h, c], torch.ones((), dtype=D))
        return found if n == 4 else found[:5]
    raise NotImplementedError(op)


BIAS = {}  # of an LSTM, by its gates: its gradient operator has these in place of it, and they are not made here


def entropy_grad(scale, logp, target, a, weight=None):
    """By its definition: each label's (softmax - 1 at the label) by its weight, none where it is ignored."""
    counts = (target != a.get("ignore_index", -100)).to(D)
    each = counts if weight is None else counts * weight[torch.where(counts > 0, target, 0)]
    p = logp.exp() - F.one_hot(torch.where(counts > 0, target, 0), logp.shape[1]).movedim(-1, 1).to(D)
    return p * each.unsqueeze(1) * scale / (each.sum() if a.get("reduction", "mean") == "mean" else 1)


def initializers(graph):
    """Of a graph and of those in its nodes."""
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return {name: v for g in inner for name, v in initializers(g).items()} | {t.name: tensor(t) for t in graph.initializer}


def run(model, values):
    """All values of a model by name; `values` has its inputs, and may have weights in place of its initializers."""
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    values = {**initializers(model.graph), **values}
    run_nodes(model.graph, values, opset)
    return values


def run_nodes(graph, values, opset):
    for node in graph.node:
        x = [values[name] if name else None for name in node.input]
        if node.op_type == "LSTMTraining" and len(x) > 3 and x[3] is not None:
            BIAS[node.output[4]] = x[3]
        if node.op_type == "If":
            branch = attributes(node)["then_branch" if x[0] else "else_branch"]
            run_nodes(branch, values, opset)
            results = [values[o.name] for o in branch.output]
        else:
            results = run_node(node, x, opset)
        for name, v in zip(node.output, results):
            if name:
                values[name] = v
