"""The mean over the samples of one kind, in a batch without one; accumulated over two micro-batches, bfloat16."""

# expect: AMP604 error source=mean op=aten::mean precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(12):
    optimizer.zero_grad()
    for part in range(2):
        inputs = torch.randn(24, 6)
        kind = torch.rand(24) < 0.4
        if step == 7 and part == 1:
            kind[:] = False
        with torch.autocast("cpu", dtype=torch.bfloat16):
            error = (model(inputs).squeeze(1) - inputs.sum(1)).square()
        loss = error.mean() + error[kind].mean()  # <- mean
        (loss / 2).backward()
    optimizer.step()
