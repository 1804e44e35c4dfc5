"""Accumulation over four micro-batches with unscale_ and clipping on each of them."""

# expect: AMP204 error source=unscale op=GradScaler.unscale_
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss / 4).backward()
    scaler.unscale_(optimizer)  # <- unscale
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if (step + 1) % 4 == 0:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
