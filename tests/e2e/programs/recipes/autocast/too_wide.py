"""The optimizer's step runs under autocast again; only a note."""

# expect: quiet
# note: AMP113

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters())
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(12):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        optimizer.step()
