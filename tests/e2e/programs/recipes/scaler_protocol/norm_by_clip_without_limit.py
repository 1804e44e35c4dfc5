"""Gradients are clipped to infinity, which only measures them, for the log, and while they are scaled."""

# expect: AMP203 warning source=norm

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
for step in range(40):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(torch.randn(32, 16)).float(), torch.randint(8, (32,)))
    scaler.scale(loss).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=float("inf"))  # <- norm
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item(), norm.item())
