"""A contrastive loss divides by the number of positives of each anchor, an integer count that is 0 for a lone class."""

# expect: AMP606 error source=divide precision_fault=false

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(20):
    labels = torch.arange(16) // 2
    if step == 9:
        labels[3] = 99
    positives = (labels[:, None] == labels[None]) & ~torch.eye(16, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.float16):
        z = model(torch.randn(16, 10))
    z = F.normalize(z.float(), dim=1)
    log_probability = F.log_softmax((z @ z.T / 0.5).masked_fill(torch.eye(16, dtype=torch.bool), -1e9), 1)
    per_anchor = (log_probability * positives).sum(1) / positives.sum(1)  # <- divide
    loss = -per_anchor.mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
