"""Masks of -1e9 cast to fp16, of the lowest value, and of -inf: every row keeps a key. exp of clamped logits."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
query, key, value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
model = nn.ModuleList([query, key, value])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
lowest = torch.finfo(torch.float16).min
for _step in range(25):
    x = torch.randn(10, 5, 8)
    padding = torch.arange(5) >= torch.randint(2, 6, (10, 1))
    with torch.autocast("cpu", dtype=torch.float16):
        scores = query(x) @ key(x).transpose(1, 2)
        big = torch.softmax(scores + (padding.float() * -1e9)[:, None].to(scores.dtype), -1) @ value(x)
        low = torch.softmax((scores - 60) + (padding * lowest)[:, None].half(), -1) @ value(x)
        fill = torch.softmax(scores.masked_fill(padding[:, None], lowest), -1) @ value(x)
        size = torch.exp(fill.clamp(max=9)).log()
    loss = (big + low + fill + size).float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
