"""Language models and translation."""
import torch
from torch import nn
from torch.nn import functional as F

import train


class Block(nn.Module):
    """Pre-norm: attention, a block of two products (or of several experts)."""

    def __init__(self, size, heads, causal, experts=0):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        two = lambda: nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))
        self.route = nn.Linear(size, experts) if experts else None
        self.mlp = nn.ModuleList(two() for _ in range(experts)) if experts else two()

    def mix(self, x):
        if self.route is None:
            return self.mlp(x)
        flat = x.flatten(0, 1)
        share, which = self.route(flat).softmax(-1).max(-1)
        out = torch.zeros_like(flat)
        for k, expert in enumerate(self.mlp):
            rows = (which == k).nonzero().flatten()
            out = out.index_add(0, rows, expert(flat[rows]) * share[rows, None])
        return out.view_as(x)

    def forward(self, x):
        b, t, n = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, self.heads, n // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        s = q @ k.transpose(-1, -2) * (n // self.heads) ** -0.5
        if self.causal:
            s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -1e9)
        x = x + self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, n))
        return x + self.mix(self.second(x))


class Words(nn.Module):
    def __init__(self, words, size, heads, layers, length, causal, experts=0):
        super().__init__()
        self.words, self.places = nn.Embedding(words, size), nn.Parameter(torch.zeros(length, size))
        self.body = nn.Sequential(*[Block(size, heads, causal, experts) for _ in range(layers)], nn.LayerNorm(size))

    def forward(self, x):
        return self.body(self.words(x) + self.places[:x.shape[1]])


def model(full, small, causal, experts=0):
    """`full` and `small`: words, size, heads, layers, length."""
    def network(batch, is_full):
        words, size, heads, layers, length = full if is_full else small
        net = Words(words, size, heads, layers, length, causal, experts)
        x = torch.randint(words, (batch, length))
        if causal:
            head = nn.Linear(size, words, bias=False)
            head.weight = net.words.weight
            nn.init.normal_(head.weight, std=0.02)
            return net, lambda: F.cross_entropy(head(net(x)).flatten(0, 1), x.roll(-1, 1).flatten()), "adamw"
        net.head = nn.Linear(size, 2)  # where the answer begins and ends
        begin, end = torch.randint(length, (2, batch))

        def loss():
            a, b = net.head(net(x)).unbind(-1)
            return (F.cross_entropy(a, begin) + F.cross_entropy(b, end)) / 2
        return net, loss, "adamw"
    return network


class Seq2Seq(nn.Module):
    def __init__(self, words, size, layers):
        super().__init__()
        self.source, self.target = nn.Embedding(words, size), nn.Embedding(words, size)
        self.encoder, self.decoder = nn.LSTM(size, size, layers), nn.LSTM(size, size, layers)
        self.ask, self.join, self.head = nn.Linear(size, size, bias=False), nn.Linear(2 * size, size), nn.Linear(size, words)

    def forward(self, x, y):
        seen, state = self.encoder(self.source(x))
        out, _ = self.decoder(self.target(y), state)
        a = torch.einsum("tbn,sbn->bts", self.ask(out), seen).softmax(-1)
        return self.head(torch.tanh(self.join(torch.cat([out, torch.einsum("bts,sbn->tbn", a, seen)], -1))))


def seq2seq(batch, full):
    words, size, length = (17188, 512, 25) if full else (500, 64, 8)
    net = Seq2Seq(words, size, 2)
    x, y = torch.randint(words, (2, length, batch))
    return net, lambda: F.cross_entropy(net(x, y).flatten(0, 1), y.roll(-1, 0).flatten()), "adam"


def transformer(batch, full):
    words, size, length = (17188, 512, 25) if full else (500, 64, 8)
    net = nn.Module()
    net.words, net.head = nn.Embedding(words, size), nn.Linear(size, words)
    net.body = nn.Transformer(size, 8, 6 if full else 1, 6 if full else 1, 4 * size)
    x, y = torch.randint(words, (2, length, batch))
    mask = nn.Transformer.generate_square_subsequent_mask(length)

    def loss():
        out = net.head(net.body(net.words(x), net.words(y), tgt_mask=mask))
        return F.cross_entropy(out.flatten(0, 1), y.roll(-1, 0).flatten())
    return net, loss, "adam"


train.main({
    "seq2seq": seq2seq,
    "transformer": transformer,
    "bert": model((30522, 768, 12, 12, 384), (500, 64, 4, 2, 32), False),
    "gpt": model((50257, 768, 12, 12, 1024), (500, 64, 4, 2, 32), True),
    "experts": model((32000, 512, 8, 6, 512), (500, 64, 4, 2, 32), True, 8),
})
