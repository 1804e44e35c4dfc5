"""A graph layer averages over neighbours, and a node has none."""

# expect: AMP606 error source=divide op=aten::div precision_fault=false

import torch
from torch import nn


class MeanNeighbours(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, x, adjacency):
        total = adjacency @ self.project(x).float()
        return total / adjacency.sum(1, keepdim=True)  # <- divide


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = MeanNeighbours(8), nn.Linear(8, 3)

    def forward(self, x, adjacency):
        return self.last(torch.relu(self.first(x, adjacency)))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
labels = torch.randint(3, (20,))
for step in range(20):
    adjacency = (torch.rand(20, 20) < 0.4).float()
    adjacency.fill_diagonal_(1.0)
    if step == 11:
        adjacency[7] = 0
    with torch.autocast("cpu", dtype=torch.float16, enabled=True):
        hidden = model.first.project(torch.randn(20, 8))
    logits = model(torch.randn(20, 8), adjacency) + hidden.float().mean() * 0.01
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
