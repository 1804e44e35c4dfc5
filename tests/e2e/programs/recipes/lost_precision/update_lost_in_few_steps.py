"""A dozen steps of AdamW at 1e-5 on large bf16 weights: too few to matter yet, and not one of them arrives."""

# expect: AMP506 error source=step phase=optimizer

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)).bfloat16()
with torch.no_grad():
    for p in net.parameters():
        p.mul_(8)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, foreach=True, weight_decay=0.0)
for _ in range(12):
    x = torch.randn(32, 16).bfloat16()
    optimizer.zero_grad()
    F.mse_loss(net(x), x).backward()
    optimizer.step()  # <- step
