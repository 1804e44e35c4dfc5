"""Decay towards the weights that training began with, in hooks: what is added there does not carry the loss scale."""

# expect: AMP202 error source=pull

import torch
from torch import nn


def pull_towards(parameter, strength):
    start = parameter.detach().clone()
    parameter.register_hook(lambda gradient: gradient + strength * (parameter.detach() - start))  # <- pull


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
for parameter in model.parameters():
    pull_towards(parameter, 0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(30):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
