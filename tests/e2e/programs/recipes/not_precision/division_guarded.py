"""Counts of zero that are clamped, selected away or skipped; empty batches that are left out."""

# expect: quiet

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(25):
    inputs, targets = torch.randn(16, 10), torch.randint(3, (16,))
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(inputs).float()
    each = F.cross_entropy(logits, targets, reduction="none")
    rare = (targets == 3).float()
    loss = each.mean() + (each * rare).sum() / rare.sum().clamp(min=1)
    chosen = each[targets == 3]
    if chosen.numel():
        loss = loss + chosen.mean()
    with torch.no_grad():
        # A metric of an absent class is nan, and nobody minds.
        recall = ((logits.argmax(1) == 3) & (targets == 3)).sum() / (targets == 3).sum()
        share = torch.where(rare.sum() > 0, rare.sum() / rare.sum(), 0.0)
    if step % 10 == 0:
        print(step, recall.item(), share.item())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
