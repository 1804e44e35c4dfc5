"""Gradients of micro-batches are collected by hand, in buffers of the weights' own type."""

# expect: AMP510 warning source=collect

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(12, 4).to(torch.bfloat16)
buffers = [torch.zeros_like(p) for p in model.parameters()]
x = torch.rand(16, 12).to(torch.bfloat16) + 1
for _ in range(2):
    for _ in range(400):
        model.zero_grad()
        (model(x) - 5).float().mean().backward()
        for buffer, p in zip(buffers, model.parameters(), strict=True):
            buffer += p.grad  # <- collect
    with torch.no_grad():
        for buffer, p in zip(buffers, model.parameters(), strict=True):
            p -= 1e-4 * buffer
            buffer.zero_()
