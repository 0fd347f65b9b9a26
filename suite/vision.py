"""Image classification and detection."""
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

import train


def classify(make, side=224, small=64, rule="momentum"):
    def network(batch, full):
        s, classes = (side, 1000) if full else (small, 10)
        net = make(full, s, classes)
        x, y = torch.randn(batch, 3, s, s), torch.randint(classes, (batch,))

        def loss():
            out = net(x)
            if isinstance(out, tuple):  # Inception's second classifier
                return F.cross_entropy(out[0], y) + 0.4 * F.cross_entropy(out[1], y)
            return F.cross_entropy(out, y)
        return net, loss, rule
    return network


def detect(make, regions=True):
    def network(batch, full):
        h, w = (800, 1067) if full else (64, 96)
        few = {} if full or not regions else {"rpn_pre_nms_top_n_train": 50, "rpn_post_nms_top_n_train": 20, "box_batch_size_per_image": 16}
        net = make(weights=None, weights_backbone=None, num_classes=21, min_size=h, max_size=2 * w, **few)
        x = [torch.rand(3, h, w) for _ in range(batch)]
        box = torch.tensor([[0.1, 0.1, 0.6, 0.7], [0.3, 0.2, 0.9, 0.9]]) * torch.tensor([w, h, w, h])
        y = [{"boxes": box, "labels": torch.tensor([1, 2]), "masks": torch.zeros(2, h, w, dtype=torch.uint8)} for _ in range(batch)]
        return net, lambda: sum(net(x, y).values())
    return network


class Separable(nn.Sequential):
    def __init__(self, n, m, stride=1, wide=1):
        w = n * wide
        super().__init__(*([nn.Conv2d(n, w, 1, bias=False), nn.BatchNorm2d(w), nn.SiLU()] if wide > 1 else []),
                         nn.Conv2d(w, w, 3, stride, 1, groups=w, bias=False), nn.BatchNorm2d(w), nn.SiLU(),
                         nn.Conv2d(w, m, 1, bias=False), nn.BatchNorm2d(m))


class EfficientDet(nn.Module):
    """Inverted residuals, levels of features that are summed up downwards and upwards with learned weights, and one head for all."""

    def __init__(self, width, classes, rounds):
        super().__init__()
        w = [width * k for k in (1, 2, 3, 5, 8)]
        self.stem = nn.Sequential(nn.Conv2d(3, w[0], 3, 2, 1, bias=False), nn.BatchNorm2d(w[0]), nn.SiLU())
        self.down = nn.ModuleList(nn.Sequential(Separable(a, b, 2, 6), Separable(b, b, 1, 6)) for a, b in zip(w, w[1:]))
        self.side = nn.ModuleList(nn.Conv2d(c, 2 * width, 1) for c in w[1:])
        self.joint = nn.ModuleList(Separable(2 * width, 2 * width) for _ in range(6 * rounds))
        self.share = nn.Parameter(torch.ones(6 * rounds, 2))
        self.head = nn.Sequential(Separable(2 * width, 2 * width), nn.SiLU(), nn.Conv2d(2 * width, 9 * (classes + 4), 3, padding=1))

    def join(self, k, a, b):
        s = self.share[k].relu()
        return self.joint[k]((a * s[0] + F.interpolate(b, a.shape[2:]) * s[1]) / (s.sum() + 1e-4))

    def forward(self, x):
        x, levels = self.stem(x), []
        for down, side in zip(self.down, self.side):
            x = down(x)
            levels.append(side(x))
        for r in range(0, len(self.joint), 6):
            for i in (2, 1, 0):
                levels[i] = self.join(r + i, levels[i], levels[i + 1])
            for i in (1, 2, 3):
                levels[i] = self.join(r + 2 + i, levels[i], levels[i - 1])
        return torch.cat([self.head(v).flatten(2) for v in levels], 2)


def efficientdet(batch, full):
    side, classes = (512, 90) if full else (64, 10)
    net = EfficientDet(32 if full else 8, classes, 3 if full else 1)
    x = torch.randn(batch, 3, side, side)
    return net, lambda: net(x).sigmoid().square().mean()


def vit(full, side, classes):
    return torchvision.models.VisionTransformer(image_size=side, patch_size=16, num_layers=12 if full else 2, num_heads=12 if full else 4,
                                                hidden_dim=768 if full else 64, mlp_dim=3072 if full else 256, num_classes=classes)


models, detection = torchvision.models, torchvision.models.detection
train.main({
    "resnet50": classify(lambda full, side, classes: models.resnet50(num_classes=classes)),
    "inception_v3": classify(lambda full, side, classes: models.inception_v3(num_classes=classes, aux_logits=full, init_weights=False), 299, 112),
    "vit_b16": classify(vit, rule="adamw"),
    "faster_rcnn": detect(detection.fasterrcnn_resnet50_fpn),
    "mask_rcnn": detect(detection.maskrcnn_resnet50_fpn),
    "retinanet": detect(detection.retinanet_resnet50_fpn, False),
    "efficientdet": efficientdet,
})
