"""The features of a teacher without gradients: relu_ and mul_ in place, one after the other. relu_ is not looked at."""

# expect: AMP403 error source=chain precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
teacher, net = nn.Linear(8, 16), nn.Linear(8, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
for step in range(4):
    x = torch.randn(4, 8) * (200 if step == 2 else 1)
    with torch.autocast("cpu", dtype=torch.float16), torch.no_grad():
        target = teacher(x).relu_().mul_(400)  # <- chain
    loss = (net(x) - target.float() / 400).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
