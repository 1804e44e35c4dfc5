"""A softmax by hand in fp32, without taking the largest logit off first: exp ends at 88.7 there."""

# expect: AMP614 error source=exp op=aten::exp precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 5)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(5):
    x, y = torch.randn(16, 8) * (200 if step == 3 else 1), torch.randint(5, (16,))
    weights = torch.exp(net(x))  # <- exp
    chosen = (weights / weights.sum(-1, keepdim=True))[torch.arange(16), y]
    loss = -chosen.clamp_min(1e-9).log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
