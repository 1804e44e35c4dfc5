"""Rotary positions in bf16: beyond 256 neighbours are equal."""

# expect: AMP508 error source=positions

import torch
from torch import nn

torch.manual_seed(0)


class Rotary(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("inverse", 1e4 ** (-torch.arange(0, size, 2) / size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], dtype=x.dtype)  # <- positions
        angle = positions[:, None] * self.inverse.to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


model = nn.ModuleDict({"embed": nn.Embedding(50, 16), "rotary": Rotary(16), "head": nn.Linear(16, 50)})
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(6):
    ids = torch.randint(50, (2, 600))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = model["rotary"](model["embed"](ids).bfloat16())
        loss = nn.functional.cross_entropy(model["head"](x).flatten(0, 1), ids.roll(-1, 1).flatten())
    loss.backward()
    optimizer.step()
