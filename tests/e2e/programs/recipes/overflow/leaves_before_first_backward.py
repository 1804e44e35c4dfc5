"""The very first loss is not finite and the program leaves, as many trainers do: no backward pass ever runs."""

# expect: AMP404 error source=cast
# exit: 1

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
frames = torch.randint(0, 1 << 18, (64, 16)).float()
for batch in frames.split(16):
    with torch.autocast("cpu", dtype=torch.float16):
        target = batch.half()  # <- cast
        loss = ((model(batch / (1 << 18)) - target) ** 2).mean()
    if not torch.isfinite(loss):
        print("loss is", loss.item(), "stopping training")
        sys.exit(1)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
