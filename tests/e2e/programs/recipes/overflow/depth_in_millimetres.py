"""Depth maps in millimetres are converted to half precision before they are scaled to metres."""

# expect: AMP404 error source=convert

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class DepthHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(1, 4, 3, padding=1)

    def forward(self, depth):
        metres = depth.to(torch.float16) / 1000  # <- convert
        return self.net(metres).mean((2, 3))


model = DepthHead()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for step in range(10):
    depth = torch.rand(2, 1, 8, 8) * (90000 if step >= 6 else 20000)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(model(depth), torch.arange(2))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
