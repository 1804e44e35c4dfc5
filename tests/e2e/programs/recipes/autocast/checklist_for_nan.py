"""The usual list against NaN, all of it followed where nothing is wrong: a small init_scale, clipping after unscale_,
backward outside autocast, a finite loss scale looked at as a float."""

# expect: quiet

import math

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(20):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    if not math.isfinite(scaler.get_scale()):
        break
