"""An optimizer of one's own divides by the root of a mean square without an eps: rows of the embedding that no batch
uses turn NaN, and no loss ever shows it."""

# expect: AMP606 error source=update phase=optimizer precision_fault=false

import torch
from torch import nn
from torch.nn import functional as F


class MeanSquare(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1e-2})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                square = self.state[p].setdefault("square", torch.zeros_like(p))
                square.mul_(0.9).add_(p.grad**2, alpha=0.1)
                p.sub_(group["lr"] * p.grad / square.sqrt())  # <- update


torch.manual_seed(0)
net = nn.Sequential(nn.Embedding(12, 4), nn.Flatten(), nn.Linear(12, 2))
optimizer = MeanSquare(net.parameters())
for _ in range(3):
    ids = torch.arange(24).view(8, 3) % 6
    optimizer.zero_grad()
    F.cross_entropy(net(ids), ids[:, 0] % 2).backward()
    optimizer.step()
