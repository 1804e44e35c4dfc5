"""Cosine similarity by hand in fp16: the product of squared norms is infinite, and the similarity exactly 0."""

# expect: AMP407 error precision_fault=true

import torch
from torch import nn


def similarity(a, b):
    squares = (a * a).sum(-1) * (b * b).sum(-1)
    return (a * b).sum(-1) / squares.sqrt()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 512))
with torch.no_grad():
    model[0].weight.mul_(6)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _step in range(16):
    x = torch.randn(8, 16)
    with torch.autocast("cpu", dtype=torch.float16):
        a, b = model(x), model(x + 0.1)
        loss = (1 - similarity(a, b)).float().mean() + (a.float() * 1e-3).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
