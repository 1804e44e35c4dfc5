"""Casts to the type of another tensor, as libraries write them: they give what autocast has made of that one."""

# expect: quiet

import torch
from torch import nn


class CastedLinear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype), self.bias.type_as(x))


class Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False).bfloat16()
        self.down, self.up = nn.Linear(16, 2, bias=False), nn.Linear(2, 16, bias=False)

    def forward(self, x):
        dtype = x.dtype
        low = self.up(self.down(x.to(self.down.weight.dtype)))
        return self.base(x) + low.to(dtype)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 16), nn.GELU(), CastedLinear(16, 16), Adapted(nn.Linear(16, 16)), nn.Linear(16, 3))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for _ in range(10):
    inputs, targets = torch.randn(16, 12), torch.randint(3, (16,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
