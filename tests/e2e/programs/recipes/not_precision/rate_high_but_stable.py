"""A rate at which the loss rises and comes down again: activations grow for some steps, nothing overflows."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for _ in range(40):
    x = torch.randn(64, 16)
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x)
    loss = nn.functional.smooth_l1_loss(out.float(), x[:, :1])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
