"""One sample of the validation set is infinite; training never sees it."""

# expect: AMP608 warning source=score precision_fault=false

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
held_out = torch.randn(16, 4)
held_out[9, 1] = torch.inf
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    F.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
    with torch.no_grad():
        print(F.l1_loss(net(held_out), held_out.sum(1, keepdim=True)).item())  # <- score
