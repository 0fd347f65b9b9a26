#!/usr/bin/python3
"""Holds the bound of a training iteration against PyTorch's: tests/bench/training.py BENANZA [--small] [--follow] [--bf16] [NETWORK...]

Each network is exported, `benanza bound --train` prices its iteration (forward, loss, backward, update) by what the libraries of this
machine do with each layer, and PyTorch runs the same iteration in one thread, recorded by `benanza profile`. For each phase it prints the bound, the
fastest of PyTorch's iterations, and how much of that was in library calls and in their reorders; `calls' bound` is the bound of the layers that PyTorch gives to
libraries. In each phase calls' bound <= in calls <= PyTorch must hold, and bound <= PyTorch. About four minutes for all six on an idle machine; --small takes the least batches,
which shows that the script works and nothing else. --follow takes the first advice of `benanza analyze` where that is an environment, and holds what it promised against what three
processes with and without it, in turns, take. --bf16 does so with `torch.autocast`, in both with the heap kept; 'judges' are networks that nobody looked at while its rules were made."""
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")  # OpenBLAS asks when it is loaded, and nobody later
import torch
from torch import nn
import torch.nn.functional as F


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], 3
        for out in (32, 64, 128):
            layers += [nn.Conv2d(width, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                       nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
            width = out
        self.body, self.head = nn.Sequential(*layers), nn.Linear(width * 16, 10)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()], 32
        for out, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
            layers += [nn.Conv2d(width, width, 3, stride=stride, padding=1, groups=width, bias=False),
                       nn.BatchNorm2d(width), nn.ReLU6(), nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU6()]
            width = out
        self.body, self.pool, self.head = nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.pool(self.body(x)).flatten(1))


class Block(nn.Module):
    """Pre-norm transformer block, written out as exporters write it."""

    def __init__(self, size, heads, causal, length):
        super().__init__()
        self.heads, self.size = heads, size
        self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        mask = torch.full((length, length), -1e9).triu(1) if causal else None
        self.register_buffer('mask', mask)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(self.first(x)).view(n, t, 3, self.heads, self.size // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        s = q @ k.transpose(-1, -2) * (self.size // self.heads) ** -0.5
        s = s + self.mask if self.mask is not None else s
        x = x + self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(n, t, self.size))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Encoder(nn.Module):
    def __init__(self, size=256, heads=4, length=128, layers=2):
        super().__init__()
        self.body = nn.Sequential(*[Block(size, heads, False, length) for _ in range(layers)])
        self.head = nn.Linear(size, 10)

    def forward(self, x):
        return self.head(self.body(x).mean(1))


class Gpt(nn.Module):
    def __init__(self, words=2000, size=256, heads=4, length=64, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, size), nn.Parameter(torch.zeros(length, size))
        self.body = nn.Sequential(*[Block(size, heads, True, length) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, words, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.body(self.words(x) + self.places))).flatten(0, 1)


class Unet(nn.Module):
    def __init__(self):
        super().__init__()

        def pair(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())
        self.down1, self.down2, self.low = pair(3, 16), pair(16, 32), pair(32, 64)
        self.up2, self.join2 = nn.ConvTranspose2d(64, 32, 2, stride=2), pair(64, 32)
        self.up1, self.join1, self.head = nn.ConvTranspose2d(32, 16, 2, stride=2), pair(32, 16), nn.Conv2d(16, 4, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.low(F.max_pool2d(b, 2))
        d = self.join2(torch.cat([self.up2(c), b], 1))
        return self.head(self.join1(torch.cat([self.up1(d), a], 1)))


class Last(nn.Module):
    """A recurrent layer's last state."""

    def __init__(self, body, head):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x):
        return self.head(self.body(x)[0][-1])


# network, batch, its input, labels, optimizer as both name it
SMALL = 2
# layers that PyTorch on a processor gives to libraries; it computes LSTM by products
CALLED = ('conv', 'conv_data', 'conv_weights', 'gemm', 'matmul', 'lstm_training', 'lstm_grad')
NETWORKS = {
    'cnn': (Cnn, 16, lambda n: torch.randn(n, 3, 32, 32), lambda n: torch.randint(10, (n,)), 'momentum'),
    'mobilenet': (MobileNet, 8, lambda n: torch.randn(n, 3, 96, 96), lambda n: torch.randint(10, (n,)), 'sgd'),
    'lstm': (lambda: Last(nn.LSTM(128, 256), nn.Linear(256, 10)), 16, lambda n: torch.randn(32, n, 128), lambda n: torch.randint(10, (n,)), 'adam'),
    'encoder': (Encoder, 4, lambda n: torch.randn(n, 128, 256), lambda n: torch.randint(10, (n,)), 'adamw'),
    'gpt': (Gpt, 4, lambda n: torch.randint(2000, (n, 64)), lambda n: torch.randint(2000, (64 * n,)), 'adam'),
    'unet': (Unet, 2, lambda n: torch.randn(n, 3, 64, 64), lambda n: torch.randint(4, (n, 64, 64)), 'sgd'),
}


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.GRU(96, 192, 2, bidirectional=True), nn.Linear(384, 12)

    def forward(self, x):
        return self.head(self.body(x)[0].mean(0))


def vision(name, **options):
    def make():
        import torchvision
        return getattr(torchvision.models, name)(num_classes=10, **options)
    return make


def images(size):
    return lambda n: torch.randn(n, 3, size, size)


def classes(n):
    return torch.randint(10, (n,))


NETWORKS.update({
    'resnet18': (vision('resnet18'), 4, images(96), classes, 'momentum'),
    'vit': (vision('vit_b_16', image_size=64), 2, images(64), classes, 'adamw'),
    'gru': (Gru, 24, lambda n: torch.randn(20, n, 96), classes, 'adam'),
    'mlp': (lambda: nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)), 64,
            lambda n: torch.randn(n, 784), classes, 'sgd'),
    'densenet121': (vision('densenet121'), 2, images(64), classes, 'momentum'),
    'squeezenet': (vision('squeezenet1_1'), 8, images(96), classes, 'sgd'),
    'resnet50': (vision('resnet50'), 2, images(96), classes, 'momentum'),
    'regnet': (vision('regnet_y_400mf'), 4, images(96), classes, 'momentum'),
    'convnext': (vision('convnext_tiny', stochastic_depth_prob=0.0), 2, images(64), classes, 'adamw'),
    'alexnet': (vision('alexnet'), 4, images(224), classes, 'sgd'),
    'rnn': (lambda: Last(nn.RNN(64, 256), nn.Linear(256, 20)), 16, lambda n: torch.randn(24, n, 64), classes, 'adam'),
})
JUDGES = ('resnet18', 'vit', 'gru', 'mlp', 'densenet121', 'squeezenet', 'resnet50', 'regnet', 'convnext', 'alexnet', 'rnn')
SIX = ('cnn', 'mobilenet', 'lstm', 'encoder', 'gpt', 'unet')


def optimizer_of(name, net):
    return {'sgd': lambda p: torch.optim.SGD(p, 1e-3), 'momentum': lambda p: torch.optim.SGD(p, 1e-3, momentum=0.9),
            'adam': lambda p: torch.optim.Adam(p, 1e-3), 'adamw': lambda p: torch.optim.AdamW(p, 1e-3)}[name](net.parameters())


def measure(name, small, bf16):
    """The program that is recorded: its iterations and their phases are marked."""
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'suite'))
    import train
    make, batch, data, targets, rule = NETWORKS[name]
    batch = SMALL if small else batch
    net, x, labels = make().train(), data(batch), targets(batch)
    optimizer = optimizer_of(rule, net)

    def loss():
        if not bf16:
            return F.cross_entropy(net(x), labels)
        with torch.autocast('cpu', dtype=torch.bfloat16):
            y = net(x)
        return F.cross_entropy(y.float(), labels)
    for _ in range(12 if small else 40):
        train.step(loss, optimizer)


def phases_of(recording):
    """For each phase its shortest run behind the warm-up: seconds, of them in library calls, of them in reorders."""
    db = sqlite3.connect(recording)
    begin = db.execute('SELECT min(start) FROM BENANZA_ITERATIONS WHERE NOT warmUp').fetchone()[0]
    found = {}
    for name, start, end in db.execute('SELECT text, start, end FROM NVTX_EVENTS WHERE start >= ?', (begin,)).fetchall():
        calls = db.execute('SELECT c.end - c.start, s.value FROM BENANZA_CALLS c JOIN StringIds s ON s.id = c.nameId '
                           'WHERE c.start >= ? AND c.end <= ?', (start, end)).fetchall()
        run = ((end - start) / 1e9, sum(t for t, _ in calls) / 1e9, sum(t for t, call in calls if call == 'reorder') / 1e9)
        found[name] = min(run, found.get(name, run))
    return found


def record(benanza, recording, name, small, environment, bf16=False):
    """The median iteration, in seconds."""
    program = [sys.executable, '-W', 'ignore', __file__, '--measure', name] + ['--small'] * small + ['--bf16'] * bf16
    subprocess.run([benanza, 'profile', '--force', '-o', recording, '--'] + program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                   env=dict(os.environ, **environment))
    shown = subprocess.run([benanza, 'profile', 'show', '--json', recording], stdout=subprocess.PIPE, check=True)
    return json.loads(shown.stdout)['iterations']['steady']['latency']['p50']


def advised(benanza, name, rule, folder, recording):
    run = subprocess.run([benanza, 'analyze', os.path.join(folder, name + '.onnx'), '--train=' + rule, '--db', os.path.join(folder, 'db'), '--json',
                          '--profile', recording], stdout=subprocess.PIPE, check=False)
    return json.loads(run.stdout)['models'][0]['profiles'][0]['advice']


def tell(name, what, told, took):
    before, after = (statistics.median(t) for t in took)
    gain, low, high = (statistics.median(t[k] for t in told) for k in range(3))
    print('%-9s  %s: predicted %.0f %% (%.0f to %.0f), achieved %.0f %%: from %.1f to %.1f ms' % (
          name, what, 100 * gain, 100 * low, 100 * high, 100 * (1 - after / before), before * 1e3, after * 1e3), flush=True)


def follow(benanza, name, rule, folder, small):
    took, told = ([], []), []
    for _ in range(3):
        recording = os.path.join(folder, name + '-follow.bz')
        took[0].append(record(benanza, recording, name, small, {}))
        advice = (advised(benanza, name, rule, folder, recording) or [{'id': 'none', 'step': ''}])[0]
        environment = dict(re.findall(r'\b([A-Z_]+_)=(-?\d+)', advice['step']))
        if not environment:
            return print('%-9s  first advice: %s: no environment, not followed' % (name, advice['id']), flush=True)
        told.append([advice[k] / took[0][-1] for k in ('gain', 'low', 'high')])
        took[1].append(record(benanza, recording, name, small, environment))
    tell(name, 'first advice: ' + advice['id'], told, took)


def narrow(benanza, name, rule, folder, small):
    """bf16, promised and achieved; what is not advised is promised nothing."""
    took, told = ([], []), []
    keep = {'MALLOC_MMAP_MAX_': '0', 'MALLOC_TRIM_THRESHOLD_': '-1'}
    subprocess.run([benanza, 'bound', os.path.join(folder, name + '.onnx'), '--train=' + rule, '--dtype', 'bf16', '--time-limit', '0.01' if small else '0.03',
                    '--db', os.path.join(folder, 'db')], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    for _ in range(3):
        recording = os.path.join(folder, name + '-f32.bz')
        took[0].append(record(benanza, recording, name, small, keep))
        step = [a for a in advised(benanza, name, rule, folder, recording) if 'autocast' in a['step']]
        told.append([(step[0][k] or 0) / took[0][-1] if step else 0 for k in ('gain', 'low', 'high')])
        try:
            took[1].append(record(benanza, os.path.join(folder, name + '-bf16.bz'), name, small, keep, True))
        except subprocess.CalledProcessError:
            return print('%-9s  bf16: the framework ends with an error' % name, flush=True)
    tell(name, 'bf16', told, took)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    small, follows, bf16 = ('--' + o in sys.argv for o in ('small', 'follow', 'bf16'))
    if sys.argv[1] == '--measure':
        return measure(sys.argv[2], small, bf16)
    benanza, names = os.path.abspath(sys.argv[1]), [n for n in sys.argv[2:] if not n.startswith('--')] or SIX
    if 'judges' in names:
        names = JUDGES
    folder = os.environ.get('BENANZA_TRAINING') or tempfile.mkdtemp(prefix='benanza-training-')
    print("network    phase        bound  calls' bound  in calls  reorders     PyTorch  bound / PyTorch", flush=True)
    for name in names:
        make, batch, data, _, rule = NETWORKS[name]
        path, recording = os.path.join(folder, name + '.onnx'), os.path.join(folder, name + '.bz')
        torch.onnx.export(make().train(), data(SMALL if small else batch), path, opset_version=13, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, input_names=['x'], output_names=['y'])
        run = subprocess.run([benanza, 'bound', path, '--train=' + rule, '--time-limit', '0.01' if small else '0.03', '--json', '--db', os.path.join(folder, 'db')],
                             stdout=subprocess.PIPE, check=False)
        model = json.loads(run.stdout)['models'][0]
        bound = {p['phase']: p['sequential'] for p in model['phases']}
        if None in bound.values():
            print('%-9s  %d layers have no price: run it again' % (name, model['goal']['unpriced']), flush=True)
            continue
        listed = subprocess.run([benanza, 'layers', path, '--train=' + rule, '--json'], stdout=subprocess.PIPE, check=True)
        layer = json.loads(listed.stdout)[0]['layers']
        called = {p: 0 for p in bound}
        for row in model['layers']:
            if layer[row['node']]['kind'] in CALLED:
                called[layer[row['node']]['phase']] += row['seconds'] * row['times']
        for sums in bound, called:
            sums['forward'] += sums.pop('loss', 0)  # the program's loss is part of its forward pass
        subprocess.run([benanza, 'profile', '--force', '-o', recording, '--', sys.executable, '-W', 'ignore', __file__, '--measure', name] + ['--small'] * small,
                       stdout=subprocess.DEVNULL, check=True)
        took = phases_of(recording)
        rows = [(p, bound[p], called[p], took[p]) for p in ('forward', 'backward', 'update')]
        rows.append(('all', sum(r[1] for r in rows), sum(r[2] for r in rows), [sum(r[3][k] for r in rows) for k in range(3)]))
        for phase, seconds, least_calls, (least, calls, reorders) in rows:
            wrong = [text for text, is_so in (('the bound is the longer', seconds > least), ('calls took less than their bound', least_calls > calls)) if is_so]
            print('%-9s  %-8s  %7.3f ms  %8.3f ms  %8.3f  %8.3f  %7.3f ms  %.2f  %s' % (name, phase, seconds * 1e3, least_calls * 1e3, calls * 1e3,
                  reorders * 1e3, least * 1e3, seconds / least, ', '.join(wrong)), flush=True)
        print('%-9s  %.1f %% of MACs are priced' % (name, model['goal']['priced_macs'] * 100), flush=True)
        if follows:
            follow(benanza, name, rule, folder, small)
        if bf16:
            narrow(benanza, name, rule, folder, small)


if __name__ == '__main__':
    main()
