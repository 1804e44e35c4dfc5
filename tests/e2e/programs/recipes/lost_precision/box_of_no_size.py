"""Widths and heights of predicted boxes around 1e-8 are 0 in fp16, and the angle of the box is that of 0/0."""

# expect: AMP505 source=size|ratio precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
for step in range(5):
    x, target = torch.randn(8, 6), torch.rand(8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        raw = net(x)
        size = torch.exp(raw[:, 2:] - (18 if step >= 3 else 0))  # <- size
        angle = torch.atan(size[:, 0] / size[:, 1])  # <- ratio
        loss = (angle.float() - target).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
