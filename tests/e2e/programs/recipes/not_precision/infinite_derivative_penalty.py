"""A gradient penalty takes the root of a sum of squares, and a dead critic has gradients of zero."""

# expect: AMP602 error source=root op=aten::sqrt precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(16):
    if step == 9:
        with torch.no_grad():
            critic[0].bias.fill_(-100.0)
    real = torch.randn(32, 4, requires_grad=True)
    score = critic(real)
    (gradient,) = torch.autograd.grad(score.sum(), real, create_graph=True)
    norm = gradient.pow(2).sum(1).sqrt()  # <- root
    loss = -score.mean() + 10 * ((norm - 1) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
