"""A model's output is multiplied by a small number in fp16: its derivative makes zeros of all gradients."""

# expect: AMP201 error

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(30):
    inputs = torch.randn(64, 32)
    targets = inputs[:, :2].sum(1, keepdim=True) * 1e-4
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(inputs) * 1e-4, targets)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
