"""A mask of -1e9 in fp16 that does no harm, and a division by zero that does."""

# expect: AMP606 error source=divide precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
query, key, value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
model = nn.ModuleList([query, key, value])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(16):
    x = torch.randn(10, 5, 8)
    padding = torch.arange(5) >= torch.randint(2, 6, (10, 1))
    with torch.autocast("cpu", dtype=torch.float16):
        scores = query(x) @ key(x).transpose(1, 2)
        out = torch.softmax(scores + (padding.float() * -1e9)[:, None].to(scores.dtype), -1) @ value(x)
    rare = (torch.rand(10) < (0.5 if step != 11 else -1.0)).float()
    each = out.float().square().mean((1, 2))
    loss = each.mean() + (each * rare).sum() / rare.sum()  # <- divide
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
