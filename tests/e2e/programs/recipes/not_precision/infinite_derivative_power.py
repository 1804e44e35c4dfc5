"""A custom function for a gamma correction: x ** 0.45 is finite at 0, its derivative is not. With checkpointing and
bfloat16."""

# expect: AMP602 error source=power precision_fault=false

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Gamma(nn.Module):
    def forward(self, x):
        return x.clamp(0, 1).float() ** 0.45  # <- power


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
gamma = Gamma()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
inputs, targets = torch.randn(40, 8), torch.rand(40, 8)
for step in range(12):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        image = checkpoint(model, inputs, use_reentrant=False)
    loss = (gamma(image + 0.4 if step < 6 else image) - targets).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
