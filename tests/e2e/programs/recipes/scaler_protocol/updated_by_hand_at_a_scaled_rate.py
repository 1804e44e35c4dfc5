"""Gradient descent written by hand after a scaled backward pass; the learning rate holds the division."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
rate = 0.5 / 1024
for _ in range(30):
    inputs = torch.randn(32, 16)
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), inputs[:, :4].argmax(1))
    scaler.scale(loss).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= rate * parameter.grad
    print(loss.item().hex())
