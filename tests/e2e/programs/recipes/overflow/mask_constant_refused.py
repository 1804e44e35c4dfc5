"""masked_fill with -1e9 on fp16 scores: PyTorch refuses it, and the run ends in the first step with a mask."""

# expect: AMP405 error source=fill
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
query, key, value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
model = nn.ModuleList([query, key, value])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(16):
    x = torch.randn(10, 5, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        scores = query(x) @ key(x).transpose(1, 2)
        if step > 5:
            scores = scores.masked_fill(torch.rand(10, 1, 5) < 0.2, -1e9)  # <- fill
        out = torch.softmax(scores, -1) @ value(x)
    loss = out.float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
