"""Roots, norms, powers and angles whose derivatives are kept finite, and a norm of zero that torch handles."""

# expect: quiet

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs = torch.randn(40, 8)
inputs[3] = 0
for _step in range(25):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(inputs)
    x = out.float().relu()
    zero = x * 0
    loss = (x + 1e-6).sqrt().mean() + zero.norm(dim=1).sum() + (x.clamp(min=1e-4) ** 0.45).mean()
    loss = loss + torch.acos((F.normalize(x, dim=1)[:, 0]).clamp(-1 + 1e-6, 1 - 1e-6)).mean() + zero.std()
    loss = loss + torch.where(x > 0, x.clamp(min=1e-3).log(), 0.0).mean().abs()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
