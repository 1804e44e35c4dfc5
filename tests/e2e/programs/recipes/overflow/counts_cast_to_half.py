"""Counts that are integers are given to the model in fp16; some of them are beyond its end."""

# expect: AMP404 error source=counts

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
for step in range(20):
    visits = torch.randint(0, 90 if step < 12 else 190_000, (32, 6))
    counts = visits.half()  # <- counts
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(counts).float().pow(2).mean() * 1e-4
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item())
