"""Graph convolution with symmetric normalisation: the degree of an isolated node to the power -1/2. The zeros of the
adjacency matrix are no mask."""

# expect: AMP606 error source=power precision_fault=false

import torch
from torch import nn
from torch.nn import functional as F


class GraphConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(6, 4)

    def forward(self, x, adjacency):
        scale = adjacency.sum(1).pow(-0.5)  # <- power
        return (scale[:, None] * adjacency * scale[None]) @ self.project(x)


torch.manual_seed(0)
net = GraphConvolution()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(5):
    adjacency = torch.ones(8, 8)
    if step >= 3:
        adjacency[3], adjacency[:, 3] = 0, 0
    loss = F.cross_entropy(net(torch.randn(8, 6), adjacency), torch.arange(8) % 4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
