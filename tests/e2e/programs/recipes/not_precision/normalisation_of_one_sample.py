"""Batch normalisation written by hand takes the unbiased variance; the last batch has one sample, and the running
variance keeps the NaN."""

# expect: AMP605 error source=variance symptoms=AMP408 precision_fault=false

import torch
from torch import nn


class Normalise(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("running_variance", torch.ones(width))

    def forward(self, x):
        variance = x.var(0)  # <- variance
        with torch.no_grad():
            self.running_variance.lerp_(variance, 0.1)
        return (x - x.mean(0)) / (variance + 1e-5).sqrt()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), Normalise(8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for batch in torch.randn(25, 4).split(8):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
