"""Adaptive clipping: each gradient is compared with the norm of its weight, and is still multiplied by the scale."""

# expect: AMP202 error source=clip

import torch
from torch import nn


def adaptive_clip(parameters, factor=0.01):
    for p in parameters:
        largest = p.detach().norm().clamp(min=1e-3) * factor
        norm = p.grad.norm()
        clipped = p.grad * (largest / norm.clamp(min=1e-6))
        p.grad.copy_(torch.where(norm < largest, p.grad, clipped))  # <- clip


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2048.0)
for _ in range(10):
    inputs, targets = torch.randn(16, 10), torch.randint(3, (16,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    adaptive_clip(model.parameters())
    scaler.step(optimizer)
    scaler.update()
