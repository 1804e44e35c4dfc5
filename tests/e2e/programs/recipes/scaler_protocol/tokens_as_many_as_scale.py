"""Summed losses and gradients divided by the number of tokens, which happens to be the loss scale."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for _ in range(30):
    tokens = 0
    for _ in range(4):
        inputs = torch.randn(64, 8)
        targets = inputs[:, :3].argmax(1)
        tokens += len(targets)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum")
        scaler.scale(loss).backward()
    for parameter in model.parameters():
        parameter.grad.div_(tokens)
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(loss.item().hex())
