"""Copies of fp32 values in bf16 tensors that are kept: the weights and an fp32 average of them for evaluation, weights
that are computed anew in each step. Most elements stay as they are from one step to the next, and nothing is lost."""

# expect: quiet

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
average = copy.deepcopy(model).requires_grad_(False)
shadows = [copy.deepcopy(model).to(torch.bfloat16).requires_grad_(False) for _ in range(3)]
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    inputs = torch.randn(64, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs).float(), inputs[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for weight, mean, *copies in zip(
            model.parameters(), average.parameters(), *(shadow.parameters() for shadow in shadows), strict=True
        ):
            mean.mul_(0.9995).add_(weight, alpha=0.0005)
            copies[0].copy_(weight)
            copies[1].copy_(mean)
            copies[2].copy_(0.05 * weight + 0.95 * weight.clamp(-1, 1))
    print(step, loss.item())
