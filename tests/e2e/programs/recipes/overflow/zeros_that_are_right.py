"""Divisions by an infinity that is meant, sums in fp32, and softmax of -inf."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
distance = torch.rand(32, 8) + 0.5
distance[:, 3] = torch.inf
for step in range(20):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(torch.randn(32, 4))
        weighted = out / distance.half()
        attention = torch.softmax(out.masked_fill(distance > 1.2, -torch.inf), -1).nan_to_num(0)
        total = torch.ones(70000, dtype=torch.float16).sum(dtype=torch.float32)
    loss = weighted.float().square().mean() + out.float().mean() / total
    with torch.no_grad():
        print(step, attention.isfinite().all().item())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
