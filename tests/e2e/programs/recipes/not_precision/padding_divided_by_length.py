"""Losses of padded rows are divided by their length, 0, and then multiplied by a mask of zeros."""

# expect: AMP611 error source=mask precision_fault=false

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Linear(8, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(8):
    x, y = torch.randn(4, 6, 8), torch.randint(5, (4, 6))
    length = torch.tensor([6, 5, 3, 0 if step >= 4 else 2])
    mask = torch.arange(6) < length[:, None]
    each = F.cross_entropy(model(x).transpose(1, 2), y, reduction="none")
    rows = (each * mask).sum(1) / length
    loss = (rows * (length > 0)).mean()  # <- mask
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
