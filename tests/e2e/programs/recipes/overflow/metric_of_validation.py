"""Validation alone runs under fp16 autocast, and its dice score sums half a mask of 160,000 pixels: training is
well."""

# expect: AMP402 warning source=shared|total

import torch
from torch import nn
from torch.nn import functional as F


def dice(probability, mask):
    shared = (probability * mask).sum()  # <- shared
    total = probability.sum() + mask.sum()  # <- total
    return (2 * shared + 1) / (total + 1)


torch.manual_seed(0)
net = nn.Conv2d(1, 1, 3, padding=1)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(2):
    for _ in range(3):
        image = torch.rand(1, 1, 32, 32)
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(net(image), (image > 0.2).float()).backward()
        optimizer.step()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        image = torch.rand(1, 1, 400, 400)
        probability = torch.sigmoid(net(image) + 3)
        print(epoch, dice(probability, (image > 0.2).half()).item())
