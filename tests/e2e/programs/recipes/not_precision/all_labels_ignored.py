"""A batch whose labels are all -100: the mean of the loss is over none."""

# expect: AMP604 error source=loss precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(16):
    labels = torch.randint(5, (24,))
    labels[torch.rand(24) < 0.5] = -100
    if step == 6:
        labels[:] = -100
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(torch.randn(24, 6)), labels)  # <- loss
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
