"""A potential takes the fourth power of distances in fp16, inside activation checkpointing."""

# expect: AMP403 error source=power

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(6, 8)

    def forward(self, x):
        r = self.map(x)
        return (r**4).mean(-1)  # <- power


model, out = Potential(), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*model.parameters(), *out.parameters()], lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
for step in range(12):
    x = torch.randn(8, 6) * (40 if step == 8 else 1)
    with torch.autocast("cpu", dtype=torch.float16):
        energy = checkpoint(model, x, use_reentrant=False)
        loss = (out(x).squeeze(-1) - energy).float().tanh().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
