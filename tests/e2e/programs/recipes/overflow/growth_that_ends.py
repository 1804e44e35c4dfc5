"""The sum of a divergence grows by two orders of magnitude while a model learns, and then stays where it is."""

# expect: quiet

import math

import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(8, 8)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-6)
scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
for step in range(60):
    grown = 10.0 * 2 ** (7 / (1 + math.exp(-(step - 18) / 4)))
    with torch.autocast("cpu", dtype=torch.float16):
        values = layer(torch.ones(4, 8)).sigmoid() * grown
        loss = values.sum() / 4096
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
