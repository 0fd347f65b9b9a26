#!/usr/bin/python3
"""replay_networks.py BENANZA: what PyTorch's programs search, sort, count and choose is what their replays give: a step of a beam search, heads of
detectors, segmentation, masks of language models, mixtures of experts, sampling, lattices, point clouds. Each is exported and replayed on the inputs
that PyTorch had. Indices must be the same; real numbers are off by 1e-4 of the largest at the most. Exit status 77 without PyTorch."""
import json
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch import nn
    import onnx  # PyTorch's exporter wants it
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

warnings.filterwarnings("ignore")
torch.manual_seed(0)
normal, below = torch.randn, lambda most, *shape: torch.randint(0, most, shape)


class Network(nn.Module):
    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *x):
        return self.function(self, *x)


def beam(m, token, state, score):
    state = m.cell(m.table(token), state)
    score, index = (F.log_softmax(m.head(state), -1) + score[:, None]).reshape(-1).topk(4)
    return index % 100, state.index_select(0, torch.div(index, 100, rounding_mode="floor")), score


def detect(m, x):
    x = m.trunk(x).relu()
    scores, labels = m.classes(x).flatten(2).transpose(1, 2).sigmoid().max(-1)
    best, index = scores.topk(20, dim=1)
    boxes = m.boxes(x).flatten(2).transpose(1, 2).clamp(min=0)
    return best, labels.gather(1, index), boxes.gather(1, index[..., None].expand(-1, -1, 4))


def segment(m, x):
    y = m.trunk(x)
    corners = F.interpolate(y, size=(40, 33), mode="bilinear", align_corners=True)
    return corners.argmax(1), F.interpolate(y, size=(40, 33), mode="bicubic"), F.interpolate(y, scale_factor=1.7), y.argmin(1)


def language(m, ids, mask):
    place = torch.cumsum(mask, 1) * mask
    x = m.words(ids) + m.places(place)
    score = x @ x.transpose(1, 2) + torch.triu(torch.full((7, 7), float("-inf")), 1)
    x = F.softmax(score.masked_fill(mask[:, None] == 0, -1e4), -1) @ x
    return x, x.argmax(-1), mask.sum(1), F.one_hot(ids, 50).sum(1)


def experts(m, x):
    gate, index = F.softmax(m.router(x), -1).topk(2, -1)
    full = torch.zeros(x.shape[0], 4).scatter(-1, index, gate / gate.sum(-1, keepdim=True))
    return (torch.einsum("td,edf->tef", x, m.weight) * full[..., None]).sum(1), index


def sample(m, x, chance):
    value, index = torch.sort(x, -1, descending=True)
    share = F.softmax(value, -1)
    total = torch.cumsum(share, -1)
    share = torch.where(total - share < 0.9, value, torch.full_like(value, -1e9)).softmax(-1)
    number = (torch.cumsum(share, -1) < chance[:, None]).long().sum(-1, keepdim=True)
    return index.gather(-1, number.clamp(max=x.shape[-1] - 1)), value.logsumexp(0)


def warp(m, x):
    turn = m.turn(x.flatten(1)).view(-1, 2, 3)
    line = torch.linspace(-1, 1, 12)
    grid = torch.stack([line[None].expand(12, 12), line[:, None].expand(12, 12), torch.ones(12, 12)], -1).view(1, -1, 3)
    return F.grid_sample(x, (grid @ turn.transpose(1, 2)).view(-1, 12, 12, 2), align_corners=False)


def points(m, p):
    near = (-((p[:, :, None] - p[:, None]) ** 2).sum(-1)).topk(5, -1)[1]
    rows = p.reshape(-1, 3)[(near + 30 * torch.arange(2)[:, None, None]).reshape(-1)]
    return rows.view(2, 30, 5, 3) - p[:, :, None], near


def lattice(m, x):
    best, back = x[:, 0], []
    for t in range(1, x.shape[1]):
        most, index = (best[:, :, None] + m.weight).max(1)
        best = most + x[:, t]
        back.append(index)
    path = [best.argmax(-1, keepdim=True)]
    for index in reversed(back):
        path.append(index.gather(1, path[-1]))
    return torch.cat(path[::-1], 1), torch.logsumexp(best, 1)


def edges(m, x):
    return m.replicate(m.reflect(x)), x.repeat(1, 2, 1, 3), torch.roll(x, 3, 2), x.flip(3), x.tril(-1), x.cumsum(2)


def numbers(m, x, i):
    return (i % 4, i.remainder(3), x.fmod(0.3), x.isnan(), x.isinf(), x.tan().atan(), F.hardshrink(x), x.argsort(1), x.prod(1), i.sum(0),
            torch.zeros(4, 6).scatter_add(1, i, x), torch.zeros(4, 6).index_put((torch.arange(4), i[:, 0]), x[:, 0]))


def convolution(a, b, size=1, **more):
    return nn.Conv2d(a, b, size, padding=size // 2, **more)


NETWORKS = {
    "beam": (Network(beam, cell=nn.GRUCell(16, 16), table=nn.Embedding(100, 16), head=nn.Linear(16, 100)),
             (below(100, 4), normal(4, 16), normal(4))),
    "detect": (Network(detect, trunk=convolution(3, 8, 3), classes=convolution(8, 5), boxes=convolution(8, 4)), (normal(2, 3, 12, 12),)),
    "segment": (Network(segment, trunk=convolution(3, 7, 3)), (normal(1, 3, 20, 24),)),
    "language": (Network(language, words=nn.Embedding(50, 16), places=nn.Embedding(8, 16)),
                 (below(50, 2, 7), torch.tensor([[1] * 7, [1] * 4 + [0] * 3]))),
    "experts": (Network(experts, router=nn.Linear(16, 4), weight=nn.Parameter(normal(4, 16, 16))), (normal(10, 16),)),
    "sample": (Network(sample), (normal(3, 300), torch.rand(3))),
    "warp": (Network(warp, turn=nn.Linear(144, 6)), (normal(2, 1, 12, 12),)),
    "points": (Network(points), (normal(2, 30, 3),)),
    "lattice": (Network(lattice, weight=nn.Parameter(normal(5, 5))), (normal(3, 6, 5),)),
    "edges": (Network(edges, **{mode: convolution(4, 4, 3, padding_mode=mode) for mode in ("reflect", "replicate")}),
              (normal(1, 4, 9, 11),)),
    "numbers": (Network(numbers), (normal(4, 3), below(6, 4, 3))),
}
TYPES = {"f32": np.float32, "i64": np.int64, "i32": np.int32, "bool": np.bool_}


def difference(benanza, network, inputs, work):
    """The largest of all outputs from PyTorch's, over the largest magnitude of each; of whole numbers it is 0 or infinite."""
    model, worst, at = f"{work}/m.onnx", 0, 0
    with torch.no_grad():
        wanted = network(*inputs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    torch.onnx.export(network, inputs, model, opset_version=16)
    with open(f"{work}/in", "wb") as f:
        f.writelines(x.numpy().tobytes() for x in inputs)
    done = subprocess.run([benanza, "replay", model, "--json", "--check", "--time-limit", "0", "--db", "none", "--inputs", f"{work}/in",
                           "--outputs", f"{work}/out"], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    data = open(f"{work}/out", "rb").read()
    for end, want in zip(json.loads(done.stdout)["outputs"], wanted):
        want = want.numpy()
        got = np.frombuffer(data[at:at + want.nbytes], TYPES[end["dtype"]]).reshape(want.shape)
        at += want.nbytes
        real = end["dtype"] == "f32"
        worst = max(worst, np.abs(got - want).max() / np.abs(want).max() if real else 0 if (got == want).all() else np.inf)
    assert at == len(data), (at, len(data))
    return worst


def main():
    bad = 0
    for name, (network, inputs) in NETWORKS.items():
        with tempfile.TemporaryDirectory() as work:
            try:
                off = difference(sys.argv[1], network.eval(), inputs, work)
            except subprocess.CalledProcessError as failed:
                off = np.inf
                print(failed.stderr.decode().strip())
        bad += not off <= 1e-4
        print(f"{name:10} off by {off:.1e} of the largest")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
