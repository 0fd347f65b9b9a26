"""Speech recognition: frames of a spectrogram to letters, by a loss over all alignments (CTC)."""
import torch
from torch import nn
from torch.nn import functional as F

import train


class DeepSpeech(nn.Module):
    def __init__(self, size, layers, bands=161):
        super().__init__()
        self.convs = nn.Sequential(nn.Conv2d(1, 32, (41, 11), 2, (20, 5), bias=False), nn.BatchNorm2d(32), nn.Hardtanh(0, 20),
                                   nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5), bias=False), nn.BatchNorm2d(32), nn.Hardtanh(0, 20))
        self.body = nn.GRU(32 * (((bands + 1) // 2 + 1) // 2), size, layers, bidirectional=True)
        self.head = nn.Linear(2 * size, 29)

    def forward(self, x):
        x = self.convs(x).flatten(1, 2).permute(2, 0, 1)
        return self.head(self.body(x)[0])


class Conformer(nn.Module):
    """Half a block of products, attention, a convolution over time, the other half; each is added to what came."""

    def __init__(self, size, heads):
        super().__init__()
        half = lambda: nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 4 * size), nn.SiLU(), nn.Linear(4 * size, size))
        self.before, self.after, self.norm = half(), half(), nn.LayerNorm(size)
        self.attention = nn.MultiheadAttention(size, heads, batch_first=True)
        self.conv = nn.Sequential(nn.Conv1d(size, 2 * size, 1), nn.GLU(1), nn.Conv1d(size, size, 31, padding=15, groups=size, bias=False),
                                  nn.BatchNorm1d(size), nn.SiLU(), nn.Conv1d(size, size, 1))

    def forward(self, x):
        x = x + 0.5 * self.before(x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.conv(x.transpose(1, 2)).transpose(1, 2)
        return x + 0.5 * self.after(x)


def spoken(module, bands, frames, few):
    def network(batch, full):
        t = frames if full else few
        net, x = module(full), torch.randn(batch, 1, bands, t)
        letters = t // 8
        y = torch.randint(1, 29, (batch, letters))

        def loss():
            out = F.log_softmax(net(x), -1)
            return F.ctc_loss(out, y, torch.full((batch,), out.shape[0]), torch.full((batch,), letters), zero_infinity=True)
        train.fact("units of a sample", t / 100)  # seconds of audio: 100 frames each
        return net, loss
    return network


class Recognizer(nn.Module):
    def __init__(self, size, layers):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, size // 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(size // 4, size // 4, 3, (2, 1), 1), nn.ReLU())
        self.into = nn.Linear(size // 4 * 20, size)
        self.body, self.head = nn.Sequential(*[Conformer(size, 4) for _ in range(layers)]), nn.Linear(size, 29)

    def forward(self, x):
        return self.head(self.body(self.into(self.stem(x).flatten(1, 2).transpose(1, 2)))).transpose(0, 1)


train.main({
    "deep_speech_2": spoken(lambda full: DeepSpeech(800, 5) if full else DeepSpeech(64, 2), 161, 700, 48),
    "conformer": spoken(lambda full: Recognizer(256, 16) if full else Recognizer(64, 2), 80, 1000, 48),
})
