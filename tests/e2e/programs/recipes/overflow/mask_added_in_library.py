"""A library adds (1 - mask) * -1e9 to fp16 scores: -inf, and rows of padding are NaN."""

# expect: AMP405 error source=mask|add

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class SelfAttention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.qkv = nn.Linear(size, 3 * size)

    def forward(self, x, keep):
        q, k, v = self.qkv(x).chunk(3, -1)
        bias = (1.0 - keep[:, None, :].to(q.dtype)) * -1e9  # <- mask
        scores = q @ k.transpose(1, 2) / 4 + bias  # <- add
        return scores.softmax(-1) @ v


model, head = SelfAttention(16), nn.Linear(16, 2)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for step in range(8):
    keep = torch.ones(4, 5)
    if step >= 4:
        keep[2] = 0
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(head(model(torch.randn(4, 5, 16), keep)).mean(1), torch.arange(4) % 2)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
