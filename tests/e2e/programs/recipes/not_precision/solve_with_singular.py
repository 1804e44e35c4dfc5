"""A fit in closed form inside a loss: with fewer samples than unknowns the system has no solution of its own."""

# expect: AMP612 error source=solve precision_fault=false

import torch
from torch import nn


class ClosedForm(nn.Module):
    def forward(self, features, target):
        gram = features.transpose(-1, -2) @ features
        weights, _ = torch.linalg.solve_ex(gram, features.transpose(-1, -2) @ target)  # <- solve
        return features @ weights


torch.manual_seed(0)
encoder, fit = nn.Linear(5, 3), ClosedForm()
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(4, 16, 5)
    features = encoder(x)
    if step == 6:
        features = features * torch.tensor([1.0, 1.0, 0.0])
    loss = (fit(features, torch.randn(4, 16, 1)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
