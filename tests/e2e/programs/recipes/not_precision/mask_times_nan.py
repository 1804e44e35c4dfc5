"""The loss of padded positions is multiplied by 0, and what stands there is NaN."""

# expect: AMP611 error source=mask precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(14):
    inputs, targets = torch.randn(16, 10, 6), torch.randn(16, 10)
    mask = (torch.arange(10) < torch.randint(4, 11, (16, 1))).float()
    if step >= 8:
        targets[mask == 0] = torch.nan
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(inputs).squeeze(-1)
    per_token = (out.float() - targets).square()
    loss = (per_token * mask).sum() / mask.sum()  # <- mask
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
