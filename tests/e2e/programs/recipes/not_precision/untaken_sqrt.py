"""where() keeps the root of what is not positive out of the loss, and backward brings it back as NaN."""

# expect: AMP601 error source=root precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 6))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs = torch.randn(32, 6)
for step in range(14):
    with torch.autocast("cpu", dtype=torch.float16):
        x = model(inputs)
    keep = torch.rand(32, 6) < (1.0 if step < 7 else 0.8)
    x = (x.float() * keep).square()
    root = torch.where(x > 0, torch.sqrt(x), torch.zeros_like(x))  # <- root
    loss = (root - 0.5).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
