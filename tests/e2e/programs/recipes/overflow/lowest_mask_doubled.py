"""The extended mask of a library, the lowest fp16 number, is added twice: for padding and again with the causal
mask."""

# expect: AMP406 error source=add precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
project = nn.Linear(8, 24)
optimizer = torch.optim.AdamW(project.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
lowest = torch.finfo(torch.float16).min
for step in range(4):
    x, attended = torch.randn(2, 5, 8) * 3, torch.ones(2, 5)
    if step == 2:
        attended[1] = 0  # a sample that is nothing but padding
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        query, key, value = project(x).chunk(3, -1)
        padding = (1 - attended[:, None].half()) * lowest
        scores = query @ key.transpose(-1, -2) + padding
        scores = scores + padding + torch.full((5, 5), lowest, dtype=torch.float16).triu(1)  # <- add
        loss = (scores.softmax(-1) @ value).float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
