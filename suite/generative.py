"""Networks that draw: one adversary against another, and one that takes noise away."""
import torch
from torch import nn
from torch.nn import functional as F

import train


class Residual(nn.Module):
    def __init__(self, n, m, scale, norm=nn.BatchNorm2d):
        super().__init__()
        self.scale = scale
        self.body = nn.Sequential(norm(n), nn.ReLU(), nn.Conv2d(n, m, 3, padding=1), norm(m), nn.ReLU(), nn.Conv2d(m, m, 3, padding=1))
        self.side = nn.Conv2d(n, m, 1)

    def forward(self, x):
        if self.scale > 1:
            x = F.interpolate(x, scale_factor=self.scale)
        y = self.body(x) + self.side(x)
        return F.avg_pool2d(y, 2) if self.scale < 1 else y


def wgan(batch, full):
    """Wasserstein distance with a penalty on the norm of the critic's gradient: one step of both."""
    w, blocks = (64, 4) if full else (8, 2)
    plain = lambda n: nn.Identity()
    make = nn.Sequential(nn.Linear(128, w * 4 * 16), nn.Unflatten(1, (w * 4, 4, 4)), *[Residual(w * 4, w * 4, 2) for _ in range(blocks)],
                         nn.ReLU(), nn.Conv2d(w * 4, 3, 3, padding=1), nn.Tanh())
    judge = nn.Sequential(nn.Conv2d(3, w, 3, padding=1), *[Residual(w if i == 0 else w * 4, w * 4, 0.5, plain) for i in range(blocks)],
                          nn.Flatten(), nn.Linear(w * 4 * 16, 1))
    side = 4 * 2 ** blocks
    x = torch.randn(batch, 3, side, side)

    def loss():
        drawn = make(torch.randn(batch, 128))
        share = torch.rand(batch, 1, 1, 1)
        between = (share * x + (1 - share) * drawn.detach()).requires_grad_()
        slope, = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
        penalty = (slope.flatten(1).norm(dim=1) - 1).square().mean()
        return judge(drawn.detach()).mean() - judge(x).mean() + 10 * penalty - judge(drawn).mean()
    return nn.ModuleList([make, judge]), loss, "adam"


class Step(nn.Module):
    """Two convolutions, the noise level added in between; attention where asked for."""

    def __init__(self, n, m, level, attention=False):
        super().__init__()
        self.one = nn.Sequential(nn.GroupNorm(8, n), nn.SiLU(), nn.Conv2d(n, m, 3, padding=1))
        self.two = nn.Sequential(nn.GroupNorm(8, m), nn.SiLU(), nn.Conv2d(m, m, 3, padding=1))
        self.level, self.side = nn.Linear(level, m), nn.Conv2d(n, m, 1)
        self.attention = nn.MultiheadAttention(m, 4, batch_first=True) if attention else None

    def forward(self, x, t):
        y = self.two(self.one(x) + self.level(t)[:, :, None, None]) + self.side(x)
        if self.attention:
            flat = y.flatten(2).transpose(1, 2)
            y = y + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).view_as(y)
        return y


class Unet(nn.Module):
    def __init__(self, w, depth):
        super().__init__()
        sizes = [w * min(2 ** i, 4) for i in range(depth + 1)]
        self.level = nn.Sequential(nn.Linear(1, 4 * w), nn.SiLU(), nn.Linear(4 * w, 4 * w))
        self.stem, self.head = nn.Conv2d(3, w, 3, padding=1), nn.Conv2d(w, 3, 3, padding=1)
        self.down = nn.ModuleList(Step(a, b, 4 * w, i == depth - 1) for i, (a, b) in enumerate(zip(sizes, sizes[1:])))
        self.up = nn.ModuleList(Step(2 * b, a, 4 * w, i == depth - 1) for i, (a, b) in enumerate(zip(sizes, sizes[1:])))

    def forward(self, x, t):
        t, x, kept = self.level(t), self.stem(x), []
        for step in self.down:
            x = step(x, t)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        for step in reversed(self.up):
            x = step(torch.cat([F.interpolate(x, scale_factor=2), kept.pop()], 1), t)
        return self.head(x)


def diffusion(batch, full):
    side, net = (64, Unet(128, 4)) if full else (16, Unet(16, 2))
    x = torch.randn(batch, 3, side, side)

    def loss():
        t, noise = torch.rand(batch, 1), torch.randn_like(x)
        s = t[:, :, None, None]
        return F.mse_loss(net(x * (1 - s).sqrt() + noise * s.sqrt(), t), noise)
    return net, loss, "adamw"


train.main({"wgan": wgan, "diffusion_unet": diffusion})
