"""Reinforcement learning: the part that learns, on positions that somebody has played."""
import torch
from torch import nn
from torch.nn import functional as F

import train


def a3c(batch, full):
    """Four frames of a screen; how good the position is, and what to do."""
    side = 84 if full else 42
    body = nn.Sequential(nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten())
    x = torch.rand(batch, 4, side, side)
    net = nn.ModuleList([body, nn.Linear(body(x).shape[1], 256), nn.Linear(256, 6), nn.Linear(256, 1)])
    action, reward = torch.randint(6, (batch, 1)), torch.randn(batch)

    def loss():
        h = net[1](body(x)).relu()
        log, value = net[2](h).log_softmax(-1), net[3](h).squeeze(1)
        gain = reward - value
        return 0.5 * gain.square().mean() - (log.gather(1, action).squeeze(1) * gain.detach()).mean() + 0.01 * (log * log.exp()).sum(1).mean()
    return net, loss, "sgd"


class Residual(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(w, w, 3, padding=1, bias=False), nn.BatchNorm2d(w), nn.ReLU(),
                                  nn.Conv2d(w, w, 3, padding=1, bias=False), nn.BatchNorm2d(w))

    def forward(self, x):
        return F.relu(x + self.body(x))


def minigo(batch, full):
    side, w, blocks = (19, 256, 18) if full else (9, 32, 2)
    turn = lambda n, m: nn.Sequential(nn.Conv2d(w, n, 1, bias=False), nn.BatchNorm2d(n), nn.ReLU(), nn.Flatten(), nn.Linear(n * side * side, m))
    body = nn.Sequential(nn.Conv2d(17, w, 3, padding=1, bias=False), nn.BatchNorm2d(w), nn.ReLU(), *[Residual(w) for _ in range(blocks)])
    net = nn.ModuleList([body, turn(2, side * side + 1), turn(1, 1)])
    x = torch.randint(2, (batch, 17, side, side)).float()
    move, won = torch.randint(side * side + 1, (batch,)), torch.randint(2, (batch, 1)).float() * 2 - 1

    def loss():
        y = body(x)
        return F.cross_entropy(net[1](y), move) + F.mse_loss(torch.tanh(net[2](y)), won)
    return net, loss


train.main({"a3c": a3c, "minigo": minigo})
