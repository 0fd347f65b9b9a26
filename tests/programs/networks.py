"""Three networks in plain PyTorch, run N times: networks.py resnet50|mobilenet|bert|tiny N [marks|log]

Prints the latency of every iteration in milliseconds, one a line, on stderr. marks: marks the iterations. log: every other
iteration, from the second on, switches oneDNN's own log on."""

import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", os.environ.get("THREADS", "1"))  # OpenBLAS asks when it is loaded, and nobody later
import torch
from torch import nn


def conv_bn(cin, cout, k, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(cin, cout, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(cout)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride):
        super().__init__()
        cout = width * 4
        self.body = nn.Sequential(conv_bn(cin, width, 1), conv_bn(width, width, 3, stride), conv_bn(width, cout, 1, act=None))
        self.skip = conv_bn(cin, cout, 1, stride, act=None) if stride != 1 or cin != cout else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def resnet50():
    layers, cin = [conv_bn(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for width, n, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(n):
            layers.append(Bottleneck(cin, width, stride if i == 0 else 1))
            cin = width * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)), torch.randn(1, 3, 224, 224)


class Inverted(nn.Module):
    def __init__(self, cin, cout, stride, t):
        super().__init__()
        mid = cin * t
        expand = [conv_bn(cin, mid, 1, act=nn.ReLU6)] if t != 1 else []
        self.body = nn.Sequential(*expand, conv_bn(mid, mid, 3, stride, groups=mid, act=nn.ReLU6), conv_bn(mid, cout, 1, act=None))
        self.add = stride == 1 and cin == cout

    def forward(self, x):
        return x + self.body(x) if self.add else self.body(x)


def mobilenet():
    layers, cin = [conv_bn(3, 32, 3, 2, act=nn.ReLU6)], 32
    for t, c, n, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(n):
            layers.append(Inverted(cin, c, s if i == 0 else 1, t))
            cin = c
    layers += [conv_bn(320, 1280, 1, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers), torch.randn(1, 3, 224, 224)


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.q, self.k, self.v, self.out = heads, nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (f(x).view(b, n, self.heads, d // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = torch.softmax(q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5, -1)
        return self.out((a @ v).transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, d=768, heads=12):
        super().__init__()
        self.attention, self.n1, self.n2 = Attention(d, heads), nn.LayerNorm(d), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = self.n1(x + self.attention(x))
        return self.n2(x + self.mlp(x))


class Bert(nn.Module):
    def __init__(self, layers=12, d=768):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(30522, d), nn.Embedding(512, d), nn.LayerNorm(d)
        self.layers, self.pool = nn.Sequential(*[Layer(d) for _ in range(layers)]), nn.Linear(d, d)

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        return torch.tanh(self.pool(self.layers(x)[:, 0]))


def bert():
    return Bert(), torch.randint(0, 30522, (1, 64))


def tiny():
    body = nn.Sequential(conv_bn(3, 32, 3), conv_bn(32, 64, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return body, torch.randn(1, 3, 128, 128)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ.get("THREADS", "1")))
    model, x = {"resnet50": resnet50, "mobilenet": mobilenet, "bert": bert, "tiny": tiny}[sys.argv[1]]()
    model.eval()
    begin = end = lambda: None
    if len(sys.argv) > 3 and sys.argv[3] == "marks":
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
        import benanza

        begin, end = benanza.iteration_begin, benanza.iteration_end
    log = len(sys.argv) > 3 and sys.argv[3] == "log"
    with torch.no_grad():
        for i in range(int(sys.argv[2])):
            if log:
                torch._C._verbose.mkldnn_set_verbose(i % 2)
            begin()
            t = time.perf_counter()
            model(x)
            took = time.perf_counter() - t
            end()
            print("%.4f" % (took * 1e3), file=sys.stderr)


main()
