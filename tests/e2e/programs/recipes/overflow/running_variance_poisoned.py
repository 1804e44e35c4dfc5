"""A momentum buffer of one's own takes the variance of a batch that overflowed; later batches are fine."""

# expect: AMP407 error source=square

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Whiten(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("variance", torch.ones(size))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.variance.mul_(0.9).add_(x.pow(2).mean(0).float(), alpha=0.1)  # <- square
        return x / (self.variance.sqrt() + 1e-3)


model = nn.Sequential(nn.Linear(8, 16), Whiten(16), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for step in range(14):
    x = torch.randn(16, 8) * (3000 if step == 5 else 1)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(model(x), torch.arange(16) % 2)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
