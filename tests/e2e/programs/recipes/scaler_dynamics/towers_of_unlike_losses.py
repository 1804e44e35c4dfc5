"""Two towers under one scaler. The loss of one is ten powers of ten smaller than that of the other."""

# expect: AMP305 error

import torch
from torch import nn


def tower():
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))


torch.manual_seed(0)
first, second = tower(), tower()
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1e-6)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=4)
for _ in range(60):
    inputs, targets = torch.randn(32, 16), torch.randn(32, 4)
    with torch.autocast("cpu", dtype=torch.float16):
        near, far = first(inputs), second(inputs)
    loss = 300 * (near.float() - targets).pow(2).mean() + 1e-10 * (far.float() - targets).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
