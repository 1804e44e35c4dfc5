"""The variance as mean of squares less the square of the mean is slightly negative in fp32; its root is NaN."""

# expect: AMP610 error source=root precision_fault=false

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Scale(nn.Module):
    def forward(self, x):
        variance = (x * x).mean(0) - x.mean(0) ** 2
        return (x - x.mean(0)) / (torch.sqrt(variance) + 1e-3)  # <- root


model = nn.Sequential(nn.Linear(6, 8), Scale(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randn(16, 6) if step < 4 else torch.full((16, 6), 100.0) + torch.randn(16, 6) * 1e-3
    loss = F.cross_entropy(model(x), torch.arange(16) % 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
