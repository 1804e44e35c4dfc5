"""Dice loss over large masks in fp16: each of the two sums still fits, their sum does not."""

# expect: AMP403 source=total precision_fault=true

import torch
from torch import nn


def dice(probabilities, target):
    both = (probabilities * target).sum(dtype=torch.float16)
    total = probabilities.sum(dtype=torch.float16) + target.sum(dtype=torch.float16)  # <- total
    return 1 - (2 * both / total).float()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
for step in range(12):
    pixels = torch.rand(2, 40_000, 4)
    target = (pixels[..., :1] > 0.2).half()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = dice(torch.sigmoid(model(pixels)).half(), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
