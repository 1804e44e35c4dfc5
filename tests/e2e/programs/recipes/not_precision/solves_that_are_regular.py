"""Inverses and solutions of systems that a ridge keeps regular, and a pseudo-inverse of a singular one."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for _ in range(10):
    features = model(torch.randn(32, 6))
    features = torch.cat([features, torch.zeros_like(features[:, :1])], 1)
    gram = features.T @ features / 32 + 0.1 * torch.eye(5)
    whitened = features @ torch.linalg.inv(gram)
    solved = torch.linalg.solve(gram, features.T).T
    with torch.no_grad():
        rank = torch.linalg.pinv(features).abs().mean()
    loss = (whitened - 1).square().mean() + (solved - 1).square().mean() + 0 * rank
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
