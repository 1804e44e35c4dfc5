"""A policy under bf16 autocast checks in fp32 that its probabilities are some, and throws away what fails."""

# expect: AMP511 warning source=softmax

import torch
from torch import nn


def valid(p, tolerance=1e-4):
    return ((p.sum(-1) - 1).abs() < tolerance) & (p >= 0).all(-1)


torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 6))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
thrown = 0
for _ in range(20):
    state = 3 * torch.randn(64, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        probabilities = torch.softmax(policy(state), dim=-1)  # <- softmax
    p = probabilities.float()
    fine = valid(p)
    thrown += int((~fine).sum())
    action = torch.multinomial(p.detach(), 1)
    each = -p.gather(1, action).log().squeeze(1) * torch.randn(64)
    loss = torch.where(fine, each, torch.zeros(())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(thrown, "of", 20 * 64)
