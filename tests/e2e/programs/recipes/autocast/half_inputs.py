"""Inputs are cast by hand, by a tutorial's advice; autocast casts them by itself."""

# expect: AMP110 warning source=cast

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
images, targets = torch.rand(16, 3, 8, 8), torch.randint(4, (16,))
for _ in range(12):
    batch = (images - 0.5) / 0.25
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(batch.half())  # <- cast
        loss = nn.functional.cross_entropy(logits, targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
