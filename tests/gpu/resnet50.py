#!/usr/bin/env python3
"""ResNet-50 in PyTorch: how long the device is busy in one iteration.

    resnet50.py [--device cuda|cpu] [--iterations N] [--plain] OUT NAME BATCH TYPE MATH ...

For each NAME BATCH TYPE MATH (f32 or f16; default or tf32) a line `NAME SECONDS` on standard output, the mean of
the iterations, and the profile OUT/pytorch-NAME.json. Exit status 77 where there is no PyTorch, or it finds no such
device. --plain: without PyTorch's profiler, so that another one can look; the time is then that of the clock. The weights are random: they change no time. Inputs are channels first, and last where the type is f16,
as cuDNN likes them.
"""
import json
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    print("there is no PyTorch", file=sys.stderr)
    sys.exit(77)

WARM = 5


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride > 1 or inputs != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, 64 << stage, 2 if stage and not block else 1))
            inputs = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def busy(events, iterations):
    """Seconds in which something runs on the device, in each iteration; overlaps count once."""
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events
                   if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and "dur" in e)
    total, end = 0.0, float("-inf")
    for start, stop in spans:
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return 1e-6 * total / iterations


def profile(device, iterations, path, batch, dtype, math, plain=False):
    tf32 = math == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    half = dtype == "f16"
    layout = torch.channels_last if half else torch.contiguous_format
    model = resnet50().eval().to(device, torch.float16 if half else torch.float32, memory_format=layout)
    x = torch.randn(batch, 3, 224, 224, device=device, dtype=torch.float16 if half else torch.float32)
    x = x.contiguous(memory_format=layout)
    activities = [torch.profiler.ProfilerActivity.CPU]
    wait = lambda: None
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
        wait = torch.cuda.synchronize
    with torch.no_grad():
        for _ in range(WARM):
            model(x)
        wait()
        if plain:
            start = time.perf_counter()
            for _ in range(iterations):
                model(x)
                wait()
            return (time.perf_counter() - start) / iterations
        with torch.profiler.profile(activities=activities) as p:
            for _ in range(iterations):
                with torch.profiler.record_function("iteration"):
                    model(x)
                    wait()
    p.export_chrome_trace(path)
    with open(path) as f:
        trace = json.load(f)
    return busy(trace if isinstance(trace, list) else trace["traceEvents"], iterations)  # a list without Kineto


def main(arguments):
    device, iterations, plain = "cuda", 10, False
    while arguments and arguments[0].startswith("--"):
        if arguments[0] == "--plain":
            plain = True
            arguments = arguments[1:]
            continue
        if arguments[0] == "--device":
            device = arguments[1]
        elif arguments[0] == "--iterations":
            iterations = int(arguments[1])
        else:
            sys.exit(__doc__)
        arguments = arguments[2:]
    if device == "cuda" and not torch.cuda.is_available():
        print("PyTorch finds no GPU", file=sys.stderr)
        sys.exit(77)
    out, rest = arguments[0], arguments[1:]
    for i in range(0, len(rest), 4):
        name, batch, dtype, math = rest[i:i + 4]
        seconds = profile(device, iterations, f"{out}/pytorch-{name}.json", int(batch), dtype, math, plain)
        print(name, seconds, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
