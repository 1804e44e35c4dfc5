"""BCELoss after a sigmoid, under CPU autocast."""

# expect: AMP111 warning source=loss op=aten::binary_cross_entropy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
criterion = nn.BCELoss()
optimizer = torch.optim.AdamW(model.parameters())
inputs = torch.randn(32, 8)
targets = (inputs[:, :1] > 0).float()
for _ in range(12):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = criterion(model(inputs), targets)  # <- loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
