"""Plain SGD in fp32 whose loss multiplies from step to step until it is infinite."""

# expect: AMP609 error precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for _ in range(30):
    x = torch.randn(64, 8) * 2
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
