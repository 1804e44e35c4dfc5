"""Gradients are looked at in ways that are right: after unscale_, divided by the scale, or only for being finite."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    finite = all(torch.isfinite(p.grad).all() for p in model.parameters())
    if step % 2:
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]).item()
    else:
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]).item() / scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    print(step, finite, norm, scaler.get_scale())
