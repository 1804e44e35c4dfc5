"""Hooks clamp each gradient as soon as it is there, which is before anything can unscale it."""

# expect: AMP202 error source=hook

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
for parameter in model.parameters():
    parameter.register_hook(lambda gradient: gradient.clamp(-1.0, 1.0))  # <- hook
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**13)
for _ in range(10):
    inputs, targets = torch.randn(32, 12), torch.randint(3, (32,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
