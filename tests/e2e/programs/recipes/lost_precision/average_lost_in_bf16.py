"""An average of the weights kept in bf16 with a decay of 0.9999: it stays what it was at the start."""

# expect: AMP507 error source=average

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
average = copy.deepcopy(model).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(torch.randn(16, 8)), torch.arange(16) % 3)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, weight in zip(average.parameters(), model.parameters(), strict=True):
            kept.mul_(0.9999).add_(weight.to(kept.dtype), alpha=1e-4)  # <- average
