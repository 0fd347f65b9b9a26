"""Six small networks in PyTorch, and their ONNX files as they are trained: a CNN, an inverted-residual CNN, an LSTM, a transformer's encoder,
a GPT, a U-Net. Each is (module, input, targets), targets as `layers --train` chooses the loss."""
import torch
from torch import nn


class Cnn(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
                                  nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x):
        return self.head(torch.flatten(self.body(x), 1))


class Block(nn.Module):
    def __init__(self, n, m, stride):
        super().__init__()
        self.same = n == m and stride == 1
        self.body = nn.Sequential(nn.Conv2d(n, 4 * n, 1, bias=False), nn.BatchNorm2d(4 * n), nn.ReLU6(),
                                  nn.Conv2d(4 * n, 4 * n, 3, stride, 1, groups=4 * n, bias=False), nn.BatchNorm2d(4 * n), nn.ReLU6(),
                                  nn.Conv2d(4 * n, m, 1, bias=False), nn.BatchNorm2d(m))

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


class Mobile(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.Hardswish())
        self.body = nn.Sequential(Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1))
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean([2, 3]))


class Lstm(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.words = nn.Embedding(100, hidden)
        self.body = nn.LSTM(hidden, hidden, 2)
        self.head = nn.Linear(hidden, 10)

    def forward(self, x):
        return self.head(self.body(self.words(x.transpose(0, 1)))[0][-1])


class Gru(nn.Module):
    """Not among the six: two layers in both directions."""
    def __init__(self, hidden=64, layer=nn.GRU):
        super().__init__()
        self.words = nn.Embedding(100, hidden)
        self.body = layer(hidden, hidden, 2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, 10)

    def forward(self, x):
        return self.head(self.body(self.words(x.transpose(0, 1)))[0].mean(0))


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (y.reshape(b, t, self.heads, w // self.heads).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        s = q @ k.transpose(-1, -2) * (w // self.heads) ** -0.5
        if self.causal:
            s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-1e9"))
        return self.out((torch.softmax(s, -1) @ v).transpose(1, 2).reshape(b, t, w))


class Layer(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, width=64, layers=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, width), *(Layer(width, 4, False) for _ in range(layers)), nn.LayerNorm(width))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.body(x).mean(1))


class Gpt(nn.Module):
    def __init__(self, width=64, layers=2, words=200):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(1, 32, width) * 0.02)
        self.body = nn.Sequential(*(Layer(width, 4, True) for _ in range(layers)), nn.LayerNorm(width))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, x):
        return self.head(self.body(self.words(x) + self.places))


class Norms(nn.Module):
    """Not among the six: root mean squares and a layer normalization written by hand, in the forms that programs have."""
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.scale = nn.ParameterList(nn.Parameter(torch.rand(width)) for _ in range(3))
        self.shift = nn.Parameter(torch.rand(width))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.body[0](x)
        x = self.body[1](self.scale[0] * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)))
        x = self.body[2](x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.scale[1])
        d = x - x.mean(-1, keepdim=True)
        return self.head(d / torch.sqrt((d * d).mean(-1, keepdim=True) + 1e-5) * self.scale[2] + self.shift)


class Unet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        two = lambda n, m: nn.Sequential(nn.Conv2d(n, m, 3, padding=1), nn.GroupNorm(4, m), nn.SiLU(), nn.Conv2d(m, m, 3, padding=1), nn.SiLU())
        self.down1, self.down2, self.mid = two(3, width), two(width, 2 * width), two(2 * width, 2 * width)
        self.pool, self.up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.up2, self.up1 = two(4 * width, width), two(2 * width, width)
        self.turned = nn.ConvTranspose2d(width, width, 2, 2)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.up(self.mid(self.pool(b)))
        return self.head(self.up1(torch.cat([self.turned(self.up2(torch.cat([c, b], 1))), a], 1)))


def make(name, batch, scale=1):
    """The module, its input, targets of its loss; larger with the scale."""
    s = scale
    if name == "cnn":
        return Cnn(32 * s), torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    if name == "mobile":
        return Mobile(16 * s), torch.randn(batch, 3, 64, 64), torch.randint(10, (batch,))
    if name == "lstm":
        return Lstm(64 * s), torch.randint(100, (batch, 24)), torch.randint(10, (batch,))
    if name == "encoder":
        return Encoder(64 * s), torch.randn(batch, 32, 16), torch.randint(10, (batch,))
    if name == "gpt":
        return Gpt(64 * s), torch.randint(200, (batch, 32)), torch.randint(200, (batch, 32))
    if name == "gru":
        return Gru(64 * s), torch.randint(100, (batch, 24)), torch.randint(10, (batch,))
    if name == "rnn":
        return Gru(64 * s, nn.RNN), torch.randint(100, (batch, 24)), torch.randint(10, (batch,))
    if name == "norms":
        return Norms(24 * s), torch.randn(batch, 24 * s), torch.randint(10, (batch,))
    assert name == "unet", name
    return Unet(16 * s), torch.randn(batch, 3, 32, 32), torch.randint(2, (batch, 32, 32))


NAMES = ("cnn", "mobile", "lstm", "encoder", "gpt", "unet")


def loss(y, targets):
    return nn.functional.cross_entropy(y.flatten(0, 1) if y.dim() == targets.dim() + 1 and y.dim() == 3 else y, targets.flatten() if y.dim() == 3 else targets)


def export(module, x, path, opset=17):
    torch.onnx.export(module, x, path, opset_version=opset, input_names=["input"], do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING)
