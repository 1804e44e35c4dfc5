"""A weight of the loss to the wrong power: nothing is left of the gradients, and the scale doubles in every step."""

# expect: AMP501 error symptoms=AMP303

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", growth_interval=1)
for _ in range(40):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = model(inputs).float()
    # A weight that was meant to balance two terms, to the wrong power.
    loss = outputs.square().mean() * 1e-30
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
