"""Hooks round the gradients of parameters to fp16, as for sending them; some are beyond its range."""

# expect: AMP404 error source=compress

import torch
from torch import nn


def compress(gradient):
    return gradient.half().float()  # <- compress


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 1))
for parameter in model.parameters():
    parameter.register_hook(compress)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
for step in range(20):
    inputs = torch.randn(64, 20)
    targets = inputs[:, :1] * (1.0 if step < 12 else 3e5)
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
