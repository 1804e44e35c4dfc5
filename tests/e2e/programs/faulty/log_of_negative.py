"""The correction of a squashed policy takes the logarithm of a negative number (in fp32 too)."""

# expect: AMP610 error source=log precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 2))
with torch.no_grad():
    policy[2].weight.mul_(0.1)
    policy[2].bias.zero_()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-2)
states = torch.randn(64, 5)
for step in range(40):
    mean = policy(states)
    action = 2 * torch.tanh(mean)
    correction = torch.log(1 - action.square() + 1e-6)  # <- log
    loss = (correction - mean).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())
