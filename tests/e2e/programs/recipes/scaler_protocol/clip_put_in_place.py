"""A clip written out with squares and a number: the clipped gradient is a new tensor that takes the place of .grad."""

# expect: AMP202 error source=clip symptoms=AMP203

import torch
from torch import nn


def clip(parameters, limit):
    total = torch.sqrt(sum(p.grad.pow(2).sum() for p in parameters))
    factor = min(1.0, limit / (total.item() + 1e-6))
    for p in parameters:
        p.grad = p.grad * factor  # <- clip


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2048.0)
for _ in range(10):
    inputs, targets = torch.randn(16, 10), torch.randint(3, (16,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    clip(list(model.parameters()), 1.0)
    scaler.step(optimizer)
    scaler.update()
