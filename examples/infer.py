#!/usr/bin/python3
"""ResNet-18 in PyTorch on one thread: the program of the README's story. --freeze takes its first advice."""
import sys

import torch
import torchvision

torch.manual_seed(0)
torch.set_num_threads(1)
network = torchvision.models.resnet18(weights=None).eval()
image = torch.randn(1, 3, 224, 224)
with torch.no_grad():
    if "--freeze" in sys.argv:
        network = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(network, image)))
    for _ in range(30):
        network(image)
