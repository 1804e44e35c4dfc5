"""Activations that grow at first, as they do while a model learns, and then stay where they are."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
body, last = nn.Sequential(nn.Linear(16, 32), nn.Tanh()), nn.Linear(32, 4)
optimizer = torch.optim.SGD([*body.parameters(), *last.parameters()], lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**6, growth_interval=10**6)
for step in range(80):
    with torch.autocast("cpu", dtype=torch.float16):
        out = last(body(torch.randn(32, 16)))
    loss = nn.functional.cross_entropy(out.float() * 1e-4, torch.arange(32) % 4)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step < 20:
        with torch.no_grad():
            last.weight.mul_(1.6)
            last.weight.clamp_(-300, 300)
