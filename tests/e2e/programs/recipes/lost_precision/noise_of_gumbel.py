"""Gumbel noise in fp16: of many uniform numbers some round to one, and the logarithm of their logarithm is infinite."""

# expect: AMP505 error source=uniform precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 4000)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
for _ in range(4):
    x = torch.randn(64, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = net(x)
        uniform = torch.rand(64, 4000).to(logits.dtype)  # <- uniform
        chosen = ((logits - (-uniform.log()).log()) / 0.5).softmax(-1)
        loss = chosen[:, :10].float().sum(-1).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
