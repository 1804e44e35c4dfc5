"""Two masks of the lowest fp16 value are added to the scores one after the other; a row that both cover is emptied."""

# expect: AMP406 error source=second|first precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
query, key, value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
model = nn.ModuleList([query, key, value])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
lowest = torch.finfo(torch.float16).min
causal = torch.full((5, 5), lowest, dtype=torch.float16).triu(1)
for step in range(16):
    x = torch.randn(10, 5, 8)
    lengths = torch.randint(2, 6, (10,))
    padding = torch.where(torch.arange(5) < lengths[:, None], 0.0, lowest)[:, None, :].half()
    if step == 8:
        padding[2] = lowest
    with torch.autocast("cpu", dtype=torch.float16):
        scores = query(x) @ key(x).transpose(1, 2) - (40 if step == 8 else 0)
        scores = scores + causal  # <- first
        scores = scores + padding  # <- second
        out = torch.softmax(scores, -1) @ value(x)
    loss = out.float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
