"""Integers that bf16 holds, or that do not count anything: labels, masks, a short sequence, pixels, counts."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(10):
    pixels = torch.randint(65536, (16, 64))
    labels = torch.randint(10, (16,))
    mask = torch.rand(16, 64) < 0.9
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = pixels.bfloat16() / 65536 * mask.bfloat16()
        position = torch.arange(64).bfloat16() / 64
        loss = nn.functional.cross_entropy(model(x + position), labels)
        loss = loss + 0 * (labels.bfloat16() - mask.sum(1).bfloat16()).mean()
    loss.backward()
    optimizer.step()
