#!/usr/bin/env python3
"""Training in PyTorch before and after a change, for `benanza whatif --actual`.

    training.py [--device cuda|cpu] [--small] OUT [NETWORK...]

For each network and each way to train it a recording OUT/NETWORK-WAY.json.gz of three iterations, and a line
`NETWORK WAY SECONDS` on standard output: the median of ten iterations that nobody records, each waited for. Ways: base (f32, Adam
that updates one tensor after the other), fused (Adam in one kernel), tf32, amp (f16 where autocast says so, with a scaled loss).
Weights and inputs are random. Networks: resnet50 and densenet121 (torchvision), bert and gpt2 (transformers). Exit status 77 where PyTorch is
missing or finds no such device.
"""
import gzip
import os
import statistics
import sys
import time

try:
    import torch
except ImportError:
    print("there is no PyTorch", file=sys.stderr)
    sys.exit(77)


def image_network(name, small, device):
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    batch, side = (2, 64) if small else (64, 224)
    x = torch.randn(batch, 3, side, side, device=device)
    y = torch.randint(1000, (batch,), device=device)
    return model, lambda m: torch.nn.functional.cross_entropy(m(x), y)


def bert(small, device):
    import transformers

    c = transformers.BertConfig(num_hidden_layers=2 if small else 12, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    batch, length = (1, 16) if small else (16, 128)
    x = torch.randint(c.vocab_size, (batch, length), device=device)
    return transformers.BertForMaskedLM(c), lambda m: m(input_ids=x, labels=x).loss


def gpt2(small, device):
    import transformers

    c = transformers.GPT2Config(n_layer=2 if small else 12, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    batch, length = (1, 16) if small else (8, 256)
    x = torch.randint(c.vocab_size, (batch, length), device=device)
    return transformers.GPT2LMHeadModel(c), lambda m: m(input_ids=x, labels=x).loss


NETWORKS = {
    "resnet50": lambda small, device: image_network("resnet50", small, device),
    "bert": bert,
    "gpt2": gpt2,
    "densenet121": lambda small, device: image_network("densenet121", small, device),
}
WAYS = ("base", "fused", "amp", "tf32")


def train(network, way, device, small, path):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = way == "tf32"
    model, loss_of = NETWORKS[network](small, device)
    model.train().to(device)
    options = {"fused": True} if way == "fused" else {"foreach": False}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, **options)
    scaler = torch.amp.GradScaler(device) if way == "amp" else None
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None

    def iteration():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.float16, enabled=way == "amp"):
            loss = loss_of(model)
        if scaler:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()

    def timed():
        start = time.perf_counter()
        iteration()
        wait()
        return time.perf_counter() - start

    for _ in range(2 if small else 6):
        timed()
    seconds = statistics.median(timed() for _ in range(2 if small else 10))
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, record_shapes=True) as p:
        for _ in range(3):
            with torch.profiler.record_function("benanza_iteration"):
                iteration()
                wait()
    p.export_chrome_trace(path)
    with open(path, "rb") as f, gzip.open(path + ".gz", "wb", 6) as g:
        g.write(f.read())
    os.remove(path)
    return seconds


def main(arguments):
    device, small = "cuda", False
    while arguments and arguments[0].startswith("--"):
        if arguments[0] == "--small":
            small, arguments = True, arguments[1:]
        elif arguments[0] == "--device" and len(arguments) > 1:
            device, arguments = arguments[1], arguments[2:]
        else:
            sys.exit(__doc__)
    if not arguments or [n for n in arguments[1:] if n not in NETWORKS]:
        sys.exit(__doc__)
    if device == "cuda" and not torch.cuda.is_available():
        print("PyTorch finds no GPU", file=sys.stderr)
        sys.exit(77)
    out, names = arguments[0], arguments[1:] or list(NETWORKS)
    for network in names:
        for way in WAYS:
            try:
                seconds = train(network, way, device, small, f"{out}/{network}-{way}.json")
                print(network, way, seconds, flush=True)
            except Exception as e:  # one network less
                print(f"{network} {way}: {e}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
