"""Averages that do their work: in fp32, with a decay that bf16 holds, as statistics of a normalisation layer."""

# expect: quiet

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
slow, fast = copy.deepcopy(model), copy.deepcopy(model).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
total, count = torch.zeros((), dtype=torch.float32), torch.zeros((), dtype=torch.bfloat16)
for _ in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(torch.randn(16, 8)), torch.arange(16) % 3)
    loss.backward()
    optimizer.step()
    total += loss.detach()
    count += 1
    with torch.no_grad():
        for kept, weight in zip(slow.parameters(), model.parameters(), strict=True):
            kept.mul_(0.9999).add_(weight, alpha=1e-4)
        for kept, weight in zip(fast.parameters(), model.parameters(), strict=True):
            kept.lerp_(weight.to(kept.dtype), 0.1)
        scale = fast[1].running_var + 1e-8  # an eps beside a kept tensor
        assert scale.isfinite().all()
