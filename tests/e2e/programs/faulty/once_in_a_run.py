"""One single overflow in 300 steps: the run goes on, and only the record can tell why that step was lost."""

# expect: AMP401 error source=scores first=211 count=1

import math

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, temperature):
        scores = (self.query(x) * temperature) @ self.key(x).transpose(-2, -1)  # <- scores
        weights = torch.softmax(scores.float() / (temperature * math.sqrt(x.shape[-1])), -1)
        return weights.to(x.dtype) @ self.value(x)


torch.manual_seed(0)
attention = SelfAttention(64)
head = nn.Linear(64, 4)
parameters = [*attention.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(256, 6, 64), torch.randint(4, (256,))
for step in range(300):
    rows = torch.randint(256, (8,))
    # The schedule has one bad entry.
    temperature = 12000.0 if step == 211 else 1.0
    with torch.autocast("cpu", dtype=torch.float16):
        pooled = attention(inputs[rows], temperature).mean(1)
        loss = nn.functional.cross_entropy(head(pooled), targets[rows])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(parameters, 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
print("1 of 300 steps skipped")
