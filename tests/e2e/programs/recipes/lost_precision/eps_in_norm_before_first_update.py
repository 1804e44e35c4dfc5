"""A model in fp16 as a whole: the guard of its norm is zero for the padding token, in the first forward pass. What the
optimizer's own eps becomes comes later."""

# expect: AMP502 error source=norm first=0 precision_fault=true

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-8) * self.weight  # <- norm


torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(20, 16, padding_idx=0), Norm(16), nn.Linear(16, 20)).half()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(12):
    tokens = torch.randint(0, 20, (8, 6))
    tokens[:, -2:] = 0
    loss = nn.functional.cross_entropy(model(tokens).float().view(-1, 20), tokens.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
