"""The safe form of where(): the argument is made harmless before; and NaN in a branch that takes no gradient."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 6))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs = torch.randn(32, 6)
table = torch.randn(32, 6)
table[::4] = torch.nan
for _step in range(25):
    with torch.autocast("cpu", dtype=torch.float16):
        x = model(inputs).float().relu()
    ok = x > 0
    root = torch.where(ok, torch.sqrt(torch.where(ok, x, 1.0)), 0.0)
    known = torch.isfinite(table)
    error = torch.where(known, x - torch.where(known, table, 0.0), 0.0)
    constant = torch.where(x.detach() > 0, 1 / x.detach(), 0.0).clamp(max=1.0)
    loss = (root - 0.5).square().mean() + error.square().mean() + (constant * x).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
