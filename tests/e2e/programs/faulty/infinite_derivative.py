"""A gain of zero under a square root: forward is finite, its backward is infinite at every loss scale."""

# expect: AMP602 error source=root symptoms=AMP302 precision_fault=false

import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.gain = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.layer(x) * torch.sqrt(self.gain)  # <- root


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 24), Gated(24), nn.ReLU(), nn.Linear(24, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
inputs, targets = torch.randn(64, 12), torch.randint(4, (64,))
for step in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex(), scaler.get_scale())
print("40 of 40 steps skipped")
