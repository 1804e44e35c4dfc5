"""RMS normalisation by hand with eps 1e-8 in fp16 meets rows of padding that are zero."""

# expect: AMP502 error source=norm

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class RMSNorm(nn.Module):
    def __init__(self, size, eps=1e-8):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x / torch.sqrt(variance + self.eps))  # <- norm


embed, norm, head = nn.Linear(8, 16, bias=False), RMSNorm(16), nn.Linear(16, 2)
optimizer = torch.optim.SGD([*embed.parameters(), *norm.parameters(), *head.parameters()], lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for step in range(10):
    x = torch.randn(4, 6, 8)
    if step >= 5:
        x[1, 4:] = 0
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(head(norm(embed(x))).mean(1), torch.arange(4) % 2)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
