"""A residual stream of a model pre-trained in bf16 passes 65504 where two branches are added."""

# expect: AMP409 error source=residual

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size, gain):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        with torch.no_grad():
            self.down.weight.mul_(gain)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))  # <- residual


torch.manual_seed(0)
blocks = nn.Sequential(*(Block(16, 3e4) for _ in range(8)))
head = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 2))
stem = nn.Linear(6, 16)
optimizer = torch.optim.SGD([*stem.parameters(), *blocks.parameters(), *head.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for _ in range(24):
    with torch.autocast("cpu", dtype=torch.float16):
        out = head(blocks(stem(torch.randn(64, 6))))
        loss = nn.functional.cross_entropy(out, torch.arange(64) % 2)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
