"""exp overflows fp32 in the branch of a piecewise function that is not taken."""

# expect: AMP601 error source=exp precision_fault=false

import torch
from torch import nn


class ExpLinear(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x, torch.exp(x * x) - 1)  # <- exp


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), ExpLinear(), nn.Linear(24, 1))
with torch.no_grad():
    model[0].weight.abs_()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(12):
    inputs = torch.rand(32, 6) * (0.5 if step < 6 else 20.0)
    loss = (model(inputs) * 0.01).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
