"""Small gradients: the scale has to climb high, and stays where something comes near the limit."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", growth_interval=1)
for _ in range(50):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = model(inputs).float()
    loss = outputs.square().mean() * 1e-7
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
