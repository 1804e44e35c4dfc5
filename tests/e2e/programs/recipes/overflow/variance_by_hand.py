"""A normalisation of one's own squares large features in fp16: variance inf, output zero, no NaN in forward."""

# expect: AMP407 error source=inner|outer

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, x):
        scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-3)  # <- inner
        return x * scale * self.gain.to(x.dtype)  # <- outer


model = nn.Sequential(nn.Linear(8, 16), Norm(16), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for step in range(12):
    x = torch.randn(16, 8) * (2000 if step >= 6 else 1)
    with torch.autocast("cpu", dtype=torch.float16), torch.no_grad():
        model(x)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(model(x.clamp(-3, 3)), torch.arange(16) % 2)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
