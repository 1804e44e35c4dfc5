"""Attention over neighbours in a graph where one node has none: a softmax over -inf alone."""

# expect: AMP603 error source=softmax precision_fault=false

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class GraphAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.score = nn.Linear(6, 8), nn.Linear(8, 1)

    def forward(self, x, adjacency):
        h = self.project(x)
        e = self.score(h) + self.score(h).transpose(0, 1)
        e = e + torch.where(adjacency, 0.0, float("-inf"))
        return F.softmax(e, dim=1) @ h  # <- softmax


model, head = GraphAttention(), nn.Linear(8, 2)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
for step in range(8):
    adjacency = torch.rand(10, 10) < 0.5
    adjacency |= torch.eye(10, dtype=torch.bool)
    if step >= 4:
        adjacency[3] = False
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(head(model(torch.randn(10, 6), adjacency)), torch.arange(10) % 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
