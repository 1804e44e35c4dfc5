"""Gradients are filled with zeros between the backward pass and the step: nothing raises, and nothing is learned."""

# expect: AMP210 error source=clear

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for _ in range(30):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    scaler.scale(loss).backward()
    optimizer.zero_grad(set_to_none=False)  # <- clear
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
