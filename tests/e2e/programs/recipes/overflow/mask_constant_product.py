"""(1 - mask) * -1e9 in fp16; a second fault is none of it."""

# expect: AMP405 error source=product precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
query, key, value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
model = nn.ModuleList([query, key, value])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(16):
    x = torch.randn(10, 5, 8)
    keep = (torch.arange(5) < torch.randint(1, 6, (10, 1))).half()[:, None, :]
    if step == 9:
        keep[3] = 0
    with torch.autocast("cpu", dtype=torch.float16):
        scores = query(x) @ key(x).transpose(1, 2)
        bias = (1 - keep) * -1e9  # <- product
        out = torch.softmax(scores + bias, -1) @ value(x)
    loss = out.float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
