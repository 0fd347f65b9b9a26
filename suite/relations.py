"""Recommendation, and networks over graphs: rows are gathered and scattered."""
import torch
from torch import nn
from torch.nn import functional as F

import train


def products(*sizes):
    return nn.Sequential(*[m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU())])


def recommendation(batch, full):
    """Numbers of a visitor and rows of tables, each with each, to a click (DLRM)."""
    rows, size, tables = (1000000, 64, 26) if full else (1000, 16, 8)
    net = nn.ModuleDict({"numbers": products(13, 512, 256, size) if full else products(13, 32, size),
                         "rows": nn.ModuleList(nn.EmbeddingBag(rows, size, mode="sum", sparse=False) for _ in range(tables)),
                         "head": nn.Sequential(products(size + (tables + 1) * tables // 2, 512 if full else 32), nn.Linear(512 if full else 32, 1))})
    x, at, y = torch.randn(batch, 13), torch.randint(rows, (tables, batch, 4)), torch.randint(2, (batch, 1)).float()
    first, second = torch.tril_indices(tables + 1, tables + 1, -1)

    def loss():
        v = net["numbers"](x)
        all_of = torch.stack([v] + [t(i) for t, i in zip(net["rows"], at)], 1)
        each = (all_of @ all_of.transpose(1, 2))[:, first, second]
        return F.binary_cross_entropy_with_logits(net["head"](torch.cat([v, each], 1)), y)
    return net, loss, "sgd"


class Graph(nn.Module):
    """Each node takes the mean of what its neighbours hold."""

    def __init__(self, n, m):
        super().__init__()
        self.own, self.others, self.norm = nn.Linear(n, m), nn.Linear(n, m), nn.LayerNorm(m)

    def forward(self, x, source, target, share):
        sums = torch.zeros_like(x).index_add(0, target, x[source])
        return self.norm(self.own(x) + self.others(sums * share)).relu()


def graph(batch, full):
    """`batch` graphs as one of many parts."""
    nodes, edges, size, layers = (2000, 20000, 256, 4) if full else (60, 240, 32, 2)
    nodes, edges = nodes * batch, edges * batch
    source, target = torch.randint(nodes, (2, edges))
    share = 1 / torch.zeros(nodes, 1).index_add(0, target, torch.ones(edges, 1)).clamp(min=1)
    net = nn.ModuleList([nn.Linear(size, size), *[Graph(size, size) for _ in range(layers)], nn.Linear(size, 40)])
    x, y = torch.randn(nodes, size), torch.randint(40, (nodes,))

    def loss():
        v = net[0](x)
        for layer in net[1:-1]:
            v = layer(v, source, target, share)
        return F.cross_entropy(net[-1](v), y)
    return net, loss, "adam"


train.main({"recommendation": recommendation, "graph": graph})
