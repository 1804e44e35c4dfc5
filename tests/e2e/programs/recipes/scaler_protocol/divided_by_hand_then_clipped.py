"""Gradients are divided by hand, clipped at their true size and stepped through the scaler, which divides again."""

# expect: AMP205 error source=divide|step

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**11)


def finish():
    inverse = 1.0 / scaler.get_scale()
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad *= inverse  # <- divide
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)  # <- step
    scaler.update()


for _ in range(10):
    inputs, targets = torch.randn(32, 12), torch.randint(3, (32,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    finish()
