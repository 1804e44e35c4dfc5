"""Small constants that do their work: in fp32, inside fused normalisation, beside vectors that are never zero."""

# expect: quiet

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input = nn.Linear(12, 32)
        self.norm = nn.LayerNorm(32, eps=1e-12)
        self.output = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(torch.relu(self.input(x)).float()).half()
        h = F.normalize(h, dim=-1)  # in fp16, but no row is zero
        z = self.output(h).float()
        z = z / z.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        empty = torch.zeros(4, 4)
        return z + F.normalize(empty, dim=-1).sum() + (empty.sigmoid().clamp(1e-7, 1 - 1e-7)).log().sum()


model = Net().train()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=256)
for _ in range(25):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        y = model(torch.randn(16, 12))
    loss = F.cross_entropy(y, torch.arange(16) % 4)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
