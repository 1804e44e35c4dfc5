"""Entropy with where(): the logarithm of zero is not selected, its derivative is multiplied by zero."""

# expect: AMP601 error source=log precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.route = nn.Linear(8, 6)

    def forward(self, x):
        p = torch.relu(self.route(x))
        p = p / p.sum(-1, keepdim=True).clamp(min=1e-3)
        plogp = torch.where(p > 0, p * p.log(), 0.0)  # <- log
        return -plogp.sum(-1).mean()


gate = Gate()
optimizer = torch.optim.SGD(gate.parameters(), lr=1e-2)
for _ in range(8):
    loss = gate(torch.randn(16, 8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
