"""A safe division in a helper of a library: the quotient by zero is filled with masked_fill."""

# expect: AMP601 error source=quotient precision_fault=false

import torch
from torch import nn


def safe_divide(a, b):
    quotient = a / b  # <- quotient
    return quotient.masked_fill(b == 0, 0.0)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 12))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(14):
    inputs = torch.randn(32, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a, b = model(inputs).float().chunk(2, -1)
    if step < 5:
        b = b.abs() + 1
    loss = safe_divide(a, b.relu()).clamp(-5, 5).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
