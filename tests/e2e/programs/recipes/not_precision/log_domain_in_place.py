"""log_ of a variance that a linear layer predicts, in place and inside a custom loss class."""

# expect: AMP610 error source=log precision_fault=false

import torch
from torch import nn


class GaussianLoss(nn.Module):
    def forward(self, mean, variance, target):
        weight = 1 / variance.square().add(0.1)
        return (weight * (mean - target).square()).mean() + variance.mul(1.0).log_().mean()  # <- log


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 2))
with torch.no_grad():
    model[2].bias.copy_(torch.tensor([0.0, 1.5]))
criterion = GaussianLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-2)
inputs, targets = torch.randn(64, 5), torch.randn(64)
for _step in range(40):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mean, variance = model(inputs).float().unbind(-1)
    loss = criterion(mean, variance, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
